"""What was spent on the same data before, and what this release adds, as the ledger has it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from treetop.card.sentences import Sentence, paragraph, sentence
from treetop.ledger import Balance, Entry, Ledger, Reservation
from treetop.plan.plan import Plan
from treetop.privacy.composition import Cells, gaussian_rho

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
    return {
        "together": {
            "budget": amount(loss.epsilon),
            "delta": amount(loss.delta),
            "epsilon": balance.limit.epsilon_of(spent),
            "gaussian": amount(spent.gaussian),
            "other": amount(spent.other),
        }
    }


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
