"""Errors of a release against the truth, compared with a plain count of both."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop import Counts
from treetop.addons.lab.plots import plot_errors
from treetop.counts.counts import layout, pack
from treetop.counts.reading import read_counts
from treetop.release.errors import LevelErrors, Values, errors_of, measure_errors

WIDE = [f"{i:05d}" for i in range(3000)]


def spine_of(attributes: int) -> tt.Spine:
    """With six attributes of 3,000 codes the path of a leaf takes two words."""
    tree = tt.Hierarchy.from_prefixes(WIDE, widths=[2], levels=["group", "code"])
    names = [f"a{i}" for i in range(attributes)]
    splits = [f"{name}.{level}" for level in ("group", "code") for name in names]
    return tt.Spine(splits, dict.fromkeys(names, tree))


def table_of(spine: tt.Spine, rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    codes = np.array(WIDE)
    return pa.table({name: codes[rng.zipf(1.5, rows) % 60] for name in spine.attributes})


Node = tuple[int, ...]


def sums(spine: tt.Spine, leaves: dict[Node, float], index: int) -> dict[Node, float]:
    """The counts of a level from leaf numbers, by the public trees and not by packed paths."""
    above = [
        tree.ancestors(depth - 1) if depth else np.zeros(tree.sizes[-1], np.int64)
        for tree, depth in zip(spine.trees, spine.depths(index), strict=True)
    ]
    found: dict[Node, float] = {}
    for leaf, count in leaves.items():
        node = tuple(int(tree[code]) for tree, code in zip(above, leaf, strict=True))
        found[node] = found.get(node, 0) + count
    return found


def by_hand(spine: tt.Spine, released: dict[Node, float], true: dict[Node, float], index: int) -> dict[str, float]:
    ours, theirs = sums(spine, released, index), sums(spine, true, index)
    nodes = {*ours, *theirs}
    errors = [abs(ours.get(node, 0) - theirs.get(node, 0)) for node in nodes]
    shown = [node for node in nodes if ours.get(node, 0) != 0 or theirs.get(node, 0) > 0]
    found = {node: count for node, count in ours.items() if count > 0}
    there = {node: count for node, count in theirs.items() if count > 0}
    invented = {node: count for node, count in found.items() if node not in there}
    lost = {node: count for node, count in there.items() if node not in found}
    public = 1 if index == 0 else spine.levels[index - 1].nodes
    return {
        "level": index,
        "nodes": public,
        "true_nodes": len(there),
        "released_nodes": len(found),
        "negative": sum(count < 0 for count in ours.values()),
        "fractional": sum(count % 1 != 0 for count in ours.values()),
        "largest": max(errors, default=0),
        "mean": sum(errors) / max(len(shown), 1),
        "mean_of_all": sum(errors) / public,
        "root_mean_square": math.sqrt(sum(error**2 for error in errors) / public),
        "false_discoveries": len(invented) / max(len(found), 1),
        "false_mass": sum(invented.values()) / max(sum(found.values()), 1e-300),
        "false_negatives": len(lost) / max(len(there), 1),
        "lost_mass": sum(lost.values()) / max(sum(there.values()), 1),
    }


def same(row: LevelErrors, expected: dict[str, float]) -> bool:
    return {name: getattr(row, name) for name in expected} == pytest.approx(expected)


def leaves_of(nodes: NDArray[np.integer], values: Values) -> dict[Node, float]:
    return dict(zip(map(tuple, nodes.T.tolist()), values.tolist(), strict=True))


@pytest.mark.parametrize("attributes", [1, 2, 6])
def test_errors_are_those_of_a_plain_count(attributes: int) -> None:
    spine = spine_of(attributes)
    truth = table_of(spine, 500, 1)
    plan = tt.Plan(spine, tt.Unit("row", neighbours="replace"), tt.Loss(rho=5))
    release = tt.make_release(plan, truth)
    rows = measure_errors(release, read_counts(truth, spine))
    assert (rows[0].name, rows[0].largest) == ("total", 0)
    codes = [truth[name].to_pylist() for name in spine.attributes]
    numbers = {code: i for i, code in enumerate(WIDE)}
    true = Counter(tuple(numbers[code] for code in row) for row in zip(*codes, strict=True))
    for row in rows:
        assert same(row, by_hand(spine, leaves_of(release.nodes, release.count), dict(true), row.level)), row.name
        assert type(row.largest) is int


@pytest.mark.parametrize("attributes", [2, 6])
@pytest.mark.parametrize("kind", ["whole", "fractions"])
def test_an_estimate_may_be_negative_fractional_or_an_explicit_zero(attributes: int, kind: str) -> None:
    spine, rng = spine_of(attributes), np.random.default_rng(5)
    assert layout(spine)[-1].word == (1 if attributes == 6 else 0)
    leaves = np.unique(rng.integers(0, 40, (attributes, 400)), axis=1)
    ours, theirs = leaves[:, ::2], leaves[:, rng.random(leaves.shape[1]) < 0.6]
    true = rng.integers(1, 200, (theirs.shape[1],), np.int64)
    noisy = rng.normal(0, 3, (ours.shape[1],))
    noisy[:5] = 0
    values = np.rint(noisy).astype(np.int64) if kind == "whole" else noisy
    expected = [
        by_hand(spine, leaves_of(ours, values), leaves_of(theirs, true), index)
        for index in range(len(spine.levels) + 1)
    ]
    rows = errors_of(spine, pack(spine, ours), values, Counts.from_leaves(spine, list(theirs), true))
    assert all(same(row, plain) for row, plain in zip(rows, expected, strict=True))
    assert rows[-1].negative > 50
    assert (rows[-1].fractional > 50) == (kind == "fractions")


def test_what_is_invented_and_what_is_lost_is_told_by_number_and_by_count() -> None:
    spine = tt.Spine(["code"], {"code": tt.Hierarchy.flat(list("abcde"), level="code")})
    truth = Counts.from_leaves(spine, [np.array([0, 1, 2])], np.array([70, 20, 10]))
    (keys,) = pack(spine, [np.array([0, 1, 3, 4])])
    leaf = errors_of(spine, [keys], np.array([60, -3, 15, 25]), truth)[-1]
    assert (leaf.released_nodes, leaf.true_nodes, leaf.negative) == (3, 3, 1)
    assert (leaf.false_discoveries, leaf.false_mass) == (2 / 3, 0.4)
    assert (leaf.false_negatives, leaf.lost_mass) == (2 / 3, 0.3)


def test_an_estimate_that_does_not_fit_is_refused() -> None:
    spine = spine_of(1)
    truth = Counts.from_leaves(spine, [np.array([1])])
    (key,) = pack(spine, [np.array([1, 2])])
    for keys, values in (([key], np.ones(3)), ([key, key], np.ones(2)), ([key], np.array([1.0, np.nan]))):
        with pytest.raises(ValueError, match="as long as the values|must be finite"):
            errors_of(spine, keys, values, truth)


def _sizes(row: LevelErrors) -> list[int]:
    return [bias.nodes for bias in row.biases]


def test_biases_of_all_sizes_add_up_to_the_difference_of_the_totals() -> None:
    spine = spine_of(2)
    truth = table_of(spine, 2000, 2)
    plan = tt.Plan(spine, tt.Unit("row", neighbours="add-remove"), tt.Loss(rho=0.5))
    release = tt.make_release(plan, truth)
    for row in measure_errors(release, read_counts(truth, spine)):
        assert sum(_sizes(row)) == row.nodes
        off = sum((bias.bias or 0) * bias.nodes for bias in row.biases)
        assert off == pytest.approx(release.total - 2000)


def test_the_truth_itself_has_no_error_and_nothing_against_nothing_neither() -> None:
    spine = spine_of(1)
    plan = tt.Plan(spine, tt.Unit("row", neighbours="replace"), tt.Loss(rho=1))
    release = tt.make_release(plan, table_of(spine, 300, 3))
    for row in measure_errors(release, read_counts(release.records(), spine)):
        assert (row.largest, row.mean, row.false_discoveries, row.false_negatives) == (0, 0, 0, 0)
    empty = tt.make_release(plan, table_of(spine, 0, 3))
    for row in measure_errors(empty, read_counts(table_of(spine, 0, 3), spine)):
        assert (row.largest, row.mean) == (0, 0)


def test_a_plot_is_drawn_to_the_file_that_is_named(tmp_path: Path) -> None:
    spine = spine_of(2)
    truth = table_of(spine, 300, 4)
    release = tt.make_release(tt.Plan(spine, tt.Unit("row", neighbours="replace"), tt.Loss(rho=1)), truth)
    plot_errors(measure_errors(release, read_counts(truth, spine)), tmp_path / "errors.png", "Rows")
    assert (tmp_path / "errors.png").read_bytes().startswith(b"\x89PNG")
