"""The checks of what a release folder's tables hold: computed again from the leaves, one shard at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop._util.arrays import first_disorder
from treetop.checking.counting import beyond, compared, differences, evidence_findings, margin_findings, nodes, told
from treetop.counts.counts import pack
from treetop.domain.constraints import TableFact
from treetop.errors import ReleaseError
from treetop.release.folder import (
    COUNT_PARTS,
    COUNTS,
    EVIDENCE_PARTS,
    INDEX,
    NODE_PARTS,
    NODES,
    TOP,
    UNRESOLVED,
    StoredShards,
    evidence_rows,
    index_rows,
    part_name,
    parts_listed,
    sizes,
    top_table,
)
from treetop.release.release import Release
from treetop.release.shards import Shard
from treetop.release.stored import parquet_file
from treetop.release.tree import ReleasedTree, coarser, node_starts

Ints = NDArray[np.int64]

NUMBERS = ("count", "lower", "upper")
LEAVES, SUMS, MARGIN, FACT, INTERVALS, EVIDENCE = "leaves", "sums", "margins", "facts", "intervals", "evidence"


@dataclass
class _FactSums:
    """The counts of the cells that a fact names, and its impossible cells, in the shards so far."""

    fact: TableFact
    counts: Ints
    counted: int = 0
    impossible: list[int] = field(default_factory=list)

    @staticmethod
    def of(fact: TableFact) -> _FactSums:
        return _FactSums(fact, np.zeros(0 if fact.boxes is None else len(fact.boxes.cells), np.int64))

    def add(self, tree: ReleasedTree) -> None:
        """Add the leaves of a shard, and its remainders as far as the fact's table is refined there."""
        fact, finest = self.fact, tree.spine.finest
        leaf, count = tree.resolved(
            {attribute: depth - 1 for attribute, depth in enumerate(fact.table.depths) if depth}
        )
        self.counted += int(count.sum())
        if fact.rule is not None and not self.impossible:
            cells = np.unique(fact.table.numbers(leaf, finest))
            self.impossible = cells[~np.isin(cells, fact.rule.cells)].tolist()[:1]
        if fact.boxes is not None:
            self.counts += fact.table.counted(fact.boxes.cells, leaf, finest, count)

    def findings(self, total: int) -> Iterator[str]:
        fact = self.fact
        for cell in self.impossible:
            yield f"{fact.words}: {fact.table.words(int(cell))} is impossible, and is released"
        if fact.boxes is not None:
            yield from beyond(fact, fact.boxes, self.counts, total - self.counted)


@dataclass(frozen=True)
class ShardsCheck:
    """One pass over all shards that collects the findings of each check."""

    release: Release
    card: Mapping[str, Any]
    folder: Path

    def __call__(self, about: str) -> Iterator[str]:
        """Yield the findings of one check."""
        yield from self._found[about]

    @cached_property
    def _found(self) -> dict[str, list[str]]:
        release, shards = self.release, self.release.shards
        found: dict[str, list[str]] = {about: [] for about in (LEAVES, SUMS, MARGIN, FACT, INTERVALS, EVIDENCE)}
        below, leaves, total = [0] * len(shards.below), 0, 0
        sums = [np.zeros(len(table.count), np.int64) for table in release.margins]
        facts = [_FactSums.of(fact) for fact in release.facts or ()]
        if shards.evidence is not None:
            found[EVIDENCE] += evidence_findings(shards.top.tree, shards.evidence, range(1, shards.top.level + 1))
        for shard in _StoredCheck(shards, self).each(found) if isinstance(shards, StoredShards) else shards:
            below = [so_far + shard.tree.size(at) for so_far, at in zip(below, shards.below, strict=True)]
            leaves, total = leaves + len(shard.tree.count), total + int(shard.tree.count.sum())
            sums = [so_far + table.sums(shard.tree) for so_far, table in zip(sums, release.margins, strict=True)]
            for fact in facts:
                fact.add(shard.tree)
        found[LEAVES] += self._counted(leaves, total + release.unresolved_total)
        found[SUMS] += self._sized([shards.top.tree.size(level) for level in range(shards.below.start)] + below)
        found[MARGIN] += margin_findings(release, sums)
        found[FACT] += [finding for fact in facts for finding in fact.findings(release.total)]
        return found

    def _counted(self, leaves: int, total: int) -> Iterator[str]:
        stated, name = self.card["released"], COUNT_PARTS if self.release.shards.below else COUNTS
        if leaves != stated["leaves"]:
            yield f"{name} has {leaves:,} leaves, but the card says {stated['leaves']:,}"
        if total != stated["total"]:
            tables = name if self.release.left is None else f"{name} with {UNRESOLVED}"
            yield f"{tables} sums to {total:,}, but the card says {stated['total']:,}"

    def _sized(self, level_sizes: list[int]) -> Iterator[str]:
        if (self.release.left is not None) != ("resolve" in self.card["plan"]):
            yield f"{UNRESOLVED} is there, or is missing, against the plan"
        for where, one, other in differences(self.card["released"], sizes(self.release, level_sizes)):
            yield f"card.json: released.{where} is {one}, but the leaves give {other}"
        if any(file["path"] == NODES for file in self.card["files"]):
            yield from nodes(self.release, self.folder)


