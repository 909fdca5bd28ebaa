"""Released counts that lie outside their own interval: counts are made to add up, intervals are not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

OUTSIDE = "outside"
"""The column that marks such counts."""


def outside(table: pa.Table) -> NDArray[np.bool_]:
    """Return which counts of a table with `count`, `lower` and `upper` lie outside their interval."""
    count, lower, upper = (table[name].to_numpy() for name in ("count", "lower", "upper"))
    found: NDArray[np.bool_] = (count < lower) | (count > upper)
    return found


def with_outside(table: pa.Table) -> pa.Table:
    """Return a table with the column `outside`, if it has intervals.

    >>> with_outside(pa.table({"count": [5, 9], "lower": [4, 1], "upper": [6, 8]}))["outside"].to_pylist()
    [False, True]
    """
    has_intervals = {"count", "lower", "upper"} <= set(table.column_names)
    return table.append_column(OUTSIDE, pa.array(outside(table))) if has_intervals else table


def noted(table: pa.Table) -> pa.Table:
    """Return a table for people: with the column `note` if a count lies outside its interval, and as it is if none."""
    if "lower" not in table.column_names or not (found := outside(table)).any():
        return table
    return table.append_column("note", pa.array([OUTSIDE if one else "" for one in found]))
