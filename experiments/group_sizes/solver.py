"""The paper's mechanisms by a solver, M_H and M_c: the nearest whole numbers, as an integer program for HiGHS.

A quadratic cost of a whole number is a sum of unit steps, each dearer than the one before, so that the program is
linear: a step is a variable between 0 and 1. The numbers are looked for in windows around the nearest real ones, and
one on the border of its window is no solution: of M_H, whose cost is M-convex, the others are then the nearest of all.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_matrix, csr_matrix, hstack, vstack

import treetop as tt
from experiments.group_sizes.tables import Table
from treetop.measure.measure import Measuring
from treetop.measure.vectors import measure_groups
from treetop.noise import Key
from treetop.plan.group_unit import Form, GroupUnit
from treetop.plan.region_histograms import RegionHistograms, region_tree
from treetop.privacy import Loss
from treetop.repair import Tree, relax_cumulative, relax_tree
from treetop.repair.groups import KnownTotals

Integers = NDArray[np.int64]

REACH = 6
"""How far from the nearest real number a whole one is looked for."""
LIMIT = 60.0
"""The seconds that the solver may take for one release."""
FORMS: dict[str, Form] = {"M_H": "direct", "M_c": "cumulative"}
UNIT = GroupUnit("person", event="join-leave")


@dataclass(frozen=True)
class Repaired:
    """What one of Treetop's repairs made of the measurements."""

    name: str
    """The repair."""
    cost: float
    """The squared distance of its numbers from the measurements."""
    error: float
    """The L1 distance from the truth."""


@dataclass(frozen=True)
class Solved:
    """One release by a solver, and what Treetop's repairs make of the same measurements."""

    mechanism: str
    """The paper's name: M_H or M_c."""
    largest: int
    """The largest size."""
    seed: int
    """Which run."""
    seconds: float
    """Processor time of the solver."""
    solved: bool
    """Whether it came to an end within its time, with numbers inside of their windows."""
    cost: float
    """The squared distance of its numbers from the measurements; not a number where there are none."""
    error: float
    """The L1 distance from the truth."""
    others: tuple[Repaired, ...]
    """What Treetop's repairs made of the same measurements."""


def solve_once(table: Table, mechanism: str, epsilon: float, seed: int, limit: float = LIMIT) -> Solved:
    """Measure once, and repair by the solver and by Treetop."""
    sizes, form = table.sizes, FORMS[mechanism]
    loss, key = Loss(epsilon=epsilon), Key(seed.to_bytes(32, "big"))
    plans = [
        tt.group_plan(
            sizes.regions, sizes.largest, UNIT, loss, rows="histogram", number=table.groups, form=form, repair=repair
        )
        for repair in ("exact", "joint")
    ]
    plan, tree = plans[0], region_tree(sizes.regions)
    measured, known = measure_groups(plan, sizes, Measuring(plan.workload, key))
    truth = tree.sum_up(sizes.number.T).T

    def judged(counts: Integers) -> tuple[float, float]:
        compared = counts.cumsum(axis=1) if form == "cumulative" else counts
        target = measured.copy()
        if form == "cumulative":
            target[0, -1] = known.total
        return float(((compared - target) ** 2).sum()), float(np.abs(counts - truth).sum())

    start = time.process_time()
    found = nearest_whole(tree, measured, known, form, limit)
    seconds = time.process_time() - start
    others = []
    for one in plans:
        way = RegionHistograms.of(one)
        counts = way.repaired(one)(tree, measured, way.weights(one), known, key, 1)
        others.append(Repaired(way.title(one), *judged(counts)))
    cost, error = (float("nan"), float("nan")) if found is None else judged(found)
    return Solved(mechanism, sizes.largest, seed, seconds, found is not None, cost, error, tuple(others))


