"""Keeping some rows of a table: by values that are decided beforehand, whatever the source."""

from __future__ import annotations

import datetime
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop import Source
from treetop.card import in_words
from treetop.counts.reading import read_counts
from treetop.errors import DataError
from treetop.io import _csv_file as csv_file
from treetop.io import table as tables
from treetop.io.row_batch import RowBatch, as_text

PLACE = tt.Hierarchy.flat(["a", "b", "c"], level="place")
SPINE = tt.Spine(["place"], {"place": PLACE})
ROWS = [("a", 2007), ("b", 2008), ("c", 2008), ("x", 2009), ("a", None), ("a", 2008)]
TABLE = pa.table({"place": [place for place, _ in ROWS], "year": [year for _, year in ROWS]})


def sources(folder: Path) -> list[Any]:
    """The same rows in every kind of source."""
    text = "".join(f"{place},{year or ''}\n" for place, year in ROWS)
    (folder / "t.csv").write_text("place,year\n" + text)
    pq.write_table(TABLE, folder / "t.parquet")
    coded = pa.table({"place": TABLE["place"], "year": TABLE["year"].cast(pa.string()).dictionary_encode()})
    pq.write_table(coded, folder / "coded.parquet")
    with sqlite3.connect(folder / "t.sqlite") as database:
        database.execute("create table t (place text, year integer)")
        database.executemany("insert into t values (?, ?)", ROWS)
    database.close()
    with duckdb.connect(str(folder / "t.duckdb")) as other:
        other.execute("create table t (place varchar, year integer)")
        other.executemany("insert into t values (?, ?)", ROWS)
    return [folder / name for name in ("t.csv", "t.parquet", "coded.parquet", "t.sqlite", "t.duckdb")]


def test_only_rows_with_the_values_are_counted_from_every_source(tmp_path: Path) -> None:
    for source in sources(tmp_path):
        counts = read_counts(Source(source, keep={"year": "2008"}), SPINE)
        assert counts.total == 3, source
        assert read_counts(Source(source, keep={"year": ["2007", "2008"]}), SPINE).total == 4, source
        assert read_counts(Source(source, keep={"year": "2008", "place": "a"}), SPINE).total == 1, source


def test_what_is_left_out_may_hold_anything(tmp_path: Path) -> None:
    """Place x is in no hierarchy, and stands in a row of 2009."""
    for source in sources(tmp_path):
        with pytest.raises(DataError, match="column 'place', row 4: 'x' is not a code in the hierarchy of 'place'"):
            read_counts(source, SPINE)
        with pytest.raises(DataError, match="column 'place', row 4: 'x' is not a code in the hierarchy of 'place'"):
            read_counts(Source(source, keep={"year": ["2008", "2009"]}), SPINE)


def test_rows_keep_their_numbers_across_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "BLOCK", 64)
    lines = ["place,year\n", *("a,2007\n" if row % 3 else "a,2008\n" for row in range(1, 100)), "x,2008\n"]
    (tmp_path / "t.csv").write_text("".join(lines))
    with pytest.raises(DataError, match="row 100: 'x'"):
        read_counts(Source(tmp_path / "t.csv", keep={"year": "2008"}), SPINE)


