"""Naming, where all of a level is repaired already: what children that are not named have stays at their parents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from treetop.measure.evidence import NOTHING, LevelEvidence, Remainders
from treetop.measure.frontier import Descended, Frontier
from treetop.measure.level import Step

Ints = NDArray[np.int64]


def leave_unnamed(
    step: Step, above: Frontier, found: Descended, named: int, inherited: Ints | None = None
) -> Descended:
    """Leave what children that measured less than `named` have at their parents.

    So it is with only children whose nearest measured ancestor has less than is `inherited`, by the level of that.
    """
    ((seen,),) = found.levels
    whole, only = found.frontier, seen.measured == NOTHING
    low = (seen.measured < named) & ~only
    if inherited is not None:
        low |= only & (whole.seen < inherited[whole.seen_at])
    low &= ~step.must_be(whole.nodes)
    if not low.any():
        return found
    parent = _parents(above, whole, step)
    left = np.bincount(parent[low], found.frontier.count[low], minlength=len(above)).astype(np.int64)
    highest = seen.highest.copy()
    np.maximum.at(highest, parent[low], seen.measured[low])
    ranges = (whole.start, whole.stop) if step.last else (whole.start[~low], whole.stop[~low])
    carried = (whole.seen, whole.seen_at) if step.tests_only_children else ()
    there = np.flatnonzero(left)
    index = np.full(len(there), step.level.index - 1, np.int32)
    return replace(
        found,
        frontier=Frontier(whole.nodes[:, ~low], whole.count[~low], *ranges, *(seen[~low] for seen in carried)),
        levels=((LevelEvidence(seen.measured[~low], highest, seen.slots),),),
        left=(Remainders(index, above.nodes[:, there], left[there]),),
    )


def _parents(above: Frontier, below: Frontier, step: Step) -> Ints:
    """Return which node of a frontier each child belongs to: both are in spine order."""
    nodes = below.nodes.copy()
    step.level.go_up(nodes)
    starts = np.append(True, (nodes[:, 1:] != nodes[:, :-1]).any(axis=0))
    parents: Ints = np.cumsum(starts) - 1
    return parents
