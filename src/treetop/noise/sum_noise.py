"""The noise of sums: how far a sum of measurements may be off, and a sum of those that their own noise has selected.

A sum over nodes that were chosen before they were measured has the noise of n independent draws. Its quantile is exact
for one draw. A sum of n discrete Gaussians with parameter σ² has, point by point, the probabilities of the one with
parameter nσ² up to a factor e^τ, τ ≤ 5·Σ_k e^(−2π²σ²k/(k+1)) (Kairouz, Liu and Steinke 2021, "The distributed discrete
Gaussian mechanism for federated learning with secure aggregation"): where τ is small the quantile of that one serves.
Other sums are convolved, through the characteristic function; the few that are too wide for that get a Chernoff bound.

A sum over m of n nodes that were chosen by their measurements is worse. For whatever choice and any number c it is at
most m·c + Σ (N − c)⁺ over all n of them, whose excesses are independent: that sum has a Chernoff bound from the exact
moment generating function. A few values of c share the risk, and the best serves.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from treetop._util.dtypes import Floats, Ints
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Law

EXCEEDING = (0.98, 0.84, 0.5, 0.2, 0.05, 0.01, 1e-3, 1e-5)
"""The values of c, by the part of the draws that exceed them."""
WIDEST = 1 << 20
FINEST = 1000
"""Gaussians with a larger σ are looked at on a coarser grid."""
_NEGLIGIBLE = 1e-12
"""An upper bound of the error by rounding and wrapping in a convolved probability."""


def sum_margin(law: Law, number: int, risk: Fraction) -> int:
    """Return a t with P(N₁ + … + Nₙ > t) ≤ risk: the least, or a little more."""
    return 0 if number == 0 else _sum_margin(law, number, risk)


def sum_margins(law: Law, numbers: Ints, risk: Fraction) -> Ints:
    """Return the `sum_margin` of each number of draws."""
    distinct, which = np.unique(numbers, return_inverse=True)
    return np.array([sum_margin(law, number, risk) for number in distinct.tolist()], np.int64)[which]


@lru_cache(maxsize=1 << 10)
def weighted_margin(law: Law, weights: tuple[int, ...], risk: Fraction) -> int:
    """Return a t with P(w₁N₁ + … + wₙNₙ > t) ≤ risk, of whole weights above 0; a Chernoff bound if they differ."""
    largest = max(weights, default=1)
    if min(weights, default=1) == largest:
        return largest * sum_margin(law, len(weights), risk)
    apart = sum(weights) * sum_margin(law, 1, risk / len(weights))  # each by itself, which is less for a few
    need = math.log(1 / risk)
    if isinstance(law, DiscreteGaussian):
        squares = sum(weight * weight for weight in weights)
        return min(apart, math.floor(math.sqrt(2 * squares * float(law.variance) * need) * (1 + 1e-9)))
    if not isinstance(law, DiscreteLaplace):  # nothing is known of its sums
        return apart
    rates = _rates(law) / largest
    logs = np.zeros(len(rates))
    for weight, times in zip(*np.unique(weights, return_counts=True), strict=True):
        logs += times * np.log(_laplace_moment(law, rates * weight))
    return min(apart, math.floor(float(((logs + need) / rates).min()) * (1 + 1e-9)))


def selected_margins(law: Law, numbers: Ints, selected: Ints, risk: Fraction) -> Ints:
    """Return a bound that no sum over `selected` of so many draws exceeds, for any selection, except with that risk."""
    if not isinstance(law, DiscreteGaussian | DiscreteLaplace):
        return selected * np.array([law.margin(risk / max(number, 1)) for number in numbers.tolist()], np.int64)
    part = risk / (len(EXCEEDING) + 1)
    distinct, which = np.unique(numbers, return_inverse=True)
    thresholds, step, rates, logs = _excesses(law)
    bounds = (distinct[:, None, None] * logs + math.log(1 / part)) / rates
    excess = step * np.floor(bounds.min(axis=2) * (1 + 1e-9)).astype(np.int64)
    found = (selected[:, None] * thresholds + excess[which]).min(axis=1)
    every = (selected == numbers) & (numbers > 0)
    found[every] = np.minimum(found[every], sum_margins(law, numbers[every], part))
    return np.where(selected == 0, 0, found)


@lru_cache(maxsize=1 << 14)
def _sum_margin(law: Law, number: int, risk: Fraction) -> int:
    if number == 1:
        return max(law.quantile(1 - risk), 0)
    if not isinstance(law, DiscreteGaussian | DiscreteLaplace):  # nothing is known of its sums: each by itself
        return number * max(law.quantile(1 - risk / number), 0)
    if isinstance(law, DiscreteGaussian):
        factor = 5 * (number - 1) * math.exp(-(math.pi**2) * float(law.variance))  # k/(k + 1) is at least a half
        if factor < 1e-3:
            together = DiscreteGaussian(number * law.variance)
            return together.quantile(1 - risk / (1 + Fraction(2 * factor)))
    reach = _chernoff(law, number, 1e-15)
    if 2 * reach + 2 > WIDEST or risk < 1000 * _NEGLIGIBLE:
        return _chernoff(law, number, float(risk))
    return _convolved(law, number, float(risk), 1 << (2 * reach + 2).bit_length())


def _chernoff(law: Law, number: int, risk: float) -> int:
    """Return the least t with exp(n·ln M(λ) − λt) ≤ risk for some λ."""
    need = math.log(1 / risk)
    if isinstance(law, DiscreteGaussian):  # M(λ) ≤ e^(λ²σ²/2) (Canonne, Kamath and Steinke 2020)
        return math.floor(math.sqrt(2 * number * float(law.variance) * need) * (1 + 1e-9))
    assert isinstance(law, DiscreteLaplace)
    rates = _rates(law)
    bounds = (number * np.log(_laplace_moment(law, rates)) + need) / rates
    return math.floor(float(bounds.min()) * (1 + 1e-9))


def _convolved(law: Law, number: int, risk: float, size: int) -> int:
    """Return the least t with P(sum > t) ≤ risk, by a convolution on a circle of so many points."""
    distance = np.minimum(np.arange(size), size - np.arange(size)).astype(np.float64)
    weights = np.exp(-float(law.rate) * distance**law.power)
    masses = np.fft.irfft((np.fft.rfft(weights / weights.sum()).real) ** number, size)
    tails = np.cumsum(masses[size // 2 : 0 : -1])[::-1]  # of t + 1, …, size/2, at t
    return int(np.argmax(tails <= risk - _NEGLIGIBLE))


def _rates(law: Law) -> Floats:
    """Return the λ that Chernoff bounds try: every one is valid, and these are close together."""
    if isinstance(law, DiscreteGaussian):
        return np.minimum(np.geomspace(2e-4, 8, 64) / math.sqrt(law.variance), 40)  # more would overflow
    near, far = np.geomspace(2e-4, 0.5, 48), 1 - np.geomspace(0.5, 0.005, 24)[1:]
    return np.concatenate([near, far]) * float(law.rate)  # a moment is finite below the rate


@lru_cache(maxsize=64)
def _excesses(law: Law) -> tuple[Ints, int, Floats, Floats]:
    """Return every c, a step, rates λ and, for every c (row) and λ (column), ln E exp(λ·(N − c)⁺/step) or more.

    A Gaussian with a large σ is replaced by w·N′ + w, N′ its coarsened law: weights fall away from 0, so that no tail
    of N is above the one of that. Both have the same sum of weights, σ√(2π)/w, to far below rounding.
    """
    step = 1
    if isinstance(law, DiscreteGaussian) and law.variance > FINEST**2:
        step = math.isqrt(int(law.variance)) // (FINEST // 2)
        law = law.coarsened(step)
    rates = _rates(law)
    thresholds = [
        law.quantile(Fraction(1 - part)) if part <= 1 / 2 else -law.quantile(Fraction(part)) for part in EXCEEDING
    ]
    logs = [np.log1p(_excess(law, threshold - (step > 1), rates)) for threshold in thresholds]
    return step * np.array(thresholds), step, rates, np.array(logs)


def _excess(law: Law, threshold: int, rates: Floats) -> Floats:
    """Return E exp(λ(N − c)⁺) − 1."""
    if isinstance(law, DiscreteGaussian):
        reach = math.ceil(20 * math.sqrt(law.variance)) + 5  # what is beyond adds nothing to a float
        values = np.arange(-reach, reach + 1, dtype=np.float64)
        weights = np.exp(-float(law.rate) * values**2)
        above = values > threshold
        masses = weights[above] / weights.sum()
        grown: Floats = np.expm1(rates[:, None] * (values[above] - threshold)) @ masses
        return grown
    assert isinstance(law, DiscreteLaplace)
    # The excess above a c is geometric, and so is the one below it.
    rate, distance = float(law.rate), abs(threshold)
    beyond = math.exp(-rate * (distance + 1)) / (1 + math.exp(-rate))  # P(N > |c|)
    if threshold >= 0:
        higher: Floats = beyond * np.expm1(rates) / -np.expm1(rates - rate)
        return higher
    # exp(λ(N − c)) is too little for N below c, by 1 less its value there.
    lacking = beyond * np.expm1(-rates) / np.expm1(-rates - rate)
    moved: Floats = np.exp(rates * distance) * _laplace_moment(law, rates) - 1 + lacking
    return moved


def _laplace_moment(law: DiscreteLaplace, rates: Floats) -> Floats:
    """Return E exp(λN) = (1 − q)²/((1 − q·e^λ)(1 − q·e^(−λ)))."""
    rate = float(law.rate)
    moment: Floats = math.expm1(-rate) ** 2 / (np.expm1(rates - rate) * np.expm1(-rates - rate))
    return moment
