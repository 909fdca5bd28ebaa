"""The joint fit: whole counts from all measured tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from treetop.fit._entropy import FittedTable, fit
from treetop.fit._rounding import round_down, whole_margin
from treetop.fit._swaps import seed_of, swap
from treetop.fit.combine import CombinedTables, combine
from treetop.fit.noisy_tables import Depths, Grid, Ints, NoisyTable, Reals, join, within


@dataclass(frozen=True, eq=False)
class JointFit:
    """Non-negative whole counts, and the real numbers that they were rounded from."""

    combined: CombinedTables
    """Least squares over the measured tables: unbiased, with exact variances."""
    fitted: FittedTable
    counts: Ints = field(repr=False)
    """The whole counts, one axis per attribute, at the depths of the trunk."""
    trunk: Depths
    """The finest measured level of each attribute."""
    swaps: int
    """How many pairs of records exchanged a value after rounding."""

    def table(self, depths: Depths) -> Ints:
        """Return the whole counts of a table."""
        return np.asarray(self.combined.grid.sum_to(self.counts, self.trunk, depths), np.int64)


def joint_fit(grid: Grid, tables: Sequence[NoisyTable], prior: Reals | None = None) -> JointFit:
    """Combine measured tables, fit non-negative counts to them, and round these to whole numbers.

    The total is made whole first, and kept; so are the measured totals of single attributes, unless there are
    structural zeros, which may contradict them. The result is a function of the measurements and of public structure.

    Args:
        grid: The attributes; the fit enumerates all cells at the finest measured level of each.
        tables: The measured tables, one of which may be an exact total.
        prior: Relative sizes of the cells; 0 for a structural zero. All equal if not given.
    """
    combined = combine(grid, tables)
    trunk = join([table.depths for table in tables])
    total = max(round(float(combined.value(grid.root).sum())), 0)
    known = [np.array([total]) for _ in trunk]
    pinned = [0] * len(trunk)
    if prior is None or prior.all():
        pinned = [max(d[axis] for d in _alone(tables, axis, grid.root)) for axis in range(len(trunk))]
    exact = [NoisyTable(grid.root, np.full((1,) * len(trunk), float(total)), 0.0)]
    for axis, depth in enumerate(pinned):
        if depth:
            depths = _of_one(grid.root, axis, depth)
            known[axis] = whole_margin(grid, axis, depth, known[axis], 0, combined.value(depths).ravel())
            exact.append(NoisyTable(depths, known[axis].reshape(grid.sizes(depths)).astype(np.float64), 0.0))
    soft = [table for table in combined.tables if not any(within(table.depths, kept.depths) for kept in exact)]
    fitted = fit(grid, trunk, soft, exact, prior)
    margins = []
    for axis, depth in enumerate(trunk):
        own = grid.sum_to(fitted.value, trunk, _of_one(grid.root, axis, depth)).ravel()
        margins.append(whole_margin(grid, axis, depth, known[axis], pinned[axis], own))
    rounded = round_down(grid, trunk, fitted.value, margins)
    counts, swaps = swap(grid, trunk, rounded, fitted.value, soft, seed_of(combined.tables))
    return JointFit(combined, fitted, counts, trunk, swaps)


def _alone(tables: Sequence[NoisyTable], axis: int, root: Depths) -> list[Depths]:
    """Return the measured tables of one attribute alone, and the total."""
    return [root, *(t.depths for t in tables if t.depths == _of_one(root, axis, t.depths[axis]))]


def _of_one(root: Depths, axis: int, depth: int) -> Depths:
    return (*root[:axis], depth, *root[axis + 1 :])
