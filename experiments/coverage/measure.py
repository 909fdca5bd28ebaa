"""Releases of each table at each loss, several times, and how often their intervals hold the truth."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from scipy.stats import binom

import treetop as tt
from experiments.kit.cases import TRIP, Table
from experiments.kit.runs import Kept
from treetop.advice.coverage import Coverage, LevelCoverage, measure_coverage, pooled, release_on_trial
from treetop.counts.counts import Counts
from treetop.noise import Key

EPSILONS = (0.1, 1.0, 4.0, 10.0)
DELTA = 1e-8
CONFIDENCE = 0.95
Run = tuple[LevelCoverage, ...]
"""The coverage of every level in one release."""
CHANCE = 0.0005
"""What is less likely than this is not put down to chance."""


@dataclass(frozen=True, eq=False)
class Study:
    """What was found on one table."""

    title: str
    total: int
    """The number of trips."""
    true_leaves: int
    """How many leaves have trips."""
    runs: int
    """How many releases there were at each loss."""
    found: Mapping[float, tuple[LevelCoverage, ...]] = field(repr=False)
    """By epsilon, the coverage of all levels, over all releases."""

    @property
    def leaves(self) -> int:
        """How many leaves the public domain has."""
        return next(iter(self.found.values()))[-1].all_sizes.every.nodes // self.runs


class Cell(NamedTuple):
    """The coverage of some nodes of one level."""

    study: Study
    epsilon: float
    level: LevelCoverage
    nodes: Coverage


def study(
    table: Table, epsilons: Sequence[float] = EPSILONS, runs: int | None = None, kept: Kept | None = None
) -> Study:
    """Release a table at every loss, and compare intervals with the truth."""
    runs, keep = runs or table.runs, kept or Kept()
    found = {}
    for epsilon in epsilons:
        plan = tt.Plan(
            table.spine,
            TRIP,
            tt.Loss(epsilon=epsilon, delta=DELTA, accounting="zcdp"),
            confidence=CONFIDENCE,
            margins="none",
        )
        names = [f"coverage {table.name} {epsilon:g} {run}" for run in range(runs)]
        found[epsilon] = pooled([keep.run(Run, name, partial(_run, plan, table.truth, name)) for name in names])
    return Study(table.title, table.truth.total, len(table.truth), runs, found)


def _run(plan: tt.Plan, truth: Counts, name: str) -> Run:
    # The tables are public, so the noise may be too: a run can be repeated.
    key = Key(hashlib.blake2b(name.encode(), digest_size=32).digest())
    return measure_coverage(release_on_trial(plan, truth, key), truth, CONFIDENCE)


def measured(studies: Sequence[Study]) -> Iterator[Cell]:
    """Yield the measured nodes of all levels that have any."""
    for one in studies:
        for epsilon, rows in one.found.items():
            for row in rows:
                if row.all_sizes.measured.nodes:
                    yield Cell(one, epsilon, row, row.all_sizes.measured)


def by_size(studies: Sequence[Study]) -> Iterator[Cell]:
    """Yield the public nodes of each size, of all levels that have any."""
    for one in studies:
        for epsilon, rows in one.found.items():
            for row in rows[1:]:
                yield from (Cell(one, epsilon, row, size.every) for size in row.sizes if size.every.nodes)


def too_low(cell: Cell) -> bool:
    """Whether fewer intervals held than were promised, by more than chance explains."""
    return bool(binom.cdf(cell.nodes.covered, cell.nodes.nodes, CONFIDENCE) < CHANCE)


def lost(row: LevelCoverage) -> Coverage:
    """Return the coverage of the nodes that are released as zero and are truly above it."""
    return sum((size.zeros for size in row.sizes[1:]), Coverage(0, 0, 0.0))


def invented(row: LevelCoverage) -> Coverage:
    """Return the coverage of the nodes that are released above zero and are truly zero."""
    return row.sizes[0].positives
