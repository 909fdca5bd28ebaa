"""Trials: whole releases of a public twin, to see the errors of released counts before any private data is read.

The noise of a trial comes from keys that anybody can compute, so a trial is for public tables only.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from treetop._util.system import Progress
from treetop.advice.expected import Floats, mean_absolute_of_count
from treetop.advice.known import fitted
from treetop.advice.prior import Prior, refuse_counts, refuse_same_records
from treetop.advice.public import sizes_of
from treetop.counts.counts import Counts, layout, pack
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import PlanError
from treetop.measure.descent import descent_of
from treetop.measure.readers import leaves_above_zero
from treetop.measure.vectors import measured_groups
from treetop.noise import Key
from treetop.noise.gate import Gate
from treetop.plan.groups.planned import GroupTablePlan
from treetop.plan.plan import Plan
from treetop.plan.workload import text_table
from treetop.release.errors import merge, starts
from treetop.release.run import run_plan

Ints = NDArray[np.int64]
Nodes: TypeAlias = list[NDArray[np.int32]]
T = TypeVar("T")


@dataclass(frozen=True)
class TrialRow:
    """The errors of one level: of its measurements by their law, and of released counts in trials."""

    level: int
    """The position in the spine; the total is 0."""
    name: str
    """The name of the level."""
    nodes: int
    """How many nodes the public domain has there."""
    predicted_mean: float
    """The mean absolute error of one count by the measurements of its level; 0 where nothing is measured."""
    predicted_margin: int
    """One measurement is within this of the truth, with the stated confidence."""
    mean: float
    """The mean absolute error of the released counts, over the nodes above zero in the twin or in the release."""
    mean_of_all: float
    """The same over all public nodes."""
    margin: int
    """So many of those counts (the stated confidence) are within this of the twin's."""
    within: float
    """The share of those counts that are within the predicted margin."""


@dataclass(frozen=True)
class Trials:
    """What trials of a plan on a public twin gave; print it for people."""

    rows: tuple[TrialRow, ...]
    """One row per level, from the total down."""
    runs: int
    """How many releases were tried."""
    confidence: float
    """The share of the counts that a margin is for."""
    twin: str
    """What the twin is."""
    reaches: str = "the margin of a measurement"
    """What the predicted margin is."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dictionary a level."""
        return [asdict(row) for row in self.rows]

    def __str__(self) -> str:
        percent = f"{100 * self.confidence:g}%"
        head = ("level", "name", "measured: mean", f"± {percent}", "released: mean", f"± {percent}", "within")
        rows = [
            (
                str(row.level),
                row.name,
                f"{row.predicted_mean:,.4g}",
                f"{row.predicted_margin:,}",
                f"{row.mean:,.4g}",
                f"{row.margin:,}",
                f"{row.within:.1%}",
            )
            for row in self.rows
        ]
        note = (
            f"{self.runs} releases of a public twin ({self.twin}), counts above zero in either; "
            f"within: released counts no farther off than {self.reaches}."
        )
        return f"{text_table([head, *rows], left=(1,))}\n\n{note}"


def simulate(
    plan: Plan,
    prior: Prior,
    *,
    runs: int = 20,
    confidence: float = 0.95,
    threads: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    private: Counts | None = None,
) -> Trials:
    """Release a public twin many times by the plan, and compare every level with the twin.

    `private` are the counts of the private table, by `plan.counts`, where they are at hand: a twin with the same
    records is refused.
    """
    public_twin(prior, private)
    if not 0 < confidence < 1:
        raise PlanError(f"confidence is {confidence}: give a probability between 0 and 1")
    tried = []
    for done, levels in enumerate(trials(plan, prior, _sizes, runs=runs, threads=threads, seed=seed), start=1):
        tried.append(levels)
        if progress is not None:
            progress("trials", done / runs)
    risk = 1 - Fraction(str(confidence))
    names = [(TOTAL, 1), *((level.name, level.nodes) for level in plan.spine.levels)]
    rows = []
    for index, (name, nodes) in enumerate(names):
        planned = plan.levels[index]
        mean = mean_absolute_of_count(planned.law, plan.terms) if planned.is_measured else 0.0
        margin = planned.margin(risk, plan.terms)
        found = _pooled([levels[index] for levels in tried], confidence, margin)
        rows.append(TrialRow(index, name, nodes, mean, margin, found.mean, found.sum / (runs * nodes), *found[2:]))
    told = {"reaches": "the interval of one number reaches"} if isinstance(plan, GroupTablePlan) else {}
    return Trials(tuple(rows), runs, confidence, f"{prior.kind}: {prior.source}", **told)


