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
from treetop.exporting.sheet import LARGEST, Sheet, Workbook, readme
from treetop.release.selection import MOST_ROWS, Selection, with_names, with_outside
from treetop.release.shards import Leaves, Shards

# Tables of several shards, written one at a time: in spine order, or in the order in which codes were listed.

ROWS = 1 << 20
MOST_FILES = 256
"""Most files that rows are dealt out to."""


def shards_at(release: Selection, depths: Depths) -> Shards | None:
    """Return the shards of a large release if all its leaves are asked for; None if they are in memory."""
    finest = all(depths[name] == len(tree.levels) - 1 for name, tree in trees_of(release).items())
    return release.whole.stored if finest and not release.ranges else None


def leaves_of(release: Selection) -> Iterator[Leaves]:
    """Yield the leaves of a release, some at a time."""
    if release.ranges:
        yield release.nodes, release.count
    else:
        yield from release.whole.shards.groups_meeting({})


def as_they_are(file: str, release: Selection, shards: Shards, columns: Sequence[str], names: Sequence[str]) -> Sheet:
    """Return some columns of all leaves, under other names, in the order of the spine."""
    tables = (table.select(columns).rename_columns(names) for table in release.batches())
    batches = (batch for table in tables for batch in table.to_batches())
    kinds = [pa.int64() if column in ("count", "lower", "upper") else pa.string() for column in columns]
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    return Sheet(file, schema, batches, shards.leaves, release.total, _size(release, columns))


def as_listed(file: str, release: Selection, shards: Shards, names: Sequence[str], near: Path) -> Sheet:
    """Return all leaves with names and bounds, attribute by attribute in the order in which codes were listed."""
    dealt = _Dealt(release, shards, names, near)
    schema = dealt.table(np.empty(0, dealt.kind)).schema
    return Sheet(file, schema, dealt.batches(), shards.leaves, release.total, _size(release, schema.names))


@dataclass(frozen=True, eq=False)
class _Dealt:
    """Rows by the codes of their first attribute."""

    release: Selection
    shards: Shards
    names: Sequence[str]
    near: Path

    @property
    def kind(self) -> np.dtype[np.void]:
        """A row, as it lies in a file."""
        numbers = ["count"] + ([] if self.release.confidence is None else ["lower", "upper"])
        return np.dtype([(name, np.int32) for name in self._fields] + [(name, np.int64) for name in numbers])

    @property
    def _fields(self) -> list[str]:
        return [f"node{attribute}" for attribute in range(len(self.shards.spine.trees))]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Deal all rows out, and yield them sorted."""
        with ExitStack() as opened:
            bounds = self._bounds()
            files = [opened.enter_context(tempfile.TemporaryFile(dir=self.near)) for _ in range(len(bounds) - 1)]
            for rows in self._rows():
                rank = self._ranks(rows)[0]
                own = np.searchsorted(bounds, rank, side="right") - 1
                order = np.argsort(own, kind="stable")
                ends = np.searchsorted(own[order], np.arange(len(files) + 1))
                for number in np.flatnonzero(np.diff(ends)).tolist():
                    files[number].write(rows[order[ends[number] : ends[number + 1]]].data)
            for file in files:
                file.seek(0)
                rows = np.frombuffer(file.read(), self.kind)
                file.truncate(0)
                yield from self.table(rows[np.lexsort(self._ranks(rows)[::-1])]).to_batches(ROWS)

    def _bounds(self) -> NDArray[np.int64]:
        """Return, by their place in the listing, the codes of the first attribute with which a new file begins."""
        first = list(self.shards.spine.attributes).index(self.names[0])
        tree = self.shards.spine.trees[first]
        number = np.zeros(tree.sizes[-1], np.int64)
        for nodes, _ in self.shards.groups_meeting({}):
            number += np.bincount(nodes[first], minlength=len(number))
        listed = np.empty_like(number)
        listed[tree.listing(len(tree.levels) - 1)] = number
        after = np.cumsum(listed)
        files = int(min(-(-after[-1] // ROWS), MOST_FILES))
        inner = np.searchsorted(after, after[-1] * np.arange(1, files) // files, side="right")
        return np.unique(np.concatenate([[0], inner, [len(number)]]))

    def _rows(self) -> Iterator[NDArray[np.void]]:
        confidence, leaf = self.release.confidence, len(self.shards.spine.levels)
        for shard in self.shards:
            rows = np.empty(len(shard.tree.count), self.kind)
            for field, nodes in zip(self._fields, shard.tree.nodes, strict=True):
                rows[field] = nodes
            rows["count"] = shard.tree.count
            if (bounds := shard.intervals(leaf, confidence)) is not None:
                rows["lower"], rows["upper"] = bounds.lower, bounds.upper
            yield rows

    def _ranks(self, rows: NDArray[np.void]) -> list[NDArray[np.int64]]:
        """Return, for each attribute in the order of the columns, the place of each row's code in its listing."""
        trees, order = trees_of(self.release), list(self.shards.spine.attributes)
        return [
            trees[name].listing(len(trees[name].levels) - 1)[rows[self._fields[order.index(name)]]]
            for name in self.names
        ]

    def table(self, rows: NDArray[np.void]) -> pa.Table:
        """Return rows with their codes and names."""
        trees, order = trees_of(self.release), list(self.shards.spine.attributes)
        nodes = {name: rows[self._fields[order.index(name)]].astype(np.int64) for name in self.names}
        columns = {name: trees[name].codes[-1].take(pa.array(nodes[name])) for name in self.names}
        numbers = [name for name in self.kind.names or () if name not in self._fields]
        table = pa.table(columns | {name: pa.array(np.ascontiguousarray(rows[name])) for name in numbers})
        for name in self.names:
            table = with_names(table, name, trees[name], len(trees[name].levels) - 1, nodes[name])
        return with_outside(table)


def _size(release: Selection, columns: Sequence[str]) -> int:
    """Return about how many bytes all leaves have as CSV, with codes, names and counts of the usual length."""
    trees, width = trees_of(release), 0
    for column in columns:
        tree = trees.get(column) or trees.get(column.removesuffix("_name"))
        width += 8 if tree is None else 3 + int(pc.sum(pc.binary_length(tree.codes[-1])).as_py() or 0) // tree.sizes[-1]
    return width * release.leaves


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
    """Return one row per combination above zero, with names and intervals if there are any."""
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
    """Return remarks on a table."""
    lacking = request.release.confidence is not None and "lower" not in table.column_names
    return (NO_INTERVALS,) if lacking else ()


def _csv(request: Request) -> Content:
    release = request.release
    if (shards := shards_at(release, request.depths)) is not None:
        near = request.out.absolute().parent
        return Content([as_listed("counts.csv", release, shards, attributes_of(release), near)])
    table = rows_at(request.release, request.depths)
    return Content([Sheet.of("counts.csv", table, "count")], notes=notes_of(request, table))


def _excel(request: Request) -> Content:
    if (shards := shards_at(request.release, request.depths)) is not None:
        _refuse_long(request, shards.leaves)  # before all of them are read
    table = rows_at(request.release, request.depths)
    _refuse_long(request, table.num_rows)
    about = readme(request.release, request.depths)
    return Content([Workbook.of("counts.xlsx", table, about)], notes=notes_of(request, table))


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
