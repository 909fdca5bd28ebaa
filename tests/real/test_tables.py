"""Every real origin/destination table from `inspect` to `export`, by the plan files of this folder."""

from __future__ import annotations

import csv
import json
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from treetop import PlanFile, Release, read_plan
from treetop.counts.reading import read_counts
from treetop.release.errors import LevelErrors, measure_errors

HERE = Path(__file__).parent
Command = Callable[..., Any]

SURELY = 0.999999
"""The confidence of the bounds that a release is held to; its noise is the same in every run."""


@dataclass(frozen=True)
class Case:
    """A table, its plan, and what its SOURCE.md says of it."""

    plan: str
    """The plan file, without its ending."""
    table: str
    """The table, in the shared folder."""
    rows: int
    total: int
    attributes: dict[str, str]
    """The attributes that `inspect` should find, and their columns."""
    queries: tuple[dict[str, str], ...]
    """What is asked, by attribute or attribute.level."""
    to: str
    """The format of the export."""
    lookup: str | None = None
    """The public file for `inspect`."""
    tracts: tuple[str, ...] = ()
    """Columns with codes of which no public list is at hand."""
    matches: int = 2
    """How many columns hold codes of the public file."""
    level: tuple[str, ...] = ()
    """The levels of the export."""
    others: tuple[str, ...] = field(default=())
    """Columns that the draft names as possible attributes."""


ITALY = "lookup_it/comuni_2011.parquet"
FLIGHTS = "shippable/od_us_flights_2001"

CASES = (
    Case(
        "ny_tracts",
        "od_ny_tract_mobility/od.parquet",
        rows=616_991,
        total=41_306_407,
        attributes={"origin": "o_tract", "destination": "d_tract"},
        tracts=("o_tract", "d_tract"),
        queries=({"origin": "36061"}, {"origin": "36047", "destination": "36061"}, {"destination": "36001000100"}),
        to="od",
    ),
    Case(
        "lodes",
        "od_us_lodes2018_within_county/od.parquet",
        rows=5_385_690,
        total=66_774_362,
        attributes={"origin": "home_tract", "destination": "work_tract"},
        tracts=("home_tract", "work_tract"),
        queries=({"origin": "01"}, {"origin": "56", "destination": "56"}, {"destination": "01001020100"}),
        to="skmob",
        level=("county",),
    ),
    Case(
        "slovenia_2008",
        "od_slovenia_2000_2008/od.parquet",
        rows=12_586,
        total=843_277,
        attributes={"origin": "o_mun", "destination": "d_mun"},
        lookup="od_slovenia_2000_2008/lookup.parquet",
        queries=({"origin": "Osrednjeslovenska"}, {"origin": "92", "destination": "61"}, {"destination": "2"}),
        to="flowmap",
    ),
    Case(
        "slovenia_years",
        "od_slovenia_2000_2008/od.parquet",
        rows=89_431,
        total=7_058_392,  # all nine years: SOURCE.md has the rows, and the sum of 2008 only
        attributes={"origin": "o_mun", "destination": "d_mun"},
        lookup="od_slovenia_2000_2008/lookup.parquet",
        others=("year",),
        queries=({"year": "2008"}, {"year": "2000", "origin": "61"}, {"destination": "Osrednjeslovenska"}),
        to="kepler",
        level=("origin.region", "destination.mun"),
    ),
    Case(
        "taxi_trips",
        "od_nyc_taxi/trips_sample_360k.parquet",
        rows=360_000,
        total=360_000,
        attributes={"origin": "pickup_location_id", "destination": "dropoff_location_id"},
        lookup="od_nyc_taxi/taxi_zone_lookup.csv",
        others=("file_month",),
        queries=({"origin": "Manhattan"}, {"origin": "132", "destination": "Queens"}, {"destination": "N/A"}),
        to="records",
    ),
    Case(
        "taxi_monthly",
        "od_nyc_taxi/od_monthly.parquet",
        rows=109_299,
        total=360_000,
        attributes={"origin": "o_zone", "destination": "d_zone"},
        lookup="od_nyc_taxi/zone_lookup.parquet",
        others=("month",),
        queries=({"month": "2019"}, {"month": "2020-04", "origin": "Manhattan"}, {"destination": "1"}),
        to="od",
    ),
    Case(
        "it_regions",
        "od_it_istat/od_region_2011.parquet",
        rows=436,
        total=28_805_440,
        attributes={"origin": "o_reg", "destination": "d_reg"},
        lookup=ITALY,
        others=("reason",),
        queries=({"origin": "01"}, {"destination": "Isole", "reason": "Studio"}, {"origin": "20", "destination": "03"}),
        to="qgis",
    ),
    Case(
        "it_sardinia",
        "od_it_istat/od_comune_sardinia_2001.parquet",
        rows=10_997,
        total=391_395,
        attributes={"origin": "o_com", "destination": "d_com"},
        lookup=ITALY,
        queries=({"origin": "20"}, {"destination": "092"}, {"origin": "104", "destination": "090"}),
        to="od",
        level=("origin.prov", "destination.province"),
    ),
    Case(
        "it_brindisi",
        "od_it_istat/od_comune_brindisi.parquet",
        rows=337,
        total=89_192,
        attributes={"origin": "o_com", "destination": "d_com"},
        lookup=ITALY,
        queries=({"origin": "074001"}, {"origin": "074", "destination": "074001"}, {"destination": "001168"}),
        to="qgis",
    ),
    Case(
        "taxi_total",
        "od_nyc_taxi/od_total.parquet",
        rows=15_444,
        total=360_000,
        attributes={"origin": "o_zone", "destination": "d_zone"},
        lookup="od_nyc_taxi/taxi_zone_lookup.csv",
        queries=({"origin": "Manhattan"}, {"origin": "132", "destination": "Queens"}, {"destination": "N/A"}),
        to="skmob",
    ),
    Case(
        "taxi_names",
        "od_nyc_taxi/seaborn_taxis_2019_03.parquet",
        rows=6_433,
        total=6_433,
        attributes={"origin": "pickup_zone", "destination": "dropoff_zone"},
        lookup="od_nyc_taxi/zone_lookup.parquet",
        matches=4,
        queries=({"origin": "Manhattan"}, {"origin": "Clinton East"}, {"destination": "Outside of NYC"}),
        to="od",
        level=("borough",),
    ),
    Case(
        "flights_total",
        f"{FLIGHTS}/od_total.parquet",
        rows=3_399,
        total=3_000_000,
        attributes={"origin": "origin", "destination": "destination"},
        lookup=f"{FLIGHTS}/lookup_airport.parquet",
        queries=({"origin": "CA"}, {"origin": "SEA", "destination": "South"}, {"destination": "Pacific"}),
        to="kepler",
    ),
    Case(
        "flights_daily",
        f"{FLIGHTS}/od_daily.parquet",
        rows=570_842,
        total=3_000_000,
        attributes={"origin": "origin", "destination": "destination"},
        lookup=f"{FLIGHTS}/lookup_airport.parquet",
        others=("day",),
        queries=({"day": "2001-03"}, {"day": "2001-06-30", "origin": "CA"}, {"origin": "SEA", "destination": "South"}),
        to="flowmap",
    ),
)


