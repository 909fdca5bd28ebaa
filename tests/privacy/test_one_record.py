"""The card's row about one record, where the limit of records is enforced: every small table, every outcome."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import treetop as tt
from treetop.card.meaning import meaning
from treetop.privacy import Neighbours

from .one_record import CASES, SPINE, delta_at, largest_rho, plan_for, record_audits, stated, supremum


@pytest.mark.parametrize("name", record_audits())
def test_one_record_shows_no_more_than_the_card_says(name: str) -> None:
    assert record_audits()[name]() is None


def test_dividing_epsilon_by_the_number_of_records_says_too_little() -> None:
    plan = plan_for(tt.Loss(epsilon=6), 3)
    divided, told = 6 / 3, stated(plan)["epsilon"]
    found = supremum(plan)
    # With chance 3/4 one of three is displaced: the regions and the towns have 19/20 of epsilon, of which two thirds
    # are at stake.
    assert found == pytest.approx(math.log(1 / 4 + 3 / 4 * math.exp(6 * 19 / 20 * 2 / 3)))
    assert told == pytest.approx(6 * 19 / 20 * 2 / 3)
    assert told is not None and divided < found <= told


def test_the_same_holds_of_rho_and_of_a_single_record() -> None:
    for loss, most in ((tt.Loss(rho=3), 2), (tt.Loss(rho=1), 1)):
        plan = plan_for(loss, most)
        told = stated(plan)["rho"]
        assert told is not None and float(plan.spent) / most**2 < largest_rho(plan) <= told
    loss, most = CASES[-1]
    plan = plan_for(loss, most)
    assert loss.epsilon is not None and loss.delta is not None
    assert delta_at(plan, float(loss.epsilon)) > loss.delta  # the epsilon of the unit does not hold for a record
    row = stated(plan)
    assert row["epsilon"] is not None and delta_at(plan, row["epsilon"]) <= loss.delta


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("id", [None, "who"])
@pytest.mark.parametrize("most", [1, 3])
def test_one_record_is_told_apart_from_a_unit_wherever_they_differ(
    neighbours: Neighbours, id: str | None, most: int
) -> None:
    base = plan_for(tt.Loss(epsilon=6), most)
    plan = tt.Plan(base.spine, tt.Unit("person", most, neighbours, id=id), base.loss)
    rows = [row for row in meaning(plan) if row["units"] is None]
    if most == 1 and (neighbours == "replace" or id is None):
        assert rows == []  # changing the one record is what the guarantee is about, or adding the one that there is
        return
    total, region, town = (level.cost for level in plan.levels)
    expected = {
        ("replace", 3): (total + region + town) / 3,  # two cells of six, and one of three of the total
        ("add-remove", 3): (total + region + town) / 3 if id is None else Fraction(2, 3) * (region + town),
        ("add-remove", 1): 2 * (region + town),
    }[neighbours, most]
    assert [row["epsilon"] for row in rows] == [float(expected)]


def part_of_unit(most: int, loss: tt.Loss, kind: str) -> tuple[float, float]:
    """How large a part of the unit's loss one record has, nearly all at the leaves: as it adds up, and as epsilon."""
    capped = {"place.town": 1} if kind == "capped" else {}
    unit = tt.Unit("person", most, "add-remove", id="who", per_node=capped, distinct=kind == "distinct")
    weights = {"total": 1, "place.region": 1, "place.town": 10**6}
    rows = meaning(tt.Plan(SPINE, unit, loss, split=weights))
    record, whole = (next(row for row in rows if row["units"] == units) for units in (None, 1))
    cost = "epsilon" if loss.definition == "pure" else "rho"
    return record[cost] / whole[cost], record["epsilon"] / whole["epsilon"]


@pytest.mark.parametrize("most", [1, 2, 3, 8])
def test_one_record_is_as_large_a_part_of_its_unit_as_the_guarantees_say(most: int) -> None:
    pure, rho = tt.Loss(epsilon=1), tt.Loss(epsilon=1, delta=Fraction(1, 10**8), accounting="zcdp")
    for kind in ("plain", "capped", "distinct"):
        found, _ = part_of_unit(most, pure, kind)
        assert 2 / most * 0.9999 < found <= 2 / most
        found, epsilon = part_of_unit(most, rho, kind)
        told = 2 / most**2 if kind == "plain" else 2 / most
        assert told * 0.9999 < found <= told
        assert epsilon > found or most == 1
    assert part_of_unit(8, rho, "distinct")[1] > 2 / 8 > part_of_unit(8, rho, "plain")[1]
