"""Noise intervals: exact on small trees, for released nodes and for what is absent."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import treetop as tt
from treetop.measure.measure import NOTHING
from treetop.noise import DiscreteGaussian, Law
from treetop.release.intervals.nodes import OWN, NoiseReach

PLACE = tt.Hierarchy.from_prefixes(["AX", "AY", "AZ", "BX", "CX", "CY"], widths=[1], levels=["state", "county"])
SPINE = tt.Spine(["place.state", "place.county"], {"place": PLACE})
CODES = np.array(PLACE.codes[-1].to_pylist())
ALPHA = Fraction(1, 10)


def plan(rho: Fraction, neighbours: str = "replace", **more: object) -> tt.Plan:
    unit = tt.Unit("trip", neighbours=neighbours)  # type: ignore[arg-type]
    return tt.Plan(SPINE, unit, tt.Loss(rho=rho), confidence=float(1 - ALPHA), **more)  # type: ignore[arg-type]


def released(planned: tt.Plan, leaves: list[int], run: int = 0) -> tt.Release:
    table = pa.table({"place": np.repeat(CODES, leaves)})
    return tt.make_release(planned, table, tt.RunOptions(testing_key=run.to_bytes(32, "big")))


def test_a_released_node_lies_within_the_exact_quantile_of_its_noise() -> None:
    planned = plan(Fraction(1, 10))
    release = released(planned, [50, 40, 0, 30, 20, 0])
    root, states, counties = release.intervals
    assert (root.lower.tolist(), root.upper.tolist()) == ([140], [140])
    assert release.evidence is not None
    for level, found, seen in zip(planned.levels[1:], (states, counties), release.evidence.levels, strict=True):
        assert level.law is not None
        margin = level.law.margin(OWN * ALPHA)
        own = seen.measured != NOTHING
        assert own.any()
        assert (found.upper[own] <= seen.measured[own] + margin).all()
        assert np.array_equal(found.lower[own], np.clip(seen.measured[own] - margin, 0, found.upper[own]))
    only = release.table()["place"].to_pylist().index("BX")  # the only county of B
    assert counties.lower[only] == states.lower[1]
    assert counties.upper[only] == states.upper[1]
    assert release.evidence.levels[1].measured[only] == NOTHING


def enumerate_misses(law: Law, truth: int, ancestors: int) -> Fraction | float:
    """The exact chance that the interval of a node misses, when all its ancestors have its count and the same noise."""
    margins = NoiseReach.of(law, ALPHA, ancestors + 1)
    mass = np.array([law.mass(k) for k in range(-60, 61)])
    below = float(mass[: 60 - margins.above].sum())  # an ancestor measured so low that its upper bound fails
    own = float(mass[np.abs(np.arange(-60, 61)) > margins.own].sum())
    return 1 - (1 - own) * (1 - below) ** ancestors


@pytest.mark.parametrize("ancestors", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("variance", [Fraction(1), Fraction(4), Fraction(25)])
def test_an_interval_misses_at_most_as_often_as_it_says_even_where_all_ancestors_are_as_large(
    variance: Fraction, ancestors: int
) -> None:
    assert enumerate_misses(DiscreteGaussian(variance), 50, ancestors) <= ALPHA


def test_what_is_not_released_is_bounded_by_the_highest_measurement_beside_it() -> None:
    planned = plan(Fraction(1, 4))
    release = released(planned, [60, 0, 0, 0, 0, 0])
    assert release.evidence is not None
    law = planned.levels[1].law
    assert law is not None
    highest = int(release.evidence.levels[0].highest[0])
    assert highest != NOTHING
    margins = NoiseReach.of(law, ALPHA, 2)
    assert int(release.intervals[0].absent[0]) == max(min(highest + margins.above, 60), 0)


def test_a_node_that_may_go_missing_at_any_level_is_missed_no_more_often_than_said() -> None:
    yes_no = tt.Hierarchy.flat(["n", "y"])
    names = list("abcdef")
    spine = tt.Spine(names, dict.fromkeys(names, yes_no))
    planned = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(epsilon=6), confidence=float(1 - ALPHA))
    codes = dict.fromkeys(names, "n")
    truth = 2
    table = pa.table({name: ["n"] * truth + ["y"] * 100 for name in names})
    runs, missed = 300, 0
    for run in range(runs):
        lower, upper = tt.make_release(planned, table, tt.RunOptions(testing_key=run.to_bytes(32, "big"))).interval(
            **codes
        )
        missed += not lower <= truth <= upper
    assert missed <= stats.binom.ppf(1 - 1e-6, runs, float(ALPHA))


def test_intervals_survive_saving_and_loading(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path)) / "release"
    release = released(plan(Fraction(1, 10), "add-remove"), [50, 40, 0, 30, 20, 0])
    release.save(folder)
    loaded = tt.Release.load(folder)
    assert loaded.confidence == release.confidence == 0.9
    assert loaded.table().equals(release.table())
    for one, other in zip(loaded.intervals, release.intervals, strict=True):
        assert np.array_equal(one.absent, other.absent)
    assert loaded.measurements.table().equals(release.measurements.table())


def test_a_plan_may_do_without_intervals() -> None:
    unit = tt.Unit("trip", neighbours="replace")
    release = tt.make_release(tt.Plan(SPINE, unit, tt.Loss(rho=1), confidence=None), pa.table({"place": CODES}))
    assert release.table().column_names == ["place", "count"]
    with pytest.raises(tt.TreetopError, match="intervals off"):
        release.measurements  # noqa: B018
