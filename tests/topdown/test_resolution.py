"""Resolution: a child is named when its own measurement shows that it is there, and nothing is lost if it is not."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import treetop as tt
from treetop import Counts
from treetop.engine.engine import Threads
from treetop.errors import PlanError
from treetop.measure import descent as descents
from treetop.measure.descent import descent_of, run_descent
from treetop.measure.level import Frontier
from treetop.measure.measure import NOTHING, Evidence, Remainders
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key, Law
from treetop.plan.resolution import HighMeasurements, Resolution, _p_values, fixed_threshold, number_of_tests
from treetop.release.tree import ReleasedTree

Ints = NDArray[np.int64]
KEY = Key(bytes(range(32)))
LAWS: tuple[Law, ...] = (DiscreteGaussian(Fraction(1, 2)), DiscreteGaussian(Fraction(30)), DiscreteLaplace(Fraction(4)))

PLACE = tt.Hierarchy.from_prefixes(
    [f"{a}{b}{c}" for a in "ABCD" for b in "123" for c in "wxyz"[: ord(b) % 4]], widths=[1, 2]
)
SPINE = tt.Spine.destination_first(origin=PLACE, destination=PLACE)


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut small trees into subtrees, too."""
    monkeypatch.setattr(descents, "LARGEST_TRUNK", 20)
    monkeypatch.setattr(descents, "CHUNK", 16)


def plan(spine: tt.Spine, rho: Fraction = Fraction(1, 2), neighbours: str = "replace", **options: Any) -> tt.Plan:
    return tt.Plan(spine, tt.Unit("trip", neighbours=neighbours), tt.Loss(rho=rho), **options, margins="none")  # type: ignore[arg-type]


def random_counts(spine: tt.Spine, rows: int, seed: int = 0) -> Counts:
    rng = np.random.default_rng(seed)
    leaves = [rng.integers(0, tree.sizes[-1], rows) for tree in spine.trees]
    return Counts.from_leaves(spine, leaves, rng.integers(1, 60, rows))


def run(
    planned: tt.Plan, counts: Counts, key: Key = KEY, threads: int = 1, **options: Any
) -> tuple[Frontier, Remainders, Evidence, ReleasedTree]:
    """Descend and keep every measurement."""
    every = max(level.nodes for level in planned.levels)
    found = run_descent(descent_of(planned), counts, key, Threads(threads), every=every, **options)
    assert found.evidence is not None
    tree = ReleasedTree(planned.spine, found.leaves.nodes, found.leaves.count, found.left)
    return found.leaves, found.left, found.evidence, tree


def p_values(law: Law, measured: Ints) -> list[float]:
    """The chance that nothing but noise is as high, by the law's symmetry."""
    return [law.cumulative(-x) for x in measured.tolist()]


def benjamini_hochberg(law: Law, measured: Ints, fdr: Fraction) -> Ints:
    """Name measurements from zero up by the list of all p-values, as the procedure is written down."""
    order = np.argsort(measured)[::-1]
    p = np.array(p_values(law, measured[order]))
    ranks = [int((p <= value).sum()) for value in p]
    passing = [
        i for i, x in enumerate(measured[order].tolist()) if x >= 0 and p[i] <= float(fdr) * ranks[i] / len(measured)
    ]
    return np.sort(order[: ranks[passing[-1]]]) if passing else np.empty(0, np.int64)


@given(
    law=st.sampled_from(LAWS),
    measured=st.lists(st.integers(-40, 80), min_size=1, max_size=60),
    fdr=st.fractions(Fraction(1, 1000), Fraction(999, 1000)),
)
@settings(deadline=None, max_examples=300)
def test_the_threshold_names_what_benjamini_and_hochberg_name(law: Law, measured: list[int], fdr: Fraction) -> None:
    x = np.array(measured, np.int64)
    seen = HighMeasurements(law, len(x), fdr)
    for part in np.array_split(x, 3):
        seen.add(part)
    assert np.flatnonzero(x >= seen.threshold()).tolist() == benjamini_hochberg(law, x, fdr).tolist()


