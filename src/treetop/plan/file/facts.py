"""The facts of a plan file: what is public and must stay true, by the tables that it is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from treetop.domain.fact import COUNTED, LISTED, SAME, Fact
from treetop.domain.facts import PublicFacts
from treetop.domain.spine import Spine
from treetop.errors import FactError
from treetop.intake.facts import read_facts
from treetop.plan import fields
from treetop.plan.fields.ordinary import FACT
from treetop.plan.fields.section import Section
from treetop.plan.file.stated import Stated


def stated_facts(stated: Stated, spine: Spine) -> PublicFacts:
    """Read what [facts] states, its files found from the plan file's folder."""
    section = Section(str(stated.path), "facts", stated.values[""]["facts"])
    facts = {name: _fact(section, name, stated.path.parent) for name in section.values}
    with section.located():
        return read_facts(spine, facts)


@contextmanager
def located(path: Path) -> Iterator[None]:
    """Name the file and the section in whatever is refused of facts within."""
    try:
        yield
    except FactError as problem:
        raise type(problem)(f"{path}: [facts] {str(problem).removeprefix('facts: ')}") from problem


def _fact(section: Section, name: str, folder: Path) -> Fact:
    given = section.values[name]
    if not isinstance(given, str | dict):
        section.refuse(name, 'a file of counts, or a table, such as { at_most = "dwellings.csv" }')
    if isinstance(given, dict) and given and not set(given) & set(fields.names(FACT)):
        level = next(iter(given))
        raise section.problem(
            f"{name} is not a table, and {level!r} no field of one: names with dots stand in quotes, as in "
            f'"{name}.{level}" = "{name}.csv"'
        )
    own = Section(section.file, section.dotted(f'"{name}"'), {"exact": given} if isinstance(given, str) else given)
    values: dict[str, Any] = fields.read(own.only(fields.names(FACT)), FACT)
    with own.located():
        for kind in (*COUNTED, *LISTED):
            if values[kind] is not None and (kind in COUNTED or values[kind] != SAME):
                values[kind] = folder / values[kind]
        return Fact(**values)
