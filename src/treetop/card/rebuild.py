"""From a card back to its plan, so that everything that the plan decides can be computed again."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from treetop.plan import Plan
from treetop.privacy import Loss, Split, Unit
from treetop.spine import Spine


def rebuild_plan(card: Mapping[str, Any], spine: Spine) -> Plan:
    """Return the plan that a card describes, on the spine that was read from its folder."""
    told = card["plan"]
    unit, loss = told["unit"], told["loss"]
    measured = {level["name"]: Fraction(level["share"]) for level in told["levels"] if level["noise"] is not None}
    uniform = len(set(measured.values())) <= 1
    return Plan(
        spine=spine,
        unit=Unit(unit["entity"], unit["contributions"], unit["neighbours"], unit["id"], unit["per_node"]),
        loss=Loss(
            **{name: None if loss[name] is None else Fraction(loss[name]) for name in ("epsilon", "delta", "rho")},
            accounting=loss.get("accounting", "zcdp"),
        ),
        split="uniform" if uniform else Split(measured),
        repair=told["repair"],
        order=told["order"],
        unknown=told["unknown"],
        title=told["title"],
    )
