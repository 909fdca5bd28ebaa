"""The best shares of the loss for some tables, where errors of some are cared for.

They minimise Σ weight·log V over the shares. With Gaussian noise, precision is proportional to the share, V is a sum of
inverses of linear functions, hence its logarithm is convex: there is one optimum.
"""

from __future__ import annotations

import math

import numpy as np

from treetop.choose.error_laws import Floats
from treetop.choose.expected import ErrorModel

LEAST_SHARE = 0.01
"""What every table gets that is measured at all: a level must be measured for the descent to go on below it."""
_STEPS = 1000
_CLOSE = 1e-9


def best_shares(model: ErrorModel, cares: Floats, scale: Floats, power: int = 1, least: float = LEAST_SHARE) -> Floats:
    """Return the shares of the measured tables, none below `least`, with the smallest Σ cares·log V.

    A table's precision is scale·share^power. At the optimum, shares are in proportion to their pulls, but for those at
    the least. A step goes so far towards that on the logarithmic scale that tables which add to one error alone are
    settled at once. (With power 2, Laplace noise, there may be several optima, and this is one of them.)
    """
    share = np.full(len(scale), 1 / len(scale))
    if len(share) * least >= 1:
        return share
    step = 1 / (1 + power)
    value = math.inf
    for _ in range(_STEPS):
        new, pull = model.pulls(scale * share**power, cares)
        if value - new < _CLOSE:
            break
        value, share = new, _raised(share ** (1 - step) * (pull / pull.sum()) ** step, least)
    return share


def _raised(share: Floats, least: float) -> Floats:
    """Scale shares to a sum of 1 with none below the least."""
    low = np.zeros(len(share), dtype=bool)
    while True:
        free = ~low
        scaled = np.where(low, least, share * (1 - least * low.sum()) / share[free].sum())
        if not (scaled[free] < least).any():
            return scaled
        low |= scaled < least
