"""The checks of what a release folder's tables hold: computed again from the leaves, one shard at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop._util.arrays import first_disorder
from treetop._util.dtypes import Ints
from treetop.checking._counting import compared, differences, told
from treetop.counts.counts import pack
from treetop.errors import ReleaseError
from treetop.measure.facts import FactCounts
from treetop.measure.measure import NOTHING, Evidence
from treetop.release import folder as files
from treetop.release.margins import codes_of
from treetop.release.release import Release
from treetop.release.shards import Shard
from treetop.release.tree import ReleasedTree, ancestors, changes

NUMBERS = ("count", "lower", "upper")
LEAVES, SUMS, MARGIN, FACT, INTERVALS, TABLES = "leaves", "sums", "margins", "facts", "intervals", "tables"


@dataclass(frozen=True)
class ShardsCheck:
    """One pass over all shards that collects the findings of each check."""

    release: Release
    card: Mapping[str, Any]
    folder: Path

    def findings(self) -> dict[str, list[str]]:
        """Return the findings of each check."""
        release, shards, confidence = self.release, self.release.shards, self.release.confidence
        listed = {file["path"] for file in self.card["files"]}
        found: dict[str, list[str]] = {about: [] for about in (LEAVES, SUMS, MARGIN, FACT, INTERVALS, TABLES)}
        of_counts = found[INTERVALS if files.MEASUREMENTS in listed else TABLES]
        level_sizes = [shards.top.tree.size(level) for level in range(shards.top.level + 1)] + [0] * len(shards.below)
        leaves, total, last = 0, 0, None
        sums = [np.zeros(len(table.count), np.int64) for table in release.margins]
        facts = [FactCounts(fact) for fact in release.facts or ()]
        refined = [0] * len(facts)
        index = []
        if shards.evidence is not None:
            found[TABLES] += evidence_findings(shards.top.tree, shards.evidence, range(1, shards.top.level + 1))
        for number in range(len(shards)):
            shard, table = self._shard(number, last, found[LEAVES], of_counts)
            last = shard.tree.nodes[:, -1:]
            if isinstance(shards, files.StoredShards):
                found[SUMS] += self._top_rows(number, shard)
                index.append(files.index_rows(shard, number, shards.group, shards.top.level))
            nodes = (files.part_name(files.NODE_PARTS, number) if shards.below else files.NODES) in listed
            of_counts += self._bounds(files.leaves_file(shards, number), shard, table, confidence)
            for name, tables in files.shard_files(shards, number, shard, confidence, nodes):
                if name.startswith(files.EVIDENCE_PARTS):
                    found[TABLES] += evidence_findings(shard.tree, shard.evidence, shards.below, name)
                about = TABLES if name.startswith(files.EVIDENCE_PARTS) else SUMS
                found[about] += compared(self.folder, name, pa.concat_tables(tables), "the leaves give")
            for level in shards.below:
                level_sizes[level] += shard.tree.size(level)
            leaves, total = leaves + len(shard.tree.count), total + int(shard.tree.count.sum())
            sums = [so_far + margin.sums(shard.tree) for so_far, margin in zip(sums, release.margins, strict=True)]
            for at, own in enumerate(facts):
                depths = {attribute: depth - 1 for attribute, depth in enumerate(own.fact.table.depths) if depth}
                leaf, count = shard.tree.resolved(depths)  # remainders too, if they are refined so far
                own.add(np.asarray(leaf, np.int64), count)
                refined[at] += int(count.sum())
            del shard, table  # one shard at a time in memory, and the one that is being read
        if index:
            found[LEAVES] += compared(self.folder, files.INDEX, pa.concat_tables(index), "the leaves give")
            found[SUMS] += compared(self.folder, files.TOP, files.top_table(shards, confidence), "the leaves give")
        found[LEAVES] += self._counted(leaves, total + release.unresolved_total)
        if (release.left is not None) != ("resolve" in self.card["plan"]):
            found[SUMS].append(f"{files.UNRESOLVED} is there, or is missing, against the plan")
        for where, one, other in differences(self.card["released"], files.sizes(release, level_sizes)):
            found[SUMS].append(f"card.json: released.{where} is {one}, but the leaves give {other}")
        found[MARGIN] += margin_findings(release, sums)
        for own, number in zip(facts, refined, strict=True):
            found[FACT] += fact_findings(own, release.total - number)
        return found

    def _counted(self, leaves: int, total: int) -> Iterator[str]:
        stated, name = self.card["released"], files.COUNT_PARTS if self.release.shards.below else files.COUNTS
        if leaves != stated["leaves"]:
            yield f"{name} has {leaves:,} leaves, but the card says {stated['leaves']:,}"
        if total != stated["total"]:
            tables = name if self.release.left is None else f"{name} with {files.UNRESOLVED}"
            yield f"{tables} sums to {total:,}, but the card says {stated['total']:,}"

    def _shard(
        self, number: int, last: NDArray[np.int32] | None, of_leaves: list[str], of_counts: list[str]
    ) -> tuple[Shard, pa.Table]:
        """Read a shard; refuse one that is not in the order of the spine, or has other nodes than the top."""
        shards = self.release.shards
        name = files.leaves_file(shards, number)
        bounds = [] if self.release.confidence is None else ["lower", "upper"]
        expected = [*shards.spine.attributes, "count", *bounds]
        with files.parquet_file(self.folder / name, list(shards.spine.attributes)) as file:
            stated = [(one.name, getattr(one.type, "value_type", one.type)) for one in file.schema_arrow]
            if stated != [(one, pa.int64() if one in NUMBERS else pa.string()) for one in expected]:
                names = ", ".join(one for one, _ in stated)
                wrong = f"{name} has the columns {names}, not {', '.join(expected)}, or of other types"
                if shards.below:
                    raise ReleaseError(wrong)
                of_counts.append(wrong)
            rows = [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]
            table = file.read()
        if not isinstance(shards, files.StoredShards):
            return shards.shard(number), table
        if rows != shards.index.rows[shards.index.part == number].tolist():
            of_leaves.append(f"{name} has other groups of rows than {files.INDEX} says")
        leaf, count = shards.checked(number, table)
        follows = leaf if last is None else np.concatenate([last, leaf], axis=1)
        if (disorder := first_disorder(pack(shards.spine, follows))) is not None:
            row, twice = disorder[0] + (2 if last is None else 1), disorder[1]
            raise ReleaseError(f"{name}, row {row}: the leaf {'stands twice' if twice else 'is out of order'}")
        nodes = ancestors(shards.spine, shards.top.level, len(shards.spine.levels), leaf)
        if np.count_nonzero(changes(nodes)) != shards.starts[number + 1] - shards.starts[number]:
            raise ReleaseError(f"{name} does not have the nodes of {files.TOP} that {files.INDEX} says")
        return shards.made(number, (leaf, count)), table

    def _top_rows(self, number: int, shard: Shard) -> Iterator[str]:
        """Compare the last level of the top with the sums of a shard's leaves."""
        spine, level = self.release.spine, self.release.shards.top.level
        first, stated = np.flatnonzero(shard.tree.starts_at(level)), shard.tree.at(level)
        wrong = np.add.reduceat(shard.tree.count, first) != stated.count
        wrong |= (ancestors(spine, level, len(spine.levels), shard.tree.nodes[:, first]) != stated.nodes).any(axis=0)
        for row in np.flatnonzero(wrong)[:1].tolist():
            at, name = shard.rows.start + row, files.part_name(files.COUNT_PARTS, number)
            yield f"{files.TOP}: node {at + 1:,} of its last level is not what {name} adds up to"

    def _bounds(self, name: str, shard: Shard, table: pa.Table, confidence: float | None) -> Iterator[str]:
        """Compare the bounds of the leaves of a shard with what the measurements give."""
        leaf = len(self.release.spine.levels)
        if (bounds := shard.intervals(leaf, confidence)) is None or "lower" not in table.column_names:
            return
        expected = {"lower": pa.array(bounds.lower), "upper": pa.array(bounds.upper)}
        if all(table[name].equals(pa.chunked_array([given])) for name, given in expected.items()):
            return  # codes and counts are those that it was read with
        every = [own.cast(pa.string()) if pa.types.is_dictionary(own.type) else own for own in table.columns]
        stated = pa.table(every, table.column_names)
        yield from told(name, stated, shard.table(leaf, confidence), "the measurements give")


