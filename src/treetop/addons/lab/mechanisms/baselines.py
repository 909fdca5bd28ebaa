"""Baselines: noise on leaves alone, least squares over levels, stability histograms, and what offices do today."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from flint import arb

from treetop._util.dtypes import Floats, Ints
from treetop._util.numbers import plain
from treetop.addons.lab.mechanisms.compared import (
    MOST_LEAVES,
    ROOT,
    ComparedMechanism,
    Estimate,
    LevelEstimate,
    NotServed,
    PublicTree,
    Words,
    bound_key,
    check_parts,
    check_width,
    draw,
    measure_leaves,
    measure_levels,
    promise,
    refuse_large,
    sums_of_clipped,
    sums_of_noise,
    sums_of_survivors,
)
from treetop.addons.lab.mechanisms.inftda import Planned
from treetop.counts.counts import Counts, Digit, layout
from treetop.domain.spine import Spine
from treetop.errors import PlanError
from treetop.noise import DiscreteLaplace, Key, Keystream, Law
from treetop.noise.gate import bind
from treetop.noise.law import at_most, ball, precision, smallest
from treetop.noise.sampler import sampler
from treetop.plan.workload import Measured, Part, PassThrough
from treetop.privacy import TOTAL, Loss, Unit
from treetop.privacy.accountant import cost, level_noise
from treetop.release.errors import starts
from treetop.repair.least_squares import LEAST_VARIANCE, MeasuredLevel, least_squares


@dataclass(frozen=True, eq=False)
class VanillaGauss(ComparedMechanism):
    """Discrete Gaussian noise (discrete Laplace for a pure loss) on every public leaf; the leaves pay the whole loss.

    Canonne, Kamath and Steinke 2020, Theorem 14. Coarser counts are sums of noisy leaves; negative ones are kept, so
    that the sums are unbiased.
    """

    name: ClassVar[str] = "gauss"
    about: ClassVar[str] = "Noise on every public leaf; unbiased, negative counts are kept."

    clamp: bool = False
    limit: int = MOST_LEAVES

    def __post_init__(self) -> None:
        check_parts(self.spine, self.unit, self.loss)
        refuse_large(self.spine, self.limit, self.name)
        law = self.levels[-1].law
        check_width(law, self.spine.leaves)
        sampler(law)

    @cached_property
    def levels(self) -> tuple[Part, ...]:
        """The total and every level of the spine; only the leaves are measured."""
        return only_leaves(self.spine, self.unit, self.loss)

    @cached_property
    def tree(self) -> PublicTree:
        """All public leaves."""
        return PublicTree.of(self.spine)

    def bounds(self, risk: Fraction, records: int) -> tuple[int, ...]:
        """Return bounds that errors exceed with that risk at most, for the total and every level, each by itself."""
        bound = sums_of_clipped if self.clamp else sums_of_noise
        return bound(self.spine, self.levels[-1].law, risk)

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Measure every leaf once."""
        law = self.levels[-1].law
        # The clamped counts are the same measurements seen through another function: the key is the same.
        bound = bound_key(key, counts, "leaves", self.spine, law.describe())
        value = measure_leaves(self.tree, counts, law, bound, threads)
        if self.clamp:
            np.maximum(value, 0, out=value)
        return Estimate.from_leaves(self.spine, self.tree.keys, value)


@dataclass(frozen=True, eq=False)
class BottomUp(VanillaGauss):
    """The same measurements with negative counts set to zero, summed upwards: consistent, but biased upwards."""

    name: ClassVar[str] = "bottom-up"
    about: ClassVar[str] = "Noise on every public leaf, negative counts set to zero; coarser counts are sums."

    clamp: bool = True


def only_leaves(spine: Spine, unit: Unit, loss: Loss) -> tuple[Part, ...]:
    """Return the levels of a mechanism that measures the leaves with the whole loss, and no level above."""
    *above, leaves = unmeasured(spine)
    law = level_noise(unit, loss, leaves.name, 1)
    return *above, replace(leaves, share=Fraction(1), how=Measured(law), cost=cost(unit, leaves.name, law))


def unmeasured(spine: Spine) -> tuple[Part, ...]:
    """Return the total and every level of a spine without measurements."""
    nodes = [(TOTAL, 1), *((level.name, level.nodes) for level in spine.levels)]
    return tuple(Part(i, name, size, Fraction(0), PassThrough()) for i, (name, size) in enumerate(nodes))


