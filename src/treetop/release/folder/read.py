"""Reading a release folder: its card, its hierarchies and its counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.arrays import first_disorder
from treetop._util.files import open_regular, refuse_irregular
from treetop._util.lazy import later
from treetop.card.schema import findings
from treetop.counts.constraint_reader import fact_of
from treetop.counts.counts import pack
from treetop.domain.constraints import COUNTED, INVARIANT, PublicFacts, TableFact, narrowed
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.marginal import MARGIN, depths_named
from treetop.domain.spine import Spine, WrittenSpine
from treetop.domain.spine_level import Ints, Level
from treetop.domain.table_cells import CellNumbering
from treetop.errors import ReleaseError, TreetopError
from treetop.noise.law import described_law
from treetop.privacy import TOTAL
from treetop.release.contents import Contents
from treetop.release.folder.evidence import EVIDENCE, MEASUREMENTS, laws_of, with_evidence
from treetop.release.folder.public import PUBLIC, read_public
from treetop.release.folder.shards import FOLDERS, INDEX, TOP, read_shards
from treetop.release.folder.unresolved import UNRESOLVED, read_unresolved
from treetop.release.margins import MARGINS, MarginTable, read_margins
from treetop.release.stored import read_bytes, read_schema, read_table, read_text

# facts.parquet: what was public and was kept, cell by cell, so that whoever has the folder can verify it.

FACTS = "facts.parquet"


def facts_table(facts: PublicFacts) -> pa.Table:
    """Return one row per cell that a fact names: the table, what is stated, its codes, and its number if it has one."""
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
    """Read what `facts_table` wrote, and refuse what is not what the plan of a card names by its SHA-256."""
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


# names/: what people call the codes of a hierarchy. Public, as the hierarchies are; counts do not depend on it.

NAMES, PLACES = "names", "places"
"""Folders with one Parquet file a hierarchy, named by its SHA-256: its names, and where its leaves are on a map."""


def names_table(tree: Hierarchy, places: pa.Table | None) -> pa.Table | None:
    """Return one row a code that has a name; None where there is none, or what is known of places has them all."""
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
    """Return a tree with the names that its folder has, by what the card lists: of all levels, or of its leaves."""
    listed = {file["path"] for file in card.get("files", ())}
    if (name := f"{NAMES}/{digest}.parquet") in listed:
        return _with_names(tree, folder / name)
    if (name := f"{PLACES}/{digest}.parquet") in listed and "name" in read_schema(folder / name).names:
        table = read_table(folder / name, columns=["code", "name"])
        given = tuple(table[column].combine_chunks().cast(pa.string()) for column in ("code", "name"))
        return tree.with_names({tree.levels[-1]: _called_otherwise(*given)})
    return tree


def _called_otherwise(codes: pa.Array, names: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the names that are not just the code, which is what places are called that have none."""
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


COUNTS, NODES, PLAN, CARD, PAGE = "counts.parquet", "nodes.parquet", "plan.toml", "card.json", "card.html"
HIERARCHIES = "hierarchies"
"""The folder with one Parquet file a hierarchy, named by its SHA-256: its codes, as they were listed."""

_Kinds = tuple[type[Exception], ...]
_DAMAGE: _Kinds = (OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, pa.ArrowException)


@contextmanager
def _reading(folder: Path, lacking: _Kinds = (), damage: _Kinds = ()) -> Iterator[None]:
    """Turn what goes wrong into a message about a folder; some errors say what its card lacks."""
    try:
        yield
    except ReleaseError:
        raise
    except TreetopError as problem:  # such as noise of a law that there is not
        raise ReleaseError(f"{folder}: {problem}") from problem
    except lacking as problem:
        raise ReleaseError(f"{folder}: {CARD} lacks {problem}") from problem
    except damage as problem:
        raise ReleaseError(f"{folder}: cannot be read: {problem}") from problem


def load(folder: Path) -> Contents:
    """Read a release folder, and refuse one that was damaged since it was written.

    Every file that is read has the SHA-256 that the card names, and the card the one that its page names. Whoever
    changes a number and puts these right as well is found by `treetop check`, which computes everything again.
    """
    release = read_contents(folder, verified=True)
    with _reading(folder, (LookupError, TypeError), (OSError,)):
        _refuse_changes(release.card, folder)
    return release


