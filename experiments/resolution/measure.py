"""Releases of one table with each resolution, several times, and their errors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, stdev

import treetop as tt
from experiments.false_discoveries.measure import Spread
from experiments.false_discoveries.tables import Table
from treetop.evaluate.errors import LevelErrors, measure_errors

EPSILONS = (1.0, 10.0)
DELTA = 1e-8
RUNS = 5


@dataclass(frozen=True)
class Setting:
    """When a child is named."""

    label: str
    """The name for people."""
    fdr: float | None = None
    """The rate of false discoveries that is asked for."""
    sigmas: float | None = None
    """How many standard deviations a measurement must reach."""

    @property
    def resolve(self) -> str | dict[str, float]:
        """What a plan says."""
        if self.fdr is not None:
            return {"fdr": self.fdr}
        return "full" if self.sigmas is None else {"sigmas": self.sigmas}


SETTINGS = (
    Setting("full"),
    Setting("fdr 0.10", fdr=0.1),
    Setting("fdr 0.05", fdr=0.05),
    Setting("3 sigmas", sigmas=3),
    Setting("fdr 0.01", fdr=0.01),
    Setting("4 sigmas", sigmas=4),
)


@dataclass(frozen=True)
class Outcome:
    """The errors of several releases of one table with one loss and one setting."""

    epsilon: float
    """The loss; delta is `DELTA`."""
    setting: Setting
    """When a child is named."""
    runs: tuple[tuple[LevelErrors, ...], ...]
    """For each run, the errors of every level."""

    def values(self, level: int, metric: str) -> list[float]:
        """Return a metric of `LevelErrors` at one level, run by run; -1 is the leaves."""
        return [float(getattr(run[level], metric)) for run in self.runs]

    def spread(self, level: int, metric: str) -> Spread:
        """Return its mean, least and largest."""
        found = self.values(level, metric)
        return Spread(fmean(found), min(found), max(found))

    def excess(self, level: int) -> float:
        """Return by how many standard errors the mean rate of false discoveries is above the one that was asked for."""
        assert self.setting.fdr is not None
        found = self.values(level, "false_discoveries")
        above = fmean(found) - self.setting.fdr
        error = stdev(found) / len(found) ** 0.5 if len(found) > 1 else 0.0
        return above / error if error > 0 else (0.0 if above <= 0 else float("inf"))


@dataclass(frozen=True, eq=False)
class Study:
    """All outcomes of one table, and what is told of the table itself."""

    name: str
    """A short name, for files and keys."""
    title: str
    """A name for people."""
    total: int
    """The number of trips."""
    levels: tuple[LevelErrors, ...]
    """The levels, with their true and public nodes; the errors are those of one release."""
    outcomes: tuple[Outcome, ...]
    """Everything that was measured."""

    def outcome(self, epsilon: float, setting: Setting) -> Outcome:
        """Return the outcome of a loss and a setting."""
        return next(one for one in self.outcomes if (one.epsilon, one.setting) == (epsilon, setting))

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The losses that were tried."""
        return tuple(dict.fromkeys(one.epsilon for one in self.outcomes))


def study(table: Table, epsilons: Sequence[float] = EPSILONS, runs: int = RUNS) -> Study:
    """Release a table with every loss and every setting, as often as asked, and compare with the truth."""
    outcomes = tuple(
        Outcome(epsilon, setting, tuple(_runs(table, epsilon, setting, runs)))
        for epsilon, setting in product(epsilons, SETTINGS)
    )
    return Study(table.name, table.title, table.truth.total, outcomes[0].runs[0], outcomes)


def _runs(table: Table, epsilon: float, setting: Setting, runs: int) -> Iterator[tuple[LevelErrors, ...]]:
    plan = tt.Plan(
        spine=table.spine,
        unit=tt.Unit("trip", contributions=1, neighbours="replace"),
        loss=tt.Loss(epsilon=epsilon, delta=DELTA, accounting="exact"),
        resolve=setting.resolve,  # type: ignore[arg-type]
        confidence=None,
    )
    for run in range(runs):
        key = hashlib.sha256(f"resolution {table.name} {epsilon:g} {setting.label} {run}".encode()).digest()
        yield measure_errors(plan.release(table.rows, count="count", testing_key=key), table.truth)
