"""The tables of the study: three real ones of trips, and the two sparse ones of the InfTDA paper, made again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import treetop as tt
from experiments.false_discoveries.tables import Table, commuters_in_counties, new_york, slovenia
from treetop.evaluate.paper_tables import Tree, paper_table

TREES: tuple[Tree, ...] = ("binary", "random")


def tables(data: Path | None, quick: bool = False) -> Iterator[Table]:
    """Yield the tables one after the other; `quick`, or without `data`, only the made-up ones."""
    for tree in TREES:
        yield made_up(tree)
    if data is not None and not quick:
        yield slovenia(data)
        yield new_york(data)
        yield commuters_in_counties(data)


def made_up(tree: Tree) -> Table:
    """Make the paper's sparse table on binary or on random trees: one pair in a hundred has trips."""
    trips = paper_table(tree, "sparse")
    places = tt.Hierarchy.from_table(trips.place_table(), trips.levels)
    codes = trips.codes(trips.levels[-1])
    rows = pa.table({"origin": codes[trips.origin], "destination": codes[trips.destination], "count": trips.count})
    return Table.between(f"{tree}-sparse", f"Made up: {tree} tree, sparse", places, rows)