def test_of_very_wide_noise_fewer_thresholds_are_tried_and_none_more_is_named() -> None:
    law = DiscreteGaussian(Fraction(10**9))
    assert _p_values(law, 60)[0] > 1
    x = np.random.default_rng(3).normal(0, law.standard_deviation, 4000).astype(np.int64)
    x[:200] += 100_000
    seen = HighMeasurements(law, len(x), Fraction(1, 20))
    seen.add(x)
    ours, theirs = set(np.flatnonzero(x >= seen.threshold()).tolist()), benjamini_hochberg(law, x, Fraction(1, 20))
    assert len(theirs) - 3 <= len(ours) <= len(theirs)
    assert ours <= set(theirs.tolist())


@pytest.mark.parametrize("fdr", [Fraction(1, 10**30), Fraction(1, 10**90)])
def test_however_small_the_rate_is_only_what_could_not_be_noise_is_named(fdr: Fraction) -> None:
    law = DiscreteGaussian(Fraction(100))
    seen = HighMeasurements(law, 1000, fdr)
    seen.add(np.array([0, 50, 100, 100_000]))
    assert 100 < seen.threshold() <= 100_000
    assert law.cumulative(-seen.threshold()) <= float(fdr) / 1000 < law.cumulative(1 - seen.threshold())


@pytest.mark.parametrize("law", LAWS)
def test_a_p_value_is_the_sum_of_the_exact_masses_that_are_as_high(law: Law) -> None:
    width, chance = _p_values(law, 60)
    assert width == 1
    assert chance[-1] <= 2.0**-61 < chance[-2]
    masses = np.array([law.mass(k) for k in range(len(chance) + 200)])
    for t, p in enumerate(chance.tolist()):
        assert p == law.cumulative(-t)
        assert p == pytest.approx(masses[t:].sum(), rel=1e-12)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("sigmas", [Fraction(1, 2), Fraction(3), Fraction(4)])
def test_a_threshold_in_standard_deviations_is_the_least_measurement_that_reaches_them(
    law: Law, sigmas: Fraction
) -> None:
    threshold = fixed_threshold(law, sigmas)
    assert (threshold - 1) / law.standard_deviation < sigmas <= threshold / law.standard_deviation


@pytest.mark.parametrize("resolve", [{"sigmas": 4}, {"fdr": 0.001}])
def test_under_one_node_the_named_keep_what_a_full_release_gives_them_and_the_rest_stays_above(
    resolve: dict[str, float],
) -> None:
    spine = tt.Spine(["code"], {"code": tt.Hierarchy.flat([f"{i:03d}" for i in range(300)])})
    counts = Counts.from_leaves(spine, [np.arange(80)], np.arange(80) + 1)
    full, _, _, _ = run(plan(spine, Fraction(1, 200)), counts)
    named, left, evidence, _ = run(plan(spine, Fraction(1, 200), resolve=resolve), counts)
    (seen,) = evidence.levels
    law = evidence.laws[1]
    assert law is not None
    if "sigmas" in resolve:
        chosen = np.flatnonzero(seen.slots >= fixed_threshold(law, Fraction(4)))
    else:
        chosen = benjamini_hochberg(law, seen.slots, Fraction(1, 1000))
    expected = np.isin(full.nodes[0], chosen)
    assert 0 < expected.sum() < len(expected)
    assert named.nodes[0].tolist() == full.nodes[0][expected].tolist()
    assert named.count.tolist() == full.count[expected].tolist()
    assert (left.level.tolist(), left.count.tolist()) == ([0], [int(full.count[~expected].sum())])
    assert seen.measured.tolist() == seen.slots[named.nodes[0]].tolist()


