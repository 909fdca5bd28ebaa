"""Every setting on one table, several times with the same noise words, and the errors of what comes out.

The runs of one number have one key, so that all settings see the same random words: a noise of 17.67 is then the noise
of 21.31 of the same node, scaled down, as far as the same nodes are retained. This is for comparing only. It takes out
most of the chance from ratios, at the levels near the root above all. In a release the key is bound to plan and data.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import treetop as tt
from experiments.estimates.closest import closest
from experiments.estimates.selection import LevelSelection, joined, selection
from experiments.kit import cases
from experiments.kit.cases import TRIP, Table
from experiments.kit.outcomes import Run
from experiments.kit.runs import Kept
from treetop import Plan
from treetop.addons.lab.comparison import peak_memory
from treetop.addons.lab.mechanisms.compared import paper_loss
from treetop.addons.lab.mechanisms.inftda import descend as descend_by
from treetop.counts.counts import pack
from treetop.measure.descent import descent_of, run_descent
from treetop.noise import Key
from treetop.release.errors import errors_of
from treetop.release.estimates._whole_numbers import lower_error
from treetop.release.measurements import Measurements
from treetop.release.tree import ReleasedTree

EPSILON = 1
DELTA = 1e-8
RUNS = {"new-york": 8, "us-counties": 8}
"""How often the large tables are released with each setting."""
MANY_RUNS = 40
"""How often the others are: they take seconds."""
FEW_CHILDREN = 4
"""Up to so many children of any node, a table counts as one of small fan-out."""

Accounting = Literal["paper", "zcdp", "exact"]
Way = Literal["fewer-invented", "fewer-lost", "euclidean", "lower-error", "closest"]


@dataclass(frozen=True)
class Setting:
    """How loss becomes noise, and noisy measurements become counts."""

    way: Way
    """The preference, or the repair."""
    accounting: Accounting
    """How epsilon and delta become noise."""

    @property
    def label(self) -> str:
        """A name for people."""
        return "InfTDA as published" if self.accounting == "paper" else f"{self.way}, {self.accounting}"


BASELINE = Setting("fewer-invented", "paper")
DEFAULT = Setting("fewer-invented", "zcdp")
EXACT = Setting("fewer-invented", "exact")
LOWER = Setting("lower-error", "exact")
EUCLIDEAN = Setting("euclidean", "exact")
CLOSEST = Setting("closest", "exact")
SETTINGS = (
    BASELINE,
    DEFAULT,
    EXACT,
    Setting("fewer-lost", "exact"),
    EUCLIDEAN,
    Setting("lower-error", "zcdp"),
    LOWER,
    CLOSEST,
)


@dataclass(frozen=True)
class Cost:
    """What estimating again takes, after a descent."""

    slots: int
    """How many measurements there are."""
    seconds: float
    """Processor time of `lower_error`."""
    descent: float
    """Processor time of the descent, on one thread."""
    memory: int | None
    """The most memory that `lower_error` took in addition, in bytes; None where the system cannot tell."""


@dataclass(frozen=True, eq=False)
class Study:
    """All runs of one table."""

    name: str
    """A short name."""
    title: str
    """A name for people."""
    total: int
    """The number of trips."""
    widest: int
    """The largest number of children of a node."""
    noise: Mapping[str, float]
    """The standard deviation of the noise, by accounting."""
    runs: Mapping[Setting, tuple[Run, ...]] = field(repr=False)
    """The errors of every level, by setting and run."""
    selection: tuple[LevelSelection, ...] = field(repr=False)
    """What the descent left out, and what that does to estimates, over all runs; below the root."""
    costs: tuple[Cost, ...] = field(repr=False)
    """What estimating again took, by run."""

    @property
    def levels(self) -> Run:
        """The levels with their nodes; the errors are those of one run."""
        return self.runs[BASELINE][0]

    @property
    def cost(self) -> Cost:
        """The median of all runs, and the most memory: the first run may compile."""
        memory = [cost.memory for cost in self.costs if cost.memory is not None]
        return Cost(
            slots=round(median(cost.slots for cost in self.costs)),
            seconds=median(cost.seconds for cost in self.costs),
            descent=median(cost.descent for cost in self.costs),
            memory=max(memory, default=None),
        )

    def values(self, setting: Setting, level: int, metric: str) -> NDArray[np.float64]:
        """Return a metric of `LevelErrors` at one level, run by run; -1 is the leaves."""
        return np.array([float(getattr(run[level], metric)) for run in self.runs[setting]])

    def mean(self, setting: Setting, level: int, metric: str) -> float:
        """Return its mean."""
        return float(self.values(setting, level, metric).mean())


def tables(data: Path | None, quick: bool = False) -> Iterator[Table]:
    """Yield the tables, those that are made up first, and of the real ones the smallest; `quick`, only sparse ones."""
    real = sorted(cases.real_tables(data), key=lambda table: len(table.truth))
    for table in (*cases.tables(None, quick), *real):
        yield replace(table, runs=RUNS.get(table.name, MANY_RUNS))


def study(table: Table, runs: int | None = None, kept: Kept | None = None) -> Study:
    """Run every setting on a table, as often as asked."""
    keep = kept or Kept()
    names = [f"estimates {table.name} {run}" for run in range(runs or table.runs)]
    found = [keep.run(Found, name, partial(_run, table, name)) for name in names]
    return Study(
        table.name,
        table.title,
        table.truth.total,
        table.widest,
        {accounting: _noise(plan_of(table, Setting("fewer-invented", accounting))) for accounting in _LOSSES},
        {setting: tuple(one.errors[SETTINGS.index(setting)] for one in found) for setting in SETTINGS},
        joined([one.selection for one in found]),
        tuple(one.cost for one in found),
    )


@dataclass(frozen=True, eq=False)
class Found:
    """What came out of one run of all settings."""

    errors: tuple[Run, ...]
    """By setting."""
    selection: tuple[LevelSelection, ...]
    """What the descent left out."""
    cost: Cost
    """What estimating again took."""


def _run(table: Table, name: str) -> Found:
    key = Key(hashlib.blake2b(name.encode(), digest_size=32).digest())
    found = dict(_without_estimates(table, key))
    for accounting in ("zcdp", "exact"):
        first, again = (Setting(way, accounting) for way in ("fewer-invented", "lower-error"))
        found[first], found[again], cost, measurements = with_estimates(table, plan_of(table, first), key)
    return Found(tuple(found[setting] for setting in SETTINGS), selection(measurements, table.truth), cost)


_LOSSES: Mapping[Accounting, tt.Loss] = {
    "paper": paper_loss(EPSILON, DELTA),
    "zcdp": tt.Loss(epsilon=EPSILON, delta=DELTA, accounting="zcdp"),
    "exact": tt.Loss(epsilon=EPSILON, delta=DELTA, accounting="exact"),
}


def plan_of(table: Table, setting: Setting) -> Plan:
    """Return the plan of a setting that the product has."""
    plan = Plan(table.spine, TRIP, _LOSSES[setting.accounting], confidence=None, margins="none")
    if setting.way == "euclidean":
        return replace(plan, prefer=None, repair="euclidean")
    return replace(plan, prefer=setting.way, repair="chebyshev", order="ascending")  # type: ignore[arg-type]


def _without_estimates(table: Table, key: Key) -> Iterator[tuple[Setting, Run]]:
    """Run the settings that need nothing but the descent, except those that are run with estimates."""
    for setting in SETTINGS:
        if setting in (DEFAULT, EXACT) or setting.way == "lower-error":
            continue
        if setting.way == "closest":
            leaves = descend_by(descent_of(plan_of(table, EXACT)), table.truth, key, closest)
        else:
            leaves = run_descent(descent_of(plan_of(table, setting)), table.truth, key).leaves
        yield setting, errors_of(table.spine, pack(table.spine, leaves.nodes), leaves.count, table.truth)


def with_estimates(table: Table, plan: Plan, key: Key) -> tuple[Run, Run, Cost, Measurements]:
    """Descend once, and estimate again from all that was measured: as `Plan.release` does for "lower-error"."""
    start = time.process_time()
    found = run_descent(descent_of(plan), table.truth, key, every=max(level.nodes for level in plan.levels))
    descent, leaves = time.process_time() - start, found.leaves
    errors = errors_of(table.spine, pack(table.spine, leaves.nodes), leaves.count, table.truth)
    assert found.evidence is not None
    measurements = Measurements.of(ReleasedTree(table.spine, leaves.nodes, leaves.count), found.evidence)
    total = int(leaves.count.sum())
    with peak_memory() as peak:
        start = time.process_time()
        nodes, count = lower_error(measurements, total)
        seconds = time.process_time() - start
    again = errors_of(table.spine, pack(table.spine, nodes), count, table.truth)
    slots = sum(len(level) for level in measurements.levels if level is not None)
    return errors, again, Cost(slots, seconds, descent, peak[0] if peak else None), measurements


def _noise(plan: Plan) -> float:
    """Return the standard deviation of the noise of the measured levels, which have equal shares."""
    return max(level.law.standard_deviation for level in plan.levels if level.is_measured)
