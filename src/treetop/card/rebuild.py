"""From a card back to its plan, so that everything that the plan decides can be computed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from treetop.card import degree_rebuild as degrees
from treetop.card import group_rebuild as groups
from treetop.domain.constraints import PublicFacts
from treetop.domain.marginal import MARGIN, Margins, margins_of
from treetop.domain.spine import Spine
from treetop.plan.plan import Plan
from treetop.plan.resolution import Resolution
from treetop.plan.workload import CONFIDENCE, table_shares
from treetop.privacy import Loss, Split, Unit
from treetop.privacy.relation import GraphRules, GraphUnit


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


def rebuild_plan(card: Mapping[str, Any], spine: Spine, facts: PublicFacts | None = None) -> Plan:
    """Return the plan that a card describes, on the spine, and with the facts, that were read from its folder."""
    if "groups" in card["plan"]:
        return groups.rebuild_plan(card, spine)
    if "degrees" in card["plan"]:
        return degrees.rebuild_plan(card, spine)
    told = card["plan"]
    loss = told["loss"]
    levels = _shares(told["levels"])
    beside = _shares(told.get("margins", []))
    stated = levels | beside
    uniform = not stated or table_shares("uniform", list(levels), list(beside)) == stated
    return Plan(
        spine=spine,
        unit=_unit(told),
        loss=Loss(
            **{name: None if loss[name] is None else Fraction(loss[name]) for name in ("epsilon", "delta", "rho")},
            accounting=loss.get("accounting", "zcdp"),
            noise=loss.get("noise"),
            large_delta=loss.get("large_delta", False),
        ),
        split="uniform" if uniform else Split(stated),
        repair=told["repair"],
        order=told["order"],
        unknown=told["unknown"],
        title=told["title"],
        resolve=_resolution(told["resolve"]) if "resolve" in told else "full",
        confidence=told.get("confidence", CONFIDENCE),
        margins=_margins(spine, [name.removeprefix(MARGIN) for name in beside], facts),
        facts=facts or {},
    )


def _resolution(told: Mapping[str, str]) -> Resolution:
    return Resolution(**{name: Fraction(text) for name, text in told.items() if name != "edition"})


def _shares(tables: Sequence[Mapping[str, Any]]) -> dict[str, Fraction]:
    """Return the share of every table that was measured."""
    return {table["name"]: Fraction(table["share"]) for table in tables if table["noise"] is not None}


def _margins(spine: Spine, names: list[str], facts: PublicFacts | None) -> Margins:
    """Return what a plan says of its margins, in one word where there is one."""
    if not names:
        return "none"
    every = [one.name for one in margins_of(spine, "each") if facts is None or not facts.decides(one.depths)]
    return "each" if every == names else names


def _unit(told: Mapping[str, Any]) -> Unit:
    unit = Unit(**told["unit"])
    if "graph" not in told:
        return unit
    return GraphUnit(unit, GraphRules.of(told["graph"]))
