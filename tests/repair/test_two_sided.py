"""The two-sided repair: the fit is the nearest block there is, and whole numbers have all sums exact."""

from __future__ import annotations

from itertools import product
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from treetop.repair.two_sided import CLEAR, GIVE, fit_block, repair_block
from treetop.repair.whole_blocks import _sort_indices, round_block

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


def block(seed: int, height: int, width: int, sparse: float = 0.5) -> tuple[Reals, Ints, Ints]:
    """Noisy targets of a block, with sums of rows above zero and sums of columns that agree in all."""
    rng = np.random.default_rng(seed)
    true = rng.poisson(6, (height, width)) * (rng.random((height, width)) < sparse)
    rows = np.maximum(true.sum(axis=1) + rng.integers(-2, 3, height), 1)
    share = true.sum(axis=0) + rng.integers(0, 3, width) + (rng.random(width) < 0.7)
    columns = np.floor(share * rows.sum() / max(share.sum(), 1)).astype(np.int64)
    columns[rng.integers(width)] += rows.sum() - columns.sum()
    return np.asarray(true + np.rint(rng.normal(0, 4, (height, width))), np.float64), rows.astype(np.int64), columns


def nearest(target: Reals, rows: Ints, columns: Ints, sigma: float = 1e9, sweeps: int = 60_000) -> Reals:
    """The nearest non-negative block with these sums, by another way: projections of each family of sums in turns.

    Distances are divided by how much a cell gives way (Dykstra's and Bregman's method, cyclic).
    """
    give = np.where(target > CLEAR * sigma, GIVE, 1.0)
    x, left = target.astype(float), np.zeros(target.shape)
    for _ in range(sweeps):
        before = x
        x = x + give * ((rows - x.sum(axis=1)) / give.sum(axis=1))[:, None]
        x = x + give * ((columns - x.sum(axis=0)) / give.sum(axis=0))[None, :]
        kept = np.maximum(x + left, 0.0)
        left, x = x + left - kept, kept
        if np.abs(x - before).max() < 1e-11:
            break
    return x


def fitted(
    target: Reals, rows: Ints, columns: Ints, likely: NDArray[np.bool_] | None = None, sigma: float = 1e9
) -> Reals:
    """What the kernel fits, to the end."""
    first = (target > 0 if likely is None else likely).ravel().copy()
    start, column, found = fit_block(target.ravel().copy(), first, rows, columns, 0, sigma, 1e-9, 60, 5_000)
    x = np.zeros(target.shape)
    for i in range(len(rows)):
        x[i, column[start[i] : start[i + 1]]] = found[start[i] : start[i + 1]]
    return x


def repaired(target: Reals, rows: Ints, columns: Ints, spare: int = 0, sigma: float = 4.0) -> Ints:
    out = np.zeros(target.size, np.int64)
    repair_block(target.ravel().copy(), (target > 0).ravel(), rows, columns, spare, sigma, 0.01, 60, 12, out)
    return out.reshape(target.shape)


@given(seed=st.integers(0, 19))
def test_the_fit_is_the_nearest_block(seed: int) -> None:
    target, rows, columns = block(seed, 2 + seed % 3, 2 + seed % 4)
    x = fitted(target, rows, columns)
    assert x.min() >= 0
    assert np.allclose(x.sum(axis=1), rows, atol=1e-6) and np.allclose(x.sum(axis=0), columns, atol=1e-6)
    assert np.allclose(x, nearest(target, rows, columns), atol=1e-3)


@given(seed=st.integers(0, 19), sigma=st.sampled_from([0.5, 1.5, 3.0]))
def test_with_clear_targets_the_fit_is_the_nearest_block_by_weighted_distances(seed: int, sigma: float) -> None:
    target, rows, columns = block(seed, 2 + seed % 3, 2 + seed % 4)
    x = fitted(target, rows, columns, sigma=sigma)
    assert x.min() >= 0
    assert np.allclose(x.sum(axis=1), rows, atol=1e-6) and np.allclose(x.sum(axis=0), columns, atol=1e-6)
    assert np.allclose(x, nearest(target, rows, columns, sigma), atol=1e-3)


def test_what_small_lost_counts_leave_over_goes_to_small_ones() -> None:
    """One large cell in a column, whose other counts are lost in the noise: they make up for each other, not it."""
    target = np.full((21, 3), -12.0)
    target[0], target[1:, 2] = [500.0, -12.0, 8.0], 6.0
    target[1:6, 0] = 3.0
    rows, columns = np.array([508, *[10] * 20]), np.array([560, 8, 140])
    held, alike = repaired(target, rows, columns, sigma=3.0), repaired(target, rows, columns, sigma=1e9)
    assert alike[0, 0] >= 504 and 500 <= held[0, 0] <= 501
    for x in (held, alike):
        assert (x.sum(axis=1) == rows).all() and (x.sum(axis=0) == columns).all()


