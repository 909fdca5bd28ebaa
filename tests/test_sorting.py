"""Sorting rows: the order of a comparison sort, stable, for keys of any number of words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treetop._util.arrays import sort_rows

WORDS = st.one_of(
    st.integers(0, 3), st.integers(0, 2**64 - 1), st.sampled_from([2**63, 2**64 - 1, 1 << 10, 1 << 11, (1 << 10) - 1])
)


@settings(deadline=None)  # the first example compiles
@given(st.integers(1, 3).flatmap(lambda words: st.lists(st.tuples(*[WORDS] * words), max_size=60)))
def test_rows_come_in_the_order_of_their_keys_and_equal_ones_as_they_were(rows: list[tuple[int, ...]]) -> None:
    width = len(rows[0]) if rows else 1
    keys = [np.array([row[word] for row in rows], np.uint64) for word in range(width)]
    sorted_keys, values = sort_rows(keys, np.arange(len(rows)))
    assert values is not None
    expected = sorted(range(len(rows)), key=lambda row: rows[row])
    assert values.tolist() == expected
    assert list(zip(*(key.tolist() for key in sorted_keys), strict=True)) == [rows[row] for row in expected]


@pytest.mark.parametrize("shift", [0, 1, 37, 47])
def test_many_keys_without_values_are_sorted_whichever_bits_they_use(shift: int) -> None:
    key = np.random.default_rng(shift).integers(0, 1 << 17, 10_000, np.uint64) << np.uint64(shift)
    (ours,), nothing = sort_rows([key.copy()])
    assert nothing is None
    assert np.array_equal(ours, np.sort(key))


@pytest.mark.parametrize("rows", [4_095, 5_000, 1 << 17, (1 << 20) + 77])
@pytest.mark.parametrize("kind", ["spread", "crowded", "equal", "rising", "falling"])
def test_many_or_few_words_are_sorted_however_they_are_spread(rows: int, kind: str) -> None:
    rng = np.random.default_rng(rows)
    words = {
        "spread": rng.integers(0, 2**64, rows, np.uint64),
        "crowded": rng.zipf(1.2, rows).astype(np.uint64) << np.uint64(7),
        "equal": np.full(rows, 2**63 + 5, np.uint64),
        "rising": np.arange(rows, dtype=np.uint64),
        "falling": np.arange(rows, dtype=np.uint64)[::-1].copy(),
    }[kind]
    expected = np.sort(words)
    (ours,), _ = sort_rows([words])
    assert np.array_equal(ours, expected)
