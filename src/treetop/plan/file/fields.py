"""Typed fields of a plan file: a mistake is reported with its place, what was expected and what was found."""

from __future__ import annotations

import codecs
import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

from treetop.basics.exact import Number
from treetop.basics.nearest import nearest
from treetop.errors import PlanFileError, TreetopError
from treetop.tables.positions import is_whole

OPEN = "?"
"""A value that stands for an open question, like a key that is not there."""

_FRACTION = re.compile(r"([0-9]{1,200})/([0-9]{1,200})")
_LARGEST_EXPONENT = 200
_LARGEST_WHOLE = 10**9


@dataclass(frozen=True)
class Fields:
    """The fields of one section."""

    file: str
    """The plan file, as it is named in messages."""
    section: str
    """The section, dotted; empty at the top of the file."""
    values: Mapping[str, Any]
    """What stands there."""

    def only(self, known: Sequence[str], homes: Mapping[str, str] | None = None) -> Fields:
        """Refuse keys that are not known; `homes` says under which section a misplaced one belongs."""
        for key in self.values:
            if key in known:
                continue
            hint = nearest(key, known)
            if homes and key in homes:
                hint = f" (it belongs under [{homes[key]}])"
            raise PlanFileError(
                f"{self._place(key)} is not a field of a plan file{hint}; the fields here are {', '.join(known)}"
            )
        return self

    def has(self, key: str) -> bool:
        """Whether the field is there and answered."""
        return self._get(key) is not None

    def text(self, key: str) -> str | None:
        """Return a text."""
        value = self._get(key)
        if value is not None and not isinstance(value, str):
            hint = f', as in {key} = "{value}"' if isinstance(value, int | datetime.date) else ""
            self.refuse(key, f"a text in quotes{hint}")
        return value

    def name(self, key: str) -> str | None:
        """Return a text that is not blank."""
        value = self.text(key)
        if value is not None and not value.strip():
            self.refuse(key, "a text that is not blank")
        return value

    def choice(self, key: str, choices: Sequence[str]) -> str | None:
        """Return one of several texts."""
        value = self._get(key)
        if value is not None and (not isinstance(value, str) or value not in choices):
            hint = nearest(value, choices) if isinstance(value, str) else ""
            self.refuse(key, " or ".join(f'"{choice}"' for choice in choices) + hint)
        return value

    def texts(self, key: str) -> tuple[str, ...] | None:
        """Return a list of texts."""
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            self.refuse(key, 'a list of texts, such as ["region", "town"]')
        for item in value:
            if not isinstance(item, str):
                raise PlanFileError(
                    f"{self._place(key)} must be a list of texts in quotes, but one of them is {found(item)}"
                )
        return tuple(value)

    def flag(self, key: str) -> bool | None:
        """Read true or false."""
        value = self._get(key)
        if value is not None and not isinstance(value, bool):
            self.refuse(key, "true or false")
        return value

    def whole(self, key: str) -> int | None:
        """Return a whole number, 1 or more."""
        value = self._get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST_WHOLE:
            self.refuse(key, "a whole number, 1 or more")
        return value

    def wholes(self, key: str) -> tuple[int, ...] | None:
        """Return a list of whole numbers."""
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(is_whole(item) for item in value):
            self.refuse(key, "a list of whole numbers, such as [2, 5]")
        return tuple(value)

    def number(self, key: str) -> Number | None:
        """Return a number exactly as it is written; a fraction may be written as text, "1/3"."""
        value = self._get(key)
        if isinstance(value, str) and (fraction := _FRACTION.fullmatch(value)) and int(fraction[2]):
            return Fraction(int(fraction[1]), int(fraction[2]))
        if value is None or is_whole(value):
            return value
        if not isinstance(value, Decimal):
            self.refuse(key, "a number, without quotes")
        # Beyond this even the digits could not be written out.
        if value.is_finite() and abs(value.adjusted()) > _LARGEST_EXPONENT:
            self.refuse(key, "a number of moderate size")
        return value

    def delimiter(self) -> str | None:
        """Return the character between the fields of a CSV file."""
        value = self.text("delimiter")
        if value is not None and len(value) != 1:
            self.refuse("delimiter", 'one character, such as ";"')
        return value

    def encoding(self) -> str | None:
        """Return the encoding of a text file."""
        value = self.name("encoding")
        if value is not None:
            try:
                codecs.lookup(value)
            except (LookupError, ValueError):
                self.refuse("encoding", 'the name of an encoding, such as "utf-8" or "latin-1"')
        return value

    def keep(self) -> dict[str, tuple[str, ...]] | None:
        """Return the values that rows must have, by column."""
        if self._get("keep") is None:
            return None
        if not isinstance(self.values["keep"], dict):
            self.refuse("keep", 'a table of columns and their values, such as keep = { year = "2008" }')
        table = self.table("keep")
        kept = {}
        for column, value in table.values.items():
            values = table.texts(column) if isinstance(value, list) else (table.name(column),)
            if not values or not all(values):
                table.refuse(column, 'a text in quotes, or a list of them, such as ["2007", "2008"]')
            kept[column] = tuple(one for one in values if one)
        return kept or None

    def table(self, key: str) -> Fields:
        """Return the fields of a table, none when it is not there."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.refuse(key, f"a section, [{self.dotted(key)}]")
        return Fields(self.file, self.dotted(key), value)

    def dotted(self, key: str) -> str:
        """Return the full name of a field."""
        return f"{self.section}.{key}" if self.section else key

    def refuse(self, key: str, expected: str) -> NoReturn:
        """Refuse a value of the wrong kind."""
        raise PlanFileError(f"{self._place(key)} must be {expected}, but is {found(self.values[key])}")

    @contextmanager
    def located(self, kind: type[TreetopError] = TreetopError) -> Iterator[None]:
        """Name the file and the section in whatever the engine refuses within."""
        try:
            yield
        except kind as problem:
            raise type(problem)(f"{self.file}: [{self.section}] {problem}") from problem

    def _get(self, key: str) -> Any:
        value = self.values.get(key)
        return None if value == OPEN else value

    def _place(self, key: str) -> str:
        section = f"[{self.section}] " if self.section else ""
        return f"{self.file}: {section}{key}"


def found(value: object) -> str:
    """Say what a value is, for a message.

    >>> found("one"), found(True), found([])
    ('the text "one"', 'true', 'a list')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    shown = _shorten(str(value) if not is_whole(value) or _is_short(value) else "with very many digits")
    if isinstance(value, str):
        return f'the text "{shown}"'
    if isinstance(value, int | Decimal):
        return f"the number {shown}"
    return f"the date or time {shown}"


def _is_short(value: object) -> bool:
    return isinstance(value, int) and abs(value) < 10**40


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
