"""Aligning measurements with released trees, against a slow search by codes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop.measure.measure import NOTHING
from treetop.release.measurements import align, descended
from treetop.release.tree import ReleasedTree

# B has one county and D one town; AY, BX and CX are counties with one town, so that leaves are only children as well.
PLACE = tt.Hierarchy.from_prefixes(
    ["AXa", "AXb", "AYa", "BXa", "BXb", "CXa", "CYa", "CYb", "DXa"], widths=[1, 2], levels=["state", "county", "town"]
)
SEX = tt.Hierarchy.flat(["f", "m"])
ONE = tt.Hierarchy.flat(["all"])
AGE = tt.Hierarchy.from_prefixes(["1a", "1b", "2a"], widths=[1], levels=["group", "age"])
SPINES = {
    "one attribute": tt.Spine(["place.state", "place.county", "place.town"], {"place": PLACE}),
    "interleaved": tt.Spine(["place.state", "sex", "place.county", "place.town"], {"place": PLACE, "sex": SEX}),
    "ends unmeasured": tt.Spine(["sex", "place.state", "one"], {"place": PLACE, "sex": SEX, "one": ONE}),
    "starts unmeasured": tt.Spine(
        ["one", "age.group", "place.county", "age.age"], {"place": PLACE, "age": AGE, "one": ONE}
    ),
    "merged": tt.Spine(
        ["place.state * age.group", "one", "age.age * place.town"], {"place": PLACE, "age": AGE, "one": ONE}
    ),
}

Key = tuple[str | None, ...]


def released(
    spine: tt.Spine, neighbours: str, seed: int, prefer: str | None = "lower-error", rho: float = 0.1
) -> tt.Release:
    rng = np.random.default_rng(seed)
    unit = tt.Unit("trip", neighbours=neighbours)  # type: ignore[arg-type]
    plan = tt.Plan(spine, unit, tt.Loss(rho=rho), prefer=prefer, margins="none")  # type: ignore[arg-type]
    rows = int(rng.integers(0, 120))
    columns = {}
    for name, tree in spine.attributes.items():
        codes = np.array(tree.codes[-1].to_pylist())
        columns[name] = rng.choice(codes, rows, p=rng.dirichlet(np.full(len(codes), 0.4)))
    return tt.make_release(
        plan, pa.table(columns), tt.RunOptions(testing_key=seed.to_bytes(32, "big"), keep_measurements=True)
    )


def parent_of(spine: tt.Spine, index: int, key: Key) -> Key:
    above = list(key)
    for part in spine.levels[index - 1].parts:
        above[part.attribute] = None
        if part.depth > 0:
            tree = spine.trees[part.attribute]
            node = tree.codes[part.depth].to_pylist().index(key[part.attribute])
            parent = tree.ancestors(part.depth - 1, part.depth)[node]
            above[part.attribute] = tree.codes[part.depth - 1][int(parent)].as_py()
    return tuple(above)


def slow(release: tt.Release, index: int) -> tuple[list[int], list[int], list[int]]:
    """Look up every released node of a level, and all measured children of every one above."""
    spine = release.spine
    names = list(spine.attributes)
    seen: dict[Key, int] = {}
    for row in release.measurements.table().to_pylist():
        if row["level"] == index:
            seen[tuple(row[name] for name in names)] = row["value"]
    here, above = (nodes_at(release, at) for at in (index, index - 1))
    measured = [seen.get(key, NOTHING) for key in here]
    highest = dict.fromkeys(above, NOTHING)
    slots = []
    for key, value in seen.items():
        parent = parent_of(spine, index, key)
        if parent in highest:
            slots.append(value)
            if key not in here:
                highest[parent] = max(highest[parent], value)
    return measured, list(highest.values()), slots


def nodes_at(release: tt.Release, index: int) -> list[Key]:
    level = "total" if index == 0 else release.spine.splits[index - 1]
    rows = release.level(level).to_pylist()
    return [tuple(row.get(name) for name in release.spine.attributes) for row in rows]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("spine", SPINES.values(), ids=SPINES)
def test_evidence_is_that_of_the_new_nodes_as_a_slow_search_finds_it(spine: tt.Spine, neighbours: str) -> None:
    for seed in range(8):
        compare(released(spine, neighbours, seed))
        compare(thinned(released(spine, neighbours, seed, prefer=None), seed))


def compare(release: tt.Release) -> None:
    assert release.evidence is not None
    for index, level in enumerate(release.evidence.levels, start=1):
        measured, highest, slots = slow(release, index)
        assert level.measured.tolist() == measured
        assert level.highest.tolist() == highest
        assert level.slots.tolist() == slots


def thinned(release: tt.Release, seed: int) -> tt.Release:
    """Half of the leaves of a release, and the evidence of those."""
    stays = np.random.default_rng(seed).random(len(release.count)) < 0.5
    nodes, count = release.nodes[:, stays], release.count[stays]
    evidence = align(ReleasedTree(release.spine, nodes, count), release.measurements)
    return replace(release, nodes=nodes, count=count, evidence=evidence, all_measured=release.measurements)


def test_lower_error_lets_nodes_go_that_the_descent_has_retained() -> None:
    gone = []
    for seed in range(12):
        release = released(SPINES["interleaved"], "replace", seed)
        assert release.evidence is not None
        kept = sum(len(level) for level in release.measurements.levels if level is not None)
        gone.append(kept - sum(len(level.slots) for level in release.evidence.levels))
    assert min(gone) == 0 < max(gone)


@pytest.mark.parametrize("spine", SPINES.values(), ids=SPINES)
def test_aligning_with_the_tree_of_the_descent_gives_what_the_descent_has_seen(spine: tt.Spine) -> None:
    for seed in range(8):
        release = released(spine, "add-remove", seed, prefer=None)
        assert release.evidence is not None
        found = align(release.tree, release.measurements)
        assert found.total == release.evidence.total
        for one, other in zip(found.levels, release.evidence.levels, strict=True):
            for name in ("measured", "highest", "slots"):
                assert np.array_equal(getattr(one, name), getattr(other, name))


def measured_parents(release: tt.Release, index: int) -> set[Key]:
    names = list(release.spine.attributes)
    rows = release.measurements.table().to_pylist()
    keys = [tuple(row[name] for name in names) for row in rows if row["level"] == index]
    return {parent_of(release.spine, index, key) for key in keys}


def as_descended(release: tt.Release) -> tt.Release:
    tree, evidence = descended(release.tree, release.measurements)
    return replace(release, nodes=tree.nodes, count=tree.count, evidence=evidence, all_measured=None)


@pytest.mark.parametrize("spine", SPINES.values(), ids=SPINES)
def test_sums_take_their_intervals_from_every_node_that_has_measured_children(spine: tt.Spine) -> None:
    for seed in range(12):
        release = released(spine, "replace", seed)
        whole = as_descended(release)
        assert whole.total == release.total
        assert set(nodes_at(release, len(spine.levels))) <= set(nodes_at(whole, len(spine.levels)))
        for level in spine.levels:
            assert measured_parents(release, level.index) <= set(nodes_at(whole, level.index - 1))
        assert whole.evidence is not None
        kept = whole.measurements  # with the nodes that the descent has retained, nothing is left over
        assert kept.table().equals(release.measurements.table())


def test_a_descent_without_losses_is_its_own_tree() -> None:
    release = released(SPINES["interleaved"], "replace", 3, rho=50.0)
    whole = as_descended(release)
    assert np.array_equal(whole.nodes, release.nodes)
    assert np.array_equal(whole.count, release.count)


def leaf(spine: tt.Spine, *nodes: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    return np.array(nodes, np.int32)[:, None], np.ones(1, np.int64)


def test_a_leaf_that_was_not_measured_is_refused() -> None:
    spine = SPINES["one attribute"]
    table = pa.table({"place": ["AXa"] * 500})
    plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=5), margins="none")
    release = tt.make_release(plan, table, tt.RunOptions(testing_key=bytes(32), keep_measurements=True))
    tree = ReleasedTree(spine, *leaf(spine, 7))  # CYb, below a state that is truly empty
    with pytest.raises(tt.TreetopError, match="was not measured"):
        align(tree, release.measurements)


def test_measurements_that_end_above_the_leaves_are_no_descent() -> None:
    release = released(SPINES["one attribute"], "replace", 1, rho=5.0)
    kept = release.measurements
    towns = kept.levels[-1]
    assert towns is not None and len(towns) > 0
    gone = replace(towns, nodes=towns.nodes[:, :0], value=towns.value[:0])
    cut = replace(kept, levels=(*kept.levels[:-1], gone))
    with pytest.raises(tt.TreetopError):
        descended(release.tree, cut)
