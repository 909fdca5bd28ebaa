"""Resolution: the children that a descent may name, because their measurements stand out from the noise.

A child that is truly empty measures k or more with probability P(N ≥ k): its p-value, exact up to rounding, and
independent of all others. An only child is not measured, and has the p-value of its parent. Naming children from a
threshold up is then a test of many hypotheses at once. The threshold comes from measurements only, so it costs no
privacy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from treetop._util.choices import Choices
from treetop._util.dtypes import Floats, Ints
from treetop._util.numbers import positive
from treetop.domain.constraints import NarrowLevel
from treetop.domain.spine_level import Level
from treetop.errors import LossError, PlanError
from treetop.noise import Law
from treetop.noise.law import nearest_float
from treetop.repair import Order, Repair

_MOST_THRESHOLDS = 1 << 12
_TAIL_BITS = 60


@dataclass(frozen=True)
class ResolutionRule:
    """A rule that decides which children are named."""

    name: str
    words: str
    scale: int = 1
    """Factor of the number in words: 100 for percentages."""
    caution: str = ""
    """Caution about the named children; empty if there is none."""

    def say(self, text: str, value: Fraction) -> str:
        """Insert a number into a text."""
        return text.format(value=f"{float(self.scale * value):g}")


RULES: Choices[ResolutionRule] = Choices(
    "rule of resolution",
    ResolutionRule(
        "fdr",
        "from the least measurement up at which, of all nodes of the level that are tested together, the proportion of "
        "truly empty ones among the named is at most {value} % in expectation (Benjamini and Hochberg 1995)",
        100,
        "The rate of {value} % bounds the mean of one proportion: of the nodes that one release names at a level, the "
        "share that is truly empty, which is 0 where none is named. Of all nodes that many releases name together more "
        "may be empty, where most of them name few. Of a single node, or of a few, it says little.",
    ),
    ResolutionRule("sigmas", "from {value} standard deviations of its noise up"),
)


@dataclass(frozen=True)
class Resolution:
    """When a child is named: at a false discovery rate, or from a number of standard deviations up."""

    fdr: Fraction | None = None
    """False discovery rate: expected share of truly empty children among those named at a level of one release."""
    sigmas: Fraction | None = None
    """Threshold of a measurement, in standard deviations of its noise."""

    def __post_init__(self) -> None:
        if (self.fdr is None) == (self.sigmas is None):
            raise PlanError(
                "resolve has fdr and sigmas, or neither: give one of them, { fdr = 0.05 } or { sigmas = 3 }"
            )
        for name in ("fdr", "sigmas"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, _positive(name, given))
        if self.fdr is not None and self.fdr >= 1:
            raise PlanError(f"resolve: fdr is {float(self.fdr):g}: give a share between 0 and 1, such as 0.05")

    @staticmethod
    def of(given: object) -> Resolution | None:
        """Parse a plan's value: "full" (or None) names every child that is repaired to more than zero."""
        if given is None or given == "full":
            return None
        if isinstance(given, Resolution):
            return given
        if isinstance(given, Mapping) and given and set(given) <= {"fdr", "sigmas"}:
            return Resolution(**given)
        raise PlanError(f'resolve is {given!r}: write "full", {{ fdr = 0.05 }} or {{ sigmas = 3 }}')

    @property
    def _stated(self) -> tuple[ResolutionRule, Fraction]:
        return next((RULES[name], value) for name in RULES if (value := getattr(self, name)) is not None)

    @property
    def words(self) -> str:
        """Describe the threshold."""
        rule, value = self._stated
        return rule.say(rule.words, value)

    @property
    def cautions(self) -> list[str]:
        """Return the cautions about the named children."""
        rule, value = self._stated
        return [rule.say(rule.caution, value)] if rule.caution else []

    @property
    def stated(self) -> dict[str, Fraction]:
        """The value in a plan file."""
        rule, value = self._stated
        return {rule.name: value}

    def describe(self) -> dict[str, str]:
        """Return the rule as plain values; plan digests contain `edition`, the version of the rule."""
        return {name: str(value) for name, value in self.stated.items()} | {"edition": "2"}


def _positive(name: str, given: object) -> Fraction:
    try:
        return positive(given, f"resolve: {name}")
    except LossError as problem:  # it is about the plan, and no loss
        raise PlanError(str(problem)) from problem


def fixed_threshold(law: Law, sigmas: Fraction) -> int:
    """Return the least measurement that is at least `sigmas` standard deviations above zero."""
    return int(np.ceil(float(sigmas) * law.standard_deviation))


