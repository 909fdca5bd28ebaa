"""Groups as they are read: public lists, and the sizes of private groups."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from treetop._util.choices import nearest, with_article
from treetop._util.dtypes import Ints
from treetop._util.numbers import whole
from treetop._util.system import Progress
from treetop.counts.codebook import Codebook
from treetop.counts.encode import Weighing, first_unknown
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import DataError, PlanError
from treetop.io import table as tables
from treetop.io.header import is_unvouched, refuse_code
from treetop.io.row_batch import RowBatch, as_text, first_missing
from treetop.io.source import as_public

# The public list of groups: which there are, and in which region each of them is.


@dataclass(frozen=True, eq=False, repr=False)
class GroupList:
    """All groups that may have somebody in them; make one with `read`. Nothing in it is private."""

    regions: Hierarchy
    ids: pa.StringArray
    leaf: Ints
    name: str = field(default="the list")
    """Where it was read from, as messages name it."""

    @staticmethod
    def read(table: tables.Table, regions: Hierarchy, group: str = "group", region: str = "region") -> GroupList:
        """Read a public table with a row per group: its id, and the code of its leaf region.

        >>> places = Hierarchy.flat(["east", "west"])
        >>> GroupList.read(pa.table({"group": ["h1", "h2"], "region": ["west", "west"]}), places)
        GroupList(2 groups in 2 regions)
        """
        book = Codebook(regions.codes[-1])
        ids, leaves, seen = [], [], Seen("group")
        where = "the list"
        for batch in tables.batches(as_public(table), [group, region]):
            leaf = read_regions(batch, region, book, regions)
            names = read_ids(batch, group)
            seen.add(batch, names, leaf)
            ids.append(names)
            leaves.append(leaf)
            where = batch.where
        seen.refuse_twice(group, regions)
        return GroupList(regions, pa.concat_arrays(ids), np.concatenate(leaves), where)

    @property
    def number(self) -> int:
        """How many groups there are."""
        return len(self.leaf)

    @cached_property
    def by_region(self) -> Ints:
        """How many groups each leaf region has."""
        return np.bincount(self.leaf, minlength=self.regions.sizes[-1]).astype(np.int64)

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of ids and regions, independent of the order of the rows."""
        codes = self.regions.codes[-1].take(pa.array(self.leaf))
        rows = pa.table({"group": self.ids, "region": codes}).sort_by("group")
        digest = hashlib.sha256()
        for batch in rows.to_batches(max_chunksize=1 << 16):
            for column in batch.columns:
                digest.update(pc.binary_length(column).to_numpy().astype("<i4").tobytes())
                digest.update("".join(column.to_pylist()).encode())
        return digest.hexdigest()

    @cached_property
    def book(self) -> Codebook:
        """Finds the position of a group by its id."""
        return Codebook(self.ids)

    def find(self, batch: RowBatch, column: str, ids: pa.StringArray) -> Ints:
        """Return the position of every row's group, and refuse one that is not listed."""
        number = self.book.find(ids)
        if (unknown := first_unknown(ids, number, "groups")) is not None:
            raise DataError(
                f"{batch.place(column, unknown.row)}: the group {unknown.code!r} is not on the public list"
                f"{unknown.more}: the list ({self.name}) must hold every group that may have somebody in it. Complete "
                "it from a public source"
            )
        return number

    def __repr__(self) -> str:
        return f"GroupList({self.number:,} groups in {self.regions.sizes[-1]:,} regions)"


