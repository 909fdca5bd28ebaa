"""Tables of six attributes of taxi trips: measured with noise, fitted jointly, and compared with the truth."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq
from numpy.typing import NDArray

import treetop as tt
from treetop.fit import Grid, NoisyTable, joint_fit
from treetop.privacy.accountant import exact_rho

EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-8
BOROUGHS = ("EWR", "Bronx", "Brooklyn", "Manhattan", "Queens", "Staten Island")
"""The last code of a borough stands for all others."""
PARTY = (0, 1, 2, 3, 3, 4, 4, 4, 4, 4)
"""The code of a party by number of passengers: 0, 1, 2, 3 or 4, 5 or more."""
UNKNOWN_PAYMENT = 5

Stage = Literal["measured", "combined", "fitted", "whole"]
STAGES: tuple[Stage, ...] = ("measured", "combined", "fitted", "whole")


@dataclass(frozen=True, eq=False)
class Records:
    """A table of records of several attributes, each of one level."""

    title: str
    truth: NDArray[np.int64] = field(repr=False)
    """The true count of every cell, one axis per attribute."""

    @property
    def grid(self) -> Grid:
        """The public attributes."""
        return Grid([tt.Hierarchy.flat([f"{code:02}" for code in range(size)]) for size in self.truth.shape])


@dataclass(frozen=True)
class Errors:
    """Mean absolute errors of one run at one stage, by how many attributes a table tells; NaN if it tells none."""

    epsilon: float
    stage: Stage
    one: float
    two: float
    worst_two: float
    """Of the table of two attributes with the largest mean error."""
    three: float
    cells: float
    """Of the cells of all attributes."""
    invented: float = float("nan")
    """Share of the positive cells that are truly empty."""
    lost: float = float("nan")
    """Share of the truly positive cells that are empty."""


@dataclass(frozen=True, eq=False)
class Study:
    """All runs of one table."""

    records: Records
    runs: int
    errors: tuple[Errors, ...]
    seconds: tuple[float, ...]
    """How long each joint fit took; the first includes compiling."""

    def mean(self, epsilon: float, stage: Stage, figure: str) -> float:
        """Return the mean of a figure over all runs."""
        own = [getattr(one, figure) for one in self.errors if (one.epsilon, one.stage) == (epsilon, stage)]
        return float(np.mean(own))


def taxi(data: Path) -> Records:
    """Read 360,000 trips: boroughs of pickup and dropoff, weekday, part of the day, party and payment."""
    folder = data / "od_nyc_taxi"
    trips = pq.read_table(folder / "trips_sample_360k.parquet")
    lookup = pv.read_csv(folder / "taxi_zone_lookup.csv").to_pydict()
    borough = np.full(max(lookup["LocationID"]) + 1, len(BOROUGHS))
    for zone, name in zip(lookup["LocationID"], lookup["Borough"], strict=True):
        if name in BOROUGHS:
            borough[zone] = BOROUGHS.index(name)
    passengers = np.nan_to_num(trips["passenger_count"].to_numpy()).astype(int)
    payment = np.nan_to_num(trips["payment_type"].to_numpy(), nan=UNKNOWN_PAYMENT).astype(int)
    codes = (
        borough[trips["pickup_location_id"].to_numpy()],
        borough[trips["dropoff_location_id"].to_numpy()],
        pc.day_of_week(trips["pickup_datetime"]).to_numpy(),
        pc.hour(trips["pickup_datetime"]).to_numpy() // 4,
        np.array(PARTY)[np.minimum(passengers, len(PARTY) - 1)],
        np.minimum(payment, UNKNOWN_PAYMENT) - 1,
    )
    truth = np.zeros((7, 7, 7, 6, 5, 5), np.int64)
    np.add.at(truth, codes, 1)
    return Records("New York taxi trips, six attributes", truth)


def made_up() -> Records:
    """Make a small table whose attributes depend on each other."""
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.full(5 * 4 * 4 * 3, 0.1))
    return Records("made up", rng.multinomial(50_000, shares).reshape(5, 4, 4, 3).astype(np.int64))


def study(records: Records, runs: int, epsilons: Sequence[float]) -> Study:
    """Measure all tables of one and two attributes with equal shares of the loss, and fit them, several times."""
    errors: list[Errors] = []
    seconds = []
    for epsilon in epsilons:
        for run in range(runs):
            tables = measured(records, epsilon, run)
            start = time.perf_counter()
            found = joint_fit(records.grid, tables)
            seconds.append(time.perf_counter() - start)
            told = {t.depths: np.asarray(t.value, np.float64) for t in tables if t.variance}
            combined = {depths: found.combined.value(depths) for depths in told}
            errors += [
                _errors(records, epsilon, "measured", told),
                _errors(records, epsilon, "combined", combined),
                _errors_of_cells(records, epsilon, "fitted", found.fitted.value),
                _errors_of_cells(records, epsilon, "whole", found.counts.astype(np.float64)),
            ]
    return Study(records, runs, tuple(errors), tuple(seconds))


def measured(records: Records, epsilon: float, run: int) -> list[NoisyTable]:
    """Return the exact total, and noisy tables of one and two attributes; a replaced record moves two cells of each."""
    grid, every = records.grid, tables_of(records, 1) + tables_of(records, 2)
    shares = (Fraction(1, len(every)),) * len(every)
    exact = exact_rho(Fraction(str(epsilon)), Fraction(str(DELTA)), shares, (2,) * len(every))
    variance = len(every) / float(exact)
    rng = np.random.default_rng([round(1000 * epsilon), run])
    found = [NoisyTable(grid.root, records.truth.sum(keepdims=True), 0.0)]
    for depths in every:
        true = grid.sum_to(records.truth, (1,) * len(depths), depths)
        found.append(NoisyTable(depths, true + rng.normal(0, np.sqrt(variance), true.shape).round(), variance))
    return found


def tables_of(records: Records, attributes: int) -> list[tuple[int, ...]]:
    """Return the depths of all tables of so many attributes."""
    every = range(records.truth.ndim)
    return [tuple(int(axis in told) for axis in every) for told in combinations(every, attributes)]


def _errors(
    records: Records, epsilon: float, stage: Stage, values: dict[tuple[int, ...], NDArray[np.float64]]
) -> Errors:
    means: dict[int, list[float]] = {1: [], 2: [], 3: []}
    for depths, value in values.items():
        true = records.grid.sum_to(records.truth, (1,) * len(depths), depths)
        means[sum(depths)].append(float(np.abs(value - true).mean()))
    one, two, three = (float(np.mean(own)) if own else float("nan") for own in means.values())
    return Errors(epsilon, stage, one, two, max(means[2]), three, float("nan"))


def _errors_of_cells(records: Records, epsilon: float, stage: Stage, cells: NDArray[np.float64]) -> Errors:
    finest = (1,) * cells.ndim
    every = [depths for size in (1, 2, 3) for depths in tables_of(records, size)]
    sums = _errors(records, epsilon, stage, {one: records.grid.sum_to(cells, finest, one) for one in every})
    there, found = records.truth > 0, cells > 0
    mean = float(np.abs(cells - records.truth).mean())
    if stage == "fitted":
        return Errors(epsilon, stage, sums.one, sums.two, sums.worst_two, sums.three, mean)
    invented = float((found & ~there).sum() / max(found.sum(), 1))
    lost = float((there & ~found).sum() / there.sum())
    return Errors(epsilon, stage, sums.one, sums.two, sums.worst_two, sums.three, mean, invented, lost)
