"""What a plan's loss means: as epsilon at a delta, for one record, for a unit, and for a person behind several."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from treetop.card.distributions import statements_of
from treetop.card.sentences import Sentence, sentence
from treetop.card.statements import epsilon_beside_others, epsilon_of, epsilon_of_rho
from treetop.plan.plan import Plan
from treetop.privacy import Sensitivity

UNITS = (5, 10, 50)
"""How many protected units one person may stand behind, for the table of what the loss means."""

BOTH = 2
"""Units of two people who list each other, if one edge in one direction is protected."""

_PEOPLE = (
    *("person", "individual", "household", "family"),
    *("adult", "child", "citizen", "commuter", "customer", "employee", "inhabitant", "member", "passenger", "patient"),
    *("pensioner", "pupil", "resident", "respondent", "student", "traveller", "user", "visitor", "voter", "worker"),
)
_TRAVEL = ("trip", "journey", "commute")


def meaning(plan: Plan) -> list[dict[str, Any]]:
    """Return what the loss comes to for one record, for a unit, and for a person behind several units."""
    unit, statements = plan.unit, statements_of(plan)
    about = {"entity": unit.entity, "extent": statements.extent(unit)}
    rows = []
    if (piece := statements.piece(unit)) is not None:
        cost = _piece(plan)
        rows.append(means(piece, 1, None, cost, plan))
        if plan.accounting == "exact":  # which is about units; of a record, only its rho is known
            rows[-1]["epsilon"] = epsilon_of_rho(cost, plan)
    if plan.accounting == "exact":
        rows.append(means(sentence("who.unit_alone", **about), 1, 1, plan.spent, plan))
        rows.append(means(sentence("who.unit_beside", **about), 1, 1, plan.spent, plan))
        rows[-1]["epsilon"] = epsilon_beside_others(plan)
    else:
        rows.append(means(sentence("who.unit", **about), unit.contributions, 1, plan.spent, plan))
    if plan.graph is not None and plan.graph.directed and plan.graph.kind.mutual:
        both = sentence("who.both", entity=unit.entity)
        rows.append(means(both, BOTH, BOTH, (BOTH if plan.loss.definition == "pure" else BOTH**2) * plan.spent, plan))
    for units in UNITS:
        # Group privacy: k·epsilon when pure, k²·rho otherwise.
        factor = units if plan.loss.definition == "pure" else units**2
        rows.append(means(_several(plan, units), units * unit.contributions, units, factor * plan.spent, plan))
    return rows


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


def means(who: Sentence, records: int, units: int | None, amount: Fraction, plan: Plan) -> dict[str, Any]:
    """Return a row of the table: what an amount comes to, as rho and as epsilon."""
    rho = None if plan.loss.definition == "pure" else float(amount)
    return {"who": who, "records": records, "units": units, "rho": rho, "epsilon": epsilon_of(amount, plan)}


def _several(plan: Plan, units: int) -> Sentence:
    entity = plan.unit.entity
    if entity in _PEOPLE or plan.unit.enforced:
        return sentence("who.together", units=units, entity=entity)
    week = entity in _TRAVEL and units == 10
    return sentence("who.person_week" if week else "who.person", units=units, entity=entity)
