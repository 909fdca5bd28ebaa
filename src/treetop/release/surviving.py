"""Which released nodes survive a test over all nodes that could have been released: they stand out from the noise.

A count that the noise invented is released like any other. If a plan does not leave such counts unresolved, a reader
can still learn which ones to believe: by the same test, with the same statistics (`treetop.plan.resolution`), over the
measurements that the release keeps. It reads nothing private, and costs nothing.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from treetop.measure.measure import NOTHING
from treetop.plan.resolution import HighMeasurements, number_of_tests
from treetop.release.measured import KeptMeasurements

RATE = Fraction(1, 20)
"""Of the nodes that survive at a level, the share that may be truly empty, in expectation."""

Ints = NDArray[np.int64]


def surviving(measured: KeptMeasurements, index: int, rate: Fraction = RATE) -> NDArray[np.bool_]:
    """Return which released nodes of a level survive the test of all measured nodes of the level."""
    descent = measured.descent
    survives = _surviving(descent, index, rate)
    if descent is measured:
        return survives
    # Released counts were made from the measurements later: a node survives if its measured node does.
    released, tested = measured.tree.at(index).nodes, descent.tree.at(index).nodes[:, survives]
    _, number = np.unique(np.concatenate([tested, released], axis=1), axis=1, return_inverse=True)
    number = number.ravel()
    return np.isin(number[tested.shape[1] :], number[: tested.shape[1]])


def _surviving(descent: KeptMeasurements, index: int, rate: Fraction) -> NDArray[np.bool_]:
    tree, laws = descent.tree, descent.evidence.laws
    seen, level = _nearest(descent, index)
    measured = [at for at in range(1, index + 1) if laws[at] is not None]
    survives = np.asarray([laws[at] is None for at in range(index + 1)], np.bool_)[level]  # public counts have no noise
    if not measured:
        return survives
    tests = sum(int(number_of_tests(tree.spine.levels, at, tree.at(at - 1).nodes)[index]) for at in measured)
    law = laws[measured[-1]]
    assert law is not None
    high = HighMeasurements(law, tests, rate)
    own = {at: seen[level == at] for at in np.unique(level).tolist()}
    for at, values in own.items():
        if (other := laws[at]) is not None:
            high.add(values, other)
    for at in own:
        if (other := laws[at]) is not None:
            survives |= (level == at) & (seen >= high.threshold(other))
    return survives


def _nearest(descent: KeptMeasurements, index: int) -> tuple[Ints, Ints]:
    """Return the measurement of each released node, or of its nearest ancestor with the same leaves, and its level."""
    size = len(descent.tree.at(0))
    seen, level = np.full(size, descent.root, np.int64), np.zeros(size, np.int64)
    for at in range(1, index + 1):
        parent, own = descent.tree.parents(at), descent.evidence.levels[at - 1].measured
        only = own == NOTHING
        seen, level = np.where(only, seen[parent], own), np.where(only, level[parent], at)
    return seen, level
