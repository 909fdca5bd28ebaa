"""The card: a release's statement of its guarantee, method and accuracy, and checking a release against it."""

from __future__ import annotations

from typing import Any

from treetop.card.content import draft_card, of_plan
from treetop.card.schema import FORMAT, Facts, validate
from treetop.plan.plan import Plan

__all__ = ["FORMAT", "Facts", "describe_release", "draft_card", "validate"]


def describe_release(plan: Plan, facts: Facts) -> dict[str, Any]:
    """Return the card of a release of `plan`, all but its files; refuse one that lacks a required field."""
    card = draft_card(plan, facts)
    validate(card, draft=True, checked=of_plan(plan).keys())
    return card
