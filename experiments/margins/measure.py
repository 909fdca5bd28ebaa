"""Runs of each setting, and the errors of totals of both ends, of pairs, and of what is invented."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import treetop as tt
from experiments.kit import cases, runs
from experiments.kit.cases import TRIP, Table
from treetop.measure.descent import run_descent
from treetop.measure.executor import Threads
from treetop.measure.frontier import Frontier
from treetop.measure.questions import leaves_of
from treetop.measure.topdown import descent_of
from treetop.noise import Key
from treetop.read.counts import pack
from treetop.release.errors import errors_of

EPSILONS = (0.1, 1.0, 10.0)
RUNS = 10
DELTA = 1e-8
SETTINGS: dict[str, dict[str, str]] = {
    "0.2.0": {"accounting": "zcdp", "margins": "none"},
    "none": {"margins": "none"},
    "each": {"margins": "each"},
}
"""What 0.2.0 did, the same with exact accounting, and the default."""


@dataclass(frozen=True)
class Row:
    """The errors of one setting at one epsilon, averaged over runs."""

    table: str
    epsilon: float
    setting: str
    totals: dict[str, float]
    """Mean absolute errors of the totals of each end, by level."""
    pairs: tuple[float, ...]
    """Mean absolute errors of the nodes of each level of the spine."""
    invented: float
    """Of the released leaves, the share that is truly empty."""
    lost: float
    """Of the leaves with a count, the share that is not released."""


def tables(data: object, quick: bool) -> Iterator[Table]:
    """The tables of the study."""
    yield from (cases.made_up(name) for name in cases.MADE_UP if not quick or name == "random-sparse")
    if data is not None:
        for read in (cases.slovenia, cases.flights, cases.new_york, cases.commuters_in_counties):
            yield read(data)  # type: ignore[arg-type]


def study(table: Table, epsilons: Sequence[float], number: int) -> Iterator[Row]:
    """Run every setting at every epsilon so many times."""
    leaves, counts = leaves_of(table.spine, table.truth)
    truth = dict(_totals(table.spine, leaves, counts))
    for epsilon in epsilons:
        for setting, about in SETTINGS.items():
            loss = tt.Loss(epsilon=epsilon, delta=DELTA, accounting=about.get("accounting"))  # type: ignore[arg-type]
            plan = tt.Plan(table.spine, TRIP, loss, margins=about["margins"])
            found = [_run(table, plan, truth, setting, epsilon, one) for one in range(number)]
            totals = {name: float(np.mean([run[0][name] for run in found])) for name in truth}
            pairs = tuple(np.mean([run[1] for run in found], axis=0).tolist())
            invented, lost = (float(np.mean([run[index] for run in found])) for index in (2, 3))
            yield Row(table.title, epsilon, setting, totals, pairs, invented, lost)


def _run(
    table: Table, plan: tt.Plan, truth: dict[str, NDArray[np.int64]], setting: str, epsilon: float, number: int
) -> tuple[dict[str, float], list[float], float, float]:
    key = Key(runs.key("margins", table.name, setting, epsilon, number))
    found: Frontier = run_descent(descent_of(plan), table.truth, key, Threads(2)).leaves
    sums = _totals(table.spine, found.nodes, found.count)
    totals = {name: float(np.abs(own - truth[name]).mean()) for name, own in sums}
    levels = errors_of(table.spine, pack(table.spine, found.nodes), found.count, table.truth)
    last = levels[-1]
    return totals, [level.mean_of_all for level in levels[1:]], last.false_discoveries, last.false_negatives


def _totals(
    spine: tt.Spine, nodes: Sequence[NDArray[np.integer]] | NDArray[np.integer], counts: NDArray[np.int64]
) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield the totals of each attribute at each of its levels."""
    for name, tree, own in zip(spine.attributes, spine.trees, nodes, strict=True):
        for depth, level in enumerate(tree.levels):
            sums = np.zeros(tree.sizes[depth], np.int64)
            np.add.at(sums, tree.ancestors(depth)[own], counts)
            yield f"{name}.{level}", sums
