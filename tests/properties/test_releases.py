"""What must hold of every release, whatever the tree, the data and the loss."""

from __future__ import annotations

from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

import treetop as tt
from treetop.counts.reading import read_counts
from treetop.engine.engine import Threads
from treetop.measure import descent as descents
from treetop.measure.descent import descent_of
from treetop.measure.level import CHUNK, Frontier
from treetop.noise import Key
from treetop.privacy.accountant import exact_delta
from treetop.repair import chebyshev, euclidean

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
    """One to three attributes, their levels shuffled together with coarse ones first, some refined at once."""
    trees = draw(st.lists(hierarchies(), min_size=1, max_size=3))
    attributes = {f"x{i}": tree for i, tree in enumerate(trees)}
    waiting = {name: list(tree.levels) for name, tree in attributes.items()}
    order: list[list[str]] = []
    while waiting:
        name = draw(st.sampled_from(sorted(waiting)))
        split = f"{name}.{waiting[name].pop(0)}"
        others = order and all(not one.startswith(f"{name}.") for one in order[-1])
        if others and draw(st.integers(0, 2)) == 0:
            order[-1].append(split)
        else:
            order.append([split])
        if not waiting[name]:
            del waiting[name]
    return tt.Spine([" * ".join(step) for step in order], attributes)


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
    release = tt.make_release(plan, table, tt.RunOptions(count="n"))
    assert release.count.dtype == np.int64
    assert (release.count > 0).all()
    totals = {pc.sum(release.level(level.name)["count"]).as_py() or 0 for level in plan.spine.levels}
    assert totals == {release.total}
    for level in plan.spine.levels[1:]:  # not only all together: the children of every node
        coarse, fine = release.level(plan.spine.levels[level.index - 2].name), release.level(level.name)
        assert _summed(coarse, plan.spine, level.index - 1) == _summed(fine, plan.spine, level.index - 1)
    if plan.levels[0].is_exact:
        assert release.total == (pc.sum(table["n"]).as_py() or 0)


def _summed(table: pa.Table, spine: tt.Spine, index: int) -> dict[tuple[str, ...], int]:
    """Sum a level to the nodes of a coarser one; codes begin with those of their ancestors."""
    depths = dict(zip(spine.attributes, spine.depths(index), strict=True))
    sums: dict[tuple[str, ...], int] = {}
    for row in table.to_pylist():
        node = tuple(row[name][:depth] if depth else "" for name, depth in depths.items() if name in row)
        key = tuple(code for code in node if code)
        sums[key] = sums.get(key, 0) + row["count"]
    return sums


