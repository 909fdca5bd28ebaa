"""The branches of a tree, one row per leaf, one column per level: of a lookup table, a list of parents, or prefixes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.dtypes import Ints
from treetop.errors import DataError, HierarchyError
from treetop.io import table as tables
from treetop.io.row_batch import as_text, first_missing
from treetop.io.source import as_public, as_source

Ragged = Literal["error", "repeat"]
"""Treatment of branches that end early: refuse it, or repeat its last code down."""


_MOST_CELLS = 1 << 28
_SHOWN = 6


def level_names(levels: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the levels, coarse to fine; refuse those that cannot be names."""
    names = tuple(levels)
    if isinstance(levels, str) or not names:
        raise HierarchyError("give the names of the levels as a list, coarse to fine")
    seen: set[str] = set()
    for name in names:
        if not name:
            raise HierarchyError(f"level {len(seen) + 1} has no name: name every level")
        if name in seen:
            raise HierarchyError(f"level name {name!r} is given twice: every level needs a name of its own")
        seen.add(name)
    return names


def renamed_levels(levels: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Return what each level is called in its source, by its name."""
    given = levels if isinstance(levels, Mapping) else dict(zip(levels, levels, strict=True))
    names = level_names(list(levels) if isinstance(levels, Mapping) else levels)
    return {name: given[name] for name in names}


def as_strings(values: Iterable[Any]) -> list[str]:
    """Return codes as a list; refuse values that are not text."""
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
        if delimiter is not None or encoding is not None:
            source = as_source(table)
            if source is None or source.scheme is not None:
                raise HierarchyError(
                    "a delimiter and an encoding are those of a CSV file, and this is none: leave them out"
                )
            table = replace(source, delimiter=delimiter or source.delimiter, encoding=encoding or source.encoding)
        rows = tables.read(as_public(table), columns)
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


def mixed_lengths(codes: pa.StringArray, lengths: list[int]) -> str:
    """Explain why codes of several lengths cannot be cut, and suggest a remedy."""
    longest = lengths[-1]
    short = codes.filter(pc.less(pc.utf8_length(codes), longest))
    long = codes.filter(pc.equal(pc.utf8_length(codes), longest))
    message = f"codes have lengths {lengths}, for example {short[0].as_py()!r}: prefixes need one length. "
    beginnings = pc.utf8_slice_codeunits(long, 0, len(short[0].as_py()))
    at = pc.index(beginnings, short[0]).as_py()
    if at >= 0 and not short[0].as_py().startswith("0"):
        message += (
            f"{short[0].as_py()!r} begins {long[at].as_py()!r}: if the list holds the codes of all levels, give only "
            f"those of {longest} characters (a column that tells the level will do, as in "
            'keep = { level = "3" }). '
        )
    if pc.all(pc.match_substring_regex(codes, "^[0-9]+$")).as_py():
        padded = short[0].as_py().zfill(longest)
        message += (
            f"If leading zeros were lost, write all codes with {longest} digits: {padded!r} for {short[0].as_py()!r}"
        )
    return message.rstrip()


def _depths(up: Ints, codes: pa.Array) -> Ints:
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


# Names of codes: what people call the nodes of a hierarchy, from public files.


def names_of(level: str, codes: pa.StringArray, given: pa.Array, names: pa.Array) -> pa.StringArray:
    """Return the name of each code of a level, from columns of codes and names as a file has them.

    It is null for codes without one; a code with two names is refused.

    >>> names_of("town", pa.array(["a", "b"]), pa.array(["b", "b"]), pa.array(["Bath", "Bath"])).to_pylist()
    [None, 'Bath']
    """
    trimmed = pc.utf8_trim_whitespace(names)
    called = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
    node = pc.index_in(given, value_set=codes, skip_nulls=True)
    used = pc.and_(pc.is_valid(node), pc.is_valid(called))
    at, called = node.filter(used).to_numpy(zero_copy_only=False).astype(np.int64), called.filter(used)
    first = np.full(len(codes), -1, np.int64)
    first[at[::-1]] = np.arange(len(at))[::-1]
    first_names = called.take(pa.array(first, mask=first < 0))
    other = pc.index(pc.not_equal(called, first_names.take(pa.array(at))), True).as_py()
    if other >= 0:
        code = codes[int(at[other])].as_py()
        raise HierarchyError(
            f"code {code!r} of level {level!r} has two names, {first_names[int(at[other])].as_py()!r} and "
            f"{called[other].as_py()!r}: correct the file, or leave the names of this level out"
        )
    return first_names
