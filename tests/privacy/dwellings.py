"""Small tables of people in dwellings, all that one unit can change in them, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import treetop as tt
from treetop import GroupList, GroupSizes, GroupUnit
from treetop.measure import readers
from treetop.measure.measure import Measuring
from treetop.measure.vectors import measure_groups
from treetop.noise import Law
from treetop.plan.group_unit import Event, Form
from treetop.plan.region_histograms import RegionHistograms, region_tree
from treetop.repair.groups import KnownTotals

from .divergence import loss_of
from .engine import KEY, Unexplained, laws_drawn_from, noise_is

Integers = NDArray[np.int64]

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


def plan(event: Event, form: Form, loss: tt.Loss, quantity: int = 1) -> tt.Plan:
    unit = GroupUnit("person", event) if event == "group" else GroupUnit("person", event, quantity)
    split = {"size": 1, "place.state": 2, "place.county": 3}
    return tt.group_plan(PLACES, LARGEST, unit, loss, rows="people", listed=LIST, form=form, split=split)


def read(made: tt.Plan, people: People) -> GroupSizes:
    table = pa.table({
        "group": pa.array([home for home, _ in people], pa.string()),
        "works": pa.array([quantity for _, quantity in people], pa.int64()),
    })  # fmt: skip
    return readers.group_reader(made, {"group": "group", "quantity": "works"}).read(table)


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


def measured(made: tt.Plan, sizes: GroupSizes) -> tuple[list[tuple[Law, Integers]], KnownTotals]:
    """What a release measures, level by level, without the noise but with its laws; and what it takes as public."""
    with laws_drawn_from() as drawn, noise_is(np.zeros(1_000, np.int64)):
        counts, known = measure_groups(made, sizes, Measuring(made.workload, KEY))
    rows = region_tree(made.regions).levels
    levels = [rows[depth] for _, depth in RegionHistograms.of(made).levels(made)]
    return [(law, counts[own]) for law, own in zip(drawn, levels, strict=True)], known


def loss_between(made: tt.Plan, one: GroupSizes, other: GroupSizes) -> Fraction:
    """The loss of all measurements together: pure, or rho (both laws depend on the change alone)."""
    (here, known), (there, known_there) = measured(made, one), measured(made, other)
    if known.total != known_there.total or (known.high != known_there.high).any():
        raise Unexplained("neighbours differ in a number of groups that is taken as public")
    return loss_of((law, counts - others) for (law, counts), (_, others) in zip(here, there, strict=True))
