"""Public facts and invariants: who are neighbours then, how far they lie apart, and that nothing else is told."""

from __future__ import annotations

from typing import Any

import pytest

import treetop as tt
from treetop.errors import PlanError
from treetop.privacy import Neighbours

from .audits import DEEP, the_same_measurements_give_the_same_release
from .divergence import TOLERANCE, largest_loss, renyi
from .engine import Engine, shifts_between
from .known import (
    INVARIANT,
    PUBLIC,
    SAME_UNDER_FACTS,
    UNCHECKED,
    UNDER_FACTS,
    Facts,
    an_exact_level_is_its_fact,
    an_invariant_is_told_to_neighbours_that_keep_it,
    distance,
    facts_that_are_not_compared_refuse_no_table,
    measured_tables,
    neighbours_under,
    table_of_cells,
    the_measurements_of_neighbours_under_facts,
)
from .neighbours import KNOWN_LOSSES, PAIRS_OF_PLACES, Pair, table_of


@pytest.mark.parametrize(("tree", "facts", "neighbours", "contributions", "loss", "options"), UNDER_FACTS)
def test_measurements_of_neighbours_that_keep_facts_are_as_alike_as_promised(
    tree: str, facts: Facts, neighbours: Neighbours, contributions: int, loss: dict[str, Any], options: dict[str, Any]
) -> None:
    assert the_measurements_of_neighbours_under_facts(tree, facts, neighbours, contributions, loss, **options) is None


@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize(
    ("tree", "table", "margins"),
    [
        ("two by two", "place.digits1", "none"),
        ("three levels", "place.digits1", "none"),
        (PAIRS_OF_PLACES, "destination.digits1", "each"),
        (PAIRS_OF_PLACES, "origin.digits1", "each"),
    ],
)
def test_below_an_invariant_a_replacement_moves_as_much_as_anywhere_and_above_it_nothing(
    tree: str, table: str, margins: str, contributions: int
) -> None:
    facts = {table: tt.Fact(invariant=True)}
    options = {"facts": facts, "margins": margins}
    plan = Pair("", {}, {}, tree, "replace", contributions, KNOWN_LOSSES["rho"], options).plan()
    tables = measured_tables(plan)
    assert tables and not {"total", f"margin {table}"} & tables.keys() and table not in tables.values()
    furthest = dict.fromkeys(tables, (0, 0))
    for one, other in neighbours_under(facts, plan.unit, tree):
        assert table_of_cells(table, one) == table_of_cells(table, other)
        for name, measured in tables.items():
            charged, moved = plan.unit.sensitivity(name), distance(measured, one, other)
            assert moved[0] <= charged.l1 and moved[1] <= charged.l2_squared, (name, one, other)
            furthest[name] = max(furthest[name], moved)
    # Two cells of the same state take all that is charged: an invariant above a level saves it nothing.
    leaves = plan.spine.levels[-1].name
    assert furthest[leaves] == tuple(plan.unit.sensitivity(leaves))


@pytest.mark.parametrize("loss", ["rho", "pure"])
def test_two_people_who_keep_an_invariant_together_are_covered_by_the_square(loss: str) -> None:
    """Ann moves from A to B and Bob from B to A: no chain of neighbours leads there, and counts add up all the same."""
    plan = Pair("", {}, {}, "two by two", "replace", 1, KNOWN_LOSSES[loss], {"facts": INVARIANT}).plan()
    sample, crossed = None, 0
    for one, other in neighbours_under(INVARIANT, plan.unit, "two by two", units=2):
        sample = Engine.of(plan, one) if sample is None else sample
        shifts = shifts_between(sample.with_rows(one), sample.with_rows(other))
        if not shifts:
            continue
        crossed += len(shifts) == 4
        if loss == "pure":
            assert largest_loss(shifts) <= 2 * plan.loss.budget
        else:
            assert all(renyi(shifts, order) / order <= 4 * float(plan.budget) * (1 + TOLERANCE) for order in (1.5, 4.0))
    assert crossed


@pytest.mark.parametrize("contributions", [1, 2])
def test_under_add_remove_an_invariant_is_refused(contributions: int) -> None:
    with pytest.raises(PlanError, match="nobody would be protected"):
        Pair("", {}, {}, neighbours="add-remove", contributions=contributions, options={"facts": INVARIANT}).plan()
    assert an_invariant_is_told_to_neighbours_that_keep_it("add-remove", contributions) is None


@pytest.mark.parametrize("pair", SAME_UNDER_FACTS, ids=lambda pair: f"{pair.about} {pair.tree} {pair.options}")
def test_tables_that_facts_do_not_tell_apart_and_that_measure_the_same_give_the_same_release(pair: Pair) -> None:
    assert the_same_measurements_give_the_same_release(pair, 100 if DEEP else 12) is None


@pytest.mark.parametrize(("tree", "facts"), UNCHECKED)
def test_facts_that_are_not_compared_decide_nothing_by_the_table(tree: str, facts: Facts) -> None:
    assert facts_that_are_not_compared_refuse_no_table(tree, facts, 3 if DEEP else 1) is None


def test_a_level_that_facts_decide_does_not_depend_on_the_private_table() -> None:
    assert an_exact_level_is_its_fact("two by two", PUBLIC, {"A": 3, "B": 1}) is None


def test_an_invariant_that_contradicts_a_fact_is_refused_before_anything_is_charged() -> None:
    """Also where the table is not compared with the fact: a release cannot keep both."""
    charged: list[int] = []
    facts = {"place.digits1": tt.Fact(at_most={"A": 1}, unchecked=True), "place.digits2": tt.Fact(invariant=True)}
    plan = Pair("", {}, {}, options={"facts": facts}).plan()
    with pytest.raises(
        tt.errors.FactError, match=r"plan publishes.* contradict .*place\.digits1.*Nothing was measured"
    ):
        tt.make_release(plan, table_of(plan, {"A1": 2}), tt.RunOptions(before_measuring=lambda: charged.append(1)))
    assert not charged
