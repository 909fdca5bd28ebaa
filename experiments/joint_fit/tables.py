"""The tables of the study: real ones, read where they lie, and made-up ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq
from numpy.typing import NDArray

import treetop as tt
from experiments.kit.cases import ROOT
from treetop.fit import Grid
from treetop.io.row_batch import as_text

Ints = NDArray[np.int64]

DELTA = 1e-8
UNIT = tt.Unit("record", contributions=1, neighbours="replace")
BOROUGHS = ("EWR", "Bronx", "Brooklyn", "Manhattan", "Queens", "Staten Island")
"""The last code of a borough stands for all others."""
PARTY = (0, 1, 2, 3, 3, 4, 4, 4, 4, 4)
"""The code of a party by number of passengers: 0, 1, 2, 3 or 4, 5 or more."""
UNKNOWN_PAYMENT = 5
RACES = ("white", "black", "hisp", "aian", "asian", "nhpi", "other", "two")


@dataclass(frozen=True, eq=False)
class Records:
    """A table of records of several attributes."""

    name: str
    title: str
    trees: Mapping[str, tt.Hierarchy]
    truth: Ints = field(repr=False)
    """The true count of every cell of all attributes, one axis each."""
    tuned: bool = True
    """Whether the fit was developed with this table."""

    @staticmethod
    def flat(name: str, title: str, truth: Ints, *, tuned: bool = True) -> Records:
        """Make a table of attributes of one level."""
        trees = {f"a{at}": tt.Hierarchy.flat([f"{code:02}" for code in range(size)])
                 for at, size in enumerate(truth.shape)}  # fmt: skip
        return Records(name, title, trees, truth, tuned)

    @property
    def grid(self) -> Grid:
        """The public cells."""
        return Grid(list(self.trees.values()))

    @cached_property
    def rows(self) -> pa.Table:
        """A row for every cell above zero, with its count as `n`."""
        codes = np.nonzero(self.truth)
        columns = {name: tree.codes[-1].take(pa.array(own))
                   for (name, tree), own in zip(self.trees.items(), codes, strict=True)}  # fmt: skip
        return pa.table({**columns, "n": self.truth[codes]})

    def plan(self, epsilon: float) -> tt.Plan:
        """Return the plan with all tables of one and of two attributes."""
        return tt.joint_plan(self.trees, UNIT, tt.Loss(epsilon=epsilon, delta=DELTA))

    def release(self, epsilon: float, run: int) -> tt.Release:
        """Release the table with this plan; the key of the noise is the number of the run."""
        key = run.to_bytes(32, "big")
        return tt.make_release(self.plan(epsilon), self.rows, tt.RunOptions(count="n", testing_key=key, threads=1))


def counted(*codes: NDArray[np.integer], sizes: Sequence[int]) -> Ints:
    """Count records by the codes of their attributes."""
    truth = np.zeros(sizes, np.int64)
    np.add.at(truth, codes, 1)
    return truth


def taxi(data: Path) -> Records:
    """Read 360,000 trips: boroughs of pickup and dropoff, weekday, part of the day, party and payment."""
    return Records.flat("taxi", "New York taxi trips, six attributes", _trips(data))


def taxi_eight(data: Path) -> Records:
    """Read the trips with the distance and the year as well, and of weekdays whether it was a weekend."""
    return Records.flat("taxi8", "New York taxi trips, eight attributes", _trips(data, eight=True))


def _trips(data: Path, *, eight: bool = False) -> Ints:
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
    if not eight:
        return counted(*codes, sizes=(7, 7, 7, 6, 5, 5))
    miles = np.searchsorted([1.0, 3.0, 10.0], trips["trip_distance"].to_numpy(), side="right")
    year = pc.cast(pc.utf8_slice_codeunits(trips["file_month"], 0, 4), pa.int64()).to_numpy() - 2018
    start, end, weekday, *others = codes
    return counted(start, end, weekday // 5, *others, miles, year, sizes=(7, 7, 2, 6, 5, 5, 4, 3))


def patients(_: Path) -> Records:
    """Read the example of patients: place, diagnosis, age, sex and outcome, two of them with several levels."""
    plan = tt.read_plan(ROOT / "examples" / "patients" / "plan.toml")
    trees = dict(zip(plan.plan.spine.attributes, plan.plan.spine.trees, strict=True))
    rows = pv.read_csv(
        ROOT / "examples" / "patients" / "patients.csv.gz",
        convert_options=pv.ConvertOptions(column_types=dict.fromkeys(trees, pa.string())),
    )
    codes = [tree.encode(as_text(rows[name], name).combine_chunks()) for name, tree in trees.items()]
    sizes = [tree.sizes[-1] for tree in trees.values()]
    return Records("patients", "Patients of the example", trees, counted(*codes, sizes=sizes))


def deaths(data: Path) -> Records:
    """Read 37,351 deaths: state, age band, sex, brought in dead, nationality, comorbidity and first vaccine."""
    rows = pv.read_csv(data / "raw" / "linelist_deaths.csv")
    age = np.minimum(rows["age"].to_numpy() // 10, 9)
    yes = [rows[name].to_numpy() for name in ("male", "bid", "malaysian", "comorb")]
    state, brand = (pc.dictionary_encode(rows[name]).combine_chunks() for name in ("state", "brand1"))
    codes = (state.indices.to_numpy(), age, *yes, brand.indices.to_numpy())
    sizes = (len(state.dictionary), 10, 2, 2, 2, 2, len(brand.dictionary))
    return Records.flat("deaths", "Deaths in Malaysia, seven attributes", counted(*codes, sizes=sizes), tuned=False)


def hospital(data: Path) -> Records:
    """Read 13,781 made-up admissions: hospital, age band, sex, discharge, intensive care and weekday."""
    rows = pv.read_csv(data / "raw" / "dataset1fake1.csv", parse_options=pv.ParseOptions(delimiter=";"))
    house = pc.dictionary_encode(rows["CNH"]).combine_chunks()
    codes = (
        house.indices.to_numpy(),
        rows["edad"].to_numpy() // 10,
        rows["sexo"].to_numpy(),
        pc.equal(rows["altadeftraslado"], "d").to_numpy(zero_copy_only=False).astype(int),
        rows["fechaingreuci"].is_valid().to_numpy().astype(int),
        pc.day_of_week(rows["fechaingrehosp"]).to_numpy(),
    )
    sizes = (len(house.dictionary), 9, 2, 2, 2, 7)
    return Records.flat("hospital", "Made-up admissions, six attributes", counted(*codes, sizes=sizes), tuned=False)


def census(data: Path) -> Records:
    """Read people of Hawaii by county and tract, race, and whether they may vote."""
    blocks = pq.read_table(data / "census_us_block_hi_ri" / "hi_block_2020.parquet")
    tract = pc.utf8_slice_codeunits(blocks["block"], 2, 11).combine_chunks()
    places = tt.Hierarchy.from_prefixes(tract.unique().to_pylist(), widths=[3], levels=["county", "tract"])
    trees = {"place": places, "race": tt.Hierarchy.flat(RACES), "adult": tt.Hierarchy.flat(["no", "yes"])}
    at = places.encode(tract.cast(pa.string()))
    truth = np.zeros((places.sizes[-1], len(RACES), 2), np.int64)
    for code, race in zip(trees["race"].encode(pa.array(RACES)).tolist(), RACES, strict=True):
        adults, everybody = (blocks[f"{part}_{race}"].to_numpy() for part in ("vap", "pop"))
        for adult, number in ((1, adults), (0, everybody - adults)):
            truth[:, code, adult] = np.bincount(at, number, places.sizes[-1])
    return Records("census", "People of Hawaii, three attributes", trees, truth, tuned=False)


def made_up() -> Records:
    """Make a small table whose attributes depend on each other."""
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.full(5 * 4 * 4 * 3, 0.1))
    return Records.flat("small", "made up", rng.multinomial(50_000, shares).reshape(5, 4, 4, 3).astype(np.int64))


def large(records: int = 1_000_000, sizes: Sequence[int] = (15, 15, 15, 15, 14, 14)) -> Records:
    """Make a table of about ten million cells: twenty groups of records, with attributes independent in each."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 20, records)
    codes = []
    for size in sizes:
        upper = np.cumsum(rng.dirichlet(np.full(size, 0.3), 20), axis=1)[group]
        codes.append(np.minimum((rng.random(records)[:, None] > upper).sum(axis=1), size - 1))
    return Records.flat("large", "made up, large", counted(*codes, sizes=sizes))


READERS: tuple[Callable[[Path], Records], ...] = (taxi, taxi_eight, patients, deaths, hospital, census)


def real(data: Path) -> Iterator[Records]:
    """Read every real table that is there."""
    for read in READERS:
        try:
            yield read(data)
        except FileNotFoundError:
            continue
