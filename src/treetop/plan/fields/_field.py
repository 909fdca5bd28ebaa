"""One field of a plan file, declared once for reader, writer, digest, schema, reference and draft."""

from __future__ import annotations

import codecs
import datetime
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from treetop._util.choices import nearest
from treetop._util.numbers import Number
from treetop.errors import PlanFileError, TreetopError
from treetop.io.source import as_positions, is_whole

if TYPE_CHECKING:
    from treetop.plan.file._graph import GraphFile
    from treetop.plan.file._stated import PlanFile
    from treetop.plan.plan import Plan


# One section of a plan file as it is written: a mistake is reported with its place, expected and found.

OPEN = "?"
"""Marks an open question, like a missing key."""


@dataclass(frozen=True)
class Section:
    """The values of one section of a plan file."""

    file: str
    name: str
    """Dotted name; empty at the top of the file."""
    values: Mapping[str, Any]

    def only(
        self, known: Sequence[str], homes: Mapping[str, str] | None = None, reasons: Mapping[str, str] | None = None
    ) -> Section:
        """Refuse unknown keys; `homes` gives the right section of misplaced ones, `reasons` why some cannot be."""
        for key in self.values:
            if key in known:
                continue
            if (reason := (reasons or {}).get(f"{self.name}.{key}")) is not None:
                raise self.problem(f"{key}: {reason}: leave {key} out")
            hint = nearest(key, known)
            if homes and key in homes:
                hint = f" (it belongs under [{homes[key]}])"
            raise PlanFileError(
                f"{self.place(key)} is not a field of a plan file{hint}; the fields here are {', '.join(known)}"
            )
        return self

    def get(self, key: str) -> Any:
        """Return the value; None if it is missing or an open question."""
        value = self.values.get(key)
        return None if value == OPEN else value

    def has(self, key: str) -> bool:
        """Whether the field has an answer."""
        return self.get(key) is not None

    def table(self, key: str) -> Section:
        """Return a table as a section; an empty one if it is missing."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.refuse(key, f"a section, [{self.dotted(key)}]")
        return Section(self.file, self.dotted(key), value)

    def dotted(self, key: str) -> str:
        """Return the full name of a field."""
        return f"{self.name}.{key}" if self.name else key

    def refuse(self, key: str, expected: str) -> NoReturn:
        """Refuse a value of the wrong kind."""
        raise PlanFileError(f"{self.place(key)} must be {expected}, but is {found(self.values[key])}")

    def problem(self, why: str) -> PlanFileError:
        """Return the error that names file and section."""
        return PlanFileError(f"{self.file}: [{self.name}] {why}")

    @contextmanager
    def located(self, kind: type[TreetopError] = TreetopError) -> Iterator[None]:
        """Add the file and the section to errors that the block raises."""
        try:
            yield
        except kind as problem:
            if str(problem).startswith(f"{self.file}: ["):  # a section within has named itself
                raise
            why = str(problem).removeprefix(f"{self.name}: ")
            raise type(problem)(f"{self.file}: [{self.name}] {why}") from problem

    def place(self, key: str) -> str:
        """Return the location of a field, for a message."""
        section = f"[{self.name}] " if self.name else ""
        return f"{self.file}: {section}{key}"


def found(value: object) -> str:
    """Describe a value, for a message.

    >>> found("one"), found(True), found([])
    ('the text "one"', 'true', 'a list')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    shown = str(value) if not is_whole(value) or abs(value) < 10**40 else "with very many digits"
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    if isinstance(value, str):
        return f'the text "{shown}"'
    if isinstance(value, int | Decimal):
        return f"the number {shown}"
    return f"the date or time {shown}"


# What a field of a plan file may hold: how it is read from its section, and how JSON Schema says it.

_FRACTION = re.compile(r"([0-9]{1,200})/([0-9]{1,200})")
_LARGEST_EXPONENT = 200
_LARGEST_WHOLE = 10**9


@dataclass(frozen=True)
class Kind:
    """The kind of value that a field holds."""

    read: Callable[[Section, str], Any]
    """Reads and checks the value of a key in a section; None if it is missing."""
    schema: Mapping[str, Any]
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


