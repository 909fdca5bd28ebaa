"""From a private table of people, groups or counts of groups to group sizes; every fault is named with its row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from treetop.basics.progress import Progress
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import DataError
from treetop.intake.codebook import Codebook
from treetop.intake.groups.lists import GroupList, Seen, read_ids, read_regions
from treetop.intake.groups.sizes import MOST_GROUPS, GroupSizes
from treetop.intake.weights import Weighing
from treetop.sources import table as tables
from treetop.sources.batch import Batch

Rows: TypeAlias = Literal["people", "groups", "histogram"]
"""What a row of the private table is: a person in a group, a group with its size, or a number of groups of a size."""

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Columns:
    """The columns of the private table; None for what it does not have."""

    region: str | None = None
    """The leaf region."""
    group: str | None = None
    """The id of the group."""
    size: str | None = None
    """The size of the group."""
    quantity: str | None = None
    """What a person adds to the size of the group; 1 when None."""
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
class Reader:
    """How a private table becomes group sizes. All of it is public, and decided before the table is read."""

    regions: Hierarchy
    """The public tree of regions."""
    largest: int
    """The largest size that is told apart; larger groups are counted with it."""
    rows: Rows
    """What a row is."""
    columns: Columns
    """The columns of the table."""
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
        listed = None if self.columns.group is None else self.listed
        counted = _Histogram(self) if listed is None else _ByGroup(self, listed)
        book = Codebook(self.regions.codes[-1])
        for one in tables.batches(table, self.columns.wanted()):
            batch = replace(one, may_skip=False)
            region = self.columns.region
            leaf = None if region is None else read_regions(batch, region, book, self.regions)
            counted.add(batch, leaf)
            if progress is not None:
                progress("reading", batch.done)
        sizes = counted.finish()
        if progress is not None:
            progress("reading", 1.0)
        return sizes

    def table(self, leaf: Integers, size: Integers, number: Integers | int = 1) -> Integers:
        """Count groups by leaf region and size."""
        cells = np.zeros((self.regions.sizes[-1], self.largest + 1), np.int64)
        np.add.at(cells, (leaf, np.minimum(size, self.largest)), number)
        return cells


class _ByGroup:
    """Sizes added up group by group, for the groups of a public list."""

    def __init__(self, reader: Reader, listed: GroupList) -> None:
        self._reader, self._listed = reader, listed
        self._size = np.zeros(listed.number, np.int64)
        people = reader.rows == "people"
        value = reader.columns.quantity if people else reader.columns.size
        self._values = None if value is None else Weighing(value, "value" if people else "size")
        self._value = value
        self._seen = Seen("person" if people else "group")
        self._once = reader.columns.person if people else reader.columns.group

    def add(self, batch: Batch, leaf: Integers | None) -> None:
        group = self._reader.columns.group
        assert group is not None
        ids = read_ids(batch, group)
        at = self._listed.find(batch, group, ids)
        if leaf is not None:
            self._check_region(batch, leaf, at)
        if self._values is None:
            self._size += np.bincount(at, minlength=len(self._size))
        else:
            values = self._values.read(batch)
            if self._reader.rows == "people":
                self._check_most(batch, values)
            np.add.at(self._size, at, values)
        if self._once is not None:
            self._seen.add(batch, ids if self._once == group else read_ids(batch, self._once))

    def finish(self) -> GroupSizes:
        reader = self._reader
        if self._once is not None:
            self._seen.refuse_twice(self._once, reader.regions)
        return GroupSizes(reader.regions, reader.table(self._listed.leaf, self._size))

    def _check_region(self, batch: Batch, leaf: Integers, at: Integers) -> None:
        wrong = np.flatnonzero(self._listed.leaf[at] != leaf)
        if len(wrong):
            row, columns = int(wrong[0]), self._reader.columns
            codes = self._reader.regions.codes[-1]
            here, there = codes[int(leaf[row])].as_py(), codes[int(self._listed.leaf[at[row]])].as_py()
            assert columns.region is not None
            raise DataError(
                f"{batch.place(columns.region, row)}: the group {self._listed.ids[int(at[row])].as_py()!r} is in two "
                f"regions, {here!r} here and {there!r} on the public list: every group is in one"
            )

    def _check_most(self, batch: Batch, values: Integers) -> None:
        most, above = self._reader.most, np.flatnonzero(values > self._reader.most)
        if len(above):
            row = int(above[0])
            assert self._value is not None
            raise DataError(
                f"{batch.place(self._value, row)}: the value is {values[row]}, above the {most} that one person "
                "adds at most: correct the table, or plan for more"
            )


class _Histogram:
    """Groups counted by region and size, row by row."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        columns = reader.columns
        assert columns.size is not None
        self._sizes = Weighing(columns.size, "size")
        self._numbers = None if columns.number is None else Weighing(columns.number, "number of groups")
        self._cells = np.zeros((reader.regions.sizes[-1], reader.largest + 1), np.int64)
        self._seen = Seen("group")

    def add(self, batch: Batch, leaf: Integers | None) -> None:
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
        reader, cells = self._reader, self._cells
        if reader.columns.group is not None:
            self._seen.refuse_twice(reader.columns.group, reader.regions)
        if reader.listed is not None:
            cells[:, 0] += self._empty(reader.listed)
        elif reader.number is not None and int(cells.sum()) != reader.number:
            raise DataError(
                f"the table has {int(cells.sum()):,} groups, but the plan says that there are {reader.number:,}, which "
                "is public: the table must have every group, those of size 0 as well, and no other"
            )
        return GroupSizes(reader.regions, cells)

    def _empty(self, listed: GroupList) -> Integers:
        """Return how many listed groups of each region the table does not have: nobody is in them."""
        missing: Integers = listed.by_region - self._cells.sum(axis=1)
        if missing.min() < 0:
            self._refuse_more(listed, int(missing.argmin()))
        return missing

    def _refuse_more(self, listed: GroupList, leaf: int) -> NoReturn:
        code = self._reader.regions.codes[-1][leaf].as_py()
        raise DataError(
            f"the region {code!r} has {int(self._cells[leaf].sum()):,} groups in the table, but only "
            f"{int(listed.by_region[leaf]):,} on the public list ({listed.name}), which does not cover the data: "
            "complete it from a public source"
        )


_ROWS = {"people": "people", "groups": "groups", "histogram": "numbers of groups"}
_WORDS = {
    "region": "region",
    "group": "group's id",
    "size": "size",
    "quantity": "quantity",
    "number": "number of groups",
    "person": "person's id",
}
