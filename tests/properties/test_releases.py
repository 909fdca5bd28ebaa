"""What must hold of every release, whatever the tree, the data and the loss."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

import treetop as tt

KEY = bytes(range(32))


@st.composite
def hierarchies(draw: st.DrawFn) -> tt.Hierarchy:
    """Trees of one to three levels with up to four children a node."""
    codes = [""]
    depth = draw(st.integers(1, 3))
    for _ in range(depth):
        codes = [code + "abcd"[i] for code in codes for i in range(draw(st.integers(1, 4)))]
    return tt.Hierarchy.from_prefixes(codes, widths=list(range(1, depth)))


@st.composite
def spines(draw: st.DrawFn) -> tt.Spine:
    """One to three attributes, their levels shuffled together with coarse ones first."""
    trees = draw(st.lists(hierarchies(), min_size=1, max_size=3))
    attributes = {f"x{i}": tree for i, tree in enumerate(trees)}
    waiting = {name: list(tree.levels) for name, tree in attributes.items()}
    order = []
    while waiting:
        name = draw(st.sampled_from(sorted(waiting)))
        order.append(f"{name}.{waiting[name].pop(0)}")
        if not waiting[name]:
            del waiting[name]
    return tt.Spine(order, attributes)


@st.composite
def cases(draw: st.DrawFn) -> tuple[tt.Plan, pa.Table]:
    spine = draw(spines())
    unit = tt.Unit("record", draw(st.integers(1, 3)), draw(st.sampled_from(["replace", "add-remove"])))
    loss = draw(st.sampled_from([tt.Loss(rho=Fraction(1, 20)), tt.Loss(epsilon=1), tt.Loss(epsilon=3, delta=1e-6)]))
    options: Any = {
        "repair": draw(st.sampled_from(["chebyshev", "euclidean"])),
        "order": draw(st.sampled_from(["ascending", "descending"])),
    }
    plan = tt.Plan(spine, unit, loss, **options)
    rows = draw(st.integers(0, 30))
    table = {
        name: pa.array(
            draw(st.lists(st.sampled_from(tree.codes[-1].to_pylist()), min_size=rows, max_size=rows)), pa.string()
        )
        for name, tree in spine.attributes.items()
    }
    table["n"] = pa.array(draw(st.lists(st.integers(0, 100), min_size=rows, max_size=rows)), pa.int64())
    return plan, pa.table(table)


@settings(max_examples=60, deadline=None)
@given(cases())
def test_counts_are_positive_whole_and_agree_at_every_level(case: tuple[tt.Plan, pa.Table]) -> None:
    plan, table = case
    release = plan.release(table, count="n")
    assert release.count.dtype == np.int64
    assert (release.count > 0).all()
    totals = {pc.sum(release.table(level.name)["count"]).as_py() or 0 for level in plan.spine.levels}
    assert totals == {release.total}
    if plan.levels[0].law is None:
        assert release.total == (pc.sum(table["n"]).as_py() or 0)


@settings(max_examples=40, deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(case: tuple[tt.Plan, pa.Table], random: Any) -> None:
    plan, table = case
    order = list(range(table.num_rows))
    random.shuffle(order)
    one = plan.release(table, count="n", testing_key=KEY)
    other = plan.release(table.take(pa.array(order, pa.int64())), count="n", testing_key=KEY, threads=3)
    assert one.table().equals(other.table())


@settings(max_examples=40, deadline=None)
@given(cases())
def test_without_noise_the_data_come_back(case: tuple[tt.Plan, pa.Table]) -> None:
    plan, table = case
    exact = tt.Plan(plan.spine, plan.unit, tt.Loss(rho=10**9), repair=plan.repair, order=plan.order)
    names = list(plan.spine.attributes)
    present = table.filter(pc.greater(table["n"], 0))
    expected = present.group_by(names).aggregate([("n", "sum")]).to_pylist()
    released = exact.release(table, count="n").table().to_pylist()
    assert {tuple(row[name] for name in names): row["count"] for row in released} == {
        tuple(row[name] for name in names): row["n_sum"] for row in expected
    }


@settings(max_examples=30, deadline=None)
@given(spines(), st.integers(1, 4))
def test_the_levels_never_cost_more_than_the_loss(spine: tt.Spine, contributions: int) -> None:
    for loss in (tt.Loss(rho=Fraction(1, 3)), tt.Loss(epsilon=0.7), tt.Loss(epsilon=1, delta=1e-8)):
        plan = tt.Plan(spine, tt.Unit("person", contributions, "replace"), loss)
        assert plan.spent in (0, loss.budget)
