"""The hierarchical mechanism against least squares in full, with every node and every measurement written out."""

from __future__ import annotations

import random
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop.addons.lab.mechanisms.baselines import Hay, PerLevel, fitted_leaves
from treetop.addons.lab.mechanisms.compared import PublicTree

from . import tables
from .tables import ANYONE, KEY, LOSS, TRIP

Reals = NDArray[np.float64]


def sums(tree: PublicTree) -> list[Reals]:
    """For each level, the matrix that sums the leaves under its nodes."""
    matrices = [np.eye(len(tree.keys[0]))]
    for first in tree.first[::-1]:
        matrices.append(np.stack([matrices[-1][a:b].sum(axis=0) for a, b in pairwise(first)]))
    return matrices[::-1]


def solved_in_full(tree: PublicTree, measured: list[NDArray[np.int64] | None], variances: list[float]) -> Reals:
    """Minimise the weighted squares over the leaves; a measurement of variance zero is a constraint."""
    rows, values, fixed, known = [], [], [], []
    for matrix, x, variance in zip(sums(tree), measured, variances, strict=True):
        if x is None:
            continue
        if variance == 0:
            fixed.append(matrix)
            known.append(x.astype(float))
        else:
            rows.append(matrix / variance**0.5)
            values.append(x / variance**0.5)
    leaves = len(tree.keys[0])
    a = np.concatenate(rows) if rows else np.zeros((0, leaves))
    c = np.concatenate(fixed) if fixed else np.zeros((0, leaves))
    right = np.concatenate([a.T @ np.concatenate(values) if values else np.zeros(leaves), *known])
    stationary = np.block([[a.T @ a, c.T], [c, np.zeros((len(c), len(c)))]])
    found: Reals = np.linalg.lstsq(stationary, right, rcond=1e-12)[0]
    return found[:leaves]


@pytest.mark.parametrize("seed", range(40))
def test_two_passes_are_the_least_squares_of_all_measurements(seed: int) -> None:
    rng = random.Random(seed)
    spine = tables.random_spine(rng)
    unit = rng.choice([TRIP, ANYONE, tt.Unit("person", 2, "replace")])
    plain = Hay(spine, unit, LOSS)
    measured = [level.name for level in plain.levels if level.is_measured]
    split: Any = {name: rng.randint(1, 20) for name in measured} if measured else "uniform"
    mechanism = Hay(spine, unit, LOSS, split=split)
    counts = tables.table(spine, 15, seed)
    values = mechanism.measure(counts, KEY)
    variances = [
        level.law.standard_deviation**2 if level.is_measured else (0.0 if level.index == 0 else inf)
        for level in mechanism.levels
    ]
    expected = solved_in_full(mechanism.tree, values, variances)
    assert np.allclose(tables.leaves(mechanism.run(counts, KEY)).astype(float), expected, atol=1e-6)


def test_equal_noise_and_fan_out_give_the_weights_of_the_paper() -> None:
    # Hay et al., Theorem 3: z[v] = (f^i − f^(i−1))/(f^i − 1)·m[v] + (f^(i−1) − 1)/(f^i − 1)·Σ z[children], at height i.
    first = [np.array([0, 2]), np.array([0, 2, 4])]
    measured: list[NDArray[np.int64] | None] = [np.array([10]), np.array([4, 8]), np.array([1, 2, 3, 4])]
    z1 = [2 / 3 * 4 + 1 / 3 * 3, 2 / 3 * 8 + 1 / 3 * 7]
    root = 4 / 7 * 10 + 3 / 7 * sum(z1)
    middle = [z + (root - sum(z1)) / 2 for z in z1]
    leaves = [1 + (middle[0] - 3) / 2, 2 + (middle[0] - 3) / 2, 3 + (middle[1] - 7) / 2, 4 + (middle[1] - 7) / 2]
    assert np.allclose(fitted_leaves(first, measured, [5.0, 5.0, 5.0]), leaves)


def test_it_is_more_accurate_than_the_levels_it_is_made_of() -> None:
    spine = tables.pairs()
    counts = tables.table(spine, 60)
    exact = tables.truth(spine, counts)
    squares = {}
    for kind in (PerLevel, Hay):
        runs = [tables.leaves(kind(spine, TRIP, LOSS).run(counts, KEY.derive("run", i))) - exact for i in range(100)]
        squares[kind] = float(np.mean(np.square(np.stack(runs).astype(float))))
    assert squares[Hay] < 0.95 * squares[PerLevel]


def test_measured_levels_do_not_add_up_and_repaired_ones_do() -> None:
    spine = tables.pairs()
    counts = tables.table(spine, 60)
    raw, repaired = (kind(spine, ANYONE, LOSS).run(counts, KEY) for kind in (PerLevel, Hay))
    divided = sum(int((np.diff(first) > 0).sum()) for first in PerLevel(spine, ANYONE, LOSS).tree.first)
    assert 0.8 * divided < raw.violations() <= divided
    assert repaired.violations() == 0
    assert repaired.value.dtype == np.float64 and (repaired.value < 0).any()


def test_the_levels_of_the_per_level_release_are_its_measurements() -> None:
    spine = tables.pairs()
    mechanism = PerLevel(spine, TRIP, LOSS)
    counts = tables.table(spine, 60)
    estimate = mechanism.run(counts, KEY)
    for index, x in enumerate(mechanism.measure(counts, KEY)):
        assert x is not None
        assert np.array_equal(tables.at(estimate, index).value, x[x != 0])
    assert np.array_equal(tables.at(estimate, len(spine.levels)).keys[0], estimate.keys[0])


def test_the_whole_public_tree_is_written_out_in_spine_order() -> None:
    for seed in range(20):
        spine = tables.random_spine(random.Random(seed))
        tree = PublicTree.of(spine)
        assert [int(first[-1]) for first in tree.first] == [level.nodes for level in spine.levels]
        assert tables.dense(spine, tree.keys, np.ones(spine.leaves)).all()
        assert (np.diff(tree.keys[0].astype(object)) > 0).all()