class HighMeasurements:
    """A histogram of high measurements, for the threshold of many tests at once.

    Benjamini and Hochberg 1995: with m tests, name all p-values up to the largest p that is at most fdr·k/m, k being
    how many are at most p. A p-value falls with the measurement, so this is the least t with m·P(N ≥ t) ≤ fdr·#{x ≥ t}.
    Of the x only those are counted that the repair leaves above zero, since no others are named; m are all tests. Only
    thresholds from zero up are tried and, for very wide noise, only multiples of a step: that can only name fewer.
    """

    def __init__(self, law: Law, tests: int, fdr: Fraction) -> None:
        self._given = law, tests, fdr
        rate = fdr / max(tests, 1)
        # Far enough for a measurement that alone is named, however rare it has to be.
        self._bits = max(_TAIL_BITS, (rate.denominator // rate.numerator).bit_length())
        self._width, self._chance = _p_values(law, self._bits)
        self._rate = float(rate)
        self._count = np.zeros(len(self._chance), np.int64)

    def empty(self) -> HighMeasurements:
        """Return one for the same tests, with nothing counted."""
        return HighMeasurements(*self._given)

    def add(self, measurements: Ints, law: Law | None = None) -> None:
        """Count measurements; one with another law counts as the highest threshold that is no less likely."""
        measurements = measurements[measurements >= 0]
        if law is None or law == self._given[0]:
            step = np.minimum(measurements // self._width, len(self._count) - 1)
        else:
            width, chance = self._p_values(law)
            p = chance[np.minimum(measurements // width, len(chance) - 1)]
            step = np.searchsorted(-self._chance, -p, side="right") - 1
            step = step[step >= 0]
        self._count += np.bincount(step, minlength=len(self._count))

    def join(self, other: HighMeasurements) -> None:
        """Add the counts of another histogram for the same tests."""
        self._count += other._count

    def threshold(self, law: Law | None = None) -> int:
        """Return the least named measurement; for another noise law, one that is no more likely."""
        reaching = np.cumsum(self._count[::-1])[::-1]
        # Where nothing reaches a threshold, that which one measurement alone would have to reach.
        named = int(np.argmax(self._chance <= self._rate * np.maximum(reaching, 1)))
        if law is None or law == self._given[0]:
            return named * self._width
        width, chance = self._p_values(law)
        return int(np.argmax(chance <= self._chance[named])) * width

    def _p_values(self, law: Law) -> tuple[int, Floats]:
        """Return the thresholds of another law; every measurement that reaches the last is so rare that it is named."""
        width, chance = _p_values(law, self._bits)
        return width, np.append(chance[:-1], 0.0)


@lru_cache(maxsize=64)
def _p_values(law: Law, bits: int) -> tuple[int, Floats]:
    """Return the distance between thresholds, and P(N ≥ t) at each: from t = 0 until it is below 2⁻ᵇⁱᵗˢ."""
    last = law.margin(Fraction(1, 2**bits)) + 1
    width = -(-last // _MOST_THRESHOLDS)
    thresholds = range(0, last + width, width)
    return width, np.array([nearest_float(partial(law.enclose_tail, t - 1)) for t in thresholds])


# How many nodes of a level are tested: those that are measured there, and those that were measured further up.


def number_of_tests(levels: Sequence[Level], index: int, nodes: NDArray[np.integer]) -> Ints:
    """Return the number of nodes of each level, the root included, that measurements at level `index` test.

    These are all children of the given nodes of the level above (columns) that have siblings. The number depends on the
    nodes and the public tree only, so a folder gives the same number as a descent. `levels` are all of the spine.
    """
    if any(isinstance(level, NarrowLevel) for level in levels[index - 1 :]):
        return _one_by_one(levels, index, nodes)
    level = levels[index - 1]
    tests = np.zeros(len(levels) + 1, np.int64)
    nodes = nodes[:, level.fanout(nodes) > 1]
    edges: dict[int, Ints] = {}  # by attribute, where what is below each of its nodes starts, the last one's stop added
    single = np.ones(nodes.shape[1], dtype=bool)  # whether a node has one descendant of the other attributes
    # By attribute that the level refines, how many of its children have one descendant of that.
    children = {part.attribute: (part, part.fanout(nodes)) for part in level.parts}
    for later in levels[index - 1 :]:
        for below in later.parts if later.index > index else ():
            edges[below.attribute] = below.first[edges.get(below.attribute, np.arange(len(below.first)))]
            alone, own = np.diff(edges[below.attribute]) == 1, nodes[below.attribute]
            if below.attribute in children:
                part, before = children[below.attribute][0], np.concatenate([[0], np.cumsum(alone)])
                children[below.attribute] = part, before[part.first[own + 1]] - before[part.first[own]]
            else:
                single &= alone[own]
        tests[later.index] = np.prod([number[single] for _, number in children.values()], axis=0).sum()
        if tests[later.index] == 0:  # nor any further down
            break
    return tests


def _one_by_one(levels: Sequence[Level], index: int, nodes: NDArray[np.integer]) -> Ints:
    """Return the same if some children are impossible, by listing the measured nodes."""
    level, tests = levels[index - 1], np.zeros(len(levels) + 1, np.int64)
    fanout = level.fanout(nodes)
    children = level.children(nodes, np.where(fanout > 1, fanout, 0))
    tests[index] = len(children[0])
    for later in levels[index:]:
        children = children[:, later.fanout(children) == 1]
        later.go_down(children, np.zeros(len(children[0]), np.int64))
        tests[later.index] = len(children[0])
    return tests


# Preferences: one word that decides the repair.

Prefer = Literal["fewer-invented", "fewer-lost", "lower-error"]


@dataclass(frozen=True)
class Preference:
    """A preference, with the repair and order that it decides."""

    name: Prefer
    words: str
    repair: Repair
    order: Order


PREFERENCES: Choices[Preference] = Choices(
    "preference",
    Preference("fewer-invented", "few counts are invented, and more small ones lost", "chebyshev", "ascending"),
    Preference("fewer-lost", "few counts are lost, and more small ones invented", "chebyshev", "descending"),
    Preference(
        "lower-error", "counts are closer to the truth on average, and more are invented", "least-squares", "ascending"
    ),
)
