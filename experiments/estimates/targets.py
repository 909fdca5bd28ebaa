"""The targets, and whether each is met: table by table and level by level, with the chance of a few runs told apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from experiments.estimates.measure import BASELINE, DEFAULT, EXACT, FEW_CHILDREN, LOWER, Setting, Study
from experiments.kit.compared import Compared, Verdict, difference_of, ratio_of
from experiments.kit.verdicts import verdict

JUDGED = (EXACT, LOWER, DEFAULT)
"""The settings that are held against the targets."""

What = Literal["mean", "leaf", "largest", "invented", "invented count"]


def ratio(study: Study, setting: Setting, level: int, metric: str, base: Setting = BASELINE) -> Compared:
    """Return the mean of a metric over that of the baseline."""
    return ratio_of(study.values(setting, level, metric), study.values(base, level, metric))


def difference(study: Study, setting: Setting, level: int, metric: str) -> Compared:
    """Return the mean of a metric less that of the baseline."""
    return difference_of(study.values(setting, level, metric), study.values(BASELINE, level, metric))


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


@verdict("estimates.targets")
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
