"""The public files that a plan names: none of them may be the private table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treetop.domain.fact import COUNTED, LISTED, SAME
from treetop.errors import PlanFileError
from treetop.intake.graph.graph import tables_within
from treetop.plan.fields.section import OPEN
from treetop.plan.file.attributes import Attribute
from treetop.plan.groups.planned import inner
from treetop.sources.same import same_table

_CODES = "which codes occur there is private. Take the list of codes from a public source"


@dataclass(frozen=True)
class PublicFile:
    """A public file that a plan names."""

    section: str
    """The section that names it."""
    field: str
    """Its field there, as messages call it."""
    path: Path
    """Where it is, found from the plan file's folder."""
    why: str
    """Why it may not be the private table, and what to do instead."""


def public_files(
    values: Mapping[str, Any], attributes: Mapping[str, Attribute], folder: Path
) -> tuple[PublicFile, ...]:
    """Return every public file that the fields of a plan file name; fields of another type than a name are left out."""
    named = (*_named(values), *_hierarchies(attributes))
    return tuple(
        PublicFile(section, field, folder / name, why)
        for section, field, name, why in named
        if isinstance(name, str) and name != OPEN
    )


def refuse_private(plan: Path, files: Iterable[PublicFile], tables: Iterable[Any]) -> None:
    """Refuse a public file that is one of the private tables; tables that are None or in memory have no file."""
    private = [one for table in tables for one in tables_within(inner(table))]
    for file in files:
        for table in private:
            if (how := same_table(file.path, table)) is not None:
                raise PlanFileError(
                    f"{plan}: [{file.section}] {file.field} is the private table itself ({how}): {file.why}. If the "
                    "file is public, name the private table instead of it"
                )


def _hierarchies(attributes: Mapping[str, Attribute]) -> Iterator[tuple[str, str, Any, str]]:
    for attribute in attributes.values():
        yield attribute.section.name, "hierarchy", attribute.stated["hierarchy"], _CODES


def _named(values: Mapping[str, Any]) -> Iterator[tuple[str, str, Any, str]]:
    """Yield the section, the field, the name and the reason of each file but the hierarchies."""
    for table, fact in _items(values[""].get("facts")):
        given = fact if isinstance(fact, Mapping) else {"exact": fact}
        for kind in (*COUNTED, *LISTED):
            if kind in given and (kind in COUNTED or given[kind] != SAME):
                yield (
                    f'facts."{table}"', kind, given[kind],
                    "what it says is private. To publish its own counts as they are, unprotected, write invariant = "
                    "true",
                )  # fmt: skip
    for column, name in _items(values["data"].get("replace")):
        yield "data.replace", column, name, "give a public file of two columns, codes and what each is counted as"
    groups = values.get("groups") or {}
    yield "groups", "list", groups.get("list"), "which groups occur there is private. Take it from a public source"
    for column, rule in _items((values.get("graph") or {}).get("clean")):
        if isinstance(rule, Mapping):
            yield f"graph.clean.{column}", "vocabulary", rule.get("vocabulary"), _CODES


def _items(given: Any) -> Iterable[tuple[str, Any]]:
    return given.items() if isinstance(given, Mapping) else ()