@settings(max_examples=40, deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(case: tuple[tt.Plan, pa.Table], random: Any) -> None:
    plan, table = case
    order = list(range(table.num_rows))
    random.shuffle(order)
    one = tt.make_release(plan, table, tt.RunOptions(count="n", testing_key=KEY))
    other = tt.make_release(
        plan, table.take(pa.array(order, pa.int64())), tt.RunOptions(count="n", testing_key=KEY, threads=3)
    )
    assert one.table().equals(other.table())


@settings(max_examples=40, deadline=None)
@given(cases())
def test_without_noise_the_data_come_back(case: tuple[tt.Plan, pa.Table]) -> None:
    plan, table = case
    exact = tt.Plan(plan.spine, plan.unit, tt.Loss(rho=10**9), repair=plan.repair, order=plan.order)
    names = list(plan.spine.attributes)
    present = table.filter(pc.greater(table["n"], 0))
    expected = present.group_by(names).aggregate([("n", "sum")]).to_pylist()
    released = tt.make_release(exact, table, tt.RunOptions(count="n")).table().to_pylist()
    assert {tuple(row[name] for name in names): row["count"] for row in released} == {
        tuple(row[name] for name in names): row["n_sum"] for row in expected
    }


@settings(max_examples=30, deadline=None)
@given(spines(), st.integers(1, 4))
def test_the_levels_never_cost_more_than_the_loss(spine: tt.Spine, contributions: int) -> None:
    for loss in (tt.Loss(rho=Fraction(1, 3)), tt.Loss(epsilon=0.7), tt.Loss(epsilon=1, delta=1e-8)):
        plan = tt.Plan(spine, tt.Unit("person", contributions, "replace"), loss)
        assert plan.spent in (0, plan.budget)
        if plan.accounting == "zcdp":
            assert plan.budget == loss.budget
        elif plan.cells:
            assert exact_delta(1, plan.cells) <= 1e-8


def descended(plan: tt.Plan, table: pa.Table, threads: int = 1, chunk: int = CHUNK) -> Frontier:
    """Run the engine with a key of the run, on trees of which even small ones have a trunk and subtrees."""
    counts = read_counts(table, plan.spine, count="n")
    with mock.patch.object(descents, "LARGEST_TRUNK", 4), mock.patch.object(descents, "CHUNK", 8):
        return descents.run_descent(descent_of(plan), counts, Key(KEY), Threads(threads), chunk=chunk).leaves


@settings(max_examples=60, deadline=None)
@given(cases(), st.integers(1, 4), st.sampled_from([1, 2, 5, 64]))
def test_threads_and_chunks_change_nothing(case: tuple[tt.Plan, pa.Table], threads: int, chunk: int) -> None:
    plan, table = case
    one, other = descended(plan, table), descended(plan, table, threads, chunk)
    assert np.array_equal(one.nodes, other.nodes)
    assert np.array_equal(one.count, other.count)


@settings(max_examples=40, deadline=None)
@given(cases(), st.integers(2, 4))
def test_a_testing_key_gives_the_same_release_on_any_number_of_threads(
    case: tuple[tt.Plan, pa.Table], threads: int
) -> None:
    plan, table = case
    one, other = (
        tt.make_release(plan, table, tt.RunOptions(count="n", testing_key=KEY, threads=n)) for n in (1, threads)
    )
    assert one.table().equals(other.table())


def renamed(plan: tt.Plan, table: pa.Table, name: Any) -> tuple[tt.Plan, pa.Table]:
    """Call every code by another name, in the hierarchies and in the table."""
    trees = {}
    for attribute, tree in plan.spine.attributes.items():
        levels = {
            level: [name(depth, code) for code in tree.codes[depth].take(pa.array(tree.ancestors(depth))).to_pylist()]
            for depth, level in enumerate(tree.levels)
        }
        trees[attribute] = tt.Hierarchy.from_table(pa.table(levels), levels=tree.levels)
    spine = tt.Spine(plan.spine.splits, trees)
    columns = {
        attribute: pa.array([name(len(tree.levels) - 1, code) for code in table[attribute].to_pylist()], pa.string())
        for attribute, tree in plan.spine.attributes.items()
    }
    options: Any = {"repair": plan.repair, "order": plan.order}
    return tt.Plan(spine, plan.unit, plan.loss, **options), pa.table({**columns, "n": table["n"]})


@settings(max_examples=40, deadline=None)
@given(cases())
def test_other_names_in_the_same_order_change_nothing(case: tuple[tt.Plan, pa.Table]) -> None:
    plan, table = case
    one = descended(plan, table)
    other = descended(*renamed(plan, table, lambda depth, code: f"{depth}: {code} & co."))
    assert np.array_equal(one.nodes, other.nodes)
    assert np.array_equal(one.count, other.count)


@settings(max_examples=40, deadline=None)
@given(cases(), st.permutations("abcd"))
def test_without_noise_other_names_in_any_order_come_back_with_their_counts(
    case: tuple[tt.Plan, pa.Table], letters: list[str]
) -> None:
    plan, table = case
    other = dict(zip("abcd", letters, strict=True))

    def turned(_: int, code: str) -> str:
        return "".join(other[letter] for letter in code)

    names = list(plan.spine.attributes)
    counts: list[dict[tuple[str, ...], int]] = []
    for one, rows in ((plan, table), renamed(plan, table, turned)):
        exact = tt.Plan(one.spine, one.unit, tt.Loss(rho=10**9), repair=one.repair, order=one.order)
        released = tt.make_release(exact, rows, tt.RunOptions(count="n")).table().to_pylist()
        counts.append({tuple(row[name] for name in names): row["count"] for row in released})
    assert {tuple(turned(0, code) for code in leaf): count for leaf, count in counts[0].items()} == counts[1]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(-50, 200), min_size=1, max_size=12, unique=True),
    st.integers(0, 500),
    st.sampled_from([chebyshev, euclidean]),
    st.sampled_from(["ascending", "descending"]),
    st.randoms(use_true_random=False),
)
def test_a_repair_does_not_know_which_sibling_is_which(
    measured: list[int], count: int, repair: Any, order: Any, random: Any
) -> None:
    turned = list(range(len(measured)))
    random.shuffle(turned)
    one = repair(measured, count, order=order, seed=1)
    other = repair([measured[i] for i in turned], count, order=order, seed=2)
    assert one[turned].tolist() == other.tolist()
    assert one.sum() == count and one.min() >= 0


@settings(max_examples=40, deadline=None)
@given(cases())
def test_the_names_of_columns_change_nothing(case: tuple[tt.Plan, pa.Table]) -> None:
    plan, table = case
    other = table.rename_columns([f"column {i}" for i in range(table.num_columns)])
    columns = dict(zip(table.column_names, other.column_names, strict=True))
    count = columns.pop("n")
    one = tt.make_release(plan, table, tt.RunOptions(count="n", testing_key=KEY))
    assert one.table().equals(
        tt.make_release(plan, other, tt.RunOptions(columns=columns, count=count, testing_key=KEY)).table()
    )
