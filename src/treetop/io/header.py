"""Whether the first line of a CSV file holds names of columns, or is a row of data like the others.

Taken for names, a private row would stand in the plan, on the card and in every message. Public facts alone decide the
form of a release: the names that a plan asks for, by their own look and beside the codes of its hierarchies. Rows are
looked at where a plan is drafted, and where a column is missing, so that there is no release anyway. The messages here
never quote values.
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

UNVOUCHED = {b"treetop.names": b"unvouched"}
"""Schema metadata flag: names come from a first line that nobody confirmed to be a header."""

_END = re.compile(r"^(source|target)\.")
"""Prefix of a node column's name in the table of a graph's edges."""
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ].*)?")
MISSING = {"\\n", "<na>", "#n/a", "n/a", "na", "nan", "null", "<null>", "(null)", "?"}
"""How programs write that a value is missing, in small letters."""
_REMEDY = (
    "If every line is a row, say `header=False` (in a plan file, header = false and names = "
    '["origin", "destination", …] under [data]; in Python, Source(…, header=False, names=[…])). If the first line does '
    "hold names, say `header=True`. Of the people of a graph this is said by nodes_header and nodes_names under [graph]"
)
_GRAPH_REMEDY = (
    'If every line is a row, say {0}header = false and {0}names = ["id", …] under [graph] in the plan file '
    "(Source(…, header=False, names=[…]) in Python). If the first line does hold names, say {0}header = true"
)
_ROW = "the first line looks like a row of data"


def remedy(prefix: str = "") -> str:
    """Say how a plan file states that a table has no line of names; `prefix` is that of its options, if it has one."""
    return _GRAPH_REMEDY.format(prefix) if prefix else _REMEDY


def refuse_row(names: Sequence[str], rows: Iterable[Sequence[str]], where: str, prefix: str = "") -> None:
    """Refuse names that look like a row of data, by some of the rows below."""
    whole = [row for row in rows if len(row) == len(names)]
    for number, name in enumerate(names, start=1):
        column = (row[number - 1].strip() for row in whole)
        values = [value for value in column if value and value.lower() not in MISSING]
        if why := _why(name, values):
            raise DataError(f"{where}: {_ROW}: field {number} {why}. {remedy(prefix)}")


def refuse_first_row(rows: pa.Table, where: str) -> None:
    """Refuse names that look like a row of data, by the first rows of a table."""
    first = rows.slice(0, SAMPLE)
    columns = [["" if value is None else str(value) for value in column.to_pylist()] for column in first.columns]
    refuse_row(rows.column_names, list(zip(*columns, strict=True)), where)


def refuse_look(names: Iterable[str], where: str, prefix: str = "") -> None:
    """Refuse names of which each looks like a value by itself; no row is looked at."""
    for name in names:
        if look := _look(name):
            raise DataError(f"{where}: {_ROW}: the name of a column {look}. {remedy(prefix)}")


def refuse_code(column: str, codes: Sequence[pa.Array], where: str) -> None:
    """Refuse a column that is named by one of its own public codes."""
    name = pa.scalar(_END.sub("", column))
    if any(pc.index(level, name).as_py() >= 0 for level in codes):
        raise DataError(f"{where}: {_ROW}: the name of a column is itself a code of its hierarchy. {_REMEDY}")


def refuse_value(column: str, values: pa.Array, where: str) -> None:
    """Refuse a column that is named by one of its own values."""
    if pc.is_in(pa.scalar(column), value_set=values).as_py():
        raise DataError(f"{where}: {_ROW}: the name of a column stands among its values. {_REMEDY}")


def as_unvouched(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Mark rows with column names from an unconfirmed first line."""
    return rows.replace_schema_metadata(UNVOUCHED)


def is_unvouched(schema: pa.Schema) -> bool:
    """Tell whether nobody vouches for the names of the columns."""
    return dict(schema.metadata or {}).items() >= UNVOUCHED.items()


def first_rows(text: str, delimiter: str, is_cut: bool) -> list[list[str]]:
    """Return the first rows of a text that may be cut off anywhere; they end at the first one that cannot be parsed."""
    rows: list[list[str]] = []
    try:
        for fields in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            rows.append(fields)
            if len(rows) == SAMPLE:
                return rows
    except csv.Error:
        pass
    return rows[:-1] if is_cut else rows


def _why(name: str, values: list[str]) -> str:
    if not name:
        return ""
    if name.lower() in MISSING:
        return "says that a value is missing"
    if not values:
        return "is a number, with nothing below it" if _NUMBER.fullmatch(name) else ""
    if name in values:
        return "stands among the values below it"
    if _DIGIT.search(name) and _kinds(name) in map(_kinds, values):
        return "has digits in it, like values below it"
    if len(name) > 1 and {_shape(value) for value in values} == {_shape(name)}:
        return "has the length and the letters of all values below it"
    return ""


def _look(name: str) -> str:
    """Explain why a name by itself looks like a value; empty if it does not."""
    if not name.strip():
        return "is empty"
    if name.strip().lower() in MISSING:
        return "says that a value is missing"
    if _NUMBER.fullmatch(name.strip()):
        return "is a number"
    return "is a date" if _DATE.fullmatch(name.strip()) else ""


def _kinds(text: str) -> tuple[bool, bool]:
    return any(map(str.isdigit, text)), any(map(str.isalpha, text))


def _shape(text: str) -> str:
    """Return a text with every letter and digit exchanged for its kind: Aa-00 for Ab-12."""
    return "".join("0" if c.isdigit() else "A" if c.isupper() else "a" if c.isalpha() else c for c in text)
