"""A batch of rows, and the types that its columns may have: codes are text, and are never guessed to be numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.arrays import buffers
from treetop._util.choices import nearest
from treetop._util.dtypes import Ints
from treetop.errors import DataError

SAID = 7
"""Up to so many values are told one by one in a sentence."""
_SHOWN = 30
_BEYOND_ASCII = 128

Values = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class RowBatch:
    """Some rows of a table."""

    rows: pa.RecordBatch
    where: str
    first: int
    done: float
    """The share of the whole table that is read with them, as far as it is known."""
    numbers: Ints | None = None
    """Where some rows were left out: the number of each row, counted from `first`."""
    may_skip: bool = True
    """Whether the plan that reads them may pass blank lines over."""

    def place(self, column: str, row: int) -> str:
        """Say where a value stands."""
        number = row if self.numbers is None else int(self.numbers[row])
        return f"{self.where}, column {column!r}, row {self.first + number + 1}"

    def hint(self, row: int) -> str:
        """Suggest a remedy for a row in which all read values are missing; empty for other rows."""
        if any(column[row].as_py() not in (None, "") for column in self.rows.columns):
            return ""
        skip = ', or set blank_lines = "skip" under [data]' if self.may_skip else ""
        return f" Everything in that row is missing. An empty line is a record too: delete it if it is none{skip}."


def as_text(column: Any, name: str) -> Any:
    """Return a column of codes as strings: whole numbers are written out, days as 2008-01-31, the rest is refused."""
    column = as_plain(column)
    kind = column.type
    if pa.types.is_string(kind):
        return column
    written = (pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_null)
    if any(holds(kind) for holds in written):
        return column.cast(pa.string())
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _days(column, name)
    why = "read it as text"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        why += " (floating-point codes have lost their leading zeros and may have lost digits)"
    raise DataError(f"column {name!r} holds {kind}, not codes: {why}")


def _days(column: Any, name: str) -> Any:
    """Return dates, and times that are all midnight, as 2008-01-31."""
    try:
        if pa.types.is_timestamp(column.type) and column.type.tz is not None:
            column = pc.local_timestamp(column)
        day = column.cast(pa.date32(), safe=False)
        row = -1
        if not pa.types.is_date32(column.type):
            row = pc.index(pc.not_equal(day.cast(column.type), column), True).as_py()
        shown = column.slice(max(row, 0), 1).cast(pa.string())
        days = day.cast(pa.string())
    except pa.ArrowException as problem:  # a time zone that is not known, or a year that no calendar has
        raise DataError(
            f"column {name!r} holds {column.type} that cannot be read as days: {problem}. Give the day as text"
        ) from problem
    if row >= 0:
        raise DataError(
            f"column {name!r} holds times of day, such as {shown[0].as_py()}, and a code can be a day at most: "
            "give a column with the day, or with the hour as text"
        )
    return days


def as_plain(column: Any) -> Any:
    """Return a column without a dictionary, and in a type that Arrow computes with, of those that hold the same."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if isinstance(column.type, pa.BaseExtensionType):  # a driver's name for a type that it stores as another
        column = column.cast(column.type.storage_type)
    if pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def first_missing(column: Any) -> int | None:
    """Return the row of the first missing or empty value of a text column, if there is one."""
    missing = pc.or_kleene(pc.is_null(column), pc.equal(column, ""))
    row = int(pc.index(missing, True).as_py())
    return None if row < 0 else row


def refuse_unreadable(schema: pa.Schema) -> None:
    """Refuse names of columns or time zones that are not UTF-8, as an error of Unicode."""
    for field in schema:
        _ = field.name, field.type.tz if pa.types.is_timestamp(field.type) else None


def require(columns: Sequence[str] | None, present: Sequence[str], where: str) -> None:
    """Refuse columns that are not there, or there twice."""
    for name in columns or ():
        if name not in present:
            shown = ", ".join(one[:_SHOWN] for one in present[:_SHOWN])
            more = ", …" if len(present) > _SHOWN else ""
            raise DataError(
                f"{where}: there is no column {name!r}{nearest(name, present)}; the columns are {shown}{more}"
            )
        if list(present).count(name) > 1:
            raise DataError(f"{where}: two columns are called {name!r}: give each a name of its own")


