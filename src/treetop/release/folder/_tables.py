"""The tables of a release folder beside its counts: how each is written and read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from treetop._util.arrays import first_disorder
from treetop._util.dtypes import Ints
from treetop._util.files import open_regular, read_regular, refuse_irregular
from treetop.card.rebuild import OF_CELLS
from treetop.counts.constraint_reader import fact_of
from treetop.counts.counts import pack
from treetop.domain.constraints import COUNTED, INVARIANT, PublicFacts
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.marginal import MARGIN, depths_named, margins_of
from treetop.domain.spine import Spine
from treetop.domain.table_cells import CellNumbering
from treetop.errors import ReleaseError
from treetop.measure.measure import NOTHING, Evidence, LevelEvidence, Remainders
from treetop.noise import Law
from treetop.noise.law import described_law
from treetop.plan.mechanism import JointMechanism
from treetop.release.intervals.table_evidence import TableEvidence
from treetop.release.margins import MarginTable, agreed_margins, bounds_of, codes_of
from treetop.release.measurements import LevelMeasurements, Measurements, align, remainder_intervals
from treetop.release.shards import Shards
from treetop.release.tree import ReleasedTree, nodes_at, spans, whole_numbers
from treetop.repair import REPAIRS

if TYPE_CHECKING:
    from treetop.release.release import Release

COUNTS, NODES, PLAN, CARD, PAGE = "counts.parquet", "nodes.parquet", "plan.toml", "card.json", "card.html"
HIERARCHIES = "hierarchies"
"""The folder with one Parquet file a hierarchy, named by its SHA-256: its codes, as they were listed."""
UNRESOLVED, MARGINS, PUBLIC, FACTS = "unresolved.parquet", "margins.parquet", "public.parquet", "facts.parquet"
EVIDENCE, MEASUREMENTS = "evidence.parquet", "measurements.parquet"
NAMES, PLACES = "names", "places"
"""Folders with one Parquet file a hierarchy, named by its SHA-256: its names, and where its leaves are on a map."""

DAMAGE: tuple[type[Exception], ...] = (
    *(OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, pa.ArrowException),
)
"""What a file of a folder may raise when it is read: a changed one with a matching hash may hold anything."""

# Only regular files are read, since a folder may come from anyone.

LARGEST_TEXT = 1 << 28
"""Most bytes of card.json, card.html and plan.toml."""


def read_bytes(path: Path) -> bytes:
    """Return the content of card.json, card.html or plan.toml."""
    return read_regular(path, LARGEST_TEXT)


def read_text(path: Path) -> str:
    """Return the text of card.json, card.html or plan.toml."""
    return read_bytes(path).decode("utf-8")


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a table, or some of its columns."""
    refuse_irregular(path)
    return pq.read_table(path, columns=None if columns is None else list(columns))


def read_schema(path: Path) -> pa.Schema:
    """Return the columns of a table."""
    refuse_irregular(path)
    return pq.read_schema(path)


