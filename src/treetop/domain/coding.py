"""How the text of a column becomes the codes of a hierarchy: public rules, for each record by itself.

A rule leaves text that it does not understand as it is. So a code stands for itself, and all else is an unknown code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.choices import nearest
from treetop._util.lazy import FrozenMap, set_fields
from treetop.errors import HierarchyError
from treetop.io.row_batch import as_plain, as_text


class Rule(Protocol):
    """Turns the texts of a column into codes."""

    def codes(self, text: pa.StringArray) -> pa.StringArray:
        """Return the code of each text; null where the rule does not apply."""

    def words(self, name: str) -> str:
        """Say what is done to the attribute `name`, for the card."""

    def hint(self, text: str) -> str:
        """Say why a text has no code, and what to do; empty if there is nothing to add."""

    def stated(self) -> Mapping[str, Any]:
        """Return the fields of a plan file that state the rule."""


@dataclass(frozen=True)
class Coding:
    """The rules of one attribute.

    >>> Coding(Bands([0, 18, 80]), blank="not known").codes(pa.array(["17", "93.5", None, "-1"])).to_pylist()
    ['0-17', '80+', 'not known', '-1']
    """

    rule: Rule | None = None
    blank: str | None = None
    """The code of a record without a value; without one, a missing value is an unknown code."""

    def text(self, column: Any, name: str) -> pa.StringArray:
        """Return the values of a column as text: numbers and times written out."""
        plain = as_plain(column)
        kind = plain.type
        if pa.types.is_floating(kind):
            plain = pc.if_else(pc.is_nan(plain), pa.scalar(None, kind), plain)
        elif pa.types.is_timestamp(kind) and kind.tz is not None:
            plain = pc.local_timestamp(plain)
        elif not (pa.types.is_decimal(kind) or pa.types.is_timestamp(kind)):
            return as_text(plain, name)
        return plain.cast(pa.string())

    def codes(self, text: pa.StringArray) -> pa.StringArray:
        """Return the codes of texts; what no rule applies to stays as it is."""
        if self.blank is not None:
            empty = pc.or_kleene(pc.is_null(text), pc.equal(pc.utf8_trim_whitespace(text), ""))
            text = pc.if_else(empty, self.blank, text)
        return text if self.rule is None else pc.coalesce(self.rule.codes(text), text)

    def words(self, name: str) -> list[str]:
        """Describe the rules in short words, for the card."""
        ruled = [] if self.rule is None else [self.rule.words(name)]
        return [*ruled, *([] if self.blank is None else [f"a record without {name} is counted as {self.blank!r}"])]

    def stated(self, levels: Sequence[str]) -> dict[str, Any]:
        """Return the fields of a plan file that state the rules of a hierarchy with these levels."""
        ruled = {} if self.rule is None else dict(self.rule.stated())
        if "levels" in ruled and ruled["levels"] != list(levels):
            ruled["levels"] = dict(zip(levels, ruled["levels"], strict=True))
        return ruled if self.blank is None else {**ruled, "blank": self.blank}


# Bands of a number.

_NUMBER = r"^\s*[+-]?[0-9]+([.,][0-9]*)?\s*$"
_DOUBTFUL = r"^\s*[+-]?[1-9][0-9]{0,2},[0-9]{3}\s*$"
"""What may have a decimal comma, or a comma between thousands."""


@dataclass(frozen=True, init=False)
class Bands:
    """Bands of a number, by the numbers at which they begin; the last has no end.

    >>> Bands([0, 1, 15, 65]).names, Bands([18.5, 25]).names
    (('0', '1-14', '15-64', '65+'), ('18.5 to <25', '25+'))
    """

    edges: tuple[Decimal, ...]

    def __init__(self, edges: Sequence[Any]) -> None:
        numbers = isinstance(edges, list | tuple) and all(
            isinstance(edge, int | float | Decimal) and not isinstance(edge, bool) for edge in edges
        )
        own = tuple(Decimal(str(edge)) for edge in edges) if numbers else ()
        if not own or not all(edge.is_finite() for edge in own) or any(low >= high for low, high in pairwise(own)):
            raise HierarchyError(f"bands begin at {edges!r}: give rising numbers, as in bands = [0, 15, 65]")
        set_fields(self, edges=own)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The code of each band."""
        own = self.edges
        whole = all(edge == edge.to_integral_value() for edge in own)
        between = "-" if own[0] >= 0 else " to "

        def closed(low: Decimal, high: Decimal) -> str:
            if not whole:
                return f"{_plain(low)} to <{_plain(high)}"
            return _plain(low) if high == low + 1 else f"{_plain(low)}{between}{_plain(high - 1)}"

        return (*(closed(low, high) for low, high in pairwise(own)), f"{_plain(own[-1])}+")

    def codes(self, text: pa.StringArray) -> pa.StringArray:
        """Return the band of each number; a decimal comma is a point."""
        read = pc.and_not(pc.match_substring_regex(text, _NUMBER), pc.match_substring_regex(text, _DOUBTFUL))
        point = pc.replace_substring(pc.utf8_ltrim(pc.utf8_trim_whitespace(text), characters="+"), ",", ".")
        given = pc.if_else(read, point, pa.scalar(None, pa.string())).cast(pa.float64())
        number = given.fill_null(-np.inf).to_numpy(zero_copy_only=False)
        band = np.searchsorted(np.array(self.edges, np.float64), number, side="right") - 1
        return pa.array(self.names, pa.string()).take(pa.array(band, mask=band < 0))

    def words(self, name: str) -> str:
        """Say what is done to the attribute `name`, for the card."""
        return f"{name} is counted in bands: {', '.join(self.names)}"

    def hint(self, text: str) -> str:
        """Say why a text has no band, and what to do."""
        if re.match(_DOUBTFUL, text):
            return "The comma may stand between thousands: say thousands under [data] if it does, or write a point"
        return f"It is no number from {_plain(self.edges[0])} on, where the bands begin"

    def stated(self) -> Mapping[str, Any]:
        """Return the fields of a plan file that state the rule."""
        return {"bands": [int(edge) if edge == edge.to_integral_value() else edge for edge in self.edges]}


