"""The programs of dividing a loss over levels: least error at a given loss, and least loss at a given error.

KZF is Ko, Ziani and Fioretto, "Optimal Allocation of Privacy Budget on Hierarchical Data Release". Their programs (6)
and (7) are convex, and have the condition of Karush, Kuhn and Tucker

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

from treetop.choose.error_laws import ErrorLaw, Floats
from treetop.errors import LossError

_STEPS = 200
_GROW = 60
_TOLERANCE = 1e-14


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
    """A division of a loss."""

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
    weighted = [term for term in terms if term.weight > 0]
    if not weighted:
        raise LossError("no level has a weight: give at least one")
    if not (math.isfinite(budget) and budget > 0):
        raise LossError(f"the loss to divide is {budget}: give a positive number")
    budgets = [budget / len(weighted)] * len(weighted)

    def spent(price: float) -> float:
        budgets[:] = [term.budget_at(price, guess) for term, guess in zip(weighted, budgets, strict=True)]
        return math.fsum(budgets)

    gains = [term.gain(guess) for term, guess in zip(weighted, budgets, strict=True)]
    price = falling_root(spent, budget, min(gains), max(gains) * 1.01)
    # The root is within rounding of the loss; what is left of it goes to all alike.
    scale = budget / spent(price)
    given = iter(budgets)
    everywhere = tuple(next(given) * scale if term.weight > 0 else 0.0 for term in terms)
    return Allocation(everywhere, total_error(terms, everywhere), price)


def least_loss(terms: Sequence[Term], error: float) -> Allocation:
    """Find the least loss, and its division, at which the weighted total mean squared error is that (program 7)."""
    if not (math.isfinite(error) and error > 0):
        raise LossError(f"the squared error to reach is {error}: give a positive number")
    return least_error(terms, falling_root(lambda budget: least_error(terms, budget).error, error, 0.1, 1.0))


def total_error(terms: Sequence[Term], budgets: Sequence[float]) -> float:
    """The weighted total of mean squared errors of a given division."""
    return math.fsum(term.error(one) for term, one in zip(terms, budgets, strict=True) if term.weight > 0)


def falling_root(function: Callable[[float], float], value: float, low: float, high: float) -> float:
    """Return x > 0 with function(x) = value, for a function that falls from infinity to zero, both positive.

    Functions here are near powers of x, so steps are taken on logarithms, where they are near lines: the rule of false
    position with halving (Illinois), which keeps a bracket. The first bracket is widened where it is not one.
    """
    goal = math.log(value)

    def height(at: float) -> float:
        found = function(math.exp(at))
        return (math.log(found) if found > 0 else -math.inf) - goal

    left, right = math.log(low), math.log(high)
    above, below = height(left), height(right)
    for _ in range(_GROW):
        if above < 0:
            left, right, below = left - max(right - left, 1.0), left, above
            above = height(left)
        elif below > 0:
            left, right, above = right, right + max(right - left, 1.0), below
            below = height(right)
        else:
            break
    else:
        raise ArithmeticError(f"no root of {value} was found near {low} to {high}")
    side = 0
    for _ in range(_STEPS):
        if above == 0:
            return math.exp(left)
        if below == 0 or right - left <= _TOLERANCE * max(1.0, abs(left)):
            break
        # Where the function has vanished there is no slope to follow: halve.
        middle = (left * below - right * above) / (below - above) if math.isfinite(below) else (left + right) / 2
        if not left < middle < right:
            middle = (left + right) / 2
        at = height(middle)
        if at > 0:
            left, above = middle, at
            below = below / 2 if side == 1 else below
            side = 1
        else:
            right, below = middle, at
            above = above / 2 if side == -1 else above
            side = -1
    return math.exp(right)
