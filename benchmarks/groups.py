"""(f) Group sizes in the shapes of the paper: a release in seconds and bytes, and its repair over a generic QP."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import treetop as tt
from benchmarks.peers.environments import HOME, Environment
from benchmarks.timing import median_seconds
from experiments.group_sizes.tables import Table, census_like, taxi_like
from treetop.measure.measure import Measuring
from treetop.measure.vectors import measure_groups
from treetop.noise import Key
from treetop.plan.group_unit import Form, GroupUnit
from treetop.plan.region_histograms import RegionHistograms, region_tree
from treetop.repair import Tree, relax_tree
from treetop.repair.groups import repair_cumulative, repair_direct

SHAPES: dict[str, Callable[[], Table]] = {"census": census_like, "taxi": taxi_like}
SOLVER = Environment(HOME / "qp", ("cvxpy==1.9.3", "clarabel==0.11.1"))
UNIT = GroupUnit("person", event="join-leave")
LIMIT = 60.0
"""The seconds that the generic solver may take."""
SIZES = (10, 20, 40, 80, 160, 320, 640, 1_000)

Row = tuple[str, str, str, str]


def rows() -> list[Row]:
    return [*(whole_release(shape) for shape in SHAPES), *against_solver()]


def whole_release(shape: str) -> Row:
    """From an Arrow table to a saved folder, in a process of its own for its peak memory."""
    run = subprocess.run([sys.executable, "-m", "benchmarks.groups", shape], check=True, capture_output=True, text=True)
    told = json.loads(run.stdout)
    about = (
        f"{told['cells'] / 1e6:.1f} million counts, {told['groups'] / 1e6:.1f} million groups, {told['peak']:.2f} GB"
    )
    return (
        f"(f) group sizes, {shape} shape",
        f"{told['seconds']:.2f} s on 2 threads",
        f"{about}; target 15 s, 2 GB",
        "-",
    )


def histogram(table: Table) -> pa.Table:
    """Return a private table with a row for each region and size that occurs."""
    region, size = np.nonzero(table.sizes.number)
    codes = table.sizes.regions.codes[-1].take(pa.array(region))
    return pa.table({"place": codes, "size": size, "number": table.sizes.number[region, size]})


def measure_whole(shape: str) -> dict[str, float]:
    """Release a table and save it: what a steward waits for, but for starting up and compiling."""
    made = SHAPES[shape]()
    rows, groups = histogram(made), made.groups
    regions, largest = made.sizes.regions, made.sizes.largest
    del made
    plan = tt.group_plan(
        regions, largest, UNIT, tt.Loss(epsilon=1), rows="histogram", number=groups, title="Group sizes"
    )
    threads = min(2, os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as folder:
        times = []
        for number in range(4):
            start = time.perf_counter()
            tt.make_release(plan, rows, tt.RunOptions(count="number", threads=threads)).save(Path(folder) / str(number))
            times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    cells = region_tree(regions).nodes * (largest + 1)
    return {"seconds": sorted(times[1:])[1], "peak": peak, "cells": cells, "groups": groups}


def against_solver(python: Path | None = None) -> list[Row]:
    """Compare the repairs with the generic solver on the census shape, with as many sizes as it solves in a minute."""
    if python is None:
        why = SOLVER.make()
        if why is not None:
            return [("(f) repairs over a generic QP", "-", f"cvxpy: not set up: {why}", "-")]
        python = SOLVER.python
    return [_largest_solved("direct", python), _largest_solved("cumulative", python)]


def _largest_solved(form: Form, python: Path) -> Row:
    last: Row = (f"(f) {form} repair over a generic QP", "-", f"the solver takes over {LIMIT:.0f} s on every size", "-")
    for largest in SIZES:
        found = one_size(form, largest, python)
        if found is None:
            break
        last = found
    return last


def one_size(form: Form, largest: int, python: Path) -> Row | None:
    """Return both times for one largest size; None where the solver takes too long.

    Ours are of the whole repair of a release, to whole numbers with their proof; the solver's are of the relaxation, in
    real numbers that are still to be rounded, from the same measurements.
    """
    table = census_like(largest=largest)
    regions, loss = table.sizes.regions, tt.Loss(epsilon=1)
    plan = tt.group_plan(regions, largest, UNIT, loss, rows="histogram", number=table.groups, form=form, repair="exact")
    y, known = measure_groups(plan, table.sizes, Measuring(plan.workload, Key(bytes(32))))
    tree, weights = region_tree(regions), RegionHistograms.of(plan).weights(plan)
    threads, key = min(2, os.cpu_count() or 1), Key(bytes(32))
    repair = repair_direct if form == "direct" else repair_cumulative
    exact = median_seconds(lambda: repair(tree, y, weights, known, key, threads), 3)
    told = _solve(form, y, tree, known.total, python)
    if told is None or told["seconds"] > LIMIT:
        return None
    name = f"(f) {form} repair, {tree.nodes:,} regions × {largest + 1} sizes"
    beside = f"Clarabel by CVXPY, relaxed: {told['seconds']:.1f} s ({told['solver_seconds']:.1f} s of it solving)"
    if form == "direct":
        relaxed = median_seconds(lambda: relax_tree(tree, y.T, weights, known.total, threads), 3)
        cost = float(((relax_tree(tree, y.T, weights, known.total, threads).T - y) ** 2).sum())
        if abs(told["cost"] - cost) > 1e-3 * cost:
            raise AssertionError(f"the solver's cost is {told['cost']}, ours {cost}")
        beside += f"; relaxed by us {relaxed:.3f} s, {told['seconds'] / relaxed:,.0f} ×"
    return name, f"{exact:.3f} s", beside, f"{told['seconds'] / exact:,.0f} ×"


def _solve(form: Form, y: NDArray[np.int64], tree: Tree, total: int, python: Path) -> dict[str, float] | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        np.savez(path, y=y, parent=tree.parent, total=total)
        script = Path(__file__).with_name("groups_qp.py")
        command = [python, script, path, form]
        try:
            run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=2 * LIMIT)
        except subprocess.TimeoutExpired:
            return None
    told: dict[str, float] = json.loads(run.stdout)
    return told


if __name__ == "__main__":
    print(json.dumps(measure_whole(sys.argv[1])))
