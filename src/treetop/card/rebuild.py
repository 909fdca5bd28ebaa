"""From a card back to its plan, so that everything that the plan decides can be computed again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from treetop.domain.constraints import PublicFacts
from treetop.domain.marginal import MARGIN, Margins, margins_of
from treetop.domain.spine import Spine
from treetop.domain.unit import Policies
from treetop.plan.degree_unit import DegreeFacts, DegreeUnit, ThetaChoice
from treetop.plan.degrees import DegreeHistogram, DegreeReader
from treetop.plan.group_plan import GroupSizeReader
from treetop.plan.group_unit import GroupUnit
from treetop.plan.mechanism import JointMechanism, RecordReader
from treetop.plan.plan import Plan
from treetop.plan.region_histograms import RegionHistograms
from treetop.plan.resolution import Resolution
from treetop.plan.workload import CONFIDENCE, table_shares
from treetop.privacy import Loss, Split, Unit
from treetop.privacy.relation import GraphRules, GraphUnit

Described = Mapping[str, Any]


def rebuild_unit(card: Mapping[str, Any]) -> Unit:
    """Return the unit that a card describes, as far as its sensitivities need it."""
    stated, described = card["unit"], card["plan"]
    if "groups" in described:
        groups = described["groups"]
        form, largest = groups["form"], groups["largest"]
        return GroupUnit(stated["entity"], stated["event"], stated["quantity"], form=form, largest=largest)
    if "degrees" in described:
        return _degree_unit(described, stated)
    missing = described["unit"].get("may_be_missing", False)
    about = {name: stated[name] for name in ("entity", "contributions", "neighbours", "per_node")}
    return Unit(**about, may_be_missing=missing)


def rebuild_plan(card: Mapping[str, Any], spine: Spine, facts: PublicFacts | None = None) -> Plan:
    """Return the plan that a card describes, on the spine, and with the facts, that were read from its folder."""
    described = card["plan"]
    loss = described["loss"]
    amounts: dict[str, Any] = {
        name: None if loss[name] is None else Fraction(loss[name]) for name in ("epsilon", "delta", "rho")
    }
    kept = {"noise": loss.get("noise"), "large_delta": loss.get("large_delta", False)}
    if kind := next((name for name in OF_CELLS if name in described), None):
        own = OF_CELLS[kind](described, spine)
    else:
        own = _of_records(described, spine, facts)
        kept["accounting"] = loss.get("accounting", "zcdp")
    return Plan(
        spine=spine,
        loss=Loss(**amounts, **kept),
        title=described["title"],
        confidence=described.get("confidence", CONFIDENCE),
        unknown=described["unknown"],
        **({} if "mechanism" in described else {"repair": described["repair"]}),
        **own,
    )


def _of_records(described: Described, spine: Spine, facts: PublicFacts | None) -> dict[str, Any]:
    levels, margins = _shares(described["levels"]), _shares(described.get("margins", []))
    stated = levels | margins
    is_joint = described.get("mechanism") == JointMechanism.name
    usual = stated if is_joint and len(set(stated.values())) == 1 else {}
    usual = usual or ({} if is_joint else table_shares("uniform", list(levels), list(margins)))
    unit, resolve = Unit(**described["unit"]), described.get("resolve")
    return {
        **({"mechanism": JointMechanism()} if is_joint else {"order": described["order"]}),
        "reader": RecordReader(),
        "unit": GraphUnit(unit, GraphRules.of(described["graph"])) if "graph" in described else unit,
        "split": "uniform" if not stated or usual == stated else Split(stated),
        "resolve": "full" if resolve is None else _resolution(resolve),
        "margins": _margins(spine, [name.removeprefix(MARGIN) for name in margins], facts, is_joint),
        "facts": facts or {},
    }


def _of_groups(described: Described, _: Spine) -> dict[str, Any]:
    """Return the fields of a plan for group sizes; the list of groups is known by its hash only."""
    unit, groups = described["unit"], described["groups"]
    protected = GroupUnit(unit["entity"], groups["event"], groups["quantity"])
    repair = "joint" if groups["mechanism"].endswith("r+dp") else "exact"
    return {
        "unit": protected.in_plan(groups["form"], groups["largest"], unit["id"], unit.get("population")),
        "split": _level_split(described),
        "reader": GroupSizeReader(groups["rows"], groups["number"], list_sha256=groups["list_sha256"]),
        "mechanism": RegionHistograms(groups["public"], repair),
    }


def _of_degrees(described: Described, spine: Spine) -> dict[str, Any]:
    """Return the fields of a plan for degrees, of a whole graph or by region."""
    choice, mechanism = described["degrees"].get("choice"), RegionHistograms("regions")
    if choice is not None:
        measured = None if choice["measured"] is None else tuple(choice["measured"])
        choice = ThetaChoice(tuple(choice["candidates"]), Fraction(choice["share"]), measured)
    return {
        "unit": _degree_unit(described, described["unit"]),
        "split": _level_split(described),
        "reader": DegreeReader(),
        "mechanism": mechanism if len(spine.attributes) > 1 else DegreeHistogram(choice),
    }


OF_CELLS: Mapping[str, Callable[[Described, Spine], dict[str, Any]]] = {"groups": _of_groups, "degrees": _of_degrees}
"""The kinds of plans that measure cells along an axis, by the name of their part in a card's plan."""


def _degree_unit(described: Described, unit: Mapping[str, Any]) -> DegreeUnit:
    graph, degrees = described["graph"], described["degrees"]
    policies = Policies.of(graph)
    facts = DegreeFacts(
        graph["relation"], graph["directed"], graph.get("degree_bound"), policies, degrees.get("degree")
    )
    most = unit["contributions"] if facts.cut else None
    entity, population = unit["entity"], unit.get("population")
    return DegreeUnit(facts, unit["neighbours"], degrees["form"], degrees["largest"], entity, population, most)


def _resolution(stated: Mapping[str, str]) -> Resolution:
    return Resolution(**{name: Fraction(text) for name, text in stated.items() if name != "edition"})


def _shares(tables: Sequence[Mapping[str, Any]]) -> dict[str, Fraction]:
    """Return the share of every table that was measured."""
    return {table["name"]: Fraction(table["share"]) for table in tables if table["noise"] is not None}


def _level_split(described: Described) -> Any:
    shares = _shares(described["levels"])
    return "uniform" if len(set(shares.values())) <= 1 else Split(shares)


def _margins(spine: Spine, names: list[str], facts: PublicFacts | None, is_joint: bool) -> Margins:
    """Return what a plan says of its margins, in one word where there is one."""
    if not names:
        return "none"
    words: tuple[Literal["each", "pairs"], ...] = ("each", "pairs")
    for word in words:
        every = margins_of(spine, word, levels="kept" if is_joint else "left out")
        if [margin.name for margin in every if facts is None or not facts.decides(margin.depths)] == names:
            return word
    return names
