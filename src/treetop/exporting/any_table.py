"""Any release as one table: a column per attribute, the count, and its interval where the release has intervals."""

from __future__ import annotations

from treetop.exporting.formats import Content, Format, Request
from treetop.exporting.levels import trees_of
from treetop.exporting.sheet import Sheet


def _make(request: Request) -> Content:
    release, depths, trees = request.release, request.depths, trees_of(request.release)
    names = list(trees)
    if not release.conditions and all(depths[name] == len(tree.levels) - 1 for name, tree in trees.items()):
        table = release.table()
    else:
        table = release.by(*(f"{name}.{trees[name].levels[depths[name]]}" for name in names))
    return Content([Sheet.of("counts.csv", table.rename_columns([*names, *table.column_names[len(names) :]]), "count")])


TABLE = Format(
    "table",
    "any release, for spreadsheets and R: its attributes, count, and lower and upper if it has intervals",
    ("counts.csv",),
    _make,
)
