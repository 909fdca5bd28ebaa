"""What cards of the first format say otherwise, which version 0.2.0 wrote: they are held to their own words.

Whatever a later format says in other words, or says first, is put back here; only then is a card of that format
compared, word for word, with what its plan gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from treetop.card import words
from treetop.card.meaning import means
from treetop.plan import Plan
from treetop.privacy import Unit

VERSIONS = ("0.2.0",)
"""The versions that wrote it in these words; what others wrote, nobody can hold them to."""


def as_first_format(card: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """Return a card, all but its files, as the first format puts it."""
    told = {**card, "treetop": 1, "caveats": [one for one in card["caveats"] if one not in words.reckless(plan)]}
    told["meaning"] = _meaning(card["meaning"], plan)
    if "coverage" in card["accuracy"]:
        told["accuracy"] = {**card["accuracy"], "coverage": _coverage(card["accuracy"]["coverage"])}
    return told


def _meaning(rows: list[dict[str, Any]], plan: Plan) -> list[dict[str, Any]]:
    """Say of one record what was said then: nothing where a unit has one, otherwise as if no record displaced any."""
    others = [row for row in rows if row["units"] is not None]
    if plan.unit.contributions == 1:
        return others
    record = Unit(plan.unit.entity, contributions=1, neighbours=plan.unit.neighbours)
    spent = Fraction(0)
    for level in plan.levels:
        one, all_ = record.sensitivity(level.name), plan.unit.sensitivity(level.name)
        pure = plan.loss.definition == "pure"
        spent += level.cost * (Fraction(one.l1, all_.l1) if pure else Fraction(one.l2_squared, all_.l2_squared))
    return [means("one record", 1, None, spent, plan), *others]


def _coverage(said: Mapping[str, Any]) -> dict[str, Any]:
    """Say how often intervals held without the number of those that did."""
    if "twin" not in said:
        return dict(said)
    covered = sum(level["covered"] for level in said["twin"])
    return {**said, "sentence": said["sentence"].replace(words.held(covered), "", 1)}
