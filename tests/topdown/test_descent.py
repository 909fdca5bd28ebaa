"""The descent: consistent, reproducible from its key, and bounded by the data present, never by the domain."""

from __future__ import annotations

import random
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop import Counts
from treetop.engine.engine import Threads
from treetop.measure import _task as tasks
from treetop.measure import descent as descents
from treetop.measure.descent import Descent, descent_of, run_descent
from treetop.measure.level import Descended, Frontier, Step, refine
from treetop.noise import Key

KEY = Key(bytes(range(32)))


@pytest.fixture(autouse=True)
def _small_trees_are_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descents, "LARGEST_TRUNK", 20)
    monkeypatch.setattr(descents, "CHUNK", 16)


PLACE = tt.Hierarchy.from_prefixes(
    [f"{a}{b}{c}" for a in "ABCD" for b in "123" for c in "wxyz"[: 1 + ord(b) % 4]], widths=[1, 2]
)


def plan(spine: tt.Spine, rho: Fraction = Fraction(1, 2), **options: Any) -> tt.Plan:
    return tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=rho), **options, margins="none")


def random_counts(spine: tt.Spine, rows: int, seed: int = 0) -> Counts:
    rng = np.random.default_rng(seed)
    leaves = [rng.integers(0, tree.sizes[-1], rows) for tree in spine.trees]
    return Counts.from_leaves(spine, leaves, rng.integers(1, 30, rows))


def descend(descent: Descent, counts: Counts, key: Key, threads: int = 1, **options: Any) -> Frontier:
    return run_descent(descent, counts, key, Threads(threads), **options).leaves


def as_dict(leaves: Frontier) -> dict[tuple[int, ...], int]:
    return dict(zip(map(tuple, leaves.nodes.T.tolist()), leaves.count.tolist(), strict=True))


SPINE = tt.Spine.destination_first(origin=PLACE, destination=PLACE)


def test_counts_are_positive_and_sum_to_the_public_total() -> None:
    counts = random_counts(SPINE, 200)
    leaves = descend(descent_of(plan(SPINE)), counts, KEY)
    assert leaves.count.min() > 0
    assert leaves.count.sum() == counts.total


@pytest.mark.parametrize("repair", ["chebyshev", "euclidean"])
@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_without_noise_the_data_come_back(repair: str, order: str) -> None:
    counts = random_counts(SPINE, 200)
    leaves = descend(descent_of(plan(SPINE, Fraction(10**6), repair=repair, order=order)), counts, KEY)
    assert leaves.count.tolist() == np.diff(counts.before).tolist()


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 1 << 15])
def test_threads_and_chunks_change_nothing(threads: int, chunk: int) -> None:
    counts = random_counts(SPINE, 300)
    whole = descend(descent_of(plan(SPINE)), counts, KEY)
    cut = descend(descent_of(plan(SPINE)), counts, KEY, threads=threads, chunk=chunk)
    for name in ("nodes", "count"):
        assert np.array_equal(getattr(whole, name), getattr(cut, name)), name


def test_the_order_of_completion_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = random_counts(SPINE, 300)
    whole = descend(descent_of(plan(SPINE)), counts, KEY)
    pause = random.Random(4)
    refine_part = refine

    def slowly(*arguments: Any) -> Descended:
        time.sleep(pause.random() / 100)
        return refine_part(*arguments)

    monkeypatch.setattr(tasks, "refine", slowly)
    again = descend(descent_of(plan(SPINE)), counts, KEY, threads=8)
    assert np.array_equal(again.nodes, whole.nodes)
    assert np.array_equal(again.count, whole.count)


def test_another_key_gives_other_noise() -> None:
    counts = random_counts(SPINE, 300)
    one = descend(descent_of(plan(SPINE)), counts, KEY)
    other = descend(descent_of(plan(SPINE)), counts, KEY.derive("other"))
    assert as_dict(one) != as_dict(other)


def test_an_empty_table_gives_an_empty_release() -> None:
    nothing = np.empty(0, np.int64)
    counts = Counts.from_leaves(SPINE, [nothing, nothing])
    assert len(descend(descent_of(plan(SPINE)), counts, KEY, threads=2)) == 0


def test_one_row_is_released_somewhere() -> None:
    counts = Counts.from_leaves(SPINE, [np.array([5]), np.array([7])])
    assert descend(descent_of(plan(SPINE)), counts, KEY).count.tolist() == [1]


def test_a_domain_of_one_leaf_costs_nothing_and_is_exact() -> None:
    one = tt.Hierarchy.from_prefixes(["AXY"], widths=[1, 2])
    spine = tt.Spine.origin_first(origin=one, destination=one)
    single = plan(spine)
    counts = Counts.from_leaves(spine, [np.zeros(9, np.int64)] * 2)
    assert descend(descent_of(single), counts, KEY).count.tolist() == [9]
    assert single.spent == 0


def test_single_children_pass_through_unmeasured() -> None:
    # Every state has one county: the level of counties must repeat the states exactly.
    tree = tt.Hierarchy.from_prefixes(["A1x", "A1y", "B1x", "C1x"], widths=[1, 2], levels=["a", "b", "c"])
    spine = tt.Spine(["place.a", "place.b", "place.c"], {"place": tree})
    through = plan(spine, Fraction(1, 100))
    assert [not level.is_measured for level in through.levels] == [True, False, True, False]
    counts = Counts.from_leaves(spine, [np.repeat(np.arange(4), 50)])
    leaves = descend(descent_of(through), counts, KEY)
    assert leaves.count.sum() == 200


