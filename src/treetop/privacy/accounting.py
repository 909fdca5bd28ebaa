"""From rho (zero-concentrated differential privacy) to epsilon and delta, and back, on the safe side.

Papers: CKS is Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (NeurIPS 2020);
BS is Bun and Steinke, "Concentrated Differential Privacy" (TCC 2016).

CKS Proposition 12, with Rényi divergence a·rho at order a, says that every order a > 1 gives a valid
epsilon = a·rho + g(a), where g(a) = (ln(1/δ) − ln a)/(a − 1) + ln(1 − 1/a). So the best order may be sought
in floating point: an inexact order costs a little tightness and never validity. The bound at that order is
then evaluated in long decimals and rounded to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from treetop.basics.exact import SMALLEST, Number, delta_between_0_and_1, positive, rounded_up
from treetop.errors import LossError

# Orders as close to 1 as 1e-104 must leave a − 1 with digits to spare.
_LONG = Context(prec=150, Emax=MAX_EMAX, Emin=MIN_EMIN)
_LOG_ORDER_LESS_1 = 240.0

# Converting a rho back rounds epsilon up to a float; this slack keeps it at or below the epsilon asked for.
_SLACK = Decimal("1e-13")


def epsilon_from_rho(rho: Number, delta: Number) -> float:
    """The smallest epsilon that CKS Proposition 12 gives for rho at this delta, rounded up.

    >>> round(epsilon_from_rho(Fraction(293764, 114921), 1e-10), 4)
    17.1436
    """
    return _tight_epsilon(positive(rho, "rho"), delta_between_0_and_1(delta))


@lru_cache(maxsize=1024)
def _tight_epsilon(exact_rho: Fraction, delta: Fraction) -> float:
    with localcontext(_LONG):
        log = _log_inverse(delta)
        slope, target = float(exact_rho), float(log)
        # d/da (a·rho + g(a)) = rho − (ln(1/δ) − ln a)/(a − 1)², which rises through zero once.
        s = _best(lambda s: slope * s * s + math.log1p(s) < target)
        return rounded_up(max(Decimal(0), (1 + s) * _decimal(exact_rho) + _offset(s, log)))


def rho_from_epsilon(epsilon: Number, delta: Number) -> Fraction:
    """The largest rho whose tight epsilon at this delta is at most epsilon, rounded down to 12 digits.

    >>> rho_from_epsilon(1, 1e-8)
    Fraction(172053180393, 10000000000000)
    """
    rho = _tight_rho(positive(epsilon, "epsilon"), delta_between_0_and_1(delta))
    if rho < SMALLEST:
        raise LossError(f"epsilon is {epsilon}, too small to be turned into rho; give a larger epsilon.")
    return rho


@lru_cache(maxsize=1024)
def _tight_rho(exact_epsilon: Fraction, delta: Fraction) -> Fraction:
    with localcontext(_LONG):
        log = _log_inverse(delta)
        goal, target = float(exact_epsilon), float(log)

        def epsilon_is_above(s: float) -> bool:
            # The epsilon of the rho whose best order is 1 + s: it falls as s grows, while it is positive.
            return (target - math.log1p(s)) * (2 * s + 1) / (s * s) - math.log1p(1 / s) > goal

        s = _best(epsilon_is_above)
        return _down((_decimal(exact_epsilon) - _offset(s, log)) / (1 + s))


def epsilon_from_rho_loose(rho: Number, delta: Number) -> float:
    """The older epsilon = rho + 2√(rho·ln(1/δ)), BS Proposition 1.3: only to reproduce papers."""
    exact_rho = positive(rho, "rho")
    with localcontext(_LONG):
        value = _decimal(exact_rho)
        return rounded_up(value + 2 * (value * _log_inverse(delta)).sqrt())


def rho_from_epsilon_loose(epsilon: Number, delta: Number) -> Fraction:
    """The rho whose loose epsilon is epsilon, rounded down to 12 digits: only to reproduce papers."""
    exact_epsilon = positive(epsilon, "epsilon")
    with localcontext(_LONG):
        value, log = _decimal(exact_epsilon), _log_inverse(delta)
        return _down((value / ((value + log).sqrt() + log.sqrt())) ** 2)


def _best(too_small: Callable[[float], bool]) -> Decimal:
    """Find the best a − 1 by bisection on its logarithm, within about 1e-12 of it."""
    low, high = -_LOG_ORDER_LESS_1, _LOG_ORDER_LESS_1
    for _ in range(50):
        middle = (low + high) / 2
        if too_small(math.exp(middle)):
            low = middle
        else:
            high = middle
    return Decimal(math.exp(high))


def _offset(s: Decimal, log_inverse_delta: Decimal) -> Decimal:
    """Compute g(a) at a = 1 + s."""
    return (log_inverse_delta - (1 + s).ln()) / s + (s / (1 + s)).ln()


def _log_inverse(delta: Number) -> Decimal:
    return -_decimal(delta_between_0_and_1(delta)).ln()


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _down(value: Decimal) -> Fraction:
    return Fraction(Context(prec=12, rounding=ROUND_FLOOR).plus(value * (1 - _SLACK)))