def read_contents(folder: Path, *, verified: bool = False) -> Contents:
    """Read a release folder as it is, and refuse only what is no release: for whoever compares it with its card.

    Of one in parts, the leaves are read when they are asked for; if `verified`, their files are compared with the card
    then.
    """
    card = read_card(folder)
    for finding in findings(card):  # all that is read by a card that fits may trust its types
        raise ReleaseError(f"{folder}: {CARD} does not fit its schema: {finding}")
    with _reading(folder, (KeyError, TypeError, AttributeError), _DAMAGE):
        spine, facts = read_domain(folder, card)
        _refuse_other_levels(card, spine, facts, folder)
        plan_toml = read_text(folder / PLAN) if (folder / PLAN).exists() else None
        if in_parts(card):
            return _in_parts(folder, card, spine, facts, plan_toml, verified)
        leaves = read_table(folder / COUNTS, columns=[*spine.attributes, "count"])
        trees = zip(spine.attributes, spine.trees, strict=True)
        nodes = np.array([tree.encode(leaves.column(name).combine_chunks()) for name, tree in trees], np.int32)
    count = leaves.column("count").to_numpy()
    if count.dtype != np.int64 or leaves.column("count").null_count or (len(count) and count.min() <= 0):
        raise ReleaseError(f"{folder}: {COUNTS} must hold whole numbers above zero")
    if (nodes < 0).any():
        raise ReleaseError(f"{folder}: {COUNTS} has a code that is not in its hierarchy")
    if (found := first_disorder(pack(spine, nodes))) is not None:  # sums over such leaves would be wrong
        row, twice = found
        raise ReleaseError(
            f"{folder}: {COUNTS}, row {row + 2}: the leaf {'stands twice' if twice else 'is out of order'}"
        )
    with _reading(folder, damage=_DAMAGE):
        left = read_unresolved(folder / UNRESOLVED, spine) if (folder / UNRESOLVED).is_file() else None
        margins = _margins(folder, card, spine, facts)
        public = read_public(folder / PUBLIC, spine) if (folder / PUBLIC).is_file() else None
        release = Contents(spine, nodes, count, card, plan_toml, left=left, margins=margins, facts=facts, public=public)
        return with_evidence(release, folder)


def in_parts(card: dict[str, Any]) -> bool:
    """Whether a card is that of a folder in parts."""
    return any(file["path"] == TOP for file in card["files"])


def _in_parts(
    folder: Path,
    card: dict[str, Any],
    spine: Spine,
    facts: PublicFacts | None,
    plan_toml: str | None,
    verified: bool,
) -> Contents:
    """Read a folder in parts, but for the leaves."""
    stated = {file["path"]: file["sha256"] for file in card["files"]}
    for name in stated:
        if name.startswith(tuple(f"{kind}/" for kind in FOLDERS)) and not (folder / name).is_file():
            raise ReleaseError(f"{folder}: {name} is missing, which {CARD} names: {_more(folder)}")

    @cache
    def verify(name: str) -> None:
        if verified and file_sha256(folder / name) != stated.get(name):
            raise ReleaseError(f"{folder}: {name} is not the one that {CARD} names, by its SHA-256: {_more(folder)}")

    shards = read_shards(folder, card, spine, facts, laws_of(card), verify)
    return Contents(
        spine,
        later(lambda: shards.all_leaves[0]),
        later(lambda: shards.all_leaves[1]),
        card,
        plan_toml,
        evidence=later(shards.all_evidence),
        margins=_margins(folder, card, spine, facts),
        facts=facts,
        stored=shards,
    )


def _margins(folder: Path, card: dict[str, Any], spine: Spine, facts: PublicFacts | None) -> tuple[MarginTable, ...]:
    told = [(part["name"].removeprefix(MARGIN), described_law(part["noise"])) for part in margin_parts(card)]
    return read_margins(folder / MARGINS, spine, told, facts) if told else ()


def _more(folder: Path) -> str:
    return f"`treetop check {folder}` says more"


