"""Running the mechanisms on the tables: errors by level, broken sums and processor time of every run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import treetop as tt
from experiments.group_sizes.solver import FORMS, Solved, solve_once
from experiments.group_sizes.tables import (
    CENSUS_GROUPS,
    CENSUS_LARGEST,
    TAXI_LARGEST,
    TRIPS,
    Table,
    census_like,
    households,
    taxi_like,
)
from experiments.kit.runs import Kept
from treetop.addons.lab.mechanisms.registry import RoundedHistograms
from treetop.errors import TreetopError
from treetop.measure.vectors import measured_groups
from treetop.noise import Key
from treetop.noise.gate import Gate
from treetop.plan.group_unit import Form, GroupUnit
from treetop.plan.region_histograms import Public, region_tree
from treetop.privacy import Loss

EPSILONS = (0.1, 0.5, 1.0)
REPEATS = 30
LARGE_REPEATS = 10
"""Tables of the paper's sizes, a run of which takes seconds, are run less often."""
LARGE = 1_000_000
"""From so many counts on a table is large."""
WAYS: dict[str, tuple[Form, str, Public]] = {
    "M_H^r": ("direct", "rounded", "total"),
    "M_H^dp": ("direct", "exact", "total"),
    "M_c^r": ("cumulative", "rounded", "total"),
    "M_c^dp": ("cumulative", "exact", "total"),
    "M_c^r+dp": ("cumulative", "joint", "total"),
    "M_c^r+dp, regions": ("cumulative", "joint", "regions"),
}
"""The paper's four, ours, and ours where the number of groups of every region is public."""
CLASSES = {"0 to 2": (0, 3), "3 to 6": (3, 7), "7 to 10": (7, 11), "11 to 100": (11, 101), "above 100": (101, None)}
"""Sizes in classes: the first and the one after the last."""
SMALL = 3
"""So many classes are of small sizes: up to 10."""
LARGEST = (5, 10, 20, 30, 40, 50)
"""The largest sizes of the paper's figure 8."""
UNIT = GroupUnit("person", event="join-leave")


@dataclass(frozen=True)
class Run:
    """One run of a mechanism."""

    table: str
    """On which table."""
    mechanism: str
    """The paper's name of it."""
    epsilon: float
    """The loss of all levels together."""
    largest: int
    """The largest size of the table."""
    seconds: float
    """Processor time of the release."""
    error: float
    """The L1 distance from the truth, over all levels."""
    level_1: float
    """That of the root."""
    level_2: float
    """That of its parts."""
    level_3: float
    """That of the finest regions."""
    classes: tuple[float, ...]
    """That of each class of sizes, over all levels."""
    violations: int
    """How many counts of regions with parts are not the sum of their parts."""


def run_once(table: Table, mechanism: str, epsilon: float, seed: int) -> Run:
    """Run a mechanism; the seed makes its noise, so that a page can be written again."""
    form, repair, public = WAYS[mechanism]
    sizes = table.sizes
    about: Any = {"rows": "histogram", "number": table.groups, "form": form, "public": public}
    made = tt.group_plan(sizes.regions, sizes.largest, UNIT, Loss(epsilon=epsilon), **about)
    plan = replace(made, mechanism=RoundedHistograms(public, repair))
    start = time.process_time()
    with measured_groups(plan, sizes, Gate(Key(seed.to_bytes(32, "big"))), None) as found:
        counts = found.counts
    seconds = time.process_time() - start
    tree = region_tree(sizes.regions)
    wrong = np.abs(counts - tree.sum_up(sizes.number.T).T)
    one, two, three = (float(wrong[level].sum()) for level in tree.levels)
    inner = tree.inner >= 0
    sums = np.add.reduceat(counts[1:], tree.child[:-1][inner] - 1, axis=0)
    return Run(
        table=table.name,
        mechanism=mechanism,
        epsilon=epsilon,
        largest=sizes.largest,
        seconds=seconds,
        error=one + two + three,
        level_1=one,
        level_2=two,
        level_3=three,
        classes=tuple(float(wrong[:, first:stop].sum()) for first, stop in CLASSES.values()),
        violations=int(np.count_nonzero(sums != counts[inner])),
    )


def tables(data: Path | None, quick: bool) -> Iterator[Table]:
    """Make the tables, those of the paper's sizes first; quick ones are a hundredth of the size."""
    if quick:
        yield census_like(groups=1_000_000, largest=40, states=8, counties=120)
        yield taxi_like(largest=200, taxis=300)
        return
    yield (None if data is None else households(data, CENSUS_LARGEST)) or census_like()
    yield taxi_like()
    yield census_like(groups=CENSUS_GROUPS // 10, states=10, counties=314, name="census-like, a tenth")
    yield taxi_like(largest=TAXI_LARGEST // 10, by_zone=False, trips=TRIPS // 10)
    real = None if data is None else households(data)
    if real is not None:
        yield real


def often(table: Table, runs: int | None) -> int:
    """Return how often each setting of a table is run: large ones less often, and none more often than is asked."""
    usual = LARGE_REPEATS if table.sizes.number.size >= LARGE else REPEATS
    return usual if runs is None else runs


def run_tables(
    every: Sequence[Table],
    runs: int | None,
    say: Callable[[str], object],
    kept: Callable[[str], Kept] = lambda _: Kept(),
) -> tuple[list[Run], list[str]]:
    """Run every mechanism on every table at every epsilon; return the runs, and what was refused.

    Every setting is run once before any is run twice, so that what is kept of a study that was stopped is of use.
    """
    found: list[Run] = []
    refused: dict[str, None] = {}
    keeps = {table.name: kept(table.name) for table in every}
    for seed in range(max(often(table, runs) for table in every)):
        for table in every:
            if seed >= often(table, runs):
                continue
            for mechanism, epsilon in product(WAYS, EPSILONS):
                try:
                    make = partial(run_once, table, mechanism, epsilon, seed)
                    found.append(keeps[table.name].run(Run, f"{mechanism} {epsilon:g} {seed}", make))
                except TreetopError as problem:
                    refused[f"{mechanism} on {table.name} at ε = {epsilon:g}: {problem}"] = None
        say(f"run {seed + 1}: done")
    return found, list(refused)


def run_times(largest: Sequence[int], repeats: int, say: Callable[[str], object]) -> list[Run]:
    """Run every mechanism on taxi tables whose larger groups are left out, as in figure 8: at ε = 1, one thread."""
    runs: list[Run] = []
    for size in largest:
        table = taxi_like(largest=size)
        for mechanism in WAYS:
            try:
                if size == largest[0]:
                    run_once(table, mechanism, 1.0, 99)  # compiles
                runs += [run_once(table, mechanism, 1.0, seed) for seed in range(repeats)]
            except TreetopError as problem:
                say(f"  {mechanism} with sizes to {size}: {problem}")
        say(f"times with sizes to {size}: done")
    return runs


def run_solver(
    largest: Sequence[int], repeats: int, say: Callable[[str], object], kept: Callable[[str], Kept] = lambda _: Kept()
) -> list[Solved]:
    """Run the paper's integer programs by a solver on the tables of figure 8, at ε = 1."""
    keep, found = kept("solver"), []
    for size in largest:
        table = taxi_like(largest=size)
        for mechanism, seed in product(FORMS, range(repeats)):
            make = partial(solve_once, table, mechanism, 1.0, seed)
            found.append(keep.run(Solved, f"{mechanism} {size} {seed}", make))
        say(f"solver with sizes to {size}: done")
    return found