# The hierarchical mechanism: measure every node of every level, then make the levels agree by least squares.


@dataclass(frozen=True, eq=False)
class PerLevel(Planned):
    """Noise on every public node of every level, published as measured: unbiased, but the levels do not add up."""

    name: ClassVar[str] = "per-level"
    about: ClassVar[str] = "Noise on every public node of every level, published as it is; levels do not add up."

    limit: int = MOST_LEAVES

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_large(self.spine, self.limit, self.name)
        for level in self.levels:
            if level.is_measured:
                check_width(level.law, level.nodes)

    @cached_property
    def tree(self) -> PublicTree:
        """All public nodes."""
        return PublicTree.of(self.spine)

    def measure(self, counts: Counts, key: Key, threads: int = 1) -> list[Ints | None]:
        """Measure every node once; the total comes first, and is exact if it is public."""
        bound = bind(key, "levels", bytes.fromhex(self.plan.digest), counts.digest)
        return measure_levels(self.tree, counts, self.levels, bound, threads)

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Measure every node once. A level that divides nothing has the values of the level above."""
        values: list[Ints] = []
        for measured in self.measure(counts, key, threads):
            values.append(values[-1] if measured is None else measured)
        levels = tuple(self._level(index, value) for index, value in enumerate(values))
        return Estimate.from_leaves(self.spine, self.tree.keys, values[-1], levels)

    def _level(self, index: int, value: Ints) -> LevelEstimate:
        eldest = np.arange(len(value))
        for first in self.tree.first[index:]:
            eldest = first[eldest]
        there = value != 0
        # The path of a node, all finer ranks zero, is that of its first leaf.
        return LevelEstimate(tuple(key[eldest[there]] for key in self.tree.keys), value[there])


@dataclass(frozen=True, eq=False)
class Hay(PerLevel):
    """Noise on every public node of every level, made consistent by weighted least squares."""

    name: ClassVar[str] = "hay"
    about: ClassVar[str] = "Noise on every public node of every level, made to add up by least squares; real numbers."

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Measure every node once, then pass over the tree upwards and downwards."""
        measured = self.measure(counts, key, threads)
        value = fitted_leaves(self.tree.first, measured, [_variance(level) for level in self.levels])
        return Estimate.from_leaves(self.spine, self.tree.keys, value)


def _variance(level: Part) -> float:
    """The variance of a level's measurements; only the total can be known exactly."""
    if not level.is_measured:
        return 0.0 if level.index == 0 else np.inf
    return max(level.law.standard_deviation**2, LEAST_VARIANCE)


def fitted_leaves(first: Sequence[Ints], measured: Sequence[Ints | None], variances: Sequence[float]) -> Floats:
    """Return the leaves of the consistent tree that fits the measurements best, each weighted by 1/variance.

    The children of node i of level l are `first[l][i] : first[l][i + 1]`. A level of variance zero (the total) is kept
    as it is; one of infinite variance is not measured, which is served if every node there is an only child.
    """
    parents = [np.zeros(1, np.int64), *(np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)) for bounds in first)]
    levels = [
        MeasuredLevel(
            parent,
            np.zeros(len(parent)) if own is None else own.astype(np.float64),
            np.full(len(parent), np.inf if own is None else variance),
        )
        for parent, own, variance in zip(parents, measured, variances, strict=True)
    ]
    return least_squares(levels)[-1].value


# The stability histogram: noise on the leaves that are there, and only what exceeds a threshold is published.

Threshold: TypeAlias = Literal["tight", "paper"]

_GUARD_BITS = 64
_MOST_PRESENT = 2**32  # leaves that are there have to be in memory


