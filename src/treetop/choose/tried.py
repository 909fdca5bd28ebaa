"""Errors of any table in trials on a public twin: of levels and margins, and of what is only summed from them."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.basics.progress import Progress
from treetop.choose.expected import Depths
from treetop.choose.known import fitted
from treetop.choose.prior import Prior
from treetop.choose.simulate import public_twin
from treetop.domain.spine import Spine
from treetop.errors import PlanError
from treetop.intake.counts import Counts
from treetop.measure.questions import leaves_of
from treetop.measure.topdown import descent_of
from treetop.noise import Key
from treetop.plan.plan import PurePlan
from treetop.release.run import run_plan

Ints = NDArray[np.int64]

_FEW = 1 << 20
"""So many cells are counted as they are numbered."""


def table_errors(
    plan: PurePlan,
    prior: Prior,
    tables: Sequence[Depths],
    *,
    runs: int = 20,
    threads: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[float]:
    """Release a public twin many times, and return the mean absolute error of every table, over all public nodes.

    The twin may have been read with another order of the same attributes.
    """
    public_twin(prior)
    if runs < 1:
        raise PlanError(f"the number of trials is {runs}: give 1 or more")
    spine = plan.spine
    leaf, true = moved_leaves(prior, spine)
    twin = Counts.from_leaves(spine, leaf, true)
    plan = fitted(plan, twin)
    descent_of(plan)  # made once, not by every thread
    secret = Key(hashlib.blake2b(f"trial {seed}".encode(), digest_size=32).digest())

    def run(number: int) -> list[float]:
        found = run_plan(plan, twin, secret.derive("trial", number), {})
        released = [np.asarray(own, np.int64) for own in found.nodes]
        leaves = [np.concatenate(pair) for pair in zip(leaf, released, strict=True)]
        error = np.concatenate([-true, found.count])
        return [mean_error(spine, leaves, error, table) for table in tables]

    tried = []
    with ThreadPoolExecutor(max_workers=max(threads or os.cpu_count() or 1, 1)) as pool:
        for done, errors in enumerate(pool.map(run, range(runs)), start=1):
            tried.append(errors)
            if progress is not None:
                progress("trials", done / runs)
    means: list[float] = np.mean(tried, axis=0).tolist()
    return means


def moved_leaves(prior: Prior, spine: Spine) -> tuple[list[Ints], Ints]:
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


def cell_sums(spine: Spine, leaves: Sequence[Ints], value: Ints, table: Depths) -> NDArray[np.float64]:
    """Return what values of leaves add up to in the cells of a table: at least in those that have any."""
    cell, cells = np.zeros(len(value), np.int64), 1
    for tree, depth, own in zip(spine.trees, table, leaves, strict=True):
        if depth:
            cell = cell * tree.sizes[depth - 1] + tree.ancestors(depth - 1)[own]
            cells *= tree.sizes[depth - 1]
            if cells > 4 * len(cell) + _FEW:  # most are empty, and all may be more than 64 bits can tell
                found, cell = np.unique(cell, return_inverse=True)
                cell, cells = cell.reshape(-1), len(found)
    sums: NDArray[np.float64] = np.asarray(np.bincount(cell, value), np.float64)
    return sums
