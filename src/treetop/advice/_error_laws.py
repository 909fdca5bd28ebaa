"""Mean squared error of one released count, max(0, n + noise), in closed form; least-error divisions of a loss.

KZF is Ko, Ziani and Fioretto, "Optimal Allocation of Privacy Budget on Hierarchical Data Release", which has the
continuous Laplace at sensitivity 1. Here every law takes any sensitivity, and the discrete laws are those that are
drawn.

For noise X that is symmetric about zero, max(0, n + X) = n + X + max(0, −X − n). So

    MSE(n) = Var X − Σ_{j>n} (j² − n²)·P(X = j),

so that Var X / 2 = MSE(0) ≤ MSE(n) < Var X for every such law: KZF Proposition 4, which states it for the Laplace.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from treetop._util.dtypes import Floats, Ints
from treetop.errors import LossError
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Law
from treetop.privacy import Loss, Unit

SUMMED_UP_TO = 16.0
"""The discrete Gaussian is summed up to this scale; beyond, the closed form is within 1e-9 of the sums."""

_erfc = np.vectorize(math.erfc, otypes=[np.float64])


@dataclass(frozen=True)
class ErrorLaw(ABC):
    """The error of max(0, n + noise) as a function of the budget (epsilon or rho) that is spent on the noise."""

    sensitivity: float
    """L1 sensitivity for Laplace noise, L2 for Gaussian."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.sensitivity) and self.sensitivity > 0):
            raise LossError(f"the sensitivity is {self.sensitivity}: give a positive number")

    @abstractmethod
    def mse(self, budget: float, counts: ArrayLike) -> Floats:
        """The mean squared error, for each true count."""

    @abstractmethod
    def slope(self, budget: float, counts: ArrayLike) -> Floats:
        """The derivative of the mean squared error by the budget, for each true count: negative."""


@dataclass(frozen=True)
class DiscreteLaplaceErrors(ErrorLaw):
    """Discrete Laplace noise of scale Δ/epsilon: the pure loss."""

    def mse(self, budget: float, counts: ArrayLike) -> Floats:
        """(2a − a^(n+1))/(1 − a)² − 2n·a^(n+1)/(1 − a²)."""
        e, n = budget / self.sensitivity, as_counts(counts)
        power = np.exp(-e * (n + 1))
        return (2 * math.exp(-e) - power) / math.expm1(-e) ** 2 + 2 * n * power / math.expm1(-2 * e)

    def slope(self, budget: float, counts: ArrayLike) -> Floats:
        """The derivative of `mse` by epsilon, where a has the derivative −a/Δ."""
        e, n = budget / self.sensitivity, as_counts(counts)
        a, gap, wide = math.exp(-e), -math.expm1(-e), -math.expm1(-2 * e)
        power = np.exp(-e * (n + 1))
        first = (2 * a - (n + 1) * power) / gap**2 + 2 * a * (2 * a - power) / gap**3
        second = 2 * n * power * ((n + 1) * wide + 2 * a * a) / wide**2
        return (second - first) / self.sensitivity


@dataclass(frozen=True)
class GaussianErrors(ErrorLaw):
    """Continuous Gaussian noise of variance s = Δ²/(2·rho)."""

    def parameter(self, budget: float) -> float:
        """The variance that rho buys; the discrete law has it as its parameter."""
        return self.sensitivity**2 / (2 * budget)

    def mse(self, budget: float, counts: ArrayLike) -> Floats:
        """s·(a²·Φ(−a) + Φ(a) − a·φ(a))."""
        s, n = self.parameter(budget), as_counts(counts)
        a = n / math.sqrt(s)
        tail = _tail(a)
        return s * (1 - tail - a * _density(a)) + n * n * tail

    def slope(self, budget: float, counts: ArrayLike) -> Floats:
        """−(s/rho)·(Φ(a) − a·φ(a)). It rises with rho: the second derivative is positive for every n."""
        s, n = self.parameter(budget), as_counts(counts)
        a = n / math.sqrt(s)
        return -s / budget * (1 - _tail(a) - a * _density(a))


