"""Least squares on measured trees, against a dense solve of the same normal equations."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop.release.measurements import measured_tree
from treetop.repair.least_squares import MeasuredLevel, least_squares

Reals = NDArray[np.float64]


def dense(levels: list[MeasuredLevel]) -> tuple[list[Reals], list[Reals]]:
    """Solve for all nodes without children at once, each measurement a row; return values and variances by level."""
    leaf_of: list[list[set[int]]] = [[set() for _ in range(len(level))] for level in levels]
    leaves = 0
    for depth in range(len(levels) - 1, -1, -1):
        below = levels[depth + 1] if depth + 1 < len(levels) else None
        for node in range(len(levels[depth])):
            children = [] if below is None else np.flatnonzero(below.parent == node).tolist()
            if children:
                leaf_of[depth][node] = set().union(*(leaf_of[depth + 1][child] for child in children))
            else:
                leaf_of[depth][node] = {leaves}
                leaves += 1
    every = [(depth, node) for depth, level in enumerate(levels) for node in range(len(level))]
    rows = np.zeros((len(every), leaves))
    for row, (depth, node) in enumerate(every):
        rows[row, list(leaf_of[depth][node])] = 1
    value = np.array([levels[depth].value[node] for depth, node in every])
    weight = np.array([1 / max(levels[depth].variance[node], 1e-6) for depth, node in every])
    covariance = np.linalg.inv(rows.T @ (weight[:, None] * rows))
    solved = covariance @ (rows.T @ (weight * value))
    spread = np.einsum("ij,jk,ik->i", rows, covariance, rows)
    estimates = rows @ solved
    bounds = np.cumsum([0, *(len(level) for level in levels)])
    cut = [slice(start, stop) for start, stop in pairwise(bounds.tolist())]
    return [estimates[part] for part in cut], [spread[part] for part in cut]


def random_tree(rng: np.random.Generator, exact_root: bool) -> list[MeasuredLevel]:
    """A tree of three levels below the root in which some nodes have no children, and some are only children."""
    levels = [MeasuredLevel(np.zeros(1, np.int64), np.array([50.0]), np.array([0.0 if exact_root else 4.0]))]
    for depth in range(3):
        fanout = rng.integers(0, 4, len(levels[-1]))
        if depth == 0:
            fanout[:] = 3
        parent = np.repeat(np.arange(len(fanout)), fanout)
        only = (fanout == 1)[parent]
        variance = np.where(only, np.inf, rng.choice([1.0, 2.5, 9.0]))
        levels.append(MeasuredLevel(parent, np.where(only, 0.0, rng.normal(10, 9, len(parent))), variance))
    # An only child that nothing was measured of or below is a leaf that the measurements cannot tell from its parent.
    return levels


@pytest.mark.parametrize("exact_root", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_two_passes_give_the_dense_solution_and_its_variances(seed: int, exact_root: bool) -> None:
    levels = random_tree(np.random.default_rng(seed), exact_root)
    values, variances = dense(levels)
    for found, value, variance in zip(least_squares(levels), values, variances, strict=True):
        assert np.allclose(found.value, value, atol=1e-4)
        assert np.allclose(found.variance, variance, atol=1e-4)


PLACE = tt.Hierarchy.from_prefixes(
    ["AXa", "AXb", "AYa", "BXa", "BXb", "CXa", "CYa", "CYb"], widths=[1, 2], levels=["state", "county", "town"]
)
SEX = tt.Hierarchy.flat(["f", "m"])
SPINE = tt.Spine(["place.state", "sex", "place.county", "place.town"], {"place": PLACE, "sex": SEX})


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_measured_tree_has_every_measurement_under_its_parent(neighbours: str) -> None:
    unit = tt.Unit("trip", neighbours=neighbours)  # type: ignore[arg-type]
    plan = tt.Plan(SPINE, unit, tt.Loss(rho=0.2), margins="none")
    rng = np.random.default_rng(1)
    codes = np.array(PLACE.codes[-1].to_pylist())
    table = pa.table({"place": rng.choice(codes, 90), "sex": rng.choice(["f", "m"], 90)})
    release = tt.make_release(plan, table, tt.RunOptions(testing_key=bytes(32), keep_measurements=True))
    measurements = release.measurements
    assert measurements.complete
    root = release.total if measurements.total is None else measurements.total
    tree = measured_tree(measurements, root)
    for index, (level, above) in enumerate(zip(tree[1:], tree, strict=False), start=1):
        kept = measurements.levels[index - 1]
        assert kept is not None
        assert np.array_equal(level.value[level.measured], kept.value)
        assert np.array_equal(level.nodes[:, level.measured], kept.nodes)
        (part,) = SPINE.levels[index - 1].parts
        attribute, depth = part.attribute, part.depth
        for node, parent in zip(level.nodes.T, above.nodes[:, level.parent].T, strict=True):
            others = [a for a in range(2) if a != attribute]
            assert (node[others] == parent[others]).all()
            if depth > 0:
                ancestor = SPINE.trees[attribute].ancestors(depth - 1, depth)[node[attribute]]
                assert ancestor == parent[attribute]
    found = least_squares(tree)
    for estimate, level, above_estimate in zip(found[1:], tree[1:], found, strict=False):
        sums = np.bincount(level.parent, estimate.value, minlength=len(above_estimate.value))
        there = np.bincount(level.parent, minlength=len(sums)) > 0
        assert np.allclose(sums[there], above_estimate.value[there])
