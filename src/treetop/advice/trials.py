"""Trials: whole releases of a public or made-up twin, to see the errors of released counts before any data is read.

The noise of a trial comes from keys that anybody can compute, so trials are for public tables only. A twin is of
another year, or made up: its totals are not those that are public of the private table. So in a trial exact facts have
the twin's own numbers, and its errors are those of the noise. Bounds and impossible cells stay as they are.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Required, TypeAlias, TypedDict, TypeVar, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop._util.dtypes import Floats, Ints
from treetop._util.system import Progress
from treetop.advice._error_laws import mean_absolute_of_count
from treetop.advice._largest import largest_degrees, largest_sizes
from treetop.advice._losses import say_loss
from treetop.advice._report import Report
from treetop.advice.expected import Depths
from treetop.advice.public import (
    Planned,
    Prior,
    counts_groups,
    open_plan,
    refuse_counts,
    refuse_other_kinds,
    refuse_same_records,
    sizes_of,
    twin_of,
)
from treetop.counts.constraint_reader import fact_of
from treetop.counts.counts import Counts, layout, pack
from treetop.domain.constraints import PublicFacts, TableFact
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import FactError, PlanError
from treetop.measure.descent import descent_of
from treetop.measure.facts import contradiction, leaf_nodes
from treetop.measure.questions import leaves_of
from treetop.measure.readers import leaves_above_zero
from treetop.measure.vectors import measured_groups
from treetop.noise import Key
from treetop.noise.gate import Gate
from treetop.plan.plan import Plan
from treetop.plan.region_histograms import region_tree
from treetop.release.errors import merge, starts
from treetop.release.run import run_plan

Nodes: TypeAlias = list[NDArray[np.int32]]
T = TypeVar("T")

EXACT = "exact"
OWN_FACTS = (
    "In the trials, facts that are exact counts have those of the twin: its errors are then those of the noise, and "
    "not of another year."
)


def try_out(
    plan: Planned,
    twin: Prior | str | Path,
    *,
    twin_source: str | None = None,
    total: float | None = None,
    runs: int = 20,
    confidence: float = 0.95,
    threads: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    private: Counts | None = None,
) -> Report:
    """Release a public twin many times by the plan, and compare every level with the twin.

    For a plan for group sizes the report has a part `largest`: what other largest sizes would cost and lose. For one
    for degrees under "node" it is about the largest degree instead.

    Args:
        plan: The plan, or its file.
        twin: A `Prior`, or the location of a public or synthetic table, or of a release. It must not be the private
            table.
        twin_source: Where the twin is from, in words.
        total: For a plan for degrees: about how many people there are (as many as in the twin by default).
        runs: The number of trials.
        confidence: The share of the counts that a margin covers.
        threads: Trials at once; as many as cores by default.
        seed: Another seed draws other noise.
        progress: Called with the fraction of trials done.
        private: The counts of the private table, by `read_true_counts`, if they are at hand; a twin with the same
            records is refused.
    """
    own, file = open_plan(plan)
    if own.reader.name == "degrees":
        return largest_degrees(own, file, twin, twin_source, total)
    refuse_other_kinds(own)
    prior, notes = twin_of(file, twin, twin_source)
    counts = public_twin(prior, private)
    if not 0 < confidence < 1:
        raise PlanError(f"confidence is {confidence}: give a probability between 0 and 1")
    if differs(own, counts):
        notes = [*notes, OWN_FACTS]

    def distinct(errors: Ints) -> tuple[Ints, Ints]:  # far fewer than there are nodes
        return np.unique(np.abs(errors), return_counts=True)

    tried = trials(own, prior, distinct, runs=runs, threads=threads, seed=seed, progress=progress)
    rows, percent = [], f"± {100 * confidence:g}%"
    names = [(TOTAL, 1), *((level.name, level.nodes) for level in own.spine.levels)]
    for index, (name, nodes) in enumerate(names):
        planned = own.levels[index]
        margin = planned.margin(1 - Fraction(str(confidence)), own.terms)
        sizes, place = np.unique(np.concatenate([levels[index][0] for levels in tried]), return_inverse=True)
        times = np.bincount(place, np.concatenate([levels[index][1] for levels in tried]), len(sizes))
        total_error, often = float(sizes @ times), float(times.sum())
        covering = int(np.searchsorted(np.cumsum(times), confidence * often))
        rows.append(
            {
                "level": index,
                "name": name,
                "nodes": nodes,
                "predicted_mean": mean_absolute_of_count(planned.law, own.terms) if planned.is_measured else 0.0,
                "predicted_margin": margin,
                "mean": total_error / often if often else 0.0,
                "mean_of_all": total_error / (runs * nodes),
                "margin": int(sizes[covering]) if often else 0,
                "within": float(times[sizes <= margin].sum() / often) if often else 1.0,
            }
        )
    reach = "the interval of one number reaches" if counts_groups(own) else "the margin of a measurement"
    return Report(
        own,
        "trials",
        f"Trials at {say_loss(own)}",
        tuple(rows),
        (
            ("level", "{level:d}"),
            ("name", "{name}"),
            ("measured: mean", "{predicted_mean:,.4g}"),
            (percent, "{predicted_margin:,}"),
            ("released: mean", "{mean:,.4g}"),
            (percent, "{margin:,}"),
            ("within", "{within:.1%}"),
        ),
        values={"twin": prior.words, "runs": runs},
        notes=(
            f"{runs} releases of a public twin ({prior.words}), counts above zero in either; within: released counts "
            f"no farther off than {reach}.",
        ),
        public_notes=tuple(notes),
        parts={"largest": largest_sizes(own, confidence, prior)} if counts_groups(own) and prior.sizes else {},
    )


# Releases of a twin, and the errors of their levels and tables.


class TrialOptions(TypedDict, total=False):
    """How trials are run."""

    runs: Required[int]
    threads: int | None
    """Trials at once; as many as cores by default."""
    seed: int
    progress: Progress | None


def simulate(
    plan: Plan,
    prior: Prior,
    summarise: Callable[[Nodes, Ints], T],
    *,
    runs: int,
    threads: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[T]:
    """Release the twin of a prior many times; return a summary of the leaves and counts of each release."""
    twin = public_twin(prior)
    prior.fits(plan.spine)
    if runs < 1:
        raise PlanError(f"the number of trials is {runs}: give 1 or more")
    release = _released(fitted(plan, twin), twin)
    secret = Key(hashlib.blake2b(f"trial {seed}".encode(), digest_size=32).digest())
    found = []
    with ThreadPoolExecutor(max_workers=max(threads or os.cpu_count() or 1, 1)) as pool:
        for summary in pool.map(lambda number: summarise(*release(secret.derive("trial", number))), range(runs)):
            found.append(summary)
            if progress is not None:
                progress("trials", len(found) / runs)
    return found


def _released(plan: Plan, twin: Counts) -> Callable[[Key], tuple[Nodes, Ints]]:
    """Return a function that releases a twin once by the plan, to leaves and their counts."""
    if counts_groups(plan):
        sizes, tree = sizes_of(plan.spine, twin), region_tree(plan.regions)

        def of_groups(key: Key) -> tuple[Nodes, Ints]:
            with measured_groups(plan, sizes, Gate(key), None) as found:
                nodes, count = leaves_above_zero(found.counts[tree.levels[-1]])
            return list(nodes.astype(np.int32)), count

        return of_groups
    descent_of(plan)  # made once, not by every thread

    def top_down(key: Key) -> tuple[Nodes, Ints]:
        # Not bound to the plan, so that plans are compared under the same words.
        leaves = run_plan(plan, twin, key, {})
        return list(leaves.nodes), leaves.count

    return top_down


def public_twin(prior: Prior, private: Counts | None = None) -> Counts:
    """Return the twin of a prior, refusing private counts, and one with the records of the private table."""
    refuse_counts(prior)
    if private is not None:
        refuse_same_records(prior.records, private, "twin")
    return prior.twin


def trials(plan: Plan, prior: Prior, summarise: Callable[[Ints], T], **options: Unpack[TrialOptions]) -> list[list[T]]:
    """Return, by run, a summary of errors of the total and of every level, at the nodes above zero in either."""
    twin = public_twin(prior)

    def summary(nodes: Nodes, count: Ints) -> list[T]:
        return [summarise(errors) for errors in level_errors(plan.spine, twin, nodes, count)]

    return simulate(plan, prior, summary, **options)


def level_errors(spine: Spine, twin: Counts, nodes: Nodes, count: Ints) -> list[Ints]:
    """Return released less true counts at the total and every level, for the nodes above zero in either."""
    both = merge(pack(spine, nodes), count, twin)
    error: Ints = both.released.astype(np.int64, copy=False) - both.true
    firsts = (np.flatnonzero(starts(both.keys, digit)) for digit in layout(spine))
    below = [np.add.reduceat(error, first) if len(first) else error for first in firsts]
    return [error.sum(keepdims=True), *below]


def squared_errors(plan: Plan, prior: Prior, **options: Unpack[TrialOptions]) -> Floats:
    """Return, for each run and level, the sum of squared errors of all released counts."""
    return np.array(trials(plan, prior, lambda errors: np.square(errors, dtype=np.float64).sum(), **options))


def table_errors(plan: Plan, prior: Prior, tables: Sequence[Depths], **options: Unpack[TrialOptions]) -> list[float]:
    """Release a public twin many times, and return the mean absolute error of every table, over all public nodes.

    The twin may have been read with another order of the same attributes.
    """
    spine = plan.spine
    leaf, true = _moved_leaves(prior, spine)

    def errors_of(nodes: Nodes, count: Ints) -> list[float]:
        leaves = [np.concatenate([own, released.astype(np.int64)]) for own, released in zip(leaf, nodes, strict=True)]
        error = np.concatenate([-true, count])
        return [mean_error(spine, leaves, error, table) for table in tables]

    moved = replace(prior, spine=spine, twin=Counts.from_leaves(spine, leaf, true))
    means: list[float] = np.mean(simulate(plan, moved, errors_of, **options), axis=0).tolist()
    return means


def _moved_leaves(prior: Prior, spine: Spine) -> tuple[list[Ints], Ints]:
    """Return the leaves of a twin by the numbers that they have in a spine, and their counts."""
    leaves, count = leaves_of(prior.spine, public_twin(prior))
    if list(prior.spine.attributes) != list(spine.attributes):
        raise PlanError("the twin is about other attributes than the plan")
    moved = []
    for own, there, here in zip(leaves, prior.spine.trees, spine.trees, strict=True):
        place = pc.index_in(there.codes[-1], value_set=here.codes[-1])
        if place.null_count or len(there.codes[-1]) != len(here.codes[-1]):
            raise PlanError("the twin is about other leaves than the plan")
        moved.append(np.asarray(place.cast(pa.int64()))[own])
    return moved, count


def mean_error(spine: Spine, leaves: Sequence[Ints], error: Ints, table: Depths) -> float:
    """Return the mean absolute error of a table's cells, of errors by leaf; a leaf may stand there twice."""
    nodes = math.prod(tree.sizes[depth - 1] for tree, depth in zip(spine.trees, table, strict=True) if depth)
    return float(np.abs(cell_sums(spine, leaves, error, table)).sum()) / nodes


