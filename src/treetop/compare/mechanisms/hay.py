"""The hierarchical mechanism: measure every node of every level, then make the levels agree by least squares.

Hay, Rastogi, Miklau and Suciu 2010, section 4, whose two passes assume equal fan-out and equal noise. Here a node may
have any number of children and a level any variance: each estimate is weighted by the inverse of its variance. The
outcome is the best linear unbiased estimate of all measurements together; it is real, and may be negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from treetop.compare.mechanisms.dense import MOST_LEAVES, PublicTree, measure_levels, refuse_large
from treetop.compare.mechanisms.estimate import Estimate, LevelEstimate
from treetop.compare.mechanisms.mechanism import check_width
from treetop.compare.mechanisms.planned import Planned
from treetop.intake.counts import Counts
from treetop.noise import Key
from treetop.noise.gate import bind
from treetop.plan.workload import Part
from treetop.repair.least_squares import LEAST_VARIANCE, MeasuredLevel, least_squares

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PerLevel(Planned):
    """Noise on every public node of every level, published as measured: unbiased, but the levels do not add up."""

    name: ClassVar[str] = "per-level"
    about: ClassVar[str] = "Noise on every public node of every level, published as it is; levels do not add up."

    limit: int = MOST_LEAVES
    """The most public leaves that are served."""

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

    def measure(self, counts: Counts, key: Key, threads: int = 1) -> list[NDArray[np.int64] | None]:
        """Measure every node once; the total comes first, and is exact where it is public."""
        bound = bind(key, "levels", bytes.fromhex(self.plan.digest), counts.digest)
        return measure_levels(self.tree, counts, self.levels, bound, threads)

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Measure every node once. A level that divides nothing has the values of the level above."""
        values: list[NDArray[np.int64]] = []
        for measured in self.measure(counts, key, threads):
            values.append(values[-1] if measured is None else measured)
        levels = tuple(self._level(index, value) for index, value in enumerate(values))
        return Estimate.from_leaves(self.spine, self.tree.keys, values[-1], levels)

    def _level(self, index: int, value: NDArray[np.int64]) -> LevelEstimate:
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


def fitted_leaves(
    first: Sequence[NDArray[np.int64]], measured: Sequence[NDArray[np.int64] | None], variances: Sequence[float]
) -> Reals:
    """Return the leaves of the consistent tree that fits the measurements best, each weighted by 1/variance.

    The children of node i of level l are `first[l][i] : first[l][i + 1]`. A level of variance zero (the total) is kept
    as it is; one of infinite variance is not measured, which is served where every node there is an only child.
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
