"""The smallest epsilon at which an error is accepted: the plan stays as it is, its split too, and only the loss moves.

A target (`targets`) may also divide the loss anew, so that more of it goes where it is needed. Here one number moves
another, for whoever turns a knob and wants to see what becomes of all the rest.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from treetop.basics.exact import Number, positive
from treetop.errors import LossError
from treetop.plan.plan import PurePlan
from treetop.privacy.loss import Loss

LEAST, MOST = Fraction(1, 1000), Fraction(100)
"""Between these epsilons one is looked for."""
_DIGITS = 3
_STEPS = 40


def at_epsilon(plan: PurePlan, epsilon: Number) -> PurePlan:
    """Return the plan with another epsilon; its delta, and how it is kept, stay."""
    if plan.loss.epsilon is None:
        raise LossError("the plan states its loss as rho: state epsilon and delta to choose an epsilon")
    loss = plan.loss
    meant = loss.large_delta and loss.delta is not None
    made = Loss(epsilon=epsilon, delta=loss.delta, accounting=loss.accounting, noise=loss.noise, large_delta=meant)
    return replace(plan, loss=made)


def margin_of(plan: PurePlan, table: str, confidence: float = 0.95) -> int:
    """Return how far one count of a level or margin may be off, by its name."""
    for row in plan.accuracy(confidence).rows:
        if row.name == table:
            return row.margin
    raise LossError(f"the plan has no table {table!r}: name a level or a margin of it")


def epsilon_for(plan: PurePlan, table: str, error: int, confidence: float = 0.95) -> Fraction:
    """Return the smallest epsilon, to three digits, at which the counts of a table are off by at most an error."""
    if error < 1:
        raise LossError(f"the error is {error}: accept 1 or more, since an exact count protects nobody")
    now = plan.loss.epsilon or Fraction(1)
    if margin_of(plan, table, confidence) == 0:
        raise LossError(f"{table} is told without noise, or follows from other tables: choose another one")

    def met(epsilon: Fraction) -> bool:
        return margin_of(at_epsilon(plan, epsilon), table, confidence) <= error

    # Noise is about inversely proportional to epsilon: so the first guess is near.
    guess = _short(min(max(now * margin_of(plan, table, confidence) / error, LEAST), MOST))
    if met(guess):
        while guess > LEAST and met(lower := _short(guess * Fraction(97, 100))):
            guess = lower
        low, high = guess * Fraction(97, 100), guess
    else:
        low = guess
        for _ in range(_STEPS):
            if met(high := _short(low * Fraction(103, 100))):
                break
            if high > MOST:
                raise LossError(f"no epsilon below {MOST} makes {table} that accurate: accept a larger error")
            low = high
    for _ in range(_STEPS):
        middle = _short((low + high) / 2)
        if not low < middle < high:
            break
        low, high = (low, middle) if met(middle) else (middle, high)
    return positive(high, "epsilon")


def _short(value: Fraction) -> Fraction:
    """Round up to three digits."""
    context = Context(prec=_DIGITS, rounding=ROUND_CEILING)
    return Fraction(context.divide(Decimal(value.numerator), Decimal(value.denominator)))
