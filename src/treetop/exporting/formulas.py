"""Codes that a spreadsheet would compute: a CSV carries them with an apostrophe before, which can be taken off again.

A text that begins with = + - @, a tab or a line end may be run as a formula when the file is opened. The rule is
reversible: whatever begins with any number of apostrophes and then one of these signs gets one apostrophe more, so what
is read back loses one. Other texts ('s-Hertogenbosch) are as they are.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

_FORMULA = r"^'*[=+\-@\t\r\n＝＋－＠]"


def guard(text: str) -> str:
    """Return a text that no spreadsheet computes.

    >>> guard("=1+1"), guard("'=1+1"), guard("'s-Hertogenbosch")
    ("'=1+1", "''=1+1", "'s-Hertogenbosch")
    """
    return f"'{text}" if re.match(_FORMULA, text) else text


def unguard(text: str) -> str:
    """Return the text that was guarded.

    >>> unguard("'=1+1"), unguard("'s-Hertogenbosch")
    ('=1+1', "'s-Hertogenbosch")
    """
    return text[1:] if text.startswith("'") and re.match(_FORMULA, text) else text


def guard_schema(schema: pa.Schema) -> pa.Schema:
    """Guard the names of columns."""
    return pa.schema([field.with_name(guard(field.name)) for field in schema])


def guard_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Guard the texts of a table."""
    columns = [_guarded(column) if pa.types.is_string(column.type) else column for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=guard_schema(rows.schema))


def count_guarded(codes: pa.StringArray) -> int:
    """Return how many codes are changed."""
    return int(pc.sum(pc.match_substring_regex(codes, _FORMULA)).as_py() or 0)


def _guarded(column: pa.StringArray) -> pa.StringArray:
    return pc.replace_substring_regex(column, f"({_FORMULA})", r"'\1") if count_guarded(column) else column
