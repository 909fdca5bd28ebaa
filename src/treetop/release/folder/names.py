"""names/: what people call the codes of a hierarchy. Public, as the hierarchies are; counts do not depend on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from treetop.domain.hierarchy import Hierarchy
from treetop.errors import ReleaseError
from treetop.release.stored import read_schema, read_table

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
