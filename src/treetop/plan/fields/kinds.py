"""What a field of a plan file may hold: how it is read from its section, and how JSON Schema says it.

Every reader returns None where nothing stands, and refuses what it cannot take in one message.
"""

from __future__ import annotations

import codecs
import datetime
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from treetop.basics.exact import Number
from treetop.basics.nearest import nearest
from treetop.errors import PlanFileError
from treetop.plan.fields.section import Section, found
from treetop.sources.positions import as_positions, is_whole

_FRACTION = re.compile(r"([0-9]{1,200})/([0-9]{1,200})")
_LARGEST_EXPONENT = 200
_LARGEST_WHOLE = 10**9


@dataclass(frozen=True)
class Kind:
    """What a field may hold."""

    read: Callable[[Section, str], Any]
    """Takes the value of a key from a section; None where there is none."""
    schema: Mapping[str, Any]
    """The same in JSON Schema."""
    names_file: bool = False
    """Whether the value, or each value of a table, is the path of a file."""


def _text(section: Section, key: str) -> str | None:
    value = section.get(key)
    if value is not None and not isinstance(value, str):
        hint = f', as in {key} = "{value}"' if isinstance(value, int | datetime.date) else ""
        section.refuse(key, f"a text in quotes{hint}")
    return value


def _name(section: Section, key: str) -> str | None:
    value = _text(section, key)
    if value is not None and not value.strip():
        section.refuse(key, "a text that is not blank")
    return value


def _noun(section: Section, key: str) -> str | None:
    return (_text(section, key) or "").strip() or None


def _texts(section: Section, key: str) -> tuple[str, ...] | None:
    value = section.get(key)
    if value is None:
        return None
    if not isinstance(value, list):
        section.refuse(key, 'a list of texts, such as ["region", "town"]')
    for item in value:
        if not isinstance(item, str):
            raise PlanFileError(
                f"{section.place(key)} must be a list of texts in quotes, but one of them is {found(item)}"
            )
    return tuple(value)


def _flag(section: Section, key: str) -> bool | None:
    value = section.get(key)
    if value is not None and not isinstance(value, bool):
        section.refuse(key, "true or false")
    return value


def _whole(section: Section, key: str) -> int | None:
    value = section.get(key)
    if value is not None and not (is_whole(value) and 1 <= value <= _LARGEST_WHOLE):
        section.refuse(key, "a whole number, 1 or more")
    return value


def _integer(section: Section, key: str) -> int | None:
    value = section.values.get(key)
    if value is not None and not is_whole(value):
        section.refuse(key, "a whole number")
    return value


def _wholes(section: Section, key: str) -> tuple[int, ...] | None:
    value = section.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(is_whole(item) for item in value):
        section.refuse(key, "a list of whole numbers, such as [2, 5]")
    return tuple(value)


def _number(section: Section, key: str) -> Number | None:
    """Return a number exactly as it is written; a fraction may be written as text, "1/3"."""
    value = section.get(key)
    if isinstance(value, str) and (fraction := _FRACTION.fullmatch(value)) and int(fraction[2]):
        return Fraction(int(fraction[1]), int(fraction[2]))
    if value is None or is_whole(value):
        return value
    if not isinstance(value, Decimal):
        section.refuse(key, "a number, without quotes")
    # Beyond this even the digits could not be written out.
    if value.is_finite() and abs(value.adjusted()) > _LARGEST_EXPONENT:
        section.refuse(key, "a number of moderate size")
    return value


def _delimiter(section: Section, key: str) -> str | None:
    value = _text(section, key)
    if value is not None and len(value) != 1:
        section.refuse(key, 'one character, such as ";"')
    return value


def _encoding(section: Section, key: str) -> str | None:
    value = _name(section, key)
    if value is not None:
        try:
            codecs.lookup(value)
        except (LookupError, ValueError):
            section.refuse(key, 'the name of an encoding, such as "utf-8" or "latin-1"')
    return value


def _keep(section: Section, key: str) -> dict[str, tuple[str, ...]] | None:
    """Return the values that rows must have, by column."""
    if section.get(key) is None:
        return None
    if not isinstance(section.values[key], dict):
        section.refuse(key, f'a table of columns and their values, such as {key} = {{ year = "2008" }}')
    columns = section.table(key)
    kept = {}
    for column, value in columns.values.items():
        values = _texts(columns, column) if isinstance(value, list) else (_name(columns, column),)
        if not values or not all(values):
            columns.refuse(column, 'a text in quotes, or a list of them, such as ["2007", "2008"]')
        kept[column] = tuple(one for one in values if one)
    return kept or None


def _positions(section: Section, key: str) -> Any:
    if not section.has(key):
        return None
    positions = section.table(key)
    with positions.located():
        return as_positions(positions.values)


def choice(choices: Collection[str]) -> Kind:
    """One of several texts: the names of a table of choices."""

    def read(section: Section, key: str) -> str | None:
        value = section.get(key)
        if value is not None and (not isinstance(value, str) or value not in choices):
            hint = nearest(value, choices) if isinstance(value, str) else ""
            section.refuse(key, " or ".join(f'"{one}"' for one in choices) + hint)
        return value

    return Kind(read, {"enum": list(choices)})


def table(of: Kind) -> Kind:
    """A table of values of one kind, by names that are the plan's own."""

    def read(section: Section, key: str) -> dict[str, Any] | None:
        if key not in section.values:
            return None
        inner = section.table(key)
        return {name: of.read(inner, name) for name in inner.values}

    return Kind(read, {"type": "object", "additionalProperties": of.schema}, of.names_file)


def either(wanted: type, first: Kind, second: Kind) -> Kind:
    """The first kind where the value is of a type, "dict" or "list", and the second elsewhere."""

    def read(section: Section, key: str) -> Any:
        return (first if isinstance(section.values.get(key), wanted) else second).read(section, key)

    return Kind(read, {"anyOf": [second.schema, first.schema]})


_TEXT = {"type": "string"}
_FILLED = {"type": "string", "pattern": r"\S"}
_LIST = {"type": "array", "items": _TEXT}
_PIECE = {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}}

TEXT = Kind(_text, _TEXT)
NAME = Kind(_name, _FILLED)
"""A text that is not blank."""
FILE = Kind(_name, _FILLED, names_file=True)
"""The path of a file, found from the plan file's folder; of private tables also a database URL."""
NOUN = Kind(_noun, _FILLED)
"""A text without the blanks around it; a blank one is no answer."""
TEXTS = Kind(_texts, _LIST)
FLAG = Kind(_flag, {"type": "boolean"})
WHOLE = Kind(_whole, {"type": "integer", "minimum": 1, "maximum": _LARGEST_WHOLE})
INTEGER = Kind(_integer, {"type": "integer"})
WHOLES = Kind(_wholes, {"type": "array", "items": {"type": "integer"}})
NUMBER = Kind(_number, {"anyOf": [{"type": "number"}, {"type": "string", "pattern": f"^{_FRACTION.pattern}$"}]})
DELIMITER = Kind(_delimiter, {"type": "string", "minLength": 1, "maxLength": 1})
ENCODING = Kind(_encoding, _FILLED)
KEEP = Kind(_keep, {"type": "object", "additionalProperties": {"anyOf": [_FILLED, {**_LIST, "minItems": 1}]}})
POSITIONS = Kind(_positions, {"type": "object", "additionalProperties": {"anyOf": [{"type": "integer"}, _PIECE]}})
