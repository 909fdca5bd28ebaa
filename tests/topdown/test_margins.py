"""Margins in the engine: every level agrees with its parents and with the tables beside the spine, whoever runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import treetop as tt
from treetop import Counts
from treetop.domain.marginal import exact_margins
from treetop.engine.engine import Threads
from treetop.measure.descent import Outcome, descent_of, run_descent
from treetop.measure.margin_tables import coarser
from treetop.noise import Key
from treetop.repair import REPAIRS, chebyshev

KEY = Key(b"m" * 32)
TRIP = tt.Unit("trip", neighbours="replace")
PLACES = tt.Hierarchy.from_prefixes(
    [f"{a}{b}{c}" for a in "AB" for b in "XYZ" for c in "1234"[: 1 + ord(b) % 4]], widths=[1, 2], levels=["r", "d", "t"]
)
TREES = {"place": PLACES, "sex": tt.Hierarchy.flat(["f", "m"]), "age": tt.Hierarchy.flat(list("abcde"))}
ORDERS = [
    ["place.r", "sex", "place.d", "age", "place.t"],
    ["sex", "age", "place.r", "place.t"],
    ["place.r", "place.d", "place.t", "age", "sex"],
    ["age", "place.d", "sex"],
]


def spine_and_counts(order: list[str], seed: int = 1, size: int = 3_000) -> tuple[tt.Spine, Counts]:
    spine = tt.Spine(order, {name: TREES[name] for name in TREES if any(one.split(".")[0] == name for one in order)})
    rng = np.random.default_rng(seed)
    leaves = [rng.choice(tree.sizes[-1], size, p=rng.dirichlet(np.full(tree.sizes[-1], 0.4))) for tree in spine.trees]
    return spine, Counts.from_leaves(spine, leaves)


def plan(spine: tt.Spine, rho: float = 0.05, **options: Any) -> tt.Plan:
    return tt.Plan(spine, options.pop("unit", TRIP), tt.Loss(rho=rho), **{"margins": "each", **options})


def table(spine: tt.Spine, outcome: Outcome, depths: tuple[int, ...]) -> Any:
    """What the leaves add up to, with some levels of every attribute told apart."""
    shape = tuple(tree.sizes[-1] for tree in spine.trees)
    whole = np.zeros(shape, np.int64)
    np.add.at(whole, tuple(outcome.leaves.nodes), outcome.leaves.count)
    return coarser(spine.trees, whole, tuple(len(tree.levels) for tree in spine.trees), depths)


def run(planned: tt.Plan, counts: Counts, threads: int = 1, **options: Any) -> Outcome:
    return run_descent(descent_of(planned), counts, KEY, Threads(threads), **options)


@pytest.mark.parametrize("order", ORDERS, ids=" > ".join)
@pytest.mark.parametrize(
    "how", [{}, {"prefer": "fewer-lost"}, {"repair": "euclidean"}, {"unit": tt.Unit("trip", neighbours="add-remove")}]
)
def test_leaves_add_up_to_every_margin(order: list[str], how: Mapping[str, Any]) -> None:
    spine, counts = spine_and_counts(order)
    found = run(plan(spine, **how), counts)
    assert found.margins is not None and found.leaves.count.min() > 0
    for depths, kept in found.margins.counts.items():
        assert np.array_equal(table(spine, found, depths), kept)


@pytest.mark.parametrize("order", ORDERS, ids=" > ".join)
def test_without_noise_a_release_is_the_truth(order: list[str]) -> None:
    spine, counts = spine_and_counts(order)
    found, true = run(plan(spine, 10**9), counts), run(plan(spine, 10**9, margins="none"), counts)
    assert np.array_equal(found.leaves.nodes, true.leaves.nodes)
    assert np.array_equal(found.leaves.count, true.leaves.count)


@pytest.mark.parametrize("margins", [["place.d * age"], ["sex * age", "place.r * age"], ["place.r * sex * age", "age"]])
def test_margins_of_several_attributes_are_exact_where_they_nest_and_near_where_they_cross(margins: list[str]) -> None:
    spine, counts = spine_and_counts(ORDERS[0])
    planned = plan(spine, 0.2, margins=margins)
    exact = exact_margins(spine, planned.margin_tables)
    found, true = run(planned, counts), run(plan(spine, 10**9, margins="none"), counts)
    assert found.margins is not None
    for margin, part, is_exact in zip(planned.margin_tables, planned.margin_parts, exact, strict=True):
        sums, truth = (table(spine, one, margin.depths) for one in (found, true))
        if is_exact:
            assert np.array_equal(sums, found.margins.counts[margin.depths])
        assert np.abs(sums - truth).mean() < 3 * part.deviation
    assert exact == ((True, False) if margins[0] == "sex * age" else (True,) * len(exact))


@pytest.mark.parametrize(
    "how", [{}, {"resolve": {"fdr": 0.1}}, {"resolve": {"sigmas": 2}}, {"margins": ["age", "sex * place.d"]}]
)
def test_a_level_is_the_same_however_it_is_cut(how: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    spine, counts = spine_and_counts(ORDERS[0])
    planned = plan(spine, **how)
    whole = run(planned, counts, every=0)
    monkeypatch.setattr("treetop.measure.blocks.CELLS", 1)
    cut = run(planned, counts, threads=3, every=0)
    assert_same(whole, cut)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"repair": "euclidean"},
        {"prefer": "fewer-lost"},
        {"resolve": {"fdr": 0.1}},
        {"margins": ["sex * age", "place.r * age", "place.d * sex"]},
        {"rho": 1e-4},
    ],
    ids=str,
)
@pytest.mark.parametrize("every", [0, 1_000])
def test_a_block_that_is_never_in_memory_as_a_whole_has_the_same_counts(
    how: Mapping[str, Any], every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spine, counts = spine_and_counts(ORDERS[0])
    planned = plan(spine, **how)
    stored = run(planned, counts, every=every)
    monkeypatch.setattr("treetop.measure.blocks.LARGE", 20)
    monkeypatch.setattr("treetop.measure.blocks.PIECE", 13)
    assert_same(stored, run(planned, counts, threads=2, every=every))


def assert_same(one: Outcome, other: Outcome) -> None:
    """Whether two runs gave the same counts, and saw the same."""
    assert np.array_equal(one.leaves.nodes, other.leaves.nodes)
    assert np.array_equal(one.leaves.count, other.leaves.count) and np.array_equal(one.left.count, other.left.count)
    assert one.evidence is not None and other.evidence is not None
    for level, same in zip(one.evidence.levels, other.evidence.levels, strict=True):
        assert np.array_equal(level.measured, same.measured) and np.array_equal(level.highest, same.highest)
        assert np.array_equal(level.slots, same.slots)


@pytest.mark.parametrize("resolve", [{"fdr": 0.1}, {"sigmas": 3}])
def test_what_is_unresolved_is_what_the_margins_have_beyond_the_leaves(resolve: dict[str, float]) -> None:
    spine, counts = spine_and_counts(ORDERS[0])
    found = run(plan(spine, resolve=resolve), counts, every=0)
    assert found.margins is not None and len(found.left) > 0
    total = found.leaves.count.sum() + found.left.count.sum()
    for depths, kept in found.margins.counts.items():
        missing = kept - table(spine, found, depths)
        assert missing.min() >= 0 and kept.sum() == total


def test_a_level_that_is_a_margin_is_measured_once() -> None:
    """The first level of the spine is a table of an attribute alone: the descent takes what was measured of it."""
    spine, counts = spine_and_counts(ORDERS[0])
    found = run(plan(spine), counts, every=1 << 20)
    assert found.margins is not None and found.evidence is not None
    measured = found.margins.measured[spine.depths(1)]
    assert np.array_equal(found.evidence.levels[0].slots, measured)


def test_what_is_measured_of_a_margin_is_the_truth_and_its_noise() -> None:
    spine, counts = spine_and_counts(ORDERS[0])
    planned = plan(spine)
    true = run(plan(spine, 10**9, margins="none"), counts)
    for margin, part in zip(planned.margin_tables, planned.margin_parts, strict=True):
        off = []
        for number in range(60):
            found = run_descent(descent_of(planned), counts, KEY.derive("run", number))
            assert found.margins is not None
            off.append((found.margins.measured[margin.depths] - table(spine, true, margin.depths)).ravel())
        spread = np.concatenate(off)
        assert abs(spread.mean()) < 5 * part.deviation / len(spread) ** 0.5
        assert abs(spread.std() / part.deviation - 1) < 5 / (2 * len(spread)) ** 0.5


def test_an_empty_table_and_one_without_names_for_anything() -> None:
    spine, _ = spine_and_counts(ORDERS[0])
    nothing = Counts.from_leaves(spine, [np.empty(0, np.int64)] * 3)
    found = run(plan(spine, unit=tt.Unit("trip", neighbours="replace")), nothing)
    assert len(found.leaves) == 0 and found.margins is not None
    assert all((kept == 0).all() for kept in found.margins.counts.values())


def test_a_repair_of_ones_own_is_used_under_margins() -> None:
    spine, counts = spine_and_counts(ORDERS[0])
    own = tt.register_repair(
        "own under margins",
        ("Repaired by a test.",),
        lambda x, count, order, seed: chebyshev(x, count, order, seed=seed),
    )
    try:
        found, engine = run(plan(spine, repair=own.name), counts), run(plan(spine), counts)
    finally:
        del REPAIRS[own.name]
    assert np.array_equal(found.leaves.nodes, engine.leaves.nodes)
    assert np.array_equal(found.leaves.count, engine.leaves.count)
