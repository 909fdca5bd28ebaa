"""Moments of a discrete Gaussian of small scale, whole and beyond each count, by summing its masses."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from treetop.errors import LossError

Floats: TypeAlias = NDArray[np.float64]

SUMMED_UP_TO = 16.0
"""The discrete Gaussian is summed up to this scale; beyond, the closed form is within 1e-9 of the sums."""


class Sums(NamedTuple):
    """Moments of a discrete Gaussian, whole and beyond each n: tail2[n] is Σ_{j>n} j²·P(X = j)."""

    at: Floats
    """The counts n for which there are sums: 0, 1, 2, …"""
    second: float
    """The variance of the law."""
    fourth: float
    """Its fourth moment."""
    tail0: Floats
    """The chance to be beyond n."""
    tail1: Floats
    """The part of the first moment beyond n."""
    tail2: Floats
    """The part of the second."""
    tail4: Floats
    """The part of the fourth."""

    def place(self, n: Floats) -> NDArray[np.int64]:
        """Where the sums of a count stand; beyond the last they are zero."""
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