class Seen:
    """The ids of the rows so far, and where they stand: for finding one that stands twice."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._ids: list[pa.StringArray] = []
        self._leaves: list[Ints] = []
        self._batches: list[RowBatch] = []

    def add(self, batch: RowBatch, ids: pa.StringArray, leaf: Ints | None = None) -> None:
        """Add the rows of a batch."""
        none = pa.RecordBatch.from_pylist([], batch.rows.schema)
        self._batches.append(RowBatch(none, batch.where, batch.first, batch.done, batch.numbers))
        self._ids.append(ids)
        if leaf is not None:
            self._leaves.append(leaf)

    def refuse_twice(self, column: str, regions: Hierarchy) -> None:
        """Refuse an id that stands in two rows, naming both."""
        encoded = pa.chunked_array(self._ids, pa.string()).combine_chunks().dictionary_encode()
        code = encoded.indices.to_numpy(zero_copy_only=False)
        _, first = np.unique(code, return_index=True)
        if len(first) == len(code):
            return
        again = np.ones(len(code), bool)
        again[first] = False
        row = int(again.argmax())
        before = int(first[code[row]])
        subject = f"the {self._what} {encoded.dictionary[int(code[row])].as_py()!r}"
        if self._leaves:
            leaf = np.concatenate(self._leaves)
            if leaf[row] != leaf[before]:
                region, other = (regions.codes[-1][int(leaf[at])].as_py() for at in (before, row))
                raise DataError(
                    f"{self._place(row, column)}: {subject} is in two regions, {region!r} in row "
                    f"{self._number(before)} and {other!r} here: every {self._what} is in one"
                )
        raise DataError(
            f"{self._place(row, column)}: {subject} stands twice, first in row {self._number(before)}: "
            "give each one row"
        )

    def _place(self, row: int, column: str) -> str:
        for batch, ids in zip(self._batches, self._ids, strict=True):
            if row < len(ids):
                return batch.place(column, row)
            row -= len(ids)
        raise IndexError(row)

    def _number(self, row: int) -> str:
        return self._place(row, "").rpartition(" ")[2]


def read_regions(batch: RowBatch, column: str, book: Codebook, regions: Hierarchy) -> Ints:
    """Return the leaf region of every row; refuse a code that is not in the hierarchy."""
    if batch.first == 0 and is_unvouched(batch.rows.schema):
        refuse_code(column, regions.codes, batch.where)
    codes = regions.read(batch.rows.column(column), column)
    number = book.find(codes)
    if (unknown := first_unknown(codes, number)) is not None:
        place = batch.place(column, unknown.row)
        if not unknown.code:
            raise DataError(f"{place}: the region is missing.{batch.hint(unknown.row)}".removesuffix("."))
        hint = nearest(unknown.code, regions.codes[-1].slice(0, 20_000).to_pylist())
        raise DataError(
            f"{place}: {unknown.code!r} is not {with_article(regions.levels[-1])} code in the hierarchy of the regions"
            f"{hint}{unknown.more}: the hierarchy must hold all of them"
        )
    return number


def read_ids(batch: RowBatch, column: str) -> pa.StringArray:
    """Return the ids of the rows; refuse a row without one."""
    ids = as_text(batch.rows.column(column), column)
    row = first_missing(ids)
    if row is not None:
        raise DataError(f"{batch.place(column, row)}: the id is missing.{batch.hint(row)}".removesuffix("."))
    return ids


# The private side of a release of group sizes: how many groups of each size are in each region.

MOST_GROUPS = 1 << 34
MOST_CELLS = 1 << 27
CELL_BYTES = 80
"""Approximate memory per count while group sizes are measured and repaired, in bytes."""


@dataclass(frozen=True, eq=False, repr=False)
class GroupSizes:
    """Private: the number of groups by leaf region and size."""

    regions: Hierarchy
    number: Ints
    """`number[r, s]` groups of size s are in leaf region r; the last size stands for all that are larger."""

    def __post_init__(self) -> None:
        leaves = self.regions.sizes[-1]
        if self.number.dtype != np.int64 or self.number.ndim != 2 or len(self.number) != leaves:
            raise DataError(f"group sizes are int64 with {leaves} rows, one a leaf region, and a column for each size")
        if self.number.shape[1] < 2:
            raise DataError("group sizes need columns for size 0 and at least one other")
        if self.number.min() < 0:
            raise DataError("a number of groups is negative: check that the number column holds counts")
        if self.number.sum(dtype=np.float64) > MOST_GROUPS:
            raise DataError(f"there are more than {MOST_GROUPS:,} groups: check that the number column holds counts")

    @staticmethod
    def from_rows(
        regions: Hierarchy, leaf: ArrayLike, size: ArrayLike, number: ArrayLike | None = None, *, largest: int
    ) -> GroupSizes:
        """Read rows of leaf region, size and number of groups; without numbers each row is one group.

        Leaf regions are codes, or numbers of leaves. Groups above the `largest` size are counted there, never dropped;
        groups without anybody in them have size 0.

        >>> places = Hierarchy.flat(["east", "west"])
        >>> GroupSizes.from_rows(places, ["east", "west", "east"], [1, 9, 0], [5, 1, 2], largest=3).number.tolist()
        [[2, 5, 0, 0], [0, 0, 0, 1]]
        """
        check_cells(regions, largest)
        given = np.asarray(leaf)
        if given.ndim != 1:
            raise DataError(f"leaf regions are one column, not an array of shape {given.shape}")
        if np.issubdtype(given.dtype, np.integer):
            if len(given) and not 0 <= given.min() <= given.max() < regions.sizes[-1]:
                raise DataError(f"leaf regions are numbered from 0 to {regions.sizes[-1] - 1}; some are not among them")
            rows = given.astype(np.int64)
        else:
            codes = [str(code) for code in given.tolist()]
            rows = regions.encode(pa.array(codes, pa.string()))
            if (rows < 0).any():
                code = codes[int((rows < 0).argmax())]
                raise DataError(f"{code!r} is not a leaf region; the hierarchy must hold all of them")
        sizes = _whole(size, "size")
        counts = np.ones(len(rows), np.int64) if number is None else _whole(number, "number of groups")
        if not len(rows) == len(sizes) == len(counts):
            raise DataError(
                f"there are {len(rows)} leaf regions, {len(sizes)} sizes and {len(counts)} numbers: one a row"
            )
        for subject, values in (("size", sizes), ("number of groups", counts)):
            if len(values) and values.min() < 0:
                raise DataError(
                    f"row {int(values.argmin()) + 1} has the {subject} {values.min()}: it cannot be negative"
                )
        if counts.sum(dtype=np.float64) > MOST_GROUPS:
            raise DataError(f"there are more than {MOST_GROUPS:,} groups: check that the number column holds counts")
        table = np.zeros((regions.sizes[-1], largest + 1), np.int64)
        np.add.at(table, (rows, np.minimum(sizes, largest)), counts)
        return GroupSizes(regions, table)

    @property
    def largest(self) -> int:
        """The largest size, which stands for larger ones as well."""
        return int(self.number.shape[1]) - 1

    @cached_property
    def digest(self) -> bytes:
        """A hash of all numbers. It binds the noise to the data and never leaves the process."""
        digest = hashlib.blake2b(repr(self.number.shape).encode(), digest_size=32)
        digest.update(np.ascontiguousarray(self.number).data.cast("B"))
        return digest.digest()

    def __repr__(self) -> str:
        return "GroupSizes(private)"


def _whole(values: ArrayLike, what: str) -> Ints:
    given = np.asarray(values)
    if given.ndim != 1 or not (np.issubdtype(given.dtype, np.integer) or given.size == 0):
        raise DataError(f"the column of the {what} holds {given.dtype}: give whole numbers, one a row")
    return given.astype(np.int64)


def check_cells(regions: Hierarchy, largest: int, by: str = "") -> int:
    """Return how many counts there are of every region and size; refuse more than a repair takes."""
    if whole(largest) is None:
        raise PlanError(f"largest is {largest!r}: give the largest size, a whole number, 1 or more")
    nodes = 1 + sum(regions.sizes)
    cells = nodes * (largest + 1)
    if cells > MOST_CELLS:
        raise PlanError(
            f"{nodes:,} regions with {largest + 1:,} sizes are {cells:,} counts, more than the {MOST_CELLS:,} that can "
            f"be repaired{by}, and about {CELL_BYTES * cells:,} bytes: lower largest"
        )
    return cells


# From a private table of people, groups or counts of groups to group sizes; every fault is named with its row.

Rows: TypeAlias = Literal["people", "groups", "histogram"]
"""What a row of the private table is: a person in a group, a group with its size, or a number of groups of a size."""


@dataclass(frozen=True)
class GroupColumns:
    """The columns of the private table; None for absent ones."""

    region: str | None = None
    group: str | None = None
    size: str | None = None
    quantity: str | None = None
    """Column with a person's contribution to the group's size; each person adds 1 if None."""
    number: str | None = None
    """How many groups a row stands for; 1 when None."""
    person: str | None = None
    """The id of the person, so that one who stands twice is found."""

    def wanted(self) -> list[str]:
        """Return the columns that there are, each once."""
        given = (self.region, self.group, self.size, self.quantity, self.number, self.person)
        return list(dict.fromkeys(name for name in given if name is not None))


NEEDED: Mapping[Rows, Sequence[str]] = {
    "people": ("group",),
    "groups": ("region", "size"),
    "histogram": ("region", "size", "number"),
}
ALLOWED: Mapping[Rows, Sequence[str]] = {
    "people": ("group", "region", "quantity", "person"),
    "groups": ("region", "size", "group"),
    "histogram": ("region", "size", "number"),
}


@dataclass(frozen=True, eq=False)
class GroupTableReader:
    """How a private table becomes group sizes. All of it is public, and decided before the table is read."""

    regions: Hierarchy
    largest: int
    """The largest size that is told apart; larger groups are counted with it."""
    rows: Rows
    columns: GroupColumns
    number: int | None
    """How many groups there are: public, and the table must agree; None for a public table, which may have any."""
    listed: GroupList | None = None
    """The public list of groups; with it, groups that the table does not have are counted with size 0."""
    most: int = 1
    """The most that a person adds to the size of a group."""

    def __post_init__(self) -> None:
        for name in NEEDED[self.rows]:
            if getattr(self.columns, name) is None:
                raise DataError(f"a table of {_ROWS[self.rows]} needs a column with the {_WORDS[name]}: name it")
        for name in _WORDS:
            if getattr(self.columns, name) is not None and name not in ALLOWED[self.rows]:
                raise DataError(
                    f"a table of {_ROWS[self.rows]} has no use for the {_WORDS[name]}: leave the column out"
                )
        if self.rows == "people" and self.listed is None:
            raise DataError(
                "a table of people does not say which groups are empty: give the public list of groups, so that "
                "whether a group is empty stays hidden"
            )

    def read(self, table: tables.Table, progress: Progress | None = None) -> GroupSizes:
        """Read the table. Sizes above the largest are counted with it, and no group is dropped."""
        # Without a list, or without ids, nobody is looked up: groups are counted row by row.
        listed, group, region = self.listed, self.columns.group, self.columns.region
        counted = _Histogram(self) if listed is None or group is None else _ByGroup(self, listed, group)
        book = Codebook(self.regions.codes[-1])
        for one in tables.batches(table, self.columns.wanted()):
            batch = replace(one, may_skip=False)
            leaf = None if region is None else read_regions(batch, region, book, self.regions)
            counted.add(batch, leaf)
            if progress is not None:
                progress("reading", batch.done)
        sizes = counted.finish()
        if progress is not None:
            progress("reading", 1.0)
        return sizes


class _ByGroup:
    """Sizes added up group by group, for the groups of a public list."""

    def __init__(self, reader: GroupTableReader, listed: GroupList, group: str) -> None:
        self._reader, self._listed, self._group = reader, listed, group
        self._size = np.zeros(listed.number, np.int64)
        self._people = reader.rows == "people"
        self._value = reader.columns.quantity if self._people else reader.columns.size
        what = "value" if self._people else "size"
        self._values = None if self._value is None else Weighing(self._value, what)
        self._seen = Seen("person" if self._people else "group")
        self._once = reader.columns.person if self._people else group

    def add(self, batch: RowBatch, leaf: Ints | None) -> None:
        reader, listed = self._reader, self._listed
        ids = read_ids(batch, self._group)
        at = listed.find(batch, self._group, ids)
        if leaf is not None and reader.columns.region is not None and (listed.leaf[at] != leaf).any():
            row, codes = int((listed.leaf[at] != leaf).argmax()), reader.regions.codes[-1]
            here, there = codes[int(leaf[row])].as_py(), codes[int(listed.leaf[at[row]])].as_py()
            raise DataError(
                f"{batch.place(reader.columns.region, row)}: the group {listed.ids[int(at[row])].as_py()!r} is in two "
                f"regions, {here!r} here and {there!r} on the public list: every group is in one"
            )
        if self._values is None or self._value is None:
            self._size += np.bincount(at, minlength=len(self._size))
        else:
            values = self._values.read(batch)
            above = np.flatnonzero(values > reader.most)
            if self._people and len(above):
                raise DataError(
                    f"{batch.place(self._value, int(above[0]))}: the value is {values[above[0]]}, above the "
                    f"{reader.most} that one person adds at most: correct the table, or plan for more"
                )
            np.add.at(self._size, at, values)
        if self._once is not None:
            self._seen.add(batch, ids if self._once == self._group else read_ids(batch, self._once))

    def finish(self) -> GroupSizes:
        regions, largest = self._reader.regions, self._reader.largest
        if self._once is not None:
            self._seen.refuse_twice(self._once, regions)
        cells = np.zeros((regions.sizes[-1], largest + 1), np.int64)
        np.add.at(cells, (self._listed.leaf, np.minimum(self._size, largest)), 1)
        return GroupSizes(regions, cells)


class _Histogram:
    """Groups counted by region and size, row by row."""

    def __init__(self, reader: GroupTableReader) -> None:
        self._reader = reader
        columns = reader.columns
        assert columns.size is not None
        self._sizes = Weighing(columns.size, "size")
        self._numbers = None if columns.number is None else Weighing(columns.number, "number of groups")
        self._cells = np.zeros((reader.regions.sizes[-1], reader.largest + 1), np.int64)
        self._seen = Seen("group")

    def add(self, batch: RowBatch, leaf: Ints | None) -> None:
        reader = self._reader
        assert leaf is not None
        sizes = self._sizes.read(batch)
        number = 1 if self._numbers is None else self._numbers.read(batch)
        np.add.at(self._cells, (leaf, np.minimum(sizes, reader.largest)), number)
        if self._cells.sum(dtype=np.float64) > MOST_GROUPS:
            raise DataError(f"{batch.where}: there are more than {MOST_GROUPS:,} groups: check that it holds counts")
        if reader.columns.group is not None:
            self._seen.add(batch, read_ids(batch, reader.columns.group), leaf)

    def finish(self) -> GroupSizes:
        reader, cells, listed = self._reader, self._cells, self._reader.listed
        if reader.columns.group is not None:
            self._seen.refuse_twice(reader.columns.group, reader.regions)
        if listed is not None:
            empty = listed.by_region - cells.sum(axis=1)  # listed groups that the table does not have
            if empty.min() < 0:
                leaf = int(empty.argmin())
                raise DataError(
                    f"the region {reader.regions.codes[-1][leaf].as_py()!r} has {int(cells[leaf].sum()):,} groups in "
                    f"the table, but only {int(listed.by_region[leaf]):,} on the public list ({listed.name}), which "
                    "does not cover the data: complete it from a public source"
                )
            cells[:, 0] += empty
        elif reader.number is not None and int(cells.sum()) != reader.number:
            raise DataError(
                f"the table has {int(cells.sum()):,} groups, but the plan says that there are {reader.number:,}, which "
                "is public: the table must have every group, those of size 0 as well, and no other"
            )
        return GroupSizes(reader.regions, cells)


_ROWS = {"people": "people", "groups": "groups", "histogram": "numbers of groups"}
_WORDS = {
    "region": "region",
    "group": "group's id",
    "size": "size",
    "quantity": "quantity",
    "number": "number of groups",
    "person": "person's id",
}
