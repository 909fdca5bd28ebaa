"""The tables of the experiments: the paper's six made-up ones, made again, and a real one in place of Italy."""

from __future__ import annotations

from pathlib import Path

from experiments.false_discoveries.tables import new_york
from treetop import Unit
from experiments.kit.paper_tables import TABLES, paper_table, with_spine
from treetop.evaluate.trial import Case

TRIP = Unit("trip", contributions=1, neighbours="replace")
"""The paper's unit: one trip each, exchanged for another, so that the total is public."""
MADE_UP = tuple(table.name for table in TABLES)
REAL = "new-york"


def made_up(name: str) -> Case:
    """Make one of the paper's six tables."""
    (wanted,) = (table for table in TABLES if table.name == name)
    spine, counts = with_spine(paper_table(wanted.tree, wanted.density))
    return Case(spine, TRIP, counts)


def real(data: Path) -> Case:
    """Read the flows between the census tracts of New York State, from the folder with the real tables."""
    table = new_york(data)
    return Case(table.spine, TRIP, table.truth)
