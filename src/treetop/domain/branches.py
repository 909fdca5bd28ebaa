"""The branches of a tree, one row per leaf, one column per level: of a lookup table, a list of parents, or prefixes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.errors import DataError, HierarchyError
from treetop.sources import table as tables
from treetop.sources.batch import as_text, first_missing
from treetop.sources.source import as_public, as_source

Ragged = Literal["error", "repeat"]
"""What to do where a branch ends early: refuse it, or repeat its last code down."""


_MOST_CELLS = 1 << 28
_SHOWN = 6


def level_names(levels: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the levels, coarse to fine; refuse those that cannot be names."""
    names = tuple(levels)
    if isinstance(levels, str) or not names:
        raise HierarchyError("give the names of the levels as a list, coarse to fine")
    seen: set[str] = set()
    for name in names:
        if not name or "." in name:
            raise HierarchyError(f"level name {name!r} must be non-empty and without dots (they join attribute.level)")
        if name in seen:
            raise HierarchyError(f"level name {name!r} is given twice: every level needs a name of its own")
        seen.add(name)
    return names


def as_strings(values: Iterable[Any]) -> list[str]:
    """Return codes as a list; refuse what is not text."""
    strings = list(values)
    for value in strings:
        if not isinstance(value, str):
            raise HierarchyError(f"codes are strings, but {value!r} is {type(value).__name__}: leading zeros count")
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise HierarchyError(f"the code {value!r} holds half of a character, and is no text: read it as UTF-8")
    return strings


def read_columns(
    table: tables.Table, columns: Sequence[str], delimiter: str | None = None, encoding: str | None = None
) -> list[pa.Array]:
    """Read some columns of a table as text."""
    try:
        rows = tables.read(as_public(_with_options(table, delimiter, encoding)), columns)
        return [as_text(rows.column(name), name).combine_chunks() for name in columns]
    except DataError as problem:
        raise HierarchyError(f"hierarchy: {problem}") from problem


def fill_down(names: Sequence[str], columns: list[pa.Array], ragged: Ragged) -> list[pa.Array]:
    """Deal with branches that end early: blank finer levels."""
    if ragged not in ("error", "repeat"):
        raise HierarchyError(f'ragged is {ragged!r}: choose "error" or "repeat"')
    filled: list[pa.Array] = []
    for name, given in zip(names, columns, strict=True):
        column = pc.if_else(pc.equal(given, ""), None, given)
        if not filled:
            if column.null_count:
                row = pc.index(pc.is_null(column), True).as_py()
                raise HierarchyError(
                    f"row {row + 1} has no code at the coarsest level {name!r}: every branch needs one"
                )
        elif column.null_count:
            if ragged != "repeat":
                row = pc.index(pc.is_null(column), True).as_py()
                raise HierarchyError(
                    f"row {row + 1} has no code at level {name!r} under {filled[-1][row].as_py()!r}: the hierarchy is "
                    'ragged. Fill it in, or set ragged = "repeat" to repeat the code down (such steps cost nothing)'
                )
            column = pc.coalesce(column, filled[-1])
        filled.append(column)
    return filled


def paths(child: pa.Array, parent: pa.Array) -> list[pa.Array]:
    """Return one column per level with the path of every leaf of a child/parent list, blank where it ended."""
    row = first_missing(child)
    if row is not None:
        raise HierarchyError(f"row {row + 1} has no child code")
    parent = pc.if_else(pc.equal(parent, ""), None, parent)
    codes = pc.unique(pa.concat_arrays([child, pc.drop_null(parent)]))
    if len(codes) == 0:
        raise HierarchyError("the hierarchy is empty: give at least one code")
    number = pc.index_in(child, value_set=codes).to_numpy()
    above = pc.fill_null(pc.index_in(parent, value_set=codes, skip_nulls=True), -1).to_numpy()
    up = np.full(len(codes), -1, dtype=np.int64)
    up[number] = above
    clash = np.flatnonzero(up[number] != above)
    if len(clash):
        row = int(clash[0])
        raise HierarchyError(
            f"code {child[row].as_py()!r} has two parents, {_name(codes, above[row])} and "
            f"{_name(codes, up[number[row]])}: a code belongs under one"
        )
    depth = _depths(up, codes)
    has_child = np.zeros(len(codes), dtype=bool)
    has_child[up[up >= 0]] = True
    node = np.flatnonzero(~has_child)
    levels = int(depth.max()) + 1
    if levels * len(node) > _MOST_CELLS:
        raise HierarchyError(
            f"the tree is {levels:,} levels deep and has {len(node):,} leaves: with a code a level, it takes "
            f"{levels * len(node):,} codes, and at most {_MOST_CELLS:,} are held. Leave out levels that are not counted"
        )
    columns = np.full((levels, len(node)), -1, dtype=np.int64)
    rows = np.arange(len(node))
    while len(rows):
        columns[depth[node], rows] = node
        below = up[node] >= 0
        rows, node = rows[below], up[node[below]]
    return [codes.take(pa.array(column, mask=column < 0)) for column in columns]


