"""What a card says about public facts: what is known of which table, and what is not protected because of it."""

from __future__ import annotations

from typing import Any

from treetop.basics.wording import with_article
from treetop.domain.fact import INVARIANT
from treetop.domain.facts import TableFact
from treetop.domain.margin import title_of
from treetop.plan.facts import compared, kept_exactly
from treetop.plan.plan import PurePlan

_STATES = {
    "exact": "the counts, which are public, are released as they are and not measured",
    "at_least": "counts are not below what is public",
    "at_most": "counts are not above what is public",
    "possible": "only cells that are possible, by what is public, are measured and can have counts",
    "impossible": "cells that are impossible, by what is public, are not measured and have no counts",
    INVARIANT: "the counts are those of the private table, told as they are: they are not protected",
}


def facts(plan: PurePlan) -> list[dict[str, Any]]:
    """Return what is known of each table, with a sentence."""
    return [fact.describe() | {"sentence": _sentence(plan, fact)} for fact in plan.public_facts]


def _sentence(plan: PurePlan, fact: TableFact) -> str:
    said = "; ".join(_STATES[kind] for kind in fact.kinds)
    unchecked = "; the private table is not compared with it" if fact.unchecked else ""
    return f"{_title(plan, fact)}: {said}{unchecked}."


def _title(plan: PurePlan, fact: TableFact) -> str:
    return title_of(plan.spine, fact.table.depths)


def before_a_release(plan: PurePlan) -> list[str]:
    """Say what facts will do, and what that means for a person, before private data is read."""
    if not plan.public_facts:
        return []
    told = [row["sentence"] for row in facts(plan)]
    told += [
        f"What this means for one {plan.unit.entity}: {_meaning(plan, fact)}"
        for fact in plan.public_facts
        if INVARIANT in fact.kinds
    ]
    if _is_checked(plan):
        told.append(
            "The private table is compared with the public facts before anything is charged. One that contradicts "
            "them is refused, and who learns of the refusal learns that they disagree."
        )
    return told


def _meaning(plan: PurePlan, fact: TableFact) -> str:
    """Say what is not protected where counts are told as they are."""
    entity, title = plan.unit.entity, _title(plan, fact)
    return (
        f"The true counts by {title} are published as they are. Someone who knows all others there learns whether one "
        f"more {entity} is there. What is protected is everything else about {with_article(entity)} whose {title} is "
        "taken for known."
    )


def _is_checked(plan: PurePlan) -> bool:
    return any(map(compared, plan.public_facts))


def told_exactly(plan: PurePlan) -> list[str]:
    """Say what a release tells without noise because of facts."""
    told = []
    for fact in plan.public_facts:
        if INVARIANT in fact.kinds:
            told.append(f"the true counts by {_title(plan, fact)}, and what they add up to: they are not protected")
        elif "exact" in fact.kinds:
            told.append(f"the counts by {_title(plan, fact)}, which were public before")
    return told


def agreeing(plan: PurePlan) -> str:
    """Say which neighbours are left where counts are told as they are, or tables are compared; empty where all are."""
    same = [_title(plan, fact) for fact in plan.public_facts if INVARIANT in fact.kinds]
    told = f" Only tables with the same counts by {' and by '.join(same)} are neighbours." if same else ""
    agreed = [_title(plan, fact) for fact in plan.public_facts if compared(fact)]
    if agreed:
        told += f" Only tables that agree with what is public of {', '.join(agreed)} are neighbours."
    return told


def caveats(plan: PurePlan) -> list[str]:
    """Say what facts leave unprotected, and what rests on their being true."""
    told = [_meaning(plan, fact) for fact in plan.public_facts if INVARIANT in fact.kinds]
    if any(INVARIANT not in fact.kinds for fact in plan.public_facts):
        told.append(
            "Intervals leave out what public facts rule out: they hold as stated where these facts are true of the "
            "table."
        )
    if _is_checked(plan):
        told.append(
            "The private table agreed with the public facts: without that there would be no release. That it did is "
            "told without noise."
        )
    return told


def post_processing(plan: PurePlan) -> list[str]:
    """Say how facts were kept."""
    if not plan.public_facts:
        return []
    told = [
        "Children were repaired within what is public of them: what they have at least and at most. Impossible "
        "children were no children."
    ]
    agrees = kept_exactly(plan.spine, plan.public_facts, plan.margin_tables)
    every = zip(plan.margin_tables, agrees, strict=True)
    if nearly := [title_of(plan.spine, margin.depths) for margin, exact in every if not exact]:
        told.append(
            f"Facts about single cells may leave no counts that agree with every margin: {', '.join(nearly)} are kept "
            "as nearly as the facts allow. How far the counts are off what was measured of them is stated."
        )
    return told
