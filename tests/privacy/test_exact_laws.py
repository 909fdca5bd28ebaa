"""Exact laws on tiny trees: the divergence of neighbouring tables is computed, not estimated, and is what was promised.

A release is made from measurements alone, so that the joint law of all measurements bounds whatever is made from
them (`test_measurements…`): that is computed for every pair of neighbours. Then the law of the release itself is
computed for chosen pairs, by carrying all measurements that matter through the engine's own repairs and pruning.
No chance is involved: a failure is a bug.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from treetop.noise import DiscreteGaussian, DiscreteLaplace
from treetop.privacy import Neighbours

from .audits import DEEP, the_law_of_all_measurements, the_law_of_releases, the_same_measurements_give_the_same_release
from .cases import MEASURED, SAME
from .divergence import Shift, excess, hockey_stick, largest_loss, largest_ratio, renyi
from .engine import KEY, Engine, many_releases, releases, shifts_between
from .faults import narrowed
from .neighbours import EXACT, Pair, exact_pairs, grid


@pytest.mark.parametrize(
    ("tree", "neighbours", "contributions", "loss", "options"), MEASURED, ids=lambda value: str(value).replace("/", "_")
)
def test_measurements_of_neighbours_are_as_alike_as_promised(
    tree: str, neighbours: Neighbours, contributions: int, loss: dict[str, Any], options: dict[str, Any]
) -> None:
    assert the_law_of_all_measurements(tree, neighbours, contributions, loss, **options) is None


@pytest.mark.parametrize(
    ("one", "other", "neighbours", "options"),
    [
        ({"A1": 1}, {"B2": 1}, "replace", {}),
        ({"A1": 1}, {"B2": 1}, "replace", {"split": {"place.digits1": 1, "place.digits2": 3}}),
        ({"A1": 1}, {}, "add-remove", {}),
    ],
)
@pytest.mark.parametrize("delta", [0.01, 1e-6])
def test_exact_accounting_leaves_no_room_for_noise_two_percent_narrower(
    one: dict[str, int], other: dict[str, int], neighbours: Neighbours, options: dict[str, Any], delta: float
) -> None:
    plan = Pair("", one, other, neighbours=neighbours, loss=EXACT | {"delta": delta}, options=options).plan()
    shifts = shifts_between(Engine.of(plan, one), Engine.of(plan, other))
    assert hockey_stick(shifts, 3.0) <= delta
    narrower = [Shift(narrowed(shift.law, Fraction(98, 100)), shift.by) for shift in shifts]
    assert hockey_stick(narrower, 3.0) > delta


@pytest.mark.parametrize("pair", exact_pairs(), ids=str)
def test_releases_of_neighbours_are_as_alike_as_promised(pair: Pair) -> None:
    assert the_law_of_releases(pair, *((1e-8, 10) if DEEP else (1e-6, 2))) is None


@pytest.mark.parametrize("pair", grid(whole=DEEP), ids=str)
def test_releases_are_as_alike_as_promised_for_every_placement_loss_and_split(pair: Pair) -> None:
    assert the_law_of_releases(pair, *((1e-7, 2) if DEEP else (1e-6, 1))) is None


def test_every_placement_meets_every_loss_and_every_split() -> None:
    assert len({str(pair) for pair in grid(whole=True)}) == 2 * (2 + 4 + 4) * 3 * 3
    met: dict[tuple[str, int, str], set[str]] = defaultdict(set)
    for pair in grid(whole=False):
        placement, split = pair.about.split(", ")
        met[pair.neighbours, pair.contributions, placement] |= {split, *pair.loss}
    assert len(met) == 2 * (2 + 4 + 4)
    assert {frozenset(parts) for parts in met.values()} == {
        frozenset({"even split", "top-heavy split", "bottom-heavy split", "epsilon", "delta", "rho"})
    }


@pytest.mark.parametrize("pair", SAME, ids=str)
def test_tables_that_measure_the_same_give_the_same_release_and_keep_the_same_measurements(pair: Pair) -> None:
    assert the_same_measurements_give_the_same_release(pair, 200 if DEEP else 30) is None


@pytest.mark.parametrize("repair", ["chebyshev", "euclidean"])
@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_a_node_too_wide_for_memory_is_repaired_from_its_measurements_only(repair: str, order: str) -> None:
    options = {"repair": repair, "order": order}
    pair = Pair("into an empty leaf", {"A": 2}, {"A": 1, "C": 1}, tree="three leaves", options=options)
    plan = pair.plan()
    x = np.array(list(product(range(-3, 5), repeat=3)), np.int64)
    counts = np.full(len(x), 2, np.int64)
    one, other = Engine.of(plan, pair.one), Engine.of(plan, pair.other)
    expected = one.outcomes((), counts, x)
    for engine in (one, other):
        for chunk in (1, 2):  # a node with more children than this is swept block by block
            assert np.array_equal(engine.outcomes((), counts, x, chunk=chunk), expected)


def test_the_law_of_releases_is_what_the_engine_does() -> None:
    pair = Pair("down two levels", {"A1": 2, "B1": 1}, {"A1": 2}, neighbours="add-remove", loss={"epsilon": 6})
    plan = pair.plan()
    engines = Engine.of(plan, pair.one), Engine.of(plan, pair.other)
    runs = 40_000
    seen = Counter(map(tuple, many_releases(plan, engines[0].counts, runs, KEY).tolist()))
    laws = [releases(engines, 1e-6, KEY.derive("tie words", i)).one for i in range(10)]
    outcomes = set(seen).union(*laws)
    assert len(outcomes) > 50
    assert math.fsum(laws[0].values()) == pytest.approx(1, abs=1e-4)
    for outcome in outcomes:
        computed = np.array([law.get(outcome, 0.0) for law in laws])
        # Six standard deviations of the runs, and of the mean over the few tie words that were tried.
        error = 6 * math.sqrt(computed.mean() / runs + computed.var() / len(laws)) + 3 / runs
        assert abs(seen[outcome] / runs - computed.mean()) < error


@pytest.mark.parametrize("by", [1, 3])
def test_the_divergence_of_one_measurement_is_the_sum_of_its_definition(by: int) -> None:
    for law in (DiscreteGaussian(Fraction(5, 2)), DiscreteLaplace(Fraction(7, 3))):
        for epsilon in (0.1, 0.7):
            expected = sum(max(law.mass(x) - math.exp(epsilon) * law.mass(x - by), 0) for x in range(-150, 150))
            assert hockey_stick([Shift(law, by)], epsilon) == pytest.approx(expected, rel=1e-9)
            assert hockey_stick([Shift(law, -by)], epsilon) == pytest.approx(expected, rel=1e-9)
        order = 3
        moment = sum(law.mass(x) ** order / law.mass(x - by) ** (order - 1) for x in range(-25, 26))
        assert renyi([Shift(law, by)], order) == pytest.approx(math.log(moment) / (order - 1), rel=1e-3)


def test_the_divergence_of_two_measurements_is_the_sum_over_pairs() -> None:
    one, other = Shift(DiscreteGaussian(Fraction(2)), 1), Shift(DiscreteGaussian(Fraction(3)), -2)
    reach = range(-20, 21)
    pairs = {(x, y): one.law.mass(x) * other.law.mass(y) for x in reach for y in reach}
    moved = {(x, y): one.law.mass(x - 1) * other.law.mass(y + 2) for x in reach for y in reach}
    assert hockey_stick([one, other], 0.8) == pytest.approx(excess(pairs, moved, 0.8), rel=1e-9)


def test_the_divergence_of_laplace_noise_is_its_distance_over_its_scale() -> None:
    law = DiscreteLaplace(Fraction(5))
    table = {x: law.mass(x) for x in range(-60, 60)}
    moved = {x: law.mass(x - 3) for x in range(-60, 60)}
    assert largest_loss([Shift(law, 3), Shift(law, -1)]) == Fraction(4, 5)
    assert largest_ratio(table, moved) == pytest.approx(3 / 5)
