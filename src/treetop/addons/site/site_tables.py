"""The tables of a site, as its script reads them: of all attributes together, of each alone, and of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import TIMES
from treetop.domain.table_cells import CellNumbering, below
from treetop.exporting.any_table import attributes_of
from treetop.exporting.levels import Depths, are_dates, counts_at, trees_of
from treetop.exporting.page_statements import carries_no_noise
from treetop.noise import Law
from treetop.noise.sum_noise import sum_margins
from treetop.release.count_table import outside
from treetop.release.intervals.boxes import Boxes
from treetop.release.intervals.nodes import risk_of
from treetop.release.margins import find
from treetop.release.measurements import surviving
from treetop.release.selection import Selection
from treetop.release.zeros import most_of_a_zero, number_of_cells, zeros

MOST = 20_000
"""Most rows of the table of all attributes; the largest are kept."""
ALONE, PAIRS, CELLS = 5_000, 40_000, 100_000
"""Most rows of the table of one attribute or two (the largest are kept), of all pairs, and most cells of a pair."""
WORK = 200_000_000
"""Most leaves that are summed for pairs: a large release has fewer of them."""
TOGETHER, WIDE = 16, 500
"""Most rows that share the risk of one sum, if they were not measured; and most rows of a table with such ranges."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PageRows:
    """The part of a table that is on the page."""

    depths: Depths
    """The attributes of the table, and the depth of each."""
    table: pa.Table = field(repr=False)
    """All rows above zero: codes of the attributes, counts, intervals and names if there are any."""
    content: dict[str, Any]
    """Data of its script: codes and names once each, and rows by number, the largest first and zeros last."""
    number: int
    """The rows above zero of the whole table."""
    total: int
    """Their sum, without remainders at coarser nodes."""
    shown: int
    """Rows above zero that are on the page."""
    zeros: int | None
    """The zeros that are on the page; None if there are too many to list."""
    real: int | None
    """The rows that stand out from the noise; None if not tested."""
    width: int | None = None
    """The median width of the ranges; None if there are none."""
    outside: int = 0
    """Rows on the page with a number outside its range."""


def rows_of(release: Selection, depths: Depths, table: pa.Table, most: int | None = None) -> PageRows:
    """Choose the rows to show of a table that has a row per combination above zero of the attributes in `depths`."""
    most, trees = MOST if most is None else most, trees_of(release)
    names = [name for name in attributes_of(release) if name in depths]
    refined = refinement(release, depths)
    place = [list(release.spine.attributes).index(name) for name in names]
    nodes = np.zeros((len(trees), table.num_rows), np.int64)
    for at, name in zip(place, names, strict=True):
        codes = trees[name].codes[depths[name]]
        nodes[at] = pc.index_in(table[name].combine_chunks(), value_set=codes).to_numpy()
    real = _standing_out(release, refined, nodes)
    count = table["count"].to_numpy()
    order = np.argsort(-count, kind="stable")[:most]
    absent, bound = (None, None)
    if number_of_cells(release, refined) <= most:
        absent, bound = zeros(release, refined, nodes)
    shown = nodes[:, order] if absent is None else np.hstack([nodes[:, order], absent])
    ranges = "lower" in table.column_names
    content: dict[str, Any] = {
        "columns": [
            _column(shown[at], name, trees[name], depths[name], len(names) == 1)
            for at, name in zip(place, names, strict=True)
        ],
        "count": count[order].tolist(),
        "noise": None if real is None else (~real[order]).astype(int).tolist(),
        "absent": None if bound is None else bound.tolist(),
        "exact": carries_no_noise(release, refined),
        **_ranges_of_sums(release, refined, shown),
        "number": len(count),
        **{end: table[end].to_numpy()[order].tolist() if ranges else None for end in ("lower", "upper")},
    }
    return PageRows(
        depths,
        table,
        content,
        number=len(count),
        total=int(count.sum()),
        shown=len(order),
        zeros=None if absent is None else absent.shape[1],
        real=None if real is None else int(np.count_nonzero(real)),
        width=int(np.median(pc.subtract(table["upper"], table["lower"]).to_numpy())) if ranges and len(count) else None,
        outside=int(np.count_nonzero(outside(table)[order])) if ranges else 0,
    )


