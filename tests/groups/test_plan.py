"""Plans for group sizes: the noise pays exactly the loss, and what does not fit is refused before data is read."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import treetop as tt
from tests.everyday import measure_sizes
from treetop import GroupSizes, GroupUnit, Hierarchy, Loss
from treetop._util.system import TooLarge
from treetop.errors import DataError, LossError, PlanError, UnitError
from treetop.measure.measure import Measuring
from treetop.measure.vectors import measure_groups
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key
from treetop.plan.group_unit import Event, Form, group_sensitivity
from treetop.plan.region_histograms import RegionHistograms, region_tree

from .events import neighbours

PLACES = Hierarchy.from_prefixes([f"{state}{county}" for state in "abc" for county in "123"], [1], ["state", "county"])
PERSON = GroupUnit("person", event="join-leave")


def plan(**changes: Any) -> tt.Plan:
    about = {"regions": PLACES, "largest": 6, "unit": PERSON, "loss": Loss(epsilon=1)}
    return tt.group_plan(**{**about, "rows": "histogram", "number": 20, **changes})


def weights(plan: tt.Plan) -> NDArray[np.int64]:
    return RegionHistograms.of(plan).weights(plan)


def laws(plan: tt.Plan) -> list[object]:
    return [level.law for level in plan.levels if level.is_measured]


def test_pure_noise_has_the_scales_of_the_paper() -> None:
    """2L/epsilon for direct sizes and L/epsilon for cumulative ones, on each of L levels."""
    assert laws(plan(form="direct", loss=Loss(epsilon=0.1))) == [DiscreteLaplace(Fraction(60))] * 3
    assert laws(plan(form="cumulative", loss=Loss(epsilon=0.1))) == [DiscreteLaplace(Fraction(30))] * 3


def test_gaussian_noise_has_the_variance_of_the_squared_sensitivity() -> None:
    assert laws(plan(form="direct", loss=Loss(rho=0.5))) == [DiscreteGaussian(Fraction(6))] * 3
    assert laws(plan(form="cumulative", loss=Loss(rho=0.5))) == [DiscreteGaussian(Fraction(3))] * 3
    moved = GroupUnit("person", event="move")
    assert laws(plan(form="direct", loss=Loss(rho=0.5), unit=moved)) == [DiscreteGaussian(Fraction(18))] * 3


@pytest.mark.parametrize("loss", [Loss(epsilon=0.3), Loss(rho=0.2), Loss(epsilon=1, delta=1e-8)])
@pytest.mark.parametrize("form", ["direct", "cumulative"])
@pytest.mark.parametrize("split", ["uniform", {"size": 1, "place.state": 3, "place.county": 16}])
def test_the_noise_costs_exactly_the_loss(loss: Loss, form: Form, split: Any) -> None:
    made = plan(loss=loss, form=form, split=split)
    assert made.spent == loss.budget
    assert sum(level.share for level in made.levels) == 1


@pytest.mark.parametrize("form", ["direct", "cumulative"])
@pytest.mark.parametrize("event", ["join-leave", "move", "group"])
def test_no_neighbours_are_told_apart_by_more_than_the_loss(form: Form, event: Event) -> None:
    """With Laplace noise the loss of two data sets is at most the sum of the changes of all counts over the scales."""
    made = plan(
        form=form, unit=GroupUnit("person", event), largest=3, split={"size": 1, "place.state": 2, "place.county": 4}
    )
    key = Key(bytes(32))
    homes = ["a1", "a1", "a2", "c3"]

    def measured(groups: tuple[int, ...]) -> NDArray[np.int64]:
        return measure_groups(
            made, GroupSizes.from_rows(PLACES, homes, groups, largest=3), Measuring(made.workload, key)
        )[0]

    worst = Fraction(0)
    for groups in ((1, 1, 2, 3), (0, 2, 4, 1), (0, 3, 1, 0)):
        before = measured(groups)  # the same key, not bound to the data: what differs is the counts
        for other in neighbours(groups, event, quantity=1, most=4):
            change = np.abs(measured(other) - before)
            loss = sum(
                (int(change[own].sum()) / level.law.scale
                 for level, own in zip(made.levels[1:], region_tree(PLACES).levels, strict=True)
                 if level.is_measured and isinstance(level.law, DiscreteLaplace)),
                start=Fraction(0),
            )  # fmt: skip
            worst = max(worst, loss)
    assert worst == 1


def test_weights_are_in_proportion_to_one_over_the_variance() -> None:
    assert weights(plan()).tolist() == [1, 1, 1]
    made = plan(split={"size": 1, "place.state": 2, "place.county": 4}, loss=Loss(rho=1e-4))
    assert np.allclose(weights(made) / weights(made)[0], [1, 2, 4], rtol=1e-3)


def test_a_level_that_does_not_divide_is_not_measured_twice() -> None:
    nation = Hierarchy.from_prefixes(
        [f"x{state}{county}" for state in "ab" for county in "12"], [1, 2], ["n", "s", "c"]
    )
    made = plan(regions=nation, largest=3)
    assert [level.name for level in made.levels if not level.is_measured] == ["total", "place.n"]
    assert weights(made)[0] == 0 and made.spent == 1
    assert laws(made) == [DiscreteLaplace(Fraction(3))] * 3


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"form": "cumulativ"}, PlanError, "did you mean 'cumulative'"),
        ({"repair": "generic"}, PlanError, "choose one of joint, exact"),
        ({"largest": 0}, PlanError, "largest is 0"),
        ({"unit": tt.Unit("person", neighbours="replace")}, UnitError, "about a unit of groups"),
        ({"public": "regions", "repair": "exact"}, PlanError, 'needs repair="joint"'),
        ({"largest": 10**9}, PlanError, "lower largest"),
        ({"loss": Loss(epsilon=1e-12)}, LossError, "too wide"),
        ({"split": {"size": 1, "place.state": 1}}, LossError, "leaves out place.county"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        plan(**changes)


def test_sizes_of_another_plan_are_refused() -> None:
    other = GroupSizes.from_rows(PLACES, ["a1"], [1], largest=5)
    with pytest.raises(DataError, match="another largest size"):
        measure_sizes(plan(), other)


def test_rows_are_counted_by_region_and_size() -> None:
    sizes = GroupSizes.from_rows(PLACES, [8, 0, 8, 0], [2, 99, 2, 0], [3, 1, 4, 6], largest=6)
    assert sizes.number[8].tolist() == [0, 0, 7, 0, 0, 0, 0]
    assert sizes.number[0].tolist() == [6, 0, 0, 0, 0, 0, 1]  # larger groups are counted with the largest size
    by_code = GroupSizes.from_rows(PLACES, ["c3", "a1", "c3", "a1"], [2, 99, 2, 0], [3, 1, 4, 6], largest=6)
    assert (by_code.number == sizes.number).all() and by_code.digest == sizes.digest
    assert repr(sizes) == "GroupSizes(private)"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((["zz"], [1], [1]), "'zz' is not a leaf region"),
        (([9], [1], [1]), "numbered from 0 to 8"),
        (([0], [-1], [1]), "row 1 has the size -1"),
        (([0, 0], [1, 1], [1, -3]), "row 2 has the number of groups -3"),
        (([0], [1.5], [1]), "give whole numbers"),
        (([0, 1], [1], [1]), "one a row"),
        (([0], [1], [2**40]), "more than 17,179,869,184 groups"),
    ],
)
def test_rows_that_are_not_group_sizes_are_refused(rows: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        GroupSizes.from_rows(PLACES, *rows, largest=6)


def test_more_groups_than_64_bits_sum_are_refused_before_anything_is_read() -> None:
    """A thousand million groups of up to 70,000 are known beforehand not to fit."""
    unit, loss = GroupUnit("person", event="join-leave"), Loss(epsilon=1)
    with pytest.raises(PlanError, match=r"1,000,000,000 groups of sizes up to 70,000 do not fit 64-bit sums"):
        tt.group_plan(Hierarchy.flat(["east", "west"]), 70_000, unit, loss, rows="histogram", number=10**9)


def test_as_many_sizes_as_there_is_no_room_for_are_refused_at_once() -> None:
    """Not even the hierarchy of the sizes is made of them."""
    unit, loss = GroupUnit("person", event="join-leave"), Loss(epsilon=1)
    with pytest.raises(PlanError, match=r"80,000,000,160 bytes: lower largest"):
        tt.group_plan(Hierarchy.flat(["east"]), 499_999_999 + 1, unit, loss, rows="histogram", number=10)


def test_what_does_not_fit_in_memory_is_refused_with_its_bytes_and_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treetop._util.system.available", lambda: 1_000)
    places, spent = Hierarchy.flat(["east", "west"]), []
    made = plan(regions=places, largest=9)
    sizes = GroupSizes(places, np.ones((2, 10), np.int64))
    with pytest.raises(TooLarge, match=r"3 regions with 10 sizes would take about 2,400 bytes of memory, and 1,000"):
        measure_sizes(made, sizes, charge=lambda: spent.append(True))
    assert not spent


def test_a_release_with_a_key_that_somebody_knows_says_that_it_is_not_private() -> None:
    places = Hierarchy.flat(["east", "west"])
    made, sizes = plan(regions=places, largest=9), GroupSizes(places, np.ones((2, 10), np.int64))
    spent: list[str] = []
    options = tt.RunOptions(testing_key=bytes(32), before_measuring=lambda: spent.append("charged"))
    fixed = tt.make_release(made, sizes, options)
    assert spent == ["charged"]
    assert not fixed.card["private"] and fixed.card["warning"] is not None and "NOT PRIVATE" in repr(fixed)
    fresh = tt.make_release(made, sizes)
    assert fresh.card["private"] and fresh.card["warning"] is None


# What is protected in group sizes: sensitivities that no pair of neighbours exceeds, and that some pair reaches.

REGIONS = 2


def histogram(groups: tuple[int, ...], homes: tuple[int, ...], form: Form, largest: int) -> list[NDArray[np.int64]]:
    """What is measured of some groups: the sizes of all, and those of each region."""
    leaves = np.zeros((REGIONS, largest + 1), np.int64)
    for size, home in zip(groups, homes, strict=True):
        leaves[home, min(size, largest)] += 1
    levels = [leaves.sum(axis=0, keepdims=True), leaves]
    return levels if form == "direct" else [level.cumsum(axis=1) for level in levels]


@pytest.mark.parametrize("form", ["direct", "cumulative"])
@pytest.mark.parametrize(
    ("event", "quantity"), [("join-leave", 1), ("join-leave", 2), ("move", 1), ("move", 2), ("group", 1)]
)
@pytest.mark.parametrize("largest", [1, 2, 4])
def test_no_neighbours_differ_by_more_and_some_by_as_much(
    form: Form, event: Event, quantity: int, largest: int
) -> None:
    stated = GroupUnit("person", event, quantity, form=form, largest=largest).sensitivity("")
    reached = np.zeros((2, 2), np.int64)
    for homes in itertools.product(range(REGIONS), repeat=2):
        for groups in itertools.product(range(largest + 2), repeat=2):
            before = histogram(groups, homes, form, largest)
            for other in neighbours(groups, event, quantity, largest + 1):
                after = histogram(other, homes, form, largest)
                for k in range(2):
                    change = np.abs(after[k] - before[k])
                    reached[k] = np.maximum(reached[k], [change.sum(), (change**2).sum()])
    assert (reached <= [stated.l1, stated.l2_squared]).all()
    assert reached[1].tolist() == [stated.l1, stated.l2_squared]


def test_cumulative_counts_of_people_move_half_as_far() -> None:
    assert group_sensitivity("join-leave", 1, "direct", 100) == (2, 2)
    assert group_sensitivity("join-leave", 1, "cumulative", 100) == (1, 1)


def test_a_whole_group_moves_every_cumulative_count() -> None:
    assert group_sensitivity("group", 1, "direct", 100) == (2, 2)
    assert group_sensitivity("group", 1, "cumulative", 100) == (100, 100)


def test_a_unit_without_a_plan_does_not_say_how_far_it_moves_counts() -> None:
    with pytest.raises(UnitError, match="ask the unit of a plan"):
        GroupUnit("person", "move").sensitivity("")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"event": "move"}, "entity"),
        ({"entity": "person"}, "there is no default for it"),
        ({"entity": "person", "event": "joinleave"}, "did you mean 'join-leave'"),
        (
            {"entity": "household", "event": "group-add-remove"},
            "changes the number of groups, which is released exactly",
        ),
        ({"entity": "household", "event": "group-move"}, "the region of a group is public"),
        ({"entity": "person", "event": "move", "quantity": 0}, "quantity is 0"),
        ({"entity": "household", "event": "group", "quantity": 3}, "leave the unit's quantity out"),
    ],
)
def test_what_cannot_be_protected_is_refused_with_the_reason(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UnitError, match=message):
        GroupUnit(**arguments)  # type: ignore[arg-type]
