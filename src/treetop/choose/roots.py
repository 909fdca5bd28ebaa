"""Where a falling function reaches a value: a root finder for the one-dimensional problems of planning."""

from __future__ import annotations

import math
from collections.abc import Callable

_STEPS = 200
_GROW = 60
_TOLERANCE = 1e-14


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
