"""Releases of one table by three plans, with the errors that were expected and those that came out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import treetop as tt
from experiments.kit.cases import TRIP, Table, commuters_in_counties, flights, hawaii, made_up, new_york, slovenia
from experiments.kit.runs import Kept
from treetop.advice import design
from treetop.advice._designs import read_objectives
from treetop.advice._outlooks import Leaves, outlook
from treetop.advice.expected import Depths, Expected, Tables, expected_errors
from treetop.advice.public import Prior
from treetop.advice.trials import cell_sums, table_errors
from treetop.measure.questions import leaves_of

EPSILON = 1.0
SMALL_EPSILONS = (0.03, 0.1, 1.0)
"""The losses at which leaves are judged; the largest table only at the last, for time."""
DELTA = 1e-8
RUNS = {"slovenia": 40, "flights": 40, "new-york": 5, "us-counties": 3, "hawaii": 60}
"""How often each plan is run: where a table has few cells, more often, so that its mean error is known."""
WAYS = ("without margins", "with margins", "advised")
LARGE = 3.0
"""A count of so many standard deviations is not small."""
MOST = 0.9
"""Where so many of all public cells are not small, errors are expected within a fifth."""
CLOSE = 0.2

READERS: Sequence[Callable[[Path], Table]] = (slovenia, flights, new_york, commuters_in_counties, hawaii)


@dataclass(frozen=True)
class Outcome:
    """One table of one plan's release."""

    way: str
    """Which plan."""
    counts: str
    """What is counted, in words."""
    average: float
    """The true mean count of a public cell."""
    large: float
    """The share of the public cells whose true count is not small, in the table or, where it is summed from one that
    was measured, in that."""
    expected: float
    """The mean absolute error to expect."""
    measured: float
    """The one that was measured, over all public cells and runs."""

    @property
    def ratio(self) -> float:
        """What was measured, in what was expected."""
        return self.measured / self.expected

    @property
    def is_claimed(self) -> bool:
        """Whether the two should agree."""
        return self.large >= MOST

    @property
    def is_close(self) -> bool:
        """Whether they do."""
        return abs(self.ratio - 1) <= CLOSE


@dataclass(frozen=True)
class Worth:
    """What was said before a release about its leaves, and what came out."""

    epsilon: float
    verdict: Leaves
    """What `plan` says."""
    needed: float
    """Half of the records must be in leaves with so many."""
    crowded: float
    """The share of the records that truly are."""
    error: float
    """The mean absolute error of a leaf, in mean counts: 1 is as bad as zeros."""

    @property
    def is_true(self) -> bool:
        """Whether what was said holds: of "if crowded", with the number that it names."""
        if self.verdict == "better than zeros if crowded":
            return (self.error < 1) == (self.crowded > 0.5)
        return (self.error < 1) == (self.verdict == "better than zeros")


@dataclass(frozen=True, eq=False)
class Study:
    """All that was measured of one table."""

    table: Table
    """The table."""
    runs: int
    """How often it was released by each plan."""
    outcomes: tuple[Outcome, ...]
    """Every table that is cared for, by every plan."""
    worths: tuple[Worth, ...]
    """Its leaves, at several losses."""

    @property
    def title(self) -> str:
        """A name for people."""
        return self.table.title

    def by(self, way: str) -> list[Outcome]:
        """Return the outcomes of one plan."""
        return [one for one in self.outcomes if one.way == way]


def tables(data: Path | None) -> Iterator[Table]:
    """Yield the tables one after the other; without `data` one that is made up."""
    if data is None:
        yield made_up("random-complete")
    else:
        yield from (read(data) for read in READERS)


def study(table: Table, runs: int, kept: Kept | None = None) -> Study:
    """Release a table by every plan, as often as asked, and compare with the truth and with what was expected."""
    keep = kept or Kept()
    twin = Prior("public table", table.title, table.spine, (), table.truth)
    leaves, count = leaves_of(table.spine, table.truth)
    outcomes = []

    def large(one: Expected) -> float:
        sums = cell_sums(table.spine, leaves, count, one.table)
        return float(np.count_nonzero(sums >= LARGE * one.deviation)) / one.nodes

    for way, plan in plans(table):
        wanted = list(read_objectives(table.spine))
        measured = keep.run(
            list[float],
            f"plan_design {table.name} {way} {runs}",
            lambda plan=plan, wanted=wanted: table_errors(plan, twin, wanted, runs=runs, threads=2),  # type: ignore[misc]
        )
        sources = expected_errors(plan, [summed_from(plan, one) for one in wanted])
        for one, source, error in zip(expected_errors(plan, wanted), sources, measured, strict=True):
            average = table.truth.total / one.nodes
            outcomes.append(Outcome(way, one.title, average, min(large(one), large(source)), one.error, error))
    return Study(table, runs, tuple(outcomes), tuple(_worths(table, twin, count, keep)))


def summed_from(plan: tt.Plan, table: Depths) -> Depths:
    """Return the measured table that a table is summed from: itself, a margin, or the first level that tells it."""
    measured = Tables.of(plan)
    every = [*measured.margins, *measured.levels]
    return (
        table if table in every else next(one for one in every if all(a >= b for a, b in zip(one, table, strict=True)))
    )


def plans(table: Table, epsilon: float = EPSILON) -> Iterator[tuple[str, tt.Plan]]:
    """Yield the plan without margins, with them, and as advised."""
    loss = tt.Loss(epsilon=epsilon, delta=DELTA)
    with_margins = tt.Plan(table.spine, TRIP, loss, margins="each", confidence=None)
    advised = design(with_margins)
    assert not advised["skipped"], "all tables are told by the same depths"
    yield WAYS[0], tt.Plan(table.spine, TRIP, loss, margins="none", confidence=None)
    yield WAYS[1], with_margins
    assert isinstance(advised.plan, tt.Plan)
    yield WAYS[2], advised.plan


def _worths(table: Table, twin: Prior, count: np.ndarray, keep: Kept) -> Iterator[Worth]:
    finest: Depths = tuple(len(tree.levels) for tree in table.spine.trees)
    for epsilon in SMALL_EPSILONS if table.spine.leaves < 10**9 else SMALL_EPSILONS[-1:]:
        (plan,) = (plan for way, plan in plans(table, epsilon) if way == WAYS[1])
        told = outlook(plan, table.truth.total)
        (error,) = keep.run(
            list[float],
            f"plan_design worth {table.name} {epsilon:g}",
            lambda plan=plan: table_errors(plan, twin, [finest], runs=1, threads=1),  # type: ignore[misc]
        )
        crowded = float(count[count >= told["needed"]].sum()) / table.truth.total
        relative = error * table.spine.leaves / table.truth.total
        yield Worth(epsilon, told["verdict"], told["needed"], crowded, relative)
