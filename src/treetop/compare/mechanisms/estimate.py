"""An estimate: what a mechanism publishes, leaf by leaf; it may be negative, fractional, or not add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from treetop.domain.spine import Spine
from treetop.intake.counts import Digit, layout, pack
from treetop.release.errors import starts

Values: TypeAlias = NDArray[np.int64] | NDArray[np.float64]
Words: TypeAlias = tuple[NDArray[np.uint64], ...]

ROUNDING = 1e-9
"""Floating-point sums that agree to this share of what was summed agree."""
ROOT = Digit(0, 64, 0)
"""A place above all that is told apart."""


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
        value: int | float = (self.value if self.levels is None else self.levels[0].value).sum().item()
        return value

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return f"Estimate({self.total:,} in {len(self):,} leaves; {self.spine!r})"

    def violations(self) -> int:
        """Return how many nodes differ from the sum of their children, over all levels."""
        digits = (ROOT, *layout(self.spine))
        return sum(_differences(*pair, digit) for pair, digit in zip(pairwise(self.levels or ()), digits, strict=False))


def _ascending(keys: Words) -> bool:
    """Whether each path is above the one before, words compared from the first."""
    undecided = np.ones(max(len(keys[0]) - 1, 0), dtype=bool)
    for key in keys:
        if (undecided & (key[1:] < key[:-1])).any():
            return False
        undecided &= key[1:] == key[:-1]
    return not undecided.any()


def _differences(above: LevelEstimate, below: LevelEstimate, digit: Digit) -> int:
    """Count the nodes, of the digit's level, whose children do not sum to them."""
    keys = [np.concatenate(pair) for pair in zip(above.keys, below.keys, strict=True)]
    value = np.concatenate([above.value, -below.value])
    if len(value) == 0:
        return 0
    order = np.lexsort(keys[::-1])
    first = np.flatnonzero(starts([key[order] for key in keys], digit))
    left = np.abs(np.add.reduceat(value[order], first))
    if value.dtype.kind == "i":
        return int(np.count_nonzero(left))
    return int(np.count_nonzero(left > ROUNDING * np.add.reduceat(np.abs(value[order]), first)))
