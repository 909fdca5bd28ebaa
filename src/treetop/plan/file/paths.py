"""Find the files that a plan file names, without reading them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treetop.counts.graph_reader import tables_within
from treetop.domain.constraints import COUNTED, LISTED, ORDERED, SAME
from treetop.errors import PlanFileError
from treetop.io.table import same_table
from treetop.plan import fields
from treetop.plan.fields.field import OPEN
from treetop.plan.file.attributes import Attribute
from treetop.plan.groups import inner


def named_files(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each file that a plan file names, as (dotted field, name as written).

    Args:
        values: The plan file's values, as TOML has them. Values of a wrong type are left to the reader of plans.

    >>> list(named_files({"data": {"source": "trips.csv"}, "facts": {"place.state": "totals.csv"}}))
    [('facts.place.state', 'totals.csv'), ('data.source', 'trips.csv')]
    """
    for section in dict.fromkeys(one.section for one in fields.file_fields()):
        names = [one.name for one in fields.file_fields() if one.section == section]
        for place, stated in _sections(values, section.split(".")):
            if isinstance(stated, str):  # the short form of a fact
                yield place, stated
            elif isinstance(stated, Mapping):
                for name in names:
                    yield from _texts(f"{place}.{name}", stated.get(name))


def _sections(values: Any, path: list[str], place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the sections of a declared path; a name in capitals stands for every name."""
    if not path:
        yield place, values
    elif isinstance(values, Mapping):
        for name in values if path[0].isupper() else [path[0]]:
            if name in values:
                yield from _sections(values[name], path[1:], f"{place}.{name}" if place else name)


def _texts(place: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(f"{place}.{name}", inner)


# The public files that a plan names: none of them may be the private table.

_CODES = "which codes occur there is private. Take the list of codes from a public source"


@dataclass(frozen=True)
class PublicFile:
    """A public file that a plan names."""

    section: str
    field: str
    path: Path
    why: str
    """Reason why it may not be the private table, with a remedy."""


def public_files(
    values: Mapping[str, Any], attributes: Mapping[str, Attribute], folder: Path
) -> tuple[PublicFile, ...]:
    """Return every public file that a plan file names; fields of other types are left out."""
    own = ((one.section.name, "hierarchy", one.stated["hierarchy"], _CODES) for one in attributes.values())
    return tuple(
        PublicFile(section, field, folder / name, why)
        for section, field, name, why in (*_named(values), *own)
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


def _named(values: Mapping[str, Any]) -> Iterator[tuple[str, str, Any, str]]:
    for table, fact in _items(values[""].get("facts")):
        given = fact if isinstance(fact, Mapping) else {"exact": fact}
        for kind in (*COUNTED, *LISTED):
            if kind in given and (kind in COUNTED or given[kind] not in (SAME, ORDERED)):
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
