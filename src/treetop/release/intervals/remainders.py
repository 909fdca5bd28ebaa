"""The intervals of remainders: the true count of a node's children that are not named.

That is the node's own count less those of its named children. Which children are named is decided by their own noise,
so a margin that fits one of them would be too narrow for those that were chosen. Instead the node and all of its b
public children, named or not, are taken at a risk of α/(b + 1) each: then all are within their margins at once with the
stated confidence, whichever were chosen. The count cannot exceed the node's own either, nor the upper bounds of its
unnamed children, each at most its margin above the highest measurement among them. An only child that is not named was
not measured: there the node's own count is all that is known.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from treetop.measure.measure import NOTHING
from treetop.noise import Law
from treetop.release.intervals.nodes import risk_of
from treetop.release.measurements import KeptMeasurements

Ints = NDArray[np.int64]


def remainder_intervals(seen: KeptMeasurements, confidence: float) -> tuple[Ints, Ints]:
    """Return the lower and upper bounds of a release's remainders, in their order."""
    evidence, tree, left = seen.evidence, seen.tree, seen.tree.left
    if left is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    lower, upper = np.zeros(len(left), np.int64), np.zeros(len(left), np.int64)
    risk = risk_of(confidence)
    # Each node's measurement, or that of the nearest ancestor with the same leaves, and the level of that.
    value = np.full(len(tree.at(0)), seen.root, np.int64)
    level = np.zeros(len(value), np.int64)
    for refined, below in zip(tree.spine.levels, evidence.levels, strict=True):
        index = refined.index - 1
        there = np.flatnonzero(left.level == index)
        row = tree.rows(index)
        parent = tree.parents(index + 1)
        named = np.bincount(parent, minlength=len(value))[row]
        sums = np.zeros(len(value), np.int64)
        np.add.at(sums, parent, below.measured)
        children = refined.fanout(left.nodes[:, there])
        for own in np.unique(level[row]).tolist():
            chosen = level[row] == own
            about = row[chosen]
            margin = _margins(evidence.laws[own], children[chosen], risk)
            each = _margins(evidence.laws[index + 1], children[chosen], risk)
            middle, slack = value[about] - sums[about], margin + named[chosen] * each
            most = np.minimum(middle + slack, value[about] + margin)
            unnamed = (children - named)[chosen] * np.maximum(below.highest[about] + each, 0)
            most = np.where(children[chosen] == 1, most, np.minimum(most, unnamed))
            lower[there[chosen]] = np.maximum(middle - slack, 0)
            upper[there[chosen]] = np.maximum(most, lower[there[chosen]])
        only = below.measured == NOTHING
        value = np.where(only, value[parent], below.measured)
        level = np.where(only, level[parent], index + 1)
    return lower, upper


def _margins(law: Law | None, children: Ints, risk: Fraction) -> Ints:
    """Return how far a measurement may be off, by the number of the node's children."""
    if law is None:
        return np.zeros(len(children), np.int64)
    distinct, which = np.unique(children, return_inverse=True)
    return np.array([law.margin(risk / (number + 1)) for number in distinct.tolist()], np.int64)[which]
