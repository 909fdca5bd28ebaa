"""Intervals of group sizes: they hold the truth as often as they say, by size and for what is derived, and rise."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import treetop as tt
from treetop import GroupSizes, GroupTables, GroupUnit
from treetop.errors import QueryError
from treetop.noise import DiscreteGaussian, DiscreteLaplace
from treetop.noise.sum_noise import sum_margin, weighted_margin
from treetop.plan.group_unit import Form

PLACES = tt.Hierarchy.from_prefixes([f"{a}{b}" for a in "abc" for b in "1234"], [1], ["state", "county"])
LARGEST, CONFIDENCE, RUNS = 9, 0.8, 12


def twin(seed: int = 3) -> GroupSizes:
    """A made-up country: many small groups, few large ones, and some counties with hardly any."""
    rng = np.random.default_rng(seed)
    mean = rng.lognormal(2, 1.5, (12, 1)) * np.array([0.1, 1, 1.2, 0.6, 0.5, 0.2, 0.1, 0.05, 0.01, 0.01])
    return GroupSizes(PLACES, rng.poisson(mean + 0.3).astype(np.int64))


def plan(sizes: GroupSizes, form: Form, public: Any = "regions", **more: Any) -> tt.Plan:
    options = {"rows": "histogram", "number": int(sizes.number.sum()), "confidence": CONFIDENCE, **more}
    unit = GroupUnit("person", "join-leave")
    return tt.group_plan(PLACES, LARGEST, unit, tt.Loss(epsilon=0.6), form=form, public=public, **options)


def releases(form: Form, public: Any) -> list[tt.Release]:
    sizes = twin()
    made = plan(sizes, form, public)
    return [tt.make_release(made, sizes, tt.RunOptions(testing_key=bytes([run] * 32))) for run in range(RUNS)]


@pytest.mark.parametrize(
    ("form", "public"), [("cumulative", "regions"), ("cumulative", "total"), ("direct", "regions")]
)
def test_intervals_hold_the_truth_as_often_as_they_say_for_every_size_and_what_follows(form: Form, public: Any) -> None:
    """With fixed keys, so that nothing depends on chance. Bounds are clipped, so that they may hold more often."""
    truth = twin().number
    by_size = np.zeros(LARGEST + 1)
    derived = {"cumulative": 0.0, "people": 0.0, "mean-size": 0.0, "share-of-one": 0.0}
    people, groups = truth @ np.arange(LARGEST + 1), truth[:, 1:].sum(axis=1)
    expected = {"people": people, "mean-size": people / groups, "share-of-one": truth[:, 1] / groups}
    for release in releases(form, public):
        for size in range(LARGEST + 1):
            for leaf, code in enumerate(PLACES.codes[-1].to_pylist()):
                found = release.interval(**{"place.county": code, "size": str(size)})
                by_size[size] += (found.lower <= truth[leaf, size] <= found.upper) / (12 * RUNS)
        tables = GroupTables(release)
        there = [
            PLACES.codes[-1].to_pylist().index(code)
            for code in tables.people("place.county")["place.county"].to_pylist()
        ]
        for what, values in expected.items():
            table = tables.table(what, "place.county")
            # What is derived of an open class has an open end: a null, which is nan here.
            low, high = (table[name].to_numpy().astype(float) for name in ("lower", "upper"))
            high = np.where(np.isnan(high), np.inf, high)
            derived[what] += float(((low <= values[there]) & (values[there] <= high)).mean()) / RUNS
        table = tables.cumulative("place.county")
        low, high = (table[name].to_numpy().reshape(-1, LARGEST + 1) for name in ("lower", "upper"))
        true = truth.cumsum(axis=1)[there]
        derived["cumulative"] += float(((low <= true) & (true <= high)).all(axis=1).mean()) / RUNS
    four_deviations = 4 * float(np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / (12 * RUNS)))
    assert by_size.mean() > CONFIDENCE - 0.02 and by_size.min() > CONFIDENCE - four_deviations, by_size
    assert min(derived.values()) > CONFIDENCE - four_deviations, derived


def test_bounds_of_cumulative_tables_rise_and_end_at_the_public_number() -> None:
    for release in releases("cumulative", "regions")[:5]:
        for level in ("place.state", "place.county", None):
            table = GroupTables(release).cumulative(level)
            for name in ("lower", "groups", "upper"):
                rows = table[name].to_numpy().reshape(-1, LARGEST + 1)
                assert (np.diff(rows, axis=1) >= 0).all()
            ends = [
                table[name].to_numpy().reshape(-1, LARGEST + 1)[:, -1].tolist() for name in ("lower", "groups", "upper")
            ]
            assert ends[0] == ends[1] == ends[2]


def test_the_interval_of_a_count_is_the_exact_quantile_of_the_noise_in_it() -> None:
    release = releases("cumulative", "regions")[0]
    law, risk = DiscreteLaplace(Fraction(5)), Fraction(1, 10)
    (measured,) = [level for level in release.measurements.levels[-1:] if level is not None]
    value = measured.value.reshape(LARGEST + 1, 12)
    found = release.interval(**{"place.county": "a2", "size": "4"})
    difference, margin = int(value[4, 1] - value[3, 1]), sum_margin(law, 2, risk)
    most = int(twin().number[1].sum())
    assert (found.lower, found.upper) == tuple(np.clip([difference - margin, difference + margin], 0, most))
    last = release.interval(**{"place.county": "a2", "size": "9"})
    rest, alone = most - int(value[8, 1]), sum_margin(law, 1, risk)
    assert (last.lower, last.upper) == tuple(np.clip([rest - alone, rest + alone], 0, most))


def test_what_is_public_of_a_region_has_no_width_and_narrows_the_rest() -> None:
    known, unknown = (releases("cumulative", public)[0] for public in ("regions", "total"))
    sizes = twin()
    for leaf, code in enumerate(PLACES.codes[-1].to_pylist()):
        whole = known.interval(**{"place.county": code})
        assert whole.lower == whole.upper == sizes.number[leaf].sum() == known.query(**{"place.county": code})
    assert unknown.interval(**{"place.county": "a1"}).upper > unknown.interval(**{"place.county": "a1"}).lower


def test_intervals_are_kept_in_the_folder_and_come_at_any_confidence(tmp_path: Any) -> None:
    release = releases("direct", "regions")[0]
    release.save(tmp_path / "one", nodes=True)
    again = tt.Release.load(tmp_path / "one")
    assert again.table().equals(release.table()) and {"lower", "upper"} <= set(again.table().column_names)
    wide, narrow = (GroupTables(again).people(None, confidence) for confidence in (0.99, 0.5))
    assert wide["lower"][0].as_py() < narrow["lower"][0].as_py() <= narrow["people"][0].as_py()
    assert wide["upper"].to_pylist() == narrow["upper"].to_pylist() == [None]


def test_a_plan_may_leave_intervals_out() -> None:
    sizes = twin()
    release = tt.make_release(plan(sizes, "cumulative", confidence=None), sizes, tt.RunOptions(testing_key=bytes(32)))
    assert release.confidence is None and release.all_measured is None
    assert GroupTables(release).people().column_names == ["people"]
    assert "interval" not in release.card["accuracy"]


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(2)), DiscreteGaussian(Fraction(7))])
def test_weighted_sums_of_noise_stay_within_their_margin_as_often_as_promised(law: Any) -> None:
    """By the exact law of 3·N + N′, convolved."""
    reach = 200
    mass = np.exp(-float(law.rate) * np.abs(np.arange(-reach, reach + 1.0)) ** law.power)
    mass /= mass.sum()
    sums: dict[int, float] = {}
    for one, other in itertools.product(range(-60, 61), repeat=2):
        sums[3 * one + other] = sums.get(3 * one + other, 0.0) + mass[reach + one] * mass[reach + other]
    for risk in (Fraction(1, 10), Fraction(1, 1000)):
        margin = weighted_margin(law, (3, 1), risk)
        assert sum(chance for value, chance in sums.items() if value > margin) <= risk
        assert margin <= 4 * sum_margin(law, 1, risk / 2)
    assert weighted_margin(law, (1, 1, 1), Fraction(1, 20)) == sum_margin(law, 3, Fraction(1, 20))


def test_whole_places_of_a_selection_have_bounds_and_some_of_their_sizes_have_none() -> None:
    release = releases("cumulative", "regions")[0]
    places, sizes = release.where(place="a"), release.where(size="1")
    assert "lower" in GroupTables(places).people("place.county").column_names
    assert "lower" not in GroupTables(sizes).people("place.county").column_names
    with pytest.raises(QueryError, match="not derived from sizes"):
        GroupTables(release).table("medians")
