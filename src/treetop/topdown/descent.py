"""The descent: from the total down to the leaves, subtree by subtree, the same on any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np

from treetop.counts import Counts
from treetop.noise import Key, Law, NoiseStream
from treetop.topdown.frontier import Frontier
from treetop.topdown.level import CHUNK, Step, refine

MOST_SUBTREES = 64
"""The tree is cut at its deepest level with at most this many public nodes."""

Progress = Callable[[str, float], None]
"""Told what is being done, and how much of it is done, from 0 to 1."""


@dataclass(frozen=True)
class Descent:
    """What a descent does, decided before private data is read."""

    attributes: int
    """The number of attributes."""
    total: Law | None
    """The noise of the total; None where the total is public."""
    steps: tuple[Step, ...]
    """The levels below the root."""

    @property
    def cut(self) -> int:
        """The level at which the tree is cut into subtrees: a function of the public tree only."""
        return max((step.level.index for step in self.steps if step.level.nodes <= MOST_SUBTREES), default=0)


def descend(
    descent: Descent,
    counts: Counts,
    key: Key,
    threads: int = 1,
    progress: Progress | None = None,
    chunk: int = CHUNK,
) -> Frontier:
    """Run the descent and return the retained leaves in spine order.

    The noise of a node is a function of the key and the node, so the result does not depend on `threads`, on `chunk`,
    or on which subtree is finished first.
    """
    root = Frontier.root(descent.attributes, _total(descent.total, counts, key), len(counts))
    top = _subtree(descent.steps[: descent.cut], counts, root, key, chunk)
    below = descent.steps[descent.cut :]
    subtrees = [top[i : i + 1] for i in range(len(top))]
    # The largest first: a long one that starts last would leave the other threads idle. Released counts, not true ones.
    largest_first = sorted(range(len(subtrees)), key=lambda i: -int(subtrees[i].count[0]))
    leaves: dict[int, Frontier] = {}
    done, everything = 0, max(int(top.count.sum()), 1)
    with ThreadPoolExecutor(max_workers=max(threads, 1)) as pool:
        running = {pool.submit(_subtree, below, counts, subtrees[i], key, chunk): i for i in largest_first}
        for finished in as_completed(running):
            i = running[finished]
            leaves[i] = finished.result()
            done += int(subtrees[i].count[0])
            if progress is not None:
                progress("descending", done / everything)
    return Frontier.concatenate([leaves[i] for i in range(len(subtrees))], descent.attributes)


def _total(law: Law | None, counts: Counts, key: Key) -> int:
    if law is None:
        return counts.total
    noise = np.empty(1, np.int64)
    NoiseStream(law, key.derive("total")).fill(noise, 0)
    return max(counts.total + int(noise[0]), 0)


def _subtree(steps: Sequence[Step], counts: Counts, node: Frontier, key: Key, chunk: int) -> Frontier:
    """Descend from one node: a pure function, so that any engine may run it, and run it again."""
    if len(node) == 0:
        return node
    name = [int(number) for number in node.nodes[:, 0]]
    frontier = node
    for step in steps:
        frontier = refine(step, counts, frontier, key.derive("subtree", step.level.index, *name), chunk)
    return frontier