RESOLVED = [{"sigmas": 2}, {"sigmas": 4}, {"fdr": 0.01}, {"fdr": 0.2}]


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("resolve", RESOLVED, ids=str)
@pytest.mark.parametrize(
    "options", [{}, {"repair": "euclidean"}, {"order": "descending"}, {"neighbours": "add-remove"}]
)
def test_a_node_is_the_sum_of_its_named_children_and_of_what_is_left_at_it(
    resolve: dict[str, float], options: dict[str, Any]
) -> None:
    counts = random_counts(SPINE, 250)
    planned = plan(SPINE, resolve=resolve, **options)
    leaves, left, evidence, tree = run(planned, counts)
    assert len(leaves) and len(left) > 3
    assert (leaves.count > 0).all() and (left.count > 0).all()
    total = int(leaves.count.sum() + left.count.sum())
    assert total == (counts.total if evidence.total is None else evidence.total) == int(tree.at(0).count.sum())
    for level in SPINE.levels:
        above, below = tree.at(level.index - 1), tree.at(level.index)
        sums = np.zeros(len(above), np.int64)
        np.add.at(sums, tree.parents(level.index), below.count)
        sums[tree.rows(level.index - 1)] += left.count[left.level == level.index - 1]
        assert sums.tolist() == above.count.tolist()
    assert left.level.max() < len(SPINE.levels)


@pytest.mark.parametrize("resolve", RESOLVED, ids=str)
def test_every_measured_child_that_is_named_reaches_the_threshold_of_its_level(resolve: dict[str, float]) -> None:
    _, _, evidence, tree = run(plan(SPINE, resolve=resolve), random_counts(SPINE, 250))
    only = 0
    for level, law, seen in zip(SPINE.levels, evidence.laws[1:], evidence.levels, strict=True):
        assert len(seen.measured) == len(tree.at(level.index))
        assert law is not None
        own = seen.measured[seen.measured != NOTHING]
        only += len(seen.measured) - len(own)
        if "sigmas" in resolve:
            threshold = fixed_threshold(law, Fraction(resolve["sigmas"]))
        else:
            named = benjamini_hochberg(law, seen.slots, Fraction(str(resolve["fdr"])))
            threshold = int(seen.slots[named].min())
        assert own.min() >= threshold
        # What reaches it and is not named was repaired to zero, which is rare.
        assert len(own) <= (seen.slots >= threshold).sum() <= 1.1 * len(own)
    assert only > 0


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("resolve", [{"sigmas": 2}, {"fdr": 0.1}], ids=str)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 1 << 15])
def test_threads_and_chunks_change_nothing(resolve: dict[str, float], threads: int, chunk: int) -> None:
    counts = random_counts(SPINE, 300)
    planned = plan(SPINE, resolve=resolve)
    whole, left, evidence, _ = run(planned, counts)
    other, other_left, other_evidence, _ = run(planned, counts, threads=threads, chunk=chunk)
    assert np.array_equal(whole.nodes, other.nodes) and np.array_equal(whole.count, other.count)
    for name in ("level", "nodes", "count"):
        assert np.array_equal(getattr(left, name), getattr(other_left, name)), name
    for one, another in zip(evidence.levels, other_evidence.levels, strict=True):
        for name in ("measured", "highest", "slots"):
            assert np.array_equal(getattr(one, name), getattr(another, name)), name


def test_where_nothing_can_be_named_all_of_it_is_left_at_the_total() -> None:
    counts = random_counts(SPINE, 50)
    leaves, left, _, tree = run(plan(SPINE, resolve={"sigmas": 10_000}), counts)
    assert len(leaves) == 0
    assert (left.level.tolist(), left.count.tolist()) == ([0], [counts.total])
    assert [len(tree.at(index)) for index in range(len(SPINE.levels) + 1)] == [1] + [0] * len(SPINE.levels)


@pytest.mark.parametrize("resolve", RESOLVED, ids=str)
def test_an_empty_table_leaves_nothing(resolve: dict[str, float]) -> None:
    nothing = np.empty(0, np.int64)
    leaves, left, _, _ = run(plan(SPINE, resolve=resolve), Counts.from_leaves(SPINE, [nothing, nothing]), threads=2)
    assert (len(leaves), len(left)) == (0, 0)