@dataclass(frozen=True, eq=False)
class StabilityHistogram(ComparedMechanism):
    """Discrete Laplace noise on the leaves above zero; those that reach the threshold are published.

    Bun, Nissim and Stemmer 2019. It invents no leaf, and costs nothing for the empty leaves.
    """

    name: ClassVar[str] = "sh"
    about: ClassVar[str] = "Noise on the leaves that are there; those below a threshold are dropped."

    threshold: Threshold = "tight"
    """The smallest that keeps delta, or the paper's 1 + Δ₁·ln(2/δ)/ε, rounded up."""
    least: int = field(init=False)

    def __post_init__(self) -> None:
        check_parts(self.spine, self.unit, self.loss)
        _, delta = _epsilon_and_delta(self.loss)
        if self.threshold not in ("tight", "paper"):
            raise PlanError(f"threshold is {self.threshold!r}: choose tight or paper")
        law = self.levels[-1].law
        assert isinstance(law, DiscreteLaplace)
        check_width(law, min(self.spine.leaves, _MOST_PRESENT))
        sampler(law)
        if self.threshold == "paper":
            least = _paper_threshold(self.unit, law, delta)
        else:
            cap = self.unit.caps.get(self.levels[-1].name, self.unit.contributions)
            least = tight_threshold(law, delta, self.unit.contributions, cap)
        object.__setattr__(self, "least", least)

    @cached_property
    def levels(self) -> tuple[Part, ...]:
        """The total and every level of the spine; only the leaves are measured. Costs are epsilon, beside delta."""
        return only_leaves(self.spine, self.unit, Loss(epsilon=_epsilon_and_delta(self.loss)[0]))

    @property
    def definition(self) -> str:
        """The privacy that a run gives, in one sentence."""
        epsilon, delta = _epsilon_and_delta(self.loss)
        return promise(
            self.unit,
            f"Approximate differential privacy with epsilon {plain(epsilon)} and delta {plain(delta)}, kept by Laplace "
            f"noise and by publishing only noisy counts of {self.least:,} or more.",
        )

    def bounds(self, risk: Fraction, records: int) -> tuple[int, ...]:
        """Return bounds that errors exceed with that risk at most, by level, for so many records."""
        return sums_of_survivors(self.spine, self.levels[-1].law, self.least, records, risk)

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Measure the leaves above zero once."""
        law = self.levels[-1].law
        bound = bound_key(key, counts, self.name, self.spine, {**law.describe(), "least": self.least})
        return Estimate(self.spine, *measure_present(counts, law, self.least, bound, threads))


def measure_present(counts: Counts, law: Law, least: int, key: Key, threads: int) -> tuple[Words, Ints]:
    """Return the paths of the leaves above zero that reach the threshold with noise, and their noisy counts.

    One unit moves the leaf counts by at most Δ₁ in all, for which the law was made, and can make leaves appear or
    vanish, which delta pays for by the threshold. Nothing about the others leaves this function, not even their number.
    """
    x = draw(law, key, len(counts), threads)
    x += np.diff(counts.before)
    survives = x >= least
    return tuple(word[survives] for word in counts.keys), x[survives]


def tight_threshold(law: DiscreteLaplace, delta: Fraction, contributions: int = 1, cap: int | None = None) -> int:
    """The smallest threshold that keeps delta, by the theorem above; certain, from the law's exact tail.

    >>> tight_threshold(DiscreteLaplace(Fraction(2)), Fraction(1, 10**8))
    37
    """
    ways = list(_worst_cells(contributions, contributions if cap is None else cap))

    def keeps_delta(threshold: int) -> bool:
        return all(at_most(partial(_survival, law, threshold, cells), delta) for cells in ways)

    return smallest(keeps_delta)


def _worst_cells(contributions: int, cap: int) -> Iterator[dict[int, int]]:
    """Give the ways to lay m records into leaves that can maximise the chance of survival: {records: leaves}.

    For a given number of leaves, Σ −ln(1 − p(cᵢ)) is a sum of convex functions: p(c) is convex up to the threshold, and
    a threshold that keeps delta below a half is above the cap, since p(t) > 1/2. So all leaves but one have as few
    records, 1, or as many, the cap, as they can. (Below the cap, one full leaf is enough to refuse a threshold.)
    """
    for leaves in range(-(-contributions // cap), contributions + 1):
        spare = contributions - leaves
        full, rest = divmod(spare, cap - 1) if cap > 1 else (0, 0)
        cells = {cap: full} if full else {}
        if rest:
            cells[1 + rest] = cells.get(1 + rest, 0) + 1
        if ones := leaves - full - (1 if rest else 0):
            cells[1] = cells.get(1, 0) + ones
        yield cells


def _survival(law: Law, threshold: int, cells: dict[int, int], bits: int) -> arb:
    """Enclose the chance that any of these leaves survives."""
    tails = {records: law.enclose_tail(threshold - records - 1, bits + _GUARD_BITS) for records in cells}
    with precision(bits + _GUARD_BITS):
        if list(cells.values()) == [1]:
            return next(iter(tails.values()))
        logs = sum(((-tails[records]).log1p() * leaves for records, leaves in cells.items()), arb(0))
        return -logs.expm1()


def _paper_threshold(unit: Unit, law: DiscreteLaplace, delta: Fraction) -> int:
    """The least integer from 1 + Δ₁·ln(2/δ)/ε on (InfTDA, Theorem 7, with Δ₁ = 2)."""
    if unit.contributions > 1:
        raise NotServed(
            f"the paper's threshold is for units of one record, and one {unit.entity} has up to {unit.contributions}: "
            'take threshold="tight", which is proved for any number'
        )

    def enclose(bits: int) -> arb:
        with precision(bits + _GUARD_BITS):
            return 1 + ball(law.scale) * ball(2 / delta).log()

    return smallest(lambda t: at_most(enclose, Fraction(t)))


def _epsilon_and_delta(loss: Loss) -> tuple[Fraction, Fraction]:
    if loss.epsilon is None or loss.delta is None:
        missing = "has no delta" if loss.rho is None else "is stated in rho"
        raise NotServed(
            f"the stability histogram needs epsilon and delta, and the loss {missing}: it hides which leaves are there "
            "up to a chance of delta, so give Loss(epsilon=…, delta=…)"
        )
    if loss.delta >= Fraction(1, 2):
        raise NotServed(f"delta is {plain(loss.delta)}: the stability histogram needs one below a half, such as 1e-8")
    return loss.epsilon, loss.delta


# What offices do today, for comparison: small counts are left out, or all counts are rounded. Neither protects anyone.


@dataclass(frozen=True, eq=False)
class Practice(ComparedMechanism):
    """A way to publish that gives no guarantee; it does not use the loss."""

    definition: ClassVar[str] = "None: what is published depends on each record, and no epsilon bounds how much."

    def __post_init__(self) -> None:
        check_parts(self.spine, self.unit, self.loss)

    @property
    def levels(self) -> tuple[Part, ...]:
        """The total and every level of the spine, none of which has noise."""
        return unmeasured(self.spine)

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Publish every level by itself."""
        levels = []
        for index, digit in enumerate((ROOT, *layout(self.spine))):
            keys, value = _summed(counts, digit)
            published = self._published(value, bound_key(key, counts, self.name, self.spine, {"level": index}))
            there = published != 0
            levels.append(LevelEstimate(tuple(word[there] for word in keys), published[there]))
        return Estimate(self.spine, levels[-1].keys, levels[-1].value, tuple(levels))

    def _published(self, value: Ints, key: Key) -> Ints:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Suppression(Practice):
    """Counts below a threshold are left out, and the others published unchanged."""

    name: ClassVar[str] = "suppression"
    about: ClassVar[str] = "True counts of every level, without those below 5. No guarantee."

    least: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least < 1:
            raise PlanError(f"least is {self.least}: give 1 or more")

    def _published(self, value: Ints, key: Key) -> Ints:
        return np.where(value < self.least, 0, value)


