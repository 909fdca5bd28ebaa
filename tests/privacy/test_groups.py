"""Audits of group sizes: what one person or one group changes in a table changes the release no more than promised.

From the table on: people with their dwellings are read as a steward's table is, so that empty dwellings, sizes above
the largest and the public list are part of what is audited. Neighbours are enumerated and the change of all
measurements is compared with the noise, exactly; then releases of worst pairs are looked at from outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop.groups import Event, Form, GroupList, GroupSizes, GroupTablePlan, GroupUnit
from treetop.noise import DiscreteGaussian, DiscreteLaplace

from .events import epsilon_at_least

LARGEST = 3
PLACES = tt.Hierarchy.from_prefixes(["A1", "A2", "B1"], widths=[1], levels=["state", "county"])
HOMES = {"h1": "A1", "h2": "A1", "h3": "A2", "h4": "B1"}
LIST = GroupList.read(pa.table({"group": list(HOMES), "region": list(HOMES.values())}), PLACES)

People = tuple[tuple[str, int], ...]
"""Who lives where: for each person the dwelling and the quantity."""

TABLES: list[People] = [
    (("h1", 1), ("h1", 1), ("h2", 1), ("h4", 1)),  # h3 is empty
    (("h1", 1),) * 4 + (("h2", 1),) * 3 + (("h3", 1),),  # h1 is above the largest
    (("h2", 1), ("h3", 1)),
    (("h1", 1), ("h1", 1)),  # h1 and h2, in one region, can meet at size 1
]


def plan(event: Event, form: Form, loss: tt.Loss, quantity: int = 1) -> GroupTablePlan:
    unit = GroupUnit("person", event) if event == "group" else GroupUnit("person", event, quantity)
    split = {"size": 1, "place.state": 2, "place.county": 3}
    return GroupTablePlan.make(PLACES, LARGEST, unit, loss, rows="people", listed=LIST, form=form, split=split)


def read(made: GroupTablePlan, people: People) -> GroupSizes:
    table = pa.table({
        "group": pa.array([home for home, _ in people], pa.string()),
        "works": pa.array([quantity for _, quantity in people], pa.int64()),
    })  # fmt: skip
    return made.reader({"group": "group", "quantity": "works"}).read(table)


def neighbours(people: People, event: Event, quantity: int) -> Iterator[People]:
    """All tables that one unit can make of this one."""
    amounts = range(1, quantity + 1)
    if event == "join-leave":
        yield from (people[:i] + people[i + 1 :] for i in range(len(people)))
        yield from ((*people, (home, amount)) for home in HOMES for amount in amounts)
    elif event == "move":
        for i in range(len(people)):
            yield from ((*people[:i], (home, amount), *people[i + 1 :]) for home in HOMES for amount in amounts)
    else:
        for home in HOMES:
            others = tuple(one for one in people if one[0] != home)
            yield from (others + ((home, 1),) * size for size in range(LARGEST + 3))


def loss_between(made: GroupTablePlan, one: GroupSizes, other: GroupSizes) -> Fraction:
    """The loss of all measurements together: pure, or rho (both laws depend on the change alone)."""
    spent = Fraction(0)
    tree = made.core.tree
    changes = [tree.sum_up(sizes.number.T).T for sizes in (one, other)]
    if made.sizes.form == "cumulative":
        changes = [counts.cumsum(axis=1) for counts in changes]
    for level, own in zip(made.core.levels, tree.levels, strict=True):
        change = np.abs(changes[0][own] - changes[1][own])
        if isinstance(level.law, DiscreteLaplace):
            spent += int(change.sum()) / level.law.scale
        elif isinstance(level.law, DiscreteGaussian):
            spent += int((change**2).sum()) / (2 * level.law.variance)
    return spent


@pytest.mark.parametrize("loss", [tt.Loss(epsilon=1), tt.Loss(rho=0.5)], ids=["pure", "rho"])
@pytest.mark.parametrize("form", ["direct", "cumulative"])
@pytest.mark.parametrize(
    ("event", "quantity"), [("join-leave", 1), ("join-leave", 2), ("move", 1), ("move", 3), ("group", 1)]
)
def test_no_neighbouring_tables_differ_by_more_than_the_loss(
    event: Event, quantity: int, form: Form, loss: tt.Loss
) -> None:
    made = plan(event, form, loss, quantity)
    worst = Fraction(0)
    for people in TABLES:
        before = read(made, people)
        for other in neighbours(people, event, quantity):
            worst = max(worst, loss_between(made, before, read(made, other)))
    assert worst <= loss.budget
    if quantity == 1:  # the noise is no larger than it needs to be
        assert worst == loss.budget


@pytest.mark.parametrize("event", ["join-leave", "move", "group"])
def test_neighbouring_tables_have_the_same_groups_in_every_region(event: Event) -> None:
    made = plan(event, "cumulative", tt.Loss(epsilon=1))
    for people in TABLES:
        for other in neighbours(people, event, 1):
            assert read(made, other).number.sum(axis=1).tolist() == [2, 1, 1]


def releases(made: GroupTablePlan, sizes: GroupSizes, runs: int) -> NDArray[np.int64]:
    """What an outsider sees of many releases: every count, and the sums of sizes of every region."""
    rows = []
    for _ in range(runs):
        counts = made.core.release(sizes).counts
        rows.append(np.concatenate([counts.ravel(), counts @ np.arange(LARGEST + 1), counts.cumsum(axis=1)[0]]))
    return np.array(rows)


PAIRS: list[tuple[Event, Form, People, People]] = [
    ("join-leave", "cumulative", TABLES[0], TABLES[0][1:]),
    ("join-leave", "direct", TABLES[2], TABLES[2][:1]),
    ("move", "cumulative", TABLES[0], (*TABLES[0][1:], ("h4", 1))),
    ("group", "direct", TABLES[1], tuple(one for one in TABLES[1] if one[0] != "h1")),
]


@pytest.mark.parametrize(("event", "form", "one", "other"), PAIRS)
def test_no_event_of_many_releases_tells_neighbours_apart(event: Event, form: Form, one: People, other: People) -> None:
    made = plan(event, form, tt.Loss(epsilon=1))
    samples = [releases(made, read(made, people), 1_000) for people in (one, other)]
    proven, event_found = epsilon_at_least(samples[0], samples[1], 0.0)
    assert proven <= 1, str(event_found)


def test_noise_that_is_far_too_small_is_found() -> None:
    """The same look at releases whose noise is for a sixtieth of the change."""
    made = plan("group", "direct", tt.Loss(epsilon=60))
    _, _, one, other = PAIRS[3]
    samples = [releases(made, read(made, people), 200) for people in (one, other)]
    proven, _ = epsilon_at_least(samples[0], samples[1], 0.0)
    assert proven > 1


def test_dropping_empty_groups_would_break_the_promise() -> None:
    """Without size 0, the last person to leave a dwelling changes every cumulative count: the list prevents it."""
    made = plan("join-leave", "cumulative", tt.Loss(epsilon=1))
    before, after = read(made, TABLES[2]), read(made, TABLES[2][1:])

    def without_empty(sizes: GroupSizes) -> GroupSizes:
        number: Any = sizes.number.copy()
        number[:, 0] = 0
        return GroupSizes(PLACES, number)

    assert loss_between(made, before, after) == 1
    assert loss_between(made, without_empty(before), without_empty(after)) == LARGEST
