"""What is measured: allocations, and the bias and variance of releases with Laplace noise, made consistent or not.

As in the paper the noise is continuous, of scale 1/epsilon at each level, and no count is released below zero. It is
drawn from a seeded generator, which is fit for public tables only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from experiments.loss_split.laplace import LaplaceErrors
from experiments.loss_split.shares import Misallocation, Weighting, misallocation
from experiments.loss_split.trees import Population, Tree
from treetop.advice._error_laws import Term, least_error

Floats: TypeAlias = NDArray[np.float64]
Noisy: TypeAlias = tuple[Floats, Floats, Floats]
Budgets: TypeAlias = tuple[float, ...]

LAW = LaplaceErrors(1.0)
"""The paper's: a person more or less moves one count of each level by one."""
WEIGHTINGS: tuple[Weighting, ...] = ("log", "linear", "quadratic")
EQUAL = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Errors:
    """Squared errors of a release, summed over the nodes of each level."""

    bias: Budgets
    """The squared bias of the state, the tracts and the blocks."""
    variance: Budgets
    """The variance of the same."""

    @property
    def mse(self) -> Budgets:
        """The mean squared error of each level."""
        return tuple(bias + variance for bias, variance in zip(self.bias, self.variance, strict=True))

    @property
    def total(self) -> float:
        """The mean squared error of all levels."""
        return sum(self.mse)


@dataclass(frozen=True)
class Outcome:
    """What many releases of one tree with one division of one loss came to."""

    budgets: Budgets
    """The epsilon of each level."""
    separate: Errors
    """The errors of counts that are not made consistent."""
    consistent: Errors
    """The errors after top-down consistency (program 8)."""
    bottom_up: Errors
    """The errors where tracts and state are sums of the released blocks."""
    raw_sums: Errors
    """The same with blocks that may be below zero: their sums have no bias."""
    shares: Mapping[tuple[int, Weighting], Misallocation]
    """By tract and weighting, the errors of shares by the consistent blocks."""


def terms(population: Population, weights: Sequence[float] = EQUAL) -> list[Term]:
    """Return the objective of the programs for a population."""
    return [Term.of(LAW, counts, weight) for counts, weight in zip(population.levels, weights, strict=True)]


def best(tree: Tree, epsilon: float, weights: Sequence[float] = EQUAL) -> Budgets:
    """Divide an epsilon by program 6, for the prior."""
    return least_error(terms(tree.prior, weights), epsilon).budgets


def uniform(epsilon: float) -> Budgets:
    """Divide an epsilon evenly."""
    return (epsilon / 3,) * 3


def closed_form(population: Population, budgets: Budgets) -> Errors:
    """Return the errors of separate counts by their formulas."""
    pairs = list(zip(population.levels, budgets, strict=True))
    return Errors(
        tuple(float((LAW.bias(budget, counts) ** 2).sum()) for counts, budget in pairs),
        tuple(float(LAW.variance(budget, counts).sum()) for counts, budget in pairs),
    )


def leaves_only(population: Population, epsilon: float, clipped: bool) -> Errors:
    """Return, by formula, the errors of sums of blocks that are given the whole epsilon."""
    blocks = population.blocks
    bias = LAW.bias(epsilon, blocks) if clipped else np.zeros(len(blocks))
    variance = LAW.variance(epsilon, blocks) if clipped else np.full(len(blocks), LAW.noise_variance(epsilon))
    tracts = np.add.reduceat(bias, population.first)
    squares = tuple(float((level**2).sum()) for level in (bias.sum(keepdims=True), tracts, bias))
    return Errors(squares, (float(variance.sum()),) * 3)