def test_an_only_child_has_passed_the_test_of_its_parent_where_thresholds_are_standard_deviations() -> None:
    tree = tt.Hierarchy.from_prefixes(["A1x", "B1x", "B1y", "C1x"], widths=[1, 2], levels=["a", "b", "c"])
    spine = tt.Spine(["place.a", "place.b", "place.c"], {"place": tree})
    counts = Counts.from_leaves(spine, [np.array([0, 1, 2])], np.array([500, 300, 2]))
    leaves, left, evidence, _ = run(plan(spine, resolve={"sigmas": 5}), counts)
    assert leaves.nodes[0].tolist() == [0, 1]
    assert evidence.levels[1].measured.tolist() == [NOTHING, NOTHING]
    assert set(left.level.tolist()) <= {0, 2}
    assert leaves.count.sum() + left.count.sum() == 802


@given(data=st.data())
@settings(deadline=None, max_examples=100)
def test_of_all_measured_nodes_those_are_tests_of_a_level_that_have_one_descendant_there(data: st.DataObject) -> None:
    merged = tt.Spine(["a.1 * b.1", "b.2", "a.3 * b.4", "b.5 * a.4"], ODD)
    spine = data.draw(st.sampled_from([SPINE, DEEP, tt.Spine(["a.3", "b.1", "a.4", "b.2", "b.5"], ODD), merged]))
    index = data.draw(st.integers(1, len(spine.levels)))
    every = list(nodes_at(spine, index - 1))
    above = data.draw(st.lists(st.sampled_from(every), unique=True, max_size=6))
    expected = [0] * (len(spine.levels) + 1)
    for node in above:
        children = list(nodes_at(spine, index, index - 1, node))
        for child in children if len(children) > 1 else ():
            for finer in range(index, len(spine.levels) + 1):
                expected[finer] += len(list(nodes_at(spine, finer, index, child))) == 1
    columns = np.array(above, np.int64).reshape(-1, len(spine.trees)).T
    assert number_of_tests(spine.levels, index, columns).tolist() == expected


ODD = {
    "a": tt.Hierarchy.from_prefixes(["0000", "0001", "0110", "1000", "1100"], widths=[1, 2, 3], levels=list("1234")),
    "b": tt.Hierarchy.from_prefixes(["00000", "01000", "01100", "10000"], widths=[1, 2, 3, 4], levels=list("12345")),
}
DEEP = tt.Spine(["a.1", "a.2", "a.3", "a.4"], {"a": ODD["a"]})


def nodes_at(spine: tt.Spine, finer: int, index: int = 0, above: tuple[int, ...] | None = None) -> Iterator[Any]:
    """All public nodes of a level below one of a coarser level, by walking down."""
    nodes = [above or (0,) * len(spine.trees)]
    for part in (part for level in spine.levels[index:finer] for part in level.parts):
        nodes = [
            (*node[: part.attribute], child, *node[part.attribute + 1 :])
            for node in nodes
            for child in range(part.first[node[part.attribute]], part.first[node[part.attribute] + 1])
        ]
    return iter(nodes)


