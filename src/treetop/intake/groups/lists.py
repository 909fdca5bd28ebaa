"""The public list of groups: which there are, and in which region each of them is."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.basics.nearest import nearest
from treetop.basics.wording import with_article
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import DataError
from treetop.intake.codebook import Codebook
from treetop.sources import table as tables
from treetop.sources.batch import Batch, as_plain, as_text, first_missing
from treetop.sources.header import is_unvouched, refuse_code
from treetop.sources.source import as_public


@dataclass(frozen=True, eq=False, repr=False)
class GroupList:
    """All groups that may have somebody in them; make one with `read`. Nothing in it is private."""

    regions: Hierarchy
    """The public tree of regions."""
    ids: pa.StringArray
    """The id of every group."""
    leaf: NDArray[np.int64]
    """The leaf region of every group."""
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
    def by_region(self) -> NDArray[np.int64]:
        """How many groups each leaf region has."""
        return np.bincount(self.leaf, minlength=self.regions.sizes[-1]).astype(np.int64)

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of ids and regions, whatever the order of the rows."""
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

    def find(self, batch: Batch, column: str, ids: pa.StringArray) -> NDArray[np.int64]:
        """Return the position of every row's group, and refuse one that is not listed."""
        found = self.book.find(ids)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            row = int(missing[0])
            others = len(ids.take(pa.array(missing)).unique()) - 1
            more = f" (nor are {others} more groups after it)" if others else ""
            raise DataError(
                f"{batch.place(column, row)}: the group {ids[row].as_py()!r} is not on the public list{more}: the list "
                f"({self.name}) must hold every group that may have somebody in it. Complete it from a public source"
            )
        return found

    def __repr__(self) -> str:
        return f"GroupList({self.number:,} groups in {self.regions.sizes[-1]:,} regions)"


class Seen:
    """The ids of the rows so far, and where they stand: for finding one that stands twice."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._ids: list[pa.StringArray] = []
        self._leaves: list[NDArray[np.int64]] = []
        self._batches: list[Batch] = []

    def add(self, batch: Batch, ids: pa.StringArray, leaf: NDArray[np.int64] | None = None) -> None:
        """Add the rows of a batch."""
        none = pa.RecordBatch.from_pylist([], batch.rows.schema)
        self._batches.append(Batch(none, batch.where, batch.first, batch.done, batch.numbers))
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
        told = f"the {self._what} {encoded.dictionary[int(code[row])].as_py()!r}"
        if self._leaves:
            leaf = np.concatenate(self._leaves)
            if leaf[row] != leaf[before]:
                one, other = (regions.codes[-1][int(leaf[at])].as_py() for at in (before, row))
                raise DataError(
                    f"{self._place(row, column)}: {told} is in two regions, {one!r} in row "
                    f"{self._number(before)} and {other!r} here: every {self._what} is in one"
                )
        raise DataError(
            f"{self._place(row, column)}: {told} stands twice, first in row {self._number(before)}: give each one row"
        )

    def _place(self, row: int, column: str) -> str:
        for batch, ids in zip(self._batches, self._ids, strict=True):
            if row < len(ids):
                return batch.place(column, row)
            row -= len(ids)
        raise IndexError(row)

    def _number(self, row: int) -> str:
        return self._place(row, "").rpartition(" ")[2]


def read_regions(batch: Batch, column: str, book: Codebook, regions: Hierarchy) -> NDArray[np.int64]:
    """Return the leaf region of every row; refuse a code that is not in the hierarchy."""
    if batch.first == 0 and is_unvouched(batch.rows.schema):
        refuse_code(column, regions.codes, batch.where)
    codes = as_text(as_plain(batch.rows.column(column)), column)
    found = book.find(codes)
    wrong = np.flatnonzero(found < 0)
    if len(wrong):
        row = int(wrong[0])
        code = codes[row].as_py()
        if not code:
            raise DataError(f"{batch.place(column, row)}: the region is missing.{batch.hint(row)}".removesuffix("."))
        others = len(codes.take(pa.array(wrong)).unique()) - 1
        more = f" (nor are {others} more codes after it)" if others else ""
        hint = nearest(code, regions.codes[-1].slice(0, 20_000).to_pylist())
        raise DataError(
            f"{batch.place(column, row)}: {code!r} is not {with_article(regions.levels[-1])} code in the hierarchy of "
            f"the regions{hint}{more}: the hierarchy must hold all of them"
        )
    return found


def read_ids(batch: Batch, column: str) -> pa.StringArray:
    """Return the ids of the rows; refuse a row without one."""
    ids = as_text(as_plain(batch.rows.column(column)), column)
    row = first_missing(ids)
    if row is not None:
        raise DataError(f"{batch.place(column, row)}: the id is missing.{batch.hint(row)}".removesuffix("."))
    return ids
