"""Read a plan file: from TOML to a plan. Error messages name the section and field."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from treetop._util.choices import nearest
from treetop._util.lazy import FrozenMap
from treetop._util.numbers import Number
from treetop.counts.constraint_reader import read_facts
from treetop.counts.group_reader import ALLOWED, GroupList, Rows
from treetop.domain.constraints import COUNTED, LISTED, ORDERED, PAIR, SAME, Fact, PublicFacts, narrowed
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import Spine
from treetop.domain.table_cells import CellNumbering
from treetop.domain.unit import TOTAL, Unknown, drops
from treetop.errors import FactError, HierarchyError, LossError, PlanError, PlanFileError
from treetop.io.source import leaves_out, selected
from treetop.plan import fields
from treetop.plan.constraints_kept import known_levels
from treetop.plan.degrees import DEGREE, NEIGHBOURS, degree_plan, regional_degree_plan
from treetop.plan.fields._field import Section
from treetop.plan.fields.declarations import ANY_ATTRIBUTES, ELSEWHERE, FACT, ORDERS
from treetop.plan.file._graph import DEGREES, as_ordinary, read_graph
from treetop.plan.file._stated import ParsedPlan, PlanFile, read_stated
from treetop.plan.file.attributes import read_hierarchies
from treetop.plan.group_plan import SIZE, GroupSizeReader, group_plan
from treetop.plan.group_unit import GroupUnit
from treetop.plan.mechanism import MOST_CELLS, JointMechanism, TopDown
from treetop.plan.plan import Plan
from treetop.plan.workload import named_split
from treetop.privacy import Loss, Unit

# The facts of a plan file: public knowledge that the release satisfies, by table.


def stated_facts(stated: ParsedPlan, spine: Spine, columns: Mapping[str, str]) -> PublicFacts:
    """Read the facts of [facts]; edges without direction between like ends are unordered pairs: half of the cells."""
    section = Section(str(stated.path), "facts", stated.values[""]["facts"])
    if _has_pairs(stated.values["graph"], spine, columns):
        section = replace(
            section, values={CellNumbering(spine, spine.finest).name: {"possible": ORDERED}, **section.values}
        )
    facts = {name: _fact(section, name, stated.path.parent) for name in section.values}
    with section.located():
        return read_facts(spine, facts)


def _has_pairs(graph: Mapping[str, Any], spine: Spine, columns: Mapping[str, str]) -> bool:
    ends = [column.partition(".")[2] for column in columns.values()]
    if not graph or graph["counts"] != "edges" or graph["directed"]:
        return False
    return len(ends) == PAIR and ends[0] == ends[1] and len({tree.digest for tree in spine.attributes.values()}) == 1


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
            if values[kind] is not None and (kind in COUNTED or values[kind] not in (SAME, ORDERED)):
                values[kind] = folder / values[kind]
        return Fact(**values)


# The section [groups] of a plan file: group sizes from people, groups or histograms, and a public list of groups.


def read_groups(stated: ParsedPlan) -> PlanFile:
    """Make a plan of a file with a section [groups]; private data is not read."""
    groups, unit = stated.values["groups"], stated.values["unit"]
    section = stated.sections["groups"]
    of_place = "group sizes have one, the place of the groups"
    _refuse_beside(stated, of_place, SIZE, ("group", SIZE, "quantity"), "a column of group sizes is")
    if stated.values["data"]["unknown"] != "error":
        raise stated.sections["data"].problem(
            "unknown: the number of groups is public, so none is left out: correct the table"
        )
    stated.refuse_open()

    ((place, attribute),) = stated.attributes.items()
    rows: Rows = groups["rows"]
    regions = stated.read_trees()[place]
    columns = _columns(stated, rows, place)
    listed = _read_list(stated, attribute.column, regions)
    with section.located():
        protected = GroupUnit(unit["entity"], groups["event"], groups["most"])
    if unit["id"] is not None and rows != "people":
        raise stated.sections["unit"].problem("id tells people apart, and a row is not a person: leave it out")
    loss = stated.loss()
    with stated.sections["loss"].located(LossError), section.located(PlanError):
        plan = group_plan(
            regions,
            groups["largest"],
            protected,
            loss,
            **{name: groups[name] for name in ("rows", "number", "form", "public", "repair")},
            listed=listed,
            split=stated.values["loss"]["split"],
            id=columns.get("group") if groups["event"] == "group" else unit["id"],
            place=place,
            title=stated.values[""]["title"],
            population=unit["population"],
            confidence=stated.values["release"]["confidence"],
        )
    with stated.sections["data"].located():
        GroupSizeReader.of(plan).check_source(plan, stated.counted)
    return stated.plan_file(plan, columns, groups=FrozenMap(section.values))


def _refuse_beside(stated: ParsedPlan, has: str, axis: str, names: Sequence[str], called: str) -> None:
    """Refuse other attributes than the place, and one that is called as the axis."""
    attributes = stated.attributes
    if len(attributes) > 1:
        raise PlanFileError(
            f"{stated.path}: [attributes] {has}, but there are {', '.join(attributes)}: the {axis} is counted by itself"
        )
    for name, attribute in attributes.items():
        if name.casefold() in names:
            raise attribute.section.problem(f"is called as {called}: call the place another")


def _columns(stated: ParsedPlan, rows: Rows, place: str) -> dict[str, str]:
    """Return the columns of the private table; people need no region, since the group list has it."""
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


def _read_list(stated: ParsedPlan, column: str, regions: Hierarchy) -> GroupList | None:
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


# A plan file with a section [graph] that counts degrees, of the whole graph or, with one attribute, by place.


def read_degrees(stated: ParsedPlan) -> PlanFile:
    """Make a plan of a file that counts degrees; private data is not read."""
    section, folder, told = stated.sections, stated.path.parent, stated.values["graph"]
    unknown = stated.values["data"]["unknown"]
    _refuse_beside(stated, "degrees have at most one, the place of the people", DEGREE, (DEGREE,), "the degrees are")
    if unknown not in ("error", "drop"):
        raise section["data"].problem('unknown: write "error", or "drop" for edges to people who are not in the table')
    stated.refuse_open()
    columns = {name: attribute.column for name, attribute in stated.attributes.items()}
    stated.check_columns([])
    trees = stated.read_trees()
    graph = read_graph(section["graph"], told, folder, columns, None, unknown)
    assert graph is not None
    loss = stated.loss()
    with section["loss"].located(LossError), section["graph"].located(PlanError):
        plan = _plan(stated, trees, loss=loss, policies=graph.graph.policies)
    described = graph.described(stated.values[""]["description"])
    return stated.plan_file(plan, columns, graph=graph, description=described)


def _plan(stated: ParsedPlan, trees: Mapping[str, Hierarchy], **more: Any) -> Plan:
    told, unit = stated.values["graph"], stated.values["unit"]
    both: dict[str, Any] = {
        **{name: told[name] for name in ("relation", "largest", "form", "directed", "degree")},
        "contributions": unit["contributions"],
        "title": stated.values[""]["title"],
        "population": unit["population"],
        "confidence": stated.values["release"]["confidence"],
        **more,
    }
    if not trees:
        choosing = told["choosing"]
        return degree_plan(neighbours=unit["neighbours"], entity=unit["entity"], choosing=choosing, **both)
    ((place, regions),) = trees.items()
    only = NEIGHBOURS.get(told["relation"], unit["neighbours"])
    if unit["neighbours"] != only:
        raise stated.sections["unit"].problem(
            f'neighbours is {unit["neighbours"]!r}: degrees by place under "{told["relation"]}" are for {only!r}'
        )
    return regional_degree_plan(regions, place=place, split=stated.values["loss"]["split"], **both)


_ENDS = ("origin", "destination")
_USUAL_MARGINS = {"bottom-up": "none", JointMechanism.name: "pairs"}
"""Margins of some orders, if a plan states none."""
_LARGEST = 1 << 24
"""Largest size of a plan file, in bytes."""


UNORDERED = (
    "Three or more attributes without an order are fitted jointly, which is not possible here: {}. So this plan goes "
    "level by level, coarse levels of all attributes first. State an order to decide what comes first."
)
BY_SIZES = (
    "All tables of one and of two attributes are measured, these at levels with few cells: sizes alone decide, because "
    "the plan does not say how many records there are (records)."
)
NO_NOISE = "All tables of one and of two attributes are measured: with about {:,} records none would be mostly noise."
NOISY = "Not measured, as mostly noise with about {1:,} records: {0}. List them under margins to measure them."


def read_plan(path: str | Path, *, stand_in: Number | None = None) -> PlanFile:
    """Read a plan file; private data is not read.

    An open loss is a question, unless the epsilon `stand_in` is given while the loss is searched for. Raises
    `PlanFileError` for a file that cannot be parsed, `IncompletePlan` for open questions, and the engine's own errors,
    with file and section, for contradictions.
    """
    path = Path(path)
    return parse_plan(plan_text(path), path, stand_in=stand_in)


def parse_plan(text: str, path: str | Path, *, stand_in: Number | None = None) -> PlanFile:
    """Read the text of a plan file as if it were at `path`; the files that it names are found from there."""
    path = Path(path)
    given = _parse(text, path)
    family = family_of(given)
    if family == fields.GROUPS:
        return read_groups(read_stated(path, text, given, fields.GROUPS, stand_in))
    if family == fields.DEGREES:
        return read_degrees(read_stated(path, text, as_ordinary(given, str(path)), fields.DEGREES, stand_in))
    return _read_spine(read_stated(path, text, as_ordinary(given, str(path)), fields.RECORDS, stand_in))


def family_of(values: Mapping[str, Any]) -> str:
    """Return the family of a plan, given its TOML values."""
    if "groups" in values:
        return fields.GROUPS
    graph = values.get("graph")
    return fields.DEGREES if isinstance(graph, Mapping) and graph.get("counts") == DEGREES else fields.RECORDS


def _read_spine(stated: ParsedPlan) -> PlanFile:
    values, section, folder = stated.values, stated.sections, stated.path.parent
    data, split, unknown = values["data"], values["loss"]["split"], values["data"]["unknown"]
    _check_order(section["spine"], values["spine"]["order"], stated.attributes)
    _check_release(section, values["release"])
    stated.refuse_open()

    stated.refuse_private_files()
    columns = {name: attribute.column for name, attribute in stated.attributes.items()}
    stated.check_columns([*columns.values(), values["unit"]["id"]])
    trees = read_hierarchies(stated.attributes, folder)
    own = {name: attribute.stated["unknown"] for name, attribute in stated.attributes.items()}
    if not isinstance(unknown, str) or any(own.values()):
        unknown = _by_attribute(section["data"], unknown, own)
    elsewhere = unknown == ELSEWHERE
    treated = dict.fromkeys(trees, unknown) if isinstance(unknown, str) else unknown
    trees = _with_elsewhere(section["data"], trees, treated, bool(values["graph"]))
    if not isinstance(unknown, str) or elsewhere:
        unknown = treated
        _check_unknown(stated, unknown, trees)
    data["unknown"] = unknown
    order, notes = values["spine"]["order"], list[str]()
    if order is None and len(trees) > 2:
        reason = _why_top_down(values, section, trees)
        order = Spine.in_turn(trees).splits if reason else JointMechanism.name
        notes += [UNORDERED.format(reason)] if reason else []
    spine = _make_spine(section["spine"], order, trees)
    for name, tree in zip(spine.attributes, spine.trees, strict=True):
        stated.check_digest(name, tree)
    unit = fields.arguments(values, "plan.unit")
    if not drops(unknown) and selected(stated.counted, leaves_out(stated.counted)) is not None:
        unit["may_be_missing"] = True
    with section["unit"].located():
        protected = Unit(**unit)
    graph = read_graph(section["graph"], values["graph"], folder, columns, protected, unknown)
    described = {"description": values[""]["description"]}
    if graph is not None:
        protected, described = graph.unit(protected), {"description": graph.described(described["description"])}
    loss = stated.loss()
    if not section["spine"].has("margins") and (usual := _USUAL_MARGINS.get(str(order))) is not None:
        values["spine"]["margins"] = usual
    facts = stated_facts(stated, spine, columns)
    if facts.ordered is not None and section["spine"].has("margins") and values["spine"]["margins"] != "none":
        raise section["spine"].problem(
            "margins: of unordered pairs, which end comes first means nothing, and a margin would be that of one end: "
            "leave margins out; queries count what touches a place"
        )
    # What remains to go wrong: a split that misses a level, a cap on a level that is not there.
    with section["loss"].located(LossError), section["unit"].located(PlanError):
        if isinstance(split, str) and split != "uniform":
            split = _named_split(split, spine, facts, protected, loss, unknown)
        with Section(str(stated.path), "facts", {}).located(FactError):
            mechanism = JointMechanism() if order == JointMechanism.name else TopDown()
            given = fields.arguments(values, "plan")
            plan = Plan(spine, protected, loss, split, facts=facts, mechanism=mechanism, **given)
    if (
        JointMechanism.runs(plan)
        and split == "uniform"
        and not (section["spine"].has("margins") or stated.loss_is_open)
    ):
        plan, decided = _without_noise(plan, data["records"])
        notes.append(decided)
    return stated.plan_file(plan, columns, graph=graph, elsewhere=elsewhere, notes=tuple(notes), **described)


def _without_noise(plan: Plan, records: int | None) -> tuple[Plan, str]:
    """Return a joint fit without tables of two attributes that would be mostly noise, and how that was decided.

    The average count decides beside the noise that the table would have, so that nothing private is asked.
    """
    if records is None:
        return plan, BY_SIZES
    tables = list(zip(plan.margin_tables, plan.margin_parts, strict=True))
    noisy = [
        margin for margin, part in tables if len(margin.attributes) > 1 and records / margin.nodes < part.deviation
    ]
    if not noisy:
        return plan, NO_NOISE.format(records)
    kept = [margin.name for margin, _ in tables if margin not in noisy]
    return replace(plan, margins=kept), NOISY.format(", ".join(margin.name for margin in noisy), records)


def _why_top_down(values: Mapping[str, Any], section: Mapping[str, Section], trees: Mapping[str, Hierarchy]) -> str:
    """Return what a plan without order has that a joint fit cannot do; empty if there is nothing."""
    cells = math.prod(tree.sizes[-1] for tree in trees.values())
    reasons = {
        f"{cells:,} cells, more than the {MOST_CELLS:,} that it can list": cells > MOST_CELLS,
        "public facts": values[""]["facts"],
        "resolve": values["release"]["resolve"] != "full",
        "prefer or a repair": values["release"]["prefer"] is not None or section["repair"].values,
        "no margins": section["spine"].has("margins") and values["spine"]["margins"] == "none",
    }
    return " and ".join(reason for reason, applies in reasons.items() if applies)


def _named_split(
    name: str, spine: Spine, facts: PublicFacts, unit: Unit, loss: Loss, unknown: Unknown
) -> dict[str, Fraction]:
    measured = narrowed(spine, facts.possible) if facts else spine
    names = [TOTAL, *(level.name for level in spine.levels)]
    known = {names[index] for index in known_levels(spine, facts)}
    return named_split(name, measured, unit, loss, unknown=unknown, known=known)


def _check_order(section: Section, order: Any, attributes: Mapping[str, object]) -> None:
    if isinstance(order, str) and order not in ANY_ATTRIBUTES and not set(_ENDS) <= set(attributes):
        raise section.problem(
            f"order is {order!r}, which is for two attributes called origin and destination, but they are "
            f"{', '.join(attributes)}: rename them, or list the levels in order"
        )


def _check_release(section: Mapping[str, Section], release: Mapping[str, Any]) -> None:
    stated = section["release"]
    if release["prefer"] == "lower-error" and release["resolve"] != "full":
        raise stated.problem(
            'resolve leaves counts unnamed, which have no place where prefer = "lower-error" estimates all of them '
            "again: keep one of them"
        )
    if release["prefer"] is not None and section["repair"].values:
        raise stated.problem("prefer decides what [repair] does: keep one of them")


def _make_spine(section: Section, order: Any, trees: Mapping[str, Hierarchy]) -> Spine:
    if isinstance(order, str):
        _refuse_third(section, order, trees)
    with section.located():
        if isinstance(order, str):
            return ORDERS[order](**trees)
        if order is None:  # one attribute: there is only one order
            ((name, tree),) = trees.items()
            order = tuple(f"{name}.{level}" for level in tree.levels)
        return Spine(order, trees)


def _refuse_third(section: Section, order: str, trees: Mapping[str, Hierarchy]) -> None:
    """Refuse an origin-destination order for more than two attributes, with the list to write instead."""
    others = {name: tree for name, tree in trees.items() if name not in _ENDS}
    if not others or order in ANY_ATTRIBUTES:
        return
    ends = ORDERS[order](**{name: tree for name, tree in trees.items() if name in _ENDS})
    listed = [*ends.splits, *(f"{name}.{level}" for name, tree in others.items() for level in tree.levels)]
    shown = ", ".join(f'"{split}"' for split in listed)
    raise section.problem(
        f"order is {order!r}, which is for origin and destination, and there is {', '.join(others)} as well. Where it "
        f"comes is yours to say: what comes first is more accurate. For example, at the end:\n  order = [{shown}]"
    )


def _by_attribute(section: Section, unknown: Any, own: Mapping[str, str | None]) -> dict[str, str]:
    """Return the treatment of the unknown codes of each attribute; its own goes before that of all."""
    listed = {} if isinstance(unknown, str) else unknown
    for attribute in listed:
        if attribute not in own:
            raise section.table("unknown").problem(f"{attribute!r} is not an attribute{nearest(attribute, own)}")
    usual = unknown if isinstance(unknown, str) else "error"
    return {name: stated or listed.get(name) or usual for name, stated in own.items()}


def _with_elsewhere(
    section: Section, trees: Mapping[str, Hierarchy], treated: Mapping[str, str], is_graph: bool
) -> dict[str, Hierarchy]:
    """Return the hierarchies with a leaf for unknown codes, where these go elsewhere; shared ones stay shared."""
    added = [name for name, code in treated.items() if code == ELSEWHERE]
    if added and is_graph:
        raise section.problem(f'unknown = "{ELSEWHERE}" is for tables, and this is a graph: write "error" or "drop"')
    own: dict[int, Hierarchy] = {}
    for name in added:
        tree = trees[name]
        if id(tree) not in own:
            try:
                own[id(tree)] = tree.with_leaf(ELSEWHERE)
            except HierarchyError as problem:
                raise section.problem(f'unknown = "{ELSEWHERE}": {name}: {problem}') from problem
    return {name: own.get(id(tree), tree) if name in added else tree for name, tree in trees.items()}


def _check_unknown(stated: ParsedPlan, unknown: Mapping[str, str], trees: Mapping[str, Hierarchy]) -> None:
    """Refuse a missing leaf for unknown codes, before private data is read."""
    for attribute, code in unknown.items():
        if code not in ("error", "drop") and code not in trees[attribute].codes[-1].to_pylist():
            own = stated.attributes[attribute]
            why = f"unknown: the leaf {code!r} is not in the hierarchy of {attribute}"
            where = own.section if own.stated["unknown"] else stated.sections["data"]
            raise where.problem(f'{why}; name the leaf under which its unknown codes are counted, or "{ELSEWHERE}"')


def plan_text(path: str | Path) -> str:
    """Return the text of a plan file, unchanged."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)  # a device may have no end
        if len(data) > _LARGEST:
            raise PlanFileError(f"{path}: is larger than {_LARGEST >> 20} MB, and is no plan file: name a plan file")
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        if re.match("[A-Za-z][A-Za-z0-9+.-]+:/", str(path)):
            raise PlanFileError(
                f"{path}: no such file. It looks like the address of a table: `treetop inspect` drafts a plan file "
                "from that"
            ) from None
        raise PlanFileError(f"{path}: no such file; `treetop inspect` drafts one from a table") from None
    except UnicodeDecodeError as problem:
        raise PlanFileError(f"{path}: byte {problem.start} is not UTF-8: save the plan file as UTF-8 text") from problem
    except (OSError, ValueError) as problem:
        raise PlanFileError(f"{path}: cannot be read: {problem}") from problem


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as problem:
        raise PlanFileError(f"{path}: this is not valid TOML: {problem}") from problem
    except RecursionError:
        raise PlanFileError(f"{path}: this is not valid TOML: it is nested too deeply") from None
    except (ValueError, ArithmeticError) as problem:
        raise PlanFileError(f"{path}: a number has too many digits: {problem}") from problem
