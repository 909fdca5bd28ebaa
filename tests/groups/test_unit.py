"""What is protected in group sizes: sensitivities that no pair of neighbours exceeds, and that some pair reaches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from treetop import GroupUnit
from treetop.errors import UnitError
from treetop.plan.group_unit import Event, Form, group_sensitivity

from .events import neighbours

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
