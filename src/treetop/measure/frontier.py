"""A frontier: the retained nodes of one level, in spine order; and what was seen on the way down to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from treetop.measure.evidence import NOTHING, LevelEvidence, Remainders


def _nothing() -> NDArray[np.int64]:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Frontier:
    """Nodes with a released count above zero. The counts and nodes are public; the ranges point at private leaves."""

    nodes: NDArray[np.int32]
    """For each attribute (row) and retained node (column), the attribute's node; 0 while it is not refined."""
    count: NDArray[np.int64]
    """The released counts."""
    start: NDArray[np.int64] = field(repr=False)
    """Where the private leaves under each node start; not kept (empty) for leaves."""
    stop: NDArray[np.int64] = field(repr=False)
    """Where they stop; equal to the start for a node that the noise invented."""
    seen: NDArray[np.int64] = field(default_factory=_nothing, repr=False)
    """What was measured of each node, or of the nearest ancestor with the same leaves; not kept (empty) where only
    children are not tested with it."""
    seen_at: NDArray[np.int64] = field(default_factory=_nothing, repr=False)
    """The level of that."""

    @staticmethod
    def root(attributes: int, total: int, leaves: int) -> Frontier:
        """Return the root alone, or nothing if the total is zero."""
        size = 1 if total > 0 else 0
        return Frontier(
            nodes=np.zeros((attributes, size), np.int32),
            count=np.full(size, total, np.int64),
            start=np.zeros(size, np.int64),
            stop=np.full(size, leaves, np.int64),
            seen=np.full(size, total, np.int64),
            seen_at=np.zeros(size, np.int64),
        )

    @staticmethod
    def join(parts: Sequence[Frontier], attributes: int) -> Frontier:
        """Join frontiers that follow each other."""
        if not parts:
            return Frontier.root(attributes, 0, 0)
        if len(parts) == 1:
            return parts[0]
        return Frontier(
            nodes=np.concatenate([part.nodes for part in parts], axis=1),
            count=np.concatenate([part.count for part in parts]),
            start=np.concatenate([part.start for part in parts]),
            stop=np.concatenate([part.stop for part in parts]),
            seen=np.concatenate([part.seen for part in parts]),
            seen_at=np.concatenate([part.seen_at for part in parts]),
        )

    def seen_below(
        self, kept: Frontier, parent: NDArray[np.integer], measured: NDArray[np.int64], index: int
    ) -> Frontier:
        """Return the children that are kept at level `index` with what was measured of them, or of their parents."""
        if len(self.seen) < len(self):
            return kept
        only = measured == NOTHING
        seen, seen_at = np.where(only, self.seen[parent], measured), np.where(only, self.seen_at[parent], index)
        return replace(kept, seen=seen, seen_at=seen_at)

    def __len__(self) -> int:
        return len(self.count)

    def __getitem__(self, part: slice) -> Frontier:
        return Frontier(
            self.nodes[:, part],
            self.count[part],
            self.start[part],
            self.stop[part],
            self.seen[part],
            self.seen_at[part],
        )


@dataclass(frozen=True, eq=False)
class Descended:
    """Where a descent of some nodes has come to, and what it saw: as public as the noise makes it."""

    frontier: Frontier
    """The retained nodes of the level that was reached."""
    levels: tuple[tuple[LevelEvidence, ...], ...] = field(default=(), repr=False)
    """What was measured, level by level, as parts to be joined; nothing where no evidence is kept."""
    left: tuple[Remainders, ...] = field(default=(), repr=False)
    """What was left at nodes, as parts to be joined."""

    @staticmethod
    def join(parts: Sequence[Descended], attributes: int, levels: int) -> Descended:
        """Join what was reached from nodes that follow each other, with evidence of so many levels each."""
        return Descended(
            Frontier.join([part.frontier for part in parts], attributes),
            tuple(tuple(seen for part in parts for seen in part.levels[index]) for index in range(levels)),
            tuple(left for part in parts for left in part.left),
        )

    def then(self, below: Descended) -> Descended:
        """Go on to what was reached from here."""
        return Descended(below.frontier, self.levels + below.levels, self.left + below.left)
