"""What the descent leaves out, and what that does to estimates: true counts beside what was measured of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from treetop.counts.counts import Counts
from treetop.measure.questions import leaves_of
from treetop.release.errors import SIZES
from treetop.release.measurements import Measurements, measured_tree, released_rows
from treetop.release.tree import ReleasedTree
from treetop.repair.least_squares import from_below, least_squares

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LevelSelection:
    """One level, over one run or several; arrays are by size of true count (`SIZES`)."""

    level: int
    """The position in the spine."""
    runs: int
    """How many runs these are."""
    unmeasured: float
    """The true count of nodes that were not measured, because something above them was left at zero: mean of runs."""
    measured: Reals
    """How many nodes were measured."""
    measured_off: Reals
    """The sum of measurement less true count over them."""
    retained: Reals
    """How many of them were retained: their children were measured."""
    own_off: Reals
    """The sum of measurement less true count over those."""
    children_off: Reals
    """The sum of their children's measurements less true counts."""
    subtree_off: Reals
    """The sum of the best estimates from each one's own subtree, less true counts."""
    estimate_off: Reals
    """The sum of the least-squares estimates from all measurements, less true counts."""


def selection(measurements: Measurements, truth: Counts) -> tuple[LevelSelection, ...]:
    """Compare all measurements of a run, and the least-squares estimates from them, with the truth."""
    spine = measurements.spine
    leaves, count = leaves_of(spine, truth)
    true_tree = ReleasedTree(spine, np.stack(leaves).astype(np.int32), count)
    tree = measured_tree(measurements, truth.total)
    subtrees, estimates = from_below(tree), least_squares(tree)
    found = []
    for index, one in enumerate(released_rows(true_tree, tree), start=1):
        level = one.level
        true = np.where(one.row >= 0, np.append(true_tree.at(index).count, 0)[one.row], 0)
        below = tree[index + 1] if index + 1 < len(tree) else None
        children, sums = np.zeros(len(level), np.int64), np.zeros(len(level))
        if below is not None:
            parent = below.parent[below.measured]
            children += np.bincount(parent, minlength=len(level))
            sums += np.bincount(parent, below.value[below.measured], minlength=len(level))
        retained = level.measured & (children > 0)
        size = np.searchsorted([low for low, _ in SIZES], true, side="right") - 1
        found.append(
            LevelSelection(
                level=index,
                runs=1,
                unmeasured=float(truth.total - true.sum()),
                measured=_by_size(size, level.measured),
                measured_off=_by_size(size, level.measured, level.value - true),
                retained=_by_size(size, retained),
                own_off=_by_size(size, retained, level.value - true),
                children_off=_by_size(size, retained, sums - true),
                subtree_off=_by_size(size, retained, subtrees[index].value - true),
                estimate_off=_by_size(size, retained, estimates[index].value - true),
            )
        )
    return tuple(found)


def joined(runs: Sequence[Sequence[LevelSelection]]) -> tuple[LevelSelection, ...]:
    """Put several runs together, level by level."""
    sums = [one.name for one in fields(LevelSelection) if one.name not in ("level", "runs", "unmeasured")]
    return tuple(
        LevelSelection(
            levels[0].level,
            sum(one.runs for one in levels),
            float(np.mean([one.unmeasured for one in levels])),
            *(np.sum([getattr(one, name) for one in levels], axis=0) for name in sums),
        )
        for levels in zip(*runs, strict=True)
    )


def _by_size(size: Ints, chosen: NDArray[np.bool_], weight: NDArray[np.float64] | Ints | None = None) -> Reals:
    weights = None if weight is None else weight[chosen].astype(np.float64)
    return np.bincount(size[chosen], weights, minlength=len(SIZES)).astype(np.float64)