# What a folder says twice of its measurements: by node in evidence.parquet, all in measurements.parquet.


def evidence_findings(
    tree: ReleasedTree, evidence: Evidence, levels: Iterable[int], name: str = files.EVIDENCE
) -> Iterator[str]:
    """Compare what evidence says of the nodes of some levels with the measurements that were kept of these levels.

    Of a level whose measurements were not kept, compare only which nodes have one: an only child has none.
    """
    for index in levels:
        seen, level = evidence.levels[index - 1], tree.spine.levels[index - 1].name
        fanout, parents = tree.fanout(index), tree.parents(index)
        slots = np.where(fanout == 1, 0, fanout)
        if len(seen.slots) == int(slots.sum()):
            measured, highest = _given(tree, index, slots, seen.slots)
            for what, stated, given in (("measured", seen.measured, measured), ("highest", seen.highest, highest)):
                for row in np.flatnonzero(stated != given)[:1].tolist():
                    one, other = ("nothing" if at == NOTHING else f"{at:,}" for at in (stated[row], given[row]))
                    follows = f"but {other} follows from {files.MEASUREMENTS}"
                    yield f"{name}, level {level}: {what} of node {row + 1:,} is {one}, {follows}"
            continue
        alone = fanout[parents] == 1
        without = slots == np.where(fanout == 1, 0, np.bincount(parents, minlength=len(fanout)))
        if ((seen.measured == NOTHING) != alone).any() or ((seen.highest == NOTHING) != without).any():
            yield f"{name}, level {level}: a node that was measured has no measurement, or one that was not has one"


