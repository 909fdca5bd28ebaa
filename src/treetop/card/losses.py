"""What a plan's loss is as epsilon at a delta: of the release alone, and beside others."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from treetop.plan.plan import Plan
from treetop.privacy import epsilon_from_rho
from treetop.privacy.loss import COMPARED_AT


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
    return epsilon_of_rho(plan.spent, plan)


def epsilon_of_rho(rho: Fraction, plan: Plan) -> float:
    """Return the epsilon of a rho, at the plan's delta or the one for comparison."""
    return 0.0 if rho == 0 else epsilon_from_rho(rho, plan.loss.delta or COMPARED_AT)