def totals_of(release: Selection, depths: Depths) -> Iterator[PageRows]:
    """Yield the tables of each attribute alone at every level down to its depth, then those of pairs, small ones first.

    Each number has its own interval: that of its measurement, if it was measured. Of a long table the page has the
    largest rows. The table of all attributes is left out.
    """
    levels = {name: range(depths[name] + 1) for name in attributes_of(release)}
    alone: list[Depths] = [{name: depth} for name, own in levels.items() for depth in own]
    pairs: list[Depths] = [
        {one: at, other: below}
        for one, other in combinations(levels, 2)
        for at in levels[one]
        for below in levels[other]
    ]
    pairs = [chosen for chosen in pairs if min(_cells(release, chosen), release.leaves) <= CELLS]
    pairs.sort(key=lambda chosen: _cells(release, chosen))
    room = PAIRS
    for chosen in [*alone, *pairs[: WORK // max(release.leaves, 1)]]:
        if chosen == depths or (len(chosen) > 1 and room <= 0):
            continue
        table = counts_at(release, depths | chosen, list(chosen), more=True)
        found = rows_of(release, chosen, table, ALONE if len(chosen) == 1 else min(ALONE, room))
        room -= (found.shown + (found.zeros or 0)) * (len(chosen) > 1)
        yield found


def joined(release: Selection, totals: Sequence[PageRows]) -> pa.Table:
    """Return all rows of tables of one attribute or two as one table, which names that of each row."""
    tables = []
    for rows in totals:
        names, table = list(rows.depths), rows.table
        level = [f"{name}.{trees_of(release)[name].levels[depth]}" for name, depth in rows.depths.items()]
        columns = {"table": pa.repeat(TIMES.join(level), table.num_rows)}
        for at, column in enumerate(("first", "second")):
            code = table[names[at]] if at < len(names) else pa.nulls(table.num_rows, pa.string())
            called = f"{names[at]}_name" if at < len(names) else ""
            columns |= {column: code, f"{column}_name": table[called] if called in table.column_names else code}
        columns |= {name: table[name] for name in ("count", "lower", "upper") if name in table.column_names}
        tables.append(pa.table(columns | {"exact": pa.repeat(rows.content["exact"], table.num_rows)}))
    return pa.concat_tables(tables, promote_options="default").combine_chunks()


def _cells(release: Selection, depths: Depths) -> int:
    return number_of_cells(release, refinement(release, depths))


def refinement(release: Selection, depths: Depths) -> tuple[int, ...]:
    """Return how many levels of each attribute of the spine a table refines."""
    return tuple(depths.get(name, -1) + 1 for name in release.spine.attributes)


def highest_zero(release: Selection, depths: Depths) -> int | None:
    """Return the upper bound of any combination that is not listed; None if unknown."""
    index = release.spine.index_at(refinement(release, depths))
    return None if index is None or release.conditions else most_of_a_zero(release, index)


def _standing_out(release: Selection, refined: tuple[int, ...], nodes: Ints) -> NDArray[np.bool_] | None:
    """Return which rows survive the test of their level; None if rows are sums, or measurements were not kept."""
    index, whole = release.spine.index_at(refined), release.whole
    if index is None or release.conditions or release.confidence is None or whole.evidence is None:
        return None
    if whole.selective:  # all that is named survived a test
        return np.ones(nodes.shape[1], np.bool_)
    measured = whole.measured
    tested = measured.tree.at(index).nodes
    if tested.shape != nodes.shape:  # rows of a margin, which has more of them
        return None
    here, there = np.lexsort(nodes), np.lexsort(tested)
    real = np.empty(nodes.shape[1], np.bool_)
    real[here] = surviving(measured, index)[there]
    return real if np.array_equal(nodes[:, here], tested[:, there]) else None


def _ranges_of_sums(release: Selection, refined: tuple[int, ...], nodes: Ints) -> dict[str, Any]:
    """Return what a sum of any rows needs for a range of its own: `sums`, or else `wide`.

    If rows were measured, their errors are independent draws of one law. So the sum of k measurements is off by more
    than the exact quantile of a sum of k draws with at most the risk; it grows with k, so that a later one serves, too.
    Other rows have intervals at one sixteenth of the risk: by the union bound the sum of up to sixteen holds.
    """
    whole, none = release.whole, {"sums": None, "wide": None}
    if release.confidence is None or release.conditions or whole.selective or not nodes.size or release.leaves > WORK:
        return none
    if {"groups", "degrees"} & release.card.get("plan", {}).keys():
        return none  # cumulative counts measure other cells than they release
    if (found := _measurements(release, refined, nodes)) is not None:
        law, value = found
        rows = nodes.shape[1]
        number = np.unique([*range(1, min(rows, 20)), *np.geomspace(1, rows, 60).astype(np.int64).tolist(), rows])
        margin = np.maximum.accumulate(sum_margins(law, number, risk_of(release.confidence) / 2))
        return none | {"sums": {"value": value, "number": number.tolist(), "margin": margin.tolist()}}
    if nodes.shape[1] > WIDE:
        return none
    lower, upper = release.intervals_of(
        _boxes(release, refined, nodes), float(1 - risk_of(release.confidence) / TOGETHER)
    )
    return none | {"wide": {"lower": lower.tolist(), "upper": upper.tolist(), "most": TOGETHER}}


def _measurements(release: Selection, refined: tuple[int, ...], nodes: Ints) -> tuple[Law, list[int | None]] | None:
    """Return the law of a table's measurements, and that of every row, None if it has none; None without any."""
    spine, whole = release.spine, release.whole
    if (margin := find(whole.margins, spine, refined)) is not None:
        return margin.law, margin.measured[margin.cells(_boxes(release, refined, nodes))].tolist()
    index = spine.index_at(refined)
    if index is None or index == 0 or whole.evidence is None:
        return None
    law, seen = whole.measurements.laws[index], whole.measurements.levels[index - 1]
    if law is None or seen is None or not len(seen):
        return None
    table = CellNumbering(spine, refined)
    measured, wanted = (table.numbers(own, refined) for own in (seen.nodes.astype(np.int64), nodes))
    order = np.argsort(measured)
    at = order[np.minimum(np.searchsorted(measured[order], wanted), len(order) - 1)]
    return law, [int(seen.value[i]) if measured[i] == own else None for i, own in zip(at, wanted, strict=True)]


def _boxes(release: Selection, refined: tuple[int, ...], nodes: Ints) -> Boxes:
    """Return the boxes of nodes of a table."""
    spine, leaf = release.spine, np.zeros_like(nodes)
    for attribute, (tree, depth) in enumerate(zip(spine.trees, refined, strict=True)):
        if depth:
            leaf[attribute] = below(tree, depth, len(tree.levels), nodes[attribute])[0]
    parts = [one for level in spine.levels for one in level.parts if refined[one.attribute] == one.depth + 1]
    return Boxes.of_rows(spine, release.ranges, parts, leaf)


def _column(nodes: Ints, name: str, tree: Hierarchy, depth: int, alone: bool) -> dict[str, Any]:
    """Return the codes and names of nodes, each once in the order of their listing, with their parents, and of rows."""
    used, at = np.unique(nodes, return_inverse=True)
    listed = np.argsort(tree.listing(depth)[used], kind="stable")
    rank = np.empty_like(listed)
    rank[listed] = np.arange(len(used))
    code, names = tree.codes[depth].take(pa.array(used[listed])).to_pylist(), tree.names.get(tree.levels[depth])
    called = [None] * len(code) if names is None else names.take(pa.array(used[listed])).to_pylist()
    # A name that is the code is not said twice.
    name_of = [None if said == own else said for said, own in zip(called, code, strict=True)]
    level = tree.levels[depth]
    return {
        "of": name,
        "level": level,
        "dates": are_dates(level, code),
        "code": code,
        "name": name_of if any(name_of) else None,
        "under": tree.codes[depth - 1].take(pa.array(tree.ancestors(depth - 1, depth)[used[listed]])).to_pylist()
        if alone and depth
        else None,
        "at": rank[at.ravel()].tolist(),
    }
