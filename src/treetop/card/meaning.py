"""What a plan's loss means: as epsilon at a delta, for one record, for a unit, and for a person behind several."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any

from treetop.card.known import told_exactly
from treetop.plan.plan import PurePlan
from treetop.privacy import Sensitivity, epsilon_from_rho
from treetop.privacy.loss import COMPARED_AT

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


def loss_summary(plan: PurePlan) -> dict[str, Any]:
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


def meaning(plan: PurePlan) -> list[dict[str, Any]]:
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


def exact(plan: PurePlan) -> list[str]:
    """Return what a release tells without noise."""
    told = [*told_exactly(plan), *PUBLIC]
    if plan.levels[0].is_exact and not plan.public_facts.decides((0,) * len(plan.spine.trees)):
        told.insert(0, plan.unit.exact_total)
    return told


def epsilon_of(amount: Fraction, plan: PurePlan) -> float:
    """Return the epsilon of a cost, at the plan's delta or, where it has none, at the one for comparison."""
    loss = plan.loss
    if amount == 0 or loss.definition == "pure":
        return float(amount)
    if amount == plan.budget and loss.epsilon is not None:
        return float(loss.epsilon)
    return epsilon_from_rho(amount, loss.delta or COMPARED_AT)


def epsilon_beside_others(plan: PurePlan) -> float:
    """Return the epsilon of the plan's rho, which is what adds up with other releases."""
    return _epsilon_of_rho(plan.spent, plan)


def _epsilon_of_rho(rho: Fraction, plan: PurePlan) -> float:
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


def _piece(plan: PurePlan) -> Fraction:
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


def _part(plan: PurePlan, way: Sensitivity, level: str) -> Fraction:
    """How much of what a level costs a unit it costs what moves the counts only so far."""
    whole = plan.unit.sensitivity(level)
    if plan.loss.definition == "pure":
        return Fraction(way.l1, whole.l1)
    return Fraction(way.l2_squared, whole.l2_squared)


def means(who: str, records: int, units: int | None, amount: Fraction, plan: PurePlan) -> dict[str, Any]:
    """Return a row of the table: what an amount comes to, as rho and as epsilon."""
    rho = None if plan.loss.definition == "pure" else float(amount)
    return {"who": who, "records": records, "units": units, "rho": rho, "epsilon": epsilon_of(amount, plan)}


def _several(plan: PurePlan, units: int) -> str:
    entity = plan.unit.entity
    if entity in _PEOPLE or plan.unit.enforced:
        return f"{units} {plural(entity)} together"
    week = " (a week there and back)" if entity in _TRAVEL and units == 10 else ""
    return f"a person with {units} such {plural(entity)}{week}"
