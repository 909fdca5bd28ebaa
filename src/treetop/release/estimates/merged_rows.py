"""Rows of a merged last level: what its attributes but the last leave to it, by how probable each unit is.

As in the descent, one attribute is settled after the other (`treetop.measure.merged`). The cells of a row are shared by
probability, and what that gives to the row's children by an attribute is the target of a block whose columns are the
attribute's margin.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treetop.domain.level import Level, Refinement
from treetop.measure.blocks import FAR
from treetop.measure.merged import Rows, fit_rows
from treetop.noise import Law
from treetop.release.estimates import prior
from treetop.release.estimates.sharing import share_by_probability
from treetop.release.measurements import LevelMeasurements
from treetop.release.tree import LevelNodes
from treetop.repair.state import ASCENDING

Ints = NDArray[np.int64]


def rows_of_last(
    law: Law, level: Level, above: LevelNodes, seen: LevelMeasurements, tables: Sequence[Ints | None]
) -> Rows:
    """Return the rows, zeros among them, of all nodes above that the level divides; by one attribute, these themselves.

    `tables` are the margins of the attributes that it refines, None where there is none.
    """
    fanout = level.fanout(above.nodes)
    there = fanout > 1
    place = np.cumsum(fanout) - fanout  # ties are broken alike whenever they are computed
    rows = Rows(above.nodes[:, there].astype(np.int32), above.count[there], fanout[there], place[there])
    for at, (part, table) in enumerate(zip(level.parts[:-1], tables, strict=False)):
        sums = _sums(law, rows, part, seen, list(zip(level.parts, tables, strict=True))[at:])
        if table is not None:
            groups, far = np.zeros(len(rows.count), np.int64), FAR * law.standard_deviation
            sums = fit_rows(rows, part, groups, table[None, :], sums, sums, far, ASCENDING)
        rows = rows.refined(part, sums)
    return rows


def _sums(
    law: Law, rows: Rows, part: Refinement, seen: LevelMeasurements, left: Sequence[tuple[Refinement, Ints | None]]
) -> Ints:
    """Share the counts of rows among all their cells, and sum up those of each child by an attribute.

    Cells are told apart by what rows and margins lead to expect of them.
    """
    if len(seen) == 0:
        return np.zeros(0, np.int64)
    expected = np.repeat(rows.count.astype(np.float64), rows.cells)
    for one, table in left:
        node = seen.nodes[one.attribute]
        if table is None:
            expected /= np.diff(one.first)[one.above[node]]
        else:
            expected *= table[node] / np.maximum(np.add.reduceat(table, one.first[:-1])[one.above[node]], 1)
    useful, kind = expected > 0, np.zeros(len(seen), np.int64)
    kind[useful] = prior.classes(expected[useful])
    learned = prior.learn(law, seen.value[useful], kind[useful])
    out = np.zeros(len(seen), np.int64)
    share_by_probability(np.concatenate([[0], np.cumsum(rows.cells)]), seen.value, kind, learned, rows.count, 0, out)
    fanout = part.fanout(rows.nodes)
    inner = np.repeat(rows.cells // fanout, fanout)
    sums: Ints = np.add.reduceat(out, np.cumsum(inner) - inner)
    return sums