def test_only_some_single_children_use_noise_for_the_others_only() -> None:
    tree = tt.Hierarchy.from_prefixes(["A1", "B1", "B2"], widths=[1], levels=["a", "b"])
    spine = tt.Spine(["place.a", "place.b"], {"place": tree})
    counts = Counts.from_leaves(spine, [np.repeat(np.arange(3), [10, 20, 30])])
    upper = tt.Spine(["place.a"], {"place": tree})
    half = tt.Plan(upper, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=Fraction(1, 4)), margins="none")
    above = descend(descent_of(half), Counts.from_leaves(upper, [np.repeat([0, 1], [10, 50])]), KEY)
    leaves = as_dict(descend(descent_of(plan(spine)), counts, KEY))
    assert leaves[(0,)] == as_dict(above)[(0,)]


def test_a_measured_total_that_falls_below_zero_gives_an_empty_release() -> None:
    add_remove = tt.Plan(
        SPINE, tt.Unit("trip", neighbours="add-remove"), tt.Loss(rho=Fraction(1, 10**6)), margins="none"
    )
    counts = Counts.from_leaves(SPINE, [np.array([5]), np.array([7])])
    totals = [int(descend(descent_of(add_remove), counts, KEY.derive("run", run)).count.sum()) for run in range(40)]
    assert min(totals) == 0 < max(totals)


@pytest.mark.parametrize("chunk", [16, 1 << 15])
def test_a_node_wider_than_a_chunk_is_refined_in_blocks(chunk: int) -> None:
    flat = tt.Hierarchy.flat([f"{i:05d}" for i in range(5_000)])
    spine = tt.Spine(["zone", "place.digits1"], {"zone": flat, "place": PLACE})
    counts = random_counts(spine, 60)
    for order in ("ascending", "descending"):
        for repair in ("chebyshev", "euclidean"):
            wide = descent_of(plan(spine, Fraction(1, 50), order=order, repair=repair))
            assert as_dict(descend(wide, counts, KEY, chunk=chunk)) == as_dict(descend(wide, counts, KEY))


def test_memory_follows_the_data_and_not_the_domain() -> None:
    import tracemalloc

    big = tt.Hierarchy.flat([f"{i:07d}" for i in range(1_000_000)])
    spine = tt.Spine(["zone"], {"zone": big})
    descent = descent_of(plan(spine))
    counts = Counts.from_leaves(spine, [np.arange(0, 1_000_000, 20_000)], np.full(50, 1_000))
    descend(descent, counts, KEY)
    tracemalloc.start()
    leaves = descend(descent, counts, KEY)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert leaves.count.sum() == 50_000
    assert peak < 6_000_000  # a million children would take 8 MB for their noise alone


def test_many_attributes_and_levels_work() -> None:
    tree = tt.Hierarchy.from_prefixes(
        [f"{a}{b:03d}" for a in "ABCDEFGH" for b in range(200)], widths=[1], levels=["big", "small"]
    )
    names = [f"a{i}" for i in range(10)]
    spine = tt.Spine([f"{n}.big" for n in names] + [f"{n}.small" for n in names], dict.fromkeys(names, tree))
    assert len(spine.levels) == 20
    assert spine.leaves > 2**64
    counts = random_counts(spine, 50)
    noiseless = descend(descent_of(plan(spine, Fraction(10**6))), counts, KEY, threads=2)
    assert noiseless.count.tolist() == np.diff(counts.before).tolist()
    noisy = descend(descent_of(plan(spine)), counts, KEY)
    assert noisy.count.sum() == counts.total


def test_a_descent_takes_noise_of_the_planned_size() -> None:
    flat = tt.Spine(["zone"], {"zone": tt.Hierarchy.flat([f"{i:03d}" for i in range(400)])})
    planned = plan(flat, Fraction(1, 200))
    counts = Counts.from_leaves(flat, [np.arange(400)], np.full(400, 10_000))
    errors: NDArray[np.int64] = descend(descent_of(planned), counts, KEY).count - 10_000
    law = planned.levels[1].law
    assert law is not None
    assert errors.std() == pytest.approx(law.standard_deviation, rel=0.15)


def test_the_tree_is_cut_into_subtrees_that_cover_it() -> None:
    counts = random_counts(SPINE, 300)
    planned = descent_of(plan(SPINE))
    assert 0 < planned.trunk < len(planned.steps)
    nodes = Frontier.root(2, counts.total, len(counts))
    for step in planned.steps[: planned.trunk]:
        nodes = refine(step, counts, nodes, KEY).frontier
    parts = descents._cut(nodes, planned.steps[planned.trunk :])
    assert len(parts) > 4
    assert np.concatenate([part.count for part in parts]).tolist() == nodes.count.tolist()


def test_progress_reaches_the_end() -> None:
    told: list[float] = []
    descend(descent_of(plan(SPINE)), random_counts(SPINE, 100), KEY, progress=lambda _, done: told.append(done))
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_a_failing_subtree_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    descent = descent_of(plan(SPINE))
    refine_part = refine

    def broken_below_the_trunk(step: Step, *rest: Any) -> Descended:
        if step.level.index > descent.trunk:
            raise MemoryError
        return refine_part(step, *rest)

    monkeypatch.setattr(tasks, "refine", broken_below_the_trunk)
    with pytest.raises(MemoryError):
        descend(descent, random_counts(SPINE, 10), KEY, threads=2)
