"""One run of a plan on private counts: the descent measures them, and all that comes after is post-processing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from treetop.measure.descent import descend
from treetop.measure.evidence import Witness
from treetop.release.release import Release

if TYPE_CHECKING:
    from treetop.basics.progress import Progress
    from treetop.noise import Key
    from treetop.plan.plan import Plan
    from treetop.read.counts import Counts

FEW_NODES = 1 << 20
"""Every measurement is kept at levels with at most so many public nodes: a megabyte or so each."""


def run_plan(
    plan: Plan,
    counts: Counts,
    key: Key,
    card: dict[str, Any],
    *,
    threads: int = 1,
    progress: Progress | None = None,
    keep_measurements: bool = False,
) -> Release:
    """Descend once, and return the release with what it needs for intervals, remainders and later estimates."""
    witness = _witness(plan, keep_measurements)
    leaves = descend(plan.descent, counts, key, threads, progress, witness=witness)
    release = Release(plan.spine, leaves.nodes, leaves.count, card)
    if witness is None:
        return release
    if plan.resolve != "full":
        release = replace(release, left=witness.remainders(len(plan.spine.attributes)))
    lower_error = plan.repair == "least-squares"
    if plan.confidence is not None or keep_measurements or lower_error:
        release = replace(release, evidence=witness.evidence([level.law for level in plan.levels]))
    if not lower_error:
        return release
    from treetop.release.estimates.again import with_lower_error

    estimated = with_lower_error(release, release.measurements)
    # Intervals of sums need all measurements, so that those of a release with intervals are always kept.
    kept = keep_measurements or plan.confidence is not None
    return estimated if kept else replace(estimated, evidence=None, kept=None)


def _witness(plan: Plan, keep_measurements: bool) -> Witness | None:
    """Return who takes down what is measured: everything, only what intervals need, or nothing."""
    if keep_measurements or plan.repair == "least-squares":
        return Witness(every=max(level.nodes for level in plan.levels))
    if plan.confidence is None and plan.resolve == "full":
        return None
    return Witness(every=FEW_NODES)