@given(
    laws=st.lists(st.sampled_from(LAWS), min_size=2, max_size=2),
    measured=st.lists(st.integers(-10, 60), min_size=1, max_size=40),
    others=st.lists(st.integers(-10, 60), max_size=40),
    untested=st.integers(0, 30),
    fdr=st.fractions(Fraction(1, 1000), Fraction(999, 1000)),
)
@settings(deadline=None, max_examples=200)
def test_measurements_with_other_noise_are_named_by_the_same_list_of_p_values(
    laws: list[Law], measured: list[int], others: list[int], untested: int, fdr: Fraction
) -> None:
    """Only children bring the noise of the level where their parents were measured."""
    law, other = laws
    m = len(measured) + len(others) + untested
    seen = HighMeasurements(law, m, fdr)
    seen.add(np.array(measured, np.int64))
    seen.add(np.array(others, np.int64), other)
    p = [law.cumulative(-x) for x in measured if x >= 0] + [other.cumulative(-x) for x in others if x >= 0]
    # Thresholds are those of the level's own noise, and start at zero.
    tried = [law.cumulative(-t) for t in range(200)]
    cutoff = max((t for t in tried if m * t <= float(fdr) * sum(one <= t for one in p)), default=0.0)
    if cutoff == 0.0:
        assert not any(x >= seen.threshold() for x in measured)
    else:
        assert {x >= seen.threshold() for x in measured if law.cumulative(-x) <= cutoff} <= {True}
        assert {x >= seen.threshold(other) for x in others if other.cumulative(-x) <= cutoff} <= {True}
        assert not any(x >= seen.threshold() for x in measured if law.cumulative(-x) > cutoff)
    assert not any(x >= seen.threshold(other) for x in others if other.cumulative(-x) > cutoff)


def sparse_trips() -> tuple[tt.Spine, Counts, set[tuple[int, ...]]]:
    """Trips between quarters of ten cities, and hardly any to or from ninety villages, each of which is one quarter."""
    codes = [f"v{i:02d}0" for i in range(90)] + [f"w{i:02d}{quarter}" for i in range(10) for quarter in "abcdefghijkl"]
    place = tt.Hierarchy.from_prefixes(codes, widths=[3], levels=["town", "quarter"])
    spine = tt.Spine.destination_first(origin=place, destination=place)
    rng = np.random.default_rng(2)
    ends = [
        np.where(rng.random(600) < 0.05, rng.integers(0, 90, 600), 90 + rng.integers(0, 120, 600)) for _ in range(2)
    ]
    return spine, Counts.from_leaves(spine, ends, rng.poisson(8, 600) + 1), set(zip(*map(list, ends), strict=True))


@pytest.mark.parametrize(("fdr", "epsilon"), [(0.05, 1), (0.05, 2), (0.1, 2), (0.1, 4)])
def test_where_most_parents_have_one_child_the_rate_is_held_among_the_leaves(fdr: float, epsilon: float) -> None:
    """Untested, only children whose parents are false discoveries were a third of the named, and more."""
    spine, counts, truth = sparse_trips()
    loss = tt.Loss(epsilon=epsilon, delta=1e-8)
    planned = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), loss, resolve={"fdr": fdr}, margins="none")
    empty, only = [], 0
    for number in range(200):
        leaves = run_descent(descent_of(planned), counts, KEY.derive("run", number), every=0).leaves
        named = list(map(tuple, leaves.nodes.T.tolist()))
        only += sum(min(node) < 90 for node in named)
        empty.append(sum(node not in truth for node in named) / max(len(named), 1))
    assert only > 0  # some of them are named all the same
    assert np.mean(empty) <= fdr + 2 * np.std(empty) / 200**0.5


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("margins", ["none", "each"])
@pytest.mark.parametrize(("threads", "chunk"), [(1, 1), (3, 7), (2, 64)])
def test_only_children_that_are_not_named_stay_at_their_parents_however_the_work_is_cut(
    threads: int, chunk: int, margins: Any
) -> None:
    spine, counts, _ = sparse_trips()
    unit, loss = tt.Unit("trip", neighbours="replace"), tt.Loss(rho=Fraction(1, 10 if margins == "none" else 20))
    planned = tt.Plan(spine, unit, loss, resolve={"fdr": 0.2}, margins=margins)
    leaves, left, evidence, tree = run(planned, counts)
    other, other_left, other_evidence, _ = run(planned, counts, threads=threads, chunk=chunk)
    assert np.array_equal(leaves.nodes, other.nodes) and np.array_equal(left.count, other_left.count)
    for one, another in zip(evidence.levels, other_evidence.levels, strict=True):
        assert np.array_equal(one.measured, another.measured) and np.array_equal(one.highest, another.highest)
    unnamed = 0
    for level in spine.levels:
        above, gone = tree.at(level.index - 1), np.flatnonzero(tree.denied(level.index))
        rest = dict(zip(tree.rows(level.index - 1), left.count[left.level == level.index - 1], strict=True))
        assert [rest[row] for row in gone.tolist()] == above.count[gone].tolist()
        assert (evidence.levels[level.index - 1].highest[gone] == NOTHING).all()
        unnamed += len(gone)
    assert unnamed > (5 if margins == "none" else 0)  # a margin shows by itself that most villages are empty