@dataclass(frozen=True)
class DiscreteGaussianErrors(GaussianErrors):
    """Discrete Gaussian noise with parameter s = Δ²/(2·rho): the zero-concentrated and the approximate loss.

    Small scales are summed. For large ones the sums over j > n differ from integrals by the terms of Euler and
    Maclaurin at n, where the summands are zero but not smooth: −f′/12 + f‴/720, with f = (j² − n²)·φ.
    """

    def mse(self, budget: float, counts: ArrayLike) -> Floats:
        """The continuous error, plus n·φ_σ(n)·(1/6 − (n²/s² − 2/s)/120)."""
        s, n = self.parameter(budget), as_counts(counts)
        if s <= SUMMED_UP_TO**2:
            sums = gaussian_sums(s)
            at = sums.place(n)
            return np.asarray(sums.second - (sums.tail2[at] - sums.at[at] ** 2 * sums.tail0[at]))
        return super().mse(budget, n) + mse_correction(s, n)

    def slope(self, budget: float, counts: ArrayLike) -> Floats:
        """The derivative of `mse` by rho."""
        s, n = self.parameter(budget), as_counts(counts)
        if s > SUMMED_UP_TO**2:
            return super().slope(budget, n) - s / budget * _correction_slope(s, n)
        # d E[g(X)]/dt = −Cov(g(X), X²) for P(k) ∝ e^(−t·k²), and t = rho/Δ².
        sums = gaussian_sums(s)
        at = sums.place(n)
        square = sums.at[at] ** 2
        lost = (sums.tail4[at] - square * sums.tail2[at]) - sums.second * (sums.tail2[at] - square * sums.tail0[at])
        return np.asarray(-(sums.fourth - sums.second**2 - lost) / self.sensitivity**2)


def error_law(unit: Unit, loss: Loss, level: str) -> ErrorLaw:
    """The error law of a level's measurements: of the noise that a plan with this unit and loss would draw."""
    change = unit.sensitivity(level)
    if loss.definition == "pure":
        return DiscreteLaplaceErrors(float(change.l1))
    return DiscreteGaussianErrors(math.sqrt(change.l2_squared))


def mean_absolute_of_count(law: Law, terms: int) -> float:
    """The mean absolute error of a count that is the difference of two measurements (`terms` = 2), or is one (1).

    With a = e^(−rate), the sum of two discrete Laplace draws is k with probability
    ((1 − a)/(1 + a))²·a^|k|·(|k| + (1 + a²)/(1 − a²)). That of two discrete Gaussians is as one of twice the variance,
    up to the factor of `treetop.noise.sum_noise`. Of other laws the mean is bounded by the triangle inequality.

    >>> from fractions import Fraction
    >>> from treetop.noise import DiscreteLaplace
    >>> round(mean_absolute_of_count(DiscreteLaplace(Fraction(1000)), 2))  # close to 1.5 times the scale
    1500
    """
    if terms == 1:
        return mean_absolute(law)
    if isinstance(law, DiscreteLaplace):
        rate = float(law.rate)
        if rate >= 700:
            return 0.0
        a, gap = math.exp(-rate), -math.expm1(-rate)
        both = a * (1 + a) / gap**3 + (1 + a * a) / -math.expm1(-2 * rate) * a / gap**2
        return 2 * (gap / (1 + a)) ** 2 * both
    if isinstance(law, DiscreteGaussian):
        return mean_absolute(DiscreteGaussian(2 * law.variance))
    return 2 * mean_absolute(law)


def mean_absolute(law: Law) -> float:
    """The mean absolute value of the noise, E|X|: what one measurement is off by on average.

    >>> from fractions import Fraction
    >>> from treetop.noise import DiscreteGaussian
    >>> round(mean_absolute(DiscreteGaussian(Fraction(400))), 4)  # close to 20·√(2/π)
    15.9544
    """
    if isinstance(law, DiscreteLaplace):
        return 1 / math.sinh(float(law.rate)) if law.rate < 700 else 0.0
    s = float(1 / (2 * law.rate))
    if s <= SUMMED_UP_TO**2:
        return float(2 * gaussian_sums(s).tail1[0])
    return 2 * (s - 1 / 12 - 1 / (240 * s) - 1 / (2016 * s * s)) / math.sqrt(2 * math.pi * s)


def mse_correction(s: float, counts: ArrayLike) -> Floats:
    """What the discrete Gaussian's mean squared error has above the continuous one's, for scales of 0.7 and more."""
    n = as_counts(counts)
    return n * _density(n / math.sqrt(s)) / math.sqrt(s) * (1 / 6 - (n * n / s - 2) / s / 120)