@dataclass(frozen=True, eq=False)
class Rounding(Practice):
    """Every count is rounded to a multiple of a base, up or down at random so that the mean is right."""

    name: ClassVar[str] = "rounding"
    about: ClassVar[str] = "Counts of every level, each rounded at random to a multiple of 5. No guarantee."

    base: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.base < 2:
            raise PlanError(f"base is {self.base}: give 2 or more")

    def _published(self, value: Ints, key: Key) -> Ints:
        words = np.empty(len(value), np.uint64)
        Keystream(key.derive("rounding")).fill(words, 0)
        over = value % self.base
        up = (words % np.uint64(self.base)).astype(np.int64) < over
        rounded: Ints = value - over + np.where(up, self.base, 0)
        return rounded


def _summed(counts: Counts, digit: Digit) -> tuple[Words, Ints]:
    """Return the nodes of a level with their true counts: the path of each has zeros for all finer ranks."""
    first = np.flatnonzero(starts(counts.keys, digit))
    value = np.diff(counts.before)
    keys = []
    for number, word in enumerate(counts.keys):
        finer = 0 if number < digit.word else digit.shift if number == digit.word else 64
        mask = 0 if finer >= 64 else (2**64 - 1) >> finer << finer
        keys.append(word[first] & np.uint64(mask))
    return tuple(keys), np.add.reduceat(value, first) if len(first) else value[:0]
