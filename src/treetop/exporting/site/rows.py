"""The rows that a page holds: the largest of a table, zeros where all fit, and which of them may be noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.exporting.any_table import attributes_of
from treetop.exporting.levels import Depths, trees_of
from treetop.release.outside import outside
from treetop.release.selection import Selection
from treetop.release.surviving import surviving
from treetop.release.zeros import most_of_a_zero, number_of_cells, zeros

MOST = 20_000
"""The most rows that a page holds; the largest are kept."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows:
    """What of a table is on the page."""

    content: dict[str, Any]
    """What its script shows: codes and names once each, and rows by number, the largest first and zeros last."""
    number: int
    """The rows above zero of the whole table."""
    total: int
    """Their sum; what is not resolved so far is in none of them."""
    shown: int
    """Those of them that are on the page."""
    zeros: int | None
    """The zeros that are on the page; None where there are too many to list."""
    highest: int | None
    """The most that any one combination that is not listed may hide; None where that is not known."""
    real: int | None
    """The rows that stand out from the noise; None where that was not tested."""
    width: int | None
    """The median width of the ranges; None where there are none."""
    outside: int = 0
    """The rows on the page whose number lies outside its range."""


def rows_of(release: Selection, depths: Depths, table: pa.Table) -> Rows:
    """Choose what is shown of a table that has a row per combination above zero."""
    names, trees = attributes_of(release), trees_of(release)
    nodes = np.stack([_nodes(table[name], trees[name].codes[depths[name]]) for name in names])
    refined = tuple(depths[name] + 1 for name in release.spine.attributes)
    real = _standing_out(release, refined, nodes[_back(release, names)])
    count = table["count"].to_numpy()
    order = np.argsort(-count, kind="stable")[:MOST]
    absent, most = _zeros(release, refined, nodes[_back(release, names)])
    shown = nodes[:, order] if absent is None else np.hstack([nodes[:, order], absent[_forth(release, names)]])
    content: dict[str, Any] = {
        "columns": [
            _column(own, trees[name].codes[depths[name]], trees[name].names.get(trees[name].levels[depths[name]]))
            for name, own in zip(names, shown, strict=True)
        ],
        "count": count[order].tolist(),
        "noise": None if real is None else (~real[order]).astype(int).tolist(),
        "absent": None if most is None else most.tolist(),
    }
    ranges = "lower" in table.column_names
    for end in ("lower", "upper"):
        content[end] = table[end].to_numpy()[order].tolist() if ranges else None
    return Rows(
        content,
        number=len(count),
        total=int(count.sum()),
        shown=len(order),
        zeros=None if absent is None else absent.shape[1],
        highest=_highest(release, refined),
        real=None if real is None else int(np.count_nonzero(real)),
        width=int(np.median(pc.subtract(table["upper"], table["lower"]).to_numpy())) if ranges and len(count) else None,
        outside=int(np.count_nonzero(outside(table)[order])) if ranges else 0,
    )


def _standing_out(release: Selection, refined: tuple[int, ...], nodes: Ints) -> NDArray[np.bool_] | None:
    """Tell which rows survive the test of their level; None where they are sums, or nothing was kept to test them."""
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


def _zeros(release: Selection, refined: tuple[int, ...], nodes: Ints) -> tuple[Ints | None, Ints | None]:
    """Return the combinations that are not listed and the most of each, where the page has room for all."""
    if number_of_cells(release, refined) > MOST:
        return None, None
    return zeros(release, refined, nodes)


def _highest(release: Selection, refined: tuple[int, ...]) -> int | None:
    index = release.spine.index_at(refined)
    return None if index is None or release.conditions else most_of_a_zero(release, index)


def _nodes(column: pa.ChunkedArray, codes: pa.StringArray) -> Ints:
    found: Ints = pc.index_in(column.combine_chunks(), value_set=codes).to_numpy().astype(np.int64)
    return found


def _column(nodes: Ints, codes: pa.StringArray, names: pa.StringArray | None) -> dict[str, Any]:
    """Return the codes and names of nodes, each once, and which one every row has."""
    used, at = np.unique(nodes, return_inverse=True)
    code = codes.take(pa.array(used)).to_pylist()
    called = [None] * len(code) if names is None else names.take(pa.array(used)).to_pylist()
    # A name that is the code is not said twice.
    name = [None if said == own else said for said, own in zip(called, code, strict=True)]
    return {"code": code, "name": name if any(name) else None, "at": at.ravel().tolist()}


def _back(release: Selection, names: list[str]) -> list[int]:
    """Return where the attributes of the spine are among columns."""
    return [names.index(name) for name in release.spine.attributes]


def _forth(release: Selection, names: list[str]) -> list[int]:
    """Return where columns are among the attributes of the spine."""
    return [list(release.spine.attributes).index(name) for name in names]
