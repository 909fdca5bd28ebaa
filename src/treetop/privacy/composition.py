"""The composition of several releases: discrete Gaussian noise adds up as Gaussian noise does, also beside rho.

A unit with one record moves each cell that it moves by one. Three facts make such releases add up almost exactly.

1. On such a cell, discrete Gaussian noise of variance v ≥ 1 tells no more than Gaussian noise of variance v − 1/10. Let
A_k be the chance that the noise is k or more, and z_k the point above which a standard normal number lies with that
chance. The best tests between the two tables ask whether the cell is above some value, which has chance A_k on one
table and A_{k+1} on the other. Gaussian noise with a shift of s standard deviations tells as much if every gap d_k =
z_{k+1} − z_k is at most s (Blackwell 1953). Far out the gaps tend to 1/√v. Let d_k = d be the largest of all. The gaps
beside it are no wider, so the second difference of log(A_k − A_{k+1}), which is −1/v, is at most that of the normal
mass of three adjoining intervals of width d. The mass of such an interval around m has the logarithm −m²/2 + log ∫
e^(−mu − u²/2) du over |u| ≤ d/2, up to a constant; its second derivative is −1 plus the variance of a log-concave law
on an interval of length d, which is at most d²/12. So 1/v ≥ d²(1 − d²/12). For v ≥ 1, d² is below 6 (compare log
A_k/A_{k+1} with the normal tail), hence at most 6 − 6√(1 − 1/(3v)), and that is at most 1/(v − 1/10). 2. Gaussian noise
adds up by s², also where each release is decided by the earlier ones: it is a Brownian motion with drift, watched no
longer than the budget lasts, and of that the last value tells all (Smith and Thakurta 2022). So delta at epsilon is
that of one Gaussian with the sum (Balle and Wang 2018, Theorem 8). 3. Let D(t) be that delta at t, and let releases
stand beside of which only rho is known. Privacy losses add up, so that delta at epsilon is the mean of D(epsilon − L)
over the loss L of those. For every a > 0, D(t) is at most S·e^(−a·t), where S is the largest D(t)·e^(a·t), and the mean
of e^(a·L) is at most e^(a·(1 + a)·rho). So delta is at most S·e^(a·(1 + a)·rho − a·epsilon). Without Gaussian noise
this is Proposition 12 of Canonne, Kamath and Steinke 2020. log D is concave, as a convolution of log-concave functions,
so that S is where its slope is −a. The releases must be decided beforehand; only rho adds up if results decide the next
release.

The orders a and the points t are found by trial; the result is then computed in balls, and rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from flint import arb

from treetop.noise.law import ball, float_above, precision
from treetop.privacy.loss import epsilon_from_rho, rho_from_epsilon

Cells: TypeAlias = tuple[tuple[Fraction, int], ...]
"""Cells that one unit moves by one: variances of discrete Gaussian noise, each with the number of its cells."""

LEAST_VARIANCE = 1
NARROWER = Fraction(1, 10)
UNLIKE = Fraction(2, 1000)
"""Exact accounting of discrete noise was never seen to leave more rho than that of Gaussian noise by this part of it,
for variances from 10 on: only where to look, or what to say, rests on it."""
_UPWARD = Context(prec=12, rounding=ROUND_CEILING)
"""So that a sum over many releases stays short."""
_BITS = 256
_STEPS = 60
_GOLDEN = (math.sqrt(5) - 1) / 2
_FAR_BELOW = -40.0
"""Below every t that is worth trying: the best order is then within 1e-17 of 1."""


def rho_of(cells: Iterable[tuple[Fraction, int]]) -> Fraction:
    """The rho of discrete Gaussian noise on cells that all move by one (Bun and Steinke 2016)."""
    return sum((number / (2 * variance) for variance, number in cells), Fraction(0))


def gaussian_rho(cells: Iterable[tuple[Fraction, int]]) -> Fraction | None:
    """The rho, rounded up, of Gaussian noise that tells at least as much as discrete noise on these cells.

    None where a variance is below 1, for which this is not known.

    >>> gaussian_rho([(Fraction("100.1"), 12)])
    Fraction(3, 50)
    """
    held = tuple(cells)
    if any(variance < LEAST_VARIANCE for variance, _ in held):
        return None
    exact = rho_of((variance - NARROWER, number) for variance, number in held)
    return Fraction(_UPWARD.divide(Decimal(exact.numerator), Decimal(exact.denominator)))


def certain_rho(gaussian: Fraction) -> Fraction:
    """A rho with which every release has at most this `gaussian_rho`, rounding included.

    No cell has a smaller variance than one that costs all of it, 1/(2·rho).
    """
    most = min(gaussian / (1 + 2 * NARROWER * gaussian), Fraction(1, 2 * LEAST_VARIANCE))
    return most * (1 - Fraction(1, 10**11))


@lru_cache(maxsize=256)
def epsilon_together(gaussian: Fraction, rho: Fraction, delta: Fraction) -> float:
    """The epsilon at delta of Gaussian noise with the rho `gaussian` beside releases of which only rho is known.

    >>> round(epsilon_together(Fraction("0.0192"), Fraction(0), Fraction(1, 10**8)), 4)
    0.9994
    """
    if gaussian == 0:
        return epsilon_from_rho(rho, delta) if rho else 0.0
    highest = epsilon_from_rho(gaussian + rho, delta)  # Gaussian noise of that rho has that rho
    noise = _Gaussian(gaussian)
    if rho == 0:
        return _least(lambda epsilon: noise.keeps(epsilon, delta), highest)
    at = noise.best(rho, delta, highest)
    return min(highest, noise.epsilon(at, rho, delta))


@lru_cache(maxsize=256)
def gaussian_room(epsilon: Fraction, delta: Fraction, rho: Fraction) -> Fraction:
    """The largest `gaussian_rho`, rounded down, that keeps epsilon and delta beside releases with this rho in all.

    >>> float(gaussian_room(Fraction(1), Fraction(1, 10**8), Fraction(0)))
    0.019221
    """
    sure = rho_from_epsilon(epsilon, delta)
    if rho > sure:
        return Fraction(0)
    unit = Fraction(10) ** (math.floor(math.log10(sure)) - 5)

    def fits(steps: int) -> bool:
        if steps == 0 or rho:
            return steps == 0 or epsilon_together(steps * unit, rho, delta) <= epsilon
        return _Gaussian(steps * unit).keeps(epsilon, delta)

    low = math.floor((sure - rho) / unit)  # which rho alone allows
    width = max(math.floor(sure / unit) // 8, 1)
    while fits(low + width):
        low += width
    high = low + width
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low * unit if fits(low) else max(sure - rho, Fraction(0))


@dataclass(frozen=True)
class _Gaussian:
    """Gaussian noise with a rho: its delta D(t) at t."""

    rho: Fraction

    def keeps(self, epsilon: Fraction, delta: Fraction) -> bool:
        """Whether delta at epsilon is certainly at most this."""
        with precision(_BITS):
            found, _ = self._at(ball(epsilon))
            return bool(found <= ball(delta))

    def best(self, rho: Fraction, delta: Fraction, highest: float) -> float:
        """Find the t of the order with the least epsilon beside a rho by golden sections: it falls, then rises."""
        log = -math.log(delta)

        def epsilon(t: float) -> float:
            with precision(_BITS):
                value, falls = self._at(arb(t))
                slope, height = float(falls / value), float(value.log())
            return (1 + slope) * float(rho) + t + (height + log) / slope if slope > 0 else math.inf

        low, high = _FAR_BELOW, highest
        for _ in range(_STEPS):
            left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
            low, high = (low, right) if epsilon(left) <= epsilon(right) else (left, high)
        return (low + high) / 2

    def epsilon(self, t: float, rho: Fraction, delta: Fraction) -> float:
        """The epsilon at the order that belongs to t, rounded up; infinite where that cannot be told."""
        with precision(_BITS):
            value, falls = self._at(arb(t))
            order = arb(float(falls / value))
            for width in (1e-12, 1e-9, 1e-6, 1e-3):
                low, high = arb(t - width), arb(t + width)
                (below, falls_below), (above, falls_above) = self._at(low), self._at(high)
                rise = order - falls_below / below
                if order > 0 and rise >= 0 and order <= falls_above / above:
                    # order·t + log D(t) is concave, and largest in between: at most its tangent in `low` there.
                    largest = order * low + below.log() + rise * (high - low)
                    return float_above((1 + order) * ball(rho) + (largest - ball(delta).log()) / order)
        return math.inf

    def _at(self, t: arb) -> tuple[arb, arb]:
        """D(t), and how fast it falls there."""
        shift = (2 * ball(self.rho)).sqrt()
        near, far = ((t / shift + side * shift / 2) / arb(2).sqrt() for side in (-1, 1))
        falls = t.exp() * far.erfc() / 2
        return near.erfc() / 2 - falls, falls


def _least(holds: Callable[[Fraction], bool], highest: float) -> float:
    """The least number, to about 17 digits and rounded up, from which on something holds, as it does at the highest."""
    low, high = 0.0, highest
    if holds(Fraction(0)):
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(Fraction(middle)) else (middle, high)
    return high
