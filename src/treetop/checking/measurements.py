"""Comparing what a folder says twice of its measurements: by node in evidence.parquet, all in measurements.parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from treetop.measure.evidence import NOTHING, Evidence, LevelEvidence
from treetop.release.folder import EVIDENCE, MEASUREMENTS
from treetop.release.tree import ReleasedTree

Ints = NDArray[np.int64]


def evidence_findings(
    tree: ReleasedTree, evidence: Evidence, levels: Iterable[int], name: str = EVIDENCE
) -> Iterator[str]:
    """Compare what evidence says of the nodes of some levels with the measurements that were kept of these levels.

    Of a level whose measurements were not kept, compare only which nodes have one: an only child has none.
    """
    for index in levels:
        seen, level = evidence.levels[index - 1], tree.spine.levels[index - 1].name
        fanout, parents = tree.fanout(index), tree.parents(index)
        slots = np.where(fanout == 1, 0, fanout)
        if len(seen.slots) == int(slots.sum()):
            measured, highest = _given(tree, index, slots, seen.slots)
            if not (np.array_equal(seen.measured, measured) and np.array_equal(seen.highest, highest)):
                yield f"{name}, level {level}: {_first(seen, measured, highest)} {MEASUREMENTS}"
            continue
        alone = fanout[parents] == 1
        without = slots == np.where(fanout == 1, 0, np.bincount(parents, minlength=len(fanout)))
        if ((seen.measured == NOTHING) != alone).any() or ((seen.highest == NOTHING) != without).any():
            yield f"{name}, level {level}: a node that was measured has no measurement, or one that was not has one"


def _given(tree: ReleasedTree, index: int, slots: Ints, value: Ints) -> tuple[Ints, Ints]:
    """Return what the measurements of a level give: each released node's own, and the highest of those beside them."""
    parents, ranks = tree.parents(index), tree.spine.levels[index - 1].ranks(tree.at(index).nodes)
    several = slots[parents] > 0
    place = (np.cumsum(slots) - slots)[parents[several]] + ranks[several]
    measured = np.full(len(parents), NOTHING)
    measured[several] = value[place]
    beside = np.ones(len(value), dtype=bool)
    beside[place] = False
    highest = np.full(len(slots), NOTHING)
    np.maximum.at(highest, np.repeat(np.arange(len(slots)), slots)[beside], value[beside])
    return measured, highest


def _first(seen: LevelEvidence, measured: Ints, highest: Ints) -> str:
    """Say where evidence differs first from what the measurements give."""
    for what, stated, given in (("measured", seen.measured, measured), ("highest", seen.highest, highest)):
        for row in np.flatnonzero(stated != given)[:1].tolist():
            one, other = ("nothing" if number == NOTHING else f"{number:,}" for number in (stated[row], given[row]))
            return f"{what} of node {row + 1:,} is {one}, but {other} follows from"
    raise AssertionError("the two do not differ")
