"""The protected unit: its sensitivities against enumeration, its refusals, its sentence."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from treetop import Unit
from treetop.errors import UnitError
from treetop.privacy import Neighbours

Cells = tuple[int, ...]


def histograms(most: int, cap: int, nodes: int) -> Iterator[Cells]:
    """Every way in which a unit's records, from none to `most`, can fall in nodes that hold at most `cap`."""
    return (cells for cells in product(range(cap + 1), repeat=nodes) if sum(cells) <= most)


def changes(neighbours: Neighbours, most: int, cap: int, nodes: int) -> Iterator[Cells]:
    ways = list(histograms(most, cap, nodes))
    if neighbours == "add-remove":
        return iter(ways)
    return (tuple(a - b for a, b in zip(old, new, strict=True)) for old, new in product(ways, ways))


def enumerated(neighbours: Neighbours, most: int, cap: int, nodes: int) -> tuple[int, int]:
    found = list(changes(neighbours, most, cap, nodes))
    return max(sum(map(abs, d)) for d in found), max(sum(x * x for x in d) for d in found)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(("most", "cap"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 3), (4, 2)])
def test_sensitivity_is_the_largest_change_that_enumeration_finds(neighbours: Neighbours, most: int, cap: int) -> None:
    unit = Unit("person", most, neighbours, per_node={"place": cap})
    nodes = (2 if neighbours == "replace" else 1) * (most // cap)
    assert tuple(unit.sensitivity("place")) == enumerated(neighbours, most, cap, nodes)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_no_change_exceeds_the_sensitivity_when_the_cap_does_not_divide_the_contributions(
    neighbours: Neighbours, nodes: int
) -> None:
    l1, l2_squared = enumerated(neighbours, 3, 2, nodes)
    sensitivity = Unit("person", 3, neighbours, per_node={"place": 2}).sensitivity("place")
    assert l1 <= sensitivity.l1
    assert l2_squared <= sensitivity.l2_squared


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_the_total_moves_by_at_most_the_contributions_under_both_relations(neighbours: Neighbours, most: int) -> None:
    unit = Unit("person", most, neighbours)
    assert tuple(unit.sensitivity("total")) == enumerated(neighbours, most, most, 1) == (most, most**2)


def test_a_cap_at_one_level_leaves_the_others_alone() -> None:
    unit = Unit("person", 4, "add-remove", per_node={"place.town": 1})
    assert unit.sensitivity("place.town").l2_squared == 4
    assert unit.sensitivity("place.region").l2_squared == 16
    assert unit.sensitivity("total").l2_squared == 16


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_total_is_exact_only_if_no_neighbour_can_have_another_total(
    neighbours: Neighbours, dropped: bool, most: int
) -> None:
    # Without drops, a unit of at most one record that is in the data has exactly one.
    fewest = 1 if most == 1 and not dropped else 0
    totals = set(range(fewest, most + 1))
    moves = len(totals) > 1 if neighbours == "replace" else True
    assert Unit("trip", most, neighbours).total_is_exact(dropped) is not moves


def test_contributions_are_enforced_exactly_when_an_id_is_given() -> None:
    assert Unit("person", 3, "replace", id="person").enforced
    assert not Unit("person", 3, "replace").enforced


def test_leaving_out_the_neighbours_explains_both_choices() -> None:
    with pytest.raises(UnitError, match=r'"replace" hides what.*one trip.*"add-remove" also hides whether'):
        Unit("trip")


@pytest.mark.parametrize("entity", [None, "", "  ", 3])
def test_leaving_out_what_is_protected_is_refused(entity: Any) -> None:
    with pytest.raises(UnitError, match="what is protected has no default"):
        Unit(entity, neighbours="replace")


@pytest.mark.parametrize("neighbours", ["add/remove", "REPLACE", "", True])
def test_an_unknown_relation_is_refused(neighbours: Any) -> None:
    with pytest.raises(UnitError, match="choose one"):
        Unit("trip", neighbours=neighbours)


@pytest.mark.parametrize("contributions", [0, -1, True, 1.0, 2.5, "2", None])
def test_contributions_that_are_not_a_positive_whole_number_are_refused(contributions: Any) -> None:
    with pytest.raises(UnitError, match=r"contributions is .*whole number of records, 1 or more"):
        Unit("trip", contributions, "replace")


@pytest.mark.parametrize("id", ["", " ", 7])
def test_an_id_that_names_no_column_is_refused(id: Any) -> None:
    with pytest.raises(UnitError, match="name the column"):
        Unit("trip", neighbours="replace", id=id)


@pytest.mark.parametrize(
    ("per_node", "message"),
    [
        ({"place": 0}, "1 or more"),
        ({"place": True}, "whole number"),
        ({"place": 1.0}, "whole number"),
        ({"place": 4}, "above its contributions, 3"),
        ({"total": 1}, "lower contributions"),
        ({"": 1}, "name a level"),
        ({3: 1}, "name a level"),
        ([("place", 1)], "by level name"),
    ],
)
def test_a_senseless_cap_per_node_is_refused(per_node: Any, message: str) -> None:
    with pytest.raises(UnitError, match=message):
        Unit("person", 3, "replace", per_node=per_node)


def test_a_whole_number_from_numpy_becomes_an_ordinary_one() -> None:
    unit = Unit("person", np.int64(2**40), "replace")  # type: ignore[arg-type]
    assert type(unit.contributions) is int
    assert unit.sensitivity("place").l2_squared == 2**81


def test_equal_units_are_interchangeable_and_survive_pickling() -> None:
    caps = {"place.town": 1, "place.region": 2}
    unit = Unit("person", 3, "replace", per_node=caps)
    same = Unit("person", 3, "replace", per_node=dict(reversed(caps.items())))
    assert unit == same
    assert hash(unit) == hash(same)
    assert pickle.loads(pickle.dumps(unit)) == unit
    assert unit != Unit("person", 3, "replace")


def test_a_unit_does_not_change_when_its_caps_do_afterwards() -> None:
    caps = {"place": 1}
    unit = Unit("person", 3, "replace", per_node=caps)
    caps["place"] = 3
    assert unit.per_node == {"place": 1}


def test_the_sentence_says_what_is_protected_and_whose_word_the_limit_is() -> None:
    declared = Unit("person", 3, "replace", per_node={"place.town": 1}).sentence()
    assert declared.startswith("Protects one person: ")
    assert "the records of any one person, at most 3 records" in declared
    assert "The limit of 3 records is declared, not enforced." in declared
    assert "at most 1 in one node of place.town" in declared
    enforced = Unit("trip", neighbours="add-remove", id="trip_id").sentence()
    assert "whether any one trip, with at most 1 record, is in the data" in enforced
    assert 'enforced by the column "trip_id"' in enforced
