"""The intervals of single nodes, released or not, from the measurements on the way to them.

A measurement m of a node differs from its true count by noise of a known law, so the true count lies within m ± k with
probability 1 − α, k the law's exact quantile. That holds whether or not the node was likely to be measured: the noise
of the levels above, which is independent, decides which nodes of a level are measured.

A node is never larger than one that it belongs to, so the interval ends at the upper bounds of all measured ancestors
as well. Each of those may fail, too: nine tenths of the risk α belong to the node's own measurement, and one tenth is
shared by the upper bounds above it. By the union bound an interval then misses with a probability of at most α.

A child that was not retained has an upper bound, too. Of all those of one node the highest is kept, and serves for
everything below the node that is not released. A node may go missing at any level on the way to it, so that these
bounds share one risk over the levels: the same that the upper bounds of ancestors share, and by the same events. An
only child that was not retained, because its parent's measurement did not show it, is bounded by its parent alone.

If a release names only nodes whose measurements show that they are there, it chose them because they measured high, and
an interval for a node chosen in advance holds for them less often. Benjamini and Yekutieli (2005) widen intervals: if R
of the m tested nodes of a level are named, each has the interval of its own measurement at risk α·R/m. Then an expected
share of at most α of the level's named nodes is outside its interval (the false coverage rate). The risk is never more
than α, so the interval of a node chosen in advance holds as well. Upper bounds of the nodes above do not cut it: one
that fails would fail for all that is named below it. An only child has the measurement of its parent, but is one of the
tests of its own level (`treetop.plan.resolution`). The number of tests follows from the public tree and the release.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treetop.errors import QueryError
from treetop.measure.measure import NOTHING, Evidence
from treetop.noise import Law
from treetop.noise.sum_noise import sum_margin
from treetop.plan.resolution import number_of_tests
from treetop.release.tree import ReleasedTree


def named_risks(tree: ReleasedTree, risk: Fraction) -> list[Fraction]:
    """Return the risk of a named node's interval, at the total and at every level; all of it if all are named."""
    levels = tree.spine.levels
    tests = sum(
        (number_of_tests(levels, level.index, tree.at(level.index - 1).nodes) for level in levels),
        start=np.zeros(len(levels) + 1, np.int64),
    )
    named = [tree.size(index) for index in range(len(levels) + 1)]
    return [
        risk * Fraction(chosen, number) if 0 < chosen < number else risk
        for chosen, number in zip(named, tests.tolist(), strict=True)
    ]


def named_margins(laws: Sequence[Law | None], level: Ints, risk: Fraction) -> Ints:
    """Return how far measurements of some levels may be off, at a risk."""
    margins = np.zeros(len(level), np.int64)
    for index in np.unique(level).tolist():
        law = laws[index]
        margins[level == index] = 0 if law is None else law.margin(risk)
    return margins


Ints = NDArray[np.int64]

OWN = Fraction(9, 10)
"""The part of the risk that a node's own measurement has; the rest is that of the bounds above it."""


class Interval(NamedTuple):
    """The bounds of a true count, as far as the privacy noise is concerned."""

    lower: int
    upper: int


@dataclass(frozen=True, eq=False)
class LevelIntervals:
    """The intervals of the released nodes of one level, in spine order."""

    lower: Ints = field(repr=False)
    upper: Ints = field(repr=False)
    absent: Ints = field(repr=False)
    """Upper bound of every node below that has no released ancestor further down."""

    def __len__(self) -> int:
        return len(self.lower)

    @staticmethod
    def join(parts: Sequence[LevelIntervals]) -> LevelIntervals:
        """Join the intervals of consecutive nodes of one level."""
        lower, upper, absent = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("lower", "upper", "absent")
        )
        return LevelIntervals(lower, upper, absent)


@dataclass(frozen=True)
class NoiseReach:
    """How far measurements of one law are trusted."""

    own: int
    """Around a node's own measurement, to both sides."""
    above: int
    """Upwards from that of an ancestor, retained or not."""

    @staticmethod
    def of(law: Law | None, risk: Fraction, measured_levels: int) -> NoiseReach:
        """Divide a risk: most to the measurement itself, the rest evenly to those on the way to it."""
        if law is None:
            return NoiseReach(0, 0)
        above = (1 - OWN) * risk / max(measured_levels, 1)
        return NoiseReach(law.margin(OWN * risk), sum_margin(law, 1, above))


