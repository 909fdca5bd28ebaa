"""Shares of a fixed sum: how far money, or seats, go astray when they are dealt out by released counts.

The task of Ko, Ziani and Fioretto, "Optimal Allocation of Privacy Budget on Hierarchical Data Release", sections 5 and
B.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from experiments.loss_split.laplace import LaplaceErrors
from treetop._util.dtypes import Floats

Weighting: TypeAlias = Literal["log", "linear", "quadratic"]

WEIGHTINGS: Mapping[str, Callable[[Floats], Floats]] = {
    "log": np.log1p,
    "linear": lambda p: p,
    "quadratic": lambda p: p * p,
}
"""What a group of the share p of all people weighs: log(p + 1) favours small groups, p² large ones."""


@dataclass(frozen=True)
class Misallocation:
    """How far shares of a fixed sum are off, summed over groups, in squared percent of the sum."""

    bias: float
    """The squared mean errors of the shares over many releases."""
    variance: float
    """Their variances."""

    @property
    def mse(self) -> float:
        """The mean squared error: both together."""
        return self.bias + self.variance


def deal(counts: ArrayLike, weighting: Weighting = "linear") -> Floats:
    """Return each group's share of a fixed sum, by the last axis; the same for all where all counts are zero."""
    n = np.asarray(counts, dtype=np.float64)
    total = n.sum(axis=-1, keepdims=True)
    weight = WEIGHTINGS[weighting](np.where(total > 0, n / np.maximum(total, 1e-300), 1.0))
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def misallocation(truth: ArrayLike, estimates: ArrayLike, weighting: Weighting = "linear") -> Misallocation:
    """Compare the shares that many releases give (a row each) with those that the true counts give."""
    error = 100 * deal(np.atleast_2d(estimates), weighting) - 100 * deal(truth, weighting)
    return Misallocation(float((error.mean(axis=0) ** 2).sum()), float(error.var(axis=0).sum()))


@dataclass(frozen=True)
class SkewedBias:
    """What clipping at zero adds to a population, and how uneven the population is."""

    skewness: float
    """The third standardised moment of the counts; 0 for even ones."""
    bias: float
    """By how much all released counts together are too high on average."""
    least: float
    """The same if as many people were spread evenly over as many groups: no population has less."""


def skewed_bias(law: LaplaceErrors, budget: float, counts: ArrayLike) -> SkewedBias:
    """Return the bias of a population and its skewness.

    The bias of one count is a convex function of it, so the more uneven of two populations (the one that majorises the
    other) has at least the bias of the other: Theorem 4 of the paper, by Karamata's inequality.
    """
    n = np.asarray(counts, dtype=np.float64)
    spread = n.std()
    skewness = float((((n - n.mean()) / spread) ** 3).mean()) if spread > 0 else 0.0
    return SkewedBias(skewness, float(law.bias(budget, n).sum()), float(law.bias(budget, even(n)).sum()))


def even(counts: ArrayLike) -> Floats:
    """Return as many people in as many groups, as evenly as whole numbers allow."""
    n = np.asarray(counts, dtype=np.float64)
    each, more = divmod(float(n.sum()), len(n))
    return each + (np.arange(len(n)) < more).astype(np.float64)


def majorises(uneven: ArrayLike, other: ArrayLike) -> bool:
    """Whether the first population has as many people, and its largest groups hold at least as many for any number."""
    one, two = (np.sort(np.asarray(counts, dtype=np.float64))[::-1] for counts in (uneven, other))
    return len(one) == len(two) and one.sum() == two.sum() and bool((np.cumsum(one) >= np.cumsum(two)).all())