_FEW = 1 << 20
"""Up to so many cells are summed without renumbering those that occur."""


def cell_sums(spine: Spine, leaves: Sequence[Ints], value: Ints, table: Depths) -> Floats:
    """Return the sums of leaves' values in the cells of a table, at least in those that have any."""
    cell, cells = np.zeros(len(value), np.int64), 1
    for tree, depth, own in zip(spine.trees, table, leaves, strict=True):
        if depth:
            cell = cell * tree.sizes[depth - 1] + tree.ancestors(depth - 1)[own]
            cells *= tree.sizes[depth - 1]
            if cells > 4 * len(cell) + _FEW:  # most are empty, and their number may exceed 64 bits
                found, cell = np.unique(cell, return_inverse=True)
                cell, cells = cell.reshape(-1), len(found)
    sums: Floats = np.asarray(np.bincount(cell, value), np.float64)
    return sums


# Public facts in a trial.


def fitted(plan: Plan, twin: Counts) -> Plan:
    """Return the plan with the twin's own exact facts; refuse a twin that contradicts bounds or zeros."""
    facts = plan.public_facts
    if not facts:
        return plan
    others = PublicFacts(facts.spine, tuple(fact for fact in facts if EXACT not in fact.kinds))
    if (found := contradiction(others, twin)) is not None:
        fact, why = found
        raise FactError(
            f"the twin contradicts {fact.words}: {why}. A trial on it would say nothing of this plan: give a twin that "
            "keeps the facts, or leave that fact out of a copy of the plan"
        )
    own = _with_counts(facts, twin)
    return plan if own is facts else replace(plan, facts=own)


def differs(plan: Plan, twin: Counts) -> bool:
    """Whether a twin has other counts than exact facts say."""
    facts = plan.public_facts
    return bool(facts) and _with_counts(facts, twin) is not facts


def _with_counts(facts: PublicFacts, twin: Counts) -> PublicFacts:
    """Return facts whose exact counts are those of a public table; the same ones where they are anyway."""
    exact = [fact for fact in facts if EXACT in fact.kinds]
    if not exact:
        return facts
    nodes, number = leaf_nodes(facts.spine, twin), np.diff(twin.before)
    finest = facts.spine.finest
    moved = {fact.name: fact.table.counted(fact.stated[EXACT][0], nodes, finest, number) for fact in exact}
    if all(np.array_equal(moved[fact.name], fact.stated[EXACT][1]) for fact in exact):
        return facts

    def with_count(fact: TableFact) -> TableFact:
        if fact.name not in moved:
            return fact
        stated = {EXACT: (fact.stated[EXACT][0], moved[fact.name])}
        return fact_of(fact.table, fact.kinds, stated, unchecked=fact.unchecked, places=fact.places)

    return PublicFacts(facts.spine, tuple(map(with_count, facts)))
