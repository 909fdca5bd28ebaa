"""From a private table to counts: codes become leaf numbers, unknown codes are dealt with as the plan says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.counts import LARGEST_TOTAL, Counts
from treetop.data import table as tables
from treetop.errors import DataError
from treetop.hierarchy import Hierarchy
from treetop.spine import Spine

Unknown = Literal["error", "drop"] | Mapping[str, str]
"""Missing codes and codes that are not in the hierarchy: refuse them, drop their rows, or count them under a leaf
that is named for each attribute."""


def read_counts(
    table: tables.Table,
    spine: Spine,
    columns: Mapping[str, str] | None = None,
    count: str | None = None,
    unknown: Unknown = "error",
) -> Counts:
    """Read a private table of records, or of rows with a count, and count its leaves.

    `columns` names the column of each attribute where it differs from the attribute's own name.
    """
    column_of = {attribute: attribute for attribute in spine.attributes}
    for attribute, column in (columns or {}).items():
        if attribute not in column_of:
            raise DataError(
                f"columns: there is no attribute {attribute!r}{tables.nearest(attribute, column_of)}; "
                f"the attributes are {', '.join(column_of)}"
            )
        column_of[attribute] = column
    wanted = [*column_of.values(), *([count] if count else [])]
    rows = tables.read(table, list(dict.fromkeys(wanted)))
    weights = None if count is None else _weights(rows.column(count), count)
    leaves = [
        _leaves(rows.column(column_of[attribute]), column_of[attribute], attribute, tree, unknown)
        for attribute, tree in spine.attributes.items()
    ]
    if unknown == "drop":
        known = np.logical_and.reduce([leaf >= 0 for leaf in leaves])
        if not known.all():
            leaves = [leaf[known] for leaf in leaves]
            weights = None if weights is None else weights[known]
    return Counts.from_leaves(spine, [_to_spine(spine, i, leaf) for i, leaf in enumerate(leaves)], weights)


def _to_spine(spine: Spine, attribute: int, leaf: NDArray[np.int64]) -> NDArray[np.int64]:
    """Map leaves of the hierarchy as given to leaves of the spine, which may stop at a coarser level."""
    given, used = list(spine.attributes.values())[attribute], spine.trees[attribute]
    if given.levels[-1] == used.levels[-1]:
        return leaf
    return given.ancestors(given.depth(used.levels[-1]))[leaf]


def _leaves(
    column: pa.ChunkedArray, name: str, attribute: str, tree: Hierarchy, unknown: Unknown
) -> NDArray[np.int64]:
    """Return the leaf number of every row; -1 for a row that is to be dropped."""
    encoded = tables.text(column, name).dictionary_encode().unify_dictionaries()
    if len(encoded) == 0:
        return np.empty(0, np.int64)
    codes = encoded.chunk(0).dictionary
    number = np.append(tree.encode(codes), -1)  # the last is for missing values
    index = np.concatenate([chunk.indices.fill_null(len(codes)).to_numpy() for chunk in encoded.chunks])
    leaves = number[index]
    if isinstance(unknown, Mapping):
        leaves[leaves < 0] = _other_leaf(unknown, attribute, tree)
    elif unknown != "drop":
        row = int(leaves.argmin())
        if leaves[row] < 0:
            _refuse_unknown(encoded, row, number[:-1], name, attribute, tree)
    return leaves


def _other_leaf(unknown: Mapping[str, str], attribute: str, tree: Hierarchy) -> int:
    code = unknown.get(attribute)
    leaf = -1 if code is None else int(tree.encode(pa.array([code]))[0])
    if leaf < 0:
        raise DataError(
            f"unknown codes of {attribute!r} go to {code!r}, which is not a leaf of its hierarchy: "
            f'name one, as in unknown={{"{attribute}": "other"}}, and add it to the hierarchy'
        )
    return leaf


def _refuse_unknown(
    encoded: pa.ChunkedArray,
    row: int,
    number: NDArray[np.int64],
    name: str,
    attribute: str,
    tree: Hierarchy,
) -> NoReturn:
    code = encoded[row].as_py()
    remedy = (
        'Correct the table or the hierarchy; or pass unknown="drop", or the leaf that such rows count under'
    )
    if not code:
        raise DataError(f"column {name!r}, row {row + 1}: the code is missing. {remedy}")
    others = int((number < 0).sum()) - 1
    more = f" (and {others} more codes)" if others > 0 else ""
    hint = ""
    width = len(tree.codes[-1][0].as_py())
    if len(code) < width and tree.encode(pa.array([code.zfill(width)]))[0] >= 0:
        hint = f". The hierarchy has {code.zfill(width)!r}: leading zeros were lost, read the column as text"
    raise DataError(
        f"column {name!r}, row {row + 1}: {code!r} is not a {tree.levels[-1]} code in the hierarchy of "
        f"{attribute!r}{more}{hint}. {remedy}"
    )


def _weights(column: pa.ChunkedArray, name: str) -> NDArray[np.int64]:
    """Return a count column as whole numbers."""
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise DataError(f"column {name!r}, row {row + 1}: the count is missing")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.utf8_trim_whitespace(column)
        _refuse_first(
            pc.invert(pc.match_substring_regex(column, r"^[+-]?[0-9]+$")),
            column,
            name,
            "is not a whole number",
        )
        _refuse_first(pc.match_substring_regex(column, r"[0-9]{19}"), column, name, "is too large")
    elif pa.types.is_floating(column.type):
        whole = pc.and_(pc.is_finite(column), pc.equal(column, pc.floor(column)))
        _refuse_first(pc.invert(whole), column, name, "is not a whole number")
        _refuse_first(pc.greater(pc.abs(column), float(LARGEST_TOTAL)), column, name, "is too large")
    elif not (pa.types.is_integer(column.type) or pa.types.is_decimal(column.type)):
        raise DataError(f"column {name!r} holds {column.type}, not counts")
    try:
        column = column.cast(pa.int64())
    except pa.ArrowInvalid as problem:
        raise DataError(
            f"column {name!r} holds a count that is fractional or too large: {problem}"
        ) from problem
    return np.asarray(column.to_numpy(), dtype=np.int64)


def _refuse_first(bad: pa.ChunkedArray, column: pa.ChunkedArray, name: str, why: str) -> None:
    row = pc.index(bad, True).as_py()
    if row >= 0:
        raise DataError(f"column {name!r}, row {row + 1}: the count {column[row].as_py()!r} {why}")
