"""From a card back to its plan, so that everything that the plan decides can be computed again."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from treetop.card.degrees import rebuild as degrees
from treetop.card.groups import rebuild as groups
from treetop.domain.graph_unit import Facts, GraphUnit
from treetop.domain.spine import Spine
from treetop.plan.accuracy import CONFIDENCE
from treetop.plan.plan import PurePlan
from treetop.plan.resolution import Resolution
from treetop.privacy import Loss, Split, Unit


def rebuild_unit(card: Mapping[str, Any]) -> Unit:
    """Return the unit that a card describes, as far as its sensitivities need it."""
    if "groups" in card["plan"]:
        return groups.rebuild_unit(card)
    if "degrees" in card["plan"]:
        return degrees.rebuild_unit(card)
    told = card["unit"]
    missing = card["plan"]["unit"].get("may_be_missing", False)
    return Unit(
        told["entity"], told["contributions"], told["neighbours"], per_node=told["per_node"], may_be_missing=missing
    )


def rebuild_plan(card: Mapping[str, Any], spine: Spine) -> PurePlan:
    """Return the plan that a card describes, on the spine that was read from its folder."""
    if "groups" in card["plan"]:
        return groups.rebuild_plan(card, spine)
    if "degrees" in card["plan"]:
        return degrees.rebuild_plan(card, spine)
    told = card["plan"]
    loss = told["loss"]
    measured = {level["name"]: Fraction(level["share"]) for level in told["levels"] if level["noise"] is not None}
    uniform = len(set(measured.values())) <= 1
    return PurePlan(
        spine=spine,
        unit=_unit(told),
        loss=Loss(
            **{name: None if loss[name] is None else Fraction(loss[name]) for name in ("epsilon", "delta", "rho")},
            accounting=loss.get("accounting", "zcdp"),
            noise=loss.get("noise"),
            large_delta=loss.get("large_delta", False),
        ),
        split="uniform" if uniform else Split(measured),
        repair=told["repair"],
        order=told["order"],
        unknown=told["unknown"],
        title=told["title"],
        resolve=_resolution(told["resolve"]) if "resolve" in told else "full",
        confidence=told.get("confidence", CONFIDENCE),
    )


def _resolution(told: Mapping[str, str]) -> Resolution:
    stated = {name: Fraction(text) for name, text in told.items() if name != "edition"}
    return Resolution(**stated, edition=int(told.get("edition", 1)))


def _unit(told: Mapping[str, Any]) -> Unit:
    unit = Unit(**told["unit"])
    if "graph" not in told:
        return unit
    return GraphUnit(unit, Facts.of(told["graph"]))
