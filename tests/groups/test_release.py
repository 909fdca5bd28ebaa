"""Releases of group sizes: they add up, keep the total, repeat with their key, and come near the truth."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from treetop import GroupSizes, GroupUnit, Hierarchy, Loss
from treetop.measure.measure import Measuring
from treetop.measure.vectors import measure_groups
from treetop.noise import Key, NoiseStream
from treetop.plan.groups.plan import GroupPlan, GroupRepair, Public
from treetop.plan.groups.unit import Form
from treetop.publishing.releasing import release_groups
from treetop.repair import relax_tree
from treetop.repair.groups import KnownTotals, repair_direct, round_direct

PLACES = Hierarchy.from_prefixes(
    [f"{state}{county}" for state in "abcd" for county in "12345"], [1], ["state", "county"]
)
PERSON = GroupUnit("person", event="join-leave")
DATA = Path(__file__).parents[2].parent / "shared" / "data"
KEY = Key(bytes(32))


def some_sizes(largest: int = 12, seed: int = 0) -> GroupSizes:
    rng = np.random.default_rng(seed)
    return GroupSizes(PLACES, rng.poisson(80 * 0.6 ** np.arange(largest + 1), (20, largest + 1)).astype(np.int64))


def truth(plan: GroupPlan, sizes: GroupSizes) -> NDArray[np.int64]:
    return plan.tree.sum_up(sizes.number.T).T


@pytest.mark.parametrize("loss", [Loss(epsilon=0.5), Loss(rho=0.05), Loss(epsilon=1, delta=1e-6)])
@pytest.mark.parametrize("form", ["direct", "cumulative"])
@pytest.mark.parametrize("event", ["join-leave", "move", "group"])
def test_an_exact_release_is_whole_adds_up_and_keeps_the_total(loss: Loss, form: Form, event: str) -> None:
    sizes = some_sizes()
    unit = GroupUnit("person", event)  # type: ignore[arg-type]
    plan = GroupPlan(PLACES, 12, unit, loss, form, split={"total": 1, "state": 2, "county": 5})
    release = release_groups(plan, sizes)
    assert release.counts.dtype == np.int64 and release.counts.min() >= 0
    assert release.violations == 0
    for level in plan.levels:
        assert release.level(level.name).sum() == sizes.number.sum()


@pytest.mark.parametrize("form", ["direct", "cumulative"])
@pytest.mark.parametrize("repair", ["exact", "rounded", "joint"])
def test_the_same_key_gives_the_same_release_on_any_number_of_threads(form: Form, repair: GroupRepair) -> None:
    sizes = some_sizes()
    plan = GroupPlan(PLACES, 12, PERSON, Loss(epsilon=0.5), form, repair)
    one, two = release_groups(plan, sizes, KEY), release_groups(plan, sizes, KEY, threads=3)
    assert (one.counts == two.counts).all()
    assert (release_groups(plan, sizes).counts != one.counts).any()


def test_other_data_and_other_plans_have_unrelated_noise() -> None:
    plan = GroupPlan(PLACES, 12, PERSON, Loss(epsilon=0.01), "direct")
    sizes = some_sizes()
    moved = sizes.number.copy()
    moved[0, 1:3] += [1, -1]
    runs = [(plan, sizes), (plan, GroupSizes(PLACES, moved)),
            (GroupPlan(PLACES, 12, GroupUnit("voter", "join-leave"), Loss(epsilon=0.01), "direct"), sizes)]  # fmt: skip
    noise = [release_groups(run, own, KEY).counts - truth(run, own) for run, own in runs]
    for a, b in itertools.combinations(noise, 2):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.3


@pytest.mark.parametrize("form", ["direct", "cumulative"])
def test_measurements_are_the_counts_plus_the_noise_of_their_level(form: Form) -> None:
    plan = GroupPlan(PLACES, 12, PERSON, Loss(epsilon=1), form, split={"total": 1, "state": 2, "county": 5})
    sizes = some_sizes()
    measured, known = measure_groups(plan, sizes, Measuring(plan.workload, KEY))
    exact = truth(plan, sizes)
    exact = exact.cumsum(axis=1) if form == "cumulative" else exact
    assert known.total == sizes.number.sum()
    for depth, (level, own) in enumerate(zip(plan.levels, plan.tree.levels, strict=True)):
        noise = np.empty(level.nodes * 13, np.int64)
        NoiseStream(level.law, KEY.derive("noise").derive("level", depth)).fill(noise, 0)
        assert (measured[own] - exact[own] == noise.reshape(level.nodes, 13)).all()


@pytest.mark.parametrize(
    ("form", "repair", "public"),
    [
        ("direct", "exact", "total"),
        ("direct", "rounded", "total"),
        ("cumulative", "exact", "total"),
        ("cumulative", "exact", "regions"),
        ("cumulative", "rounded", "total"),
        ("cumulative", "joint", "total"),
        ("cumulative", "joint", "regions"),
        ("direct", "joint", "regions"),
    ],
)
def test_without_noise_the_truth_comes_back(form: Form, repair: GroupRepair, public: Public) -> None:
    sizes = some_sizes()
    plan = GroupPlan(PLACES, 12, PERSON, Loss(epsilon=1_000), form, repair, public=public)
    assert (release_groups(plan, sizes).counts == truth(plan, sizes)).all()


@pytest.mark.parametrize("form", ["direct", "cumulative"])
@pytest.mark.parametrize("loss", [Loss(epsilon=0.3), Loss(rho=0.02)])
def test_a_joint_release_keeps_the_number_of_groups_of_every_region_at_every_level(form: Form, loss: Loss) -> None:
    sizes = some_sizes()
    split = {"total": 1, "state": 2, "county": 5}
    plan = GroupPlan(PLACES, 12, PERSON, loss, form, "joint", split=split, public="regions")
    release = release_groups(plan, sizes)
    assert release.counts.dtype == np.int64 and release.counts.min() >= 0 and release.violations == 0
    assert (release.counts.sum(axis=1) == truth(plan, sizes).sum(axis=1)).all()


def test_rounding_may_break_sums_which_exact_repair_does_not() -> None:
    sizes = some_sizes()
    broken = [
        release_groups(GroupPlan(PLACES, 12, PERSON, Loss(epsilon=0.5), form, "rounded"), sizes, KEY).violations
        for form in ("direct", "cumulative")
    ]
    assert min(broken) > 0


def test_the_rounded_release_is_the_relaxation_rounded() -> None:
    plan = GroupPlan(PLACES, 12, PERSON, Loss(epsilon=0.5), "direct", "rounded")
    measured, known = measure_groups(plan, some_sizes(), Measuring(plan.workload, KEY))
    rounded = round_direct(plan.tree, measured, plan.weights, known, KEY, 1)
    real = relax_tree(plan.tree, measured.T, plan.weights, known.total).T
    assert np.abs(rounded - real).max() <= 0.5


def direct_by_milp(plan: GroupPlan, y: NDArray[np.int64], known: KnownTotals, most: int) -> int:
    """The least cost of direct sizes by a mixed-integer program: a 0/1 variable for every unit of every count."""
    nodes, sizes = y.shape
    index = np.arange(nodes * sizes * most).reshape(nodes, sizes, most)
    slopes = 2 * (np.arange(most) - y[..., None]) + 1
    rows = [sparse.lil_matrix((1, index.size))]
    rows[0][0, index[0].ravel()] = 1
    for v, s in itertools.product(range(nodes), range(sizes)):
        if plan.tree.inner[v] >= 0:
            rows.append(sparse.lil_matrix((1, index.size)))
            rows[-1][0, index[v, s]] = -1
            rows[-1][0, index[plan.tree.child[v] : plan.tree.child[v + 1], s].ravel()] = 1
    bound = np.array([known.total, *[0] * (len(rows) - 1)])
    found = milp(slopes.ravel(), integrality=np.ones(index.size), bounds=Bounds(0, 1),
                 constraints=LinearConstraint(sparse.vstack(rows).tocsr(), bound, bound))  # fmt: skip
    assert found.status == 0
    return round(float(found.fun)) + int((y**2).sum())


def test_the_direct_release_is_as_near_to_its_measurements_as_a_mixed_integer_program() -> None:
    places = Hierarchy.from_prefixes(["a1", "a2", "b1"], [1], ["state", "county"])
    rng = np.random.default_rng(4)
    for _ in range(8):
        sizes = GroupSizes(places, rng.integers(0, 3, (3, 3)).astype(np.int64))
        plan = GroupPlan(places, 2, PERSON, Loss(epsilon=2), "direct")
        key = Key(rng.bytes(32))
        measured, known = measure_groups(plan, sizes, Measuring(plan.workload, key))
        released = repair_direct(plan.tree, measured, plan.weights, known, KEY, 1)
        assert int(((released - measured) ** 2).sum()) == direct_by_milp(plan, measured, known, known.total)


def test_cumulative_releases_err_less_than_direct_ones() -> None:
    """As in the paper's table 1, on every level: half the noise, and sequences that must rise."""
    sizes = some_sizes(largest=60)
    errors = {}
    for form in ("direct", "cumulative"):
        plan = GroupPlan(PLACES, 60, PERSON, Loss(epsilon=0.2), form)
        exact = truth(plan, sizes)
        runs = [release_groups(plan, sizes, Key(bytes([i] * 32))).counts for i in range(10)]
        errors[form] = np.mean([[np.abs(run - exact)[own].sum() for own in plan.tree.levels] for run in runs], axis=0)
    assert (errors["cumulative"] < 0.8 * errors["direct"]).all()


