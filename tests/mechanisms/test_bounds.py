"""Proposition 1: what the baselines may be off by, level by level; against the tree, runs, and in the summary."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import treetop as tt
from tests.mechanisms.tables import LOSS, TRIP, pairs, places
from treetop import Counts
from treetop.addons.lab.compare import compare, settings
from treetop.addons.lab.comparison import Case
from treetop.addons.lab.mechanisms.compared import PublicTree, leaves_under, sums_of_noise, sums_of_survivors
from treetop.addons.lab.mechanisms.registry import MECHANISMS
from treetop.noise import DiscreteGaussian, Key


@pytest.mark.parametrize("spine", [pairs(), tt.Spine(["place.region", "place.town"], {"place": places(7)})])
def test_the_most_leaves_under_a_node_are_those_of_the_written_tree(spine: tt.Spine) -> None:
    tree = PublicTree.of(spine)
    under = np.ones(len(tree.keys[0]), np.int64)
    found = [1]
    for first in reversed(tree.first):
        under = np.add.reduceat(under, first[:-1])
        found.append(int(under.max()))
    assert leaves_under(spine) == found[::-1]


def test_sums_are_off_by_the_quantile_of_the_sum() -> None:
    """One node of k leaves: noise of variance kσ², so the bound is within a little of the normal quantile."""
    spine = tt.Spine(["x"], {"x": tt.Hierarchy.flat([f"{i:03d}" for i in range(100)])})
    total, _ = sums_of_noise(spine, DiscreteGaussian(Fraction(400)), Fraction(5, 100))
    assert total == pytest.approx(1.96 * 10 * 20, rel=0.01)


def counts(spine: tt.Spine) -> Counts:
    rng = np.random.default_rng(4)
    leaves = [rng.integers(0, tree.sizes[-1], 40) for tree in spine.trees]
    return Counts.from_leaves(spine, leaves, rng.integers(1, 60, 40))


def test_runs_keep_within_their_bounds_and_the_summary_shows_them() -> None:
    spine = pairs()
    chosen = settings(["gauss", "bottom-up", "sh", "tda-l2"], [1.0], 1e-8)
    found = compare(Case(spine, TRIP, counts(spine)), chosen, 30, key=Key(bytes(32)))
    for setting, trials in found.by_setting().items():
        levels = [(trial.errors[at].largest, bound) for trial in trials for at, bound in enumerate(trial.bounds)]
        assert all(bound is not None for _, bound in levels), setting.mechanism
        beyond = sum(error > bound for error, bound in levels if bound is not None)
        assert beyond <= 0.1 * len(levels), setting.mechanism
    written = found.summary("A table")
    assert "| largest error, of at most | nodes | gauss | bottom-up | sh | tda-l2 |" in written
    (trial, *_) = found.by_setting()[chosen[0]]
    assert f" of {trial.bounds[1]:,} |" in written
    assert found.table().to_pylist()[1]["bound"] == trial.bounds[1]


def test_a_bound_that_were_half_as_large_would_be_broken() -> None:
    spine = pairs()
    chosen = settings(["gauss"], [1.0], 1e-8)
    found = compare(Case(spine, TRIP, counts(spine)), chosen, 60, key=Key(bytes(32)))
    beyond = [trial.errors[0].largest > (trial.bounds[0] or 0) / 2 for trial in found.trials]
    assert np.mean(beyond) > 0.2


def test_noise_cancels_in_sums_and_what_is_dropped_does_not() -> None:
    """Equation 4 grows with the root of the leaves under a node, equation 5 with their number, up to the records."""
    codes = [f"{i:04d}" for i in range(10_000)]
    spine = tt.Spine(["x.a", "x.b"], {"x": tt.Hierarchy.from_prefixes(codes, widths=[2], levels=["a", "b"])})
    gauss, histogram = (MECHANISMS[name](spine, TRIP, LOSS) for name in ("gauss", "sh"))
    flat = gauss.bounds(Fraction(5, 100), 10**6)  # type: ignore[attr-defined]
    cut = histogram.bounds(Fraction(5, 100), 10**6)  # type: ignore[attr-defined]
    assert flat[1] / flat[2] == pytest.approx(10, rel=0.3) and cut[1] == 100 * cut[2]
    law = histogram.levels[-1].law
    few = sums_of_survivors(spine, law, 37, 10, Fraction(5, 100))
    assert few[0] == few[1] == 10 * few[2]
    assert sums_of_survivors(spine, law, 37, 0, Fraction(5, 100)) == (0, 0, 0)
