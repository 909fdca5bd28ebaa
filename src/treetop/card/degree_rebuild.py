"""From a card of degrees back to its plan."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from treetop.domain.spine import Spine
from treetop.domain.unit import Policies
from treetop.plan.graphs.degrees import DegreeCounts, DegreePlan
from treetop.plan.graphs.regional import RegionalPlan
from treetop.plan.graphs.unit import Choice, DegreeFacts, DegreeUnit
from treetop.plan.workload import CONFIDENCE
from treetop.privacy import Loss, Split


def rebuild_unit(card: Mapping[str, Any]) -> DegreeUnit:
    """Return the unit that a card describes, from what it says about the unit, the graph and what is measured."""
    return _unit(card["plan"], card["unit"])


def _unit(plan: Mapping[str, Any], unit: Mapping[str, Any]) -> DegreeUnit:
    graph, degrees = plan["graph"], plan["degrees"]
    policies = Policies(**{name: graph[name] for name in ("self_loops", "repeated", "unknown")})
    facts = DegreeFacts(
        graph["relation"], graph["directed"], graph.get("degree_bound"), policies, degrees.get("degree")
    )
    most = unit["contributions"] if facts.cut else None
    entity, population = unit["entity"], unit.get("population")
    return DegreeUnit(facts, unit["neighbours"], degrees["form"], degrees["largest"], entity, population, most)


def rebuild_plan(card: Mapping[str, Any], spine: Spine) -> DegreeCounts:
    """Return the plan that a card describes, of the whole graph or by region."""
    told = card["plan"]
    loss = told["loss"]
    shares = {level["name"]: Fraction(level["share"]) for level in told["levels"] if level["noise"] is not None}
    amounts: dict[str, Any] = {
        name: None if loss[name] is None else Fraction(loss[name]) for name in ("epsilon", "delta", "rho")
    }
    kind: type[DegreeCounts] = RegionalPlan if len(spine.attributes) > 1 else DegreePlan
    choices: dict[str, Any] = {}
    if (choice := told["degrees"].get("choice")) is not None:
        measured = choice["measured"]
        choices["choice"] = Choice(
            tuple(choice["candidates"]), Fraction(choice["share"]), None if measured is None else tuple(measured)
        )
    return kind(
        **choices,
        spine=spine,
        unit=_unit(told, told["unit"]),
        loss=Loss(**amounts, large_delta=loss.get("large_delta", False)),
        split="uniform" if len(set(shares.values())) <= 1 else Split(shares),
        repair="euclidean",
        unknown=told["unknown"],
        title=told["title"],
        confidence=told.get("confidence", CONFIDENCE),
    )
