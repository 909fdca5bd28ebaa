"""What was spent on the same data before, and what this release adds, as the ledger has it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from treetop.basics.exact import plain
from treetop.card.meaning import plural
from treetop.ledger import Entry, Ledger, Reservation
from treetop.plan.plan import PurePlan

UNKNOWN_HASH = "0" * 64
"""Stands for the hash of a reservation that is not made yet."""


def expected_composition(ledger: Ledger, dataset: str, plan: PurePlan) -> dict[str, Any]:
    """Return what a release would state if it were reserved now; nothing is reserved."""
    earlier = ledger.entries(dataset)
    charged = ledger.budget.charge(plan.spent, plan.loss.currency)
    return _composition(ledger, dataset, charged, earlier, 1, UNKNOWN_HASH)


def reserved_composition(ledger: Ledger, reservation: Reservation) -> dict[str, Any]:
    """Return what a release states once its loss is reserved."""
    earlier = tuple(entry for entry in ledger.entries(reservation.dataset) if entry.number < reservation.number)
    return _composition(
        ledger, reservation.dataset, reservation.charged, earlier, reservation.number, reservation.sha256
    )


def sentence(composition: Mapping[str, Any] | None, entity: str) -> str:
    """Say what adds up."""
    if composition is None:
        return (
            "No ledger recorded this release: its loss has to be added by hand to that of every other release about "
            f"the same {plural(entity)}."
        )
    earlier = len(composition["earlier"])
    before = "no earlier release" if earlier == 0 else f"{earlier} earlier release{'s' * (earlier > 1)}"
    spent, budget = composition["spent_after"]["exact"], composition["budget"]["exact"]
    return (
        f"The ledger knows {before} of the data set “{composition['dataset']}”, in which one {entity} is protected, "
        "always within the limits that this card states: losses for one and the same unit add up, and for different "
        f"units they do not. With this one, {composition['currency']} {plain(Fraction(spent))} of a budget of "
        f"{plain(Fraction(budget))} is spent."
    )


def amount(value: Fraction) -> dict[str, Any]:
    """Write a number exactly, with the float nearest to it."""
    return {"exact": str(value), "value": float(value)}


def _composition(
    ledger: Ledger, dataset: str, charged: Fraction, earlier: tuple[Entry, ...], number: int, sha256: str
) -> dict[str, Any]:
    before = sum((entry.charged for entry in earlier), Fraction(0))
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
    }


def _earlier(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "title": entry.title,
        "charged": amount(entry.charged),
        "state": entry.state,
        "plan_sha256": entry.plan_sha256,
        "card_sha256": entry.card_sha256,
    }
