"""Errors of a table that is released with several losses in several ways, several times each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Generic, NamedTuple, Protocol, TypeVar

from experiments.kit.cases import Table
from experiments.kit.runs import Kept, key, release
from experiments.kit.tables import table
from treetop import Plan
from treetop.release.errors import LevelErrors, measure_errors

Way = TypeVar("Way", bound="Labelled")
Form = Callable[[float], str]
"""How a number is written."""
Run = tuple[LevelErrors, ...]
"""The errors of one release: those of every level."""


class Labelled(Protocol):
    """What is tried: a way to release a table."""

    @property
    def label(self) -> str:
        """The name for people."""


class Spread(NamedTuple):
    """One number over all runs."""

    mean: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        """Return the mean of some values, and the least and the largest of them."""
        return Spread(fmean(values), min(values), max(values))

    def say(self, form: Callable[[float], str]) -> str:
        """Say the mean, and from where to where the values reach if that looks different."""
        mean, low, high = map(form, self)
        return mean if low == high else f"{mean} ({low}–{high})"


@dataclass(frozen=True)
class Outcome(Generic[Way]):
    """The errors of several releases of one table with one loss in one way."""

    epsilon: float
    """The loss; delta is the study's."""
    way: Way
    """What is tried."""
    runs: tuple[Run, ...]
    """The errors of each release."""
    total: int = 0
    """The number of trips, which every release tells exactly."""

    def values(self, level: int, metric: str) -> list[float]:
        """Return a metric of `LevelErrors`, or "misplaced", at one level, run by run; -1 is the leaves."""
        if metric == "misplaced":
            # The total is exact, so each misplaced trip is missing in one node and too many in another.
            return [run[level].mean_of_all * run[level].nodes / (2 * self.total) for run in self.runs]
        return [float(getattr(run[level], metric)) for run in self.runs]

    def spread(self, level: int, metric: str) -> Spread:
        """Return its mean, least and largest."""
        return Spread.of(self.values(level, metric))


@dataclass(frozen=True, eq=False)
class Study(Generic[Way]):
    """All outcomes of one table, and what is told of the table itself."""

    table: Table
    """The table."""
    outcomes: tuple[Outcome[Way], ...]
    """Everything that was measured."""

    @property
    def title(self) -> str:
        """A name for people."""
        return self.table.title

    @property
    def levels(self) -> Run:
        """The levels, with their true and public nodes; the errors are those of one release."""
        return self.outcomes[0].runs[0]

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The losses that were tried."""
        return tuple(dict.fromkeys(one.epsilon for one in self.outcomes))

    def outcome(self, epsilon: float, way: Way) -> Outcome[Way]:
        """Return the outcome of a loss and a way."""
        return next(one for one in self.outcomes if (one.epsilon, one.way) == (epsilon, way))


def try_all(
    table: Table, plans: Iterable[tuple[float, Way, str, Plan]], runs: int, kept: Kept | None = None
) -> Study[Way]:
    """Release a table by every plan (given with its loss, its way and the name of its runs), and take the errors."""
    keep = kept or Kept()
    outcomes = []
    for epsilon, way, name, plan in plans:
        named = [f"{name} {number}" for number in range(runs)]
        found = tuple(
            keep.run(Run, one, lambda one=one, plan=plan: measure_errors(release(plan, table, key(one)), table.truth))  # type: ignore[misc]
            for one in named
        )
        outcomes.append(Outcome(epsilon, way, found, table.truth.total))
    return Study(table, tuple(outcomes))


def leaf_table(
    studies: Sequence[Study[Way]], ways: Sequence[Way], metrics: Mapping[str, Form], epsilon: str = "ε"
) -> str:
    """Return the means of some metrics at the leaves, beside each other in a cell: a row a loss, a column a way."""
    rows = []
    for study in studies:
        for loss in study.epsilons:
            outcomes = [study.outcome(loss, way) for way in ways]
            cells = (" / ".join(form(one.spread(-1, name).mean) for name, form in metrics.items()) for one in outcomes)
            rows.append((study.title, f"{loss:g}", *cells))
    return table(("table", epsilon, *(way.label for way in ways)), rows)


def level_table(
    study: Study[Way], epsilon: float, ways: Sequence[Way], what: str, columns: Mapping[str, tuple[str, Form]]
) -> str:
    """Return metrics, by the titles of their columns, of every level and way (which is called `what`) at one loss."""
    rows = []
    for level in study.levels[1:]:
        for way in ways:
            outcome = study.outcome(epsilon, way)
            cells = (outcome.spread(level.level, name).say(form) for name, form in columns.values())
            rows.append((f"{level.name} ({level.true_nodes:,} of {level.nodes:,})", way.label, *cells))
    return table(("level (nodes that occur, of all)", what, *columns), rows)
