"""The budget of a data set: what a release is charged against it, and how an amount of it is said."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from treetop.basics.exact import plain, positive
from treetop.errors import LedgerError, LossError, Overspent
from treetop.privacy.accounting import epsilon_from_rho
from treetop.privacy.loss import Currency, Loss

_LONGEST = 10**200


@dataclass(frozen=True)
class Budget:
    """What may be spent on one data set, in all.

    >>> Budget.of(Loss(rho=0.5)).charge(Fraction(1, 10), "pure")
    Fraction(1, 200)
    """

    loss: Loss
    """The loss as the steward stated it."""
    amount: Fraction
    """The same in the currency: epsilon when pure, otherwise rho. As it was first computed, for good."""

    @classmethod
    def of(cls, loss: Loss) -> Budget:
        """The budget that a loss allows."""
        return cls(loss, loss.budget)

    @property
    def currency(self) -> Currency:
        """What adds up over releases: pure epsilon, or rho of zero-concentrated differential privacy."""
        return self.loss.currency

    def charge(self, cost: Fraction, definition: Currency) -> Fraction:
        """What a cost is in this currency, exactly."""
        exact = positive(cost, "The cost of a release")
        if exact.numerator > _LONGEST or exact.denominator > _LONGEST:
            raise LedgerError("The cost of the release has over 200 digits; give the plan rounder numbers")
        if definition == self.currency:
            return exact
        if definition == "pure":
            # Bun and Steinke 2016, Proposition 1.4: epsilon-DP implies (epsilon²/2)-zCDP.
            return exact**2 / 2
        if definition == "zcdp":
            raise Overspent(
                "The ledger's budget is pure epsilon, and Gaussian noise has no pure epsilon, however small "
                "its rho; give the plan's loss as epsilon alone, or use a ledger made with rho, or with "
                "epsilon and delta"
            )
        raise LedgerError(f'The definition of the cost is {definition!r}; write "pure" or "zcdp"')

    def epsilon(self, amount: Fraction) -> float | None:
        """The epsilon of an amount, at the delta that the steward chose; None without a delta."""
        if self.currency == "pure" or amount == 0:
            return float(amount)
        if self.loss.delta is None:
            return None
        if amount == self.amount and self.loss.epsilon is not None:
            return float(self.loss.epsilon)
        try:
            return epsilon_from_rho(amount, self.loss.delta)
        except LossError:  # beyond the numbers that are converted
            return None

    def say(self, amount: Fraction, *, left: bool = False) -> str:
        """Write an amount for people, rounded up; what is left is rounded down.

        >>> Budget.of(Loss(epsilon=1, delta=1e-8)).say(Fraction(1, 100))
        'rho 0.01 (epsilon 0.752326 at delta 1e-08)'
        """
        figures = plain_down if left else plain
        if self.currency == "pure":
            return f"epsilon {figures(amount)}"
        epsilon = self.epsilon(amount)
        if self.loss.delta is None or epsilon is None:
            return f"rho {figures(amount)}"
        return f"rho {figures(amount)} (epsilon {figures(epsilon)} at delta {plain(self.loss.delta)})"


def plain_down(value: Fraction | float) -> str:
    """Write a number for people with at most six digits, rounded down: what is left is never overstated.

    >>> plain_down(Fraction(2, 3))
    '0.666666'
    """
    number = Fraction(value)
    downward = Context(prec=6, rounding=ROUND_FLOOR)
    return f"{float(downward.divide(Decimal(number.numerator), Decimal(number.denominator))):.6g}"
