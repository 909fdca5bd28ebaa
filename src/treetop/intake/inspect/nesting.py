"""Columns that nest: each value of a finer column stands under one value of a coarser one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.sources.batch import as_plain

SAMPLE = 200_000
"""Pairs of columns are compared on at most this many rows, evenly spread over the table."""

_MOST_COLUMNS = 24
_COMPARED = 1000
FINER = 1.5
"""How many times as many values a finer level has at least."""


@dataclass(frozen=True, eq=False)
class Codes:
    """One column as numbers: which of its values each row has."""

    number: NDArray[np.int64]
    """The value of each row; a missing one counts as a value."""
    distinct: int
    """How many values there are."""
    blank: bool = False
    """Whether the last of them stands for the missing ones."""
    values: pa.Array | None = None
    """The values, by number; None where they are not needed any more."""
    rows: NDArray[np.int64] | None = None
    """The row of the table that each is from, counted from 0; None where all rows are here."""

    def row(self, at: int) -> int:
        """Return the number of a row as people count them."""
        return (at if self.rows is None else int(self.rows[at])) + 1


@dataclass(frozen=True)
class Clash:
    """A value of a finer column that stands under two values of a coarser one."""

    value: str
    """The value."""
    rows: tuple[int, int]
    """Two rows that show it, counted from 1."""
    values: int
    """How many values of the finer column do so."""
    of: int
    """How many it has."""


def sample_codes(table: pa.Table, columns: Sequence[str]) -> dict[str, Codes]:
    """Number the values of some columns on a sample of the rows."""
    rows, chosen = table.num_rows, None
    if rows > SAMPLE:
        chosen = np.linspace(0, rows - 1, SAMPLE).astype(np.int64)
        table = table.select(list(columns)).take(pa.array(chosen))
    return {name: _codes(table.column(name), chosen) for name in list(columns)[:_MOST_COLUMNS]}


def determines(finer: Codes, coarser: Codes) -> bool:
    """Whether every value of the finer column occurs with one value of the coarser only."""
    pairs = len(np.unique(finer.number * max(coarser.distinct, 1) + coarser.number))
    return pairs == finer.distinct


def clash(finer: Codes, coarser: Codes) -> Clash | None:
    """Return what keeps a column from nesting in another: the first value that does not, and how many do not."""
    pairs, first = np.unique(finer.number * max(coarser.distinct, 1) + coarser.number, return_index=True)
    under = pairs // max(coarser.distinct, 1)
    torn = np.flatnonzero(np.bincount(under, minlength=finer.distinct) > 1)
    torn = torn[torn < finer.distinct - 1] if finer.blank else torn
    if not len(torn):
        return None
    shown = [np.sort(first[under == value])[:2] for value in torn.tolist()[:_COMPARED]]
    one = min(range(len(shown)), key=lambda at: int(shown[at][1]))
    value = "" if finer.values is None else str(finer.values[int(torn[one])].as_py())
    rows = (finer.row(int(shown[one][0])), finer.row(int(shown[one][1])))
    return Clash(value, rows, len(torn), finer.distinct - finer.blank)


def where_present(columns: Mapping[str, Codes], name: str) -> dict[str, Codes]:
    """Return all columns in the rows where one of them is not missing."""
    own = columns[name]
    if not own.blank:
        return dict(columns)
    rows = own.number < own.distinct - 1
    return {other: _renumbered(codes.number[rows]) for other, codes in columns.items()}


def _renumbered(number: NDArray[np.int64]) -> Codes:
    distinct, anew = np.unique(number, return_inverse=True)
    return Codes(anew, len(distinct))


def find_chains(sample: Mapping[str, Codes], repeats: int = 2) -> tuple[tuple[str, ...], ...]:
    """Return the chains of columns that nest, coarse to fine, longest for each finest column.

    A column whose values hardly recur determines everything by accident, so a value has to stand for
    `repeats` rows on average.
    """
    recurring = {name: codes for name, codes in sample.items() if 2 <= codes.distinct <= len(codes.number) / repeats}
    chains = {name: chain_above(name, recurring) for name in recurring}
    coarser = {name for chain in chains.values() for name in chain[:-1]}
    return tuple(chain for name, chain in chains.items() if len(chain) > 1 and name not in coarser)


def chain_above(finest: str, columns: Mapping[str, Codes]) -> tuple[str, ...]:
    """Return the longest chain of columns that nest above one, coarse to fine; of equals, the first."""
    under = columns[finest]
    above = [
        name
        for name, codes in columns.items()
        if codes.distinct >= 2 and FINER * codes.distinct <= under.distinct and determines(under, codes)
    ]
    best: dict[str, tuple[str, ...]] = {}
    for name in sorted(above, key=lambda name: columns[name].distinct):
        best[name] = (name,)
        for coarser in [other for other in best if other != name]:
            nests = FINER * columns[coarser].distinct <= columns[name].distinct
            if nests and len(best[coarser]) >= len(best[name]) and determines(columns[name], columns[coarser]):
                best[name] = (*best[coarser], name)
    order = list(columns)
    longest = max(best.values(), key=lambda chain: (len(chain), -order.index(chain[-1])), default=())
    return (*longest, finest)


def _codes(column: pa.ChunkedArray, rows: NDArray[np.int64] | None = None) -> Codes:
    encoded = as_plain(column).combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = len(encoded.dictionary)
    number = np.asarray(encoded.indices.fill_null(values).to_numpy(zero_copy_only=False), dtype=np.int64)
    blank = encoded.null_count > 0
    return Codes(number, values + int(blank), blank, encoded.dictionary, rows)
