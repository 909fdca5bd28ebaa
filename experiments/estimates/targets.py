"""The targets, and whether each is met: table by table and level by level, with the chance of a few runs told apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from experiments.estimates.measure import BASELINE, DEFAULT, EXACT, FEW_CHILDREN, LOWER, Setting, Study

CONFIDENCE = 0.95
"""A target is met or missed where the interval of this confidence lies on one side of it."""
JUDGED = (EXACT, LOWER, DEFAULT)
"""The settings that are held against the targets."""

Verdict = Literal["met", "missed", "not resolved"]
What = Literal["mean", "leaf", "largest", "invented", "invented count"]


@dataclass(frozen=True)
class Compared:
    """A setting beside the baseline, over several runs: a ratio, or a difference."""

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


def ratio(study: Study, setting: Setting, level: int, metric: str, base: Setting = BASELINE) -> Compared:
    """Return the mean of a metric over that of the baseline.

    Runs are paired, so its error is that of the mean of a − R·b, over the mean of b (the delta method).
    """
    ours, theirs = study.values(setting, level, metric), study.values(base, level, metric)
    if theirs.mean() == 0:
        return Compared(1.0 if ours.mean() == 0 else math.inf, 0.0, len(ours))
    value = float(ours.mean() / theirs.mean())
    return Compared(value, _error((ours - value * theirs) / theirs.mean()), len(ours))


def difference(study: Study, setting: Setting, level: int, metric: str) -> Compared:
    """Return the mean of a metric less that of the baseline."""
    apart = study.values(setting, level, metric) - study.values(BASELINE, level, metric)
    return Compared(float(apart.mean()), _error(apart), len(apart))


def _error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf


@dataclass(frozen=True)
class Judged:
    """One target at one level of one table."""

    what: What
    """What is compared."""
    level: int
    """The position in the spine."""
    found: Compared
    """What was measured."""
    goal: float
    """What it should be at most."""

    @property
    def verdict(self) -> Verdict:
        """Whether it is."""
        return self.found.against(self.goal)


def goals(study: Study) -> tuple[float, float]:
    """Return what the mean error should be at most, over that of the baseline: above the leaves, and at the leaves."""
    return (0.75, 0.85) if study.widest <= FEW_CHILDREN else (0.85, 0.88)


def judge(study: Study, setting: Setting) -> Iterator[Judged]:
    """Hold a setting against all targets at all levels."""
    inner, leaf = goals(study)
    last = len(study.levels) - 1
    for level in range(1, last + 1):
        what, goal = ("leaf", leaf) if level == last else ("mean", inner)
        yield Judged(what, level, ratio(study, setting, level, "mean_of_all"), goal)  # type: ignore[arg-type]
        yield Judged("largest", level, ratio(study, setting, level, "largest"), 1.0)
    if setting.way == "fewer-invented":
        yield Judged("invented", last, difference(study, setting, last, "false_discoveries"), 0.0)
        yield Judged("invented count", last, difference(study, setting, last, "false_mass"), 0.0)
