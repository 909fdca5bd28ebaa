"""Intervals from several measured tables at once, combined by least squares.

Let a cell c of a table be a sum of cells of some measured tables, of n_t cells of table t, whose noise has variance
σ_t². Least squares over all tables estimate it without bias, and with the least variance of all linear estimates. The
variance of another one bounds it (`component_variances`); in a balanced grid they are the same.

Under Gaussian noise the error is a weighted sum of independent discrete Gaussians, with weights of at most 1. If all
have a standard deviation of at least 2 the quantile is that of a normal distribution with the same variance, and half
a count for what is discrete. Otherwise it is that of the sub-Gaussian bound: P(|X| > t) ≤ 2 exp(−t²/2s²).
Under any other law, what the best single table says has the exact quantile of a sum of n draws.

Of a cell that no measured table tells, only an upper end is known: it is at most any cell that it belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from treetop.counts.counts import pack
from treetop.domain.marginal import Margin, cells_of
from treetop.domain.spine import Spine
from treetop.fit import CombinedTables, Depths, Grid, NoisyTable, combine, component_variances, joint_fit
from treetop.fit.noisy_tables import within
from treetop.noise import DiscreteGaussian, Law
from treetop.noise.sum_noise import sum_margins
from treetop.release.intervals.boxes import Boxes
from treetop.release.intervals.nodes import LevelIntervals, risk_of
from treetop.release.measurements import Measurements
from treetop.release.tree import ReleasedTree

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

_NEARLY_NORMAL = 2.0
"""Least standard deviation of noise whose weighted sums are taken as normal, to within half a count."""


@dataclass(frozen=True, eq=False)
class TableEvidence:
    """All measured tables of a joint fit; everything here is noisy, hence public."""

    spine: Spine
    margins: Sequence[Margin]
    laws: Sequence[Law]
    measured: Sequence[Ints] = field(repr=False)
    """By table the measurement of every cell, in the order of the hierarchies."""
    total: int
    total_law: Law | None
    """The noise of the total; None if it is public."""
    _deviations: dict[Depths, Reals] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def tables(self) -> list[NoisyTable]:
        """The total and the tables, as arrays with one axis per attribute."""
        root = np.full((1,) * len(self.spine.trees), float(self.total))
        found = [NoisyTable(self.grid.root, root, _variance(self.total_law))]
        for margin, law, value in zip(self.margins, self.laws, self.measured, strict=True):
            depths = tuple(margin.depths)
            found.append(NoisyTable(depths, value.reshape(self.grid.sizes(depths)), _variance(law)))
        return found

    @cached_property
    def grid(self) -> Grid:
        """The public cells of all tables."""
        return Grid(self.spine.trees)

    @cached_property
    def combined(self) -> CombinedTables:
        """The best linear unbiased estimates."""
        return combine(self.grid, self.tables)

    def deviations(self, depths: Depths) -> Reals:
        """Return the standard deviation of each estimate of a table, or an upper bound of it."""
        if depths not in self._deviations:
            self._deviations[depths] = np.sqrt(component_variances(self.combined, depths)).ravel()
        return self._deviations[depths]

    def bounds(self, depths: Depths, cells: Ints, risk: Fraction) -> tuple[Ints, Ints]:
        """Return the bounds of the true counts of some cells of a table, each at a risk."""
        if not any(within(depths, table.depths) for table in self.tables):
            return np.zeros(len(cells), np.int64), self._caps(depths, cells, risk)
        if not self._gaussian:
            return self._by_one_table(depths, cells, risk)
        estimate = self.combined.value(depths).ravel()[cells]
        width = self._quantile(risk) * self.deviations(depths)[cells]
        width = np.where(width > 0, width + (0.5 if self._normal else 0.0), 0.0)
        upper = np.maximum(np.floor(estimate + width), 0).astype(np.int64)
        return np.clip(np.ceil(estimate - width).astype(np.int64), 0, upper), upper

    def _caps(self, depths: Depths, cells: Ints, risk: Fraction) -> Ints:
        """Return the least upper end of the measured cells that each cell belongs to; they share the risk."""
        above = {tuple(map(min, depths, table.depths)) for table in self.tables}
        above = {own for own in above if not any(own != other and within(own, other) for other in above)}
        codes = np.unravel_index(cells, self.grid.sizes(depths))
        upper = np.full(len(cells), np.iinfo(np.int64).max)
        for own in sorted(above):
            place = [
                self.grid.ancestors(axis, depth, depths[axis])[code]
                for axis, (depth, code) in enumerate(zip(own, codes, strict=True))
            ]
            cell = np.ravel_multi_index(place, self.grid.sizes(own))
            # One end alone: the risk of both.
            upper = np.minimum(upper, self.bounds(own, cell, 2 * risk / len(above))[1])
        return upper

    def _by_one_table(self, depths: Depths, cells: Ints, risk: Fraction) -> tuple[Ints, Ints]:
        """Return the bounds by the table that tells the cells with the least noise."""
        telling = [(table, law) for table, law in self._noisy if within(depths, table.depths)]
        if self.total_law is None and not any(depths):
            return np.full(len(cells), self.total), np.full(len(cells), self.total)
        table, law = min(telling, key=lambda one: one[0].variance * self.grid.cells(one[0].depths))
        value = self.grid.sum_to(table.value, table.depths, depths).ravel()[cells].astype(np.int64)
        number = self._summands(table.depths, depths).ravel()[cells].astype(np.int64)
        width = sum_margins(law, number, risk / 2)
        upper = np.maximum(value + width, 0)
        return np.clip(value - width, 0, upper), upper

    @cached_property
    def _noisy(self) -> list[tuple[NoisyTable, Law]]:
        laws = [self.total_law, *self.laws]
        return [(table, law) for table, law in zip(self.tables, laws, strict=True) if law is not None]

    @cached_property
    def _gaussian(self) -> bool:
        return all(isinstance(law, DiscreteGaussian) for _, law in self._noisy)

    @cached_property
    def _normal(self) -> bool:
        return all(law.standard_deviation >= _NEARLY_NORMAL for _, law in self._noisy)

    def _quantile(self, risk: Fraction) -> float:
        if self._normal:
            return NormalDist().inv_cdf(1 - float(risk) / 2)
        return math.sqrt(2 * math.log(2 / float(risk)))

    def _summands(self, fine: Depths, coarse: Depths) -> Reals:
        """Return how many cells of a finer table each cell of a coarser one is the sum of."""
        number = np.ones((1,) * len(fine))
        for axis, (own, above) in enumerate(zip(fine, coarse, strict=True)):
            size = np.diff(self.grid.starts(axis, above, own)).astype(np.float64)
            number = number * size.reshape([-1 if other == axis else 1 for other in range(len(fine))])
        return number


def fitted_leaves(evidence: TableEvidence) -> tuple[NDArray[np.int32], Ints]:
    """Return the leaves above zero by the joint fit, in spine order, and their counts."""
    found = joint_fit(evidence.grid, evidence.tables)
    nodes = np.array(np.nonzero(found.counts))
    for attribute, depth in enumerate(found.trunk):  # a level of only children is not told apart, and need not be
        nodes[attribute] = evidence.grid.starts(attribute, depth, len(evidence.spine.trees[attribute].levels))[:-1][
            nodes[attribute]
        ]
    order = np.lexsort(pack(evidence.spine, nodes.astype(np.int32))[::-1])
    return np.ascontiguousarray(nodes[:, order], np.int32), found.counts[found.counts > 0][order]


def _variance(law: Law | None) -> float:
    return 0.0 if law is None else law.standard_deviation**2


@dataclass(frozen=True, eq=False)
class MeasuredTables:
    """The measured tables of a joint fit beside the released counts."""

    tree: ReleasedTree
    evidence: TableEvidence
    measurements: Measurements
    """Of the total alone."""

    def intervals(self, confidence: float) -> tuple[LevelIntervals, ...]:
        """Return the noise intervals of the released nodes, from the total down."""
        found = []
        for index in range(len(self.tree.spine.levels) + 1):
            depths, nodes = self.tree.spine.depths(index), self.tree.at(index).nodes
            cells = cells_of(self.tree.spine.trees, depths, depths, nodes)
            lower, upper = self.evidence.bounds(depths, cells, risk_of(confidence))
            found.append(LevelIntervals(lower, upper, upper))
        return tuple(found)

    def of_boxes(self, boxes: Boxes, confidence: float) -> tuple[Ints, Ints]:
        """Return the bounds of the true counts of boxes."""
        cells = cells_of(boxes.spine.trees, boxes.depth, boxes.spine.finest, boxes.leaf)
        return self.evidence.bounds(boxes.depth, cells, risk_of(confidence))
