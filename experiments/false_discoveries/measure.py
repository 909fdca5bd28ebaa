"""Releases of one table by each repair, several times, and their errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import treetop as tt
from experiments.kit import outcomes
from experiments.kit.cases import TRIP, Table
from experiments.kit.runs import Kept
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

Study = outcomes.Study[Method]


def study(table: Table, epsilons: Sequence[float] = EPSILONS, repetitions: int = 10, kept: Kept | None = None) -> Study:
    """Release a table with every loss by every method, as often as asked, and compare with the truth."""
    return outcomes.try_all(table, _plans(table, epsilons), repetitions, kept)


def _plans(table: Table, epsilons: Sequence[float]) -> Iterator[tuple[float, Method, str, tt.Plan]]:
    for epsilon, method in product(epsilons, METHODS):
        loss = tt.Loss(epsilon=epsilon, delta=DELTA, accounting="zcdp")
        plan = tt.Plan(table.spine, TRIP, loss, repair=method.repair, order=method.order, margins="none")
        yield epsilon, method, f"{table.name} {epsilon:g} {method.label}", plan


def singles(study: Study) -> int:
    """Return how many pairs have one trip."""
    before = study.table.truth.before
    return int((before[1:] - before[:-1] == 1).sum())
