"""One section of a plan file as it is written: a mistake is reported with its place, expected and found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

from treetop.basics.nearest import nearest
from treetop.errors import PlanFileError, TreetopError
from treetop.sources.positions import is_whole

OPEN = "?"
"""A value that stands for an open question, like a key that is not there."""


@dataclass(frozen=True)
class Section:
    """The values of one section."""

    file: str
    """The plan file, as it is named in messages."""
    name: str
    """The section, dotted; empty at the top of the file."""
    values: Mapping[str, Any]
    """What stands there."""

    def only(self, known: Sequence[str], homes: Mapping[str, str] | None = None) -> Section:
        """Refuse keys that are not known; `homes` says under which section a misplaced one belongs."""
        for key in self.values:
            if key in known:
                continue
            hint = nearest(key, known)
            if homes and key in homes:
                hint = f" (it belongs under [{homes[key]}])"
            raise PlanFileError(
                f"{self.place(key)} is not a field of a plan file{hint}; the fields here are {', '.join(known)}"
            )
        return self

    def get(self, key: str) -> Any:
        """Return what stands there; None where nothing does, or an open question."""
        value = self.values.get(key)
        return None if value == OPEN else value

    def has(self, key: str) -> bool:
        """Whether the field is there and answered."""
        return self.get(key) is not None

    def table(self, key: str) -> Section:
        """Return a table as a section, an empty one when it is not there."""
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
        """Name the file and the section in whatever the engine refuses within."""
        try:
            yield
        except kind as problem:
            if str(problem).startswith(f"{self.file}: ["):  # a section within has named itself
                raise
            raise type(problem)(f"{self.file}: [{self.name}] {problem}") from problem

    def place(self, key: str) -> str:
        """Return where a field stands, for a message."""
        section = f"[{self.name}] " if self.name else ""
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
    shown = _shorten(str(value) if not is_whole(value) or abs(value) < 10**40 else "with very many digits")
    if isinstance(value, str):
        return f'the text "{shown}"'
    if isinstance(value, int | Decimal):
        return f"the number {shown}"
    return f"the date or time {shown}"


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
