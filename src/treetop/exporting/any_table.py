"""Any release as one table: codes and names of its attributes, the count, and its interval where there are intervals.

The column `outside` marks counts outside their interval.

Rows are in the order in which the codes were listed, attribute by attribute; of flows, the origin comes first.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop.errors import ReleaseError
from treetop.exporting.formats import Content, Format, Request
from treetop.exporting.levels import ENDS, Depths, trees_of
from treetop.exporting.readme import readme
from treetop.exporting.sheet import Sheet
from treetop.exporting.streamed import as_listed, parts_at
from treetop.exporting.workbook import LARGEST, Workbook
from treetop.release.outside import with_outside
from treetop.release.selection import MOST_ROWS, Selection, with_names

NO_INTERVALS = (
    f"lower and upper are left out: sums at coarser levels have them up to {MOST_ROWS:,} rows. The finest level has "
    "them all"
)


def attributes_of(release: Selection) -> list[str]:
    """Return the attributes in the order of their columns: of flows, the origin first."""
    names = list(release.spine.attributes)
    ends = [end for end in ENDS if all(one in names for one in ENDS)]
    return [*ends, *(name for name in names if name not in ends)]


def rows_at(release: Selection, depths: Depths) -> pa.Table:
    """Return one row a combination above zero, with names and intervals as far as there are any."""
    trees, names = trees_of(release), attributes_of(release)
    table = _of_level(release, depths)
    if table is None:
        table = release.by(*(f"{name}.{trees[name].levels[depths[name]]}" for name in names))
        table = table.rename_columns([*names, *table.column_names[len(names) :]])
    nodes = {}
    for name in names:
        codes = trees[name].codes[depths[name]]
        nodes[name] = pc.index_in(table[name].combine_chunks(), value_set=codes).to_numpy().astype(np.int64)
    order = np.lexsort([trees[name].listing(depths[name])[nodes[name]] for name in reversed(names)])
    table = table.select([*names, *table.column_names[len(names) :]]).take(pa.array(order))
    for name in names:
        table = with_names(table, name, trees[name], depths[name], nodes[name][order])
    return with_outside(table)


def _of_level(release: Selection, depths: Depths) -> pa.Table | None:
    """Return the nodes of a level of the spine, which have intervals however many they are; None at other depths."""
    spine = release.spine
    wanted = tuple(depths[name] + 1 for name in spine.attributes)
    if release.conditions or wanted not in [spine.depths(level.index) for level in spine.levels]:
        return None
    if wanted == spine.finest:
        return release.table()
    index = next(level.index for level in spine.levels if spine.depths(level.index) == wanted)
    found = release.table(spine.splits[index - 1])
    return found if found.num_rows > MOST_ROWS else None


def notes_of(request: Request, table: pa.Table) -> tuple[str, ...]:
    """Return what there is to know of a table."""
    lacking = request.release.confidence is not None and "lower" not in table.column_names
    return (NO_INTERVALS,) if lacking else ()


def _csv(request: Request) -> Content:
    release = request.release
    if (parts := parts_at(release, request.depths)) is not None:
        near = request.out.absolute().parent
        return Content([as_listed("counts.csv", release, parts, attributes_of(release), near)])
    table = rows_at(request.release, request.depths)
    return Content([Sheet.of("counts.csv", table, "count")], notes=notes_of(request, table))


def _excel(request: Request) -> Content:
    if (parts := parts_at(request.release, request.depths)) is not None:
        _refuse_long(request, parts.leaves)  # before all of them are read
    table = rows_at(request.release, request.depths)
    _refuse_long(request, table.num_rows)
    about = readme(request.release, request.depths)
    return Content([Workbook.of("counts.xlsx", table, about)], notes=notes_of(request, table))


def _refuse_long(request: Request, rows: int) -> None:
    if rows > LARGEST:
        raise ReleaseError(
            f"{request.out}: would have {rows:,} rows, and a sheet of Excel has at most {LARGEST:,}: export a coarser "
            "level (--level), or --to csv"
        )


CSV = Format(
    "csv",
    "any release, for spreadsheets and R: codes and names, count, and lower, upper and outside if it has intervals",
    ("counts.csv",),
    _csv,
    aliases=("table",),
)
EXCEL = Format(
    "excel",
    "the same as a workbook, with a sheet that says what the numbers are",
    ("counts.xlsx",),
    _excel,
    suffixes=(".xlsx",),
)
