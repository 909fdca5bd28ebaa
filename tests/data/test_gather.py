"""Counts that are gathered in blocks are those that are counted all at once."""

from __future__ import annotations

import numpy as np
import pytest

from treetop.counts import reading as gather
from treetop.counts.contribution_cap import Paths, count_rows
from treetop.counts.counts import Counts
from treetop.counts.reading import Gathered
from treetop.errors import DataError


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
