"""Measuring for a joint fit: every table of the plan whole, from the counts of leaves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.counts.counts import Counts, ranks_of
from treetop.domain.marginal import cells_of
from treetop.noise import Key, NoiseStream
from treetop.plan.plan import Plan

Ints = NDArray[np.int64]

_LEAVES = 1 << 18
"""Leaves that are processed together."""


def measure_tables(plan: Plan, counts: Counts, key: Key) -> list[Ints]:
    """Return the true cells of every margin plus noise, in the order of the hierarchies."""
    measured = []
    for part, true in zip(plan.margin_parts, _true_tables(plan, counts), strict=True):
        noise = np.empty(true.size, np.int64)
        NoiseStream(part.law, key.derive("margin", part.index)).fill(noise, 0)
        measured.append(true + noise)
    return measured


def _true_tables(plan: Plan, counts: Counts) -> list[Ints]:
    """Return the true cells of every margin. Private."""
    spine = plan.spine
    (level,), (digits,) = spine.levels, ranks_of(spine)
    finest = [len(tree.levels) for tree in spine.trees]
    found = [np.zeros(margin.nodes, np.int64) for margin in plan.margin_tables]
    for start in range(0, len(counts), _LEAVES):
        stop = min(start + _LEAVES, len(counts))
        leaf = np.zeros((len(spine.trees), stop - start), np.int64)
        for part, digit in zip(level.parts, digits, strict=True):  # below the root, the rank is the leaf itself
            ranks = counts.keys[digit.word][start:stop] >> np.uint64(digit.shift)
            leaf[part.attribute] = ranks & np.uint64(2**digit.bits - 1)
        number = np.diff(counts.before[start : stop + 1])
        for margin, cells in zip(plan.margin_tables, found, strict=True):
            np.add.at(cells, cells_of(spine.trees, margin.depths, finest, leaf), number)
    return found
