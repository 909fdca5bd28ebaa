"""Releases of one table by each repair, several times, and their errors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import treetop as tt
from experiments.false_discoveries.tables import Table
from treetop.evaluate.errors import LevelErrors, measure_errors
from treetop.repair import Order, Repair

EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-8


@dataclass(frozen=True)
class Method:
    """A repair, and the order in which it lowers."""

    repair: Repair
    """Least largest change, or least squares."""
    order: Order
    """Small measurements first, or large ones."""

    @property
    def label(self) -> str:
        """The name for people."""
        return f"{self.repair.capitalize()}, {self.order}"


METHODS = (
    Method("chebyshev", "ascending"),
    Method("chebyshev", "descending"),
    Method("euclidean", "ascending"),
    Method("euclidean", "descending"),
)


@dataclass(frozen=True)
class Spread:
    """One number over all repetitions."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Outcome:
    """The errors of several releases of one table with one loss by one method."""

    epsilon: float
    """The loss; delta is `DELTA`."""
    method: Method
    """The repair."""
    total: int
    """The number of trips, which every release tells exactly."""
    runs: tuple[tuple[LevelErrors, ...], ...]
    """For each repetition, the errors of every level."""

    def spread(self, level: int, metric: str) -> Spread:
        """Return mean, least and largest of a metric at one level, by its position; -1 is the leaves."""
        values = [self._value(run[level], metric) for run in self.runs]
        return Spread(sum(values) / len(values), min(values), max(values))

    def _value(self, errors: LevelErrors, metric: str) -> float:
        if metric == "misplaced":
            # The total is exact, so each misplaced trip is missing in one node and too many in another.
            return errors.mean_of_all * errors.nodes / (2 * self.total)
        return float(getattr(errors, metric))


@dataclass(frozen=True, eq=False)
class Study:
    """All outcomes of one table, and what is told of the table itself."""

    name: str
    title: str
    total: int
    singles: int
    """How many pairs have one trip."""
    levels: tuple[LevelErrors, ...]
    """The levels, with their true and public nodes; the errors are those of one release."""
    outcomes: tuple[Outcome, ...]

    def outcome(self, epsilon: float, method: Method) -> Outcome:
        """Return the outcome of a loss and a method."""
        return next(one for one in self.outcomes if (one.epsilon, one.method) == (epsilon, method))

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The losses that were tried."""
        return tuple(dict.fromkeys(one.epsilon for one in self.outcomes))


def study(table: Table, epsilons: Sequence[float] = EPSILONS, repetitions: int = 10) -> Study:
    """Release a table with every loss by every method, as often as asked, and compare with the truth."""
    total = table.truth.total
    outcomes = tuple(
        Outcome(epsilon, method, total, tuple(_runs(table, epsilon, method, repetitions)))
        for epsilon, method in product(epsilons, METHODS)
    )
    before = table.truth.before
    singles = int((before[1:] - before[:-1] == 1).sum())
    return Study(table.name, table.title, total, singles, outcomes[0].runs[0], outcomes)


def _runs(table: Table, epsilon: float, method: Method, repetitions: int) -> Iterator[tuple[LevelErrors, ...]]:
    plan = tt.Plan(
        spine=table.spine,
        unit=tt.Unit("trip", contributions=1, neighbours="replace"),
        loss=tt.Loss(epsilon=epsilon, delta=DELTA),
        repair=method.repair,
        order=method.order,
    )
    for repetition in range(repetitions):
        key = hashlib.sha256(f"{table.name} {epsilon:g} {method.label} {repetition}".encode()).digest()
        yield measure_errors(plan.release(table.rows, count="count", testing_key=key), table.truth)
