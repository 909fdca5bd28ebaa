"""Whole numbers from all measurements: consistent, non-negative, and of lower error than the descent's own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treetop as tt
from experiments.kit.paper_tables import paper_table, with_spine
from tests.everyday import TRIP
from treetop import Counts
from treetop.counts.counts import pack
from treetop.measure.descent import descent_of, run_descent
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key, Law
from treetop.release.errors import errors_of
from treetop.release.estimates import _whole_numbers as prior
from treetop.release.estimates._whole_numbers import lower_error, share_by_probability
from treetop.release.measurements import Measurements
from treetop.release.tree import ReleasedTree
from treetop.repair.sharing import share_by_least_squares


def measured(plan: tt.Plan, counts: Counts, run: int) -> tuple[ReleasedTree, Measurements]:
    found = run_descent(descent_of(plan), counts, Key(run.to_bytes(32, "big")), every=1 << 62)
    tree = ReleasedTree(plan.spine, found.leaves.nodes, found.leaves.count)
    assert found.evidence is not None
    return tree, Measurements.of(tree, found.evidence)


@pytest.mark.parametrize("tree", ["binary", "random"])
def test_errors_are_lower_than_those_of_the_descent_at_every_level_but_the_first(tree: str) -> None:
    spine, truth = with_spine(paper_table(tree, "complete"))  # type: ignore[arg-type]
    plan = tt.Plan(spine, TRIP, tt.Loss(epsilon=1, delta=1e-8), margins="none")
    plain, better = [], []
    for run in range(3):
        released, measurements = measured(plan, truth, run)
        nodes, count = lower_error(measurements, truth.total)
        assert count.sum() == truth.total
        assert (count > 0).all()
        plain.append(
            [level.mean_of_all for level in errors_of(spine, pack(spine, released.nodes), released.count, truth)]
        )
        better.append([level.mean_of_all for level in errors_of(spine, pack(spine, nodes), count, truth)])
    # With three runs the first levels, of two to ten nodes, are too few to tell.
    assert (np.mean(better, axis=0)[3:] < np.mean(plain, axis=0)[3:]).all()


def test_the_same_measurements_give_the_same_answer() -> None:
    spine, truth = with_spine(paper_table("random", "sparse"))
    _, measurements = measured(tt.Plan(spine, TRIP, tt.Loss(epsilon=1, delta=1e-8), margins="none"), truth, 1)
    one, other = lower_error(measurements, truth.total), lower_error(measurements, truth.total)
    assert np.array_equal(one[0], other[0])
    assert np.array_equal(one[1], other[1])


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.floats(-50, 100), st.floats(0.5, 40), st.booleans()), min_size=2, max_size=9),
    st.integers(0, 200),
)
def test_a_count_is_shared_among_open_children_only(children: list[tuple[float, float, bool]], count: int) -> None:
    value, variance, open_ = (np.array(column) for column in zip(*children, strict=True))
    open_[0] = True
    out = np.zeros(len(children), np.int64)
    share_by_least_squares(np.array([0, len(children)]), value, variance, open_, np.array([count]), 7, out)
    assert out.sum() == count
    assert (out >= 0).all()
    assert (out[~open_] == 0).all()


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(9)), DiscreteLaplace(Fraction(2))])
def test_units_go_where_they_are_likeliest_to_be(law: Law) -> None:
    rng = np.random.default_rng(3)
    true = rng.choice([0, 0, 0, 0, 1, 2, 5, 20], 4_000)
    noise = rng.choice(
        np.arange(-40, 41),
        4_000,
        p=[law.mass(k) for k in range(-40, 41)] / np.sum([law.mass(k) for k in range(-40, 41)]),
    )
    learned = prior.learn(law, true + noise, np.zeros(len(true), np.int64))
    first = np.arange(0, len(true) + 1, 8)
    count = np.add.reduceat(true, first[:-1])
    out = np.zeros(len(true), np.int64)
    kind = np.zeros(len(true), np.int64)
    share_by_probability(first, true + noise, kind, learned, count, 5, out)
    assert (out >= 0).all()
    assert np.array_equal(np.add.reduceat(out, first[:-1]), count)
    # No other rule of the family, such as the nearest non-negative numbers, comes as near in absolute error.
    from treetop.repair import chebyshev, euclidean

    for repair in (chebyshev, euclidean):
        other = np.concatenate(
            [
                repair((true + noise)[a:b], int(c), "ascending", 1)
                for a, b, c in zip(first, first[1:], count, strict=False)
            ]
        )
        assert np.abs(out - true).sum() < np.abs(other - true).sum()


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(2**66)), DiscreteLaplace(Fraction(2**33))])
def test_counts_near_the_largest_add_up_under_very_wide_noise(law: Law) -> None:
    rng = np.random.default_rng(2)
    noisy = 2**44 + rng.normal(0, law.standard_deviation, 200).astype(np.int64)
    learned = prior.learn(law, noisy, np.zeros(200, np.int64))
    out = np.zeros(200, np.int64)
    share_by_probability(
        np.array([0, 200]), noisy, np.zeros(200, np.int64), learned, np.array([200 * 2**44 + 17]), 5, out
    )
    assert out.sum() == 200 * 2**44 + 17
    assert np.abs(out - noisy).max() < law.standard_deviation


def test_classes_that_are_too_small_are_joined() -> None:
    kinds = prior.classes(
        np.concatenate([np.full(1_500, 0.1), np.full(10, 3.0), np.full(1_200, 50.0), np.full(5, 900.0)])
    )
    assert np.bincount(kinds).min() >= prior.ENOUGH
    assert kinds[0] != kinds[-1]


def test_what_is_learned_about_true_counts_is_how_they_are_spread() -> None:
    law = DiscreteGaussian(Fraction(4))
    rng = np.random.default_rng(1)
    true = np.where(rng.random(50_000) < 0.8, 0, 12)
    masses = np.array([law.mass(k) for k in range(-25, 26)])
    measured_ = true + rng.choice(np.arange(-25, 26), len(true), p=masses / masses.sum())
    learned = prior.learn(law, measured_, np.zeros(len(true), np.int64))
    even = prior.STEPS // 2  # as likely as not
    units = learned.units[0, even]
    assert units[(0 - learned.lowest) // learned.cell] == 0
    assert abs(int(units[(12 - learned.lowest) // learned.cell]) - 12) <= 1
