"""Releases of group sizes: they add up, keep the total, repeat with their key, and come near the truth."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

import treetop as tt
from tests.everyday import measure_sizes
from treetop import GroupSizes, GroupUnit, Hierarchy, Loss
from treetop.addons.lab.mechanisms.registry import RoundedHistograms
from treetop.measure.measure import Measuring
from treetop.measure.vectors import measure_groups
from treetop.noise import Key, NoiseStream
from treetop.plan.group_unit import Form
from treetop.plan.region_histograms import Public, RegionHistograms, region_tree
from treetop.repair import Tree, relax_tree
from treetop.repair.groups import KnownTotals, repair_direct, round_direct

PLACES = Hierarchy.from_prefixes(
    [f"{state}{county}" for state in "abcd" for county in "12345"], [1], ["state", "county"]
)
PERSON = GroupUnit("person", event="join-leave")
DATA = Path(__file__).parents[2].parent / "shared" / "data"
KEY = Key(bytes(32))
HALF = Loss(epsilon=0.5)
FORMS: tuple[Form, Form] = ("direct", "cumulative")
SPLIT = {"size": 1, "place.state": 2, "place.county": 5}


def some_sizes(largest: int = 12, seed: int = 0) -> GroupSizes:
    rng = np.random.default_rng(seed)
    return GroupSizes(PLACES, rng.poisson(80 * 0.6 ** np.arange(largest + 1), (20, largest + 1)).astype(np.int64))


def plan_of(
    unit: GroupUnit = PERSON,
    loss: Loss = HALF,
    form: Form = "cumulative",
    repair: str = "exact",
    *,
    largest: int = 12,
    regions: Hierarchy = PLACES,
    public: Public = "total",
    split: Any = "uniform",
) -> tt.Plan:
    """A plan of any method, those of comparisons too."""
    about: Any = {"rows": "histogram", "number": 20, "form": form, "public": public, "split": split}
    plan = tt.group_plan(regions, largest, unit, loss, **about)
    return replace(plan, mechanism=RoundedHistograms(public, repair))


def truth(plan: tt.Plan, sizes: GroupSizes) -> NDArray[np.int64]:
    return region_tree(plan.regions).sum_up(sizes.number.T).T


def violations(counts: NDArray[np.int64], regions: Hierarchy = PLACES) -> int:
    """How many counts of regions with parts are not the sum of their parts."""
    tree = region_tree(regions)
    inner = tree.inner >= 0
    sums = np.add.reduceat(counts[1:], tree.child[:-1][inner] - 1, axis=0)
    return int(np.count_nonzero(sums != counts[inner]))


@pytest.mark.parametrize("loss", [Loss(epsilon=0.5), Loss(rho=0.05), Loss(epsilon=1, delta=1e-6)])
@pytest.mark.parametrize("form", ["direct", "cumulative"])
@pytest.mark.parametrize("event", ["join-leave", "move", "group"])
def test_an_exact_release_is_whole_adds_up_and_keeps_the_total(loss: Loss, form: Form, event: str) -> None:
    sizes = some_sizes()
    unit = GroupUnit("person", event)  # type: ignore[arg-type]
    counts = measure_sizes(plan_of(unit, loss, form, split=SPLIT), sizes)
    assert counts.dtype == np.int64 and counts.min() >= 0
    assert violations(counts) == 0
    for level in region_tree(PLACES).levels:
        assert counts[level].sum() == sizes.number.sum()


@pytest.mark.parametrize("form", ["direct", "cumulative"])
@pytest.mark.parametrize("repair", ["exact", "rounded", "joint"])
def test_the_same_key_gives_the_same_release_on_any_number_of_threads(form: Form, repair: str) -> None:
    sizes = some_sizes()
    plan = plan_of(form=form, repair=repair)
    one, two = measure_sizes(plan, sizes, KEY), measure_sizes(plan, sizes, KEY, threads=3)
    assert (one == two).all()
    assert (measure_sizes(plan, sizes) != one).any()


def test_other_data_and_other_plans_have_unrelated_noise() -> None:
    loss = Loss(epsilon=0.01)
    plan = plan_of(loss=loss, form="direct")
    sizes = some_sizes()
    moved = sizes.number.copy()
    moved[0, 1:3] += [1, -1]
    runs = [(plan, sizes), (plan, GroupSizes(PLACES, moved)),
            (plan_of(GroupUnit("voter", "join-leave"), loss, "direct"), sizes)]  # fmt: skip
    noise = [measure_sizes(run, own, KEY) - truth(run, own) for run, own in runs]
    for a, b in itertools.combinations(noise, 2):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.3


@pytest.mark.parametrize("form", ["direct", "cumulative"])
def test_measurements_are_the_counts_plus_the_noise_of_their_level(form: Form) -> None:
    plan = plan_of(loss=Loss(epsilon=1), form=form, split=SPLIT)
    sizes = some_sizes()
    measured, known = measure_groups(plan, sizes, Measuring(plan.workload, KEY))
    exact = truth(plan, sizes)
    exact = exact.cumsum(axis=1) if form == "cumulative" else exact
    assert known.total == sizes.number.sum()
    for depth, (level, own) in enumerate(zip(plan.levels[1:], region_tree(PLACES).levels, strict=True)):
        noise = np.empty(level.nodes, np.int64)
        NoiseStream(level.law, KEY.derive("noise").derive("level", depth)).fill(noise, 0)
        assert (measured[own] - exact[own] == noise.reshape(-1, 13)).all()


@pytest.mark.parametrize(
    ("form", "repair", "public"),
    [
        ("direct", "exact", "total"),
        ("direct", "rounded", "total"),
        ("cumulative", "exact", "total"),
        ("cumulative", "rounded", "total"),
        ("cumulative", "joint", "total"),
        ("cumulative", "joint", "regions"),
        ("direct", "joint", "regions"),
    ],
)
def test_without_noise_the_truth_comes_back(form: Form, repair: str, public: Public) -> None:
    sizes = some_sizes()
    plan = plan_of(loss=Loss(epsilon=1_000), form=form, repair=repair, public=public)
    assert (measure_sizes(plan, sizes) == truth(plan, sizes)).all()


@pytest.mark.parametrize("form", ["direct", "cumulative"])
@pytest.mark.parametrize("loss", [Loss(epsilon=0.3), Loss(rho=0.02)])
def test_a_joint_release_keeps_the_number_of_groups_of_every_region_at_every_level(form: Form, loss: Loss) -> None:
    sizes = some_sizes()
    plan = plan_of(PERSON, loss, form, "joint", split=SPLIT, public="regions")
    counts = measure_sizes(plan, sizes)
    assert counts.dtype == np.int64 and counts.min() >= 0 and violations(counts) == 0
    assert (counts.sum(axis=1) == truth(plan, sizes).sum(axis=1)).all()


def test_rounding_may_break_sums_which_exact_repair_does_not() -> None:
    sizes = some_sizes()
    broken = [violations(measure_sizes(plan_of(form=form, repair="rounded"), sizes, KEY)) for form in FORMS]
    assert min(broken) > 0


def test_the_rounded_release_is_the_relaxation_rounded() -> None:
    plan = plan_of(form="direct", repair="rounded")
    tree, weights = region_tree(PLACES), RegionHistograms.of(plan).weights(plan)
    measured, known = measure_groups(plan, some_sizes(), Measuring(plan.workload, KEY))
    rounded = round_direct(tree, measured, weights, known, KEY, 1)
    real = relax_tree(tree, measured.T, weights, known.total).T
    assert np.abs(rounded - real).max() <= 0.5


def direct_by_milp(tree: Tree, y: NDArray[np.int64], known: KnownTotals, most: int) -> int:
    """The least cost of direct sizes by a mixed-integer program: a 0/1 variable for every unit of every count."""
    nodes, sizes = y.shape
    index = np.arange(nodes * sizes * most).reshape(nodes, sizes, most)
    slopes = 2 * (np.arange(most) - y[..., None]) + 1
    rows = [sparse.lil_matrix((1, index.size))]
    rows[0][0, index[0].ravel()] = 1
    for v, s in itertools.product(range(nodes), range(sizes)):
        if tree.inner[v] >= 0:
            rows.append(sparse.lil_matrix((1, index.size)))
            rows[-1][0, index[v, s]] = -1
            rows[-1][0, index[tree.child[v] : tree.child[v + 1], s].ravel()] = 1
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
        plan = plan_of(loss=Loss(epsilon=2), form="direct", largest=2, regions=places)
        key = Key(rng.bytes(32))
        measured, known = measure_groups(plan, sizes, Measuring(plan.workload, key))
        weights = RegionHistograms.of(plan).weights(plan)
        released = repair_direct(region_tree(places), measured, weights, known, KEY, 1)
        assert int(((released - measured) ** 2).sum()) == direct_by_milp(
            region_tree(places), measured, known, known.total
        )


def test_cumulative_releases_err_less_than_direct_ones() -> None:
    """As in the paper's table 1, on every level: half the noise, and sequences that must rise."""
    sizes = some_sizes(largest=60)
    errors = {}
    for form in FORMS:
        plan = plan_of(loss=Loss(epsilon=0.2), form=form, largest=60)
        exact = truth(plan, sizes)
        runs = [measure_sizes(plan, sizes, Key(bytes([i] * 32))) for i in range(10)]
        errors[form] = np.mean(
            [[np.abs(run - exact)[own].sum() for own in region_tree(PLACES).levels] for run in runs], axis=0
        )
    assert (errors["cumulative"] < 0.8 * errors["direct"]).all()


def test_households_of_the_united_states_by_size() -> None:
    """Census 2000: 105,480,101 households of 1 to 7 or more people, in 51 states and 3,141 counties."""
    source = DATA / "census_us2000_household_size" / "household_size_county.parquet"
    if not source.exists():
        pytest.skip(f"the real table is not here: {source} does not exist")
    rows = pq.read_table(source, filters=[("race", "=", "total")]).to_pydict()
    counties = Hierarchy.from_prefixes(sorted(set(rows["county"])), [2], ["state", "county"])
    sizes = GroupSizes.from_rows(counties, rows["county"], rows["size"], rows["households"], largest=7)
    errors = {}
    for form in FORMS:
        plan = plan_of(loss=Loss(epsilon=0.1), form=form, largest=7, regions=counties)
        counts = measure_sizes(plan, sizes, KEY, threads=2)
        assert violations(counts, counties) == 0 and counts[region_tree(counties).levels[-1]].sum() == 105_480_101
        errors[form] = int(np.abs(counts - truth(plan, sizes)).sum())
    assert errors["cumulative"] < errors["direct"] < 0.02 * 3 * 105_480_101
