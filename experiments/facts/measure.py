"""Releases of every table with and without its facts, run by run beside each other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

import treetop as tt
from experiments.facts.tables import Known, tables
from experiments.kit.cases import TRIP
from experiments.kit.compared import Compared, ratio_of
from experiments.kit.runs import Kept, key, release
from treetop.release.errors import measure_errors
from treetop.release.release import Release

__all__ = ["EPSILONS", "FEW", "RUNS", "Level", "Run", "Study", "study", "tables"]

EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-8
RUNS = 10
"""How often a table is released with facts, and as often without, at each loss."""
FEW = {"commuters": 5}
"""The same for large tables."""


@dataclass(frozen=True)
class Level:
    """One level in one release."""

    counts: str
    """What it counts."""
    off: float
    """The sum of all absolute errors."""
    largest: float
    """The largest error."""
    released: int
    """How many nodes are released above zero."""
    invented: int
    """How many of them are truly zero."""
    draws: int
    """How many nodes were measured."""


@dataclass(frozen=True)
class Run:
    """One release."""

    levels: tuple[Level, ...]
    """Every level, from the top."""
    seconds: float
    """How long it took, counts at hand."""

    @property
    def draws(self) -> int:
        """How many measurements it made."""
        return sum(level.draws for level in self.levels)


@dataclass(frozen=True, eq=False)
class Study:
    """All that was measured of one table."""

    known: Known
    """The table, and what is public of it."""
    nodes: tuple[int, ...]
    """How many nodes of each level are possible."""
    public: tuple[int, ...]
    """How many there would be without facts."""
    runs: dict[tuple[float, bool], tuple[Run, ...]]
    """By epsilon, and whether facts were kept."""

    @property
    def title(self) -> str:
        """A name for people."""
        return self.known.title

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The losses."""
        return tuple(dict.fromkeys(epsilon for epsilon, _ in self.runs))

    @property
    def levels(self) -> tuple[str, ...]:
        """What each level counts."""
        return tuple(level.counts for level in next(iter(self.runs.values()))[0].levels)

    def error(self, epsilon: float, facts: bool, level: int) -> float:
        """Return the mean absolute error of a level's possible nodes, over all runs."""
        return fmean(run.levels[level].off for run in self.runs[epsilon, facts]) / self.nodes[level]

    def better(self, epsilon: float, level: int) -> float | None:
        """Return how many times smaller the error is with facts; None where there is none left."""
        with_facts = self.error(epsilon, True, level)
        return self.error(epsilon, False, level) / with_facts if with_facts else None

    def gain(self, epsilon: float, level: int) -> Compared:
        """Return the same with its doubt: runs are few, and so are the nodes of coarse levels."""
        ours, theirs = (
            np.array([run.levels[level].off for run in self.runs[epsilon, facts]]) for facts in (False, True)
        )
        return ratio_of(ours, theirs)

    def mean(self, epsilon: float, facts: bool, what: str) -> float:
        """Return a number of the leaves ("invented", "released"), or of the whole run ("draws", "seconds")."""
        of = self.runs[epsilon, facts]
        return fmean(float(getattr(run if what in ("draws", "seconds") else run.levels[-1], what)) for run in of)

    def slower(self, epsilon: float) -> float:
        """Return the median of what a release with facts took, in that of the one beside it without."""
        pairs = zip(self.runs[epsilon, True], self.runs[epsilon, False], strict=True)
        return float(np.median([one.seconds / other.seconds for one, other in pairs]))


def study(known: Known, runs: int, kept: Kept | None = None, epsilons: Sequence[float] = EPSILONS) -> Study:
    """Release a table with and without its facts, in turns, and take the errors."""
    keep, table = kept or Kept(), known.table
    found: dict[tuple[float, bool], tuple[Run, ...]] = {}
    for epsilon in epsilons:
        plans = {facts: plan_of(known, epsilon, facts) for facts in (False, True)}
        for plan in plans.values():
            release(plan, table, key("warm"))  # what is compiled, or found once for a table, is not timed
        pairs = [
            [keep.run(Run, _name(known, epsilon, facts, number), lambda p=plan, n=number: run(p, known, n))  # type: ignore[misc]
             for facts, plan in plans.items()]
            for number in range(runs)
        ]  # fmt: skip
        for at, facts in enumerate(plans):
            found[epsilon, facts] = tuple(pair[at] for pair in pairs)
    nodes, public = ([level.nodes for level in one.spine.levels] for one in (plans[True], plans[False]))
    return Study(known, tuple(nodes), tuple(public), found)


def _name(known: Known, epsilon: float, facts: bool, number: int) -> str:
    return f"facts {known.name} {epsilon:g} {'with' if facts else 'without'} {number}"


def plan_of(known: Known, epsilon: float, facts: bool) -> tt.Plan:
    """Return the plan with facts, or the same without."""
    loss = tt.Loss(epsilon=epsilon, delta=DELTA)
    stated = known.facts if facts else {}
    return tt.Plan(known.table.spine, TRIP, loss, margins="none", confidence=None, facts=stated)


def run(plan: tt.Plan, known: Known, number: int) -> Run:
    """Release a table once."""
    start = time.perf_counter()
    found = release(plan, known.table, key("facts", number))
    seconds = time.perf_counter() - start
    errors = measure_errors(found, known.table.truth)[1:]
    levels = tuple(
        Level(
            one.counts,
            one.mean_of_all * one.nodes,
            float(one.largest),
            one.released_nodes,
            round(one.false_discoveries * one.released_nodes),
            draws,
        )
        for one, draws in zip(errors, measured(plan, found), strict=True)
    )
    return Run(levels, seconds)


def measured(plan: tt.Plan, found: Release) -> Iterator[int]:
    """Yield how many nodes of each level were measured: the children of released nodes that have more than one."""
    for level, part in zip(plan.spine.levels, plan.levels[1:], strict=True):
        fanout = level.fanout(found.tree.at(level.index - 1).nodes)
        yield int(fanout[fanout > 1].sum()) if part.is_measured else 0