def test_a_clear_cell_moves_as_far_as_the_sums_force_it() -> None:
    target = np.array([[100.0, 2.0], [3.0, 80.0]])
    x = repaired(target, np.array([60, 90]), np.array([60, 90]), sigma=4.0)
    assert x.tolist() == [[60, 0], [0, 90]]


@given(seed=st.integers(0, 5))
def test_the_fit_does_not_depend_on_the_first_candidates(seed: int) -> None:
    target, rows, columns = block(seed, 6, 5, sparse=0.3)
    few = np.zeros(target.shape, np.bool_)
    few[np.arange(6), target.argmax(axis=1)] = True
    every = np.ones(target.shape, np.bool_)
    assert np.allclose(fitted(target, rows, columns, few), fitted(target, rows, columns, every), atol=1e-5)


@given(seed=st.integers(0, 10_000))
@pytest.mark.parametrize("shape", [(1, 5), (4, 1), (3, 4), (30, 7), (200, 3)])
def test_rows_and_columns_are_exact_whole_numbers(seed: int, shape: tuple[int, int]) -> None:
    target, rows, columns = block(seed, *shape, sparse=0.2)
    x = repaired(target, rows, columns)
    assert x.min() >= 0
    assert (x.sum(axis=1) == rows).all() and (x.sum(axis=0) == columns).all()


def every_block(rows: Ints, columns: Ints) -> list[Ints]:
    """All non-negative whole blocks with these sums, for tiny ones."""
    height, width = len(rows), len(columns)
    one_row = [[row for row in product(range(total + 1), repeat=width) if sum(row) == total] for total in rows.tolist()]
    return [
        np.array(found)
        for found in product(*one_row)
        if (np.array(found).reshape(height, width).sum(0) == columns).all()
    ]


@given(seed=st.integers(0, 24))
def test_whole_numbers_are_nearly_the_nearest_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 4, 2)
    columns = np.bincount(rng.integers(0, 3, rows.sum()), minlength=3).astype(np.int64)
    target = rng.normal(1, 1.5, (2, 3)).round(2)
    best = min(((one - target) ** 2).sum() for one in every_block(rows, columns))
    found = ((repaired(target, rows, columns) - target) ** 2).sum()
    assert best <= found <= best + 2.0  # a unit that went to the second best cell


def test_a_spare_row_takes_what_rows_leave_and_is_not_written() -> None:
    target, rows, columns = block(3, 5, 4)
    more = columns.copy()
    more[1] += 40
    x = repaired(target, rows, more, spare=40)
    assert (x.sum(axis=1) == rows).all() and (x.sum(axis=0) <= more).all()
    assert more.sum() - x.sum() == 40


def test_an_empty_column_stays_empty_and_a_far_column_is_filled() -> None:
    target = np.array([[5.0, 9.0, -50.0], [4.0, 8.0, -60.0]])
    x = repaired(target, np.array([10, 10]), np.array([0, 8, 12]))
    assert x[:, 0].tolist() == [0, 0] and x[:, 1].sum() == 8 and x[:, 2].sum() == 12
    assert x[0, 2] >= x[1, 2]  # the row that is nearer to it gives more


def test_where_no_path_is_left_a_cell_is_opened() -> None:
    """Two rows whose candidates have no column in common, and columns that want the other's units."""
    target = np.array([[9.0, -1.0], [-3.0, 9.0]])
    likely = np.eye(2, dtype=np.bool_).ravel()
    start, column, rows = np.array([0, 1, 2, 2]), np.array([0, 1]), np.array([9, 9])
    out = np.zeros(4, np.int64)
    round_block(target.ravel(), likely, start, column, np.array([9.0, 9.0]), rows, np.array([8, 10]), 0, out)
    assert out.tolist() == [8, 1, 0, 9]


def test_indices_are_sorted_as_by_argsort() -> None:
    """Equal values come in the order of Numba's `argsort`, on which released counts depend."""

    def argsort(values: Reals) -> Ints:
        return np.argsort(values)

    by_numba: Any = numba.njit(argsort)
    random = np.random.default_rng(1)
    for size in [*range(40), 200, 1000, 5000]:
        for different in (1, 3, 10, 10_000):
            values = random.integers(different, size=size).astype(np.float64)
            values[random.random(size) < 0.2] = np.inf
            for example in (values, np.sort(values), np.sort(values)[::-1].copy()):
                order = np.empty(size + 1, np.int64)
                _sort_indices(example, size, order, np.empty(128, np.int64))
                assert np.array_equal(order[:size], by_numba(example))