@dataclass(frozen=True)
class Ran:
    """A table that has gone through the commands."""

    case: Case
    folder: Path
    """The release."""
    plan: Path
    table: Path
    draft: Path
    inspected: Any
    planned: Any
    summary: Any
    file: PlanFile
    release: Release
    errors: tuple[LevelErrors, ...]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.plan)
def ran(request: pytest.FixtureRequest, data: Path, treetop: Command, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Inspect, plan, release: once a table."""
    case: Case = request.param
    folder = tmp_path_factory.mktemp(case.plan)
    table = data / case.table
    if not table.exists():
        pytest.skip(f"the table is not here: {table} does not exist")
    plan = HERE / f"{case.plan}.toml"
    if case.tracts:
        # Stands in for the published list of tracts, which is not in the folder. Never do this for a real release:
        # which codes occur in a private table is private.
        plan = Path(shutil.copy(plan, folder))
        _write_tracts(table, case.tracts, folder / "tracts.csv")
    hierarchy = () if case.lookup is None else ("--hierarchy", data / case.lookup)
    draft, out = folder / "draft.toml", folder / "release"
    file = read_plan(plan)
    keep = [word for column, (value,) in (file.keep or {}).items() for word in ("--keep", f"{column}={value}")]
    inspected = treetop("inspect", table, *keep, *hierarchy, "--out", draft, "--json").json()
    planned = treetop("plan", plan, "--json").json()
    # Where the plan names its source, the command line does not.
    named = () if file.source is not None else (table,)
    summary = treetop("release", plan, *named, "--out", out, "--nodes", "--json").json()
    truth = read_counts(file.table(str(table)), file.plan.spine, file.columns, file.count, file.plan.unknown)
    assert truth.total == case.total
    release = Release.load(out)
    errors = measure_errors(release, truth)
    return Ran(case, out, plan, table, draft, inspected, planned, summary, file, release, errors)


def _write_tracts(table: Path, columns: tuple[str, ...], out: Path) -> None:
    codes = " union ".join(f"select {column} as tract from read_parquet('{table}')" for column in columns)
    duckdb.execute(f"copy (select tract from ({codes}) order by tract) to '{out}'")


def test_inspect_finds_the_ends_and_the_counts(ran: Ran) -> None:
    seen = ran.inspected
    assert seen["rows"] == ran.case.rows
    assert seen["count"] == ran.file.count
    assert {one["name"]: one["column"] for one in seen["attributes"]} == ran.case.attributes
    draft = ran.draft.read_text(encoding="utf-8")
    others = draft.partition("# Columns that are left out")[2].partition("\n\n")[0]
    assert all(f'"{name}"' in others for name in ran.case.others)
    if ran.case.lookup is not None:
        assert all(one["matched"] == one["codes"] for one in seen["matches"])
        assert len(seen["matches"]) == ran.case.matches


def test_the_draft_is_refused_until_it_is_answered(ran: Ran, treetop: Command) -> None:
    tomllib.loads(ran.draft.read_text(encoding="utf-8"))
    refused = treetop("plan", ran.draft, expect=3).err
    assert "unit.entity" in refused and "loss.epsilon" in refused


def test_the_answered_draft_is_a_plan_for_the_same_table(ran: Ran, treetop: Command) -> None:
    answers = ("entity", "contributions", "neighbours", "epsilon", "delta", "hierarchy", "codes", "count")
    lines = ran.draft.read_text(encoding="utf-8").splitlines()
    answered = [line[2:] if line.startswith(tuple(f"# {answer} = " for answer in answers)) else line for line in lines]
    plan = ran.draft.with_name("answered.toml")
    plan.write_text("\n".join(answered).replace("places.csv", "tracts.csv"), encoding="utf-8")
    # A record may be exchanged for one that is not kept: then neighbours differ in the total, and it is measured.
    assert (treetop("plan", plan, "--json").json()["levels"][0]["noise"] == 0) == (ran.file.keep is None)
    assert read_plan(plan).count == ran.file.count


def test_the_total_is_exact_where_nothing_is_dropped_and_everything_adds_up(ran: Ran) -> None:
    leaves = pq.read_table(ran.folder / "counts.parquet")
    nodes = pq.read_table(ran.folder / "nodes.parquet")
    total = ran.release.total
    assert ran.summary["total"] == total == pc.sum(leaves["count"]).as_py()
    assert abs(total - ran.case.total) <= (ran.file.plan.accuracy(SURELY).levels[0].bound or 0)
    assert ran.file.plan.levels[0].is_exact == (ran.file.keep is None)
    assert ran.summary["leaves"] == len(leaves) > 0
    assert pc.min(leaves["count"]).as_py() > 0
    sums = {row["level"]: row["count_sum"] for row in nodes.group_by("level").aggregate([("count", "sum")]).to_pylist()}
    assert len(sums) == 1 + len(ran.file.plan.spine.levels)
    assert set(sums.values()) == {total}
    assert all(pa.types.is_string(leaves[name].type) for name in ran.file.plan.spine.attributes)


def test_check_passes_and_tells_the_steward_the_same_errors(ran: Ran, treetop: Command) -> None:
    report = treetop("check", ran.folder, "--truth", ran.table, "--json").json()
    assert report["verified"]
    assert not [check for check in report["checks"] if check["findings"]]
    told = {row["name"]: (row["largest"], row["mean"]) for row in report["errors"]["levels"]}
    assert told == {row.name: (row.largest, row.mean) for row in ran.errors}


def test_queries_are_sums_of_the_leaves(ran: Ran, treetop: Command) -> None:
    leaves = pq.read_table(ran.folder / "counts.parquet")
    for query in ran.case.queries:
        keep = pa.array([True] * len(leaves))
        for attribute, code in query.items():
            below = _leaves_under(ran, attribute, code)
            keep = pc.and_(keep, pc.is_in(leaves[attribute].combine_chunks(), value_set=pa.array(below, pa.string())))
        expected = pc.sum(leaves.filter(keep)["count"]).as_py() or 0
        asked = treetop("query", ran.folder, *(f"{name}={code}" for name, code in query.items()))
        assert int(asked.out) == expected, query


def test_a_table_of_sums_holds_everything(ran: Ran, treetop: Command) -> None:
    levels = [f"{name}.{tree.levels[0]}" for name, tree in ran.file.plan.spine.attributes.items()]
    by = [word for level in levels for word in ("--by", level)]
    told = treetop("query", ran.folder, *by, "--json").json()
    assert sum(row["count"] for row in told["rows"]) == told["count"] == ran.release.total


def test_errors_are_what_the_plan_said(ran: Ran) -> None:
    margins = ran.file.plan.accuracy().levels
    bounds = ran.file.plan.accuracy(SURELY).levels
    assert [level["margin"] for level in ran.planned["levels"]] == [level.margin for level in margins]
    assert ran.errors[0].largest == abs(ran.release.total - ran.case.total)
    for error, margin, bound in zip(ran.errors, margins, bounds, strict=True):
        assert bound.bound is None or error.largest <= bound.bound, error.name
        assert error.mean <= 3 * margin.margin, error.name  # a level may have one node above zero
    # A level above may be right by chance, where all counts lie in one node; leaves without error had no noise.
    assert 0 < ran.errors[-1].mean <= margins[-1].margin


def test_the_release_is_exported(ran: Ran, treetop: Command, tmp_path: Path) -> None:
    levels = [word for level in ran.case.level for word in ("--level", level)]
    out = tmp_path / "exported"
    told = treetop("export", ran.folder, "--to", ran.case.to, "--out", out, *levels, "--json").json()
    assert told["total"] == ran.release.total
    if ran.case.to == "records":
        assert pq.read_metadata(told["files"][0]).num_rows == ran.release.total
        return
    with Path(told["files"][0]).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == told["rows"]
    assert sum(int(row["flow" if ran.case.to == "skmob" else "count"]) for row in rows) == ran.release.total


def test_nothing_of_the_table_is_in_the_folder_but_counts(ran: Ran) -> None:
    card = json.loads((ran.folder / "card.json").read_text(encoding="utf-8"))
    assert card["private"]
    text = "".join((ran.folder / name).read_text(encoding="utf-8") for name in ("card.json", "card.html", "plan.toml"))
    assert "shared/data" not in text
    assert str(ran.table) not in text


def test_the_first_level_is_near_the_sums_of_the_table(ran: Ran, treetop: Command) -> None:
    """The truth by another way: DuckDB, and the rows of the public tree."""
    level = ran.file.plan.spine.levels[0]
    (part,) = level.parts
    attribute = list(ran.file.plan.spine.attributes)[part.attribute]
    tree = ran.file.plan.spine.trees[part.attribute].to_table()
    first = dict(zip(tree.column(tree.num_columns - 1).to_pylist(), tree.column(0).to_pylist(), strict=True))
    count = "count(*)" if ran.file.count is None else f"sum({ran.file.count})"
    column, keep = ran.file.columns[attribute], ran.file.keep or {}
    kept = " and ".join(["true", *(f"cast({name} as varchar) in {values!r}" for name, values in keep.items())])
    kept = kept.replace(",)", ")")
    grouped = f"select cast({column} as varchar), {count} from read_parquet('{ran.table}') where {kept} group by 1"
    truth = dict.fromkeys(first.values(), 0)
    other = {} if isinstance(ran.file.plan.unknown, str) else ran.file.plan.unknown
    for code, number in duckdb.execute(grouped).fetchall():
        truth[first[code or other[attribute]]] += number
    assert sum(truth.values()) == ran.case.total
    rows = treetop("query", ran.folder, "--by", level.name, "--json").json()["rows"]
    told = {row[level.name]: row["count"] for row in rows}
    row = ran.file.plan.accuracy(SURELY).levels[1]
    bound = row.bound or 12 * row.noise  # no bound is proved under margins
    assert {code: told.get(code, 0) for code in truth} == pytest.approx(truth, rel=0, abs=bound)


def _leaves_under(ran: Ran, attribute: str, code: str) -> list[str]:
    """Return the leaves of a code of any level, from the rows of the public tree."""
    tree = ran.file.plan.spine.trees[list(ran.file.plan.spine.attributes).index(attribute)].to_table()
    leaf = tree.column_names[-1]
    found: list[str] = []
    for name in tree.column_names:
        found += tree.filter(pc.equal(tree[name], code))[leaf].to_pylist()
    return found
