"""Among the named: how often their intervals hold, and whether the rate is held where most parents have one child."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, stdev

import numpy as np

import treetop as tt
from experiments.kit.cases import TRIP, Table
from experiments.kit.runs import Kept, key, release
from experiments.resolution.measure import DELTA, EPSILONS, RUNS, SETTINGS, Setting
from treetop.advice.coverage import Coverage, measure_coverage
from treetop.counts.counts import Counts
from treetop.release.errors import measure_errors

CONFIDENCE = 0.95
TRIED = tuple(setting for setting in SETTINGS if setting.label in ("fdr 0.10", "fdr 0.05", "3 sigmas"))
SPARSE_EPSILONS = (1.0, 2.0, 4.0)
SPARSE_RUNS = 200

Pairs = tuple[tuple[Coverage, Coverage], ...]
"""Of every level of one release, the coverage of its named nodes: by plain intervals, and by those that they have."""


@dataclass(frozen=True)
class Among:
    """The named nodes of one table with one loss and one setting."""

    title: str
    epsilon: float
    setting: Setting
    runs: tuple[Pairs, ...]

    def covered(self, level: int, own: bool) -> float:
        """Return the share of the named that is within its interval, in the mean of the releases that name any."""
        shares = [run[level][own].share for run in self.runs]
        return fmean([share for share in shares if share is not None] or [1.0])

    @property
    def everywhere(self) -> float:
        """The same for the intervals as they are, in the mean of all levels."""
        return fmean(self.covered(level, own=True) for level in range(1, len(self.runs[0])))

    @property
    def wider(self) -> float:
        """How many times as wide as plain ones the intervals of the leaves are."""
        plain, own = (sum(run[-1][which].widths for run in self.runs) for which in (False, True))
        return own / plain if plain else 1.0


def among(
    table: Table, epsilons: Sequence[float] = EPSILONS, runs: int = RUNS, kept: Kept | None = None
) -> Iterator[Among]:
    """Release a table with intervals, and compare those of the named with the truth."""
    keep = kept or Kept()
    for epsilon in epsilons:
        for setting in TRIED:
            plan = _plan(table, epsilon, setting, CONFIDENCE)
            names = [f"named {table.name} {epsilon:g} {setting.label} {number}" for number in range(runs)]
            found = tuple(keep.run(Pairs, name, partial(_pairs, plan, table, name)) for name in names)
            yield Among(table.title, epsilon, setting, found)


def _pairs(plan: tt.Plan, table: Table, name: str) -> Pairs:
    made = release(plan, table, key(name))
    plain = replace(made)
    vars(plain)["measured"] = replace(made.measured, selective=False)  # intervals that ignore how nodes were chosen
    rows = zip(*(measure_coverage(one, table.truth, CONFIDENCE) for one in (plain, made)), strict=True)
    return tuple((one.all_sizes.positives, other.all_sizes.positives) for one, other in rows)


def _plan(table: Table, epsilon: float, setting: Setting, confidence: float | None) -> tt.Plan:
    loss = tt.Loss(epsilon=epsilon, delta=DELTA, accounting="exact")
    return tt.Plan(table.spine, TRIP, loss, resolve=setting.resolve, confidence=confidence, margins="none")  # type: ignore[arg-type]


def villages() -> Table:
    """Make a very sparse table: trips between quarters of ten cities, and hardly any of ninety villages of one each."""
    codes = [f"v{i:02d}0" for i in range(90)] + [f"w{i:02d}{quarter}" for i in range(10) for quarter in "abcdefghijkl"]
    place = tt.Hierarchy.from_prefixes(codes, widths=[3], levels=["town", "quarter"])
    spine = tt.Spine.destination_first(origin=place, destination=place)
    rng, pairs = np.random.default_rng(2), 600
    ends = [
        np.where(rng.random(pairs) < 0.05, rng.integers(0, 90, pairs), 90 + rng.integers(0, 120, pairs))
        for _ in range(2)
    ]
    truth = Counts.from_leaves(spine, ends, rng.poisson(8, pairs) + 1)
    return Table("villages", "Made up: cities and villages", spine, truth)


@dataclass(frozen=True)
class Held:
    """The rate among the leaves of a table that is released many times."""

    epsilon: float
    asked: float
    proportions: tuple[float, ...]
    """The share of truly empty leaves among the named, release by release; 0 where none is named."""
    named: int
    """How many leaves all releases name."""
    empty: int
    """How many of them are truly empty."""

    @property
    def row(self) -> tuple[str, ...]:
        """What is told of it."""
        error = stdev(self.proportions) / len(self.proportions) ** 0.5
        pooled = f"{self.empty / self.named:.1%}" if self.named else "–"
        mean, each = fmean(self.proportions), self.named / len(self.proportions)
        return f"{self.epsilon:g}", f"{self.asked:g}", f"{mean:.1%} ± {error:.1%}", f"{each:.1f}", pooled


def held(table: Table, epsilons: Sequence[float] = SPARSE_EPSILONS, runs: int = SPARSE_RUNS) -> Iterator[Held]:
    """Release a table many times at each rate, and count what is named and empty."""
    for epsilon in epsilons:
        for setting in TRIED:
            if setting.fdr is None:
                continue
            plan = _plan(table, epsilon, setting, None)
            names = [f"held {table.name} {epsilon:g} {setting.label} {number}" for number in range(runs)]
            leaves = [measure_errors(release(plan, table, key(name)), table.truth)[-1] for name in names]
            named = [row.released_nodes for row in leaves]
            rates = tuple(row.false_discoveries for row in leaves)
            empty = sum(round(rate * number) for rate, number in zip(rates, named, strict=True))
            yield Held(epsilon, setting.fdr, rates, sum(named), empty)
