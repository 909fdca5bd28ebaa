"""Reading a table by groups of rows on several cores: the counts and the refusals of reading it in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop.counts import reading
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.reading import read_counts
from treetop.counts.tally import Tally
from treetop.errors import DataError
from treetop.noise import Key

PLACES = tt.Hierarchy.flat([f"{number:03}" for number in range(300)])
SPINE = tt.Spine(["place"], {"place": PLACES})


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_PIECE", 1000)


def trips(rows: int = 20_000) -> pa.Table:
    rng = np.random.default_rng(rows)
    codes = pa.array([f"{number:03}" for number in range(300)])
    return pa.table(
        {
            "place": codes.take(pa.array(rng.integers(0, 300, rows))),
            "person": pa.array(rng.integers(0, rows // 2, rows)).cast(pa.string()),
            "year": pa.array(rng.integers(2000, 2004, rows)).cast(pa.string()),
        }
    )


def with_code(table: pa.Table, rows: list[int], code: str) -> pa.Table:
    codes = table.column("place").to_pylist()
    for row in rows:
        codes[row] = code
    return table.set_column(0, "place", pa.array(codes))


def test_a_file_in_groups_of_rows_gives_the_counts_of_the_table(tmp_path: Path) -> None:
    table = trips()
    pq.write_table(table, tmp_path / "trips.parquet", row_group_size=700)
    assert read_counts(tmp_path / "trips.parquet", SPINE).digest == read_counts(table, SPINE).digest


def test_several_files_give_the_counts_of_all(tmp_path: Path) -> None:
    table = trips()
    for number in range(4):
        pq.write_table(table.slice(5000 * number, 5000), tmp_path / f"{number}.parquet", row_group_size=1500)
    assert read_counts(tmp_path, SPINE).digest == read_counts(table, SPINE).digest


def test_only_what_is_kept_is_counted(tmp_path: Path) -> None:
    table = trips()
    pq.write_table(table, tmp_path / "trips.parquet", row_group_size=700)
    kept = table.filter(pa.array([year == "2001" for year in table.column("year").to_pylist()]))
    source = tt.Source(tmp_path / "trips.parquet", keep={"year": ["2001"]})
    assert read_counts(source, SPINE).digest == read_counts(kept, SPINE).digest


def test_of_a_unit_the_same_records_are_kept_in_whatever_order_they_come(tmp_path: Path) -> None:
    table = trips()
    pq.write_table(table, tmp_path / "trips.parquet", row_group_size=700)
    bound = ContributionCap("person", 1, Key(bytes(32)))
    counts = read_counts(tmp_path / "trips.parquet", SPINE, cap=bound)
    assert counts.digest == read_counts(table, SPINE, cap=bound).digest
    assert counts.total == len(table.column("person").unique())


def test_the_first_row_that_is_refused_is_named(tmp_path: Path) -> None:
    table = with_code(trips(), [19_999, 12_345, 7_777], "no place")
    pq.write_table(table, tmp_path / "trips.parquet", row_group_size=700)
    for _ in range(5):
        with pytest.raises(DataError, match=r"column 'place', row 7778: 'no place'"):
            read_counts(tmp_path / "trips.parquet", SPINE)


def test_what_is_dropped_is_told_of_all_rows(tmp_path: Path) -> None:
    table = with_code(trips(), [19_999, 12_345, 7_777], "no place")
    pq.write_table(table, tmp_path / "trips.parquet", row_group_size=700)
    tally = Tally()
    read_counts(tmp_path / "trips.parquet", SPINE, unknown="drop", tally=tally)
    assert (tally.rows, tally.unknown_rows, tally.dropped) == (20_000, 3, 3)
    assert tally.codes["place"].often == {"no place": 3}


def test_progress_rises_to_the_whole(tmp_path: Path) -> None:
    for number in range(2):
        pq.write_table(trips(), tmp_path / f"{number}.parquet", row_group_size=700)
    told: list[float] = []
    read_counts(tmp_path, SPINE, progress=lambda stage, done: told.append(done))
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert told[-2] == pytest.approx(1.0)