def _texts(section: Section, key: str) -> Any:
    for item in value if isinstance(value := section.get(key), list) else ():
        if not isinstance(item, str):
            raise PlanFileError(
                f"{section.place(key)} must be a list of texts in quotes, but one of them is {found(item)}"
            )
    return _listed(lambda item: isinstance(item, str), 'a list of texts, such as ["region", "town"]')(section, key)


def accepting(accepts: Callable[[Any], bool], expected: str, *, may_be_open: bool = True) -> Callable[..., Any]:
    """Return a reader of values with a property; others are refused, and a missing one is None."""

    def read(section: Section, key: str) -> Any:
        value = section.get(key) if may_be_open else section.values.get(key)
        if value is not None and not accepts(value):
            section.refuse(key, expected)
        return value

    return read


def _listed(accepts: Callable[[Any], bool], expected: str) -> Callable[[Section, str], Any]:
    read = accepting(lambda value: isinstance(value, list) and all(map(accepts, value)), expected)
    return lambda section, key: None if (value := read(section, key)) is None else tuple(value)


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


def _dates(section: Section, key: str) -> dict[str, Any] | None:
    """Return the first and the last day of a column of dates, and how they are written."""
    if not section.has(key):
        return None
    if not isinstance(section.values[key], dict):
        section.refuse(key, 'a table, such as { first = "2020-03-01", last = "2022-12-31", format = "dd/mm/yyyy" }')
    own = section.table(key).only(("first", "last", "format"))
    days = {name: own.get(name) for name in ("first", "last")}
    for name, day in days.items():
        if not isinstance(day, datetime.date):
            days[name] = _name(own, name)
        if days[name] is None:
            raise own.problem(f'{name} is missing: give a public day, such as {name} = "2020-03-01"')
    written = _name(own, "format")
    return days if written is None else {**days, "format": written}


def _labels(section: Section, key: str) -> dict[str, Any] | None:
    if not section.has(key):
        return None
    if not isinstance(section.values[key], dict):
        section.refuse(key, f'a table of codes and their labels, such as {key} = {{ "0" = "female", "1" = "male" }}')
    own = section.table(key)
    nested = any(isinstance(value, dict) for value in own.values.values())
    labels: dict[str, Any] | None = table(table(NAME) if nested else NAME).read(section, key)
    return labels


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
    """A table of values of one kind; the plan chooses the keys."""

    def read(section: Section, key: str) -> dict[str, Any] | None:
        if key not in section.values:
            return None
        inner = section.table(key)
        return {name: of.read(inner, name) for name in inner.values}

    return Kind(read, {"type": "object", "additionalProperties": of.schema}, of.names_file)


def either(wanted: type, first: Kind, second: Kind) -> Kind:
    """Values of JSON type `wanted` ("dict" or "list") have the first kind, others the second."""

    def read(section: Section, key: str) -> Any:
        return (first if isinstance(section.values.get(key), wanted) else second).read(section, key)

    return Kind(read, {"anyOf": [second.schema, first.schema]})


_TEXT = {"type": "string"}
_FILLED = {"type": "string", "pattern": r"\S"}
_LIST = {"type": "array", "items": _TEXT}
_PIECE = {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}}

