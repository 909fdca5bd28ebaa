"""The budget of a data set: the charge of a release against it, and how amounts are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from treetop._util.numbers import plain, positive
from treetop.errors import LedgerError, LossError, Overspent
from treetop.privacy.accountant import exact_delta
from treetop.privacy.composition import (
    UNLIKE,
    Cells,
    certain_rho,
    epsilon_together,
    gaussian_rho,
    gaussian_room,
    rho_of,
)
from treetop.privacy.loss import Currency, Loss, epsilon_from_rho

# What releases come to together, as far as a ledger knows their noise.


@dataclass(frozen=True)
class Spending:
    """The sums of the charges."""

    charged: Fraction
    """All of it, in the currency of the budget."""
    gaussian: Fraction
    """The rho of Gaussian noise that discloses at least as much as the releases with known noise."""
    other: Fraction
    """The charges of the other releases, with unknown noise."""
    alone: Cells | None
    """The cells of the only release, where there is one and its noise is known."""

    @property
    def noise_is_known(self) -> bool:
        """Whether more than the cost is known of some release."""
        return self.gaussian > 0 or self.alone is not None

    @classmethod
    def of(cls, releases: Iterable[tuple[Fraction, Cells | None]]) -> Spending:
        """Add up the charges of releases, with the cells that one unit moves if they are known."""
        charged = gaussian = other = Fraction(0)
        listed = list(releases)
        for amount, cells in listed:
            known = None if cells is None else gaussian_rho(cells)
            charged += amount
            gaussian += known or 0
            other += amount if known is None else 0
        return cls(charged, gaussian, other, listed[0][1] if len(listed) == 1 else None)


def checked(cells: Cells | None, cost: Fraction, definition: str) -> Cells | None:
    """Return cells to be recorded; refuse them if their noise does not cost as much as the release."""
    if cells is not None and not _cost(cells, cost, definition):
        raise LedgerError("The cells that one unit moves, with their noise, do not cost what the release costs")
    return cells


def written(cells: Cells | None) -> dict[str, Any]:
    """Return cells as a record has them: nothing where they are not known."""
    return {} if cells is None else {"cells": [[str(variance), number] for variance, number in cells]}


def read(record: Mapping[str, Any]) -> Cells | None:
    """Return the cells of a record; None if the noise of its release is not known."""
    if "cells" not in record:
        return None
    cells = tuple((Fraction(variance), int(number)) for variance, number in record["cells"])
    if not _cost(cells, Fraction(record["cost"]), record["definition"]):
        raise ValueError("its noise does not cost what it was charged")
    return cells


def _cost(cells: Cells, cost: Fraction, definition: str) -> bool:
    known = definition == "zcdp" and all(variance > 0 and number > 0 for variance, number in cells)
    return known and rho_of(cells) == cost


_LONGEST = 10**200
_ROUND = Context(prec=3)


@dataclass(frozen=True)
class Budget:
    """The total that may be spent on one data set.

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
        """The quantity that adds up over releases: pure epsilon, or rho of zero-concentrated differential privacy."""
        return self.loss.currency

    def charge(self, cost: Fraction, definition: Currency) -> Fraction:
        """A cost in this currency, exactly."""
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

    def covers(self, spent: Spending) -> bool:
        """Whether all releases together stay within the budget.

        Costs that add up to it always do. For epsilon and delta, releases with known noise may come to more rho: they
        are composed as Gaussian noise (`privacy.composition`), and one that stands alone exactly.
        """
        if spent.charged <= self.amount:
            return True
        epsilon, delta = self.loss.epsilon, self.loss.delta
        if epsilon is None or delta is None:
            return False
        if spent.other <= self.amount and spent.gaussian <= gaussian_room(epsilon, delta, spent.other):
            return True
        return spent.alone is not None and _keeps(epsilon, delta, spent.alone)

    def left(self, spent: Spending) -> Fraction:
        """The most that one more release may cost: of known noise, where there has been such."""
        rest = max(self.amount - spent.charged, Fraction(0))
        epsilon, delta = self.loss.epsilon, self.loss.delta
        if epsilon is None or delta is None or not spent.gaussian:
            return rest
        return max(rest, certain_rho(max(gaussian_room(epsilon, delta, spent.other) - spent.gaussian, Fraction(0))))

    def epsilon_left(self, spent: Spending) -> float | None:
        """The epsilon left for one more release: of known noise, where there has been such."""
        rest = self.left(spent)
        if self.loss.delta is None or not spent.gaussian or rest <= self.amount - spent.charged:
            return self.epsilon(rest)
        # Exact accounting of discrete noise leaves up to so much more rho at an epsilon than Gaussian noise would have.
        return epsilon_together(rest * (1 - UNLIKE), Fraction(0), self.loss.delta)

    def epsilon_of(self, spent: Spending) -> float | None:
        """The least epsilon that is known for all releases together, at the delta that the steward chose."""
        added = self.epsilon(spent.charged)
        epsilon, delta = self.loss.epsilon, self.loss.delta
        if epsilon is None or delta is None or added is None or not spent.noise_is_known:
            return added
        found = min(added, epsilon_together(spent.gaussian, spent.other, delta))
        if spent.alone is not None:
            # Exact accounting may do a little better; it is asked for the few digits that a plan has stated.
            for stated in (_ROUND.create_decimal(repr(found)), epsilon):
                if stated < found and _keeps(Fraction(stated), delta, spent.alone):
                    found = float(stated)
        return found

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

    def say_spent(self, spent: Spending) -> str:
        """Write spent loss for people, rounded up."""
        return self._said(plain, spent.charged, self.epsilon_of(spent))

    def say_left(self, spent: Spending) -> str:
        """Write the amount left for one more release, rounded down."""
        return self._said(plain_down, self.left(spent), self.epsilon_left(spent))

    def say(self, amount: Fraction, *, left: bool = False) -> str:
        """Write an amount for people, rounded up; an amount left is rounded down.

        >>> Budget.of(Loss(epsilon=1, delta=1e-8)).say(Fraction(1, 100))
        'rho 0.01 (epsilon 0.752326 at delta 1e-08)'
        """
        return self._said(plain_down if left else plain, amount, self.epsilon(amount))

    def _said(self, figures: Callable[[Fraction | float], str], amount: Fraction, epsilon: float | None) -> str:
        if self.currency == "pure":
            return f"epsilon {figures(amount)}"
        if self.loss.delta is None or epsilon is None:
            return f"rho {figures(amount)}"
        return f"rho {figures(amount)} (epsilon {figures(epsilon)} at delta {plain(self.loss.delta)})"


@lru_cache(maxsize=64)
def _keeps(epsilon: Fraction, delta: Fraction, cells: Cells) -> bool:
    """Whether the noise on these cells keeps delta at epsilon by exact accounting."""
    try:
        return exact_delta(epsilon, cells) <= delta
    except LossError:  # beyond what is computed
        return False


def plain_down(value: Fraction | float) -> str:
    """Write a number for people with at most six digits, rounded down: the amount left is never overstated.

    >>> plain_down(Fraction(2, 3))
    '0.666666'
    """
    number = Fraction(value)
    downward = Context(prec=6, rounding=ROUND_FLOOR)
    return f"{float(downward.divide(Decimal(number.numerator), Decimal(number.denominator))):.6g}"
