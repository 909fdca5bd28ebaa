"""A top-down descent whose repair is any function: for comparing repairs, not for speed.

It measures as the engine does, with the same noise for the same key while the tree has no subtrees of its own, and
differs from it in the repair only.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel
from treetop.intake.counts import Counts
from treetop.measure.descent import Descent
from treetop.measure.frontier import Frontier
from treetop.measure.level import Step
from treetop.measure.measure import add_counts, measure_total
from treetop.noise import Key, NoiseStream
from treetop.plan.workload import Measured


class LevelRepair(Protocol):
    """A repair of all nodes of one level: a function of measurements, which sees no private data."""

    def __call__(
        self, x: NDArray[np.int64], first: NDArray[np.int64], count: NDArray[np.int64], ties: Key
    ) -> NDArray[np.int64]:
        """Return non-negative integers for the measurements x.

        Those of node i are `x[first[i] : first[i + 1]]`, two or more, and must become a sum of count[i] > 0. `ties` is
        a secret of its own for treating equals alike; it has made no noise.
        """


def descend(descent: Descent, counts: Counts, key: Key, repair: LevelRepair) -> Frontier:
    """Run the descent level by level and return the retained leaves in spine order."""
    total = measure_total(counts, descent.total, key.derive("total"))
    nodes = Frontier.root(descent.attributes, total, len(counts))
    for step in descent.steps:
        nodes = _refine(step, counts, nodes, key.derive("level", step.level.index), repair)
    return nodes


def _refine(step: Step, counts: Counts, above: Frontier, key: Key, repair: LevelRepair) -> Frontier:
    """Measure all public children of the retained nodes, repair them, and keep those above zero."""
    fanout = step.level.fanout(above.nodes)
    bounds = np.concatenate([[0], np.cumsum(fanout)])
    parent = np.repeat(np.arange(len(fanout)), fanout)
    divided = fanout > 1
    # An only child has its parent's count and its parent's leaves: no noise, no loss.
    count, start, stop = above.count[parent], above.start[parent], above.stop[parent]
    if divided.any():
        first = np.concatenate([[0], np.cumsum(fanout[divided])])
        x, starts, stops = _measure(step, counts, above, divided, first, key.derive("noise"))
        slots = divided[parent]
        count[slots] = repair(x, first, above.count[divided], key.derive("ties"))
        start[slots], stop[slots] = starts, stops
    kept = np.flatnonzero(count > 0)
    nodes = above.nodes[:, parent[kept]]
    step.level.go_down(nodes, kept - bounds[parent[kept]])
    return Frontier(nodes, count[kept], start[kept], stop[kept])


def _measure(
    step: Step, counts: Counts, above: Frontier, divided: NDArray[np.bool_], first: NDArray[np.int64], key: Key
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return true count plus noise of every child of the divided nodes, and which private leaves lie under it.

    All public children are measured, seen in the data or not. One unit moves the counts of the level by at most its
    sensitivity, for which the step's law was made.
    """
    assert isinstance(step.how, Measured)
    x = np.empty(first[-1], np.int64)
    NoiseStream(step.how.law, key).fill_runs(x, step.places.first(above.nodes[:, divided]), np.diff(first))
    start, stop = np.zeros_like(x), np.zeros_like(x)
    _add_all(x, start, stop, first, *step.leaves(counts, above), above.start[divided], above.stop[divided])
    return x, start, stop


@kernel
def _add_all(
    x: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    first: NDArray[np.int64],
    keys: NDArray[np.uint64],
    shift: int,
    mask: np.uint64,
    before: NDArray[np.int64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
) -> None:
    """Add the true counts of the children of many nodes to their noise, through the engine's own door."""
    for i in range(len(starts)):
        a, b = first[i], first[i + 1]
        add_counts(x[a:b], start[a:b], stop[a:b], 0, keys, shift, mask, before, starts[i], stops[i])
