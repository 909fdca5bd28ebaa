"""A block that is seen some rows at a time is repaired to the counts that it has when it is in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.repair.test_two_sided import block
from treetop.repair.streamed import Candidates, repair_streamed, round_streamed
from treetop.repair.two_sided import MOST_ROUNDS, MOST_SWEEPS, TOLERANCE, repair_block
from treetop.repair.whole_blocks import round_block

Reals = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass
class Part:
    """Some rows of a block that is in memory after all."""

    first: int
    target: Reals
    likely: Marks
    asked: int = 0

    @property
    def height(self) -> int:
        return len(self.target)

    def opened(self) -> tuple[Reals, Marks]:
        return self.target.ravel().copy(), self.likely.ravel().copy()

    def targets(self) -> Reals:
        self.asked += 1
        return np.where(self.likely, np.nan, self.target).ravel()  # nobody reads those of the first candidates


@given(
    seed=st.integers(0, 11),
    shape=st.sampled_from([(30, 7), (200, 3), (9, 40)]),
    spare=st.sampled_from([0, 25]),
    least=st.sampled_from([0.0, 12.0]),
)
def test_counts_do_not_depend_on_how_much_is_seen_at_a_time(
    seed: int, shape: tuple[int, int], spare: int, least: float
) -> None:
    target, rows, columns = block(seed, *shape, sparse=0.2)
    columns[seed % shape[1]] += spare
    likely = target > least  # few are, if what is above zero is not: then others have to be found
    parts = [Part(first, target[first : first + 4], likely[first : first + 4]) for first in range(0, shape[0], 4)]
    cell, whole = repair_streamed(parts, rows, columns, spare, 2.0, map)
    out = np.zeros(target.size, np.int64)
    repair_block(
        target.ravel(), likely.ravel(), rows, columns, spare, 2.0, TOLERANCE, MOST_SWEEPS, MOST_ROUNDS, out
    )  # fmt: skip
    streamed = np.zeros(target.size, np.int64)
    streamed[cell] = whole
    assert np.array_equal(streamed, out)
    assert all(part.asked > 0 for part in parts)


@given(seed=st.integers(0, 11), shape=st.sampled_from([(30, 7), (9, 40)]), spare=st.sampled_from([0, 25]))
def test_where_no_path_is_left_the_same_cells_are_opened(seed: int, shape: tuple[int, int], spare: int) -> None:
    """Every row has one candidate only, with all that it has: columns can be right by others alone."""
    target, rows, columns = block(seed, *shape, sparse=0.2)
    columns[seed % shape[1]] += spare
    cell = np.arange(shape[0]) * shape[1] + np.where(columns > 0, target, -np.inf).argmax(axis=1)
    likely = np.zeros(shape, np.bool_)
    likely.ravel()[cell] = True
    parts = [Part(first, target[first : first + 4], likely[first : first + 4]) for first in range(0, shape[0], 4)]
    found = Candidates(cell, target.ravel()[cell])
    start, column, fitted = found.by_row(rows, columns, spare)
    fitted[: len(rows)] = rows
    opened, whole = round_streamed(parts, found, fitted, rows, columns, spare)
    out = np.zeros(target.size, np.int64)
    round_block(target.ravel(), likely.ravel().copy(), start, column, fitted, rows, columns, spare, out)
    streamed = np.zeros(target.size, np.int64)
    streamed[opened] = whole
    assert len(opened) > len(cell)
    assert np.array_equal(streamed, out)
