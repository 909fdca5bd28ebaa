"""Margins that are called kept agree wherever they meet, whatever the hierarchies and the list of margins."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import treetop as tt
from treetop.domain import marginal as margins_module
from treetop.domain.marginal import exact_margins
from treetop.measure.margin_tables import coarser

EXAMPLES = 400 if os.environ.get("TREETOP_AUDIT") == "deep" else 25
HOW: list[dict[str, Any]] = [{}, {"prefer": "lower-error"}, {"repair": "euclidean"}, {"resolve": {"fdr": 0.1}}]
RELATIONS = ["replace", "add-remove"]


def tree(*fanouts: int) -> tt.Hierarchy:
    """Return a tree with so many children of every node, level by level."""
    codes = [""]
    for fanout in fanouts:
        codes = [code + "abc"[child] for code in codes for child in range(fanout)]
    levels = [f"level{depth}" for depth in range(len(fanouts))]
    return tt.Hierarchy.from_prefixes(codes, widths=list(range(1, len(fanouts))), levels=levels)


def named(attribute: str, depth: int) -> str:
    return f"{attribute}.level{depth - 1}"


@st.composite
def cases(draw: st.DrawFn) -> tuple[tt.Plan, int]:
    """Two or three attributes of one to three levels, refined in any order, and a list of one to four margins."""
    fanouts = draw(st.lists(st.lists(st.integers(2, 3), min_size=1, max_size=3), min_size=2, max_size=3))
    attributes = {f"x{index}": tree(*own) for index, own in enumerate(fanouts)}
    splits = [attribute for attribute, one in attributes.items() for _ in one.levels]
    order, refined = [], dict.fromkeys(attributes, 0)
    for attribute in draw(st.permutations(splits)):
        refined[attribute] += 1
        order.append(named(attribute, refined[attribute]))
    depths = st.tuples(*(st.integers(0, len(one.levels)) for one in attributes.values())).filter(any)
    tables = draw(st.lists(depths, min_size=1, max_size=4, unique=True))
    margins = [
        " * ".join(named(attribute, depth) for attribute, depth in zip(attributes, table, strict=True) if depth)
        for table in tables
    ]
    unit = tt.Unit("trip", neighbours=draw(st.sampled_from(RELATIONS)))
    how, spine = draw(st.sampled_from(HOW)), tt.Spine(order, attributes)
    return tt.Plan(spine, unit, tt.Loss(epsilon=1), margins=margins, **how), draw(st.integers(0, 255))


def shared_table(neighbours: Any = "replace") -> tt.Plan:
    """Two margins that share x0 * y0 * z0, of which neither is within the other."""
    order = ["z.level0", "z.level1", "x.level0", "x.level1", "y.level0", "y.level1"]
    spine = tt.Spine(order, {name: tree(2, 2) for name in "xyz"})
    margins = ["x.level0 * y.level1 * z.level0", "x.level0 * y.level0 * z.level1"]
    return tt.Plan(spine, tt.Unit("trip", neighbours=neighbours), tt.Loss(epsilon=1), margins=margins)


def records(spine: tt.Spine, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    size = int(rng.choice([5, 100, 2_000]))
    columns = {}
    for name, one in spine.attributes.items():
        chance = rng.dirichlet(np.full(one.sizes[-1], 0.5))
        columns[name] = np.array(one.codes[-1].to_pylist())[rng.choice(one.sizes[-1], size, p=chance)]
    return pa.table(columns)


def released(plan: tt.Plan, seed: int) -> tt.Release:
    return tt.make_release(plan, records(plan.spine, seed), tt.RunOptions(testing_key=bytes([seed]) * 32))


def disagreements(release: tt.Release) -> list[tuple[str, str]]:
    """Return the pairs of kept margins that differ in the finest table that both imply."""
    trees, found = release.spine.trees, []
    for one, other in combinations([table for table in release.margins if table.exact], 2):
        meet = tuple(map(min, one.margin.depths, other.margin.depths))
        sums = []
        for table in (one, other):
            depths = table.margin.depths
            shape = [trees[attribute].sizes[depths[attribute] - 1] for attribute in table.margin.attributes]
            sums.append(coarser(trees, table.count.reshape(shape), depths, meet))
        if not np.array_equal(sums[0], sums[1]):
            found.append((one.margin.name, other.margin.name))
    return found


def findings(release: tt.Release) -> list[str]:
    """Return what is wrong with a release: what its own check finds, or how it cannot be saved."""
    with TemporaryDirectory() as folder:
        release.save(Path(folder) / "release")
        return [finding for verdict in tt.check(Path(folder) / "release") for finding in verdict.findings]


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases())
@example((shared_table(), 1))
@example((shared_table("add-remove"), 2))
def test_a_release_passes_its_check_and_kept_margins_agree(case: tuple[tt.Plan, int]) -> None:
    release = released(*case)
    assert disagreements(release) == []
    assert findings(release) == []


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_margins_that_share_a_coarser_table_are_kept_and_agree(neighbours: str) -> None:
    plan = shared_table(neighbours)
    assert exact_margins(plan.spine, plan.margin_tables) == (True, True)
    for seed in range(40):
        release = released(plan, seed)
        assert disagreements(release) == []
        assert len(release.intervals) == len(plan.spine.levels) + 1  # every retained node has released descendants
        for table in release.margins:
            assert np.array_equal(table.sums(release.tree), table.count)


@pytest.mark.parametrize("order", [["place.level0", "sex", "place.level1"], ["sex", "place.level0", "place.level1"]])
@pytest.mark.parametrize("attributes", [["place", "sex"], ["sex", "place"]])
def test_levels_of_one_attribute_beside_another_are_all_kept(order: list[str], attributes: list[str]) -> None:
    """A table within another one is kept, whichever attribute comes last."""
    trees = {"place": tree(3, 3), "sex": tt.Hierarchy.flat(["f", "m"]), "age": tt.Hierarchy.flat(list("abc"))}
    spine = tt.Spine(["age", *order], {name: trees[name] for name in (*attributes, "age")})
    listed = ["sex * place.level0", "sex * place.level1"]
    for names in (listed, listed[::-1]):
        plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(epsilon=1), margins=names)
        assert all(exact_margins(spine, plan.margin_tables))
        for seed in range(5):
            assert disagreements(released(plan, seed)) == []


def three_ways() -> tt.Plan:
    """A table of three attributes after two of its margins that cross: no fit agrees with both."""
    trees = {"a": tt.Hierarchy.flat(list("xyz")), "b": tree(2, 2), "c": tt.Hierarchy.flat(list("xyz"))}
    spine = tt.Spine(["b.level0", "b.level1", "c", "a"], trees)
    margins = ["b.level0 * c", "a * c", "a * b.level0 * c"]
    return tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(epsilon=1), margins=margins)


def test_a_table_that_no_fit_makes_agree_is_kept_nearly() -> None:
    plan = three_ways()
    assert exact_margins(plan.spine, plan.margin_tables) == (True, True, False)


def test_a_margin_that_is_wrongly_called_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(margins_module, "fit_to", lambda *_: True)
    assert any(disagreements(released(three_ways(), seed)) for seed in range(5))