def test_a_level_comes_as_a_table_of_what_is_not_zero() -> None:
    sizes = GroupSizes.from_rows(PLACES, ["a1", "d5"], [0, 7], [3, 2], largest=12)
    release = release_groups(GroupPlan(PLACES, 12, PERSON, Loss(epsilon=1_000)), sizes)
    assert release.table("state").to_pylist() == [
        {"region": "a", "size": 0, "groups": 3},
        {"region": "d", "size": 7, "groups": 2},
    ]
    assert release.table("total").to_pydict() == {"region": ["total"] * 2, "size": [0, 7], "groups": [3, 2]}


def test_households_of_the_united_states_by_size() -> None:
    """Census 2000: 105,480,101 households of 1 to 7 or more people, in 51 states and 3,141 counties."""
    source = DATA / "census_us2000_household_size" / "household_size_county.parquet"
    if not source.exists():
        pytest.skip(f"the real table is not here: {source} does not exist")
    rows = pq.read_table(source, filters=[("race", "=", "total")]).to_pydict()
    counties = Hierarchy.from_prefixes(sorted(set(rows["county"])), [2], ["state", "county"])
    sizes = GroupSizes.from_rows(counties, rows["county"], rows["size"], rows["households"], largest=7)
    errors = {}
    for form in ("direct", "cumulative"):
        plan = GroupPlan(counties, 7, PERSON, Loss(epsilon=0.1), form)
        release = release_groups(plan, sizes, KEY, threads=2)
        assert release.violations == 0 and release.level("county").sum() == 105_480_101
        errors[form] = int(np.abs(release.counts - truth(plan, sizes)).sum())
    assert errors["cumulative"] < errors["direct"] < 0.02 * 3 * 105_480_101
