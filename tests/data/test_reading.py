"""Reading a table by groups of rows on several cores: the counts and the refusals of reading it in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop.counts import reading
from treetop.counts import reading as gather
from treetop.counts.contribution_cap import ContributionCap, Paths, count_rows
from treetop.counts.counts import Counts
from treetop.counts.reading import Gathered, read_counts
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


# Counts that are gathered in blocks are those that are counted all at once.


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("most", "batch"), [(1, 3), (7, 3), (50, 20), (1000, 100), (10**9, 100)])
def test_however_rows_are_cut_into_blocks_the_counts_are_the_same(
    words: int, weighted: bool, most: int, batch: int
) -> None:
    rng = np.random.default_rng(most)
    keys = [rng.integers(0, 30, 997).astype(np.uint64) for _ in range(words)]
    weights = rng.integers(0, 4, 997) if weighted else None
    gathered = Gathered(most)
    for start in range(0, 997, batch):
        part = slice(start, start + batch)
        gathered.add([key[part] for key in keys], None if weights is None else weights[part], None)
    found = gathered.counts()
    expected = Counts.from_keys([key.copy() for key in keys], None if weights is None else weights.copy())
    assert found.digest == expected.digest


@pytest.mark.parametrize("most", [40, 400, 10**6])
def test_paths_that_stand_together_are_counted_as_others_are(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(gather, "_MANY", 25)
    keys = np.random.default_rng(most).integers(0, 200, 997).astype(np.uint64)
    gathered = Gathered(most)
    for start in range(0, 997, 10):
        gathered.add([keys[start : start + 10]], None, None)
        assert len(gathered._rows) < 3
    assert gathered.counts().digest == Counts.from_keys([keys.copy()]).digest


def test_nothing_is_a_table_too() -> None:
    for most in (1, 10):
        gathered = Gathered(most)
        gathered.add([np.empty(0, np.uint64)], None, None)
        assert len(gathered.counts()) == 0


def test_a_block_of_too_much_is_refused() -> None:
    gathered = Gathered(2)
    with pytest.raises(DataError, match="more than 2"):
        gathered.add([np.array([1, 2], np.uint64)], np.array([2**52, 2**53]), None)


def test_blocks_that_are_too_much_only_together_are_refused() -> None:
    gathered = Gathered(1)
    for path in range(2):
        gathered.add([np.array([path], np.uint64)], np.array([2**52]), None)
    with pytest.raises(DataError, match="more than 2"):
        gathered.add([np.array([2], np.uint64)], np.array([2**52]), None)


def test_there_are_never_more_than_a_few_blocks() -> None:
    gathered, rng = Gathered(10), np.random.default_rng(1)
    for _ in range(500):
        gathered.add([rng.integers(0, 2**40, 10).astype(np.uint64)], None, None)
        assert len(gathered._blocks) < 14
    assert gathered.counts().total == 5000


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("spread", [2**62, 2**20, 3])
@pytest.mark.parametrize("order", ["mixed", "sorted"])
def test_many_rows_are_counted_range_by_range(words: int, weighted: bool, spread: int, order: str) -> None:
    rng, rows = np.random.default_rng(spread), 300_000
    keys = [rng.integers(0, spread, rows).astype(np.uint64) for _ in range(words)]
    weights = rng.integers(0, 4, rows) if weighted else None
    if order == "sorted":
        keys[0].sort()
    parts = [slice(0, 7), slice(7, 7), slice(7, 280_000), slice(280_000, rows)]
    found = count_rows(
        [Paths([key[part] for key in keys], None if weights is None else weights[part]) for part in parts]
    )
    expected = Counts.from_keys([key.copy() for key in keys], None if weights is None else weights.copy())
    for one, other in zip((*found.keys, found.before), (*expected.keys, expected.before), strict=True):
        np.testing.assert_array_equal(one, other)


def test_ranges_that_are_too_much_only_together_are_refused() -> None:
    rows = 1 << 18
    keys, weights = np.arange(rows, dtype=np.uint64), np.full(rows, 2**36)
    with pytest.raises(DataError, match="more than 2"):
        count_rows([Paths([keys], weights)])