def margin_parts(card: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the plan of a card says of margins."""
    parts: list[dict[str, Any]] = card["plan"].get("margins", [])
    return parts


def _refuse_other_levels(card: dict[str, Any], spine: Spine, facts: PublicFacts | None, folder: Path) -> None:
    """Refuse a card whose levels are not those of its spine: noise is then looked up where there is none."""
    stated = [(level["name"], level["noise"] is not None) for level in card["plan"]["levels"]]

    def measured(level: Level) -> bool:
        return level.divides and not (facts is not None and facts.decides(spine.depths(level.index)))

    expected = [(level.name, measured(level)) for level in spine.levels]
    if [name for name, _ in stated[:1]] != [TOTAL] or stated[1:] != expected:
        raise ReleaseError(f"{folder}: {CARD} has other levels than its spine, or noise at others than it measures")


def _refuse_changes(card: dict[str, Any], folder: Path) -> None:
    """Refuse files that are not those that the card names, and a card that is not the one that its page names."""
    more = _more(folder)
    stated = {file["path"]: file["sha256"] for file in card["files"]}
    if (folder / PAGE).is_file() and file_sha256(folder / CARD).encode() not in read_bytes(folder / PAGE):
        raise ReleaseError(f"{folder}: {CARD} is not the one that {PAGE} names, so one was changed: {more}")
    # Of hierarchies the content has been compared; nodes are not read here.
    called = [name for name in stated if name.startswith((f"{NAMES}/", f"{PLACES}/"))]
    for name in (COUNTS, TOP, INDEX, PLAN, EVIDENCE, MEASUREMENTS, UNRESOLVED, MARGINS, PUBLIC, FACTS, *called):
        found = file_sha256(folder / name) if (folder / name).is_file() else None
        if found is None and name in stated:
            raise ReleaseError(f"{folder}: {name} is missing, which {CARD} names: {more}")
        if found != stated.get(name):
            raise ReleaseError(f"{folder}: {name} is not the one that {CARD} names, by its SHA-256: {more}")


def read_spine(folder: Path, card: dict[str, Any]) -> Spine:
    """Read the hierarchies that a card names, by their hash, and put its spine together."""
    trees = {}
    with _reading(folder):
        for name, about in card["plan"]["attributes"].items():
            if not re.fullmatch("[0-9a-f]{64}", about["sha256"]):
                raise ReleaseError(
                    f"{folder}: {CARD} names the hierarchy of {name!r} by something that is not a SHA-256"
                )
            path = folder / HIERARCHIES / f"{about['sha256']}.parquet"
            with _reading(folder, damage=(OSError,)):
                refuse_irregular(path)
            tree = Hierarchy.from_table(path, about["levels"])
            if tree.digest != about["sha256"]:
                raise ReleaseError(f"{folder}: the hierarchy of {name!r} is not the one that the card names")
            with _reading(folder, damage=_DAMAGE):
                trees[name] = with_saved_names(tree, about["sha256"], folder, card)
        return WrittenSpine(card["plan"]["spine"], trees)


def read_domain(folder: Path, card: dict[str, Any]) -> tuple[Spine, PublicFacts | None]:
    """Read the spine of a card with the facts that its plan states, which say what is possible."""
    spine = read_spine(folder, card)
    if "facts" not in card["plan"]:
        return spine, None
    with _reading(folder, damage=_DAMAGE):
        facts = read_facts_table(folder / FACTS, spine, card["plan"]["facts"])
        return narrowed(spine, facts.possible), facts


def read_card(folder: Path) -> dict[str, Any]:
    """Read a card; it is JSON without doubt: no key stands twice, and every number is one."""
    path = folder / CARD
    if not path.is_file():
        raise ReleaseError(f"{folder} is not a release folder: there is no {CARD} in it")
    try:
        text = read_text(path)
        card = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)
    except (ValueError, RecursionError, OSError) as problem:
        raise ReleaseError(f"{path}: not a card: {problem}") from problem
    if not isinstance(card, dict) or "plan" not in card:
        raise ReleaseError(f"{path}: not a card")
    return card


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = sha256()
    with open_regular(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return members


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")
