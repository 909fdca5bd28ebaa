"""The tables of a release folder beside its counts: remainders, public numbers, facts, and names of codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop._util.arrays import first_disorder
from treetop.counts.constraint_reader import fact_of
from treetop.counts.counts import pack
from treetop.domain.constraints import COUNTED, INVARIANT, PublicFacts, TableFact
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.marginal import depths_named
from treetop.domain.spine import Spine
from treetop.domain.spine_level import Ints
from treetop.domain.table_cells import CellNumbering
from treetop.errors import ReleaseError
from treetop.measure.measure import Remainders
from treetop.release.intervals.remainders import remainder_intervals
from treetop.release.stored import read_schema, read_table, whole_numbers
from treetop.release.tree import nodes_at, spans

if TYPE_CHECKING:
    from treetop.release.release import Release

UNRESOLVED = "unresolved.parquet"


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


PUBLIC = "public.parquet"


def public_table(spine: Spine, numbers: NDArray[np.int64]) -> pa.Table:
    """Return one row per leaf region: its code, and its number."""
    place = list(spine.attributes)[-1]
    return pa.table({place: spine.attributes[place].codes[-1], "number": pa.array(numbers)})


def read_public(path: Path, spine: Spine) -> NDArray[np.int64]:
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

FACTS = "facts.parquet"


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
        facts.append(fact_of(table, tuple(about["states"]), own, unchecked=about.get("unchecked", False)))
        _refuse_other(path, facts[-1], about)
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


def _refuse_other(path: Path, fact: TableFact, about: Mapping[str, Any]) -> None:
    if fact.sha256 != about.get("sha256", ""):
        raise ReleaseError(f"{path}: what is stated of {fact.name} is not what the card names by its SHA-256")
    if INVARIANT in fact.kinds and len(fact.stated[INVARIANT][0]) != fact.table.number:
        raise ReleaseError(f"{path} does not have all cells of {fact.name}")


# names/: the names of a hierarchy's codes. Public, as the hierarchies are; counts do not depend on them.

NAMES, PLACES = "names", "places"
"""Folders with one Parquet file a hierarchy, named by its SHA-256: its names, and where its leaves are on a map."""


def names_table(tree: Hierarchy, places: pa.Table | None) -> pa.Table | None:
    """Return one row per code that has a name; None if no code has one, or if `places` has all names."""
    if not tree.names or (places is not None and list(tree.names) == [tree.levels[-1]] and _has_all(tree, places)):
        return None
    parts = []
    for depth, level in enumerate(tree.levels):
        if level in tree.names:
            own = pa.table({"code": tree.codes[depth], "name": tree.names[level]})
            own = own.filter(pc.is_valid(own["name"]))
            parts.append(own.add_column(0, "level", pa.array([level] * len(own), pa.string())))
    table = pa.concat_tables(parts).combine_chunks()
    return table if len(table) else None


def _has_all(tree: Hierarchy, places: pa.Table) -> bool:
    row = pc.index_in(tree.codes[-1], value_set=places["code"].combine_chunks())
    named = pc.equal(places["name"].combine_chunks().take(row), tree.names[tree.levels[-1]])
    return bool(pc.all(pc.or_kleene(named, pc.is_null(tree.names[tree.levels[-1]])), skip_nulls=False).as_py())


def with_saved_names(tree: Hierarchy, digest: str, folder: Path, card: dict[str, Any]) -> Hierarchy:
    """Return a tree with the names in its folder, of all levels or of its leaves, as the card lists."""
    listed = {file["path"] for file in card.get("files", ())}
    if (name := f"{NAMES}/{digest}.parquet") in listed:
        return _with_names(tree, folder / name)
    if (name := f"{PLACES}/{digest}.parquet") in listed and "name" in read_schema(folder / name).names:
        table = read_table(folder / name, columns=["code", "name"])
        given = tuple(table[column].combine_chunks().cast(pa.string()) for column in ("code", "name"))
        return tree.with_names({tree.levels[-1]: _called_otherwise(*given)})
    return tree


def _called_otherwise(codes: pa.Array, names: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the names that differ from the code; a place without a name is called by its code."""
    other = pc.not_equal(codes, names)
    return codes.filter(other), names.filter(other)


def _with_names(tree: Hierarchy, path: Path) -> Hierarchy:
    rows = read_table(path, columns=["level", "code", "name"])
    given = {}
    for level in pc.unique(rows["level"]).to_pylist():
        if level not in tree.levels:
            raise ReleaseError(f"{path} has names of {level!r}, which is no level of its hierarchy")
        own = rows.filter(pc.equal(rows["level"], level))
        codes, names = (own[column].combine_chunks().cast(pa.string()) for column in ("code", "name"))
        if pc.any(pc.invert(pc.is_in(codes, value_set=tree.codes[tree.depth(level)]))).as_py():
            raise ReleaseError(f"{path} names a code that is not in its hierarchy")
        given[level] = (codes, names)
    return tree.with_names(given)
