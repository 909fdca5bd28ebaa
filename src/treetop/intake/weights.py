"""The count column of a table: whole numbers, however they are stored, and every fault named with its row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.errors import DataError
from treetop.intake.counts import LARGEST_TOTAL
from treetop.sources.batch import Batch, as_plain


class Weighing:
    """Reads the count column batch by batch, or another of whole numbers; `what` one of them is, messages say."""

    def __init__(self, name: str, what: str = "count") -> None:
        self._name = name
        self._what = what
        self._total = 0

    def read(self, batch: Batch) -> NDArray[np.int64]:
        """Return how many records each row stands for."""
        name = self._name
        column = as_plain(batch.rows.column(name))
        if column.null_count:
            _refuse_first(pc.is_null(column), batch, name, f"the {self._what} is missing")
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            column = self._digits(column.cast(pa.string()), batch)
        elif pa.types.is_floating(kind):
            whole = pc.and_(pc.is_finite(column), pc.equal(column, pc.floor(column)))
            _refuse_first(pc.invert(whole), batch, name, f"the {self._what} {{}} is not a whole number")
            large = pc.greater(pc.abs(column), float(LARGEST_TOTAL))
            _refuse_first(large, batch, name, f"the {self._what} {{}} is too large")
        elif not (pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)):
            raise DataError(f"{batch.where}, column {name!r} holds {kind}, not {self._what}s")
        try:
            weights = np.asarray((column if pa.types.is_int64(kind) else column.cast(pa.int64())).to_numpy(), np.int64)
        except pa.ArrowInvalid as problem:
            raise DataError(
                f"{batch.where}, column {name!r} holds a {self._what} that is fractional or too large: {problem}"
            ) from problem
        if weights.min(initial=0) < 0:
            _refuse_first(pa.array(weights < 0), batch, name, f"the {self._what} {{}} is negative")
        self._add(weights)
        return weights

    def _digits(self, column: pa.StringArray, batch: Batch) -> pa.StringArray:
        column = pc.utf8_trim_whitespace(column)
        wrong = pc.invert(pc.match_substring_regex(column, r"^[+-]?[0-9]+(\.0*)?$"))
        _refuse_first(wrong, batch, self._name, f"the {self._what} {{}} is not a whole number")
        large = pc.match_substring_regex(column, r"[1-9][0-9]{18}")
        _refuse_first(large, batch, self._name, f"the {self._what} {{}} is too large")
        if pc.any(pc.match_substring_regex(column, r"[+.]")).as_py():
            return pc.replace_substring_regex(column, r"^\+|\.0*$", "")
        return column

    def _add(self, weights: NDArray[np.int64]) -> None:
        # In floating point first: there the sum cannot wrap around.
        near = int(weights.sum(dtype=np.float64))
        self._total += near if near > 2 * LARGEST_TOTAL else int(weights.sum())
        if self._total > LARGEST_TOTAL:
            raise DataError(
                f"the {self._what}s add up to more than 2^53: check that the column {self._name!r} holds {self._what}s"
            )


def _refuse_first(bad: Any, batch: Batch, name: str, why: str) -> None:
    row = pc.index(bad, True).as_py()
    if row >= 0:
        value = batch.rows.column(name)[row].as_py()
        hint = f".{batch.hint(row)}".rstrip(".") if value is None else ""
        raise DataError(f"{batch.place(name, row)}: {why.format(repr(value))}{hint}")
