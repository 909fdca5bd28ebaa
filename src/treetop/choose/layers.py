"""The nodes above zero of a public table, layer by layer from the root, with the public children of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treetop.domain.spine import Spine
from treetop.intake.counts import Counts, go_down

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Layer:
    """The nodes above zero at one level, in spine order."""

    count: Ints
    """The count of each."""
    parent: Ints
    """The position of its parent among the nodes above zero of the level above."""
    children: Ints
    """For each node above zero of the level above, how many public children it has."""

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Which nodes a descent would measure: those that are not an only child."""
        measured: NDArray[np.bool_] = self.children[self.parent] > 1
        return measured

    @property
    def empty(self) -> int:
        """How many nodes are empty and would be measured all the same: those beside or under a node above zero."""
        return int(self.children[self.children > 1].sum() - self.measured.sum())


def layers(spine: Spine, counts: Counts) -> Iterator[Layer]:
    """Yield the nodes above zero of every level of the spine, for counts that are public."""
    leaves = len(counts)
    worth = np.diff(counts.before)
    node = [np.zeros(leaves, np.int64) for _ in spine.attributes]
    starts = np.zeros(leaves, dtype=bool)
    starts[:1] = True
    for level in spine.levels:
        children = level.fanout(np.array([own[starts] for own in node]))
        go_down(spine, level.index, counts, node)
        inside = np.cumsum(starts) - 1
        for part in level.parts:
            starts[1:] |= node[part.attribute][1:] != node[part.attribute][:-1]
        first = np.flatnonzero(starts)
        count = np.add.reduceat(worth, first) if leaves else worth
        yield Layer(count, inside[first], children)
