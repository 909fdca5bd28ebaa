"""The section [groups] of a plan file: group sizes from people, groups or histograms, and a public list of groups."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from treetop.basics.exact import Number
from treetop.basics.frozen import FrozenMap
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import LossError, PlanError, PlanFileError
from treetop.plan.file import checks, questions, sections
from treetop.plan.file.attributes import read_attributes, read_lookups
from treetop.plan.file.fields import Fields
from treetop.plan.file.reader import PlanFile
from treetop.plan.groups.plan import Public
from treetop.plan.groups.planned import SIZE, GroupTablePlan
from treetop.plan.groups.unit import Event, Form, GroupUnit
from treetop.privacy import Loss
from treetop.read.groups.lists import GroupList
from treetop.read.groups.read import ALLOWED, Rows
from treetop.tables.source import Source

GROUPS = "groups"
KEYS = (
    "rows",
    "largest",
    "event",
    "group",
    "size",
    "quantity",
    "most",
    "form",
    "number",
    "public",
    "list",
    "list_group",
    "list_region",
    "list_sha256",
)
UNIT = ("entity", "id", "population")

_ROWS = (
    'What is a row of the private table? "people": a person in a group. "groups": a group with its size. "histogram": '
    "a region and a size with its number of groups."
)
_LARGEST = (
    "Which is the largest size to tell apart? Larger groups are counted with it. Take it from public knowledge, never "
    "from the table."
)
_EVENT = (
    'What must stay hidden? "join-leave": whether a person is in a group at all. "move": also in which of them. '
    '"group": all that is in one group, whatever its size.'
)
_NUMBER = (
    "How many groups are there in all? It is public and released exactly. Give it, or name a public list of all groups "
    "with their regions as list."
)
_LIST = (
    "Which public file lists all groups with their regions? A table of people does not say which groups are empty, and "
    "whether one is must stay hidden."
)


def read_groups(path: Path, text: str, values: Mapping[str, Any], stand_in: Number | None) -> PlanFile:
    """Read a plan file with a section [groups]; private data is not touched."""
    top = Fields(str(path), "", values).only(("title", "description", "attributes", "unit", "loss", "data", GROUPS))
    groups, unit = top.table(GROUPS).only(KEYS), top.table("unit").only(UNIT)
    section = {name: top.table(name).only(sections.SECTIONS[name]) for name in ("loss", "data")}
    attributes = read_attributes(top)
    loss = sections.read_loss(section["loss"], stand_in)
    data = sections.read_data(section["data"], path.parent)
    _refuse_others(groups, section["loss"], attributes, data.unknown)
    open_ = [question for one in attributes.values() for question in one.open_questions()]
    open_ += _open_questions(groups, unit, section["loss"], attributes, loss.amounts)
    questions.refuse_open(str(path), open_)

    ((place, attribute),) = attributes.items()
    listed_at = groups.name("list")
    for table in (data.source, None if listed_at is None else str(path.parent / listed_at)):
        checks.refuse_private_hierarchy(attributes, table, path)
    regions = attribute.read(path.parent)
    checks.check_digest(place, attribute, regions)
    rows: Rows = groups.choice("rows", get_args(Rows))  # type: ignore[assignment]
    columns = _columns(groups, rows, place, attribute.column, given=attribute.fields.has("column"))
    _check_columns(groups, rows, data.kept["count"])
    listed = _read_list(groups, attribute.column, regions, path, data.source)
    event: Event = groups.choice("event", get_args(Event))  # type: ignore[assignment]
    with groups.located():
        protected = GroupUnit((unit.text("entity") or "").strip(), event, groups.whole("most") or 1)
    person = unit.name("id")
    if person is not None and rows != "people":
        raise PlanFileError(f"{path}: [unit] id tells people apart, and a row is not a person: leave it out")
    with section["loss"].located():
        stated = Loss(**loss.amounts)
    split = _split(section["loss"])
    with section["loss"].located(LossError), groups.located(PlanError):
        plan = GroupTablePlan.make(
            regions,
            groups.whole("largest") or 0,
            protected,
            stated,
            rows=rows,
            number=groups.whole("number"),
            listed=listed,
            form=groups.choice("form", get_args(Form)) or "cumulative",  # type: ignore[arg-type]
            split=split,
            public=groups.choice("public", get_args(Public)) or "total",  # type: ignore[arg-type]
            id=columns.get("group") if event == "group" else person,
            place=place,
            title=top.text("title") or "",
            population=unit.whole("population"),
        )
    with section["data"].located():
        plan.check_table(Source("-", blank_lines=data.kept["blank_lines"]))
    return PlanFile(
        plan=plan,
        path=path,
        text=text,
        attributes=FrozenMap({place: attribute.fields.values}),
        columns=FrozenMap(columns),
        lookups=FrozenMap(read_lookups(attributes, path.parent)),
        description=top.text("description") or "",
        loss_is_open=loss.is_open,
        groups=FrozenMap(groups.values),
        **data.kept,
    )


def describe(
    plan: GroupTablePlan, file: PlanFile | None, columns: Mapping[str, str] | None = None
) -> list[tuple[str, dict[str, Any]]]:
    """Return the sections of the plan as it was run, for the plan file of a release folder."""
    unit = plan.sizes
    stated = {} if file is None or file.groups is None else file.groups
    named: dict[str, Any] = {key: name for key, name in (columns or {}).items() if key != plan.place}
    named |= {key: stated[key] for key in ("list_group", "list_region") if key in stated}
    if "list" in stated:
        named["list"] = Path(stated["list"]).name
    groups: dict[str, Any] = {
        "rows": plan.rows,
        "largest": unit.largest,
        "event": unit.group.event,
        "form": unit.form,
        "number": plan.number,
        "public": plan.public,
        **({"most": unit.group.quantity} if unit.group.quantity != 1 else {}),
        **named,
        **({} if plan.list_sha256 is None else {"list_sha256": plan.list_sha256}),
    }
    person = {"id": plan.unit.id} if plan.unit.id is not None and unit.group.event != "group" else {}
    known = {} if plan.unit.population is None else {"population": plan.unit.population}
    return [("unit", {"entity": plan.unit.entity, **person, **known}), (GROUPS, groups)]


def _refuse_others(groups: Fields, loss: Fields, attributes: Mapping[str, Any], unknown: Any) -> None:
    """Refuse what plans for other counts may have."""
    if len(attributes) > 1:
        raise PlanFileError(
            f"{groups.file}: [attributes] group sizes have one, the place of the groups, but there are "
            f"{', '.join(attributes)}: the size is counted by itself"
        )
    for name in attributes:
        if name.casefold() in ("group", SIZE, "quantity"):
            raise PlanFileError(
                f"{groups.file}: [attributes.{name}] is called as a column of group sizes is: call the place another"
            )
    if unknown != "error":
        raise PlanFileError(
            f"{groups.file}: [data] unknown: the number of groups is public, so none is left out: correct the table"
        )
    if loss.choice("accounting", ("zcdp", "exact")) == "exact":
        raise PlanFileError(f"{groups.file}: [loss] accounting: exact accounting is not for group sizes: leave it out")


def _open_questions(
    groups: Fields, unit: Fields, loss: Fields, attributes: Mapping[str, Any], amounts: Mapping[str, Any]
) -> list[tuple[str, str]]:
    open_ = [] if attributes else [("attributes", "Which column says where a group is? Give it a section, such as "
                                    "[attributes.place].")]  # fmt: skip
    rows = groups.choice("rows", get_args(Rows))
    needed = [("rows", _ROWS), ("largest", _LARGEST), ("event", _EVENT)]
    if rows == "people":
        needed.append(("list", _LIST))
    elif not groups.has("list"):
        needed.append(("number", _NUMBER))
    open_ += [(f"{GROUPS}.{key}", question) for key, question in needed if not groups.has(key)]
    if not (unit.text("entity") or "").strip():
        open_.append(("unit.entity", 'Who or what is protected? Name one of them: "person", "household".'))
    if amounts["epsilon"] is None and not loss.has("rho"):
        open_.append(("loss.epsilon", questions.EPSILON))
    return open_


def _columns(groups: Fields, rows: Rows, place: str, column: str, given: bool) -> dict[str, str]:
    """Return the columns of the private table; people need no region, since the list has that of their group."""
    columns = {} if rows == "people" and not given else {place: column}
    defaults = {"people": {"group": "group"}, "groups": {"size": SIZE}, "histogram": {"size": SIZE}}[rows]
    for key in ("group", "size", "quantity"):
        name = groups.name(key)
        if name is not None and key not in ALLOWED[rows]:
            raise PlanFileError(f"{groups.file}: [{GROUPS}] {key}: not where rows are {rows}: leave it out")
        if (name := name or defaults.get(key)) is not None:
            columns[key] = name
    return columns


def _check_columns(groups: Fields, rows: Rows, count: str | None) -> None:
    if rows == "histogram" and count is None:
        raise PlanFileError(
            f"{groups.file}: [data] count is missing: name the column with the number of groups of a row"
        )
    if rows != "histogram" and count is not None:
        raise PlanFileError(f"{groups.file}: [data] count: a row is one of the {rows}: leave it out")
    if rows == "people" and not groups.has("quantity") and (groups.whole("most") or 1) > 1:
        raise PlanFileError(f"{groups.file}: [{GROUPS}] most: every row adds 1, unless quantity names a column")


def _read_list(groups: Fields, column: str, regions: Hierarchy, path: Path, source: str | None) -> GroupList | None:
    name = groups.name("list")
    if name is None:
        for key in ("list_group", "list_region", "list_sha256"):
            if groups.has(key):
                raise PlanFileError(f"{groups.file}: [{GROUPS}] {key} is about a list, and none is named: give list")
        return None
    file = path.parent / name
    if source is not None and checks.same_file(file, Path(source)):
        raise PlanFileError(
            f"{groups.file}: [{GROUPS}] list is the private table itself: which groups occur there is private. Take it "
            "from a public source"
        )
    with groups.located():
        listed = GroupList.read(
            file, regions, groups.name("list_group") or groups.name("group") or "group",
            groups.name("list_region") or column,
        )  # fmt: skip
    stated = groups.name("list_sha256")
    if stated is not None and stated.lower() != listed.digest:
        raise PlanFileError(
            f"{groups.file}: [{GROUPS}] the list has SHA-256 {listed.digest}, but list_sha256 is {stated}: the plan "
            "was made for another list"
        )
    return listed


def _split(loss: Fields) -> Any:
    weights = sections.read_weights(loss)
    if weights is not None:
        return weights
    given = loss.values.get("split", "uniform")
    if given != "uniform":
        loss.refuse("split", '"uniform" or a table of weights, such as split = { size = 1, "place.state" = 2 }')
    return given