def parquet_file(path: Path, read_dictionary: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a table."""
    refuse_irregular(path)
    return pq.ParquetFile(path, read_dictionary=list(read_dictionary))


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = sha256()
    with open_regular(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


# unresolved.parquet: the counts left at coarser nodes.


def unresolved_table(release: Release) -> pa.Table:
    """Return one row per remainder: level, the node's codes (null if not refined), count and, if on, interval."""
    spine, left = release.spine, release.left
    if left is None:
        left = Remainders.join([], len(spine.attributes))
    columns = {"level": pa.array(left.level)}
    for attribute, (name, tree) in enumerate(zip(spine.attributes, spine.trees, strict=True)):
        depth = np.array([spine.depths(level)[attribute] for level in left.level.tolist()], np.int64)
        offset = np.concatenate([[0], np.cumsum(tree.sizes)])
        place = pa.array(offset[np.maximum(depth - 1, 0)] + left.nodes[attribute], mask=depth == 0)
        columns[name] = pa.concat_arrays(tree.codes).take(place)
    columns["count"] = pa.array(left.count)
    if release.confidence is not None:
        lower, upper = remainder_intervals(release.measured, release.confidence)
        columns |= {"lower": pa.array(lower), "upper": pa.array(upper)}
    return pa.table(columns)


def read_unresolved(path: Path, spine: Spine) -> Remainders:
    """Read the table of `unresolved_table`; refuse remainders that repeat or are out of order: sums would be wrong."""
    table = read_table(path)
    level = whole_numbers(table, "level").astype(np.int32)
    count = whole_numbers(table, "count")
    nodes = np.zeros((len(spine.attributes), len(level)), np.int32)
    if len(level) and (level.min() < 0 or level.max() >= len(spine.levels) or count.min() <= 0):
        raise ReleaseError(f"{path}: a remainder is a count above zero at a level above the leaves")
    for index in np.unique(level).tolist():
        there = np.flatnonzero(level == index)
        stated = table.take(pa.array(there))
        for name, depth in zip(spine.attributes, spine.depths(index), strict=True):
            if depth == 0 and stated.column(name).null_count != len(there):
                raise ReleaseError(f"{path}: {name} has a code at a level where it is not refined")
        nodes[:, there] = nodes_at(spine, index, stated)
    if (nodes < 0).any():
        raise ReleaseError(f"{path}: a code is not in its hierarchy")
    left = Remainders(level, nodes, count)
    found = first_disorder([level.astype(np.uint64), *pack(spine, spans(spine, left)[0])])
    if found is not None:
        raise ReleaseError(f"{path}, row {found[0] + 2}: a node stands twice, or out of order")
    return left


# public.parquet: the public number of every leaf region.


def public_table(spine: Spine, numbers: Ints) -> pa.Table:
    """Return one row per leaf region: its code, and its number."""
    place = list(spine.attributes)[-1]
    return pa.table({place: spine.attributes[place].codes[-1], "number": pa.array(numbers)})


def read_public(path: Path, spine: Spine) -> Ints:
    """Read the table of `public_table`; refuse regions that are not the hierarchy's, or values that are no numbers."""
    table, place = read_table(path), list(spine.attributes)[-1]
    codes = spine.attributes[place].codes[-1]
    if table.column(place).to_pylist() != codes.to_pylist():
        raise ReleaseError(f"{path}: the regions are not those of the hierarchy")
    numbers = whole_numbers(table, "number")
    if numbers.min() < 0:
        raise ReleaseError(f"{path}: a number is negative")
    return numbers


# facts.parquet: the public facts that were kept, cell by cell, so that every reader of the folder can verify them.


def facts_table(facts: PublicFacts) -> pa.Table:
    """Return one row per cell of a fact: the table, the kind of fact, its codes, and its number if any."""
    names = list(facts.spine.attributes)
    texts = [(name, pa.string()) for name in ("level", "states", *names)]
    schema = pa.schema([*texts, ("count", pa.int64())])
    parts = [schema.empty_table()]
    for fact in facts:
        for kind, (cells, numbers) in fact.stated.items():
            nodes, size = fact.table.nodes(cells), len(cells)
            columns = {"level": pa.array([fact.name] * size), "states": pa.array([kind] * size)}
            for one in fact.table.attributes:
                columns[names[one]] = fact.table.codes(one).take(pa.array(nodes[one]))
            if kind in (*COUNTED, INVARIANT):
                columns["count"] = pa.array(numbers)
            parts.append(pa.table(columns))
    return pa.concat_tables(parts, promote_options="permissive").cast(schema).combine_chunks()


def read_facts_table(path: Path, spine: Spine, told: Sequence[Mapping[str, Any]]) -> PublicFacts:
    """Read the table of `facts_table`; refuse one with another SHA-256 than the plan of the card names."""
    rows = read_table(path)
    facts, read = [], 0
    for about in told:
        table = CellNumbering(spine, depths_named(spine, about["table"]))
        of_fact = rows.filter(pc.equal(rows.column("level"), about["table"]))
        own: dict[str, tuple[Ints, Ints]] = {}
        for kind in about["states"]:
            part = of_fact.filter(pc.equal(of_fact.column("states"), kind))
            own[kind] = _cells(path, table, part, kind in (*COUNTED, INVARIANT))
            read += len(part)
        fact = fact_of(table, tuple(about["states"]), own, unchecked=about.get("unchecked", False))
        if fact.sha256 != about.get("sha256", ""):
            raise ReleaseError(f"{path}: what is stated of {fact.name} is not what the card names by its SHA-256")
        if INVARIANT in fact.kinds and len(fact.stated[INVARIANT][0]) != fact.table.number:
            raise ReleaseError(f"{path} does not have all cells of {fact.name}")
        facts.append(fact)
    if read != len(rows):
        raise ReleaseError(f"{path} has rows of tables that the plan states nothing of")
    found = PublicFacts(spine, tuple(facts))
    if not rows.equals(facts_table(found)):  # a code that no fact asks for, another order, a column more
        raise ReleaseError(f"{path} is not how these facts are written")
    found.check()
    return found


def _cells(path: Path, table: CellNumbering, rows: pa.Table, counted: bool) -> tuple[Ints, Ints]:
    nodes = np.zeros((len(table.depths), len(rows)), np.int64)
    for one in table.attributes:
        tree, depth = table.spine.trees[one], table.depths[one]
        codes = rows.column(list(table.spine.attributes)[one]).combine_chunks()
        nodes[one] = pc.index_in(codes, value_set=tree.codes[depth - 1]).fill_null(-1).to_numpy()
    if (nodes < 0).any():
        raise ReleaseError(f"{path} has a code that is not in its hierarchy")
    cells = table.numbers(nodes, table.depths)
    if (np.diff(cells) <= 0).any():
        raise ReleaseError(f"{path}: the cells of {table.name} are out of order, or one stands twice")
    numbers = rows.column("count").to_numpy() if counted else np.zeros(len(rows), np.int64)
    if counted and (numbers.dtype != np.int64 or (len(numbers) and numbers.min() < 0)):
        raise ReleaseError(f"{path} has a number that is not whole, or is negative")
    return cells, np.asarray(numbers)


# names/: the names of a hierarchy's codes. Public, as the hierarchies are; counts do not depend on them.


def names_table(tree: Hierarchy, places: pa.Table | None) -> pa.Table | None:
    """Return one row per code that has a name; None if no code has one, or if `places` has all names."""
    if not tree.names:
        return None
    if places is not None and list(tree.names) == [tree.levels[-1]]:
        row = pc.index_in(tree.codes[-1], value_set=places["code"].combine_chunks())
        names = tree.names[tree.levels[-1]]
        same = pc.or_kleene(pc.equal(places["name"].combine_chunks().take(row), names), pc.is_null(names))
        if pc.all(same, skip_nulls=False).as_py():
            return None
    parts = []
    for depth, level in enumerate(tree.levels):
        if level in tree.names:
            own = pa.table({"code": tree.codes[depth], "name": tree.names[level]})
            own = own.filter(pc.is_valid(own["name"]))
            parts.append(own.add_column(0, "level", pa.array([level] * len(own), pa.string())))
    table = pa.concat_tables(parts).combine_chunks()
    return table if len(table) else None


def with_saved_names(tree: Hierarchy, digest: str, folder: Path, card: dict[str, Any]) -> Hierarchy:
    """Return a tree with the names in its folder, of all levels or of its leaves, as the card lists."""
    listed = {file["path"] for file in card.get("files", ())}
    given = {}
    if (name := f"{NAMES}/{digest}.parquet") in listed:
        rows = read_table(folder / name, columns=["level", "code", "name"])
        for level in pc.unique(rows["level"]).to_pylist():
            if level not in tree.levels:
                raise ReleaseError(f"{folder / name} has names of {level!r}, which is no level of its hierarchy")
            codes, names = _codes_and_names(rows.filter(pc.equal(rows["level"], level)))
            if pc.any(pc.invert(pc.is_in(codes, value_set=tree.codes[tree.depth(level)]))).as_py():
                raise ReleaseError(f"{folder / name} names a code that is not in its hierarchy")
            given[level] = codes, names
        return tree.with_names(given)
    if (name := f"{PLACES}/{digest}.parquet") in listed and "name" in read_schema(folder / name).names:
        codes, names = _codes_and_names(read_table(folder / name, columns=["code", "name"]))
        other = pc.not_equal(codes, names)  # a place without a name is called by its code
        return tree.with_names({tree.levels[-1]: (codes.filter(other), names.filter(other))})
    return tree


def _codes_and_names(rows: pa.Table) -> list[pa.Array]:
    return [rows[column].combine_chunks().cast(pa.string()) for column in ("code", "name")]


# margins.parquet: the tables that were measured beside the spine.


def margins_table(tables: Sequence[MarginTable], spine: Spine, confidence: float | None) -> pa.Table:
    """Return one row per cell: the margin, its codes (null if summed over), the count and the measurement.

    The names of the columns are those of other tables, which no attribute can have.
    """
    names = list(spine.attributes)
    numbers = ["count", "value"] + ([] if confidence is None else ["lower", "upper"])
    schema = pa.schema([(name, pa.string()) for name in ("level", *names)] + [(name, pa.int64()) for name in numbers])
    parts = [schema.empty_table()]
    for one in tables:
        columns = {"level": pa.array(np.full(len(one.count), one.margin.name))}
        columns |= codes_of(spine, one.margin, np.arange(len(one.count)))
        columns |= {"count": pa.array(one.count), "value": pa.array(one.measured)}
        if confidence is not None:
            columns |= dict(zip(("lower", "upper"), map(pa.array, one.intervals(confidence)), strict=True))
        parts.append(pa.table(columns))
    return pa.concat_tables(parts, promote_options="permissive").cast(schema).combine_chunks()


def read_margins(path: Path, card: dict[str, Any], spine: Spine, facts: PublicFacts | None) -> tuple[MarginTable, ...]:
    """Read the table of `margins_table`, of the margins that a card's plan measures, if any."""
    parts = card["plan"].get("margins", ())
    told = [(part["name"].removeprefix(MARGIN), described_law(part["noise"])) for part in parts]
    if not told:
        return ()
    is_joint = card["plan"].get("mechanism") == JointMechanism.name
    margins = margins_of(spine, [name for name, _ in told], levels="kept" if is_joint else "left out")
    table = read_table(path)
    sizes = [margin.nodes for margin in margins]
    if len(margins) != len(told) or table.num_rows != sum(sizes):
        raise ReleaseError(f"{path} does not have one row for every cell of the plan's margins")
    nothing = [np.zeros(size, np.int64) for size in sizes]
    blank = [
        MarginTable(margin, law, zero, zero) for margin, (_, law), zero in zip(margins, told, nothing, strict=True)
    ]
    expected = margins_table(blank, spine, None)
    codes = ["level", *spine.attributes]
    if not table.select(codes).equals(expected.select(codes)):
        raise ReleaseError(f"{path}: the cells are not those of the plan's margins, in the order of the hierarchies")
    count, measured = (whole_numbers(table, name) for name in ("count", "value"))
    if len(count) and count.min() < 0:
        raise ReleaseError(f"{path} has a count below zero")
    bounds = np.cumsum(sizes)[:-1]
    exact = [False] * len(margins) if is_joint else agreed_margins(spine, margins, facts)
    every = zip(margins, told, np.split(count, bounds), np.split(measured, bounds), exact, strict=True)
    return tuple(
        MarginTable(margin, law, own, seen, agrees, bounds_of(spine, margin, facts))
        for margin, (_, law), own, seen, agrees in every
    )


# evidence.parquet: a few bytes for every released node; measurements.parquet: all measurements of coarse levels.


def evidence_tables(shards: Shards) -> Iterator[tuple[str, pa.Table]]:
    """Yield the measurements of the levels in memory, as two files; the second alone for cells."""
    if shards.evidence is not None:
        yield EVIDENCE, evidence_table(shards.evidence)
    if shards.known is not None:
        yield MEASUREMENTS, shards.measurements.table()


def evidence_table(evidence: Evidence, above: int = -1) -> pa.Table:
    """Return one row per released node below a level (from the total down if −1), in spine order, level by level.

    `measured` is its own measurement, null if it has none; `highest` the highest measurement of a child that was not
    released, null if there is no such child.
    """
    levels = evidence.levels
    own = [np.array([NOTHING if evidence.total is None else evidence.total][: len(levels[0].highest)], np.int64)]
    own = [*own, *(level.measured for level in levels)][above + 1 :]
    below = [*(level.highest for level in levels), np.full(len(levels[-1].measured), NOTHING)][above + 1 :]
    measured, highest = np.concatenate(own), np.concatenate(below)
    index = np.arange(above + 1, above + 1 + len(own), dtype=np.int32)
    return pa.table(
        {
            "level": pa.array(np.repeat(index, [len(level) for level in own])),
            "measured": pa.array(measured, mask=measured == NOTHING),
            "highest": pa.array(highest, mask=highest == NOTHING),
        }
    )


def with_evidence(release: Release, folder: Path) -> Release:
    """Read the kept measurements: those under released nodes, or all if there are more."""
    laws = laws_of(release.card)
    plan = release.card["plan"]
    if ("mechanism" in plan or measures_cells(release.card)) and (folder / MEASUREMENTS).is_file():
        found = Measurements.from_table(read_table(folder / MEASUREMENTS), release.spine, laws)
        release = replace(release, all_measured=found)
        return _with_tables(release, laws[0]) if "mechanism" in plan else release
    if not (folder / EVIDENCE).is_file():
        return release
    tree, levels = release.tree, release.spine.levels
    if not made_from_all(release.card):
        return replace(release, evidence=read_evidence(folder, tree, len(levels), laws))
    measured, highest, found = _read(folder, tree, len(levels), laws)
    # A level at which no retained node has several children has no rows, and nothing of it is missing.
    none = LevelMeasurements(np.empty((len(tree.nodes), 0), np.int32), np.empty(0, np.int64))
    pairs = zip(found.levels, levels, strict=True)
    kept = (none if seen is None and not _measured_children(tree, level.index) else seen for seen, level in pairs)
    found = replace(found, levels=tuple(kept))
    aligned = align(tree, found)
    for own, beside, level in zip(measured[1:], highest, aligned.levels, strict=False):
        if not (np.array_equal(own, level.measured) and np.array_equal(beside, level.highest)):
            raise ReleaseError(f"{folder}: {EVIDENCE} is not what {MEASUREMENTS} gives for the released nodes")
    return replace(release, evidence=aligned, all_measured=found)


def _with_tables(release: Release, law: Law | None) -> Release:
    """Return a release of a joint fit with its evidence: all margins, and the total."""
    measured = None if release.all_measured is None else release.all_measured.total
    if (measured is None) != (law is None):
        raise ReleaseError(f"{MEASUREMENTS} has a total, or lacks one, against the plan")
    margins = release.margins
    total = release.tree.total if measured is None else measured
    tables, laws, values = zip(*((one.margin, one.law, one.measured) for one in margins), strict=True)
    evidence = TableEvidence(release.spine, tables, laws, values, total, law)
    return replace(release, margins=tuple(replace(one, evidence=evidence) for one in margins))


def read_evidence(folder: Path, tree: ReleasedTree, level: int, laws: tuple[Law | None, ...]) -> Evidence:
    """Read the measurements of the nodes down to a level and, above the leaves, of the children of the last."""
    measured, highest, found = _read(folder, tree, level, laws)
    levels = []
    own = [*measured[1:], np.empty(0, np.int64)]
    for refined, seen, mine, beside in zip(tree.spine.levels, found.levels, own, highest, strict=False):
        if seen is not None and len(seen) != _measured_children(tree, refined.index):
            raise ReleaseError(f"{folder}: {MEASUREMENTS} is not about the released nodes")
        levels.append(LevelEvidence(mine, beside, np.empty(0, np.int64) if seen is None else seen.value))
    if any(seen is not None and len(seen) for seen in found.levels[len(levels) :]):
        raise ReleaseError(f"{folder}: {MEASUREMENTS} has levels below those in {EVIDENCE}")
    return Evidence(found.total, tuple(levels), laws)


def _read(
    folder: Path, tree: ReleasedTree, level: int, laws: tuple[Law | None, ...]
) -> tuple[list[Ints], list[Ints], Measurements]:
    """Return the nodes' own measurements and their highest dropped children, by level, and all measurements."""
    table = read_table(folder / EVIDENCE)
    measured, highest = split_evidence(table, range(level + 1), tree, f"{folder}: {EVIDENCE}")
    found = Measurements.from_table(read_table(folder / MEASUREMENTS), tree.spine, laws)
    if (found.total is None) != (laws[0] is None):
        raise ReleaseError(f"{folder}: {MEASUREMENTS} has a total, or lacks one, against the plan")
    return measured, highest, found


def split_evidence(table: pa.Table, levels: range, tree: ReleasedTree, name: str) -> tuple[list[Ints], list[Ints]]:
    """Return both columns of an evidence table by level; refuse one without a row for every released node."""
    sizes = [tree.size(index) for index in levels]
    if not np.array_equal(whole_numbers(table, "level"), np.repeat(levels, sizes)):
        raise ReleaseError(f"{name} does not have one row for every released node")
    ends = (np.asarray(table[end].fill_null(NOTHING).to_numpy(), np.int64) for end in ("measured", "highest"))
    measured, highest = (np.split(values, np.cumsum(sizes)[:-1]) for values in ends)
    return measured, highest


def made_from_all(card: dict[str, Any]) -> bool:
    """Whether the counts were estimated from all measurements, so that the released nodes need not be the measured."""
    repair = card["plan"].get("repair")
    return "mechanism" in card["plan"] or (repair in REPAIRS and REPAIRS[repair].again)


def measures_cells(card: Mapping[str, Any]) -> bool:
    """Whether counts were measured cell by cell along an axis: group sizes, or degrees."""
    return not OF_CELLS.keys().isdisjoint(card["plan"])


def laws_of(card: Mapping[str, Any]) -> tuple[Law | None, ...]:
    """Return the noise of the total and of every level, as the plan of a card states it."""
    told = card["plan"]["levels"]
    return tuple(None if level["noise"] is None else described_law(level["noise"]) for level in told)


def _measured_children(tree: ReleasedTree, index: int) -> int:
    """Return how many children were measured of the released nodes above a level."""
    fanout = tree.fanout(index)
    return int(fanout[fanout > 1].sum())
