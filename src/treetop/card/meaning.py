"""What a plan's loss means: as epsilon at a delta, for one record, for a unit, and for a person behind several."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from treetop.card.distributions import statements_of
from treetop.card.sentences import Sentence, paragraph, sentence
from treetop.card.statements import epsilon_beside_others, epsilon_of, epsilon_of_rho
from treetop.ledger import Balance, Entry, Ledger, Reservation
from treetop.plan.plan import Plan
from treetop.privacy import Sensitivity
from treetop.privacy.composition import Cells, gaussian_rho

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


# What was spent on the same data before, and what this release adds, as the ledger has it.

UNKNOWN_HASH = "0" * 64
"""Stands for the hash of a reservation that is not made yet."""


def expected_composition(ledger: Ledger, dataset: str, plan: Plan) -> dict[str, Any]:
    """Return what a release would state if it were reserved now; nothing is reserved."""
    earlier = ledger.entries(dataset)
    charged = ledger.budget.charge(plan.spent, plan.loss.currency)
    return _composition(ledger, dataset, charged, plan.cells, earlier, 1, UNKNOWN_HASH)


def reserved_composition(ledger: Ledger, reservation: Reservation) -> dict[str, Any]:
    """Return what a release states once its loss is reserved."""
    known = ledger.entries(reservation.dataset)
    earlier = tuple(entry for entry in known if entry.number < reservation.number)
    (own,) = (entry for entry in known if entry.number == reservation.number)
    return _composition(ledger, own.dataset, own.charged, own.cells, earlier, reservation.number, reservation.sha256)


def composed(composition: Mapping[str, Any] | None, plan: Plan) -> dict[str, Any]:
    """Say what was spent before, and what this release adds; None if no ledger was used."""
    return {**(composition or {"ledger": False}), "sentence": statement(composition, plan)}


def statement(composition: Mapping[str, Any] | None, plan: Plan) -> Sentence:
    """Say what adds up, and on what conditions the sum holds."""
    entity, conditions = plan.unit.entity, [condition.words for condition in plan.conditions]
    if composition is None:
        holds = [sentence("composition.by_hand_if", conditions=conditions)] if conditions else []
        return paragraph(sentence("composition.none", entity=entity), *holds)
    holds = [sentence("composition.if", conditions=conditions)] if conditions else []
    earlier = len(composition["earlier"])
    ledger = sentence("composition.ledger", dataset=composition["dataset"], earlier=earlier, entity=entity)
    return paragraph(ledger, _spent(composition), *holds)


def _spent(composition: Mapping[str, Any]) -> Sentence:
    """Say how much of the budget is spent: with known noise as epsilon, since that adds up better than its rho."""
    spent, budget = composition["spent_after"]["exact"], composition["budget"]["exact"]
    if "together" not in composition:
        return sentence("composition.spent", currency=composition["currency"], spent=spent, budget=budget)
    together = composition["together"]
    limit, delta = together["budget"]["exact"], together["delta"]["exact"]
    return sentence("composition.spent_together", epsilon=together["epsilon"], budget=limit, delta=delta, rho=spent)


def amount(value: Fraction) -> dict[str, Any]:
    """Write a number exactly, with the float nearest to it."""
    return {"exact": str(value), "value": float(value)}


def _composition(
    ledger: Ledger,
    dataset: str,
    charged: Fraction,
    cells: Cells | None,
    earlier: tuple[Entry, ...],
    number: int,
    sha256: str,
) -> dict[str, Any]:
    balance = Balance(dataset, ledger.budget, earlier)
    before = balance.spent
    return {
        "ledger": True,
        "dataset": dataset,
        "currency": "epsilon" if ledger.budget.currency == "pure" else "rho",
        "budget": amount(ledger.budget.amount),
        "spent_before": amount(before),
        "charged": amount(charged),
        "spent_after": amount(before + charged),
        "reservation": {"number": number, "sha256": sha256},
        "earlier": [_earlier(entry) for entry in earlier],
        **_together(balance, charged, cells),
    }


def _together(balance: Balance, charged: Fraction, cells: Cells | None) -> dict[str, Any]:
    """State what all releases come to by their noise, where the budget is epsilon and delta and some noise is known."""
    loss = balance.limit.loss
    spent = balance.with_one_more(charged, cells)
    if loss.epsilon is None or loss.delta is None or not spent.noise_is_known:
        return {}
    epsilon = balance.limit.epsilon_of(spent)
    amounts = {"gaussian": amount(spent.gaussian), "other": amount(spent.other)}
    return {"together": {"budget": amount(loss.epsilon), "delta": amount(loss.delta), "epsilon": epsilon, **amounts}}


def _earlier(entry: Entry) -> dict[str, Any]:
    known = None if entry.cells is None else gaussian_rho(entry.cells)
    return {
        "number": entry.number,
        "title": entry.title,
        "charged": amount(entry.charged),
        **({} if known is None else {"gaussian": amount(known)}),
        "state": entry.state,
        "plan_sha256": entry.plan_sha256,
        "card_sha256": entry.card_sha256,
    }