def _correction_slope(s: float, n: Floats) -> Floats:
    """The derivative of `mse_correction` by s."""
    square = n * n / s
    change = (square - 1) / 2 * (1 / 6 - (square - 2) / s / 120) + (square - 1) / s / 60
    return np.asarray(n * _density(n / math.sqrt(s)) / s**1.5 * change)


def as_counts(counts: ArrayLike) -> Floats:
    """Return true counts as an array, refusing what cannot be one."""
    n = np.asarray(counts, dtype=np.float64)
    if n.size and not (np.isfinite(n).all() and n.min() >= 0):
        raise LossError("true counts are finite and not below zero")
    return n


def _density(a: Floats) -> Floats:
    """φ(a)."""
    a = np.minimum(a, 50.0)  # where it is nothing
    return np.exp(-a * a / 2) / math.sqrt(2 * math.pi)


def _tail(a: Floats) -> Floats:
    """Φ(−a), for a ≥ 0; called for what is not nothing only, since it is computed one by one."""
    tail = np.zeros_like(a)
    near = a < 38
    if near.any():
        tail[near] = _erfc(a[near] / math.sqrt(2)) / 2
    return tail


class Sums(NamedTuple):
    """Moments of a discrete Gaussian, and partial moments beyond each n = `at`: tail2[n] is Σ_{j>n} j²·P(X = j)."""

    at: Floats
    second: float
    fourth: float
    tail0: Floats
    tail1: Floats
    tail2: Floats
    tail4: Floats

    def place(self, n: Floats) -> Ints:
        """Return the index of each count; beyond the last one the tails are zero."""
        if (n != np.floor(n)).any():
            raise LossError("discrete noise is added to whole counts: round the counts first")
        return np.minimum(n, len(self.at) - 1).astype(np.int64)


@lru_cache(maxsize=256)
def gaussian_sums(s: float) -> Sums:
    """The sums of the law with parameter s, whose weights are e^(−j²/2s)."""
    width = max(math.ceil(13 * math.sqrt(s)), 2)  # what lies beyond is below 1e-36 of the whole
    j = np.arange(width + 1, dtype=np.float64)
    weight = np.exp(-j * j / (2 * s))
    mass = weight / (weight[0] + 2 * weight[1:].sum())

    def beyond(power: int) -> Floats:
        terms = (j**power * mass)[::-1]
        return np.append(np.cumsum(terms)[::-1][1:], 0.0)

    tails = [beyond(power) for power in (0, 1, 2, 4)]
    return Sums(j, float(2 * tails[2][0]), float(2 * tails[3][0]), *tails)


# Dividing a loss over levels: least error at a given loss (KZF, program 6), least loss at a given error (program 7).

_STEPS = 200
_GROW = 60
_TOLERANCE = 1e-14


@dataclass(frozen=True, eq=False)
class Term:
    """One level's term of the objective: `nodes[i]` nodes are expected to count `counts[i]` (public), with a weight.

    A level with weight 0 gets no budget.
    """

    law: ErrorLaw
    counts: Floats = field(repr=False)
    nodes: Floats = field(repr=False)
    weight: float = 1.0

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.nodes) or not self.nodes.sum() > 0 or self.nodes.min() < 0:
            raise LossError("a level needs expected counts and, for each, how many nodes have it")
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise LossError(f"a level's weight is {self.weight}: give zero or a positive number")

    @staticmethod
    def of(law: ErrorLaw, counts: ArrayLike, weight: float = 1.0) -> Term:
        """Return the term of a level with these counts, one per node."""
        distinct, nodes = np.unique(np.asarray(counts, dtype=np.float64), return_counts=True)
        return Term(law, distinct, nodes.astype(np.float64), weight)

    def error(self, budget: float) -> float:
        """Return the weighted sum of mean squared errors at a budget."""
        return self.weight * float(self.nodes @ self.law.mse(budget, self.counts))

    def gain(self, budget: float) -> float:
        """Return how fast the error falls with the budget."""
        return -self.weight * float(self.nodes @ self.law.slope(budget, self.counts))

    def budget_at(self, price: float, guess: float) -> float:
        """Return the budget at which the gain equals a price."""
        return falling_root(self.gain, price, guess / 1.5, guess * 1.5)


@dataclass(frozen=True)
class Allocation:
    """A division of a loss: each level's budget (epsilon or rho), the weighted total error, its slope by the loss."""

    budgets: tuple[float, ...]
    error: float
    price: float

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
