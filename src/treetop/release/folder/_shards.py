"""A release folder with several shards: the leaves in several files, so that they need not all be in memory.

`top.parquet` has the small levels, from the total down, as `nodes.parquet` has them. `counts/part-00000.parquet` and so
on have the leaves, in the order of the spine; the files in `evidence` and `nodes` have the measurements and the levels
below the top. `parts.parquet` states, for every row group of the counts, its rows and their sum, and the first and last
code of each attribute in the order of the hierarchy: a query reads only the row groups that its codes meet, and none
that lie within them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from treetop._util.arrays import first_disorder
from treetop._util.dtypes import Flags, Ints
from treetop._util.system import refuse_beyond_memory
from treetop.counts.codebook import Codebook
from treetop.counts.counts import pack
from treetop.domain.constraints import PublicFacts
from treetop.domain.spine import Spine
from treetop.errors import ReleaseError
from treetop.measure.measure import Evidence, LevelEvidence
from treetop.release.folder import _tables as files
from treetop.release.intervals.boxes import Range
from treetop.release.measurements import KeptMeasurements
from treetop.release.shards import Leaves, Shard, Shards, Top
from treetop.release.tree import ReleasedTree, nodes_at, spans_at, whole_numbers

TOP, INDEX = "top.parquet", "parts.parquet"
COUNT_PARTS, EVIDENCE_PARTS, NODE_PARTS = "counts", "evidence", "nodes"
FOLDERS = (COUNT_PARTS, EVIDENCE_PARTS, NODE_PARTS)


def part_name(kind: str, number: int) -> str:
    """Return the name of a part in a folder.

    >>> part_name("counts", 7)
    'counts/part-00007.parquet'
    """
    return f"{kind}/part-{number:05d}.parquet"


def parts_listed(card: Mapping[str, Any], kind: str) -> list[str]:
    """Return the parts of a kind that a card lists, in order; refuse numbers that are left out."""
    found = sorted(file["path"] for file in card["files"] if re.fullmatch(kind + r"/part-\d+\.parquet", file["path"]))
    if found != [part_name(kind, number) for number in range(len(found))]:
        raise ReleaseError(f"the parts in {kind} that the card lists are not numbered one after the other")
    return found


def top_table(shards: Shards, confidence: float | None) -> pa.Table:
    """Return the levels in memory, from the total down."""
    levels = range(shards.top.level + 1)
    rows = (table for at in levels for table in shards.tables(at, confidence, numbered=True))
    return pa.concat_tables(rows).combine_chunks()


def leaves_file(shards: Shards, number: int) -> str:
    """Return the name of the file with the leaves of a shard."""
    return part_name(COUNT_PARTS, number) if shards.below else files.COUNTS


def shard_files(
    shards: Shards, number: int, shard: Shard, confidence: float | None, nodes: bool
) -> Iterator[tuple[str, Iterable[pa.Table]]]:
    """Yield the files of a shard beside its leaves: of several, its measurements; with `nodes`, its levels."""
    if shards.below and shards.known is not None:
        yield part_name(EVIDENCE_PARTS, number), [files.evidence_table(shard.evidence, shards.top.level)]
    if nodes:
        levels = shards.below or range(len(shards.spine.levels) + 1)
        tables = (shard.table(level, confidence, numbered=True) for level in levels)
        yield part_name(NODE_PARTS, number) if shards.below else files.NODES, tables


def index_rows(shard: Shard, number: int, group: int, level: int) -> pa.Table:
    """Return the rows of parts.parquet about a shard whose row groups have so many rows."""
    spine, nodes, count = shard.tree.spine, shard.tree.nodes, shard.tree.count
    first = np.arange(0, len(count), group)
    size = np.diff(np.append(first, len(count)))
    begin = np.flatnonzero(shard.tree.starts_at(level))
    node = shard.rows.start + np.searchsorted(begin, first, side="right") - 1
    tables = []
    for name, tree, own in zip(spine.attributes, spine.trees, nodes, strict=True):
        least, greatest = np.minimum.reduceat(own, first), np.maximum.reduceat(own, first)
        columns = {
            "part": pa.array(np.full(len(first), number, np.int32)),
            "group": pa.array(np.arange(len(first), dtype=np.int32)),
            "rows": pa.array(size),
            "count": pa.array(np.add.reduceat(count, first)),
            "node": pa.array(node),
            "attribute": pa.array([name] * len(first), pa.string()),
            "first": tree.codes[-1].take(pa.array(least)),
            "last": tree.codes[-1].take(pa.array(greatest)),
        }
        tables.append(pa.table(columns))
    rows = pa.concat_tables(tables).combine_chunks()
    return rows.take(pa.array(np.arange(len(rows)).reshape(len(tables), -1).T.ravel()))


@dataclass(frozen=True, eq=False)
class ShardIndex:
    """The content of parts.parquet: one entry for every group of rows."""

    part: Ints = field(repr=False)
    group: Ints = field(repr=False)
    rows: Ints = field(repr=False)
    count: Ints = field(repr=False)
    node: Ints = field(repr=False)
    """The first leaf's node of the last level of the top."""
    first: Ints = field(repr=False)
    """For each attribute (row) and row group (column), the least leaf; `last` has the greatest."""
    last: Ints = field(repr=False)

    @staticmethod
    def of(table: pa.Table, spine: Spine) -> ShardIndex:
        """Read the index from its table; refuse a table that is no index of these attributes."""
        names = list(spine.attributes)
        if table["attribute"].to_pylist() != names * (table.num_rows // len(names)):
            raise ReleaseError(f"{INDEX} does not have a row for every attribute and group of rows")
        one = table.take(pa.array(np.arange(0, table.num_rows, len(names))))
        about = [whole_numbers(one, name) for name in ("part", "group", "rows", "count", "node")]
        ends = []
        for end in ("first", "last"):
            codes = table[end].combine_chunks()
            own = [codes.take(pa.array(np.arange(at, len(codes), len(names)))) for at in range(len(names))]
            ends.append(np.array([tree.encode(one) for tree, one in zip(spine.trees, own, strict=True)], np.int64))
        if any((end < 0).any() for end in ends):
            raise ReleaseError(f"{INDEX} has a code that is not in its hierarchy")
        return ShardIndex(*about, *ends)

    def among(self, ranges: Mapping[int, Range]) -> tuple[Flags, Flags]:
        """Return which groups may have leaves within ranges, and which have no others."""
        meets, within = np.ones(len(self.rows), dtype=bool), np.ones(len(self.rows), dtype=bool)
        for attribute, (start, stop) in ranges.items():
            meets &= (self.first[attribute] < stop) & (self.last[attribute] >= start) & (start < stop)
            within &= (self.first[attribute] >= start) & (self.last[attribute] < stop)
        return meets, within & meets


@dataclass(frozen=True, eq=False)
class StoredShards(Shards):
    """Leaves in the files of a folder, which are read when they are asked for."""

    folder: Path = field(kw_only=True)
    index: ShardIndex = field(kw_only=True, repr=False)
    verify: Callable[[str], None] = field(kw_only=True, repr=False)
    """Called with the name of each file before it is read; refuses a changed one."""

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return int(self.index.rows.sum())

    @property
    def group(self) -> int:
        """How many rows a group has, but for the last of a part."""
        return int(self.index.rows.max())

    def leaves_of(self, number: int) -> Leaves:
        """Return the leaves of a part."""
        return self._leaves(number, self.index.group[self.index.part == number].tolist())

    def checked(self, number: int, table: pa.Table) -> Leaves:
        """Return leaves of a table; refuse rows that are no leaves."""
        name = part_name(COUNT_PARTS, number)
        return leaves_in(table, self.spine, f"{self.folder}: {name}", self._finders)

    @cached_property
    def _finders(self) -> list[Callable[[pa.Array], Ints]]:
        """By attribute, what finds the leaves of codes."""
        books = {tree.digest: Codebook(tree.codes[-1]) for tree in self.spine.trees}
        return [partial(_encoded, books[tree.digest]) for tree in self.spine.trees]

    def _leaves(self, number: int, groups: Sequence[int]) -> Leaves:
        """Read groups of rows of a part."""
        name, names = part_name(COUNT_PARTS, number), list(self.spine.attributes)
        with self._reading(name), files.parquet_file(self.folder / name, names) as file:
            return self.checked(number, read_groups(file, groups, [*names, "count"]))

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Turn errors of a file into one message."""
        try:
            self.verify(name)
            yield
        except files.DAMAGE as problem:
            raise ReleaseError(f"{self.folder}: {name} cannot be read: {problem}") from problem

    def evidence_of(self, number: int, tree: ReleasedTree) -> Sequence[tuple[Ints, Ints]]:
        """Return the measurements of a part's nodes below the top, level by level, and of those beside them."""
        name = part_name(EVIDENCE_PARTS, number)
        with self._reading(name):
            measured, highest = files.split_evidence(
                files.read_table(self.folder / name), self.below, tree, f"{self.folder}: {name}"
            )
            return list(zip(measured, highest, strict=True))

    def groups_meeting(self, ranges: Mapping[int, Range]) -> Iterator[Leaves]:
        """Yield the leaves of the groups of rows that may have some within ranges."""
        return self._groups(np.flatnonzero(self.index.among(ranges)[0]))

    def groups_within(self, ranges: Mapping[int, Range]) -> tuple[int, Iterator[Leaves]]:
        """Return the sum of the groups of rows that are within ranges, and the leaves of others that may have some."""
        meets, within = self.index.among(ranges)
        return int(self.index.count[within].sum()), self._groups(np.flatnonzero(meets & ~within))

    def _groups(self, wanted: Ints) -> Iterator[Leaves]:
        for at in wanted.tolist():
            yield self._leaves(int(self.index.part[at]), [int(self.index.group[at])])

    @cached_property
    def all_leaves(self) -> Leaves:
        """All leaves; refused if memory has no room."""
        self.refuse_beyond_memory(self.leaves, 4 * len(self.spine.attributes) + 8, "all leaves")
        found = [self.leaves_of(number) for number in range(len(self))]
        return np.concatenate([one for one, _ in found], axis=1), np.concatenate([count for _, count in found])

    def all_evidence(self) -> Evidence | None:
        """All kept measurements of released nodes; refused if memory has no room."""
        if self.evidence is None:
            return None
        self.refuse_beyond_memory(self.leaves, 16 * (len(self.spine.levels) - self.top.level), "all that was measured")
        known, own = self.evidence, [shard.evidence for shard in self]
        joined = (LevelEvidence.join([one.levels[index - 1] for one in own]) for index in self.below)
        levels = [*known.levels[:-1], *joined]
        return Evidence(known.total, tuple(levels), known.laws)

    def refuse_beyond_memory(self, rows: int, width: int, what: str) -> None:
        """Refuse to hold this many rows at a time unless memory has room for them twice."""
        refuse_beyond_memory(
            2 * rows * width,
            f"{what} of {self.folder}",
            "ask for some codes (where), or for a coarser level (by, table)",
        )


def leaves_in(
    table: pa.Table, spine: Spine, where: str, find: Sequence[Callable[[pa.Array], NDArray[np.integer]]]
) -> Leaves:
    """Return the leaves of a table, found by the codes of each attribute; refuse rows that are no leaves."""
    codes = zip(find, spine.attributes, strict=True)
    nodes = np.array([found(table[name].combine_chunks()) for found, name in codes], np.int32)
    count = table["count"].to_numpy()
    if count.dtype != np.int64 or table["count"].null_count or (len(count) and count.min() <= 0):
        raise ReleaseError(f"{where} must hold whole numbers above zero")
    if (nodes < 0).any():
        raise ReleaseError(f"{where} has a code that is not in its hierarchy")
    return nodes, count


def read_groups(file: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
    """Read some groups of rows of a file."""
    return file.read_row_groups(list(groups), columns=list(columns))


def _encoded(book: Codebook, column: pa.Array) -> Ints:
    """Return the leaf of every code of a dictionary: each is looked up once."""
    if not pa.types.is_dictionary(column.type):
        return book.find(column.cast(pa.string()))
    return book.find_coded(column.indices, column.dictionary.cast(pa.string()))


def read_shards(
    folder: Path, card: Mapping[str, Any], spine: Spine, facts: PublicFacts | None, verified: bool
) -> StoredShards:
    """Read the small levels of a folder in parts, and its index; the rest when it is asked for.

    If `verified`, each file is compared with the card before it is read.
    """
    more = f"`treetop check {folder}` says more"
    stated = {file["path"]: file["sha256"] for file in card["files"]}
    for name in stated:
        if name.startswith(tuple(f"{kind}/" for kind in FOLDERS)) and not (folder / name).is_file():
            raise ReleaseError(f"{folder}: {name} is missing, which {files.CARD} names: {more}")

    @cache
    def verify(name: str) -> None:
        if verified and files.file_sha256(folder / name) != stated.get(name):
            raise ReleaseError(f"{folder}: {name} is not the one that {files.CARD} names, by its SHA-256: {more}")

    table = files.read_table(folder / TOP)
    of_level = whole_numbers(table, "level")
    level = int(of_level.max(initial=-1))
    if not 0 <= level < len(spine.levels) or (np.diff(of_level) < 0).any():
        raise ReleaseError(f"{folder}: {TOP} does not have the levels from the total down")
    last = table.filter(pa.array(of_level == level))
    nodes, count = nodes_at(spine, level, last), whole_numbers(last, "count")
    if (nodes < 0).any() or count.min() <= 0:
        raise ReleaseError(
            f"{folder}: {TOP} has a code that is not in its hierarchy, or a count that is not above zero"
        )
    if first_disorder(pack(spine, spans_at(spine, level, nodes)[0])) is not None:
        raise ReleaseError(f"{folder}: in {TOP} a node stands twice, or out of order")
    top = Top.of(spine, level, nodes, count)

    number, index = len(parts_listed(card, COUNT_PARTS)), ShardIndex.of(files.read_table(folder / INDEX), spine)
    if not number or not np.array_equal(np.unique(index.part), np.arange(number)):
        raise ReleaseError(f"{folder}: {INDEX} is not about the parts that the card lists")
    begin = np.searchsorted(index.part, np.arange(number))
    if (np.diff(index.part) < 0).any() or (index.group != np.arange(len(index.part)) - begin[index.part]).any():
        raise ReleaseError(f"{folder}: {INDEX} is out of order")
    starts = np.append(index.node[begin], len(top.tree.at(level)))
    if starts[0] != 0 or (np.diff(starts) <= 0).any():
        raise ReleaseError(f"{folder}: {INDEX} and {TOP} are not of the same release")
    known = None
    if (folder / files.EVIDENCE).is_file():
        if len(parts_listed(card, EVIDENCE_PARTS)) != number:
            raise ReleaseError(f"{folder}: there are not as many parts of {EVIDENCE_PARTS} as of {COUNT_PARTS}")
        evidence = files.read_evidence(folder, top.tree, level, files.laws_of(card))
        known = KeptMeasurements(top.tree, evidence, facts=facts, down_to=level)
    return StoredShards(top, starts, known, folder=folder, index=index, verify=verify)
