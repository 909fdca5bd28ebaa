"""One run of a plan on private counts: they are measured, and all later steps are post-processing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from treetop._util.system import Progress
from treetop.counts.counts import Counts
from treetop.engine.engine import Executor, Threads
from treetop.measure.descent import descent_of, run_descent
from treetop.measure.joint import measure_tables
from treetop.measure.measure import measure_total
from treetop.noise import Key
from treetop.plan.plan import Plan
from treetop.plan.workload import noise_of
from treetop.release.estimates.reestimate import with_lower_error
from treetop.release.intervals.table_evidence import TableEvidence, fitted_leaves
from treetop.release.margins import jointly_measured, tables_of
from treetop.release.measurements import FEW_NODES, Measurements
from treetop.release.release import Release
from treetop.repair import REPAIRS


def run_joint(
    plan: Plan, counts: Counts, key: Key, card: dict[str, Any], *, progress: Progress | None = None, **_: object
) -> Release:
    """Measure the plan's tables, and return the counts fitted to them with all measurements."""
    laws = [noise_of(level.how) for level in plan.levels]
    total = measure_total(counts, plan.levels[0].how, key.derive("total"))
    measured = measure_tables(plan, counts, key.derive("margins"))
    if progress is not None:
        progress("fitting", 0.0)
    evidence = TableEvidence(
        plan.spine, plan.margin_tables, [part.law for part in plan.margin_parts], measured, total, laws[0]
    )
    nodes, count = fitted_leaves(evidence)
    kept = Measurements(plan.spine, None if laws[0] is None else total, tuple(laws), (None,))
    release = Release(plan.spine, nodes, count, card, all_measured=kept)
    if progress is not None:
        progress("fitting", 1.0)
    return replace(release, margins=jointly_measured(evidence, release.tree))


def run_plan(
    plan: Plan,
    counts: Counts,
    key: Key,
    card: dict[str, Any],
    *,
    threads: int = 1,
    progress: Progress | None = None,
    keep_measurements: bool = False,
    executor: Executor | None = None,
    scratch: Path | None = None,
) -> Release:
    """Descend once, and return the release with the measurements for intervals, remainders and later estimates."""
    again = REPAIRS[plan.repair].again
    # Intervals of sums need all measurements, so that those of a release with intervals are always kept.
    evidence = keep_measurements or plan.confidence is not None
    every: int | None = None
    if keep_measurements or again:
        every = max(level.nodes for level in plan.levels)
    elif evidence or plan.resolve != "full":
        every = FEW_NODES
    found = run_descent(
        descent_of(plan), counts, key, executor or Threads(threads), progress, every=every, scratch=scratch
    )
    left, seen = found.left if plan.resolve != "full" else None, found.evidence if evidence or again else None
    leaves = found.leaves
    release = Release(plan.spine, leaves.nodes, leaves.count, card, left=left, evidence=seen, facts=found.facts)
    if plan.margin_tables:
        laws = [part.law for part in plan.margin_parts]
        tables = tables_of(plan.margin_tables, laws, found.margins, release.tree, found.facts)
        release = replace(release, margins=tables)
    if not again:
        return release
    estimated = with_lower_error(release)
    return estimated if evidence else replace(estimated, evidence=None, all_measured=None)
