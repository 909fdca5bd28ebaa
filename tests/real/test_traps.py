"""What real tables trip over: a town called None, zeros that count, numbers that are codes, dates that are none."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from treetop import Hierarchy, Release
from treetop.exporting import read_places

HERE = Path(__file__).parent
Command = Callable[..., Any]
FLIGHTS = Path("shippable", "od_us_flights_2001", "od_total.parquet")

DECIDED = """
[unit]
entity = "resident"
contributions = 1
neighbours = "replace"
[loss]
epsilon = 1.0
delta = 1e-8
"""

TOWNS = """
title = "Residents of the municipalities of Torino"
[attributes.town]
column = "com_name"
hierarchy = "towns.csv"
levels = ["sll", "com_name"]
[data]
source = "private.csv.gz"
count = "pop2011"
delimiter = ";"
encoding = "latin-1"
"""


def test_a_town_called_none(data: Path, treetop: Command, tmp_path: Path) -> None:
    """And Agliè, in a compressed file with semicolons that is not UTF-8."""
    lookup = data / "lookup_it" / "comuni_2011.parquet"
    towns = f"select sll, com_name, pop2011 from read_parquet('{lookup}') where prov = '001' order by com"
    rows = duckdb.execute(towns).fetchall()
    public = "".join(f"{area},{name}\n" for area, name, _ in rows)
    private = "".join(f"{name};{people}\n" for _, name, people in rows)
    (tmp_path / "towns.csv").write_text("sll,com_name\n" + public, encoding="utf-8")
    (tmp_path / "private.csv.gz").write_bytes(gzip.compress(("com_name;pop2011\n" + private).encode("latin-1")))
    plan = tmp_path / "plan.toml"
    plan.write_text(TOWNS + DECIDED, encoding="utf-8")

    seen = treetop("inspect", tmp_path / "private.csv.gz", "--encoding", "latin-1", "--json").json()
    assert [(column["name"], column["missing"]) for column in seen["columns"]] == [("com_name", 0), ("pop2011", 0)]
    told = treetop("release", plan, "--out", tmp_path / "release", "--json").json()
    truth = {name: people for _, name, people in rows}
    assert told["total"] == sum(truth.values())
    for name in ("None", "Agliè", "Torino"):
        assert int(treetop("query", tmp_path / "release", f"town={name}").out) == pytest.approx(truth[name], abs=500)


def test_names_of_places_may_be_none(data: Path, tmp_path: Path) -> None:
    """The lookup has no degrees, so they are made up."""
    lookup = data / "lookup_it" / "comuni_2011.parquet"
    places = f"select com, com_name, 45.0 as latitude, 9.0 as longitude from read_parquet('{lookup}')"
    _write(places, tmp_path / "places.csv")
    read = read_places(tmp_path / "places.csv", "com", name="com_name")
    assert len(read.code) == 8_092
    assert dict(zip(read.code.to_pylist(), read.name.to_pylist(), strict=True))["001168"] == "None"


def test_zeros_that_were_lost_are_named(data: Path, treetop: Command, tmp_path: Path) -> None:
    source = data / "od_it_istat" / "od_comune_sardinia_2001.parquet"
    table = tmp_path / "numbers.parquet"
    columns = "o_com::integer as o_com, d_com::integer as d_com, commuters"
    _write(f"select {columns} from read_parquet('{source}')", table)
    refused = treetop("release", HERE / "it_sardinia.toml", table, "--out", tmp_path / "no", expect=2).err
    assert "The hierarchy has '090001': leading zeros were lost" in refused
    assert not (tmp_path / "no").exists()
    hierarchy = data / "lookup_it" / "comuni_2011.parquet"
    seen = treetop("inspect", table, "--hierarchy", hierarchy, "--json").json()
    assert {match["leading_zeros_lost"] for match in seen["matches"]} == {377}


def test_prefixes_of_codes_that_lost_zeros_are_refused(data: Path, treetop: Command, tmp_path: Path) -> None:
    source = data / "od_us_lodes2018_within_county" / "od.parquet"
    tracts = f"select distinct home_tract::bigint as tract from read_parquet('{source}') order by 1"
    _write(tracts, tmp_path / "tracts.csv")
    plan = shutil.copy(HERE / "lodes.toml", tmp_path)
    refused = treetop("plan", plan, expect=2).err
    assert "lengths [10, 11]" in refused
    assert "'01001020100'" in refused


def test_codes_that_look_like_numbers_stay_text(data: Path, treetop: Command, tmp_path: Path) -> None:
    """Through CSV, where a reader could take 01 for 1."""
    source = data / "od_it_istat" / "od_region_2011.parquet"
    _write(f"select * from read_parquet('{source}')", tmp_path / "regions.csv")
    release = tmp_path / "release"
    told = treetop("release", HERE / "it_regions.toml", tmp_path / "regions.csv", "--out", release, "--json").json()
    assert told["total"] == 28_805_440
    codes = pq.read_table(release / "counts.parquet")["origin"].unique().to_pylist()
    assert "01" in codes and "1" not in codes
    assert "there is no code '1'" in treetop("query", release, "origin=1", expect=2).err


def test_whole_numbers_in_parquet_are_codes_without_zeros(data: Path, treetop: Command, tmp_path: Path) -> None:
    release = tmp_path / "release"
    treetop("release", HERE / "taxi_trips.toml", "--out", release, "--quiet")
    assert int(treetop("query", release, "origin=132").out) > 0
    assert "there is no code '0132'" in treetop("query", release, "origin=0132", expect=2).err


def test_a_time_of_day_is_not_a_code(data: Path, treetop: Command, tmp_path: Path) -> None:
    source = data / "shippable" / "od_us_flights_2001" / "od_daily.parquet"
    later = "select day + interval 7 hour as day, origin, destination, flights"
    _write(f"{later} from read_parquet('{source}') limit 1000", tmp_path / "hours.parquet")
    table, out = tmp_path / "hours.parquet", tmp_path / "no"
    refused = treetop("release", HERE / "flights_daily.toml", table, "--out", out, expect=2).err
    assert "column 'day' holds times of day, such as 2001-01-01 07:00:00" in refused
    assert not out.exists()


def test_the_municipalities_by_three_ways_are_one_tree(data: Path) -> None:
    lookup = data / "lookup_it" / "comuni_2011.parquet"
    rows = pq.read_table(lookup, columns=["com", "prov"]).to_pylist()
    levels = ["prov", "com"]
    by_columns = Hierarchy.from_table(lookup, levels=levels)
    by_parents = Hierarchy.from_parents(lookup, child="com", parent="prov", levels=levels)
    assert by_columns.sizes == (110, 8_092)
    assert by_columns.digest == by_parents.digest
    # Where the first three digits are the province, as ISTAT has it, prefixes say the same.
    assert all(row["com"].startswith(row["prov"]) for row in rows)
    assert Hierarchy.from_prefixes([row["com"] for row in rows], widths=[3], levels=levels).digest == by_columns.digest


def test_a_level_can_be_left_out_of_the_spine(data: Path, treetop: Command, tmp_path: Path) -> None:
    """Of region > division > state > airport, the division: states stand in another order without it."""
    lookup = data / "shippable" / "od_us_flights_2001" / "lookup_airport.parquet"
    order = 'order = ["destination.region", "origin.region", "destination.iata", "origin.iata"]'
    _flights(tmp_path, lookup, order)
    treetop("release", tmp_path / "plan.toml", data / FLIGHTS, "--out", tmp_path / "release", "--quiet")
    treetop("check", tmp_path / "release")
    assert Release.load(tmp_path / "release").total == 3_000_000


def test_the_spine_can_stop_above_the_leaves(data: Path, treetop: Command, tmp_path: Path) -> None:
    lookup = data / "shippable" / "od_us_flights_2001" / "lookup_airport.parquet"
    _flights(tmp_path, lookup, 'order = ["destination.region", "origin.region"]')
    treetop("release", tmp_path / "plan.toml", data / FLIGHTS, "--out", tmp_path / "release", "--quiet")
    treetop("check", tmp_path / "release")
    assert Release.load(tmp_path / "release").total == 3_000_000


def _write(query: str, out: Path) -> None:
    """Write a query's rows to a CSV or Parquet file."""
    duckdb.execute(f"copy ({query}) to '{out}'")


def _flights(folder: Path, lookup: Path, order: str) -> None:
    (folder / "plan.toml").write_text(
        f"""
title = "Flights"
[attributes.origin]
hierarchy = "{lookup}"
levels = ["region", "division", "state", "iata"]
[attributes.destination]
same_as = "origin"
[spine]
{order}
[data]
count = "flights"
{DECIDED}""",
        encoding="utf-8",
    )
