"""Whole numbers of lower error: estimates from all measurements, made non-negative and consistent from the top down.

Above the last level, least squares say what each child of a node should have; a child whose own children were not
measured, because the descent left it at zero, stays at zero, since nobody knows where below it a count would belong. At
the last measured level the counts are shared by how probable each is to be there (`prior`), for the least expected
absolute error. All of it works on noisy values, so it costs no privacy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treetop.basics.checked import whole_number, whole_numbers
from treetop.basics.copying import writable
from treetop.domain.level import Refinement
from treetop.domain.margin import cells_of, decided_at, depths_alone, stages_of
from treetop.domain.spine import Spine
from treetop.intake.counts import pack
from treetop.measure.blocks import cells_of_rows
from treetop.noise import Law
from treetop.release.estimates import prior
from treetop.release.estimates.measured_tree import measured_tree
from treetop.release.estimates.merged_rows import rows_of_last
from treetop.release.estimates.sharing import share_by_probability
from treetop.release.estimates.under_margins import share_under_margin
from treetop.release.margins import MarginTable, columns_of, find
from treetop.release.measurements import Measurements
from treetop.release.tree import ReleasedTree, spans_at
from treetop.repair.least_squares import from_below
from treetop.repair.sharing import share_by_least_squares

Ints = NDArray[np.int64]

LARGEST = 1 << 56
"""No plan gives a measurement beyond it; one in a folder that was tampered with may be."""
FEWEST = 50
"""Of fewer measurements than this nothing is learned about true counts."""


def lower_error(measurements: Measurements, total: int) -> tuple[NDArray[np.int32], Ints]:
    """Return leaves (by attribute, in spine order) and their counts above zero, from all measurements.

    `total` is the public one, or what was measured of it. Equals are treated alike, by chance that comes from the
    measurements themselves: they are public, and the same ones give the same answer.
    """
    spine, laws = measurements.spine, measurements.laws
    whole_number(total, "the total", least=-LARGEST)
    for seen in measurements.levels:
        if seen is not None:
            whole_numbers(seen.value, "the measurements", most=LARGEST)
    tree = measured_tree(measurements, total)
    estimates = from_below(tree)
    seed = _seed(measurements)
    last = max(index for index, level in enumerate(tree) if index == 0 or level.measured.any())
    count = np.array([max(round(float(estimates[0].value[0])), 0)])
    leaves: list[tuple[Ints, Ints]] = []
    for index in range(last + 1):
        level, leaf = tree[index], spans_at(spine, index, tree[index].nodes)
        single = (leaf[1] - leaf[0] == 1).all(axis=0)
        divided = np.zeros(len(level), dtype=bool)
        if index < last:
            divided[tree[index + 1].parent] = True
        if index > 0:
            first = np.searchsorted(level.parent, np.arange(len(count) + 1))
            law, out = laws[index], np.zeros(len(level), np.int64)
            if index == last and law is not None and single.all() and len(level) >= FEWEST:
                _share_last(law, first, level.value, level.measured, count, seed, out)
            else:
                variance = np.where(np.isfinite(estimates[index].variance), estimates[index].variance, 1.0)
                share_by_least_squares(first, estimates[index].value, variance, divided | single, count, seed, out)
            count = out
        done = single & ~divided & (count > 0)
        leaves.append((leaf[0][:, done], count[done]))
    return _in_order(spine, leaves)


def lower_error_under(
    margins: Sequence[MarginTable], measurements: Measurements, released: ReleasedTree
) -> tuple[NDArray[np.int32], Ints]:
    """Return the same where margins are kept: of the descent's counts, those of the last level are shared anew.

    Coarser counts stay as they are, so that a release gives the same ones again. Where the last level refines several
    attributes at once, rows are what these leave to the last of them; beside margins of several attributes it stays
    as it is, too.
    """
    spine = measurements.spine
    last = max(index for index, law in enumerate(measurements.laws) if law is not None)
    seen, law = measurements.levels[last - 1], measurements.laws[last]
    level = spine.levels[last - 1]
    kept = [table for table in margins if table.exact]
    if seen is None or law is None or len(seen) < FEWEST or (level.is_merged and any(map(_is_joint, kept))):
        return released.nodes, released.count
    above, fanout = released.at(last - 1), released.fanout(last)
    every = rows_of_last(law, level, above, seen, [_alone(margins, spine, part) for part in level.parts])
    own, first = every.count, np.concatenate([[0], np.cumsum(every.cells)])
    rows = np.flatnonzero(own > 0)
    cells = cells_of_rows(np.diff(first), rows)
    first, value, own = np.concatenate([[0], np.cumsum(np.diff(first)[rows])]), seen.value[cells], own[rows]
    counts = np.zeros(len(seen), np.int64)
    stage = stages_of(spine, level)[-1]
    decided = decided_at(stage, [table.margin for table in kept])
    if decided is None:
        shared = np.zeros(len(cells), np.int64)
        _share_last(law, first, value, np.ones(len(cells), np.bool_), own, _seed(measurements), shared)
    else:
        columns = columns_of(kept, spine, decided, stage.attribute)
        others = tuple(0 if one == stage.attribute else depth for one, depth in enumerate(decided))
        nodes = seen.nodes[:, cells].astype(np.int64)
        group = cells_of(spine.trees, others, stage.depths, nodes)
        node = group * columns.shape[-1] + nodes[stage.attribute]
        shared = share_under_margin(law, first, value, node, columns.ravel(), own)
    counts[cells] = shared
    there = counts > 0
    only = np.flatnonzero(fanout == 1)
    alone = above.nodes[:, only].astype(np.int32)
    level.go_down(alone, np.zeros(len(only), np.int64))
    nodes = np.concatenate([seen.nodes[:, there], alone], axis=1)
    leaves = spans_at(spine, last, nodes)[0]
    return _in_order(spine, [(leaves, np.concatenate([counts[there], above.count[only]]))])


def _is_joint(table: MarginTable) -> bool:
    return len(table.margin.attributes) > 1


def _alone(margins: Sequence[MarginTable], spine: Spine, part: Refinement) -> Ints | None:
    """Return the margin of an attribute alone as far as a level refines it, if it is kept."""
    table = find(margins, spine, depths_alone(len(spine.trees), part.attribute, part.depth + 1))
    return None if table is None else table.count


def _share_last(
    law: Law, first: Ints, value: Ints, measured: NDArray[np.bool_], count: Ints, seed: int, out: Ints
) -> None:
    """Share counts among children of which nothing further was measured."""
    fanout = np.diff(first)
    average = np.repeat(count / np.maximum(fanout, 1), fanout)
    useful = measured & (average > 0)
    kind = np.zeros(len(value), np.int64)
    kind[useful] = prior.classes(average[useful])
    learned = prior.learn(law, value[useful], kind[useful])
    share_by_probability(first, writable(value), kind, learned, writable(count), seed, out)


def _seed(measurements: Measurements) -> int:
    digest = hashlib.sha256()
    for level in measurements.levels:
        if level is not None:
            digest.update(np.ascontiguousarray(level.value).tobytes())
    return int.from_bytes(digest.digest()[:7], "little")


def _in_order(spine: Spine, leaves: list[tuple[Ints, Ints]]) -> tuple[NDArray[np.int32], Ints]:
    nodes = np.concatenate([part for part, _ in leaves], axis=1).astype(np.int32)
    count = np.concatenate([part for _, part in leaves])
    order = np.lexsort(pack(spine, nodes)[::-1])
    return nodes[:, order], count[order]
