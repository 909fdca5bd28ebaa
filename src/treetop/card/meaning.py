"""What a plan's loss means: as epsilon at a delta, for one record, for a unit, and for a person behind several."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any

from treetop._util.choices import with_article
from treetop.domain.constraints import INVARIANT, TableFact
from treetop.domain.marginal import title_of
from treetop.plan.constraints_kept import compared, kept_exactly
from treetop.plan.plan import Plan
from treetop.privacy import Sensitivity, epsilon_from_rho
from treetop.privacy.loss import COMPARED_AT

# What a card says about public facts: what is known of which table, and what is not protected because of it.

_STATES = {
    "exact": "the counts, which are public, are released as they are and not measured",
    "at_least": "counts are not below what is public",
    "at_most": "counts are not above what is public",
    "possible": "only cells that are possible, by what is public, are measured and can have counts",
    "impossible": "cells that are impossible, by what is public, are not measured and have no counts",
    INVARIANT: "the counts are those of the private table, told as they are: they are not protected",
}


def facts(plan: Plan) -> list[dict[str, Any]]:
    """Return what is known of each table, with a sentence."""
    return [fact.describe() | {"sentence": _sentence(plan, fact)} for fact in plan.public_facts]


def _sentence(plan: Plan, fact: TableFact) -> str:
    said = "; ".join(_STATES[kind] for kind in fact.kinds)
    unchecked = "; the private table is not compared with it" if fact.unchecked else ""
    return f"{_title(plan, fact)}: {said}{unchecked}."


def _title(plan: Plan, fact: TableFact) -> str:
    return title_of(plan.spine, fact.table.depths)


def before_a_release(plan: Plan) -> list[str]:
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


def _meaning(plan: Plan, fact: TableFact) -> str:
    """Say what is not protected where counts are told as they are."""
    entity, title = plan.unit.entity, _title(plan, fact)
    return (
        f"The true counts by {title} are published as they are. Someone who knows all others there learns whether one "
        f"more {entity} is there. What is protected is everything else about {with_article(entity)} whose {title} is "
        "taken for known."
    )


def _is_checked(plan: Plan) -> bool:
    return any(map(compared, plan.public_facts))


def told_exactly(plan: Plan) -> list[str]:
    """Say what a release tells without noise because of facts."""
    told = []
    for fact in plan.public_facts:
        if INVARIANT in fact.kinds:
            told.append(f"the true counts by {_title(plan, fact)}, and what they add up to: they are not protected")
        elif "exact" in fact.kinds:
            told.append(f"the counts by {_title(plan, fact)}, which were public before")
    return told


def agreeing(plan: Plan) -> str:
    """Say which neighbours are left where counts are told as they are, or tables are compared; empty where all are."""
    same = [_title(plan, fact) for fact in plan.public_facts if INVARIANT in fact.kinds]
    told = f" Only tables with the same counts by {' and by '.join(same)} are neighbours." if same else ""
    agreed = [_title(plan, fact) for fact in plan.public_facts if compared(fact)]
    if agreed:
        told += f" Only tables that agree with what is public of {', '.join(agreed)} are neighbours."
    return told


def caveats(plan: Plan) -> list[str]:
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


def post_processing(plan: Plan) -> list[str]:
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


PUBLIC = (
    "the hierarchies: their levels, codes and parents are public, and published as they are",
    "the plan itself: the unit, the loss and the noise of every level",
)
"""What every release tells without noise."""

UNITS = (5, 10, 50)
"""How many protected units one person may stand behind, for the table of what the loss means."""

BOTH = 2
"""Units of two people who list each other, where one edge in one direction is protected."""

CONVERSION = (
    "The tight conversion of zero-concentrated differential privacy: the least epsilon over a > 1 of "
    "a·rho + (ln(1/delta) − ln a)/(a − 1) + ln(1 − 1/a), rounded up "
    "(Canonne, Kamath and Steinke 2020, Proposition 12)."
)

EXACT = (
    "By exact accounting: the law of the privacy loss of all levels together, from the discrete Gaussian noise of each "
    "count that one unit can move, with all rounding upwards. This holds for the release alone. Beside other "
    "releases, and for several units, it counts as its rho; the epsilon of that is the least over a > 1 of "
    "a·rho + (ln(1/delta) − ln a)/(a − 1) + ln(1 − 1/a), rounded up (Canonne, Kamath and Steinke 2020, Proposition 12)."
)

HUGE = math.log(1e6)
"""From this epsilon on, odds move by more than a million."""

_PEOPLE = (
    *("person", "individual", "household", "family"),
    *("adult", "child", "citizen", "commuter", "customer", "employee", "inhabitant", "member", "passenger", "patient"),
    *("pensioner", "pupil", "resident", "respondent", "student", "traveller", "user", "visitor", "voter", "worker"),
)
_TRAVEL = ("trip", "journey", "commute")


def loss_summary(plan: Plan) -> dict[str, Any]:
    """Return what a release costs, as rho and as epsilon at a delta.

    With exact accounting, `epsilon`, which is also `epsilon_alone`, is that of the release by itself, and
    `epsilon_by_rho` what its rho comes to where no more is known of it.
    """
    loss = plan.loss
    pure = loss.definition == "pure"
    delta = None if pure else loss.delta or COMPARED_AT
    summary = {
        "definition": loss.definition,
        "rho": None if pure else float(plan.spent),
        "epsilon": epsilon_of(plan.spent, plan),
        "delta": None if delta is None else float(delta),
        "delta_is_stated": loss.delta is not None,
        "spent": str(plan.spent),
    }
    if plan.accounting == "exact":
        beside = epsilon_beside_others(plan)
        summary |= {"epsilon_alone": summary["epsilon"], "epsilon_by_rho": beside, "accounting": "exact"}
    return summary


def meaning(plan: Plan) -> list[dict[str, Any]]:
    """Return what the loss comes to for one record, for a unit, and for a person behind several units."""
    unit = plan.unit
    rows = []
    if unit.piece is not None:
        cost = _piece(plan)
        rows.append(means(unit.piece, 1, None, cost, plan))
        if plan.accounting == "exact":  # which is about units; of a record, only its rho is known
            rows[-1]["epsilon"] = _epsilon_of_rho(cost, plan)
    who = f"one {unit.entity} ({unit.extent})"
    if plan.accounting == "exact":
        rows.append(means(f"{who}, this release alone (exact accounting)", 1, 1, plan.spent, plan))
        rows.append(means(f"{who}, beside other releases", 1, 1, plan.spent, plan))
        rows[-1]["epsilon"] = epsilon_beside_others(plan)
    else:
        rows.append(means(who, unit.contributions, 1, plan.spent, plan))
    if plan.graph is not None and plan.graph.directed and plan.graph.kind.mutual:
        both = f"one {unit.entity} in both directions (two edges)"
        rows.append(means(both, BOTH, BOTH, (BOTH if plan.loss.definition == "pure" else BOTH**2) * plan.spent, plan))
    for units in UNITS:
        # Group privacy: k·epsilon when pure, k²·rho otherwise.
        factor = units if plan.loss.definition == "pure" else units**2
        rows.append(means(_several(plan, units), units * unit.contributions, units, factor * plan.spent, plan))
    return rows


def exact(plan: Plan) -> list[str]:
    """Return what a release tells without noise."""
    told = [*told_exactly(plan), *PUBLIC]
    if plan.levels[0].is_exact and not plan.public_facts.decides((0,) * len(plan.spine.trees)):
        told.insert(0, plan.unit.exact_total)
    return told


def epsilon_of(amount: Fraction, plan: Plan) -> float:
    """Return the epsilon of a cost, at the plan's delta or, where it has none, at the one for comparison."""
    loss = plan.loss
    if amount == 0 or loss.definition == "pure":
        return float(amount)
    if amount == plan.budget and loss.epsilon is not None:
        return float(loss.epsilon)
    return epsilon_from_rho(amount, loss.delta or COMPARED_AT)


