"""The intervals of what was left unresolved at a node: the true count of its children that are not named.

That is the node's own count less those of its named children, each within its interval. With k named children all k + 1
intervals are taken at a risk of α/(k + 1), so that together they hold with the stated confidence.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from treetop.noise import Law
from treetop.topdown.evidence import NOTHING

if TYPE_CHECKING:
    from treetop.release import Release

Ints = NDArray[np.int64]


def remainder_intervals(release: Release, confidence: float) -> tuple[Ints, Ints]:
    """Return the lower and upper bounds of a release's remainders, in their order."""
    left, evidence, tree = release.left, release.evidence, release.tree
    assert left is not None and evidence is not None
    lower, upper = np.zeros(len(left), np.int64), np.zeros(len(left), np.int64)
    risk = 1 - Fraction(str(confidence))
    # Each node's measurement, or that of the nearest ancestor with the same leaves, and the level of that.
    value = np.full(len(tree.at(0)), release.total if evidence.total is None else evidence.total, np.int64)
    level = np.zeros(len(value), np.int64)
    for index, below in enumerate(evidence.levels):
        there = np.flatnonzero(left.level == index)
        row = tree.rows(index)
        parent = tree.parents(index + 1)
        named = np.bincount(parent, minlength=len(value))[row]
        sums = np.bincount(parent, below.measured, minlength=len(value))[row].astype(np.int64)
        for own in np.unique(level[row]).tolist():
            chosen = level[row] == own
            slack = _margins(evidence.laws[own], named[chosen], risk)
            slack += named[chosen] * _margins(evidence.laws[index + 1], named[chosen], risk)
            middle = value[row[chosen]] - sums[chosen]
            lower[there[chosen]] = np.maximum(middle - slack, 0)
            upper[there[chosen]] = np.maximum(middle + slack, 0)
        only = below.measured == NOTHING
        value = np.where(only, value[parent], below.measured)
        level = np.where(only, level[parent], index + 1)
    return lower, upper


def _margins(law: Law | None, named: Ints, risk: Fraction) -> Ints:
    """Return how far a measurement may be off where so many children are named."""
    if law is None:
        return np.zeros(len(named), np.int64)
    distinct, which = np.unique(named, return_inverse=True)
    return np.array([law.margin(risk / (number + 1)) for number in distinct.tolist()], np.int64)[which]