def _plain(number: Decimal) -> str:
    return str(int(number)) if number == number.to_integral_value() else str(number)


# Dates.

UNITS = ("year", "quarter", "month", "week", "day")
"""The levels that dates may have, coarse to fine."""
MONTHLY = ("year", "month")
"""Those that they have if none are named."""
FORMATS = ("yyyy-mm-dd", "dd/mm/yyyy", "mm/dd/yyyy", "dd.mm.yyyy", "dd-mm-yyyy", "yyyymmdd", "yyyy-mm", "mm/yyyy")
"""Usual formats; any other order and signs of yyyy or yy, mm and dd will do."""
_ISO = "yyyy-mm-dd"
_PART = {"yyyy": r"(?P<y>[0-9]{4})", "yy": r"(?P<y>[0-9]{2})", "mm": r"(?P<m>[0-9]{1,2})", "dd": r"(?P<d>[0-9]{1,2})"}
_MOST_DAYS = 366_000


@dataclass(frozen=True)
class Dates:
    """Dates between two public days, counted by one of their levels or several.

    >>> dates = Dates(["year", "month"], "2020-02", "2021-12", "dd/mm/yyyy")
    >>> dates.codes(pa.array(["17/3/2020", "2020-02-29 23:59", "31/02/2020", "01/01/2022"])).to_pylist()
    ['2020-03', '2020-02', None, None]
    """

    levels: Sequence[str]
    """Some of year, quarter, month, week and day, coarse to fine."""
    first: str | date
    last: str | date
    """The last day that is counted; of a month or a year, its last."""
    format: str = _ISO
    """How dates are written, such as "dd/mm/yyyy"; "2020-03-17" is always read, and a time of day is cut off."""

    def __post_init__(self) -> None:
        levels = tuple(self.levels)
        for level in levels:
            if level not in UNITS:
                raise HierarchyError(f"dates have no level {level!r}{nearest(level, UNITS)}: name {', '.join(UNITS)}")
        if not levels or sorted(set(levels), key=UNITS.index) != list(levels):
            raise HierarchyError(f"levels of dates go from coarse to fine: name some of {', '.join(UNITS)}, in order")
        days = {name: _day(name, getattr(self, name), last=name == "last") for name in ("first", "last")}
        set_fields(self, levels=levels, **days)
        if not 0 <= (self.last - self.first).days < _MOST_DAYS:  # type: ignore[operator]
            raise HierarchyError(
                f"dates go from {self.first} to {self.last}: give the first day before the last, at most 1,000 years "
                "apart"
            )
        _ = self._pattern
        if "dd" not in self.format and UNITS.index(levels[-1]) > (2 if "mm" in self.format else 0):
            raise HierarchyError(f"dates written as {self.format} do not tell the {levels[-1]}: leave that level out")

    @cached_property
    def _pattern(self) -> str:
        parts = re.split("(yyyy|yy|mm|dd)", self.format)
        fields = [part for part in parts if part in _PART]
        years = [part for part in fields if part.startswith("y")]
        if len(years) != 1 or len(set(fields)) < len(fields) or ("dd" in fields and "mm" not in fields):
            raise HierarchyError(
                f"format is {self.format!r}: write the year as yyyy, the month as mm and the day as dd, as in "
                f"{', '.join(map(repr, FORMATS[:4]))}"
            )
        if years == ["yy"] and (self.last - self.first).days >= 36_524:  # type: ignore[operator]
            raise HierarchyError(
                f"format is {self.format!r}, and the days are 100 years apart or more: two digits do not tell the year"
            )
        close = not any(part for part in parts[1:-1] if part not in _PART)
        written = "".join(_PART.get(part, re.escape(part)) for part in parts)
        return rf"^\s*{written.replace('{1,2}', '{2}') if close else written}(?:[T ,].*)?\s*$"

    @property
    def _skipped(self) -> int:
        """How many digits of the year dates are written without."""
        return 0 if "yyyy" in self.format else 2

    @cached_property
    def columns(self) -> list[list[str]]:
        """The codes of each day, one list a level, coarse to fine."""
        first, number = self.first, (self.last - self.first).days + 1  # type: ignore[operator]
        days = [first + timedelta(day) for day in range(number)]  # type: ignore[operator]
        columns: list[list[str]] = []
        for level in self.levels:
            codes = [_CODES[level](day) for day in days]
            if level == "week" and columns:  # a week that lies in two months is two nodes
                above: dict[str, set[str]] = {}
                for code, parent in zip(codes, columns[-1], strict=True):
                    above.setdefault(code, set()).add(parent)
                codes = [
                    f"{code} in {parent}" if len(above[code]) > 1 else code
                    for code, parent in zip(codes, columns[-1], strict=True)
                ]
            columns.append(codes)
        return columns

    @cached_property
    def _known(self) -> tuple[pa.StringArray, pa.StringArray]:
        digits = 10 if "dd" in self.format else 7 if "mm" in self.format else 4
        number = len(self.columns[-1])
        days = ((self.first + timedelta(day)).isoformat() for day in range(number))  # type: ignore[operator]
        known = {day[self._skipped : digits]: code for day, code in zip(days, self.columns[-1], strict=True)}
        return pa.array(list(known), pa.string()), pa.array(list(known.values()), pa.string())

    def codes(self, text: pa.StringArray) -> pa.StringArray:
        """Return the code of each date; null for others."""
        known, codes = self._known
        first, digits = self._skipped, len(known[0].as_py())
        own = pc.extract_regex(text, self._pattern)
        names = [name for name in ("y", "m", "d") if f"(?P<{name}>" in self._pattern]
        found = [pc.utf8_lpad(pc.struct_field(own, name), 2, padding="0") for name in names]
        written = pc.binary_join_element_wise(*found, "-")
        iso = pc.struct_field(pc.extract_regex(text, r"^\s*(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ].*)?$"), "iso")
        return codes.take(pc.index_in(pc.coalesce(written, pc.utf8_slice_codeunits(iso, first, first + digits)), known))

    def words(self, name: str) -> str:
        """Say what is done to the attribute `name`, for the card."""
        return f"dates of {name} are counted by {self.levels[-1]}, from {self.first} to {self.last}"

    def hint(self, text: str) -> str:
        """Say why a text is no date that is counted, and what to do."""
        return f"It is no date from {self.first} to {self.last}, written as {self.format}"

    def stated(self) -> Mapping[str, Any]:
        """Return the fields of a plan file that state the rule."""
        written = {} if self.format == _ISO else {"format": self.format}
        days = {"first": str(self.first), "last": str(self.last)}
        return {"levels": list(self.levels), "dates": {**days, **written}}


_CODES = FrozenMap(
    {
        "year": lambda day: f"{day.year:04d}",
        "quarter": lambda day: f"{day.year:04d}-Q{(day.month + 2) // 3}",
        "month": lambda day: f"{day.year:04d}-{day.month:02d}",
        "week": lambda day: "{:04d}-W{:02d}".format(*day.isocalendar()),
        "day": date.isoformat,
    }
)


def _day(what: str, given: Any, *, last: bool) -> date:
    """Return a day; of a month or a year, its first or last."""
    if isinstance(given, date):
        return date(given.year, given.month, given.day)
    match = re.fullmatch(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?", given) if isinstance(given, str) else None
    try:
        if match is not None and not last:
            return date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
        if match is not None and match[3]:
            return date(int(match[1]), int(match[2]), int(match[3]))
        if match is not None:
            month = int(match[2] or 12)
            return date(int(match[1]) + month // 12, month % 12 + 1, 1) - timedelta(1)
    except ValueError as problem:
        raise HierarchyError(f"dates: {what} is {given!r}: {problem}") from problem
    raise HierarchyError(f'dates: {what} is {given!r}: give a public day, such as {what} = "2020-03-01"')