def epsilon_beside_others(plan: Plan) -> float:
    """Return the epsilon of the plan's rho, which is what adds up with other releases."""
    return _epsilon_of_rho(plan.spent, plan)


def _epsilon_of_rho(rho: Fraction, plan: Plan) -> float:
    return 0.0 if rho == 0 else epsilon_from_rho(rho, plan.loss.delta or COMPARED_AT)


def plural(noun: str) -> str:
    """Return the plural of an English noun.

    >>> plural("trip"), plural("journey"), plural("family"), plural("box")
    ('trips', 'journeys', 'families', 'boxes')
    """
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def say_epsilon(epsilon: float) -> str:
    """Write an epsilon with three digits, rounded up: a loss is never understated.

    >>> say_epsilon(1.0), say_epsilon(2.7142)
    ('1', '2.72')
    """
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(repr(epsilon))):.3g}"


def say_odds(epsilon: float) -> str:
    """Write the factor by which an epsilon can move anyone's odds, rounded up.

    >>> say_odds(1.0), say_odds(50.0)
    ('× 2.72', 'over a million')
    """
    if epsilon > HUGE:
        return "over a million"
    factor = math.exp(epsilon)
    return f"× {math.ceil(factor * 100) / 100:.2f}" if factor < 10 else f"× {math.ceil(factor):,}"


def _piece(plan: Plan) -> Fraction:
    """What the noise costs one piece of a unit, such as a record: at most as much as the costliest way to move counts.

    Of a unit with n ≥ m records, one more is kept with chance m/(n + 1), in the place of one of the m that were kept.
    What is released is then a mixture of releases, over which records are kept, and so is what was released without it;
    pair by pair they are of the same counts, or of counts in which one record was exchanged for another. The loss of a
    mixture is at most the largest of its pairs: that of pure losses and of hockey sticks because these are convex, that
    of rho because Rényi divergences are jointly quasi-convex (van Erven and Harremoës 2014, Theorem 13).
    """
    ways = plan.unit.piece_sensitivities
    parts = [[part.cost * _part(plan, way, part.name) for way in ways(part.name)] for part in plan.workload]
    return max((sum(costs, Fraction(0)) for costs in zip(*parts, strict=True)), default=Fraction(0))


def _part(plan: Plan, way: Sensitivity, level: str) -> Fraction:
    """How much of what a level costs a unit it costs what moves the counts only so far."""
    whole = plan.unit.sensitivity(level)
    if plan.loss.definition == "pure":
        return Fraction(way.l1, whole.l1)
    return Fraction(way.l2_squared, whole.l2_squared)


def means(who: str, records: int, units: int | None, amount: Fraction, plan: Plan) -> dict[str, Any]:
    """Return a row of the table: what an amount comes to, as rho and as epsilon."""
    rho = None if plan.loss.definition == "pure" else float(amount)
    return {"who": who, "records": records, "units": units, "rho": rho, "epsilon": epsilon_of(amount, plan)}


def _several(plan: Plan, units: int) -> str:
    entity = plan.unit.entity
    if entity in _PEOPLE or plan.unit.enforced:
        return f"{units} {plural(entity)} together"
    week = " (a week there and back)" if entity in _TRAVEL and units == 10 else ""
    return f"a person with {units} such {plural(entity)}{week}"
