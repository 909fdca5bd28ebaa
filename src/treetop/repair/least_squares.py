"""Least squares on a measured tree: all measurements combined, upwards and downwards, each by its inverse variance.

Upwards, a node's own measurement y of variance s² and the sum S of its children's estimates, of variance V, give
z = (y/s² + S/V)/(1/s² + 1/V): the best estimate from the node's own subtree. Downwards, the correction
of a parent is shared among its children by their variances: x_c = z_c + (V_c/V)(x_v − S). On a tree that is
fixed beforehand the outcome is the best linear unbiased estimate of every node, and it adds up (Hay, Rastogi, Miklau
and Suciu 2010, section 4, for equal fan-out and noise; the passes are those of a Kalman smoother on a tree, which also
gives the variances).

Pruning costs the unbiasedness at inner nodes. That a node has measured children depends on its own measurement, and on
those above it: nodes that the noise pushed up are retained more often. Given the nodes that were retained, a
measurement of a child that has no children of its own is still unbiased, and so are sums over all children of a
retained node; the measurements of the retained nodes themselves are not: on average they are too high, the more so the
nearer their true counts are to zero, and z inherits a share s⁻²/(s⁻² + V⁻¹) of it. For nodes that are many standard
deviations above zero, which are always retained, this vanishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

LEAST_VARIANCE = 1e-200
"""Least variance that is used: the variance of very narrow noise underflows a float; this keeps weights finite."""


@dataclass(frozen=True, eq=False)
class MeasuredLevel:
    """The nodes of one level that were measured, or are the only children of nodes that were."""

    parent: Ints
    """Index of each node's parent in the level above."""
    value: Reals | Ints
    """The measurements; any number for unmeasured nodes (infinite variance)."""
    variance: Reals
    """Their variances: zero for exact values, infinite for unmeasured nodes."""

    def __len__(self) -> int:
        return len(self.value)


@dataclass(frozen=True, eq=False)
class LevelEstimates:
    """The best estimates of one level: real numbers, which may be negative, but add up."""

    value: Reals
    variance: Reals
    """Their variances, if the tree were fixed beforehand."""


def least_squares(levels: Sequence[MeasuredLevel]) -> list[LevelEstimates]:
    """Return the estimates of every level; the first is the root."""
    up = from_below(levels)
    found = [up[0]]
    for level, own in zip(levels[1:], up[1:], strict=True):
        above, size = found[-1], len(found[-1].value)
        total, variance = _sums(level, own, size)
        # An only child takes all of a gap, and has its parent's variance, regardless of its own.
        only = (np.bincount(level.parent, minlength=size) == 1)[level.parent]
        own_variance = np.where(only, 1.0, own.variance)
        together = np.where(only, 1.0, variance[level.parent])
        share = own_variance / np.maximum(together, LEAST_VARIANCE)
        value = own.value + share * (above.value - total)[level.parent]
        passed = above.variance[level.parent]
        spread = np.where(only, passed, np.maximum(own_variance - share**2 * (together - passed), 0.0))
        found.append(LevelEstimates(value, spread))
    return found


def from_below(levels: Sequence[MeasuredLevel]) -> list[LevelEstimates]:
    """Return, level by level, the estimate of each node from its own subtree."""
    found = [LevelEstimates(np.asarray(levels[-1].value, np.float64), levels[-1].variance)]
    for level, below in zip(levels[-2::-1], levels[:0:-1], strict=True):
        size = len(level)
        total, variance = _sums(below, found[-1], size)
        variance[np.bincount(below.parent, minlength=size) == 0] = np.inf
        found.append(_combined(level, total, variance))
    return found[::-1]


def _combined(own: MeasuredLevel, total: Reals, variance: Reals) -> LevelEstimates:
    """Combine two independent estimates by inverse variance; either may be exact, or know nothing."""
    known = np.isfinite(variance)
    blind = ~np.isfinite(own.variance)
    finite, mine = np.where(known, variance, 1.0), np.where(blind, 1.0, own.variance)
    weight = np.where(known, np.where(blind, 1.0, mine / np.maximum(mine + finite, LEAST_VARIANCE)), 0.0)
    value = np.asarray(own.value, np.float64)
    value = value + weight * (np.where(known, total, 0.0) - value)
    return LevelEstimates(value, np.where(known, weight * finite, own.variance))


def _sums(level: MeasuredLevel, own: LevelEstimates, size: int) -> tuple[Reals, Reals]:
    """Return the sums of children's estimates, and of their variances, for each of the nodes above."""
    total, variance = np.zeros(size), np.zeros(size)
    total += np.bincount(level.parent, own.value, minlength=size)
    variance += np.bincount(level.parent, own.variance, minlength=size)
    return total, variance