def measure(tree: Tree, budgets: Budgets, runs: int, seed: int, tracts: Sequence[int] = ()) -> Outcome:
    """Release the tree many times, and take the errors; the same seed draws the same noise up to its scale."""
    rng = np.random.default_rng(seed)
    ways: tuple[Callable[[Population, Noisy], Noisy], ...] = (separate, top_down, bottom_up, raw_sums)
    moments = [[_Moments(len(counts)) for counts in tree.truth.levels] for _ in ways]
    dealt: dict[int, list[Floats]] = {tract: [] for tract in tracts}
    for _ in range(runs):
        noisy = draw(tree.truth, budgets, rng)
        for way, levels in zip(ways, moments, strict=True):
            released = way(tree.truth, noisy)
            for moment, counts, truth in zip(levels, released, tree.truth.levels, strict=True):
                moment.add(counts - truth)
            if way is top_down:
                for tract, rows in dealt.items():
                    rows.append(released[2][tree.truth.inside(tract)])
    alone, down, up, raw = (
        Errors(tuple(m.bias for m in levels), tuple(m.variance for m in levels)) for levels in moments
    )
    shares = {
        (tract, weighting): _shared(tree.truth.blocks[tree.truth.inside(tract)], rows, weighting)
        for tract, rows in dealt.items()
        for weighting in WEIGHTINGS
    }
    return Outcome(budgets, alone, down, up, raw, shares)


def draw(population: Population, budgets: Budgets, rng: np.random.Generator) -> Noisy:
    """Add noise to every count."""
    pairs = zip(population.levels, budgets, strict=True)
    state, tracts, blocks = (counts + rng.laplace(0, 1 / budget, len(counts)) for counts, budget in pairs)
    return state, tracts, blocks


def separate(population: Population, noisy: Noisy) -> Noisy:
    """Set what is below zero to zero, and leave it at that."""
    state, tracts, blocks = (np.maximum(counts, 0) for counts in noisy)
    return state, tracts, blocks


def top_down(population: Population, noisy: Noisy) -> Noisy:
    """Move tracts to the state's count and blocks to their tract's, by least squares and not below zero: program 8."""
    state, tracts, blocks = separate(population, noisy)
    tracts = project(tracts, np.zeros(1, np.int64), state)
    return state, tracts, project(blocks, population.first, tracts)


def bottom_up(population: Population, noisy: Noisy) -> Noisy:
    """Take the sums of the blocks, none below zero, for tracts and state."""
    return raw_sums(population, separate(population, noisy))


def raw_sums(population: Population, noisy: Noisy) -> Noisy:
    """Take the sums of the blocks as they were measured."""
    tracts = np.add.reduceat(noisy[2], population.first)
    return tracts.sum(keepdims=True), tracts, noisy[2]


def project(values: Floats, first: NDArray[np.int64], totals: Floats) -> Floats:
    """Move each group of values, which start at `first`, to the nearest point that is not below zero and has its total.

    The point is max(value − t, 0), with t found from the largest values down (Held, Wolfe and Crowder 1974).
    """
    sizes = np.diff(np.append(first, len(values)))
    group = np.repeat(np.arange(len(first)), sizes)
    order = np.lexsort((-values, group))
    ordered = values[order]
    sums = np.cumsum(ordered)
    before = np.concatenate([[0.0], sums])[first]
    place = np.arange(len(values)) - first[group] + 1
    shift = (sums - before[group] - totals[group]) / place
    last = np.maximum.reduceat(np.where(ordered >= shift, place, 1), first)
    result = np.empty_like(values)
    result[order] = np.maximum(ordered - shift[first + last - 1][group], 0)
    return result


class _Moments:
    """Sums over runs, from which bias and variance are had without bias of their own."""

    def __init__(self, nodes: int) -> None:
        self.runs = 0
        self.sum = np.zeros(nodes)
        self.squares = np.zeros(nodes)

    def add(self, errors: Floats) -> None:
        self.runs += 1
        self.sum += errors
        self.squares += errors**2

    @property
    def variance(self) -> float:
        return float((self.squares - self.sum**2 / self.runs).sum() / (self.runs - 1))

    @property
    def bias(self) -> float:
        # The squared mean of the errors has 1/runs of their variance in it, which is no bias.
        return max(float(((self.sum / self.runs) ** 2).sum()) - self.variance / self.runs, 0.0)


def _shared(truth: NDArray[np.int64], rows: Sequence[Floats], weighting: Weighting) -> Misallocation:
    """Take out of the bias what is due to the finite number of releases."""
    found = misallocation(truth, np.array(rows), weighting)
    noise = found.variance / (len(rows) - 1)
    return Misallocation(max(found.bias - noise, 0.0), found.variance + noise)
