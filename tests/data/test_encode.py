"""From a private table to counts: every form of table, and every fault named with its row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop.counts.reading import read_counts
from treetop.errors import DataError

PLACE = tt.Hierarchy.from_prefixes(["01001", "01003", "02001", "99999"], widths=[2], levels=["state", "county"])
SPINE = tt.Spine.destination_first(origin=PLACE, destination=PLACE)
RECORDS = {"home": ["01001", "01001", "02001"], "work": ["01003", "01003", "01001"]}
COLUMNS = {"origin": "home", "destination": "work"}


def test_every_kind_of_table_gives_the_same_counts(tmp_path: Path) -> None:
    table = pa.table(RECORDS)
    csv, parquet = tmp_path / "trips.csv", tmp_path / "trips.parquet"
    csv.write_text("home,work\n01001,01003\n01001,01003\n02001,01001\n", encoding="utf-8")
    pq.write_table(table, parquet)
    relation = duckdb.connect().sql(f"select * from '{parquet}'")
    dictionary = pa.table({name: pa.array(values).dictionary_encode() for name, values in RECORDS.items()})
    tables = [table, csv, str(parquet), relation, dictionary, table.to_reader()]
    digests = {read_counts(one, SPINE, COLUMNS).digest for one in tables}
    assert len(digests) == 1


def test_rows_with_counts_are_counted(tmp_path: Path) -> None:
    csv = tmp_path / "flows.csv"
    csv.write_text("home,work,n\n01001,01003,2\n02001,01001, 1\n01001,02001,0\n", encoding="utf-8")
    expected = read_counts(pa.table(RECORDS), SPINE, COLUMNS)
    assert read_counts(csv, SPINE, COLUMNS, count="n").digest == expected.digest
    for values in ([2, 1], [2.0, 1.0], ["2", "1"]):
        rows = pa.table({"home": ["01001", "02001"], "work": ["01003", "01001"], "n": values})
        assert read_counts(rows, SPINE, COLUMNS, count="n").digest == expected.digest


def test_the_same_column_may_serve_two_attributes() -> None:
    counts = read_counts(pa.table({"x": ["01001"]}), SPINE, {"origin": "x", "destination": "x"})
    assert counts.total == 1


def test_a_spine_that_stops_early_counts_finer_codes() -> None:
    spine = tt.Spine(["origin.state"], {"origin": PLACE})
    counts = read_counts(pa.table({"origin": ["01001", "01003", "02001"]}), spine)
    assert np.diff(counts.before).tolist() == [2, 1]


def test_tables_in_chunks_are_one_table() -> None:
    parts = [pa.table({"origin": [code]}) for code in ["01001", "02001", "01001"]]
    spine = tt.Spine(["origin.state", "origin.county"], {"origin": PLACE})
    assert np.diff(read_counts(pa.concat_tables(parts), spine).before).tolist() == [2, 1]


def test_an_empty_table_is_a_table_and_the_steward_is_warned(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    csv = tmp_path / "trips.csv"
    csv.write_text("home,work\n", encoding="utf-8")
    empty = pa.table({"home": pa.array([], pa.string()), "work": pa.array([], pa.string())})
    for table, name in ((empty, "the table"), (csv, str(csv))):
        caplog.clear()
        assert read_counts(table, SPINE, COLUMNS).total == 0
        assert [record.getMessage() for record in caplog.records] == [
            f"{name}: there are no rows, so every true count is 0: check that it is the table that is meant"
        ]


def test_rows_that_count_for_nothing_are_rows(caplog: pytest.LogCaptureFixture) -> None:
    rows = pa.table({"home": ["01001"], "work": ["01003"], "n": [0]})
    assert read_counts(rows, SPINE, COLUMNS, count="n").total == 0
    assert read_counts(pa.table({"home": ["?"], "work": ["?"]}), SPINE, COLUMNS, unknown="drop").total == 0
    assert not caplog.records


@pytest.mark.parametrize(
    ("home", "message"),
    [
        (
            ["01001", "77777", "88888"],
            "'home', row 2: '77777' is not a county code .* \\(nor is 1 more code after it\\)",
        ),
        (["01001", None, "02001"], "'home', row 2: the code is missing"),
        (["01001", "", "02001"], "'home', row 2: the code is missing"),
        ([1001, 1003, 2001], "The hierarchy has '01001': leading zeros were lost"),
        ([1001.0, 1003.0, 2001.0], "holds double, not codes"),
    ],
)
def test_a_bad_code_is_named_with_its_row(home: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_counts(pa.table({"home": home, "work": ["01001"] * 3}), SPINE, COLUMNS)


def test_unknown_codes_can_be_dropped_or_sent_to_a_named_leaf() -> None:
    rows = pa.table({"home": ["01001", "77777", None], "work": ["01001"] * 3, "n": [1, 10, 100]})
    assert read_counts(rows, SPINE, COLUMNS, "n", unknown="drop").total == 1
    other = read_counts(rows, SPINE, COLUMNS, "n", unknown={"origin": "99999", "destination": "99999"})
    assert np.diff(other.before).tolist() == [1, 110]
    with pytest.raises(DataError, match="go to 'x', which is not a leaf"):
        read_counts(rows, SPINE, COLUMNS, "n", unknown={"origin": "x", "destination": "99999"})


@pytest.mark.parametrize(
    ("count", "message"),
    [
        ([1, -2, 3], "row 2: the count -2 is negative"),
        ([1, 2.5, 3], "row 2: the count 2.5 is not a whole number"),
        ([1, float("nan"), 3], "row 2: the count nan is not a whole number"),
        ([1, float("inf"), 3], "row 2: the count inf is not a whole number"),
        ([1, 1e300, 3], "row 2: the count 1e\\+300 is too large"),
        (["1", "two", "3"], "row 2: the count 'two' is not a whole number"),
        (["1", "2.5", "3"], "row 2: the count '2.5' is not a whole number"),
        (["1", "9" * 30, "3"], "is too large"),
        ([1, None, 3], "row 2: the count is missing"),
        (pa.array([1, 2**64 - 1, 3], pa.uint64()), "fractional or too large"),
        ([2**53, 1, 1], "more than 2\\^53"),
        ([True, False, True], "holds bool, not counts"),
    ],
)
def test_a_bad_count_is_named_with_its_row(count: Any, message: str) -> None:
    rows = pa.table({"home": ["01001"] * 3, "work": ["01001"] * 3, "n": count})
    with pytest.raises(DataError, match=message):
        read_counts(rows, SPINE, COLUMNS, count="n")


def test_a_column_that_is_not_there_is_answered_with_the_nearest() -> None:
    with pytest.raises(DataError, match="no column 'hme' \\(did you mean 'home'\\?\\)"):
        read_counts(pa.table(RECORDS), SPINE, {"origin": "hme", "destination": "work"})
    with pytest.raises(DataError, match="no attribute 'orign' \\(did you mean 'origin'\\?\\)"):
        read_counts(pa.table(RECORDS), SPINE, {"orign": "home"})


def test_what_is_not_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read a table from int"):
        read_counts(5, SPINE)
    with pytest.raises(DataError, match="no such file"):
        read_counts(tmp_path / "nothing.csv", SPINE)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match="broken.parquet: cannot be read"):
        read_counts(tmp_path / "broken.parquet", SPINE)


def test_a_spine_that_skips_a_level_counts_the_same_codes() -> None:
    table = pa.table({"a": ["A", "A", "B"], "b": ["b1", "b2", "b3"], "c": ["z", "y", "x"]})
    tree = tt.Hierarchy.from_table(table, ["a", "b", "c"])
    skipping = tt.Plan(tt.Spine(["p.a", "p.c"], {"p": tree}), tt.Unit("r", neighbours="replace"), tt.Loss(rho=10**9))
    release = tt.make_release(skipping, pa.table({"p": ["z", "z", "y", "x"]}))
    assert {row["p"]: row["count"] for row in release.table().to_pylist()} == {"y": 1, "z": 2, "x": 1}
