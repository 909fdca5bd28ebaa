"""Reading a plan file: from TOML to a plan, with every mistake named by section and field."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from treetop.basics.exact import Number
from treetop.basics.nearest import nearest
from treetop.domain.facts import PublicFacts
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.narrowed import narrowed
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import HierarchyError, LossError, PlanError, PlanFileError
from treetop.intake.dropping import selected
from treetop.intake.encode import Unknown
from treetop.plan import fields
from treetop.plan.facts import known_levels
from treetop.plan.fields.ordinary import ELSEWHERE, ORDERS
from treetop.plan.fields.section import Section
from treetop.plan.file.attributes import read_hierarchies
from treetop.plan.file.degrees import counts_degrees, read_degrees, with_source
from treetop.plan.file.facts import located, stated_facts
from treetop.plan.file.graph import as_ordinary, read_graph
from treetop.plan.file.groups import read_groups
from treetop.plan.file.planfile import PlanFile
from treetop.plan.file.stated import Stated, read_stated
from treetop.plan.plan import PurePlan
from treetop.plan.splits import named_split
from treetop.privacy import Loss, Unit
from treetop.sources.source import Source, leaves_out

_ENDS = ("origin", "destination")
BOTTOM_UP = "bottom-up"
"""The order in which leaves alone are measured, and margins are none unless they are asked for."""
_LARGEST = 1 << 24
"""How many bytes a plan file may have."""


def read_plan(path: str | Path, *, stand_in: Number | None = None) -> PlanFile:
    """Read a plan file; private data is not touched.

    A loss that is left open is a question, unless there is an epsilon to stand in for it while one is looked for.
    Raises `PlanFileError` for what cannot be understood, `IncompletePlan` for questions that are left open,
    and the engine's own errors, with file and section, for what does not fit together.
    """
    path = Path(path)
    return parse_plan(plan_text(path), path, stand_in=stand_in)


def parse_plan(text: str, path: str | Path, *, stand_in: Number | None = None) -> PlanFile:
    """Read the text of a plan file as if it stood at a path, from which the files that it names are found."""
    path = Path(path)
    given = _parse(text, path)
    family = family_of(given)
    if family == fields.GROUPS:
        return read_groups(read_stated(path, text, given, fields.GROUPS, stand_in))
    if family == fields.DEGREES:
        return read_degrees(read_stated(path, text, with_source(given, str(path)), fields.DEGREES, stand_in))
    return _read_spine(read_stated(path, text, as_ordinary(given, str(path)), fields.SPINE, stand_in))


def family_of(values: Mapping[str, Any]) -> str:
    """Return the family of a plan by its values, as TOML has them."""
    if "groups" in values:
        return fields.GROUPS
    return fields.DEGREES if counts_degrees(values) else fields.SPINE


def _read_spine(stated: Stated) -> PlanFile:
    values, section, folder = stated.values, stated.sections, stated.path.parent
    data, split, unknown = values["data"], values["loss"]["split"], values["data"]["unknown"]
    _check_order(section["spine"], values["spine"]["order"], stated.attributes)
    _check_release(section, values["release"])
    stated.refuse_open()

    stated.refuse_private_files()
    columns = {name: attribute.column for name, attribute in stated.attributes.items()}
    stated.check_columns([*columns.values(), values["unit"]["id"]])
    trees = read_hierarchies(stated.attributes, folder)
    elsewhere = unknown == ELSEWHERE
    if elsewhere:
        trees = _with_elsewhere(section["data"], trees, bool(values["graph"]))
        unknown = data["unknown"] = dict.fromkeys(trees, ELSEWHERE)
    spine = _make_spine(section["spine"], values["spine"]["order"], trees)
    for name, tree in zip(spine.attributes, spine.trees, strict=True):
        stated.check_digest(name, tree)
    if not elsewhere:
        _check_unknown(section["data"], unknown, trees)
    unit = fields.arguments(values, "plan.unit")
    format_may = None if stated.source is None else leaves_out(Source(stated.source))
    dropped = selected(data["keep"], data["query"], data["blank_lines"], format_may, data["drop"])
    if unknown != "drop" and dropped is not None:
        unit["may_be_missing"] = True
    with section["unit"].located():
        protected = Unit(**unit)
    graph = read_graph(section["graph"], values["graph"], folder, columns, protected, unknown)
    described = {"description": values[""]["description"]}
    if graph is not None:
        protected, described = graph.unit(protected), {"description": graph.described(described["description"])}
    loss = stated.loss()
    if values["spine"]["order"] == BOTTOM_UP and not section["spine"].has("margins"):
        values["spine"]["margins"] = "none"
    facts = stated_facts(stated, spine)
    # What remains to go wrong: a split that misses a level, a cap on a level that is not there.
    with section["loss"].located(LossError), section["unit"].located(PlanError):
        if isinstance(split, str) and split != "uniform":
            split = _named_split(split, spine, facts, protected, loss, unknown)
        with located(stated.path):
            plan = PurePlan(spine, protected, loss, split, facts=facts, **fields.arguments(values, "plan"))
    return stated.plan_file(plan, columns, graph=graph, elsewhere=elsewhere, **described)


def _named_split(
    name: str, spine: Spine, facts: PublicFacts, unit: Unit, loss: Loss, unknown: Unknown
) -> dict[str, Fraction]:
    """Return a split by its name, of what is measured: not what public facts decide, nor what they make impossible."""
    measured = narrowed(spine, facts.possible) if facts else spine
    names = [TOTAL, *(level.name for level in spine.levels)]
    known = {names[index] for index in known_levels(spine, facts)}
    return named_split(name, measured, unit, loss, unknown=unknown, known=known)


def _check_order(section: Section, order: Any, attributes: Mapping[str, object]) -> None:
    if isinstance(order, str) and order != BOTTOM_UP and not set(_ENDS) <= set(attributes):
        raise section.problem(
            f"order is {order!r}, which is for two attributes called origin and destination, but they are "
            f"{', '.join(attributes)}: rename them, or list the levels in order"
        )


def _check_release(section: Mapping[str, Section], release: dict[str, Any]) -> None:
    """Refuse what does not go together under [release]; without intervals, they have no confidence."""
    stated = section["release"]
    if release["prefer"] == "lower-error" and release["resolve"] != "full":
        raise stated.problem(
            'resolve leaves counts unnamed, which have no place where prefer = "lower-error" estimates all of them '
            "again: keep one of them"
        )
    if release["prefer"] is not None and section["repair"].values:
        raise stated.problem("prefer decides what [repair] does: keep one of them")
    if not release["intervals"]:
        if stated.has("confidence"):
            raise stated.problem("intervals are off, but have a confidence: keep one")
        release["confidence"] = None


def _make_spine(section: Section, order: Any, trees: Mapping[str, Hierarchy]) -> Spine:
    """Return the spine of the order that [spine] states; one attribute needs none."""
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
    """Refuse an order of two ends for more attributes, with the list to write instead."""
    others = {name: tree for name, tree in trees.items() if name not in _ENDS}
    if not others or order == BOTTOM_UP:
        return
    ends = ORDERS[order](**{name: tree for name, tree in trees.items() if name in _ENDS})
    listed = [*ends.splits, *(f"{name}.{level}" for name, tree in others.items() for level in tree.levels)]
    shown = ", ".join(f'"{split}"' for split in listed)
    raise section.problem(
        f"order is {order!r}, which is for origin and destination, and there is {', '.join(others)} as well. Where it "
        f"comes is yours to say: what comes first is more accurate. For example, at the end:\n  order = [{shown}]"
    )


def _with_elsewhere(section: Section, trees: Mapping[str, Hierarchy], is_graph: bool) -> dict[str, Hierarchy]:
    """Return the hierarchies with a leaf for unknown codes; those that are shared stay shared."""
    if is_graph:
        raise section.problem(f'unknown = "{ELSEWHERE}" is for tables, and this is a graph: write "error" or "drop"')
    own: dict[int, Hierarchy] = {}
    for name, tree in trees.items():
        if id(tree) not in own:
            try:
                own[id(tree)] = tree.with_leaf(ELSEWHERE)
            except HierarchyError as problem:
                raise section.problem(f'unknown = "{ELSEWHERE}": {name}: {problem}') from problem
    return {name: own[id(tree)] for name, tree in trees.items()}


def _check_unknown(section: Section, unknown: Any, trees: Mapping[str, Hierarchy]) -> None:
    """Refuse a leaf for unknown codes that is not one, before private data is read."""
    if isinstance(unknown, str):
        return
    leaves = section.table("unknown")
    for attribute in unknown:
        if attribute not in trees:
            raise leaves.problem(f"{attribute!r} is not an attribute{nearest(attribute, trees)}")
    for attribute, tree in trees.items():
        code = unknown.get(attribute)
        if code is None or code not in tree.codes[-1].to_pylist():
            stated = f"the leaf {code!r} is not in its hierarchy" if code else "no leaf is named for it"
            raise leaves.problem(f"{attribute}: {stated}; name the leaf under which its unknown codes are counted")


def plan_text(path: str | Path) -> str:
    """Return the text of a plan file, word for word."""
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
                "from that, with --out plan.toml"
            ) from None
        raise PlanFileError(f"{path}: no such file; `treetop inspect TABLE --out {path}` drafts one") from None
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
