"""The whole public tree, node by node: what mechanisms need that put noise on every leaf, seen or not."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from treetop.compare.mechanisms.mechanism import NotServed
from treetop.domain.spine import Spine
from treetop.intake.counts import Counts, go_down, pack
from treetop.noise import Key, Law, NoiseStream
from treetop.plan.workload import Part

MOST_LEAVES = 2**24
"""By default a dense mechanism refuses more public leaves: they take about 50 bytes each while it runs."""

_PIECE = 1 << 18


@dataclass(frozen=True, eq=False)
class PublicTree:
    """Every public node in spine order. Nodes of a level are numbered in that order, so siblings are consecutive."""

    first: tuple[NDArray[np.int64], ...] = field(repr=False)
    """The children of node i of level l (the root is level 0) are `first[l][i] : first[l][i + 1]`."""
    spine: Spine = field(repr=False)
    """The public order of refinement."""
    keys: tuple[NDArray[np.uint64], ...] = field(repr=False)
    """The packed paths of all leaves."""

    @staticmethod
    def of(spine: Spine) -> PublicTree:
        """Write out the nodes of a spine, level by level."""
        nodes = np.zeros((len(spine.attributes), 1), np.int32)
        first = []
        for level in spine.levels:
            fanout = level.fanout(nodes)
            bounds = np.concatenate([[0], np.cumsum(fanout)])
            nodes = level.children(nodes, fanout)
            first.append(bounds)
        return PublicTree(tuple(first), spine, tuple(pack(spine, nodes)))

    def ancestors(self, counts: Counts) -> Iterator[NDArray[np.int64]]:
        """Give, level by level below the root, the node above every private leaf. Private: for measuring only."""
        node = np.zeros(len(counts), np.int64)
        nodes = np.zeros((len(self.spine.trees), len(counts)), np.int64)
        for first, level in zip(self.first, self.spine.levels, strict=True):
            go_down(self.spine, level.index, counts, nodes)
            node = first[node] + level.ranks(nodes)
            yield node


def refuse_large(spine: Spine, limit: int, name: str) -> None:
    """Refuse a domain with more public leaves than the limit, before anything is made for them."""
    if spine.leaves > limit:
        raise NotServed(
            f"{name} puts noise on every public leaf, and there are {spine.leaves:,} of them, more than its limit of "
            f"{limit:,}: raise the limit (about 50 bytes a leaf), drop the finest level, or take inftda"
        )


def measure_leaves(tree: PublicTree, counts: Counts, law: Law, key: Key, threads: int) -> NDArray[np.int64]:
    """Return every public leaf's true count plus noise: the only look at the counts of a flat mechanism.

    One unit moves the leaf counts by at most the sensitivity of the last level, for which the law was made.
    """
    x = draw(law, key, len(tree.keys[0]), threads)
    *_, leaf = tree.ancestors(counts)
    np.add.at(x, leaf, np.diff(counts.before))
    return x


def measure_levels(
    tree: PublicTree, counts: Counts, levels: tuple[Part, ...], key: Key, threads: int
) -> list[NDArray[np.int64] | None]:
    """Return the true counts plus noise of all nodes, level by level from the total, None where nothing is measured.

    One unit moves the counts of a level by at most that level's sensitivity, for which its law was made. The total
    comes without noise where it is exact, since it is then the same for all neighbours.
    """
    total, *below = levels
    root = draw(total.law, key.derive("level", 0), 1, threads) if total.is_measured else np.zeros(1, np.int64)
    root += counts.total
    measured: list[NDArray[np.int64] | None] = [root]
    for level, node in zip(below, tree.ancestors(counts), strict=True):
        if not level.is_measured:
            measured.append(None)
            continue
        x = draw(level.law, key.derive("level", level.index), level.nodes, threads)
        np.add.at(x, node, np.diff(counts.before))
        measured.append(x)
    return measured


def draw(law: Law, key: Key, size: int, threads: int) -> NDArray[np.int64]:
    """Return the noise of the slots 0, 1, … of a stream, the same on any number of threads."""
    out = np.empty(size, np.int64)

    def fill(start: int) -> None:
        NoiseStream(law, key).fill(out[start : start + _PIECE], start)

    pieces = range(0, size, _PIECE)
    if threads > 1 and len(pieces) > 1:
        with ThreadPoolExecutor(max_workers=threads) as pool:
            list(pool.map(fill, pieces))
    else:
        NoiseStream(law, key).fill(out, 0)
    return out
