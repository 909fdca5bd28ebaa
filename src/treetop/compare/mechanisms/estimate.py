"""An estimate: what a mechanism publishes, leaf by leaf; it may be negative, fractional, or not add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from treetop.domain.spine import Spine
from treetop.read.counts import layout, pack

Values: TypeAlias = NDArray[np.int64] | NDArray[np.float64]
Words: TypeAlias = tuple[NDArray[np.uint64], ...]

ROUNDING = 1e-9
"""Floating-point sums that agree to this share of what was summed agree."""


@dataclass(frozen=True, eq=False)
class LevelEstimate:
    """The nodes of one level that are not zero, in spine order."""

    keys: Words = field(repr=False)
    """The packed paths of the nodes, all finer ranks zero: one array a word."""
    value: Values = field(repr=False)
    """Their values. A node that is not here is zero."""

    def __len__(self) -> int:
        return len(self.value)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Published values of the leaves, from which coarser counts are sums unless `levels` says otherwise."""

    spine: Spine
    """The public order of refinement."""
    keys: Words = field(repr=False)
    """The packed paths of the leaves that are not zero, ascending and distinct: one array a word."""
    value: Values = field(repr=False)
    """Their values, whole (int64) or real (float64). A leaf that is not here is zero."""
    levels: tuple[LevelEstimate, ...] | None = field(default=None, repr=False)
    """The total and every level as they were published, where they are not the sums of the leaves."""

    def __post_init__(self) -> None:
        words = layout(self.spine)[-1].word + 1
        if len(self.keys) != words or any(len(key) != len(self.value) for key in self.keys):
            raise ValueError(f"an estimate has {words} words a leaf, and a value")
        if self.value.dtype not in (np.int64, np.float64):
            raise ValueError(f"values are int64 or float64, not {self.value.dtype}")
        if not self.value.all():
            raise ValueError("a leaf that is zero is left out")
        if not _ascending(self.keys):
            raise ValueError("leaves stand in spine order, each once")
        if self.levels is not None and len(self.levels) != len(self.spine.levels) + 1:
            raise ValueError("give the total and every level of the spine, or no levels")

    @staticmethod
    def from_nodes(spine: Spine, nodes: NDArray[np.int32], value: Values) -> Estimate:
        """Make an estimate of leaves in spine order, given as one row of leaf numbers per attribute."""
        return Estimate.from_leaves(spine, pack(spine, nodes), value)

    @staticmethod
    def from_leaves(
        spine: Spine,
        keys: Sequence[NDArray[np.uint64]],
        value: Values,
        levels: tuple[LevelEstimate, ...] | None = None,
    ) -> Estimate:
        """Make an estimate of leaves in spine order, leaving out those that are zero."""
        there = value != 0
        if not there.all():
            keys, value = [key[there] for key in keys], value[there]
        return Estimate(spine, tuple(keys), value, levels)

    @property
    def total(self) -> int | float:
        """The value at the root."""
        root = self.at(0).value
        return root[0].item() if len(root) else 0

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return f"Estimate({self.total:,} in {len(self):,} leaves; {self.spine!r})"

    def at(self, index: int) -> LevelEstimate:
        """Return the values at a level of the spine, by its position; the total is 0."""
        if self.levels is not None:
            return self.levels[index]
        return _summed(prefix(self.spine, self.keys, index), self.value)

    def violations(self) -> int:
        """Return how many nodes differ from the sum of their children, over all levels."""
        if self.levels is None:
            return 0
        wrong = 0
        for index in range(len(self.spine.levels)):
            above, below = self.levels[index], self.levels[index + 1]
            parents = prefix(self.spine, below.keys, index)
            wrong += _differences(above, LevelEstimate(parents, below.value))
        return wrong


def prefix(spine: Spine, keys: Sequence[NDArray[np.uint64]], index: int) -> Words:
    """Return the paths of the ancestors at a level of the spine, by its position."""
    if index == 0:
        return tuple(np.zeros_like(key) for key in keys)
    digit = layout(spine)[index - 1]
    kept = np.uint64((2**64 - 1) >> digit.shift << digit.shift)
    return tuple(
        key if word < digit.word else key & kept if word == digit.word else np.zeros_like(key)
        for word, key in enumerate(keys)
    )


def _ascending(keys: Words) -> bool:
    """Whether each path is above the one before, words compared from the first."""
    undecided = np.ones(max(len(keys[0]) - 1, 0), dtype=bool)
    for key in keys:
        if (undecided & (key[1:] < key[:-1])).any():
            return False
        undecided &= key[1:] == key[:-1]
    return not undecided.any()


def _starts(keys: Words) -> NDArray[np.int64]:
    """Return where each run of equal paths begins."""
    starts = np.zeros(len(keys[0]), dtype=bool)
    starts[:1] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(starts)


def _summed(keys: Words, value: Values) -> LevelEstimate:
    """Sum consecutive values with the same path, and leave out what is zero then."""
    first = _starts(keys)
    sums = np.add.reduceat(value, first) if len(first) else value
    there = sums != 0
    return LevelEstimate(tuple(key[first][there] for key in keys), sums[there])


def _differences(one: LevelEstimate, other: LevelEstimate) -> int:
    """Count the paths whose values do not sum to the same."""
    keys = [np.concatenate(pair) for pair in zip(one.keys, other.keys, strict=True)]
    value = np.concatenate([one.value, -other.value])
    if len(value) == 0:
        return 0
    order = np.lexsort(keys[::-1])
    first = _starts(tuple(key[order] for key in keys))
    left = np.abs(np.add.reduceat(value[order], first))
    if value.dtype.kind == "i":
        return int(np.count_nonzero(left))
    return int(np.count_nonzero(left > ROUNDING * np.add.reduceat(np.abs(value[order]), first)))
