"""Two ways to one answer: looking from the top and sweeping find the same bounds, threshold and roles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.repair.state import (
    ASCENDING,
    CHEBYSHEV,
    DESCENDING,
    DONE,
    EUCLIDEAN,
    FULL,
    MOST,
    PART,
    PHASE,
    SCRATCH_SIZE,
    SECOND,
    STATE_SIZE,
    THRESHOLD,
    TIES,
    advance,
    begin,
    find_from_top,
    least_kept,
    look,
    settled,
    start_sweeping,
    sweep,
    takes_all,
)


def swept(state: NDArray[np.int64], x: NDArray[np.int64], block: int) -> None:
    scratch = np.full(SCRATCH_SIZE, 777, np.int64)
    start_sweeping(state)
    while state[PHASE] != DONE:
        for start in range(0, len(x), block):
            sweep(state, scratch, x[start : start + block])
        advance(state, scratch)


def fresh(size: int, count: int, kind: int, order: int) -> NDArray[np.int64]:
    state = np.full(STATE_SIZE, 12345, np.int64)  # what was there before must not matter
    begin(state, size, count, kind, order, np.uint64(5))
    return state


def answer(state: NDArray[np.int64], x: NDArray[np.int64]) -> list[int]:
    least = least_kept(state)
    return [0 if value < least else int(settled(state, value)) for value in x]


def test_both_ways_agree() -> None:
    rng = np.random.default_rng(0)
    given_up = 0
    for _ in range(3_000):
        scale = int(rng.choice([1, 2, 30, 1_000, 10**9]))
        x = rng.integers(-scale, scale + 1, rng.integers(2, rng.choice([MOST, 4 * MOST]) + 1))
        count = int(rng.integers(0, rng.choice([1, 4 * scale, 100 * scale])))
        for kind in (CHEBYSHEV, EUCLIDEAN):
            for order in (ASCENDING, DESCENDING):
                one, other = fresh(len(x), count, kind, order), fresh(len(x), count, kind, order)
                look(one, x)
                if not find_from_top(one, np.full(SCRATCH_SIZE, 777, np.int64), x):
                    given_up += 1
                    assert len(np.unique(x)) >= MOST
                    continue
                swept(other, x, block=5)
                assert one[THRESHOLD] == other[THRESHOLD]
                if abs(float(one[THRESHOLD])) < 1e18:
                    assert one[[TIES, FULL, PART]].tolist() == other[[TIES, FULL, PART]].tolist()
                repaired = answer(one, x)
                assert repaired == answer(other, x)
                assert sum(repaired) == count
    assert 100 < given_up < 6_000


def test_the_size_of_blocks_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        x = np.rint(rng.normal(0, 40, 300)).astype(np.int64)
        x[:5] += rng.integers(0, 5_000, 5)
        count = int(rng.integers(1, 6_000))
        for kind in (CHEBYSHEV, EUCLIDEAN):
            for order in (ASCENDING, DESCENDING):
                answers = []
                for block in (1, 7, 300):
                    state = fresh(len(x), count, kind, order)
                    swept(state, x, block)
                    answers.append(answer(state, x))
                assert answers[0] == answers[1] == answers[2]
                assert sum(answers[0]) == count


def test_one_takes_all_exactly_where_the_repair_says_so() -> None:
    rng = np.random.default_rng(2)
    taken = dict.fromkeys([CHEBYSHEV, EUCLIDEAN], 0)
    for _ in range(5_000):
        scale = int(rng.choice([1, 3, 30, 1_000]))
        x = rng.integers(-scale, scale + 1, rng.integers(2, 60))
        x[rng.integers(0, len(x))] += int(rng.choice([0, scale]))
        count = int(rng.integers(1, rng.choice([2, 4 * scale, 20 * scale]) + 1))
        for kind in (CHEBYSHEV, EUCLIDEAN):
            for order in (ASCENDING, DESCENDING):
                state, other = fresh(len(x), count, kind, order), fresh(len(x), count, kind, order)
                which = look(state, x)
                assert (which >= 0) == (np.count_nonzero(x == x.max()) == 1)
                takes = which >= 0 and takes_all(state)
                swept(other, x, block=7)
                repaired = answer(other, x)
                if takes:
                    assert repaired[which] == count == sum(repaired)
                    assert state[SECOND] == np.delete(x, which).max()
                    taken[kind] += 1
                elif which >= 0 and order == ASCENDING:
                    assert repaired[which] < count
    assert min(taken.values()) > 1_000
