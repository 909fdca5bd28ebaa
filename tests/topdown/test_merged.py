"""Merged steps in the engine: several attributes refined at once, with margins and without, whoever runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import treetop as tt
from tests.topdown.test_margins import KEY, PLACES, plan, run, table
from treetop.counts.counts import Counts
from treetop.errors import PlanError
from treetop.measure.descent import descent_of, run_descent
from treetop.repair import REPAIRS, chebyshev

TREES = {"o": PLACES, "d": PLACES, "sex": tt.Hierarchy.flat(["f", "m"]), "one": tt.Hierarchy.flat(["x"])}
ORDERS = [
    ["d.r * o.r", "d.d * o.d", "d.t * o.t"],
    ["d.r", "o.r * d.d", "o.d", "o.t * d.t"],
    ["d.r * o.r * sex", "d.t * o.d"],
    ["o.r * one", "d.r * o.d * sex", "o.t * d.t"],
    ["sex", "o.d * d.d", "o.t", "d.t"],
]


def spine_and_counts(order: list[str]) -> tuple[tt.Spine, Counts]:
    named = [one.strip().split(".")[0] for step in order for one in step.split("*")]
    spine = tt.Spine(order, {name: TREES[name] for name in TREES if name in named})
    return spine, Counts.from_leaves(spine, leaves_of(spine))


def leaves_of(spine: tt.Spine, size: int = 2_000) -> list[Any]:
    rng = np.random.default_rng(1)
    return [rng.choice(tree.sizes[-1], size, p=rng.dirichlet(np.full(tree.sizes[-1], 0.4))) for tree in spine.trees]


def own_repair(x: Any, count: int, order: Any, seed: int) -> Any:
    return chebyshev(x, count, order, seed=seed)


@pytest.mark.parametrize("order", ORDERS, ids=" > ".join)
@pytest.mark.parametrize("how", [
    {}, {"prefer": "fewer-lost"}, {"repair": "euclidean"}, {"unit": tt.Unit("trip", neighbours="add-remove")},
    {"margins": ["o.d"]}, {"margins": ["d.t"]}, {"margins": "none"},
])  # fmt: skip
def test_leaves_add_up_to_every_margin(order: list[str], how: Mapping[str, Any]) -> None:
    spine, counts = spine_and_counts(order)
    found = run(plan(spine, **how), counts)
    assert found.leaves.count.min() > 0
    for depths, kept in found.margins.counts.items() if found.margins is not None else ():
        assert np.array_equal(table(spine, found, depths), kept)


@pytest.mark.parametrize("order", ORDERS, ids=" > ".join)
@pytest.mark.parametrize("margins", ["each", "none", ["o.d"]])
def test_without_noise_a_release_is_the_truth(order: list[str], margins: Any) -> None:
    spine, counts = spine_and_counts(order)
    found = run(plan(spine, 10**9, margins=margins), counts)
    true = np.zeros(tuple(tree.sizes[-1] for tree in spine.trees), np.int64)
    np.add.at(true, tuple(leaves_of(spine)), 1)
    assert np.array_equal(table(spine, found, tuple(len(tree.levels) for tree in spine.trees)), true)


@pytest.mark.parametrize("order", ORDERS, ids=" > ".join)
@pytest.mark.parametrize("how", [{}, {"resolve": {"fdr": 0.1}}, {"resolve": {"sigmas": 2}}, {"margins": ["o.d"]}])
def test_a_level_is_the_same_however_it_is_cut(
    order: list[str], how: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    spine, counts = spine_and_counts(order)
    planned = plan(spine, **how)
    whole = run(planned, counts, every=1 << 20)
    monkeypatch.setattr("treetop.measure.blocks.CELLS", 1)
    cut = run(planned, counts, threads=3, every=1 << 20, chunk=7)
    assert np.array_equal(whole.leaves.nodes, cut.leaves.nodes) and np.array_equal(whole.left.count, cut.left.count)
    assert np.array_equal(whole.leaves.count, cut.leaves.count)
    assert whole.evidence is not None and cut.evidence is not None
    for one, other in zip(whole.evidence.levels, cut.evidence.levels, strict=True):
        for name in ("measured", "highest", "slots"):
            assert np.array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("resolve", [{"fdr": 0.1}, {"sigmas": 3}])
def test_what_is_unresolved_is_what_the_margins_have_beyond_the_leaves(resolve: dict[str, float]) -> None:
    spine, counts = spine_and_counts(ORDERS[0])
    found = run(plan(spine, resolve=resolve), counts, every=0)
    assert found.margins is not None and len(found.left) > 0
    total = found.leaves.count.sum() + found.left.count.sum()
    for depths, kept in found.margins.counts.items():
        missing = kept - table(spine, found, depths)
        assert missing.min() >= 0 and kept.sum() == total


@pytest.mark.parametrize("margins", ["each", "none"])
def test_what_is_measured_of_a_merged_level_is_the_truth_and_its_noise(margins: str) -> None:
    spine, counts = spine_and_counts(ORDERS[0])
    planned = plan(spine, margins=margins)
    true = table(spine, run(plan(spine, 10**9, margins="none"), counts), (1, 1)).ravel()
    off = []
    for number in range(40):
        found = run_descent(descent_of(planned), counts, KEY.derive("run", number), every=1 << 20)
        assert found.evidence is not None
        off.append(found.evidence.levels[0].slots.reshape(2, 2).T.ravel() - true)  # the step names d before o
    spread, deviation = np.concatenate(off), planned.levels[1].deviation
    assert abs(spread.mean()) < 5 * deviation / len(spread) ** 0.5
    assert 0.8 < spread.std() / deviation < 1.25


def test_a_repair_of_ones_own_is_used_under_margins() -> None:
    spine, counts = spine_and_counts(ORDERS[0])
    own = tt.register_repair("own, merged", ("Repaired by a test.",), own_repair)
    try:
        found, engine = run(plan(spine, repair=own.name), counts), run(plan(spine), counts)
    finally:
        del REPAIRS[own.name]
    assert np.array_equal(found.leaves.nodes, engine.leaves.nodes)
    assert np.array_equal(found.leaves.count, engine.leaves.count)


@pytest.mark.parametrize("order", ORDERS, ids=" > ".join)
@pytest.mark.parametrize("how", [
    {}, {"margins": "each"}, {"margins": "each", "prefer": "lower-error"}, {"prefer": "lower-error"},
    {"resolve": {"fdr": 0.1}}, {"margins": ["o.d"], "prefer": "lower-error"},
])  # fmt: skip
def test_a_release_checks_and_answers(order: list[str], how: dict[str, Any], tmp_path: Any) -> None:
    spine, _ = spine_and_counts(order)
    rng = np.random.default_rng(2)
    columns = {name: rng.choice(tree.codes[-1].to_pylist(), 2_000) for name, tree in spine.attributes.items()}
    planned = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=0.3), **{"margins": "none", **how})
    release = tt.make_release(planned, pa.table(columns), tt.RunOptions(testing_key=b"k" * 32, keep_measurements=True))
    for level in spine.levels:
        assert spine.level(" * ".join(reversed(level.name.split(" * ")))) is level
        rows = release.level(level.name)
        assert rows.num_rows > 0 and pc.all(pc.less_equal(rows["lower"], rows["upper"])).as_py()
    asked = ("o.d", f"d.{spine.trees[1].levels[0]}")
    sums = release.table(asked)
    assert sums.num_rows > 0 and sums.column_names == [*asked, "count", "lower", "upper"]
    release.save(tmp_path / "r")
    assert [one.findings for one in tt.check(tmp_path / "r") if one.findings] == []
    again = tt.Release.load(tmp_path / "r")
    assert again.table().equals(release.table()) and again.spine.splits == spine.splits


def test_a_margin_that_is_kept_nearly_is_refused_beside_a_merged_step() -> None:
    spine, _ = spine_and_counts(["d.r * o.r * sex", "d.d * o.d"])
    with pytest.raises(PlanError, match="refine one attribute after the other"):
        plan(spine, margins=["o.d * sex", "d.d * sex"])


def test_a_margin_of_several_attributes_is_kept_exactly_where_it_crosses_none() -> None:
    spine, counts = spine_and_counts(["d.r * o.r * sex", "d.d * o.d"])
    found = run(plan(spine, margins=["o.d * sex", "d.d"]), counts)
    assert found.margins is not None
    for depths, kept in found.margins.counts.items():
        assert np.array_equal(table(spine, found, depths), kept)