def trials(
    plan: Plan,
    prior: Prior,
    summarise: Callable[[Ints], T],
    *,
    runs: int,
    threads: int | None = None,
    seed: int = 0,
) -> Iterator[list[T]]:
    """Yield, run by run, a summary of the errors of the total and of every level, at the nodes above zero in either."""
    twin = public_twin(prior)

    def look(nodes: Nodes, count: Ints) -> list[T]:
        return [summarise(errors) for errors in level_errors(plan.spine, twin, nodes, count)]

    yield from try_out(plan, prior, look, runs=runs, threads=threads, seed=seed)


def try_out(
    plan: Plan,
    prior: Prior,
    look: Callable[[Nodes, Ints], T],
    *,
    runs: int,
    threads: int | None = None,
    seed: int = 0,
) -> Iterator[T]:
    """Release the twin of a prior many times, and yield what is seen in the leaves and counts of each release."""
    twin = public_twin(prior)
    prior.fits(plan.spine)
    if runs < 1:
        raise PlanError(f"the number of trials is {runs}: give 1 or more")
    release = _released(fitted(plan, twin), twin)
    secret = Key(hashlib.blake2b(f"trial {seed}".encode(), digest_size=32).digest())
    with ThreadPoolExecutor(max_workers=max(threads or os.cpu_count() or 1, 1)) as pool:
        yield from pool.map(lambda number: look(*release(secret.derive("trial", number))), range(runs))


def _released(plan: Plan, twin: Counts) -> Callable[[Key], tuple[Nodes, Ints]]:
    """Return what releases a twin once by the plan, to leaves and their counts."""
    if isinstance(plan, GroupTablePlan):
        sizes, core = sizes_of(plan.spine, twin), plan.core

        def of_groups(key: Key) -> tuple[Nodes, Ints]:
            with measured_groups(core, sizes, Gate(key), None) as found:
                nodes, count = leaves_above_zero(found.counts[core.tree.levels[-1]])
            return list(nodes.astype(np.int32)), count

        return of_groups
    descent_of(plan)  # made once, not by every thread

    def top_down(key: Key) -> tuple[Nodes, Ints]:
        # Not bound to the plan, so that plans are compared under the same words.
        leaves = run_plan(plan, twin, key, {})
        return list(leaves.nodes), leaves.count

    return top_down


def public_twin(prior: Prior, private: Counts | None = None) -> Counts:
    """Return the twin of a prior, refusing what has none, and one with the records of the private table."""
    refuse_counts(prior)
    if prior.twin is None:
        raise PlanError("a sketch cannot be released on trial: give a public or a synthetic table")
    if private is not None:
        refuse_same_records(prior.records, private, "twin")
    return prior.twin


def level_errors(spine: Spine, twin: Counts, nodes: Nodes, count: Ints) -> list[Ints]:
    """Return released less true counts at the total and every level, for the nodes above zero in either."""
    both = merge(pack(spine, nodes), count, twin)
    error: Ints = both.released.astype(np.int64, copy=False) - both.true
    firsts = (np.flatnonzero(starts(both.keys, digit)) for digit in layout(spine))
    below = [np.add.reduceat(error, first) if len(first) else error for first in firsts]
    return [error.sum(keepdims=True), *below]


def squared_errors(plan: Plan, prior: Prior, *, runs: int, threads: int | None = None, seed: int = 0) -> Floats:
    """Return, for each run and level, the sum of squared errors of all released counts."""
    return np.array(list(trials(plan, prior, _squares, runs=runs, threads=threads, seed=seed)))


def _squares(errors: Ints) -> float:
    return float((errors.astype(np.float64) ** 2).sum())


def _sizes(errors: Ints) -> tuple[Ints, Ints]:
    """The distinct absolute errors, and how often there is each: far fewer than there are nodes."""
    sizes, times = np.unique(np.abs(errors), return_counts=True)
    return sizes, times


class _Pooled(NamedTuple):
    """Absolute errors of one level over all runs."""

    sum: float
    mean: float
    margin: int
    within: float


def _pooled(runs: Sequence[tuple[Ints, Ints]], confidence: float, margin: int) -> _Pooled:
    sizes, place = np.unique(np.concatenate([sizes for sizes, _ in runs]), return_inverse=True)
    times = np.bincount(place, np.concatenate([times for _, times in runs]), len(sizes))
    if len(sizes) == 0:
        return _Pooled(0.0, 0.0, 0, 1.0)
    total, counted = float(sizes @ times), np.cumsum(times)
    least = int(np.searchsorted(counted, confidence * counted[-1]))
    return _Pooled(total, total / counted[-1], int(sizes[least]), float(times[sizes <= margin].sum() / counted[-1]))