def is_kept(rows: pa.RecordBatch, keep: Values | None, drop: Values | None = None) -> pa.BooleanArray:
    """Tell which rows have the values that are asked for, and none that is left out; a missing value is neither."""
    mask = pa.array(np.ones(len(rows), np.bool_))
    for name, values in (keep or {}).items():
        mask = pc.and_(mask, _is_one_of(rows.column(name), values, name))
    for name, values in (drop or {}).items():
        mask = pc.and_not(mask, _is_one_of(rows.column(name), values, name))
    return mask


def _is_one_of(column: Any, values: Sequence[str], name: str) -> pa.BooleanArray:
    wanted = pa.array(values, pa.string())
    if pa.types.is_dictionary(column.type):
        found = pc.is_in(as_text(column.dictionary, name), value_set=wanted)
        return pc.fill_null(found.take(column.indices), False)
    return pc.is_in(as_text(column, name), value_set=wanted)


def say_kept(values: Values, most: int | None = SAID) -> str:
    """Say which values rows have; of a long list its beginning, unless there is no limit.

    >>> say_kept({"record": ["S"], "year": ["2007", "2008"]})
    "record 'S' and year '2007' or '2008'"
    >>> say_kept({"state": ["AL", "AK", "AZ", "AR"]}, most=3)
    "state 'AL', 'AK' or one of 2 more"
    """

    def either(codes: Sequence[str]) -> str:
        if most is None or len(codes) <= most:
            return " or ".join(map(repr, codes))
        return f"{', '.join(map(repr, codes[: most - 1]))} or one of {len(codes) - most + 1:,} more"

    return " and ".join(f"{name} {either(codes)}" for name, codes in values.items())


def say_listed(values: Sequence[object], most: int = SAID) -> str:
    """List values; of many, the first.

    >>> say_listed(["a", "b"]), say_listed([1, 2, 3, 4], most=3)
    ('a, b', '1, 2 and 2 more')
    """
    if len(values) <= most:
        return ", ".join(map(str, values))
    return f"{', '.join(map(str, values[: most - 1]))} and {len(values) - most + 1:,} more"


def refuse_damage(rows: pa.RecordBatch | pa.Table, where: str, first: int) -> None:
    """Refuse damaged arrays, which readers of Arrow do not expect and only some of them check: text that is not UTF-8,
    for example."""
    try:
        rows.validate()
        for column in rows.columns:
            if not _is_ascii(column):
                column.validate(full=True)
    except pa.ArrowException as problem:
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            row = _damaged(column)
            if row is not None:
                raise DataError(
                    f"{where}, column {name!r}, row {first + row + 1}: the value is damaged, or its text is not UTF-8: "
                    "write the table again, with its text as UTF-8"
                ) from None
        raise DataError(f"{where}: the rows after row {first} are damaged: {problem}") from None


def _is_ascii(column: pa.Array | pa.ChunkedArray) -> bool:
    """Tell whether a column is text of one-byte letters, none of it missing: all at once, that is seen much sooner."""
    if not isinstance(column, pa.StringArray) or column.buffers()[0] is not None or not len(column):
        return False
    start, letters = buffers(column)
    if start[0] < 0 or start[-1] > len(letters) or (start[1:] < start[:-1]).any():
        return False
    text = letters[start[0] : start[-1]]
    return len(text) == 0 or int(text.max()) < _BEYOND_ASCII


def _damaged(column: pa.Array | pa.ChunkedArray) -> int | None:
    """Return the first row with a value that contradicts its type."""
    start, length = 0, len(column)
    if _is_valid(column):
        return None
    while length > 1:  # the first half holds it, or else the second
        half = length // 2
        if _is_valid(column.slice(start, half)):
            start, length = start + half, length - half
        else:
            length = half
    return start


def _is_valid(column: pa.Array | pa.ChunkedArray) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowException:
        return False
    return True
