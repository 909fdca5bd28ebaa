"""Names of codes: what people call the nodes of a hierarchy, from public files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop.domain.branches import as_strings
from treetop.errors import HierarchyError


@dataclass(frozen=True, eq=False)
class Given:
    """Names as a file has them, one row after the other."""

    codes: pa.StringArray
    """The codes."""
    names: pa.StringArray
    """What each is called; empty where nothing is said."""


def as_given(names: Mapping[str, str]) -> tuple[pa.Array, pa.Array]:
    """Return names by code as two columns."""
    return tuple(pa.array(as_strings(part), pa.string()) for part in (names, names.values()))


def names_of(level: str, codes: pa.StringArray, given: Given) -> pa.StringArray:
    """Return what each of the codes of a level is called, null where nothing is; one with two names is refused.

    >>> names_of("town", pa.array(["a", "b"]), Given(pa.array(["b", "b"]), pa.array(["Bath", "Bath"]))).to_pylist()
    [None, 'Bath']
    """
    trimmed = pc.utf8_trim_whitespace(given.names)
    called = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
    node = pc.index_in(given.codes, value_set=codes, skip_nulls=True)
    used = pc.and_(pc.is_valid(node), pc.is_valid(called))
    at, called = node.filter(used).to_numpy(zero_copy_only=False).astype(np.int64), called.filter(used)
    first = np.full(len(codes), -1, np.int64)
    first[at[::-1]] = np.arange(len(at))[::-1]
    found = called.take(pa.array(first, mask=first < 0))
    other = pc.index(pc.not_equal(called, found.take(pa.array(at))), True).as_py()
    if other >= 0:
        code = codes[int(at[other])].as_py()
        raise HierarchyError(
            f"code {code!r} of level {level!r} has two names, {found[int(at[other])].as_py()!r} and "
            f"{called[other].as_py()!r}: correct the file, or leave the names of this level out"
        )
    return found
