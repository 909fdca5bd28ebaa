"""The trade-off of a single count, as in the paper's Figure 5: its noise by epsilon, and where the best of it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.graphs.networks import Network, town_counts
from treetop.noise import DiscreteGaussian
from treetop.privacy import epsilon_from_rho, rho_from_epsilon, rho_from_epsilon_loose

PAPER_DELTA = 0.1
"""The paper's delta."""
DELTAS = (PAPER_DELTA, 1e-8)
RANGES = ((0.1, 1.0), (0.1, 2.0), (0.1, 5.0), (0.1, 10.0), (0.01, 1.0), (0.5, 10.0))
"""Ranges of epsilon over which one may look at the curve; the paper's own is not stated."""
SHARE = 0.1
"""How large noise may be beside a count, for the epsilon that a count needs."""
POINTS = 400


@dataclass(frozen=True)
class Conversion:
    """What the paper's equation 1 makes of an epsilon and a delta."""

    epsilon: float
    delta: float
    published: float
    """Its rho."""
    ours: float
    """The rho that fits by a tighter conversion."""
    kept: float
    """The epsilon that noise for the published rho keeps, by that conversion: no more than was asked for, if it is
    right."""


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """What Figure 5 can show."""

    epsilons: NDArray[np.float64]
    noise: dict[float, NDArray[np.float64]]
    """By delta, the standard deviation of a count's noise at each epsilon."""
    knees: dict[float, tuple[float, ...]]
    """By delta, the knee of that curve over each of the ranges."""
    needed: dict[str, tuple[float, float]]
    """Of some groups of people, the median count, and the epsilon at which noise is a tenth of it at that delta."""
    conversions: tuple[Conversion, ...]
    """The paper's equation 1, at some losses."""


def deviation(epsilon: float, delta: float) -> float:
    """Return the standard deviation of one count's noise, by the paper's conversion from epsilon and delta to rho."""
    return DiscreteGaussian(1 / (2 * rho_from_epsilon_loose(epsilon, delta))).standard_deviation


def knee(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return where a falling curve turns: the point furthest below the line between its ends, on axes of one length."""
    across, up = (x - x[0]) / (x[-1] - x[0]), (y - y[-1]) / (y[0] - y[-1])
    return float(x[int(np.argmin(across + up))])


def tradeoff(network: Network, points: int = POINTS) -> Tradeoff:
    """Compute the curve, its knees, and what counts of different sizes need."""
    epsilons = np.geomspace(0.01, 10, points)
    noise = {delta: np.array([deviation(epsilon, delta) for epsilon in epsilons]) for delta in DELTAS}
    knees = {delta: tuple(knee(*_within(epsilons, curve, one)) for one in RANGES) for delta, curve in noise.items()}
    families = town_counts(network)
    towns = np.concatenate(families)
    sizes = {
        "regions": [float(own.sum()) for own in families],
        "towns": towns.tolist(),
        "a hobby in a town, of ten": (towns / 10).tolist(),
    }
    needed = {name: _needed(float(np.median(own)), epsilons, noise[PAPER_DELTA]) for name, own in sizes.items()}
    return Tradeoff(epsilons, noise, knees, needed, tuple(map(_converted, *zip(*_LOSSES, strict=True))))


_LOSSES = [(epsilon, delta) for delta in DELTAS for epsilon in (0.1, 0.3, 0.5, 1.0, 5.0)]


def _converted(epsilon: float, delta: float) -> Conversion:
    published = rho_from_epsilon_loose(epsilon, delta)
    kept = epsilon_from_rho(published, delta)
    return Conversion(epsilon, delta, float(published), float(rho_from_epsilon(epsilon, delta)), kept)


def _within(
    x: NDArray[np.float64], y: NDArray[np.float64], ends: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the curve between two epsilons, at points as near to each other as an eye would have them."""
    at = np.linspace(ends[0], ends[1], len(x))
    return at, np.interp(at, x, y)


def _needed(count: float, epsilons: NDArray[np.float64], noise: NDArray[np.float64]) -> tuple[float, float]:
    """Return a count and the first epsilon at which its noise is small beside it; infinite where none is."""
    (enough,) = np.nonzero(noise <= SHARE * count)
    return count, float(epsilons[enough[0]]) if len(enough) else float("inf")
