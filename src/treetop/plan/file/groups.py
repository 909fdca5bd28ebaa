"""The section [groups] of a plan file: group sizes from people, groups or histograms, and a public list of groups."""

from __future__ import annotations

from treetop.basics.frozen import FrozenMap
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import LossError, PlanError, PlanFileError
from treetop.intake.groups.lists import GroupList
from treetop.intake.groups.read import ALLOWED, Rows
from treetop.plan.file.planfile import PlanFile
from treetop.plan.file.stated import Stated
from treetop.plan.groups.planned import SIZE, PureGroupTablePlan
from treetop.plan.groups.unit import GroupUnit
from treetop.sources.source import Source


def read_groups(stated: Stated) -> PlanFile:
    """Make a plan of a file with a section [groups]; private data is not touched."""
    groups, unit, data = (stated.values[name] for name in ("groups", "unit", "data"))
    section, path = stated.sections["groups"], stated.path
    _refuse_others(stated)
    stated.refuse_open()

    ((place, attribute),) = stated.attributes.items()
    rows: Rows = groups["rows"]
    stated.refuse_private_files()
    regions = attribute.read(path.parent)
    stated.check_digest(place, regions)
    columns = _columns(stated, rows, place)
    listed = _read_list(stated, attribute.column, regions)
    with section.located():
        protected = GroupUnit(unit["entity"], groups["event"], groups["most"])
    if unit["id"] is not None and rows != "people":
        raise stated.sections["unit"].problem("id tells people apart, and a row is not a person: leave it out")
    loss = stated.loss()
    with stated.sections["loss"].located(LossError), section.located(PlanError):
        plan = PureGroupTablePlan.make(
            regions,
            groups["largest"],
            protected,
            loss,
            rows=rows,
            number=groups["number"],
            listed=listed,
            form=groups["form"],
            split=stated.values["loss"]["split"],
            public=groups["public"],
            repair=groups["repair"],
            id=columns.get("group") if groups["event"] == "group" else unit["id"],
            place=place,
            title=stated.values[""]["title"],
            population=unit["population"],
            confidence=stated.values["release"]["confidence"] if stated.values["release"]["intervals"] else None,
        )
    with stated.sections["data"].located():
        options = {name: data[name] for name in ("blank_lines", "query", "keep", "drop")}
        plan.check_table(Source(stated.source or "-", **options))
    return stated.plan_file(plan, columns, groups=FrozenMap(section.values))


def _refuse_others(stated: Stated) -> None:
    """Refuse what plans for other counts may have."""
    attributes, section = stated.attributes, stated.sections
    if len(attributes) > 1:
        raise PlanFileError(
            f"{stated.path}: [attributes] group sizes have one, the place of the groups, but there are "
            f"{', '.join(attributes)}: the size is counted by itself"
        )
    for name, attribute in attributes.items():
        if name.casefold() in ("group", SIZE, "quantity"):
            raise attribute.section.problem("is called as a column of group sizes is: call the place another")
    if stated.values["data"]["unknown"] != "error":
        raise section["data"].problem("unknown: the number of groups is public, so none is left out: correct the table")
    if not stated.values["release"]["intervals"] and section["release"].has("confidence"):
        raise section["release"].problem("intervals are off, but have a confidence: keep one")
    if stated.values["loss"]["accounting"] == "exact":
        raise section["loss"].problem("accounting: exact accounting is not for group sizes: leave it out")


def _columns(stated: Stated, rows: Rows, place: str) -> dict[str, str]:
    """Return the columns of the private table; people need no region, since the list has that of their group."""
    groups, section, count = stated.values["groups"], stated.sections["groups"], stated.values["data"]["count"]
    attribute = stated.attributes[place]
    columns = {} if rows == "people" and not attribute.section.has("column") else {place: attribute.column}
    defaults = {"people": {"group": "group"}, "groups": {"size": SIZE}, "histogram": {"size": SIZE}}[rows]
    for key in ("group", "size", "quantity"):
        if groups[key] is not None and key not in ALLOWED[rows]:
            raise section.problem(f"{key}: not where rows are {rows}: leave it out")
        if (name := groups[key] or defaults.get(key)) is not None:
            columns[key] = name
    if rows == "histogram" and count is None:
        raise stated.sections["data"].problem("count is missing: name the column with the number of groups of a row")
    if rows != "histogram" and count is not None:
        raise stated.sections["data"].problem(f"count: a row is one of the {rows}: leave it out")
    if rows == "people" and groups["quantity"] is None and groups["most"] > 1:
        raise section.problem("most: every row adds 1, unless quantity names a column")
    return columns


def _read_list(stated: Stated, column: str, regions: Hierarchy) -> GroupList | None:
    groups, section = stated.values["groups"], stated.sections["groups"]
    if groups["list"] is None:
        for key in ("list_group", "list_region", "list_sha256"):
            if groups[key] is not None:
                raise section.problem(f"{key} is about a list, and none is named: give list")
        return None
    file = stated.path.parent / groups["list"]
    with section.located():
        named = groups["list_group"] or groups["group"] or "group"
        listed = GroupList.read(file, regions, named, groups["list_region"] or column)
    digest = groups["list_sha256"]
    if digest is not None and digest.lower() != listed.digest:
        raise section.problem(
            f"the list has SHA-256 {listed.digest}, but list_sha256 is {digest}: the plan was made for another list"
        )
    return listed
