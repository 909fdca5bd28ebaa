"""Releases of sparse tables with margins and without: the errors of the largest counts, and of all.

For comparison, a process of its own compiles the two-sided repair with equal weights of all cells.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import treetop as tt
from experiments.kit import cases, runs
from experiments.kit.cases import TRIP, Table
from treetop.counts.counts import Counts
from treetop.measure.questions import leaves_of

EPSILONS = (0.1, 1.0)
DELTA = 1e-8
CONFIDENCE = 0.95
LARGEST = 100
"""How many of the largest true counts are looked at."""

Variant = Literal["no margins", "equal weights", "default"]
VARIANTS: tuple[Variant, ...] = ("no margins", "equal weights", "default")
"""Without margins; with them, all cells giving way alike; with them, clear measurements being held."""


@dataclass(frozen=True)
class Run:
    """One release. Errors are of the largest true counts unless said otherwise."""

    epsilon: float
    variant: Variant
    bias: float
    """Mean of released less true count."""
    error: float
    """Mean absolute error."""
    outside: float
    """Share of the leaves released with a count of at least 100 that are outside their own interval."""
    every: float
    """Mean absolute error of all leaves that are above zero in truth or in the release."""
    invented: float
    """Share of the leaves released above zero that are truly zero."""
    lost: float
    """Share of the leaves truly above zero that are released as zero."""


@dataclass(frozen=True, eq=False)
class Study:
    """All releases of one table."""

    table: Table
    runs: tuple[Run, ...] = field(repr=False)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Return the losses."""
        return tuple(dict.fromkeys(run.epsilon for run in self.runs))

    def values(self, epsilon: float, variant: Variant, figure: str) -> NDArray[np.float64]:
        """Return a figure, run by run."""
        own = [getattr(run, figure) for run in self.runs if (run.epsilon, run.variant) == (epsilon, variant)]
        return np.array(own, np.float64)

    def mean(self, epsilon: float, variant: Variant, figure: str) -> float:
        """Return the mean of a figure over all runs."""
        return float(self.values(epsilon, variant, figure).mean())

    def standard_error(self, epsilon: float, variant: Variant, figure: str) -> float:
        """Return the standard error of that mean."""
        values = self.values(epsilon, variant, figure)
        return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def made_up(regions: int = 20, places: int = 20) -> Table:
    """Make trips between places of very different size; nearly all go far, and few pairs occur."""
    rng = np.random.default_rng(1)
    size = regions * places
    weight = rng.pareto(1.1, size) + 0.05
    pairs = np.outer(weight, weight) * rng.pareto(1.2, (size, size))
    trips = rng.poisson(pairs * (rng.random((size, size)) < 0.08) * 400 / pairs.mean())
    codes = [f"{place // places:02}{place % places:02}" for place in range(size)]
    tree = tt.Hierarchy.from_prefixes(codes, widths=[2], levels=["region", "place"])
    spine = tt.Spine.destination_first(origin=tree, destination=tree)
    origin, destination = np.nonzero(trips)
    counts = Counts.from_leaves(spine, [origin, destination], trips[origin, destination])
    return Table(f"made-up-{size}", "made up: trips between places of very different size", spine, counts)


def tables(data: Path | None, quick: bool = False) -> Iterator[Table]:
    """Yield the sparse tables; `quick`, a small made-up one."""
    if quick:
        yield made_up(8, 10)
        return
    yield made_up()
    if data is not None:
        yield cases.flights(data)
        yield cases.sardinia(data)


def study(
    table: Table, number: int, epsilons: Sequence[float] = EPSILONS, variants: Sequence[Variant] = VARIANTS
) -> Study:
    """Release a table several times at every loss, in every variant."""
    found: list[Run] = []
    for variant in variants:
        if variant == "equal weights":
            found += _with_equal_weights(table, number, epsilons)
        else:
            found += [run_once(table, epsilon, variant, run) for epsilon in epsilons for run in range(number)]
    return Study(table, tuple(found))


def _with_equal_weights(table: Table, number: int, epsilons: Sequence[float]) -> Iterator[Run]:
    """Run the variant in a process of its own: a kernel has the weight of its first compilation."""
    with tempfile.TemporaryDirectory() as kernels:
        asked = [sys.executable, "-m", "experiments.large_counts.equal_weights"]
        words = [table.name, str(number), *map(str, epsilons)]
        environment = {**os.environ, "NUMBA_CACHE_DIR": kernels}
        root = Path(__file__).parents[2]
        done = subprocess.run(
            [*asked, *words], capture_output=True, check=True, text=True, env=environment, cwd=root
        )  # fmt: skip
    yield from (Run(**run) for run in json.loads(done.stdout))


def run_once(table: Table, epsilon: float, variant: Variant, run: int) -> Run:
    """Release a table once; the same run has the same key in every variant."""
    margins = "none" if variant == "no margins" else "each"
    plan = tt.Plan(table.spine, TRIP, tt.Loss(epsilon=epsilon, delta=DELTA), margins=margins)
    release = runs.release(plan, table, runs.key("large-counts", table.name, epsilon, run))
    sizes = tuple(tree.sizes[-1] for tree in table.spine.trees)
    nodes, number = leaves_of(table.spine, table.truth)
    true, found = np.zeros(sizes, np.int64), np.zeros(sizes, np.int64)
    true[tuple(nodes)], found[tuple(release.nodes)] = number, release.count
    top = np.argsort(-true, axis=None, kind="stable")[:LARGEST]
    error = (found - true).ravel()[top]
    there, shown = true > 0, found > 0
    leaves = release.intervals_at(CONFIDENCE)[-1]
    some = release.count >= 100
    outside = (release.count < leaves.lower) | (release.count > leaves.upper)
    return Run(
        epsilon,
        variant,
        float(error.mean()),
        float(np.abs(error).mean()),
        float(outside[some].mean()) if some.any() else 0.0,
        float(np.abs(found - true)[there | shown].mean()),
        float((shown & ~there).sum() / max(shown.sum(), 1)),
        float((there & ~shown).sum() / there.sum()),
    )
