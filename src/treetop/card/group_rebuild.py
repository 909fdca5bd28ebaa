"""From a card of group sizes back to its plan."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from treetop.domain.spine import Spine
from treetop.plan.groups.planned import GroupTablePlan
from treetop.plan.groups.unit import GroupTableUnit, GroupUnit
from treetop.plan.workload import CONFIDENCE
from treetop.privacy import Loss, Split


def rebuild_unit(card: Mapping[str, Any]) -> GroupTableUnit:
    """Return the unit that a card describes, from what it says about the unit and the form that is measured."""
    told, groups = card["unit"], card["plan"]["groups"]
    unit = GroupUnit(told["entity"], told["event"], told["quantity"])
    return GroupTableUnit(unit, groups["form"], groups["largest"])


def rebuild_plan(card: Mapping[str, Any], spine: Spine) -> GroupTablePlan:
    """Return the plan that a card describes; the list of groups is known by its hash only."""
    told = card["plan"]
    unit, loss, groups = told["unit"], told["loss"], told["groups"]
    measured = {level["name"]: Fraction(level["share"]) for level in told["levels"] if level["noise"] is not None}
    amounts: dict[str, Any] = {
        name: None if loss[name] is None else Fraction(loss[name]) for name in ("epsilon", "delta", "rho")
    }
    protected = GroupUnit(unit["entity"], groups["event"], groups["quantity"])
    return GroupTablePlan(
        spine=spine,
        unit=GroupTableUnit(protected, groups["form"], groups["largest"], unit["id"], unit.get("population")),
        loss=Loss(**amounts, large_delta=loss.get("large_delta", False)),
        split="uniform" if len(set(measured.values())) <= 1 else Split(measured),
        repair="euclidean",
        title=told["title"],
        rows=groups["rows"],
        number=groups["number"],
        public=groups["public"],
        list_sha256=groups["list_sha256"],
        method="joint" if groups["mechanism"].endswith("r+dp") else "exact",
        confidence=told.get("confidence", CONFIDENCE),
    )