@dataclass(frozen=True)
class _StoredCheck:
    """The checks of the files of several shards."""

    shards: StoredShards
    check: ShardsCheck

    def each(self, found: dict[str, list[str]]) -> Iterator[Shard]:
        """Yield each shard once its files are compared."""
        shards, confidence = self.shards, self.check.release.confidence
        has_nodes = bool(parts_listed(self.check.card, NODE_PARTS))
        index, last = [], None
        for number in range(len(shards)):
            shard, rows, last = self._shard(number, last, found)
            found[SUMS] += self._top_rows(number, shard)
            if has_nodes:
                tables = [shard.table(level, confidence, numbered=True) for level in shards.below]
                found[SUMS] += self._compared(part_name(NODE_PARTS, number), pa.concat_tables(tables))
            if shard.measured is not None:
                name = part_name(EVIDENCE_PARTS, number)
                found[EVIDENCE] += evidence_findings(shard.tree, shard.evidence, shards.below, name)
                found[EVIDENCE] += self._compared(name, evidence_rows(shard, shards.top.level))
            if confidence is not None:
                found[INTERVALS] += self._bounds(number, shard, rows, confidence)
            index.append(index_rows(shard, number, shards.group, shards.top.level))
            yield shard
            del shard, rows  # one shard at a time in memory, and the one that is being read
        found[LEAVES] += self._compared(INDEX, pa.concat_tables(index))
        found[SUMS] += self._compared(TOP, top_table(shards, confidence))

    def _compared(self, name: str, expected: pa.Table) -> Iterator[str]:
        return compared(self.check.folder, name, expected, "the leaves give")

    def _shard(
        self, number: int, last: NDArray[np.int32] | None, found: dict[str, list[str]]
    ) -> tuple[Shard, pa.Table, NDArray[np.int32]]:
        """Read a shard; refuse one that is not in the order of the spine, or has other nodes than the top."""
        shards, name = self.shards, part_name(COUNT_PARTS, number)
        bounds = [] if self.check.release.confidence is None else ["lower", "upper"]
        expected = [*shards.spine.attributes, "count", *bounds]
        with parquet_file(self.check.folder / name, list(shards.spine.attributes)) as file:
            stated = [(one.name, getattr(one.type, "value_type", one.type)) for one in file.schema_arrow]
            if stated != [(one, pa.int64() if one in NUMBERS else pa.string()) for one in expected]:
                names = ", ".join(one for one, _ in stated)
                raise ReleaseError(f"{name} has the columns {names}, not {', '.join(expected)}, or of other types")
            rows = [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]
            if rows != shards.index.rows[shards.index.part == number].tolist():
                found[LEAVES].append(f"{name} has other groups of rows than {INDEX} says")
            table = file.read()
        leaf, count = shards.checked(number, table)
        follows = leaf if last is None else np.concatenate([last, leaf], axis=1)
        if (wrong := first_disorder(pack(shards.spine, follows))) is not None:
            row, twice = wrong[0] + (2 if last is None else 1), wrong[1]
            raise ReleaseError(f"{name}, row {row}: the leaf {'stands twice' if twice else 'is out of order'}")
        first = node_starts(shards.spine, shards.top.level, leaf)
        if len(first) != shards.starts[number + 1] - shards.starts[number]:
            raise ReleaseError(f"{name} does not have the nodes of {TOP} that {INDEX} says")
        return shards.made(number, (leaf, count)), table, leaf[:, -1:]

    def _top_rows(self, number: int, shard: Shard) -> Iterator[str]:
        """Compare the last level of the top with the sums of a shard's leaves."""
        spine, level = self.shards.spine, self.shards.top.level
        first, stated = node_starts(spine, level, shard.tree.nodes), shard.tree.at(level)
        wrong = np.add.reduceat(shard.tree.count, first) != stated.count
        for attribute, column in coarser(spine, level, len(spine.levels), shard.tree.nodes[:, first]).items():
            wrong |= column != stated.nodes[attribute]
        for row in np.flatnonzero(wrong)[:1].tolist():
            at, name = shard.rows.start + row, part_name(COUNT_PARTS, number)
            yield f"{TOP}: node {at + 1:,} of its last level is not what {name} adds up to"

    def _bounds(self, number: int, shard: Shard, table: pa.Table, confidence: float) -> Iterator[str]:
        """Compare the bounds of the leaves of a shard with what the measurements give."""
        leaf = len(self.shards.spine.levels)
        bounds = shard.intervals(leaf, confidence)
        assert bounds is not None
        expected = {"lower": pa.array(bounds.lower), "upper": pa.array(bounds.upper)}
        if all(table[name].equals(pa.chunked_array([given])) for name, given in expected.items()):
            return  # codes and counts are those that it was read with
        every = [own.cast(pa.string()) if pa.types.is_dictionary(own.type) else own for own in table.columns]
        stated, name = pa.table(every, table.column_names), part_name(COUNT_PARTS, number)
        yield from told(name, stated, shard.table(leaf, confidence), "the measurements give")