def risk_of(confidence: float) -> Fraction:
    """Return how often an interval may miss, exactly as the confidence was written."""
    if not 0 < confidence < 1:
        raise QueryError(f"confidence is {confidence}: give a probability between 0 and 1")
    return 1 - Fraction(str(confidence))


def node_intervals(
    tree: ReleasedTree, evidence: Evidence, confidence: float, selective: bool = False, down_to: int | None = None
) -> tuple[LevelIntervals, ...]:
    """Return the intervals of the released root and of every level below it, or of those down to one of them.

    A release of nothing has no nodes, and no intervals. If `selective`, they account for how the nodes were chosen.
    """
    risk = risk_of(confidence)
    levels = sum(law is not None for law in evidence.laws)
    margins = [NoiseReach.of(law, risk, levels) for law in evidence.laws]
    total = tree.total
    measured = np.full(1 if total > 0 else 0, total if evidence.total is None else evidence.total, np.int64)
    # What no descendant can exceed: the least of the upper bounds on the way.
    ceiling = np.maximum(measured + margins[0].above, 0)
    lower = np.maximum(measured - margins[0].own, 0)
    upper = np.maximum(measured + margins[0].own, 0)
    found = []
    for level, seen, margin in zip(tree.spine.levels, evidence.levels, margins[1:], strict=down_to is None):
        if down_to is not None and level.index > down_to:
            none = np.zeros(len(ceiling), dtype=bool)
            found.append(LevelIntervals(lower, upper, _absent(seen.highest, margin, ceiling, none)))
            return tuple(found)
        parent = tree.parents(level.index)
        denied = np.zeros(len(ceiling), dtype=bool) if tree.left is None else tree.denied(level.index)
        found.append(LevelIntervals(lower, upper, _absent(seen.highest, margin, ceiling, denied)))
        only = seen.measured == NOTHING  # has all that its parent has
        own = np.where(only, 0, seen.measured)
        above = ceiling[parent]
        new_upper = np.clip(own + margin.own, 0, above)
        new_lower = np.clip(own - margin.own, 0, new_upper)
        ceiling = np.where(only, above, np.clip(own + margin.above, 0, above))
        lower, upper = np.where(only, lower[parent], new_lower), np.where(only, upper[parent], new_upper)
    found.append(LevelIntervals(lower, upper, np.zeros(len(lower), np.int64)))
    return tuple(_of_named(tree, evidence, risk, found)) if selective else tuple(found)


def _absent(highest: Ints, margin: NoiseReach, ceiling: Ints, denied: NDArray[np.bool_]) -> Ints:
    """Return the upper bound of every node that is not retained right below each node; 0 if there is none."""
    none = highest == NOTHING
    measured = np.where(none, 0, np.clip(np.where(none, 0, highest) + margin.above, 0, ceiling))
    return np.where(denied, ceiling, measured)


def nearest_measured(tree: ReleasedTree, evidence: Evidence) -> Iterator[tuple[Ints, Ints]]:
    """Yield the measurement of each released node, and the level that it is of, from the total down.

    An only child has that of the nearest ancestor with the same leaves.
    """
    value = np.full(len(tree.at(0)), tree.total if evidence.total is None else evidence.total, np.int64)
    level = np.zeros(len(value), np.int64)
    yield value, level
    for index, seen in enumerate(evidence.levels, start=1):
        parent, only = tree.parents(index), seen.measured == NOTHING
        value, level = np.where(only, value[parent], seen.measured), np.where(only, level[parent], index)
        yield value, level


def _of_named(
    tree: ReleasedTree, evidence: Evidence, risk: Fraction, plain: Sequence[LevelIntervals]
) -> Iterator[LevelIntervals]:
    """Yield the intervals of named nodes; other nodes keep the bounds that they had."""
    every = zip(plain, named_risks(tree, risk), nearest_measured(tree, evidence), strict=True)
    for own, share, (value, level) in every:
        margin = named_margins(evidence.laws, level, share)
        yield LevelIntervals(np.maximum(value - margin, 0), np.maximum(value + margin, 0), own.absent)
