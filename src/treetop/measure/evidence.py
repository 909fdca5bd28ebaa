"""Evidence: what a descent measured, kept for intervals and better estimates. All of it is noisy, hence public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from treetop.noise import Law

Ints = NDArray[np.int64]

NOTHING = -(2**62)
"""Stands where there is no measurement: below every one that can be made."""


@dataclass(frozen=True, eq=False)
class LevelEvidence:
    """The measurements of one level, in spine order."""

    measured: Ints = field(repr=False)
    """Of every retained node; `NOTHING` for an only child, which has its parent's count unmeasured."""
    highest: Ints = field(repr=False)
    """For every retained node of the level above, the highest measurement among its children that were not retained;
    `NOTHING` where there is no such measurement: all were, or it is an only child."""
    slots: Ints = field(repr=False)
    """Every measurement, of all public children of retained nodes that have several; empty unless asked for."""

    @staticmethod
    def join(parts: Sequence[LevelEvidence]) -> LevelEvidence:
        """Join what follows each other in spine order."""
        if len(parts) == 1:
            return parts[0]
        return LevelEvidence(
            measured=_joined([part.measured for part in parts]),
            highest=_joined([part.highest for part in parts]),
            slots=_joined([part.slots for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that a descent measured, as far as it was kept."""

    total: int | None
    """What was measured of the total; None where the total is public."""
    levels: tuple[LevelEvidence, ...] = field(repr=False)
    """The levels below the root."""
    laws: tuple[Law | None, ...]
    """The noise of the total and of every level; None where nothing is measured."""


@dataclass(frozen=True, eq=False)
class Remainders:
    """What was left at nodes because none of their children could be named for it; by level, then in spine order."""

    level: NDArray[np.int32] = field(repr=False)
    """The level of each such node, by its position in the spine."""
    nodes: NDArray[np.int32] = field(repr=False)
    """For each attribute (row) and such node (column), the attribute's node; 0 while it is not refined."""
    count: Ints = field(repr=False)
    """What was left there, above zero."""

    @staticmethod
    def join(parts: Sequence[Remainders], attributes: int) -> Remainders:
        """Join what was found in parts of the tree, each in spine order."""
        if not parts:
            return Remainders(np.empty(0, np.int32), np.empty((attributes, 0), np.int32), np.empty(0, np.int64))
        level = np.concatenate([part.level for part in parts])
        nodes = np.concatenate([part.nodes for part in parts], axis=1)
        return Remainders(level, nodes, _joined([part.count for part in parts]))[np.argsort(level, kind="stable")]

    def __len__(self) -> int:
        return len(self.count)

    def __getitem__(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Remainders:
        return Remainders(self.level[chosen], self.nodes[:, chosen], self.count[chosen])


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate([np.empty(0, np.int64), *parts])
