"""Intervals of sums: they hold as often as they say, for boxes of every kind, and agree with those of nodes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import treetop as tt
from treetop.measure.measure import NOTHING
from treetop.release.intervals._sums import box_intervals
from treetop.release.intervals.boxes import Boxes
from treetop.release.intervals.nodes import Interval, NoiseReach

Ints = NDArray[np.int64]

# Only children at the end of a branch (CXa), in its middle (AY > AYa), and of the other attribute (m > m1).
PLACE = tt.Hierarchy.from_prefixes(
    ["AXa", "AXb", "AYa", "BXa", "BYa", "BYb", "BYc", "CXa"], widths=[1, 2], levels=["region", "state", "town"]
)
SEX = tt.Hierarchy.from_prefixes(["f1", "f2", "m1"], widths=[1], levels=["sex", "age"])
SPINE = tt.Spine(["place.region", "sex.sex", "place.state", "sex.age", "place.town"], {"place": PLACE, "sex": SEX})
TRUTH = np.array([[80, 0, 0], [5, 0, 0], [0, 3, 0], [0, 0, 4], [0, 0, 1], [0, 0, 0], [0, 11, 0], [0, 9, 2]])
MERGED = tt.Spine(["place.region", "sex.sex * place.state", "place.town * sex.age"], {"place": PLACE, "sex": SEX})
ALPHA = 0.1


def table(truth: Ints = TRUTH) -> pa.Table:
    place, sex = np.nonzero(truth >= 0)
    return pa.table(
        {
            "place": np.array(PLACE.codes[-1].to_pylist())[place],
            "sex": np.array(SEX.codes[-1].to_pylist())[sex],
            "count": truth.ravel(),
        }
    )


def planned(loss: tt.Loss, neighbours: str = "replace", spine: tt.Spine = SPINE, **more: object) -> tt.Plan:
    unit = tt.Unit("trip", neighbours=neighbours)  # type: ignore[arg-type]
    return tt.Plan(spine, unit, loss, confidence=1 - ALPHA, **more, margins="none")  # type: ignore[arg-type]


def released(plan: tt.Plan, run: int = 0, truth: Ints = TRUTH) -> tt.Release:
    return tt.make_release(
        plan, table(truth), tt.RunOptions(count="count", testing_key=run.to_bytes(32, "big"), threads=1)
    )


def forgetful(release: tt.Release) -> tt.Release:
    """The release as it would be if the finer levels had very many public nodes."""
    evidence = release.evidence
    assert evidence is not None
    levels = [replace(level, slots=level.slots[:0]) if at > 1 else level for at, level in enumerate(evidence.levels)]
    return replace(release, evidence=replace(evidence, levels=tuple(levels)))


def boxes_at(*depths: int) -> Boxes:
    """Every box whose nodes are so many levels down."""
    first = [
        [0] if depth == 0 else np.unique(tree.ancestors(depth - 1), return_index=True)[1].tolist()
        for tree, depth in zip(SPINE.trees, depths, strict=True)
    ]
    return Boxes(SPINE, depths, np.array(list(itertools.product(*first)), np.int64).T)


def true_counts(boxes: Boxes, truth: Ints = TRUTH) -> Ints:
    counts = []
    for leaf in boxes.leaf.T:
        inside = []
        for tree, depth, one in zip(SPINE.trees, boxes.depth, leaf, strict=True):
            ancestor = np.zeros(tree.sizes[-1], np.int64) if depth == 0 else tree.ancestors(depth - 1)
            inside.append(np.flatnonzero(ancestor == ancestor[one]))
        counts.append(truth[np.ix_(*inside)].sum())
    return np.array(counts)


def codes_of(boxes: Boxes) -> Iterator[dict[str, str]]:
    """The conditions that ask for each box."""
    for leaf in boxes.leaf.T:
        asked = {}
        for name, tree, depth, one in zip(SPINE.attributes, SPINE.trees, boxes.depth, leaf, strict=True):
            if depth > 0:
                code = tree.codes[depth - 1][int(tree.ancestors(depth - 1)[one])].as_py()
                asked[f"{name}.{tree.levels[depth - 1]}"] = code
        yield asked


KINDS = {
    "gaussian": planned(tt.Loss(rho=Fraction(1, 8))),
    "several laws": planned(tt.Loss(rho=Fraction(1, 8)), split={"place.region": 1, "sex.sex": 4, "place.state": 2,
                                                                "sex.age": 1, "place.town": 6}),
    "total measured": planned(tt.Loss(rho=Fraction(1, 2)), "add-remove"),
    "little noise": planned(tt.Loss(rho=8)),
    "pure": planned(tt.Loss(epsilon=2), "add-remove"),
    "unresolved": planned(tt.Loss(rho=Fraction(1, 8)), resolve={"sigmas": 2}),
    "tested together": planned(tt.Loss(rho=Fraction(1, 8)), resolve={"fdr": 0.4}),
    "merged": planned(tt.Loss(rho=Fraction(1, 8)), spine=MERGED),
    "merged, unresolved": planned(tt.Loss(rho=Fraction(1, 8)), spine=MERGED, resolve={"sigmas": 2}),
}  # fmt: skip
EVERY = [boxes_at(*depths) for depths in itertools.product(range(4), range(3))]
RUNS = 100


@pytest.mark.parametrize("kind", KINDS)
def test_boxes_of_every_depth_are_missed_no_more_often_than_said(kind: str) -> None:
    chosen = [boxes_at(*depths) for depths in ((0, 2), (1, 2), (2, 0), (3, 2))]
    truths = [true_counts(boxes) for boxes in chosen]
    chosen = [replace(boxes, spine=KINDS[kind].spine) for boxes in chosen]
    missed = []
    for run in range(RUNS):
        release = released(KINDS[kind], run)
        if run % 2:
            release = forgetful(release)
        for boxes, truth in zip(chosen, truths, strict=True):
            lower, upper = box_intervals(release.measured, boxes, 1 - ALPHA)
            missed.append((truth < lower) | (truth > upper))
            assert (lower >= 0).all() and (lower <= upper).all()
    every = np.concatenate(missed).reshape(RUNS, -1).sum(axis=0)
    assert every.max() <= stats.binom.ppf(1 - 1e-6, RUNS, ALPHA)
    assert every.mean() <= ALPHA * RUNS


def test_a_box_that_is_one_node_has_the_interval_of_that_node() -> None:
    release = released(KINDS["gaussian"])
    names = list(SPINE.attributes)
    for index, found in enumerate(release.intervals):
        level = release.tree.at(index)
        for row in range(len(level)):
            codes = {
                f"{name}.{tree.levels[depth - 1]}": tree.codes[depth - 1][int(column[row])].as_py()
                for name, tree, depth, column in zip(names, SPINE.trees, SPINE.depths(index), level.nodes, strict=True)
                if depth > 0
            }
            assert release.interval(**codes) == (found.lower[row], found.upper[row])
            assert release.where(**codes).interval(0.5) == release.interval(0.5, **codes)


def test_a_node_that_is_not_released_has_the_bound_that_its_deepest_released_ancestor_keeps() -> None:
    release = released(KINDS["little noise"], run=1)
    assert release.query(place="BX", sex="f") == 0 < release.query(**{"place.region": "B", "sex.sex": "f"})
    row = release.tree.at(2).nodes.T.tolist().index([1, 0])
    assert release.interval(place="BX", sex="f") == (0, release.intervals[2].absent[row])
    assert release.interval(**{"place.town": "BXa", "sex.age": "f2"}) == (0, release.intervals[2].absent[row])


def test_conditions_that_exclude_each_other_count_nothing_for_certain() -> None:
    release = released(KINDS["pure"])
    assert release.interval(**{"place.region": "A", "place.town": "BXa"}) == Interval(0, 0)
    assert release.where(place="A").interval(place="B") == Interval(0, 0)


def test_the_sum_of_what_one_level_measured_is_off_by_independent_draws() -> None:
    plan = KINDS["gaussian"]
    release = released(plan, truth=TRUTH + 100)  # everything is released
    value = release.measurements.levels[1]
    law = plan.levels[2].law
    assert value is not None and law is not None
    middle = int(value.value[::2].sum())  # women in each of three regions
    found = release.interval(sex="f")
    from treetop.noise.sum_noise import sum_margin

    risk = Fraction(str(ALPHA)) / 2
    assert found.lower == middle - sum_margin(law, 3, risk)
    assert found.upper == middle + sum_margin(law, 3, risk * Fraction(9, 10))


def test_what_was_dropped_on_the_way_widens_the_upper_end_only() -> None:
    truth = np.zeros_like(TRUTH)
    truth[0, 0] = 500
    release = released(KINDS["gaussian"], run=1, truth=truth)
    assert len(release.tree.at(1)) < 3
    found = release.interval(sex="f")
    law = KINDS["gaussian"].levels[2].law
    assert law is not None
    assert found.lower > 480
    assert found.upper == 500  # the total is public: no sum exceeds it
    assert 0 < release.interval(sex="f2").upper < 500


@pytest.mark.parametrize("kind", ["gaussian", "pure", "unresolved"])
@pytest.mark.parametrize("keeps", [True, False])
def test_rows_of_a_table_have_the_intervals_of_their_queries(kind: str, keeps: bool) -> None:
    release = released(KINDS[kind])
    release = release if keeps else forgetful(release)
    for boxes in EVERY[1:]:
        levels = [
            f"{name}.{tree.levels[depth - 1]}"
            for name, tree, depth in zip(SPINE.attributes, SPINE.trees, boxes.depth, strict=True)
            if depth > 0
        ]
        for row in release.table(levels).to_pylist():
            codes = {level: row[level] for level in levels}
            assert release.interval(**codes) == (row["lower"], row["upper"]), codes
        for row in release.where(place="B").table(levels, confidence=0.5).to_pylist():
            codes = {level: row[level] for level in levels}
            assert release.where(place="B").interval(0.5, **codes) == (row["lower"], row["upper"]), codes
    lower, upper = box_intervals(release.measured, EVERY[5], 1 - ALPHA)
    for number, codes in enumerate(codes_of(EVERY[5])):
        assert release.interval(**codes) == (lower[number], upper[number])


def test_a_table_with_very_many_rows_has_no_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    release = released(KINDS["gaussian"])
    monkeypatch.setattr("treetop.release.selection.MOST_ROWS", 2)
    assert release.table("sex.sex").column_names == ["sex.sex", "count", "lower", "upper"]
    assert release.table("sex.sex", intervals=False).column_names == ["sex.sex", "count"]
    assert release.table(["place.region", "sex.sex"]).column_names == ["place.region", "sex.sex", "count"]


def test_a_release_of_nothing_bounds_every_count_by_the_measured_total() -> None:
    nothing = np.zeros_like(TRUTH)
    assert released(KINDS["gaussian"], truth=nothing).interval(sex="f") == (0, 0)
    plan = KINDS["total measured"]
    law = plan.levels[0].law
    assert law is not None
    for run in range(20):
        release = released(plan, run, nothing)
        if release.total == 0:
            break
    assert release.total == 0 and release.evidence is not None and release.evidence.total is not None
    expected = max(release.evidence.total + law.quantile(1 - Fraction(str(ALPHA))), 0)
    assert release.interval() == release.interval(place="AX", sex="m") == (0, expected)


def test_intervals_of_sums_survive_saving_and_loading(tmp_path: object) -> None:
    from pathlib import Path

    release = released(KINDS["unresolved"])
    release.save(Path(str(tmp_path)) / "release")
    loaded = tt.Release.load(Path(str(tmp_path)) / "release")
    assert loaded.table("sex.age").equals(release.table("sex.age"))
    assert loaded.interval(0.8, sex="f2") == release.interval(0.8, sex="f2")


def test_what_is_unresolved_and_only_partly_asked_for_is_told() -> None:
    release = released(KINDS["unresolved"])
    assert release.left is not None and release.unresolved_total > 0
    assert release.where().partly_unresolved == 0
    for codes in codes_of(boxes_at(3, 2)):
        chosen = release.where(**codes)
        meeting = 0
        for row in release.unresolved().to_pylist():
            place, sex = codes["place.town"], codes["sex.age"]
            meeting += row["count"] * (place.startswith(row["place"] or "") and sex.startswith(row["sex"] or ""))
        assert chosen.partly_unresolved + chosen.unresolved_total == meeting


def test_a_release_without_intervals_has_none_of_sums() -> None:
    plan = tt.Plan(SPINE, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1), confidence=None, margins="none")
    release = released(plan)
    assert release.table("sex.sex").column_names == ["sex.sex", "count"]
    with pytest.raises(tt.TreetopError, match="no intervals"):
        release.interval(sex="f")
    with pytest.raises(tt.TreetopError, match="confidence is 1.5"):
        released(KINDS["pure"]).interval(1.5)


@settings(max_examples=25, deadline=None)
@given(
    epsilon=st.fractions(Fraction(1, 20), 4, max_denominator=20),
    pure=st.booleans(),
    depths=st.sampled_from([boxes.depth for boxes in EVERY]),
)
def test_twice_the_epsilon_never_widens_an_interval(epsilon: Fraction, pure: bool, depths: tuple[int, int]) -> None:
    """The same measurements far above zero, so that nothing is dropped or clipped, with the noise of either epsilon."""
    widths, laws = [], []
    release = released(planned(tt.Loss(epsilon=50)), truth=TRUTH + 10**6)
    assert release.evidence is not None
    assert all((level.highest == NOTHING).all() for level in release.evidence.levels)
    for factor in (1, 2):
        loss = (
            tt.Loss(epsilon=factor * epsilon) if pure else tt.Loss(epsilon=factor * epsilon, delta=Fraction(1, 10**6))
        )
        laws.append(tuple(level.law if level.is_measured else None for level in planned(loss).levels))
        other = replace(release, evidence=replace(release.evidence, laws=laws[-1]))
        lower, upper = box_intervals(other.measured, boxes_at(*depths), 0.95)
        assert (lower > 0).all()
        widths.append(upper - lower)
    assert (widths[1] <= widths[0]).all()
    for before, after in zip(*laws, strict=True):
        one, other_margins = (NoiseReach.of(law, Fraction(1, 20), 5) for law in (before, after))
        assert other_margins.own <= one.own and other_margins.above <= one.above