def cut(codes: Iterable[str], widths: Sequence[int]) -> tuple[list[int], list[pa.Array]]:
    """Return the lengths of the prefixes, the whole code last, and one column of prefixes a length."""
    leaves = pa.array(as_strings(codes), pa.string())
    lengths = pc.unique(pc.utf8_length(leaves)).to_pylist()
    if not lengths:
        raise HierarchyError("the hierarchy is empty: give at least one code")
    longest = max(lengths)
    if len(lengths) > 1:
        raise HierarchyError(_mixed_lengths(leaves, sorted(lengths)))
    cuts = [int(width) for width in widths]
    if cuts != sorted(set(cuts)) or (cuts and not 0 < cuts[0] <= cuts[-1] <= longest):
        raise HierarchyError(f"widths {cuts} must increase and lie between 1 and the code length {longest}")
    if not cuts or cuts[-1] < longest:
        cuts.append(longest)
    return cuts, [pc.utf8_slice_codeunits(leaves, 0, width) for width in cuts]


def _with_options(table: tables.Table, delimiter: str | None, encoding: str | None) -> tables.Table:
    if delimiter is None and encoding is None:
        return table
    source = as_source(table)
    if source is None or source.scheme is not None:
        raise HierarchyError("a delimiter and an encoding are those of a CSV file, and this is none: leave them out")
    return replace(source, delimiter=delimiter or source.delimiter, encoding=encoding or source.encoding)


def _mixed_lengths(codes: pa.StringArray, lengths: list[int]) -> str:
    """Say why codes of several lengths cannot be cut, and what to do about it."""
    longest = lengths[-1]
    short = codes.filter(pc.less(pc.utf8_length(codes), longest))
    long = codes.filter(pc.equal(pc.utf8_length(codes), longest))
    told = f"codes have lengths {lengths}, for example {short[0].as_py()!r}: prefixes need one length. "
    beginnings = pc.utf8_slice_codeunits(long, 0, len(short[0].as_py()))
    at = pc.index(beginnings, short[0]).as_py()
    if at >= 0 and not short[0].as_py().startswith("0"):
        told += (
            f"{short[0].as_py()!r} begins {long[at].as_py()!r}: if the list holds the codes of all levels, give only "
            f"those of {longest} characters (a column that tells the level will do, as in "
            'keep = { level = "3" }). '
        )
    if pc.all(pc.match_substring_regex(codes, "^[0-9]+$")).as_py():
        padded = short[0].as_py().zfill(longest)
        told += (
            f"If leading zeros were lost, write all codes with {longest} digits: {padded!r} for {short[0].as_py()!r}"
        )
    return told.rstrip()


def _depths(up: NDArray[np.int64], codes: pa.Array) -> NDArray[np.int64]:
    """Return how many steps each node is from its top, doubling the steps each time."""
    top = len(up)
    ahead = np.append(np.where(up < 0, top, up), top)
    steps = np.append(np.ones(top, dtype=np.int64), 0)
    for _ in range(top.bit_length()):
        steps += steps[ahead]
        ahead = ahead[ahead]
    lost = ahead[:-1][ahead[:-1] != top]
    if len(lost):  # after more steps than there are nodes: this one is on the ring itself
        ring = [int(lost.min())]
        while len(ring) < _SHOWN and (len(ring) == 1 or ring[-1] != ring[0]):
            ring.append(int(up[ring[-1]]))
        shown = " → ".join(codes[node].as_py() for node in ring) + (" → …" if ring[-1] != ring[0] else "")
        raise HierarchyError(f"parents go in a circle: {shown}; a tree needs a top")
    return steps[:-1] - 1


def _name(codes: pa.Array, node: int) -> str:
    return "none" if node < 0 else repr(codes[int(node)].as_py())
