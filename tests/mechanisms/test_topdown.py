"""Top-down mechanisms: the engine behind one of them, a descent with any repair, and the repairs of the paper."""

from __future__ import annotations

import builtins
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import floor
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop.addons.lab.mechanisms import inftda as tda_linf
from treetop.addons.lab.mechanisms.compared import NotServed
from treetop.addons.lab.mechanisms.inftda import (
    EuclideanTDA,
    InfTDA,
    LevelRepair,
    TDAl2,
    TDAlinf,
    descend,
    project_and_round,
    solve,
    solve_each,
)
from treetop.counts.counts import pack
from treetop.measure import descent as engine
from treetop.measure import level as levels
from treetop.measure.descent import descent_of
from treetop.noise import Key
from treetop.repair import REPAIRS, chebyshev, euclidean

from . import tables
from .tables import ANYONE, KEY, LOSS, TRIP

Ints = NDArray[np.int64]


@pytest.mark.parametrize("kind", [InfTDA, EuclideanTDA])
def test_the_engine_publishes_what_a_release_of_the_same_plan_does(kind: type[InfTDA]) -> None:
    spine = tables.pairs()
    weights = {"total": 1, **{level.name: level.index for level in spine.levels}}
    mechanism = kind(spine, ANYONE, LOSS, split=weights)
    rng = np.random.default_rng(3)
    codes = {
        name: tree.codes[-1].take(rng.integers(0, tree.sizes[-1], 4_000)) for name, tree in spine.attributes.items()
    }
    release = tt.make_release(mechanism.plan, pa.table(codes), tt.RunOptions(testing_key=KEY.secret))
    numbers = [tree.encode(codes[name]) for name, tree in spine.attributes.items()]
    estimate = mechanism.run(tt.Counts.from_leaves(spine, numbers), KEY, threads=2)
    assert len(estimate) > 20
    assert np.array_equal(estimate.value, release.count)
    assert np.array_equal(estimate.keys[0], pack(spine, release.nodes)[0])


def in_order(key: Key, place: NDArray[np.uint64]) -> Ints:
    """The engine's tie words, by the order of nodes instead of their places, which a repair of levels does not know."""
    return int.from_bytes(key.derive("ties").secret[:7], "little") + np.arange(place.shape[1])


def engine_repair(kind: str) -> LevelRepair:
    """The engine's repair, a node at a time, with tie words in order: those of node i are word + i."""

    def repair(x: Ints, first: Ints, count: Ints, ties: Key) -> Ints:
        word = int.from_bytes(ties.secret[:7], "little")
        # Only children have a number too, but these tables have none.
        nodes = zip(np.split(x, first[1:-1]), count, strict=True)
        function = REPAIRS[kind].function
        return np.concatenate([function(part, int(c), "ascending", word + i) for i, (part, c) in enumerate(nodes)])

    return repair


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["chebyshev", "euclidean"])
def test_the_plain_descent_is_the_engine_but_for_its_repair(
    kind: Literal["chebyshev", "euclidean"], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "seeds", in_order)
    rng = random.Random(seed)
    tree = tt.Hierarchy.from_prefixes([f"{a}{b:02d}" for a in range(4) for b in range(2 + seed % 7)], widths=[1])
    spine = tt.Spine.destination_first(origin=tree, destination=tree)
    unit = rng.choice([TRIP, ANYONE, tt.Unit("person", 3, "replace")])
    plan = tt.Plan(spine, unit, tt.Loss(rho=10.0 ** rng.uniform(-4, 2)), repair=kind, margins="none")
    counts = tables.table(spine, rng.choice([0, 1, 30, 300]), seed)
    plain = descend(descent_of(plan), counts, KEY, engine_repair(kind))
    expected = engine.run_descent(descent_of(plan), counts, KEY).leaves
    assert np.array_equal(plain.nodes, expected.nodes)
    assert np.array_equal(plain.count, expected.count)


def watched(repair: LevelRepair, seen: list[tuple[Ints, int, Ints]]) -> LevelRepair:
    def repair_and_note(x: Ints, first: Ints, count: Ints, ties: Key) -> Ints:
        y = repair(x, first, count, ties)
        seen.extend(zip(np.split(x, first[1:-1]), count.tolist(), np.split(y, first[1:-1]), strict=True))
        return y

    return repair_and_note


@pytest.mark.parametrize("repair", [project_and_round, solve_each])
@pytest.mark.parametrize("seed", range(12))
def test_every_node_of_a_descent_is_repaired_as_well_as_can_be(repair: LevelRepair, seed: int) -> None:
    rng = random.Random(seed)
    spine = tables.random_spine(rng)
    plan = tt.Plan(spine, rng.choice([TRIP, ANYONE]), tt.Loss(rho=10.0 ** rng.uniform(-3, 1)), margins="none")
    seen: list[tuple[Ints, int, Ints]] = []
    leaves = descend(descent_of(plan), tables.table(spine, 20, seed), KEY, watched(repair, seen))
    assert (leaves.count > 0).all()
    for x, count, y in seen:
        assert len(x) > 1 and count > 0
        assert (y >= 0).all() and y.sum() == count
        if repair is solve_each:
            assert np.abs(y - x).max() == np.abs(chebyshev(x, count, "ascending", seed=1) - x).max()
        else:
            assert ((y - x) ** 2).sum() == ((euclidean(x, count, "ascending", seed=1) - x) ** 2).sum()


