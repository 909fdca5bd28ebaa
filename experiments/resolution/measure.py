"""Releases of one table with each resolution, several times, and their errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Literal

import treetop as tt
from experiments.kit import outcomes
from experiments.kit.cases import TRIP, Table, commuters_in_counties, made_up, new_york, slovenia
from experiments.kit.runs import Kept

EPSILONS = (1.0, 10.0)
DELTA = 1e-8
RUNS = 5
TREES = ("binary", "random")


@dataclass(frozen=True)
class Setting:
    """When a child is named."""

    label: str
    """The name for people."""
    fdr: float | None = None
    """The rate of false discoveries that is asked for."""
    sigmas: float | None = None
    """How many standard deviations a measurement must reach."""
    margins: Literal["none", "each"] = "none"
    """The margins of the plan; the default plan has each."""

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
    Setting("full, margins", margins="each"),
    Setting("fdr 0.05, margins", fdr=0.05, margins="each"),
)
"""Without margins first; a default plan is `full, margins`."""

Outcome = outcomes.Outcome[Setting]
Study = outcomes.Study[Setting]


def tables(data: Path | None) -> Iterator[Table]:
    """Yield the tables one after the other; without `data` only the made-up ones."""
    yield from map(sparse, TREES)
    if data is not None:
        yield from (read(data) for read in (slovenia, new_york, commuters_in_counties))


def sparse(tree: str) -> Table:
    """Make the paper's sparse table on binary or on random trees: one pair in a hundred has trips."""
    return replace(made_up(f"{tree}-sparse"), title=f"Made up: {tree} tree, sparse")


def study(table: Table, epsilons: Sequence[float] = EPSILONS, runs: int = RUNS, kept: Kept | None = None) -> Study:
    """Release a table with every loss and every setting, as often as asked, and compare with the truth."""
    return outcomes.try_all(table, _plans(table, epsilons), runs, kept)


def _plans(table: Table, epsilons: Sequence[float]) -> Iterator[tuple[float, Setting, str, tt.Plan]]:
    for epsilon, setting in product(epsilons, SETTINGS):
        loss = tt.Loss(epsilon=epsilon, delta=DELTA, accounting="exact")
        plan = tt.Plan(
            table.spine, TRIP, loss, resolve=setting.resolve, confidence=None, margins=setting.margins,  # type: ignore[arg-type]
        )  # fmt: skip
        yield epsilon, setting, f"resolution {table.name} {epsilon:g} {setting.label}", plan


def excess(outcome: Outcome, level: int) -> float:
    """Return by how many standard errors the mean rate of false discoveries is above the one that was asked for."""
    assert outcome.way.fdr is not None
    found = outcome.values(level, "false_discoveries")
    above = fmean(found) - outcome.way.fdr
    error = stdev(found) / len(found) ** 0.5 if len(found) > 1 else 0.0
    return above / error if error > 0 else (0.0 if above <= 0 else float("inf"))