@pytest.mark.parametrize("fdr", [Fraction(1, 20), Fraction(1, 5)])
def test_the_share_of_empty_nodes_among_the_named_is_at_most_the_one_that_was_asked_for(fdr: Fraction) -> None:
    """With m tests, m₀ of them of empty nodes, Benjamini and Hochberg's rate is fdr·m₀/m; the repair names fewer."""
    spine = tt.Spine(["code"], {"code": tt.Hierarchy.flat([f"{i:03d}" for i in range(500)])})
    there = np.arange(100)
    counts = Counts.from_leaves(spine, [there], 10 + 3 * there)
    planned = plan(spine, Fraction(1, 400), resolve={"fdr": fdr})
    by_threshold: list[float] = []
    by_release: list[float] = []
    for number in range(400):
        leaves, _, evidence, _ = run(planned, counts, KEY.derive("run", number))
        assert evidence.laws[1] is not None
        seen = HighMeasurements(evidence.laws[1], 500, fdr)
        seen.add(evidence.levels[0].slots)
        high = np.flatnonzero(evidence.levels[0].slots >= seen.threshold())
        for shares, named in ((by_threshold, high), (by_release, leaves.nodes[0])):
            shares.append(float((named >= 100).mean()) if len(named) else 0.0)
    expected = float(fdr) * 400 / 500
    error = float(np.std(by_threshold)) / len(by_threshold) ** 0.5
    assert abs(np.mean(by_threshold) - expected) < 4 * error + 0.03 * expected  # discrete noise: a little less
    assert 0 < np.mean(by_release) <= np.mean(by_threshold)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("some", "resolve is 'some'"),
        ({}, "resolve is {}"),
        ({"fdr": 0.05, "sigmas": 3}, "resolve has fdr and sigmas, or neither: give one of them"),
        ({"fdr": 2}, "resolve: fdr is 2: give a share between 0 and 1"),
        ({"fdr": 1}, "resolve: fdr is 1: give a share"),
        ({"fdr": 0}, "resolve: fdr is 0, but must be greater than zero"),
        ({"sigmas": -1}, "resolve: sigmas is -1, but must be greater than zero"),
        ({"sigmas": "3"}, "resolve: sigmas is '3', which is not a number"),
        ({"rate": 0.1}, "resolve is {'rate': 0.1}"),
        (0.05, "resolve is 0.05"),
    ],
)
def test_what_is_no_resolution_is_refused_in_one_clear_message(given: object, message: str) -> None:
    with pytest.raises(PlanError) as refused:
        Resolution.of(given)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_resolution_is_read_exactly_and_described() -> None:
    assert Resolution.of({"fdr": 0.05}) == Resolution(fdr=Fraction(1, 20))
    assert Resolution.of({"sigmas": 3}) == Resolution(sigmas=Fraction(3))
    assert Resolution.of("full") is Resolution.of(None) is None
    for one in (Resolution(fdr=Fraction(1, 3)), Resolution(sigmas=Fraction(5, 2))):
        assert Resolution.of(one) is one
        assert Resolution.of(one.stated) == one
        assert one.describe() == {name: str(value) for name, value in one.stated.items()} | {"edition": "2"}
    with pytest.raises(PlanError, match="give one of them"):
        Resolution()
