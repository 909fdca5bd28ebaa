"""The card: a release's statement of its guarantee, method and accuracy, as data and sentences by identifier."""

from __future__ import annotations

from typing import Any

from treetop.card.content import draft_card, of_plan
from treetop.card.run_info import RunInfo
from treetop.card.schema import FORMAT, validate
from treetop.card.sentences import in_words, render
from treetop.plan.plan import Plan

__all__ = ["FORMAT", "RunInfo", "describe_release", "draft_card", "in_words", "render", "validate"]


def describe_release(plan: Plan, info: RunInfo) -> dict[str, Any]:
    """Return the card of a release of `plan`, all but its files; refuse one that lacks a required field."""
    card = draft_card(plan, info)
    validate(card, draft=True, checked=of_plan(plan).keys())
    return card
