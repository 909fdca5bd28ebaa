"""Two ways beside each other over several runs, with the chance of a few runs told apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

CONFIDENCE = 0.95
"""A target is met or missed where the interval of this confidence lies on one side of it."""

Verdict = Literal["met", "missed", "not resolved"]


@dataclass(frozen=True)
class Compared:
    """A ratio, or a difference."""

    value: float
    """The ratio of the means, or the difference of them."""
    error: float
    """Its standard error; infinite after a single run."""
    runs: int
    """How many runs there were of each."""

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"

    @property
    def reach(self) -> float:
        """Half of the width of its interval: a quantile of Student's law, since the error is from a few runs."""
        return float(student.ppf((1 + CONFIDENCE) / 2, self.runs - 1)) * self.error if self.runs > 1 else math.inf

    def against(self, goal: float) -> Verdict:
        """Say whether it is at most the goal."""
        if self.value + self.reach <= goal:
            return "met"
        return "missed" if self.value - self.reach > goal else "not resolved"


def ratio_of(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> Compared:
    """Return the mean over that of others.

    Runs are paired, so its error is that of the mean of a − R·b, over the mean of b (the delta method).
    """
    if theirs.mean() == 0:
        return Compared(1.0 if ours.mean() == 0 else math.inf, 0.0, len(ours))
    value = float(ours.mean() / theirs.mean())
    return Compared(value, _error((ours - value * theirs) / theirs.mean()), len(ours))


def difference_of(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> Compared:
    """Return the mean less that of others."""
    apart = ours - theirs
    return Compared(float(apart.mean()), _error(apart), len(apart))


def _error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf
