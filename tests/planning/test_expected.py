"""The errors to expect of any table: they are those of least squares, and those of the engine."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

import treetop as tt
from tests.true_leaves import leaves_of
from treetop import Counts
from treetop.advice.expected import Depths, ErrorModel, Tables, expected_errors, margins_not_kept
from treetop.advice.trials import mean_error
from treetop.errors import PlanError
from treetop.noise import Key
from treetop.plan.resolution import Prefer
from treetop.privacy import Neighbours
from treetop.release.run import run_plan

PLACES = tt.Hierarchy.from_prefixes(
    [f"{a}{b}" for a in "ABCD" for b in "123456"], widths=[1], levels=["region", "town"]
)
AGES = tt.Hierarchy.from_prefixes([f"{a}{b}" for a in "XYZ" for b in "12"], widths=[1], levels=["group", "year"])
SEXES = tt.Hierarchy.flat(["f", "m"])
LOSS = tt.Loss(epsilon=1, delta=1e-8)


def summing(sizes: tuple[int, ...], depth: int) -> NDArray[np.float64]:
    """The matrix that sums the leaves of a balanced tree to one of its levels."""
    return np.asarray(np.kron(np.eye(sizes[depth]), np.ones((1, sizes[-1] // sizes[depth]))), np.float64)


def matrix(sizes: tuple[tuple[int, ...], ...], table: Depths) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.ones((1, 1))
    for own, depth in zip(sizes, table, strict=True):
        found = np.asarray(np.kron(found, summing(own, depth)), np.float64)
    return found


@pytest.mark.parametrize("exact_total", [True, False])
@pytest.mark.parametrize("sizes", [((1, 3, 6), (1, 2, 4)), ((1, 2, 4), (1, 3), (1, 2)), ((1, 3, 9),)])
def test_they_are_those_of_least_squares_of_all_measurements(
    sizes: tuple[tuple[int, ...], ...], exact_total: bool
) -> None:
    rng = np.random.default_rng(1)
    every = list(product(*(range(len(own)) for own in sizes)))
    tables = Tables(sizes, tuple(every[1:] if exact_total else every), (), exact_total, top_down=False)
    precision = rng.uniform(0.1, 2, len(tables.all))
    information = sum(
        by * matrix(sizes, table).T @ matrix(sizes, table) for table, by in zip(tables.all, precision, strict=True)
    )
    leaves = matrix(sizes, every[-1]).shape[0]
    if exact_total:  # as if it were measured with hardly any noise
        information = information + 1e9 * np.ones((leaves, leaves))
    covariance = np.linalg.inv(information)
    brute = [np.diag(matrix(sizes, one) @ covariance @ matrix(sizes, one).T).mean() for one in every]
    found = ErrorModel(tables, tuple(every)).variances(precision)
    assert found == pytest.approx(brute, rel=1e-6, abs=1e-6)


def spines() -> dict[str, tt.Spine]:
    three = {"place": PLACES, "age": AGES, "sex": SEXES}
    return {
        "two ends": tt.Spine.origin_first(PLACES, AGES),
        "three": tt.Spine(["sex", "place.region", "age.group", "place.town", "age.year"], three),
    }


@pytest.mark.parametrize(
    ("prefer", "neighbours"),
    [("fewer-invented", "replace"), ("fewer-invented", "add-remove"), ("lower-error", "replace")],
)
@pytest.mark.parametrize("margins", ["none", "each"])
@pytest.mark.parametrize("name", spines())
def test_they_are_those_of_the_engine_where_counts_are_large(
    name: str, margins: str, prefer: Prefer, neighbours: Neighbours
) -> None:
    spine = spines()[name]
    unit = tt.Unit("trip", neighbours=neighbours)
    plan = tt.Plan(spine, unit, LOSS, margins=margins, prefer=prefer, confidence=None)
    leaves = np.indices([tree.sizes[-1] for tree in spine.trees]).reshape(len(spine.trees), -1)
    counts = Counts.from_leaves(spine, list(leaves), np.full(leaves.shape[1], 5_000))
    own, true = leaves_of(spine, counts)
    tables = list(product(*(range(len(tree.levels) + 1) for tree in spine.trees)))[1:]
    runs = 30
    squares = np.zeros(len(tables))
    for number in range(runs):
        found = run_plan(plan, counts, Key(number.to_bytes(32, "big")), {})
        both = [np.concatenate([one, np.asarray(other)]) for one, other in zip(own, found.nodes, strict=True)]
        error = np.concatenate([-true, found.count])
        squares += [mean_square(spine, both, error, table) / runs for table in tables]
    expected = expected_errors(plan, tables)
    for one, square in zip(expected, squares, strict=True):
        # Independent numbers: so many a run, fewer than nodes where the total is exact.
        free = runs * max(one.nodes - 1, 1)
        # Whole numbers add a little to what a noise of this size has.
        assert square / one.variance == pytest.approx(1, abs=0.03 + 4 * math.sqrt(2 / free)), one.title
        assert one.error == pytest.approx(math.sqrt(2 * one.variance / math.pi))


def mean_square(spine: tt.Spine, leaves: list[NDArray[np.int64]], error: NDArray[np.int64], table: Depths) -> float:
    cell = np.zeros(len(error), np.int64)
    for tree, depth, own in zip(spine.trees, table, leaves, strict=True):
        if depth:
            cell = cell * tree.sizes[depth - 1] + tree.ancestors(depth - 1)[own]
    return float((np.bincount(cell, error) ** 2).mean())


def test_errors_of_a_table_are_over_all_its_public_cells() -> None:
    spine = spines()["two ends"]
    leaves, error = [np.array([0, 1, 6]), np.array([0, 0, 5])], np.array([3, -3, 4])
    assert mean_error(spine, leaves, error, (1, 0)) == 4 / 4
    assert mean_error(spine, leaves, error, (2, 0)) == 10 / 24
    assert mean_error(spine, leaves, error, (1, 2)) == 4 / 24


def test_levels_that_divide_nothing_have_the_errors_of_those_above() -> None:
    codes = [f"{a}{a}{b}" for a in "AB" for b in "123"]
    place = tt.Hierarchy.from_prefixes(codes, widths=[1, 2], levels=["state", "copy", "town"])
    spine = tt.Spine(["place.state", "sex", "place.copy", "place.town"], {"place": place, "sex": SEXES})
    for margins in ("none", "each"):
        plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), LOSS, margins=margins)
        one, other = expected_errors(plan, [(1, 1), (2, 1)])
        assert one.variance == pytest.approx(other.variance)


def test_a_margin_makes_sums_across_the_spine_far_better() -> None:
    spine, unit = tt.Spine.origin_first(PLACES, PLACES), tt.Unit("trip", neighbours="replace")
    without, with_it = (
        expected_errors(tt.Plan(spine, unit, LOSS, margins=margins), [(0, 2), (2, 2)]) for margins in ("none", "each")
    )
    assert without[0].error > 3 * with_it[0].error
    assert without[1].error == pytest.approx(with_it[1].error, rel=0.2)


def test_what_measures_nothing_has_no_error() -> None:
    place = tt.Hierarchy.from_prefixes(["AX"], widths=[1], levels=["state", "town"])
    spine = tt.Spine(["place.state", "place.town"], {"place": place})
    plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), LOSS)
    assert [one.error for one in expected_errors(plan, [(1,), (2,)])] == [0, 0]


def test_too_many_attributes_are_refused_for_all_together_and_not_for_few() -> None:
    trees = {f"a{number}": SEXES for number in range(21)}
    plan = tt.Plan(tt.Spine(list(trees), trees), tt.Unit("trip", neighbours="replace"), LOSS, margins="none")
    assert expected_errors(plan, [(1, 1, *[0] * 19)])[0].error > 0
    with pytest.raises(PlanError, match="too many attributes"):
        expected_errors(plan, [(1,) * 21])


FLAT = {name: tt.Hierarchy.flat([f"{name}{code}" for code in range(6)]) for name in "wxyz"}
CROSSING = tt.Plan(
    tt.Spine(list(FLAT), FLAT), tt.Unit("trip", neighbours="replace"), LOSS, margins=[*FLAT, "x * z", "y * z"]
)


def crossing_errors(runs: int = 3) -> float:
    """The mean absolute error of the released counts of the margin that is not kept."""
    rng, spine = np.random.default_rng(3), CROSSING.spine
    first = rng.choice(6, 200_000, p=rng.dirichlet(np.ones(6)))
    leaves, true = np.unique(
        [(first * step + rng.choice(4, 200_000)) % 6 for step in (1, 2, 3, 5)], axis=1, return_counts=True
    )
    counts = Counts.from_leaves(spine, list(leaves), true)
    errors = []
    for run in range(runs):
        released = run_plan(CROSSING, counts, Key(bytes([run]) * 32), {})
        every = [np.concatenate(pair) for pair in zip(leaves, released.nodes.astype(np.int64), strict=True)]
        errors.append(mean_error(spine, every, np.concatenate([-true, released.count]), (0, 0, 1, 1)))
    return float(np.mean(errors))


def test_a_margin_that_is_not_kept_does_not_have_the_error_of_its_own_measurement() -> None:
    (one,) = margins_not_kept(CROSSING)
    (expected,) = expected_errors(CROSSING, [(0, 0, 1, 1)])
    assert one.name == "margin y * z" and one.most == expected.error > 2 * one.least
    assert one.least == pytest.approx(CROSSING.margin_parts[-1].deviation * math.sqrt(2 / math.pi))
    assert one.margin == CROSSING.accuracy(0.95).margins[-1].margin
    assert one.least / 2 < crossing_errors() < 2 * one.most
    for said in ("margin y * z will not be kept", f"± {one.margin:,}", f"{one.most:,.3g}"):
        assert said in str(one)


def test_margins_that_are_kept_are_not_told_of() -> None:
    assert margins_not_kept(tt.Plan(CROSSING.spine, CROSSING.unit, LOSS)) == []
    assert margins_not_kept(tt.Plan(CROSSING.spine, CROSSING.unit, LOSS, margins=["x * z"])) == []
