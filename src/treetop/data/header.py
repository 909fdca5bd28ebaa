"""Whether the first line of a CSV file holds names of columns, or is a row of data like the others.

Taken for names, a private row would stand in the plan, on the card and in every message. So a first line that looks
like a row is refused, and one that shows no sign of either kind is doubted: a name that is a code of the hierarchy
then decides. The messages here never quote what they are about.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from treetop.errors import DataError

SAMPLE = 1000
"""How many rows are compared with the first line."""

_DOUBTED = {b"treetop.names": b"doubted"}
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")
_WORD = re.compile(r"[^\W\d_]\D*")
_NO_VALUE = {"na", "nan", "n/a", "none", "null", "nil", "missing", "unknown", "other", "total"}
_REMEDY = (
    'If every line is a row, say header = false and names = ["origin", "destination", …] under [data] in the plan file '
    "(--no-header for inspect, Source(…, header=False, names=[…]) in Python). If the first line does hold names, say "
    "header = true (--header)"
)


def refuse_row(names: Sequence[str], rows: Iterable[Sequence[str]], where: str) -> bool:
    """Refuse names that look like a row of data; tell whether they are surely names, by some of the rows below."""
    columns = [_Column(name, values) for name, values in zip(names, _transposed(rows, len(names)), strict=True)]
    if any(column.is_named for column in columns) and not any(column.is_code for column in columns):
        return True
    for number, column in enumerate(columns, start=1):
        if column.why:
            raise DataError(f"{where}: the first line looks like a row of data: field {number} {column.why}. {_REMEDY}")
    return False


def refuse_code(rows: pa.RecordBatch | pa.Table, column: str, codes: Sequence[pa.Array], where: str) -> None:
    """Refuse a column whose name is itself one of the codes that it should hold, where its name is in doubt."""
    if is_doubted(rows.schema) and any(pc.is_in(pa.scalar(column), value_set=level).as_py() for level in codes):
        raise DataError(
            f"{where}: the first line looks like a row of data: the name of a column is itself a code of its "
            f"hierarchy. {_REMEDY}"
        )


def refuse_value(table: pa.Table, column: str, values: pa.Array, where: str) -> None:
    """Refuse a column whose name is itself one of its values, where its name is in doubt."""
    if is_doubted(table.schema) and pc.is_in(pa.scalar(column), value_set=values).as_py():
        raise DataError(
            f"{where}: the first line looks like a row of data: the name of a column stands among its values. {_REMEDY}"
        )


def as_doubted(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Mark rows whose columns have names from a first line that nothing shows to hold names."""
    return rows.replace_schema_metadata(_DOUBTED)


def is_doubted(schema: pa.Schema) -> bool:
    """Tell whether the names of the columns may be values."""
    return dict(schema.metadata or {}).items() >= _DOUBTED.items()


def first_rows(text: str, delimiter: str, is_cut: bool) -> list[list[str]]:
    """Return the first rows of a text, which may be cut off anywhere; what cannot be understood ends them."""
    rows: list[list[str]] = []
    try:
        for fields in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            rows.append(fields)
            if len(rows) == SAMPLE:
                return rows
    except csv.Error:
        pass
    return rows[:-1] if is_cut else rows


def _transposed(rows: Iterable[Sequence[str]], width: int) -> list[list[str]]:
    whole = [row for row in rows if len(row) == width]
    return [[value for row in whole if (value := row[column].strip())] for column in range(width)]


class _Column:
    """A first field, and what some of the rows below have in its place."""

    def __init__(self, name: str, values: list[str]) -> None:
        self._name, self._values = name, values

    @property
    def is_named(self) -> bool:
        """Whether the first field is surely a name: a word above values with digits, or letters above numbers."""
        if len(self._values) < 2 or self._name.lower() in _NO_VALUE:
            return False
        if _WORD.fullmatch(self._name) is not None:
            return all(map(_DIGIT.search, self._values))
        return any(map(str.isalpha, self._name)) and all(map(_NUMBER.fullmatch, self._values))

    @property
    def is_code(self) -> bool:
        """Whether the first field is surely a value: with digits in it, and among the values below."""
        return _DIGIT.search(self._name) is not None and self._name in self._values

    @property
    def why(self) -> str:
        """What makes the first field look like a value; empty where nothing does."""
        if not self._name:
            return ""
        if not self._values:
            return "is a number, with nothing below it" if _NUMBER.fullmatch(self._name) else ""
        if self._name in self._values:
            return "stands among the values below it"
        if _DIGIT.search(self._name) and _kinds(self._name) in map(_kinds, self._values):
            return "has digits in it, like values below it"
        shapes = {_shape(value) for value in self._values}
        if len(self._name) > 1 and shapes == {_shape(self._name)}:
            return "has the length and the letters of all values below it"
        return ""


def _kinds(text: str) -> tuple[bool, bool]:
    """Tell whether there are digits in a text, and letters."""
    return any(map(str.isdigit, text)), any(map(str.isalpha, text))


def _shape(text: str) -> str:
    """Return a text with every letter and digit exchanged for its kind.

    >>> _shape("Ab-12")
    'Aa-00'
    """
    return "".join("0" if c.isdigit() else "A" if c.isupper() else "a" if c.isalpha() else c for c in text)
