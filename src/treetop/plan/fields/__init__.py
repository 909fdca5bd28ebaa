"""The fields of plan files, each declared once; reader, writer, digest, schema, reference and draft use them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from treetop.plan.fields._field import DEGREES, FAMILIES, GROUPS, RECORDS, Field, PlanContext, Section, Values, follow
from treetop.plan.fields.declarations import ALL_FIELDS
from treetop.plan.resolution import Resolution

if TYPE_CHECKING:
    from treetop.plan.file._graph import GraphFile
    from treetop.plan.plan import Plan

__all__ = ["DEGREES", "FAMILIES", "GROUPS", "RECORDS", "Field", "PlanContext"]

_DECLARED: list[Field] = []
"""All fields, in the order in which they are listed."""


def declare(*fields: Field) -> None:
    """Add fields; within a family of plans their names are unique."""
    for one in fields:
        if any(one.name in names(one.section, family) for family in one.families):
            raise ValueError(f"[{one.section}] {one.name} is declared already")
        _DECLARED.append(one)


@contextmanager
def declared(*fields: Field) -> Iterator[None]:
    """Add fields temporarily, within the block."""
    declare(*fields)
    try:
        yield
    finally:
        for one in fields:
            _DECLARED.remove(one)


def of(section: str, family: str | None = None) -> list[Field]:
    """Return the fields of a section, of one family or of all; each name once."""
    found: dict[str, Field] = {}
    for one in _DECLARED:
        if one.section == section and (family is None or family in one.families):
            found.setdefault(one.name, one)
    return list(found.values())


def file_fields() -> list[Field]:
    """Return the fields that name files, of all families."""
    return [one for one in _DECLARED if one.kind.names_file]


def find(section: str, name: str) -> Field:
    """Return a field."""
    return next(one for one in of(section) if one.name == name)


def names(section: str, family: str | None = None) -> list[str]:
    """Return the names of the fields of a section."""
    return [one.name for one in of(section, family)]


def sections(family: str | None = None) -> list[str]:
    """Return the sections with fields, without the top level and sections that the plan itself names."""
    found = (one.section for one in _DECLARED if family is None or family in one.families)
    return [name for name in dict.fromkeys(found) if name and "." not in name]


def read(section: Section, declared_as: str, family: str = RECORDS) -> dict[str, Any]:
    """Return the values of a section's fields, converted by their kinds, or their defaults."""
    values = {}
    for one in of(declared_as, family):
        value = one.kind.read(section, one.name)
        values[one.name] = one.default if value is None else value
    return values


def arguments(values: Values, of_what: str, family: str = RECORDS) -> dict[str, Any]:
    """Return the values that were read, as arguments for a unit, a loss, a plan or a plan file."""
    kept = [one for one in _DECLARED if family in one.families and one.at.rpartition(".")[0] == of_what]
    return {one.at.rpartition(".")[2]: values[one.section][one.name] for one in kept}


def open_questions(section: str, values: Values, asked_of: Values, family: str = RECORDS) -> list[tuple[str, str]]:
    """Return the required fields of a section that have no answer, each with its question."""
    waiting = (one for one in of(section, family) if one.asked is not None and values.get(one.name) is None)
    return [(one.name, one.question) for one in waiting if one.asked is not None and one.asked(asked_of)]


def written(section: str, start: PlanContext | GraphFile, family: str = RECORDS) -> dict[str, Any]:
    """Return the section of a plan as it was run, or of its graph, as written to a plan file."""
    stated = {}
    for one in sorted(of(section, family), key=lambda one: one.place or 0):
        value = None if one.place is None else one.value(start)
        if value is not None and value != {} and (one.always or value != one.default):
            stated[one.name] = value
    return stated


def decided(plan: Plan, family: str = RECORDS) -> dict[str, Any]:
    """Return a plan's decisions as plain values, for its description and its digest."""
    told: dict[str, Any] = {}
    for one in _DECLARED:
        if family not in one.families or not one.digest:
            continue
        value = follow(PlanContext(plan, None, None), one.settled or one.at)
        if one.always or value != (one.unsaid if one.settled else one.default):
            *above, name = one.digest.split(".")
            place = told
            for part in above:
                place = place.setdefault(part, {})
            place[name] = _plain(value)
    return told


def _plain(value: Any) -> Any:
    if isinstance(value, Resolution):
        return value.describe()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Fraction) else value


declare(*ALL_FIELDS)
