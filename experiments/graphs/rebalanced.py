"""Rebalancing as it was published, by the true counts, and privately, of a whole release: the paper's Figure 8.

As published, a count has noise, and then a second noise whose mean depends on the true count: above zero where that is
a large share of its region, below where it is a small one, linear in between. Negative counts are dropped. Neither
the slope nor the share at which the mean is zero is stated: here the mean is as large as the noise's standard deviation
where a group is its whole region, and zero at one half or, in a second reading, at the average share of a group. The
second noise has the law of the first.

Privately, the total, the regions and the groups are measured, a third of the loss each, and all of them are made to add
up from the top down: by the repair alone, or each pulled towards shares of its released parent. Only noisy values and
public shares are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.graphs.networks import Network, town_counts
from experiments.graphs.rebalance import rebalance
from experiments.kit.runs import key
from treetop.noise import DiscreteGaussian, Key, NoiseStream
from treetop.privacy import rho_from_epsilon
from treetop.repair import euclidean

DELTA = 1e-8
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FIRST, HALF, AVERAGE = "published, first noise only", "published, even at a half", "published, even at the average"
REPAIRED, EVEN, PUBLIC = "private, repaired", "private, pulled to even shares", "private, pulled to public shares"
PUBLISHED = (FIRST, HALF, AVERAGE)
PRIVATE = (REPAIRED, EVEN, PUBLIC)
METHODS = (*PUBLISHED, *PRIVATE)
BESIDE = {HALF: FIRST, AVERAGE: FIRST, EVEN: REPAIRED, PUBLIC: REPAIRED}
"""What each way of rebalancing is to be compared with: the same noise, not rebalanced."""


@dataclass(frozen=True, eq=False)
class Rebalancing:
    """The groups of one network, with and without rebalancing."""

    epsilons: tuple[float, ...]
    errors: dict[str, Floats]
    """By method, the mean absolute error of a group, by epsilon and run."""
    bias: dict[str, Floats]
    """By method, the mean signed error of the groups in each quarter of sizes, small to large: by epsilon, quarter and
    run."""
    moved: dict[str, Floats]
    """By published way, the furthest that one person moves the mean of a count, by epsilon: the noise is for 1."""

    def ratio(self, method: str) -> Floats:
        """Return by epsilon the error with rebalancing over that without."""
        ratios: Floats = self.errors[method].mean(axis=1) / self.errors[BESIDE[method]].mean(axis=1)
        return ratios

    def moved_to_small(self, method: str) -> tuple[Floats, Floats]:
        """Return by epsilon how much more the smallest quarter gains than the largest, run by run, and its standard
        error."""
        gain = self.bias[method][:, 0] - self.bias[method][:, 3]
        return gain.mean(axis=-1), gain.std(axis=-1, ddof=1) / np.sqrt(gain.shape[-1])

    def shift(self, method: str, beside: str | None = None) -> tuple[Floats, Floats]:
        """Return the mean bias by epsilon and quarter, and its standard error; beside another method, their difference,
        run by run."""
        bias = self.bias[method] - (0 if beside is None else self.bias[beside])
        spread = bias.std(axis=-1, ddof=1) / np.sqrt(bias.shape[-1])
        return bias.mean(axis=-1), spread


def rebalancing(network: Network, epsilons: Sequence[float], runs: int) -> Rebalancing:
    """Rebalance the people of every group, in every way."""
    families = town_counts(network)
    size = np.concatenate(families)
    quarter = np.searchsorted(np.quantile(size, [0.25, 0.5, 0.75]), size, side="left")
    shares = _survey(families)
    errors = {method: np.empty((len(epsilons), runs)) for method in METHODS}
    bias = {method: np.empty((len(epsilons), 4, runs)) for method in METHODS}
    for i, epsilon in enumerate(epsilons):
        rho = rho_from_epsilon(epsilon, DELTA)
        for run in range(runs):
            secret = Key(key("rebalance", network.name, epsilon, run))
            found = {
                **_published(families, 1 / (2 * rho), secret),
                **_private(families, 3 / (2 * rho), shares, secret, run),
            }
            for method, counts in found.items():
                error = counts - size
                errors[method][i, run] = np.abs(error).mean()
                bias[method][i, :, run] = [error[quarter == q].mean() for q in range(4)]
    moved = {
        method: np.array([_moved(families, method, epsilon) for epsilon in epsilons]) for method in (HALF, AVERAGE)
    }
    return Rebalancing(tuple(epsilons), errors, bias, moved)


def second_mean(method: str, share: Floats, groups: int, deviation: float) -> Floats:
    """Return the mean of the second noise, by the true share of a group in its region of so many groups."""
    even = 0.5 if method == HALF else 1 / groups
    mean: Floats = deviation * (share - even) / (1 - even)
    return mean


def _noise(law: DiscreteGaussian, secret: Key, purpose: str, number: int) -> Ints:
    drawn = np.empty(number, np.int64)
    NoiseStream(law, secret.derive(purpose)).fill(drawn, 0)
    return drawn


def _published(families: Sequence[Ints], variance: object, secret: Key) -> dict[str, Ints]:
    """Return the counts as they were published: all of the loss on each group, for they do not overlap."""
    law = DiscreteGaussian(variance)  # type: ignore[arg-type]
    size = np.concatenate(families)
    first, second = (_noise(law, secret, purpose, len(size)) for purpose in ("first", "second"))
    found = {FIRST: np.maximum(size + first, 0)}
    # A mean that is not whole is rounded at random, so that it is the mean that the rule asks for.
    part = np.random.default_rng(list(secret.derive("rounding").secret)).random(len(size))
    for method in (HALF, AVERAGE):
        mean = np.concatenate(
            [second_mean(method, own / max(own.sum(), 1), len(own), law.standard_deviation) for own in families]
        )
        found[method] = np.maximum(size + first + second + np.floor(mean + part).astype(np.int64), 0)
    return found


def _private(
    families: Sequence[Ints], variance: object, shares: Sequence[Floats], secret: Key, seed: int
) -> dict[str, Ints]:
    """Return the groups of a whole release: the total, the regions and the groups measured, then made to add up."""
    law = DiscreteGaussian(variance)  # type: ignore[arg-type]
    regions = np.array([own.sum() for own in families])
    total = max(0, int(regions.sum() + _noise(law, secret, "total", 1)[0]))
    above = regions + _noise(law, secret, "regions", len(regions))
    below = np.split(
        np.concatenate(families) + _noise(law, secret, "groups", sum(map(len, families))),
        np.cumsum([len(own) for own in families])[:-1],
    )
    noise = float(law.variance)

    def down(share: Callable[[Ints, int, Floats | None], Ints], given: Sequence[Floats | None]) -> Ints:
        parents = share(above, total, given[0])
        return np.concatenate([share(x, int(c), p) for x, c, p in zip(below, parents, given[1:], strict=True)])

    def repaired(x: Ints, parent: int, _: Floats | None) -> Ints:
        return euclidean(x, parent, "ascending", seed=seed)

    def pulled(x: Ints, parent: int, p: Floats | None) -> Ints:
        return rebalance(x, parent, noise, p, seed=seed).count

    even = [None] * (len(families) + 1)
    return {REPAIRED: down(repaired, even), EVEN: down(pulled, even), PUBLIC: down(pulled, shares)}


def _survey(families: Sequence[Ints]) -> list[Floats]:
    """Return public shares of regions, and of the groups of each: a made-up survey of 2,000 other people of each."""
    draw = np.random.default_rng(7)
    found = []
    for own in (np.array([own.sum() for own in families]), *families):
        asked = np.maximum(draw.multinomial(2_000, own / max(own.sum(), 1)), 0.5)
        found.append(asked / asked.sum())
    return found


def _moved(families: Sequence[Ints], method: str, epsilon: float) -> float:
    """Return how far one person more moves the expected output of some group, by the published rule."""
    deviation = DiscreteGaussian(1 / (2 * rho_from_epsilon(epsilon, DELTA))).standard_deviation
    furthest = 0.0
    for own in families:
        people, groups = own.sum(), len(own)
        before = own + second_mean(method, own / max(people, 1), groups, deviation)
        after = own + 1 + second_mean(method, (own + 1) / (people + 1), groups, deviation)
        furthest = max(furthest, float(np.abs(after - before).max()))
    return furthest
