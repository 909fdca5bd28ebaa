"""Measuring group sizes: every region of every level at once, and the repair that makes them add up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treetop.errors import DataError
from treetop.intake.groups.sizes import GroupSizes
from treetop.measure.workload import Measuring, measuring
from treetop.noise.gate import Charge, Gate, digest
from treetop.plan.groups.plan import GroupPlan
from treetop.repair.groups import Known


class Groups(NamedTuple):
    """What one run found of every region, from the root down (row), and size (column)."""

    measured: NDArray[np.int64]
    """The measurements, in the form that the plan measures; 0 where nothing was."""
    counts: NDArray[np.int64]
    """The repaired numbers of groups."""


@contextmanager
def measured_groups(
    plan: GroupPlan, sizes: GroupSizes, gate: Gate, charge: Charge | None, threads: int = 1
) -> Iterator[Groups]:
    """Measure private sizes once, and yield the repaired numbers of groups of every region and size.

    What fails in the block is `Unfinished`, for the loss is spent. The result does not depend on `threads`.
    """
    if sizes.regions.digest != plan.regions.digest or sizes.largest != plan.largest:
        raise DataError("these group sizes have other regions, or another largest size, than the plan")
    plan.check_number(int(sizes.number.sum()))
    plan.check_memory()
    with measuring(plan.workload, gate, charge, "groups", digest(plan.describe()), sizes.digest) as run:
        measured, known = measure_groups(plan, sizes, run)
        counts = plan.repaired(plan.tree, measured, plan.weights, known, run.key.derive("repair"), threads)
        yield Groups(measured, counts)


def measure_groups(plan: GroupPlan, sizes: GroupSizes, run: Measuring) -> tuple[NDArray[np.int64], Known]:
    """Return the counts of every region and size plus noise, and the numbers of groups, which are public.

    It is the only step that reads private counts. One unit moves each level by at most the sensitivity that its noise
    was made for; where nothing is measured there are zeros, which have no weight.
    """
    measured = np.zeros((plan.tree.nodes, plan.largest + 1), np.int64)
    truth = plan.tree.sum_up(sizes.number.T).T
    groups = truth.sum(axis=1)
    if plan.form == "cumulative":
        truth = truth.cumsum(axis=1)
    for level, _ in plan.workload.measured:
        own = plan.tree.levels[level.index]
        measured[own] = run.noisy(level, truth[own], run.key.derive("noise").derive("level", level.index))
    spread = min(law.standard_deviation for _, law in plan.workload.measured)
    if plan.public == "regions":
        return measured, Known(int(groups[0]), groups, np.full(len(groups), True), spread)
    high = np.full(len(groups), groups[0])
    return measured, Known(int(groups[0]), high, np.arange(len(groups)) == 0, spread)
