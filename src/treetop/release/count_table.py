"""A table of released counts with their ranges: for programs, for other libraries, and for people in a notebook."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from treetop._util.dtypes import Flags
from treetop.errors import DataError, printable
from treetop.plan.workload import text_table

MOST = 20
"""Most rows that are shown to people."""
OUTSIDE = "outside"
"""Column that marks counts outside their interval."""


@dataclass(frozen=True, eq=False)
class CountTable:
    """Counts by codes, each with its `lower` and `upper` bound if the release has intervals.

    It is an Arrow table (`arrow`) with a view for people: whatever that has can be asked of it, and libraries that read
    Arrow streams read it.

    >>> town = CountTable(pa.table({"town": ["n1", "s1"], "count": [8, 3], "lower": [5, 0], "upper": [12, 6]}))
    >>> town.num_rows, town["count"].to_pylist()
    (2, [8, 3])
    >>> print(town)
    town  count  lower  upper
    ────  ─────  ─────  ─────
    n1        8      5     12
    s1        3      0      6
    """

    arrow: pa.Table

    def to_pandas(self) -> Any:
        """Return a data frame of pandas."""
        _require("pandas")
        return self.arrow.to_pandas()

    def to_polars(self) -> Any:
        """Return a data frame of Polars."""
        return _require("polars").from_arrow(self.arrow)

    def equals(self, other: CountTable | pa.Table) -> bool:
        """Whether another table has the same rows in the same order."""
        return bool(self.arrow.equals(other.arrow if isinstance(other, CountTable) else other))

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        return self.arrow[column]

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__arrow_c_stream__":
            raise AttributeError(name)
        return getattr(self.arrow, name)

    def __str__(self) -> str:
        rows = [self.arrow.column_names]
        rows += [
            [f"{cell:,}" if isinstance(cell, int) else printable(str(cell)) for cell in row.values()]
            for row in self.arrow.slice(0, MOST).to_pylist()
        ]
        texts = [at for at, column in enumerate(self.arrow.columns) if not pa.types.is_integer(column.type)]
        more = len(self) - MOST
        return text_table(rows, left=texts) + (f"\nand {more:,} more rows" if more > 0 else "")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return a page for a notebook: the first rows, with a bar for every range."""
        table = noted(self.arrow.slice(0, MOST))
        rows, has_bars = table.to_pylist(), {"lower", "upper"} <= set(table.column_names)
        most = max((row["upper"] for row in rows), default=0) if has_bars else 0
        head = "".join(f"<th>{html.escape(name)}</th>" for name in table.column_names)
        body = "".join(f"<tr>{_cells(row)}{_bar(row, most) if has_bars else ''}</tr>" for row in rows)
        more = len(self) - len(rows)
        rest = f"<p>and {more:,} more rows</p>" if more > 0 else ""
        range_head = "<th>range</th>" if has_bars else ""
        return f"<table><thead><tr>{head}{range_head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _cells(row: dict[str, Any]) -> str:
    texts = (f"{cell:,}" if isinstance(cell, int) else html.escape(str(cell)) for cell in row.values())
    return "".join(f"<td>{text}</td>" for text in texts)


def _bar(row: dict[str, Any], most: int) -> str:
    """Return the range from the lower to the upper bound as a bar, with a mark at the count."""
    scale = 160 / max(most, row["count"], 1)
    lower, upper, count = (round(row[name] * scale, 1) for name in ("lower", "upper", "count"))
    words = f"{row['count']:,}, between {row['lower']:,} and {row['upper']:,}"
    return (
        f'<td><svg width="168" height="14" role="img" aria-label="{words}"><title>{words}</title>'
        f'<rect x="{4 + lower}" y="4" width="{max(round(upper - lower, 1), 1)}" height="6" rx="3" fill="currentColor" '
        f'opacity="0.35"/><rect x="{3 + count}" y="1" width="2" height="12" fill="currentColor"/></svg></td>'
    )


def _require(library: str) -> Any:
    from importlib import import_module

    try:
        return import_module(library)
    except ImportError:
        raise DataError(
            f"{library} is not installed: pip install {library}, or take `arrow`, which needs nothing else"
        ) from None


# Released counts that lie outside their own interval: counts are made to add up, intervals are not.


def outside(table: pa.Table) -> Flags:
    """Return which counts of a table with `count`, `lower` and `upper` lie outside their interval."""
    count, lower, upper = (table[name].to_numpy() for name in ("count", "lower", "upper"))
    found: Flags = np.asarray((count < lower) | (count > upper))
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