def nearest_whole(
    tree: Tree, measured: Integers, known: KnownTotals, form: Form, limit: float = LIMIT, reach: int = REACH
) -> Integers | None:
    """Return the nearest whole numbers of groups, by node and size; None where the time, or a window, is too short."""
    rising, y = form == "cumulative", measured.copy()
    if rising:
        y[0, -1] = known.total
        near = relax_cumulative(tree, measured, known.total)
    else:
        near = relax_tree(tree, measured.T, None, known.total).T
    low = np.maximum(np.floor(near).astype(np.int64) - reach, 0)
    steps = 2 * reach + 1
    # The cost of the step from k to k + 1 is 2(k − y) + 1: it rises with k, so steps are taken in their order.
    price = 2 * (low.ravel()[:, None] + np.arange(steps) - y.ravel()[:, None]) + 1
    cells, count = low.size, low.size * steps
    whole = coo_matrix((np.full(cells, -1.0), (np.arange(cells), np.arange(cells))), (cells, cells))
    taken = coo_matrix((np.ones(count), (np.repeat(np.arange(cells), steps), np.arange(count))), (cells, count))
    sums, at = _sums(tree, low.shape[1], rising)
    rest = csr_matrix((sums.shape[0], count))
    rules = [
        LinearConstraint(hstack([whole, taken], "csr"), -low.ravel(), -low.ravel()),
        LinearConstraint(hstack([sums, rest], "csr"), at * known.total, at * known.total),
    ]
    if rising:
        order = _rises(*low.shape)
        rules.append(LinearConstraint(hstack([order, csr_matrix((order.shape[0], count))], "csr"), 0, np.inf))
    found = milp(
        np.concatenate([np.zeros(cells), price.ravel()]),
        integrality=np.concatenate([np.ones(cells), np.zeros(count)]),
        bounds=Bounds(np.append(low, np.zeros(count)), np.append(low + steps, np.ones(count))),
        constraints=rules,
        options={"time_limit": limit, "mip_rel_gap": 0.0},
    )
    if found.status != 0 or found.x is None:
        return None
    x: Integers = np.rint(found.x[:cells]).astype(np.int64).reshape(low.shape)
    if ((x == low + steps) | ((x == low) & (low > 0))).any():  # a wider window might have nearer ones
        return None
    return np.diff(x, axis=1, prepend=0) if rising else x


def _sums(tree: Tree, sizes: int, rising: bool) -> tuple[csr_matrix, NDArray[np.float64]]:
    """Return the rules that regions are the sums of their parts, size by size, and that the root has the total."""
    inner = np.flatnonzero(tree.inner >= 0)
    own = [(row, v, 1.0) for row, v in enumerate(inner)]
    below = [(row, c, -1.0) for row, v in enumerate(inner) for c in range(tree.child[v], tree.child[v + 1])]
    row, node, sign = (np.array(column) for column in zip(*own, *below, strict=True))
    size = np.arange(sizes)
    rows, columns = ((at[:, None] * sizes + size).ravel().astype(np.int64) for at in (row, node))
    add_up = coo_matrix((np.repeat(sign, sizes), (rows, columns)), (len(inner) * sizes, tree.nodes * sizes))
    last = size[-1:] if rising else size
    total = coo_matrix((np.ones(len(last)), (np.zeros(len(last), np.int64), last)), (1, tree.nodes * sizes))
    return vstack([add_up, total], "csr"), np.append(np.zeros(len(inner) * sizes), 1.0)


def _rises(nodes: int, sizes: int) -> csr_matrix:
    """Return the differences of neighbouring sizes, which may not be negative."""
    cell = np.arange(nodes * sizes).reshape(nodes, sizes)
    later, before = cell[:, 1:].ravel(), cell[:, :-1].ravel()
    row = np.tile(np.arange(len(later)), 2)
    sign = np.repeat([1.0, -1.0], len(later))
    return coo_matrix((sign, (row, np.concatenate([later, before]))), (len(later), nodes * sizes)).tocsr()
