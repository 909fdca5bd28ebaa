"""Margins: measured first, each table whole, and made consistent before the descent begins.

What is known of an attribute alone is a small tree: its margins, and those levels of the spine at which nothing else is
refined yet. Least squares combine all its measurements, and whole numbers from the top down follow: every margin adds
up to its parent and to the total.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel
from treetop.domain.hierarchy import Hierarchy
from treetop.noise import Key, NoiseStream
from treetop.plan.workload import How, Measured
from treetop.read.counts import Counts, Digit
from treetop.repair.least_squares import MeasuredLevel, least_squares
from treetop.repair.sharing import share_by_least_squares

Ints = NDArray[np.int64]

_KEYS = 1 << 16
"""Leaves that are looked at together, so that their nodes stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class AttributeMargins:
    """The tables of one attribute alone, down to the finest that is kept."""

    attribute: int
    """Which attribute, by its position among the spine's."""
    tree: Hierarchy
    """Its levels that the spine refines."""
    digits: tuple[Digit, ...]
    """Where their ranks stand in the keys of the counts, down to the finest that is kept."""
    hows: tuple[How, ...]
    """How each table is measured; one that is not follows from a finer one, or from its only children."""
    parts: tuple[int | None, ...]
    """Which part of the workload each table is; None where it is none."""

    @property
    def deepest(self) -> int:
        """The depth of the finest table."""
        return len(self.hows) - 1


@dataclass(frozen=True, eq=False)
class KeptMargins:
    """What was measured of one attribute alone, and what is kept of it: noisy, hence public."""

    attribute: int
    """Which attribute."""
    counts: tuple[Ints, ...] = field(repr=False)
    """By depth, the whole number of every public node: each level adds up to the one above."""
    measured: tuple[Ints | None, ...] = field(repr=False)
    """By depth, what was measured of every public node; None where nothing was."""
    parts: tuple[int | None, ...] = ()
    """Which part of the workload each table is."""


def measure_margins(margins: Sequence[AttributeMargins], counts: Counts, total: int, key: Key) -> list[KeptMargins]:
    """Measure the tables of attributes alone, and make them add up to a total that is known."""
    return [_measure(one, counts, total, key.derive("margin", one.attribute)) for one in margins]


def _measure(margins: AttributeMargins, counts: Counts, total: int, key: Key) -> KeptMargins:
    measured: list[Ints | None] = [None] * len(margins.hows)
    for depth, true in _true_tables(margins, counts):
        how = margins.hows[depth]
        if isinstance(how, Measured):
            noise = np.empty(len(true), np.int64)
            NoiseStream(how.law, key.derive("level", depth)).fill(noise, 0)
            measured[depth] = true + noise
    ties = int.from_bytes(key.derive("ties").secret[:6], "little")
    kept = consistent(margins.tree, margins.hows, measured, total, ties)
    return KeptMargins(margins.attribute, tuple(kept), tuple(measured), margins.parts)


def _true_tables(margins: AttributeMargins, counts: Counts) -> Iterator[tuple[int, Ints]]:
    """Yield the true counts of all nodes of an attribute, from the finest table up: private."""
    first = margins.tree.first
    table = np.zeros(margins.tree.sizes[margins.deepest], np.int64)
    for start in range(0, len(counts), _KEYS):
        chunk = slice(start, min(start + _KEYS, len(counts)))
        node = np.zeros(chunk.stop - start, np.int64)
        for depth, digit in enumerate(margins.digits):
            _go_down(node, first[depth], counts.keys[digit.word][chunk], digit.shift, np.uint64(2**digit.bits - 1))
        _count(table, node, counts.before[start : chunk.stop + 1])
    for depth in range(margins.deepest, -1, -1):
        yield depth, table
        table = np.add.reduceat(table, first[depth][:-1])


@kernel
def _go_down(node: Ints, first: Ints, keys: NDArray[np.uint64], shift: int, mask: np.uint64) -> None:
    """Go on from nodes to their children, by their ranks in the paths of leaves."""
    for i in range(len(node)):
        node[i] = first[node[i]] + np.int64((keys[i] >> np.uint64(shift)) & mask)


@kernel
def _count(table: Ints, node: Ints, before: Ints) -> None:
    for i in range(len(node)):
        table[node[i]] += before[i + 1] - before[i]


def consistent(
    tree: Hierarchy, hows: Sequence[How], measured: Sequence[Ints | None], total: int, ties: int
) -> list[Ints]:
    """Return whole numbers for every level of a tree that add up to a total, from what was measured of it."""
    levels = [MeasuredLevel(np.zeros(1, np.int64), np.array([total]), np.zeros(1))]
    for depth, (how, value) in enumerate(zip(hows, measured, strict=True)):
        size = tree.sizes[depth]
        parent = np.repeat(np.arange(len(tree.first[depth]) - 1), np.diff(tree.first[depth]))
        variance = np.full(size, how.law.standard_deviation**2 if isinstance(how, Measured) else np.inf)
        levels.append(MeasuredLevel(parent, np.zeros(size, np.int64) if value is None else value, variance))
    estimates = least_squares(levels)
    kept, above = [], np.array([total])
    for depth, estimate in enumerate(estimates[1:]):
        out = np.empty(tree.sizes[depth], np.int64)
        variance = np.where(np.isfinite(estimate.variance), np.maximum(estimate.variance, 1e-9), 1.0)
        everyone = np.ones(len(out), np.bool_)
        share_by_least_squares(tree.first[depth], estimate.value, variance, everyone, above, ties, out)
        kept.append(out)
        above = out
    return kept