TEXT = Kind(_text, _TEXT)
NAME = Kind(_name, _FILLED)
FILE = Kind(_name, _FILLED, names_file=True)
"""The path of a file, relative to the plan file's folder; for private tables also a database URL."""
NOUN = Kind(lambda section, key: (_text(section, key) or "").strip() or None, _FILLED)
"""A text, stripped of blanks; a blank one counts as no answer."""
TEXTS = Kind(_texts, _LIST)
FLAG = Kind(accepting(lambda value: isinstance(value, bool), "true or false"), {"type": "boolean"})
WHOLE = Kind(
    accepting(lambda value: is_whole(value) and 1 <= value <= _LARGEST_WHOLE, "a whole number, 1 or more"),
    {"type": "integer", "minimum": 1, "maximum": _LARGEST_WHOLE},
)
INTEGER = Kind(accepting(is_whole, "a whole number", may_be_open=False), {"type": "integer"})
WHOLES = Kind(
    _listed(is_whole, "a list of whole numbers, such as [2, 5]"), {"type": "array", "items": {"type": "integer"}}
)
NUMBERS = Kind(
    _listed(lambda item: is_whole(item) or isinstance(item, Decimal), "a list of numbers, such as [0, 18, 65]"),
    {"type": "array", "items": {"type": "number"}},
)
DATES = Kind(
    _dates,
    {
        "type": "object",
        "properties": {"first": _FILLED, "last": _FILLED, "format": _FILLED},
        "required": ["first", "last"],
        "additionalProperties": False,
    },
)
LABELS = Kind(
    _labels,
    {
        "type": "object",
        "additionalProperties": {"anyOf": [_FILLED, {"type": "object", "additionalProperties": _FILLED}]},
    },
)
NUMBER = Kind(_number, {"anyOf": [{"type": "number"}, {"type": "string", "pattern": f"^{_FRACTION.pattern}$"}]})
DELIMITER = Kind(_delimiter, {"type": "string", "minLength": 1, "maxLength": 1})
ENCODING = Kind(_encoding, _FILLED)
KEEP = Kind(_keep, {"type": "object", "additionalProperties": {"anyOf": [_FILLED, {**_LIST, "minItems": 1}]}})
POSITIONS = Kind(_positions, {"type": "object", "additionalProperties": {"anyOf": [{"type": "integer"}, _PIECE]}})


RECORDS, GROUPS, DEGREES = "records", "groups", "degrees"
"""The families of plans, named as their readers: counts of records (of tables and graphs), group sizes, and degrees."""
FAMILIES = (RECORDS, GROUPS, DEGREES)

Values = Mapping[str, Any]
"""The values that were read, by section and name."""


@dataclass(frozen=True, eq=False)
class PlanContext:
    """A plan that is written to a file, with the notes on its data."""

    plan: Plan
    said: Any
    """Notes on its data: the plan file, or the options of a run in Python; None without."""
    file: PlanFile | None


@dataclass(frozen=True, eq=False)
class Field:
    """One field of a plan file, with its kind, default, help and role in the digest."""

    section: str
    """Its section; empty at the top of the file; capitals stand for a name that the plan chooses."""
    name: str
    kind: Kind
    help: str
    _: KW_ONLY
    default: Any = None
    since: str = "0.1"
    families: tuple[str, ...] = (RECORDS,)
    question: str = ""
    asked: Callable[[Values], bool] | None = None
    """Whether it must be answered, given all values; None if it has a default or may be left out."""
    sketch: str = ""
    """Proposal in a draft, commented out, with the rest of the line; empty for none."""
    at: str = ""
    """Path of its value from a `PlanContext`, or for a graph from `GraphFile`: an argument of what the last dot
    follows."""
    take: Callable[[PlanContext], Any] | None = None
    """How its value is written to a file; None to write the value at `at`."""
    place: int | None = 0
    """Position among the written fields of its section (default: order of declaration); None if it is never written."""
    digest: str = ""
    """Path in the plan's description, which the digest covers; empty if it decides nothing."""
    settled: str = ""
    """Path of the resolved value, if leaving the field out keeps it open; default `at`."""
    unsaid: Any = None
    """Resolved value if the description lacks it, as in old plans."""
    always: bool = False
    """Whether it is described and written even if it has its default. False for fields of later versions, so that old
    plans keep their digest."""

    def __post_init__(self) -> None:
        if not self.help or (self.asked is not None and not self.question):
            raise ValueError(f"[{self.section}] {self.name} has no words: declare it with its help and question")

    def value(self, start: PlanContext | GraphFile) -> Any:
        """Return the value as written to a file."""
        return self.take(start) if self.take is not None and isinstance(start, PlanContext) else follow(start, self.at)


def follow(start: object, path: str) -> Any:
    """Return the value at a path of attributes and mapping keys; None if a part of the path is missing."""
    value: Any = start
    for name in path.split(".") if path else ():
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
        if value is None:
            return None
    return value if path else None
