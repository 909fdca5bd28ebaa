"""Any release as one table: codes and names of its attributes, the count, and its interval if there is one.

The column `outside` marks counts outside their interval.

Rows are in the order in which the codes were listed, attribute by attribute; of flows, the origin comes first.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.errors import ReleaseError
from treetop.exporting.formats import Content, Format, Request
from treetop.exporting.levels import ENDS, Depths, trees_of
from treetop.exporting.page_statements import notes_on
from treetop.exporting.sheet import LARGEST, Sheet, Workbook
from treetop.release.count_table import with_outside
from treetop.release.selection import MOST_ROWS, Selection, with_names
from treetop.release.shards import Leaves

ROWS = 1 << 20
"""Rows of one batch, and of one of the files that rows of several shards are dealt out to."""
MOST_FILES = 256
"""Most files that rows are dealt out to."""
NO_INTERVALS = (
    f"lower and upper are left out: sums at coarser levels have them up to {MOST_ROWS:,} rows. The finest level has "
    "them all"
)


def are_leaves(release: Selection, depths: Depths) -> bool:
    """Whether all leaves of a release are asked for."""
    return not release.ranges and all(depths[name] == len(tree.levels) - 1 for name, tree in trees_of(release).items())


def leaves_of(release: Selection) -> Iterator[Leaves]:
    """Yield the leaves of a release, some at a time."""
    if release.ranges:
        yield release.nodes, release.count
    else:
        yield from release.whole.shards.groups_meeting({})


def as_they_are(file: str, release: Selection, columns: Sequence[str], names: Sequence[str]) -> Sheet:
    """Return some columns of all leaves, under other names, in the order of the spine."""
    tables = (table.select(columns).rename_columns(names) for table in release.batches())
    batches = (batch for table in tables for batch in table.to_batches())
    kinds = [pa.int64() if column in ("count", "lower", "upper") else pa.string() for column in columns]
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    total = release.total - release.unresolved_total
    return Sheet(file, schema, batches, release.leaves, total, _size(release, columns))


def attributes_of(release: Selection) -> list[str]:
    """Return the attributes in the order of their columns: of flows, the origin first."""
    names = list(release.spine.attributes)
    ends = [end for end in ENDS if all(one in names for one in ENDS)]
    return [*ends, *(name for name in names if name not in ends)]


def rows_at(release: Selection, depths: Depths) -> pa.Table:
    """Return one row per combination above zero, with names and intervals if there are any."""
    spine, trees, names = release.spine, trees_of(release), attributes_of(release)
    wanted = tuple(depths[name] + 1 for name in spine.attributes)
    index = next((level.index for level in spine.levels if spine.depths(level.index) == wanted), None)
    # The nodes of a level have intervals however many they are; cells of a table only if they are few.
    if index is not None and not release.conditions:
        found = release.whole.shards.level_nodes(index, None)
        if wanted == spine.finest or sum(len(nodes) for nodes, _ in found) > MOST_ROWS:
            rows = _LevelRows(release, index)
            return rows.table(rows.listed(np.concatenate(list(rows.of_shards()))))
    table = release.table([f"{name}.{trees[name].levels[depths[name]]}" for name in names]).arrow
    table = table.rename_columns([*names, *table.column_names[len(names) :]])
    for name in names:
        nodes = pc.index_in(table[name].combine_chunks(), value_set=trees[name].codes[depths[name]])
        table = with_names(table, name, trees[name], depths[name], nodes)
    return with_outside(table)


@dataclass(frozen=True, eq=False)
class _LevelRows:
    """The nodes of a level at which all attributes are refined, as rows that may lie in files."""

    release: Selection
    index: int

    @property
    def fields(self) -> list[str]:
        """By attribute, the name of the field with its node."""
        return [f"node{attribute}" for attribute in range(len(self.release.spine.trees))]

    @property
    def kind(self) -> np.dtype[np.void]:
        """A row, as it lies in a file."""
        numbers = ["count"] + ([] if self.release.confidence is None else ["lower", "upper"])
        return np.dtype([(name, np.int32) for name in self.fields] + [(name, np.int64) for name in numbers])

    def of_shards(self) -> Iterator[NDArray[np.void]]:
        """Yield the rows, some at a time."""
        for found, bounds in self.release.whole.shards.level_nodes(self.index, self.release.confidence):
            rows = np.empty(len(found), self.kind)
            for field, nodes in zip(self.fields, found.nodes, strict=True):
                rows[field] = nodes
            rows["count"] = found.count
            if bounds is not None:
                rows["lower"], rows["upper"] = bounds.lower, bounds.upper
            yield rows

    def ranks(self, rows: NDArray[np.void]) -> list[NDArray[np.int64]]:
        """Return, for each attribute in the order of the columns, the place of each row's code in its listing."""
        spine, order = self.release.spine, list(self.release.spine.attributes)
        columns = [order.index(name) for name in attributes_of(self.release)]
        depths = spine.depths(self.index)
        return [spine.trees[at].listing(depths[at] - 1)[rows[self.fields[at]]] for at in columns]

    def listed(self, rows: NDArray[np.void]) -> NDArray[np.void]:
        """Return rows in the order in which codes were listed."""
        return rows[np.lexsort(self.ranks(rows)[::-1])]

    def table(self, rows: NDArray[np.void]) -> pa.Table:
        """Return rows with their codes and names."""
        spine, order = self.release.spine, list(self.release.spine.attributes)
        columns, nodes = {}, {}
        for name in attributes_of(self.release):
            at = order.index(name)
            nodes[name] = rows[self.fields[at]].astype(np.int64)
            columns[name] = spine.trees[at].codes[spine.depths(self.index)[at] - 1].take(pa.array(nodes[name]))
        for number in (self.kind.names or ())[len(order) :]:
            columns[number] = pa.array(np.ascontiguousarray(rows[number]))
        table = pa.table(columns)
        for name, own in nodes.items():
            at = order.index(name)
            table = with_names(table, name, spine.trees[at], spine.depths(self.index)[at] - 1, own)
        return with_outside(table)

    def dealt(self, near: Path) -> Iterator[pa.RecordBatch]:
        """Deal all leaves of several shards out to files by their first codes, and yield the files sorted."""
        spine, first = self.release.spine, list(self.release.spine.attributes).index(attributes_of(self.release)[0])
        tree = spine.trees[first]
        # Summed by a generator, whose last leaves are let go before the next shard is read.
        groups = self.release.whole.shards.groups_meeting({})
        number: NDArray[np.int64] = sum(
            (np.bincount(nodes[first], minlength=tree.sizes[-1]) for nodes, _ in groups),
            start=np.zeros(tree.sizes[-1], np.int64),
        )
        listed = np.empty_like(number)
        listed[tree.listing(len(tree.levels) - 1)] = number
        after = np.cumsum(listed)
        parts = int(min(-(-after[-1] // ROWS), MOST_FILES))
        inner = np.searchsorted(after, after[-1] * np.arange(1, parts) // parts, side="right")
        # The codes of the first attribute, by their place in the listing, with which a new file begins.
        bounds = np.unique(np.concatenate([[0], inner, [len(number)]]))
        with ExitStack() as opened:
            files = [opened.enter_context(tempfile.TemporaryFile(dir=near)) for _ in range(len(bounds) - 1)]
            for rows in self.of_shards():
                own = np.searchsorted(bounds, self.ranks(rows)[0], side="right") - 1
                order = np.argsort(own, kind="stable")
                ends = np.searchsorted(own[order], np.arange(len(files) + 1))
                for at in np.flatnonzero(np.diff(ends)).tolist():
                    files[at].write(rows[order[ends[at] : ends[at + 1]]].data)
            for file in files:
                file.seek(0)
                rows = np.frombuffer(file.read(), self.kind)
                file.truncate(0)
                yield from self.table(self.listed(rows)).to_batches(ROWS)


def _size(release: Selection, columns: Sequence[str]) -> int:
    """Return about how many bytes all leaves have as CSV, with codes, names and counts of the usual length."""
    trees, width = trees_of(release), 0
    for column in columns:
        tree = trees.get(column) or trees.get(column.removesuffix("_name"))
        width += 8 if tree is None else 3 + int(pc.sum(pc.binary_length(tree.codes[-1])).as_py() or 0) // tree.sizes[-1]
    return width * release.leaves


def notes_of(request: Request, table: pa.Table) -> tuple[str, ...]:
    """Return remarks on a table."""
    lacking = request.release.confidence is not None and "lower" not in table.column_names
    return (NO_INTERVALS,) if lacking else ()


def _csv(request: Request) -> Content:
    release = request.release
    if are_leaves(release, request.depths) and len(release.whole.shards) > 1:
        rows = _LevelRows(release, len(release.spine.levels))
        schema, batches = rows.table(np.empty(0, rows.kind)).schema, rows.dealt(request.out.absolute().parent)
        size = _size(release, schema.names)
        return Content([Sheet("counts.csv", schema, batches, release.leaves, release.total, size)])
    table = rows_at(release, request.depths)
    return Content([Sheet.of("counts.csv", table, "count")], notes=notes_of(request, table))


def _excel(request: Request) -> Content:
    if are_leaves(request.release, request.depths):
        _refuse_long(request, request.release.leaves)  # before all of them are read
    table = rows_at(request.release, request.depths)
    _refuse_long(request, table.num_rows)
    about = notes_on(request.release, request.depths, request.language)
    return Content([Workbook.of("counts.xlsx", table, about, request.language)], notes=notes_of(request, table))


def _refuse_long(request: Request, rows: int) -> None:
    if rows > LARGEST:
        raise ReleaseError(
            f"{request.out}: would have {rows:,} rows, and a sheet of Excel has at most {LARGEST:,}: export a "
            "coarser `level`, or `to=csv`"
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
