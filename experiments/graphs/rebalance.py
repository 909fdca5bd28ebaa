"""Rebalance: pull noisy counts towards public shares of their noisy parent. Off by default, and seldom worth it.

It reads noisy values only, so it costs nothing. Rebalancing by the true count would release a
number that depends on private data, at no charge. Rebalancing trades variance for bias: it pulls counts that differ
from the public share towards it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treetop._util.dtypes import real_numbers, whole_number
from treetop._util.numbers import MOST
from treetop.errors import NumberError
from treetop.repair import euclidean


@dataclass(frozen=True, eq=False)
class Rebalanced:
    """Counts that were pulled towards their public shares."""

    count: NDArray[np.int64]
    weight: float
    """Factor k of a measurement's distance from its share: 1 keeps the measurement, 0 gives the share itself."""
    pulled: NDArray[np.float64]
    """How far each count was moved towards its share: the bias, if the shares are wrong."""


def rebalance(
    measured: ArrayLike, parent: int, variance: Fraction | float, shares: ArrayLike | None = None, *, seed: int
) -> Rebalanced:
    """Return the counts of a node's children, from their measurements, the released parent and public shares.

    Each is p·C + k·(x − p·C) with k = τ²/(τ² + σ²): x the measurement, C the parent, p the public share (even when
    None), σ² the variance of the noise, and τ² the variance of the measurements about their shares in excess of the
    noise. These are then projected to the nearest non-negative whole numbers that sum to C; `seed` breaks ties.

    >>> rebalance([41, 22, 39], parent=102, variance=100, seed=1).count.tolist()
    [34, 34, 34]
    """
    x = real_numbers(measured, "the measurements", least=-MOST)
    if len(x) == 0:
        raise NumberError("give one measurement a child, and at least one")
    p = np.full(len(x), 1 / len(x)) if shares is None else real_numbers(shares, "the shares")
    if p.shape != x.shape:
        raise NumberError(f"give one measurement and one share a child, not {x.shape} and {p.shape}")
    if (p < 0).any() or abs(p.sum() - 1) > 1e-9:
        raise NumberError("shares are not negative and sum to 1")
    parent = whole_number(parent, "the parent's count")
    noise = float(real_numbers([float(variance)], "the variance", least=0)[0])
    aim = p * parent
    spread = max(0.0, float(((x - aim) ** 2).mean()) - noise)
    weight = spread / (spread + noise) if noise > 0 else 1.0
    drawn = aim + weight * (x - aim)
    return Rebalanced(euclidean(np.rint(drawn), parent, "ascending", seed), weight, drawn - x)
