"""From a card back to its plan, so that everything that the plan decides can be computed again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

from treetop.domain.spine import Spine
from treetop.plan.plan import CONFIDENCE, Plan
from treetop.privacy import Loss, Split, Unit

if TYPE_CHECKING:
    from treetop.release.release import Release

KINDS = {"groups": "treetop.card.groups.rebuild"}
"""By the part of a plan that only one kind has: the module that makes such plans of cards, and checks them."""


def rebuild_unit(card: Mapping[str, Any]) -> Unit:
    """Return the unit that a card describes, as far as its sensitivities need it."""
    if (kind := _kind(card)) is not None:
        unit: Unit = kind.rebuild_unit(card)
        return unit
    told = card["unit"]
    missing = card["plan"]["unit"].get("may_be_missing", False)
    return Unit(
        told["entity"], told["contributions"], told["neighbours"], per_node=told["per_node"], may_be_missing=missing
    )


def rebuild_plan(card: Mapping[str, Any], spine: Spine) -> Plan:
    """Return the plan that a card describes, on the spine that was read from its folder."""
    if (kind := _kind(card)) is not None:
        plan: Plan = kind.rebuild_plan(card, spine)
        return plan
    told = card["plan"]
    loss = told["loss"]
    measured = {level["name"]: Fraction(level["share"]) for level in told["levels"] if level["noise"] is not None}
    uniform = len(set(measured.values())) <= 1
    return Plan(
        spine=spine,
        unit=_unit(told),
        loss=Loss(
            **{name: None if loss[name] is None else Fraction(loss[name]) for name in ("epsilon", "delta", "rho")},
            accounting=loss.get("accounting", "zcdp"),
            large_delta=loss.get("large_delta", False),
        ),
        split="uniform" if uniform else Split(measured),
        repair=told["repair"],
        order=told["order"],
        unknown=told["unknown"],
        title=told["title"],
        resolve={name: Fraction(text) for name, text in told["resolve"].items()} if "resolve" in told else "full",
        confidence=told.get("confidence", CONFIDENCE),
    )


def _unit(told: Mapping[str, Any]) -> Unit:
    unit = Unit(**told["unit"])
    if "graph" not in told:
        return unit
    from treetop.domain.graph_unit import Facts, GraphUnit

    return GraphUnit(unit, Facts.of(told["graph"]))


def check_kind(card: Mapping[str, Any], release: Release) -> Iterator[str]:
    """Yield what is wrong with a release that only this kind of plan promises."""
    kind = _kind(card)
    if kind is not None:
        yield from kind.check(card, release)


def promise(card: Mapping[str, Any]) -> str | None:
    """Return what `check_kind` checks, in words; None where the kind promises nothing of its own."""
    kind = _kind(card)
    return None if kind is None else kind.promise(card)


def _kind(card: Mapping[str, Any]) -> Any:
    return next((import_module(module) for part, module in KINDS.items() if part in card["plan"]), None)
