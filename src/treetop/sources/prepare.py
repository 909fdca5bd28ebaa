"""Preparing columns of text before they are read as codes: what stewards would otherwise do by a script.

All of it are public rules, decided without looking at private data, and each record is prepared by itself. A column
goes through them in this order: blanks at its ends are trimmed, marks of missing values become missing, numbers lose
their thousands separators, codes are replaced by others, zeros are put before codes that are too short, and numbers
become bands.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from treetop.basics.frozen import FrozenMap
from treetop.errors import DataError
from treetop.sources.batch import as_text, say_listed

_WIDEST = 64


@dataclass(frozen=True)
class Prepare:
    """What is done to columns of text, by their names.

    >>> rows = pa.record_batch({"home": [" 1001", "NA"], "age": ["7", "70"]})
    >>> made = Prepare(trim=["home"], pad={"home": 5}, missing=["NA"], bands={"age": [0, 15, 65]}).rows(rows)
    >>> made.to_pylist()
    [{'home': '01001', 'age': '0-14'}, {'home': None, 'age': '65+'}]
    """

    trim: bool | Sequence[str] = ()
    """The columns whose blanks at both ends do not count; True for all text."""
    missing: Sequence[str] = ()
    """Texts that stand for a missing value, such as "NA"."""
    replace: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By column, codes that are counted as others: those of districts that were merged."""
    pad: Mapping[str, int] = field(default_factory=dict)
    """By column, how long codes are: shorter ones get zeros in front."""
    bands: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By column, where bands of numbers begin: [0, 15, 65] makes "0-14", "15-64" and "65+"."""
    thousands: Mapping[str, str] = field(default_factory=dict)
    """By column of numbers, what stands between their thousands: "," makes 1,234 the number 1234. What is no number
    with such separators, such as 1,23, stays as it is, and is then no count, and no code."""

    def __post_init__(self) -> None:
        if not isinstance(self.trim, bool):
            object.__setattr__(self, "trim", tuple(self.trim))
        object.__setattr__(self, "missing", tuple(self.missing))
        for name in ("thousands", "replace", "pad", "bands"):
            object.__setattr__(self, name, FrozenMap(getattr(self, name)))
        for column, mark in self.thousands.items():
            if len(mark) != 1 or mark in "+-0123456789" or mark.isalpha():
                raise DataError(
                    f'thousands: {column!r} has {mark!r} between its thousands: give one character, such as ","'
                )
        for column, width in self.pad.items():
            if type(width) is not int or not 0 < width <= _WIDEST:
                raise DataError(f"pad: {column!r} has the width {width!r}: give a whole number from 1 to {_WIDEST}")
        for column, edges in self.bands.items():
            _check_edges(column, edges)
            if column in self.pad:
                raise DataError(f"{column!r} is padded and put into bands: keep one of them")

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that are named."""
        trim = self.trim if isinstance(self.trim, tuple) else ()
        return tuple(dict.fromkeys((*trim, *self.thousands, *self.replace, *self.pad, *self.bands)))

    def __bool__(self) -> bool:
        return bool(self.trim or self.missing or self.thousands or self.replace or self.pad or self.bands)

    def rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with their columns prepared."""
        columns = [self._column(name, column) for name, column in zip(rows.schema.names, rows.columns, strict=True)]
        return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)

    def _column(self, name: str, column: Any) -> Any:
        if not self._changes(name, column.type):
            return column
        if pa.types.is_dictionary(column.type):
            return self._text(name, as_text(column.dictionary, name)).take(column.indices)
        return self._text(name, as_text(column, name))

    def _changes(self, name: str, kind: pa.DataType) -> bool:
        text = kind.value_type if pa.types.is_dictionary(kind) else kind
        is_text = pa.types.is_string(text) or pa.types.is_large_string(text) or pa.types.is_string_view(text)
        if not is_text and name in self.thousands and name not in (*self.replace, *self.pad, *self.bands):
            return False  # a number that is stored as one has no separators
        return name in self.named or (is_text and bool(self.missing or self.trim is True))

    def _text(self, name: str, text: Any) -> Any:
        if self.trim is True or (isinstance(self.trim, tuple) and name in self.trim):
            text = pc.utf8_trim_whitespace(text)
        if self.missing:
            text = pc.if_else(pc.is_in(text, pa.array(self.missing, pa.string())), pa.scalar(None, pa.string()), text)
        if name in self.thousands:
            text = _without_thousands(text, self.thousands[name])
        if name in self.replace:
            text = _replaced(text, self.replace[name])
        if name in self.pad:
            text = pc.utf8_lpad(text, width=self.pad[name], padding="0")
        return _banded(text, self.bands[name]) if name in self.bands else text

    def words(self) -> list[str]:
        """Say in short words what is done."""
        told = []
        if self.trim:
            columns = "all text" if self.trim is True else say_listed(self.trim)
            told.append(f"blanks at the ends of {columns} do not count")
        if self.missing:
            listed = say_listed([repr(one) for one in self.missing])
            told.append(f"{listed} stand{'s' * (len(self.missing) == 1)} for a missing value")
        for column, mark in self.thousands.items():
            told.append(f"{mark!r} between the thousands of {column} does not count")
        for column, codes in self.replace.items():
            become = "code of {} is counted as another" if len(codes) == 1 else "codes of {} are counted as others"
            told.append(f"{len(codes):,} {become.format(column)}")
        told += [
            f"codes of {column} have zeros in front up to {width} characters" for column, width in self.pad.items()
        ]
        for column, edges in self.bands.items():
            told.append(f"{column} is counted in bands: {say_listed(bands_of(edges))}")
        return told


def bands_of(edges: Sequence[int]) -> list[str]:
    """Return the codes of the bands that begin at these numbers.

    >>> bands_of([0, 1, 15, 65])
    ['0', '1-14', '15-64', '65+']
    """
    closed = [str(low) if high == low + 1 else f"{low}-{high - 1}" for low, high in pairwise(edges)]
    return [*closed, f"{edges[-1]}+"]


def _check_edges(column: str, edges: Any) -> None:
    whole = isinstance(edges, list | tuple) and all(type(edge) is int for edge in edges)
    if not whole or not edges or any(low >= high for low, high in pairwise(edges)):
        raise DataError(
            f"bands: those of {column!r} begin at {edges!r}: give rising whole numbers, as in {column} = [0, 15, 65]"
        )


def _without_thousands(text: Any, mark: str) -> Any:
    """Return numbers without their separators, which stand before every three digits; a fraction of zeros goes too.

    >>> _without_thousands(pa.array(["1,234", "1,234.0", "12,34", "1234", "1.0"]), ",").to_pylist()
    ['1234', '1234', '12,34', '1234', '1.0']
    >>> _without_thousands(pa.array(["1.234", "1.234,00", "1.0"]), ".").to_pylist()
    ['1234', '1234', "1.0 ('.' between thousands)"]
    """
    between = re.escape(mark)
    point = "".join(one for one in ".," if one != mark)
    written = rf"^[+-]?[0-9]{{1,3}}({between}[0-9]{{3}})+([{re.escape(point)}]0*)?$"
    bare = pc.replace_substring_regex(text, rf"[{re.escape(point)}]0*$", "")
    if mark == ".":  # elsewhere 1.0 is the number 1: here it is neither that nor ten, and must not be read
        doubtful = pc.binary_join_element_wise(text, f" ({mark!r} between thousands)", "")
        left = pc.if_else(pc.match_substring(text, mark), doubtful, text)
    else:
        left = text
    return pc.if_else(pc.match_substring_regex(text, written), pc.replace_substring(bare, mark, ""), left)


def _replaced(text: Any, codes: Mapping[str, str]) -> Any:
    """Return texts with some replaced, each once."""
    found = pc.index_in(text, pa.array(list(codes), pa.string()))
    others = pa.array(list(codes.values()), pa.string()).take(found)
    return pc.coalesce(others, text)


def _banded(text: Any, edges: Sequence[int]) -> Any:
    """Return the bands of numbers; what is no number, or below the first band, stays as it is, and is unknown."""
    names = bands_of(edges)

    def band(value: str) -> str:
        try:
            at = bisect_right(edges, float(value)) - 1
        except ValueError:
            return value
        return names[at] if at >= 0 and float(value) < float("inf") else value

    encoded = pc.dictionary_encode(text)
    values = [None if value is None else band(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(values, pa.string()).take(encoded.indices)
