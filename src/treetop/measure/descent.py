"""The descent: from the total down to the leaves, subtree by subtree, the same on any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from treetop.basics.progress import Progress
from treetop.measure.evidence import Witness
from treetop.measure.frontier import Frontier
from treetop.measure.level import CHUNK, Step, least_named, refine
from treetop.measure.measure import measure_total
from treetop.noise import Key, Law
from treetop.read.counts import Counts

LARGEST_TRUNK = 1 << 14
"""The trunk ends at the deepest level with at most this many public nodes."""
MOST_SUBTREES = 64
"""Below the trunk the tree is cut into at most this many subtrees."""


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
    def trunk(self) -> int:
        """The level down to which the tree is descended in one piece: a function of the public tree only."""
        return max((step.level.index for step in self.steps if step.level.nodes <= LARGEST_TRUNK), default=0)


def descend(
    descent: Descent,
    counts: Counts,
    key: Key,
    threads: int = 1,
    progress: Progress | None = None,
    chunk: int = CHUNK,
    witness: Witness | None = None,
) -> Frontier:
    """Run the descent and return the retained leaves in spine order; a witness takes down what is measured.

    The noise of a node is a function of the key, its subtree and its place among the nodes retained there. So the
    result does not depend on `threads`, on `chunk`, or on which subtree is finished first.
    """
    total = measure_total(counts, descent.total, key.derive("total"))
    root = Frontier.root(descent.attributes, total, len(counts))
    if witness is not None and descent.total is not None:
        witness.total = total
    above, below = descent.steps[: descent.trunk], descent.steps[descent.trunk :]
    (trunk,) = _levels(above, counts, [root], [key.derive("trunk")], chunk, [witness])
    if not below or len(trunk) == 0:
        if witness is not None:
            witness.join([], len(below))
        if progress is not None:
            progress("descending", 1.0)
        return trunk
    subtrees = _cut(trunk, below)
    keys = [key.derive("subtree", number) for number in range(len(subtrees))]
    witnesses = [None if witness is None else Witness(witness.every) for _ in subtrees]
    with ThreadPoolExecutor(max_workers=max(threads, 1)) as pool:
        run = pool.map if threads > 1 else map
        if any(step.tests_together for step in below):
            leaves = _levels(below, counts, subtrees, keys, chunk, witnesses, run, progress)
        else:
            leaves = _subtrees(below, counts, subtrees, keys, chunk, witnesses, run, progress)
    if witness is not None:
        witness.join([seen for seen in witnesses if seen is not None], len(below))
    return Frontier.concatenate(leaves, descent.attributes)


def _cut(trunk: Frontier, below: Sequence[Step]) -> list[Frontier]:
    """Cut below the trunk into parts with about the same released count, more of them if there is more to do.

    It looks at released values only, so that the same release is cut in the same way everywhere.
    """
    level = below[0].level
    node = trunk.nodes[level.attribute]
    slots = int((level.first[node + 1] - level.first[node]).sum())
    parts = min(max(slots * len(below) // (2 * CHUNK), 1), MOST_SUBTREES)
    done = np.cumsum(trunk.count)
    bounds = np.searchsorted(done, done[-1] * np.arange(1, parts) // parts, side="right")
    return [trunk[start:stop] for start, stop in pairwise([0, *bounds.tolist(), len(trunk)]) if start < stop]


def _subtrees(
    steps: Sequence[Step],
    counts: Counts,
    subtrees: Sequence[Frontier],
    keys: Sequence[Key],
    chunk: int,
    witnesses: Sequence[Witness | None],
    run: Callable[..., Any],
    progress: Progress | None,
) -> list[Frontier]:
    """Descend each subtree by itself: a pure function, so that any engine may run it, and run it again."""

    def alone(subtree: Frontier, key: Key, witness: Witness | None) -> Frontier:
        return _levels(steps, counts, [subtree], [key], chunk, [witness])[0]

    leaves: list[Frontier] = []
    for finished in run(alone, subtrees, keys, witnesses):
        leaves.append(finished)
        if progress is not None:
            progress("descending", len(leaves) / len(subtrees))
    return leaves


def _levels(
    steps: Sequence[Step],
    counts: Counts,
    parts: Sequence[Frontier],
    keys: Sequence[Key],
    chunk: int,
    witnesses: Sequence[Witness | None],
    run: Callable[..., Any] = map,
    progress: Progress | None = None,
) -> list[Frontier]:
    """Descend some parts of the tree level by level, all of one level before the next."""
    for done, step in enumerate(steps, start=1):
        own = [key.derive("level", step.level.index) for key in keys]
        named = least_named(step, counts, parts, own, chunk, run)
        for witness in witnesses:
            if witness is not None:
                witness.begin_level()
        parts = list(
            run(
                lambda nodes, key, witness, step=step, named=named: refine(
                    step, counts, nodes, key, chunk, witness, named
                ),
                parts,
                own,
                witnesses,
            )
        )
        if progress is not None:
            progress("descending", done / len(steps))
    return list(parts)
