"""The two programs of dividing a loss over levels: least error at a given loss, least loss at a given error.

KZF is Ko, Ziani and Fioretto, "Optimal Allocation of Privacy Budget on Hierarchical Data Release". Their programs (6)
and (7) are convex, and both have the condition of Karush, Kuhn and Tucker

    −w_l · F_l′(b_l) = price, the same at every level,

with F_l(b) the summed mean squared error of level l. Each b_l falls as the price rises, so one root gives everything:
no general solver is needed. (F is proved convex for Laplace and Gaussian noise; for the discrete Laplace its slope is
known to be monotone by computation only. F is infinite at b = 0, so every level with a weight is given something.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from treetop.choose.error_laws import ErrorLaw
from treetop.choose.roots import falling_root
from treetop.choose.sums import Floats
from treetop.errors import LossError


@dataclass(frozen=True, eq=False)
class Term:
    """One level's part of the objective: what its counts are expected to be, and how much their errors weigh."""

    law: ErrorLaw
    """The errors of its measurements."""
    counts: Floats = field(repr=False)
    """The distinct counts that are expected there: public."""
    nodes: Floats = field(repr=False)
    """How many nodes have each of them."""
    weight: float = 1.0
    """What a squared error there weighs; with 0 the level is given nothing."""

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.nodes) or not self.nodes.sum() > 0 or self.nodes.min() < 0:
            raise LossError("a level needs expected counts and, for each, how many nodes have it")
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise LossError(f"a level's weight is {self.weight}: give zero or a positive number")

    @staticmethod
    def of(law: ErrorLaw, counts: ArrayLike, weight: float = 1.0) -> Term:
        """Take the expected count of every node."""
        distinct, nodes = np.unique(np.asarray(counts, dtype=np.float64), return_counts=True)
        return Term(law, distinct, nodes.astype(np.float64), weight)

    def error(self, budget: float) -> float:
        """The weighted sum of mean squared errors when this much is spent here."""
        return self.weight * float(self.nodes @ self.law.mse(budget, self.counts))

    def gain(self, budget: float) -> float:
        """How fast the error falls with the budget: what the next bit is worth here."""
        return -self.weight * float(self.nodes @ self.law.slope(budget, self.counts))

    def budget_at(self, price: float, guess: float) -> float:
        """How much to spend here when a bit of budget costs this much error."""
        return falling_root(self.gain, price, guess / 1.5, guess * 1.5)


@dataclass(frozen=True)
class Allocation:
    """An answer of either program."""

    budgets: tuple[float, ...]
    """What each level is given: epsilon for Laplace noise, rho for Gaussian."""
    error: float
    """The weighted total of mean squared errors."""
    price: float
    """How fast the error would fall with more loss."""

    @property
    def total(self) -> float:
        """The loss of all levels together."""
        return math.fsum(self.budgets)


def least_error(terms: Sequence[Term], budget: float) -> Allocation:
    """Divide a loss so that the weighted total mean squared error is least (KZF, program 6)."""
    weighted = _weighted(terms)
    if not (math.isfinite(budget) and budget > 0):
        raise LossError(f"the loss to divide is {budget}: give a positive number")

    def spent(budgets: Sequence[float]) -> float:
        return math.fsum(budgets)

    guesses = [budget / len(weighted)] * len(weighted)
    budgets, price = _solve(weighted, spent, budget, guesses)
    # The root is within rounding of the loss; what is left of it goes to all alike.
    budgets = [one * (budget / math.fsum(budgets)) for one in budgets]
    return _allocation(terms, budgets, price)


def least_loss(terms: Sequence[Term], error: float) -> Allocation:
    """Find the least loss, and its division, at which the weighted total error is at most `error` (program 7)."""
    weighted = _weighted(terms)
    if not (math.isfinite(error) and error > 0):
        raise LossError(f"the total error is {error}: give a positive number")

    def negative_of_error(budgets: Sequence[float]) -> float:
        # Falls as the price rises, as the root finder wants it.
        return 1 / math.fsum(term.error(one) for term, one in zip(weighted, budgets, strict=True))

    start = [falling_root(term.error, error / len(weighted), 0.01, 1.0) for term in weighted]
    budgets, price = _solve(weighted, negative_of_error, 1 / error, start)
    return _allocation(terms, budgets, price)


def total_error(terms: Sequence[Term], budgets: Sequence[float]) -> float:
    """The weighted total of mean squared errors of a given division."""
    return math.fsum(term.error(one) for term, one in zip(terms, budgets, strict=True) if term.weight > 0)


def _weighted(terms: Sequence[Term]) -> list[Term]:
    weighted = [term for term in terms if term.weight > 0]
    if not weighted:
        raise LossError("no level has a weight: give at least one")
    return weighted


def _solve(
    terms: Sequence[Term], measure: Callable[[Sequence[float]], float], goal: float, guesses: Sequence[float]
) -> tuple[list[float], float]:
    """Find the price at which `measure` of the budgets, which falls as the price rises, is the goal."""
    budgets = list(guesses)

    def at(price: float) -> float:
        budgets[:] = [term.budget_at(price, guess) for term, guess in zip(terms, budgets, strict=True)]
        return measure(budgets)

    gains = [term.gain(guess) for term, guess in zip(terms, guesses, strict=True)]
    price = falling_root(at, goal, min(gains), max(gains) * 1.01)
    at(price)
    return budgets, price


def _allocation(terms: Sequence[Term], budgets: Sequence[float], price: float) -> Allocation:
    given = iter(budgets)
    everywhere = tuple(next(given) if term.weight > 0 else 0.0 for term in terms)
    return Allocation(everywhere, total_error(terms, everywhere), price)