def _given(tree: ReleasedTree, index: int, slots: Ints, value: Ints) -> tuple[Ints, Ints]:
    """Return what the measurements of a level give: each released node's own, and the highest of those beside them."""
    parents, ranks = tree.parents(index), tree.spine.levels[index - 1].ranks(tree.at(index).nodes)
    several = slots[parents] > 0
    place = (np.cumsum(slots) - slots)[parents[several]] + ranks[several]
    measured = np.full(len(parents), NOTHING)
    measured[several] = value[place]
    beside = np.ones(len(value), dtype=bool)
    beside[place] = False
    highest = np.full(len(slots), NOTHING)
    np.maximum.at(highest, np.repeat(np.arange(len(slots)), slots)[beside], value[beside])
    return measured, highest


def fact_findings(own: FactCounts, missing: int) -> Iterator[str]:
    """Say which released counts are not within bounds, whatever of what is missing belongs to them."""
    fact, boxes = own.fact, own.fact.boxes
    for cell in own.cells[:1]:
        yield f"{fact.words}: {fact.table.words(cell)} is impossible, and is released"
    if boxes is None:
        return
    for row in np.flatnonzero((own.count > boxes.upper) | (own.count + missing < boxes.lower))[:1].tolist():
        lower, upper = f"{boxes.lower[row]:,}", f"{boxes.upper[row]:,}"
        told = lower if lower == upper else f"between {lower} and {upper}"
        where = fact.table.words(int(boxes.cells[row]))
        yield f"{fact.words}: {where} is released as {own.count[row]:,}, and the fact says {told}"


def margin_findings(release: Release, sums: Sequence[Ints]) -> Iterator[str]:
    """Compare every cell of a margin with the sum of its leaves; what is unresolved may belong to any.

    A margin that crosses another has exactly the sum, and nothing of what is unresolved.
    """
    for table, sum_of in zip(release.margins, sums, strict=True):
        missing = table.count - sum_of
        if table.exact and table.count.sum() != release.total:
            sum_of_cells = f"{table.margin.name} sums to {table.count.sum():,}"
            yield f"{files.MARGINS}: {sum_of_cells}, not to the total {release.total:,}"
        wrong = np.flatnonzero(missing < 0 if table.exact and release.left is not None else missing)
        if len(wrong):
            codes = ", ".join(str(code[0]) for code in codes_of(release.spine, table.margin, wrong[:1]).values())
            cell = int(wrong[0])
            yield (
                f"{files.MARGINS}: {table.margin.name} {codes} is {table.count[cell]:,}, but its leaves add up to "
                f"{table.count[cell] - missing[cell]:,}"
            )