def test_a_table_of_which_no_row_is_kept_is_an_empty_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whether a row is kept may depend on one record: an error would tell."""
    for source in sources(tmp_path):
        caplog.clear()
        assert read_counts(Source(source, keep={"year": "208"}), SPINE).total == 0
        assert "no rows with year '208', so every true count is 0: check the spelling of the values" in caplog.text


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    for source in sources(tmp_path):
        with pytest.raises(DataError, match=r"no column 'Year' \(did you mean 'year'\?\)"):
            read_counts(Source(source, keep={"Year": "2008"}), SPINE)
        with pytest.raises(DataError, match=r"no column 'Year' \(did you mean 'year'\?\)"):
            tables.read(Source(source, keep={"Year": "2008"}))


@pytest.mark.parametrize("keep", [{"year": 2008}, {"year": []}, {"year": [2008]}, {"year": ""}, {"year": None}])
def test_values_are_texts(keep: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="keep: the values of 'year' are"):
        Source("t.csv", keep=keep)


def test_the_card_of_a_release_says_which_rows_were_kept(tmp_path: Path) -> None:
    (source, *_) = sources(tmp_path)
    unit = tt.Unit("trip", contributions=1, neighbours="replace", may_be_missing=True)
    plan = tt.Plan(SPINE, unit, tt.Loss(rho=1e6))
    release = tt.make_release(plan, Source(source, keep={"year": "2008"}), tt.RunOptions(testing_key=bytes(32)))
    assert release.card["data"]["keep"] == {"year": ["2008"]}
    assert "The data set is the rows with year '2008'" in in_words(release.card["data"]["kept"])
    # A change that takes a trip out of the rows that are kept is covered: the total is measured.
    assert not any("is not covered" in caveat for caveat in in_words(release.card["caveats"]))
    assert release.total == 3 and release.card["levels"][0]["measured"]
    assert "keep" not in tt.make_release(plan, TABLE.slice(0, 3), tt.RunOptions(testing_key=bytes(32))).card["data"]


def test_days_are_codes(tmp_path: Path) -> None:
    days = [datetime.date(2008, 1, 1), datetime.date(2008, 12, 31), None]
    midnights = [None if day is None else datetime.datetime.combine(day, datetime.time()) for day in days]
    for column in (
        pa.array(days),
        pa.array(days).cast(pa.date64()),
        pa.array(midnights, pa.timestamp("us")),
        pa.array(midnights, pa.timestamp("ns")),
        pa.array(midnights, pa.timestamp("s", tz="UTC")),
    ):
        assert as_text(column, "day").to_pylist() == ["2008-01-01", "2008-12-31", None]
        pq.write_table(pa.table({"place": ["a", "b", "c"], "day": column}), tmp_path / "t.parquet")
        assert read_counts(Source(tmp_path / "t.parquet", keep={"day": "2008-12-31"}), SPINE).total == 1


def test_midnight_is_that_of_the_place() -> None:
    midnight = pa.array([datetime.datetime(2008, 6, 30, 22)], pa.timestamp("us", tz="UTC"))
    assert as_text(midnight.cast(pa.timestamp("us", tz="Europe/Rome")), "day").to_pylist() == ["2008-07-01"]


def test_times_of_day_are_no_codes() -> None:
    times = pa.array([datetime.datetime(2008, 1, 1), datetime.datetime(2008, 1, 1, 7, 30)])
    with pytest.raises(DataError, match="column 'start' holds times of day, such as 2008-01-01 07:30:00"):
        as_text(times, "start")


def test_truth_values_are_codes_and_fractions_are_none() -> None:
    assert as_text(pa.array([True, None, False]), "yes").to_pylist() == ["true", None, "false"]
    with pytest.raises(DataError, match="column 'code' holds double, not codes.*leading zeros"):
        as_text(pa.array([1.0]), "code")
    with pytest.raises(DataError, match=r"column 'code' holds list<.*>, not codes: read it as text$"):
        as_text(pa.array([[1]]), "code")


def test_counts_may_be_written_with_decimals_that_are_zero() -> None:
    counted = pa.table({"place": ["a", "b"], "n": ["0000000000000000000000053.00", "  +2."]})
    assert read_counts(counted, SPINE, count="n").total == 55
    for wrong in ("1.26", "ND", "1,000", "1e3", "."):
        with pytest.raises(DataError, match="is not a whole number"):
            read_counts(pa.table({"place": ["a"], "n": [wrong]}), SPINE, count="n")


def test_a_query_on_a_file_names_what_to_do_instead(tmp_path: Path) -> None:
    (source, *_) = sources(tmp_path)
    with pytest.raises(DataError, match=r"a query is for a database.*keep = \{ year = \"2008\" \}"):
        read_counts(Source(source, "select * from t"), SPINE)


def test_json_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "zones.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    with pytest.raises(DataError, match="is JSON or GeoJSON, not a table.*code, the latitude and the longitude"):
        tables.read(tmp_path / "zones.geojson")


def test_numbers_of_rows_are_kept_with_the_rows() -> None:
    batch = RowBatch(pa.RecordBatch.from_pydict({"x": ["c", "f"]}), "here", 10, 1.0, np.array([2, 5]))
    assert batch.place("x", 1) == "here, column 'x', row 16"