def one_node(repair: LevelRepair) -> Callable[[list[int], int], Ints]:
    def repaired(x: list[int], count: int) -> Ints:
        return repair(np.array(x), np.array([0, len(x)]), np.array([count]), KEY)

    return repaired


def test_rounding_agrees_with_the_projection_in_fractions() -> None:
    project = one_node(project_and_round)
    rng = random.Random(5)
    for _ in range(400):
        x = [rng.randint(-9, 12) for _ in range(rng.randint(2, 7))]
        count = rng.randint(1, 25)
        theta = next(t for k in range(len(x), 0, -1) if (t := Fraction(sum(sorted(x)[-k:]) - count, k)) < sorted(x)[-k])
        exact = [max(value - theta, Fraction(0)) for value in x]
        assert sum(exact) == count
        rounded = [floor(value + Fraction(1, 2)) for value in exact]
        missing = count - sum(rounded)
        smallest_first = sorted(range(len(x)), key=lambda i: x[i])
        for i in [i for i in smallest_first if rounded[i] > 0][: max(-missing, 0)]:
            rounded[i] -= 1
        for i in smallest_first[::-1][: max(missing, 0)]:
            rounded[i] += 1
        # Equal measurements may be served in any order.
        assert sorted(zip(x, project(x, count).tolist(), strict=True)) == sorted(zip(x, rounded, strict=True))


def test_the_excess_of_rounding_is_taken_from_small_values() -> None:
    # The projection is 0.75, 1.75, 4.75, 10.75.
    assert one_node(project_and_round)([1, 2, 5, 11], 18).tolist() == [0, 2, 5, 11]


def test_what_rounding_leaves_out_is_given_to_large_values() -> None:
    # The projection is 1.25, 2.25, 5.25, 11.25.
    assert one_node(project_and_round)([1, 2, 5, 11], 20).tolist() == [1, 2, 5, 12]


def test_the_two_steps_are_never_worse_than_any_integers() -> None:
    project = one_node(project_and_round)
    for x in product(range(-3, 5), repeat=3):
        for count in range(1, 5):
            y = project(list(x), count)
            best = min(
                sum((a - b) ** 2 for a, b in zip(x, z, strict=True))
                for z in product(range(count + 1), repeat=3)
                if sum(z) == count
            )
            assert int(((y - np.array(x)) ** 2).sum()) == best


def test_equal_measurements_are_treated_alike() -> None:
    times = np.zeros(3)
    for i in range(300):
        times += project_and_round(np.array([4, 4, 4]), np.array([0, 3]), np.array([10]), KEY.derive("tie", i))
    assert (np.abs(times / 300 - 10 / 3) < 0.15).all()


@pytest.mark.parametrize(("x", "count"), [([5, 0, 0], 2), ([-4, 3], 1), ([0, 0], 7), ([10**6, -3, 8], 999_000)])
def test_the_solver_finds_the_least_largest_change(x: list[int], count: int) -> None:
    y = solve(np.array(x), count)
    assert (y >= 0).all() and y.sum() == count
    assert np.abs(y - x).max() == np.abs(chebyshev(x, count, "ascending", seed=1) - x).max()


def test_without_scipy_the_solver_is_refused_with_the_extra_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_scipy(name: str, *arguments: Any, **options: Any) -> Any:
        if name.startswith("scipy"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_scipy)
    with pytest.raises(NotServed, match=r"pip install 'treetop-dp\[compare\]'"):
        TDAlinf(tables.pairs(), TRIP, LOSS)


def test_a_solver_that_gives_up_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        x = None
        message = "out of patience"

    real = tda_linf._solver()
    monkeypatch.setattr(tda_linf, "_solver", lambda: (lambda *_, **__: Found, real[1]))
    with pytest.raises(tt.TreetopError, match="2 children: out of patience"):
        solve(np.array([1, 2]), 3)


def test_the_euclidean_mechanisms_agree_in_distribution() -> None:
    spine = tables.pairs()
    counts = tables.table(spine, 100)
    loss = tt.Loss(epsilon=3, delta=1e-8)
    errors = []
    for kind in (TDAl2, EuclideanTDA):
        mechanism = kind(spine, TRIP, loss)
        runs = [tables.leaves(mechanism.run(counts, KEY.derive("run", i))) for i in range(150)]
        errors.append(np.abs(np.stack(runs) - tables.truth(spine, counts)).mean(axis=1))
    spread = np.hypot(*(error.std() / len(error) ** 0.5 for error in errors))
    assert abs(errors[0].mean() - errors[1].mean()) < 5 * spread


def test_the_order_of_lowering_is_the_ascending_one() -> None:
    assert descent_of(InfTDA(tables.pairs(), TRIP, LOSS).plan).steps[0].order.name == "ascending"
