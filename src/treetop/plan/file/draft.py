"""Draft a plan file for a table: fill in visible facts, and leave fields without a safe default open."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from treetop._util.files import resolved
from treetop.domain.standard_hierarchies import STANDARDS
from treetop.domain.unit import IdClean
from treetop.inspection import GroupLayout, Inspection
from treetop.inspection.suggest import Suggestion, sound_levels
from treetop.io.source import PACKED, Prepare
from treetop.plan import fields
from treetop.plan.fields.declarations import ATTRIBUTE
from treetop.plan.file.describe import key, value
from treetop.plan.mechanism import MOST_CELLS

if TYPE_CHECKING:
    from jinja2 import Template

_FEW, _MANY = 4, 1000
"""Supposed numbers of codes of attributes without a public file."""


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    comment = partial(textwrap.fill, width=96, initial_indent="# ", subsequent_indent="# ")
    environment.filters |= {"c": comment, "toml": value, "key": key}
    return environment.from_string(files(__package__).joinpath("draft.toml.jinja").read_text(encoding="utf-8"))


def draft_plan(inspection: Inspection, folder: str | Path = ".") -> str:
    """Return the text of a plan file that is to be kept in `folder`.

    It contains column names and none of the values or numbers in the table, so that a plan may be shown to others. Open
    questions are commented-out lines: the file is valid TOML, and `read_plan` refuses it until they are answered.
    """
    layout, attributes, prepare = inspection.layout, inspection.attributes, inspection.prepare
    is_groups, family, place = isinstance(layout, GroupLayout), fields.RECORDS, None
    seen: dict[tuple[str, str], str | None] = {}
    if isinstance(layout, GroupLayout):
        family = fields.GROUPS
        place = next((one for one in attributes if one.column not in (layout.group, layout.size, layout.person)), None)
        seen = {("groups", name): getattr(layout, name) for name in ("rows", "group", "size")}
        seen |= {("unit", "id"): layout.person}
        seen |= {("groups", "number"): None} if layout.rows == "people" else {}  # its list tells it
    elif layout is not None:
        family = fields.RECORDS if layout.attributes else fields.DEGREES
        place = next((one for one in layout.attributes if one.match is not None), next(iter(layout.attributes), None))
        seen = {("unit", name): None for name in ("entity", "contributions", "id", "may_be_missing")}
    ids = [one for one in inspection.identifiers if one.named]
    path = Path(inspection.path)
    return _template().render(
        inspection=inspection,
        layout=layout,
        is_groups=is_groups,
        file=path.name,
        title=path.with_suffix("").stem if path.suffix.lower() in PACKED else path.stem,
        place=place if is_groups or place is None else replace(place, name="origin", column=f"source.{place.column}"),
        target="" if place is None else f"target.{place.column}",
        seen=seen,
        sections=[
            {"name": name, "fields": fields.of(name, family)}
            for name in sorted(fields.sections(family), key=lambda name: name != fields.GROUPS)
        ],
        others=[name for name, why in inspection.left_out.items() if why != "empty"][:12],
        standards=STANDARDS,
        order=_order(inspection),
        splits=_splits(attributes[0], inspection) if attributes else ["place.region"],
        rows=[one.column for one in ids if not one.repeats],
        repeating=[one for one in ids if one.repeats],
        id_cleaning=get_args(IdClean),
        prepared=() if prepare is None else [name for name in ("trim", "pad", "thousands") if _named(prepare, name)],
        unmatched=any(one.match is not None and one.match.unmatched for one in attributes),
        hierarchy=fields.find(ATTRIBUTE, "hierarchy").question,
        question=lambda section, name: fields.find(section, name).question or fields.find(section, name).help,
        relative=partial(_relative, folder=Path(folder)),
        renamed=lambda one: dict(zip(one.levels, one.match.levels, strict=True)),
        sound_levels=sound_levels,
    )


def _named(prepare: Prepare, rule: str) -> bool:
    """Whether a rule names columns; `trim` may be about all text."""
    columns = getattr(prepare, rule)
    return columns is not True and bool(columns)


def _order(inspection: Inspection) -> Any:
    """Return "ends", "joint", or levels by round: what is refined early is measured while counts are large."""
    names = [attribute.name for attribute in inspection.attributes]
    if len(names) < 2 or set(names) == {"origin", "destination"}:
        return "ends" if names[1:] else None
    if len(names) > 2 and _cells(inspection) <= MOST_CELLS:
        return "joint"
    return _rounds(inspection)


def _rounds(inspection: Inspection) -> list[list[str]]:
    """Return levels of all attributes in turn, so that no attribute has to wait for another's leaves."""
    deep = zip_longest(*(_splits(attribute, inspection) for attribute in inspection.attributes))
    return [[split for split in splits if split is not None] for splits in deep]


def drafted_splits(inspection: Inspection) -> list[str]:
    """Return the order of the spine of a draft: levels of all attributes in turn, coarse ones before fine ones."""
    return [split for splits in _rounds(inspection) for split in splits]


def _cells(inspection: Inspection) -> int:
    """Guess the number of cells of all attributes together from public files and answers alone."""

    def size(one: Suggestion) -> int:
        if one.match is not None:
            return len(one.match.lookup.known(one.match.leaf))
        if {"dates", "standard"} & one.proposed.keys():
            return _MANY // 10
        listed = one.proposed.get("values", one.proposed.get("bands", ()))
        listed = list(listed.values())[-1] if isinstance(listed, Mapping) else listed
        return len(listed) or (_MANY if one.many or one.prefixes or one.chain else _FEW)

    sizes = {one.name: size(one) for one in inspection.attributes}
    return math.prod(sizes[one.same_as or one.name] for one in inspection.attributes)


def _splits(attribute: Suggestion, inspection: Inspection) -> list[str]:
    like = attribute.same_as or attribute.name
    levels = next(one for one in inspection.attributes if one.name == like).levels
    return [f"{attribute.name}.{level}" for level in levels] or [attribute.name]


def _relative(path: str | Path, folder: Path) -> str:
    if "://" in str(path):
        return str(path)
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return resolved(path).as_posix()
