"""The checks of a release folder in parts: all that its tables hold is computed again, one part at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop._util.arrays import first_disorder
from treetop.checking.counting import beyond, compared, differences, evidence_findings, margin_findings, told
from treetop.counts.counts import pack
from treetop.domain.constraints import TableFact
from treetop.errors import ReleaseError
from treetop.release.folder import (
    COUNT_PARTS,
    EVIDENCE_PARTS,
    INDEX,
    NODE_PARTS,
    TOP,
    PartsInFiles,
    evidence_rows,
    index_rows,
    part_name,
    parts_listed,
    sizes,
    top_table,
)
from treetop.release.parts import Part
from treetop.release.release import Release
from treetop.release.scanning import part_rows
from treetop.release.stored import parquet_file
from treetop.release.tree import coarser, node_starts

Ints = NDArray[np.int64]

NUMBERS = ("count", "lower", "upper")
LEAVES, SUMS, MARGIN, FACT, INTERVALS, EVIDENCE = "leaves", "sums", "margins", "facts", "intervals", "evidence"


@dataclass
class _Kept:
    """What is public of one table, and what was found of it in all parts so far."""

    fact: TableFact
    counts: Ints
    impossible: list[int] = field(default_factory=list)

    @staticmethod
    def of(fact: TableFact) -> _Kept:
        return _Kept(fact, np.zeros(0 if fact.boxes is None else len(fact.boxes.cells), np.int64))

    def add(self, part: Part) -> None:
        """Take in the leaves of a part."""
        fact, finest = self.fact, part.tree.spine.finest
        if fact.rule is not None and not self.impossible:
            cells = np.unique(fact.table.numbers(part.tree.nodes, finest))
            self.impossible = cells[~np.isin(cells, fact.rule.cells)].tolist()[:1]
        if fact.boxes is not None:
            self.counts += fact.table.counted(fact.boxes.cells, part.tree.nodes, finest, part.tree.count)

    def findings(self) -> Iterator[str]:
        fact = self.fact
        for cell in self.impossible:
            yield f"{fact.words}: {fact.table.words(int(cell))} is impossible, and is released"
        if fact.boxes is not None:
            yield from beyond(fact, fact.boxes, self.counts, 0)


@dataclass(frozen=True)
class PartsCheck:
    """One way through all parts, which finds what each check asks for."""

    release: Release
    card: Mapping[str, Any]
    folder: Path

    def __call__(self, about: str) -> Iterator[str]:
        """Yield what was found about one thing."""
        yield from self._found[about]

    @cached_property
    def parts(self) -> PartsInFiles:
        """The parts, as they are in the folder."""
        assert isinstance(self.release.parts, PartsInFiles)
        return self.release.parts

    @cached_property
    def _has_nodes(self) -> bool:
        return bool(parts_listed(self.card, NODE_PARTS))

    @cached_property
    def _found(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {about: [] for about in (LEAVES, SUMS, MARGIN, FACT, INTERVALS, EVIDENCE)}
        parts, confidence = self.parts, self.release.confidence
        levels = range(parts.top.level + 1, len(parts.spine.levels) + 1)
        below, number, total = np.zeros(len(levels), np.int64), 0, 0
        sums = [np.zeros(len(table.count), np.int64) for table in self.release.margins]
        kept = [_Kept.of(fact) for fact in self.release.facts or ()]
        if parts.evidence is not None:
            found[EVIDENCE] += evidence_findings(parts.top.tree, parts.evidence, range(1, parts.top.level + 1))
        index, last = [], None
        for at in range(len(parts)):
            part, rows, last = self._part(at, last, found)
            below += [part.tree.size(level) for level in levels]
            number, total = number + len(part.tree.count), total + int(part.tree.count.sum())
            found[SUMS] += self._top_rows(at, part) + self._nodes(at, part, levels)
            found[EVIDENCE] += self._measured(at, part, levels)
            found[INTERVALS] += self._bounds(at, part, rows) if confidence is not None else []
            sums = [so_far + table.sums(part.tree) for so_far, table in zip(sums, self.release.margins, strict=True)]
            for one in kept:
                one.add(part)
            index.append(index_rows(part, at, parts.group, parts.top.level))
        found[LEAVES] += self._counted(number, total) + _compared(self.folder, INDEX, pa.concat_tables(index))
        found[SUMS] += self._sized([len(parts.top.at(level)) for level in range(levels[0])] + below.tolist())
        found[SUMS] += _compared(self.folder, TOP, top_table(parts, confidence))
        if self.release.margins:
            found[MARGIN] += margin_findings(self.release, sums)
        found[FACT] += [finding for one in kept for finding in one.findings()]
        return found

    def _part(
        self, number: int, last: NDArray[np.int32] | None, found: dict[str, list[str]]
    ) -> tuple[Part, pa.Table, NDArray[np.int32]]:
        """Read a part; refuse one that is not in the order of the spine, or has other nodes than the top."""
        parts, name = self.parts, part_name(COUNT_PARTS, number)
        bounds = [] if self.release.confidence is None else ["lower", "upper"]
        expected = [*parts.spine.attributes, "count", *bounds]
        with parquet_file(self.folder / name, list(parts.spine.attributes)) as file:
            stated = [(one.name, getattr(one.type, "value_type", one.type)) for one in file.schema_arrow]
            if stated != [(one, pa.int64() if one in NUMBERS else pa.string()) for one in expected]:
                names = ", ".join(one for one, _ in stated)
                raise ReleaseError(f"{name} has the columns {names}, not {', '.join(expected)}, or of other types")
            rows = [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]
            if rows != parts.index.rows[parts.index.part == number].tolist():
                found[LEAVES].append(f"{name} has other groups of rows than {INDEX} says")
            table = file.read()
        nodes, count = parts.checked(number, table)
        follows = nodes if last is None else np.concatenate([last, nodes], axis=1)
        if (wrong := first_disorder(pack(parts.spine, follows))) is not None:
            row, twice = wrong[0] + (2 if last is None else 1), wrong[1]
            raise ReleaseError(f"{name}, row {row}: the leaf {'stands twice' if twice else 'is out of order'}")
        first = node_starts(parts.spine, parts.top.level, nodes)
        if len(first) != parts.starts[number + 1] - parts.starts[number]:
            raise ReleaseError(f"{name} does not have the nodes of {TOP} that {INDEX} says")
        return parts.made(number, (nodes, count)), table, nodes[:, -1:]

    def _top_rows(self, number: int, part: Part) -> list[str]:
        """Compare the nodes of the last small level with what the leaves of a part add up to."""
        spine, level = self.parts.spine, self.parts.top.level
        first, stated = node_starts(spine, level, part.tree.nodes), part.tree.at(level)
        wrong = np.add.reduceat(part.tree.count, first) != stated.count
        for attribute, column in coarser(spine, level, len(spine.levels), part.tree.nodes[:, first]).items():
            wrong |= column != stated.nodes[attribute]
        for row in np.flatnonzero(wrong)[:1].tolist():
            at = part.rows.start + row
            return [f"{TOP}: node {at + 1:,} of its last level is not what {part_name(COUNT_PARTS, number)} adds up to"]
        return []

    def _measured(self, number: int, part: Part, levels: Sequence[int]) -> list[str]:
        """Compare what was measured of the nodes of a part with all measurements, and its table with its columns."""
        if part.evidence is None:
            return []
        name = part_name(EVIDENCE_PARTS, number)
        found = list(evidence_findings(part.tree, part.evidence, levels, name))
        return found + _compared(self.folder, name, evidence_rows(part, self.parts.top.level))

    def _nodes(self, number: int, part: Part, levels: Sequence[int]) -> list[str]:
        if not self._has_nodes:
            return []
        rows = [part_rows(part, level, self.release.confidence, numbered=True) for level in levels]
        return _compared(self.folder, part_name(NODE_PARTS, number), pa.concat_tables(rows))

    def _bounds(self, number: int, part: Part, table: pa.Table) -> list[str]:
        """Compare the bounds of the leaves of a part with what the measurements give."""
        assert self.release.confidence is not None
        leaf = len(self.parts.spine.levels)
        bounds = part.measured.intervals(self.release.confidence)[leaf]
        expected = {"lower": pa.array(bounds.lower), "upper": pa.array(bounds.upper)}
        if all(table[name].equals(pa.chunked_array([given])) for name, given in expected.items()):
            return []  # codes and counts are those that it was read with
        every = [own.cast(pa.string()) if pa.types.is_dictionary(own.type) else own for own in table.columns]
        stated, name = pa.table(every, table.column_names), part_name(COUNT_PARTS, number)
        return list(told(name, stated, part_rows(part, leaf, self.release.confidence), "the measurements give"))

    def _counted(self, leaves: int, total: int) -> list[str]:
        stated, found = self.card["released"], []
        if leaves != stated["leaves"]:
            found.append(f"{COUNT_PARTS} has {leaves:,} leaves, but the card says {stated['leaves']:,}")
        if total != stated["total"]:
            found.append(f"{COUNT_PARTS} sums to {total:,}, but the card says {stated['total']:,}")
        return found

    def _sized(self, nodes: list[int]) -> list[str]:
        every = differences(self.card["released"], sizes(self.release, nodes))
        return [f"card.json: released.{where} is {one}, but the leaves give {other}" for where, one, other in every]


def _compared(folder: Path, name: str, expected: pa.Table) -> list[str]:
    return list(compared(folder, name, expected, "the leaves give"))
