"""Audits of in-, out- and total degrees: how far one edge, list or person moves them, over all small graphs.

Everything goes through the code that shortens lists, projects and counts. Every bound has its fault beside it: what
would be wrong without it must be found by the same enumeration.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop.counts.degree_projection import projected_degrees
from treetop.counts.graph_reader import Edges, Nodes
from treetop.domain.unit import Neighbours, Sensitivity
from treetop.measure import readers
from treetop.noise import Key
from treetop.plan.degree_unit import Degree, Form, degree_sensitivity, listed_edge_sensitivities

from . import small_graphs
from .engine import KEY
from .small_graphs import PLACES, Pairs, graph_of, norms

Ints = NDArray[np.int64]
EVERYONE = tuple(range(4))
POSSIBLE = tuple(permutations(EVERYONE, 2))
MASKS = np.arange(1 << len(POSSIBLE))
"""A graph of four people is a set of twelve edges, written as bits."""
FORMS: tuple[Form, ...] = ("histogram", "cumulative")
NAMES: dict[tuple[int, ...], Nodes] = {}


def graph(kept: tuple[int, ...], pairs: Pairs) -> tuple[Nodes, Edges]:
    nodes, edges = graph_of(kept, pairs, NAMES)
    return nodes, Edges(edges.source, edges.target, directed=True)


def pairs_of(mask: int) -> Pairs:
    return tuple(pair for bit, pair in enumerate(POSSIBLE) if mask >> bit & 1)


def degrees_of_all(plan: tt.Plan) -> Ints:
    """The degrees of all graphs of four people, by mask."""
    return np.array([readers.bounded_degrees(plan, *graph(EVERYONE, pairs_of(mask)), KEY) for mask in MASKS.tolist()])


def counts(degrees: Ints, form: Form, largest: int) -> Ints:
    """What is measured of degrees, along the last axis; the last cumulative count is everyone."""
    number: Ints = (np.minimum(degrees, largest)[..., None] == np.arange(largest + 1)).sum(axis=-2)
    return number if form == "histogram" else number.cumsum(axis=-1)[..., :-1]


def worst(one: Ints, other: Ints, form: Form) -> tuple[int, int]:
    """The largest changes with any largest degree: to stand for more as well may bring steps together."""
    found = [norms(counts(one, form, largest) - counts(other, form, largest)) for largest in (1, 2, 3, 6)]
    return max(l1 for l1, _ in found), max(squared for _, squared in found)


def plan(relation: str, degree: Degree, largest: int = 6, **more: Any) -> tt.Plan:
    return tt.degree_plan(relation, "add-remove", tt.Loss(rho=1), largest, degree=degree, **more)


@pytest.mark.parametrize("degree", ["in", "out", "total"])
def test_one_edge_moves_degrees_by_what_was_promised(degree: Degree) -> None:
    every = degrees_of_all(plan("edge", degree))
    bits = [1 << bit for bit in range(len(POSSIBLE))]
    for form in FORMS:
        less = [(MASKS[MASKS & bit > 0], MASKS[MASKS & bit > 0] ^ bit) for bit in bits]
        assert max_of(every, less, form) == degree_sensitivity("edge", degree, form, "add-remove", 6)
        exchanged = [
            (having, having ^ one ^ other)
            for one, other in permutations(bits, 2)
            for having in [MASKS[(MASKS & one > 0) & (MASKS & other == 0)]]
        ]
        assert max_of(every, exchanged, form) == degree_sensitivity("edge", degree, form, "replace", 6)


def max_of(every: Ints, pairs: list[tuple[Ints, Ints]], form: Form) -> tuple[int, int]:
    found = [worst(every[one], every[other], form) for one, other in pairs]
    return max(l1 for l1, _ in found), max(squared for _, squared in found)


def lists_exchanged(neighbours: Neighbours) -> Iterator[tuple[Ints, Ints]]:
    """All graphs with a list of person 0, and the same with another, or with none."""
    own = sum(1 << bit for bit, (source, _) in enumerate(POSSIBLE) if source == 0)
    others = MASKS[MASKS & own == 0]
    lists = [mask for mask in MASKS.tolist() if mask & ~own == 0]
    for one in lists:
        for other in lists if neighbours == "replace" else [0]:
            yield others | one, others | other


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("degree", ["in", "total"])
def test_one_list_moves_the_degrees_of_others_by_what_was_promised(degree: Degree, most: int) -> None:
    every = degrees_of_all(plan("user-out", degree, contributions=most))
    for neighbours in ("add-remove", "replace"):
        for form in FORMS:
            found = max_of(every, list(lists_exchanged(neighbours)), form)
            promised = degree_sensitivity("user-out", degree, form, neighbours, 6, most)
            assert found[0] <= promised.l1 and found[1] <= promised.l2_squared
            # Two lists of two in-edges with four ends would need five people.
            if (degree, most, neighbours) != ("in", 2, "replace"):
                assert found == promised, (neighbours, form)


def edges_of_lists() -> tuple[list[tuple[Ints, Ints]], list[tuple[Ints, Ints]]]:
    """All graphs with one edge less, and with one that leads to somebody else."""
    bits = {pair: 1 << bit for bit, pair in enumerate(POSSIBLE)}
    less = [(MASKS[MASKS & bit > 0], MASKS[MASKS & bit > 0] ^ bit) for bit in bits.values()]
    elsewhere = [
        (having, having ^ one ^ other)
        for (source, one), (same, other) in permutations([(pair[0], bit) for pair, bit in bits.items()], 2)
        if source == same
        for having in [MASKS[(MASKS & one > 0) & (MASKS & other == 0)]]
    ]
    return less, elsewhere


def larger(*sensitivities: tuple[int, int]) -> tuple[int, int]:
    return max(l1 for l1, _ in sensitivities), max(squared for _, squared in sensitivities)


@pytest.mark.parametrize(("degree", "most"), [("out", None), ("in", 1), ("in", 2), ("total", 1), ("total", 2)])
def test_one_edge_of_a_list_moves_degrees_by_what_was_promised(degree: Degree, most: int | None) -> None:
    every = degrees_of_all(plan("user-out", degree, contributions=most))
    less, elsewhere = edges_of_lists()
    for form in FORMS:
        promised = larger(*listed_edge_sensitivities(degree, form))
        assert max_of(every, less, form) == promised
        led = max_of(every, elsewhere, form)
        assert led[0] <= promised[0] and led[1] <= promised[1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("degree", ["in", "total"])
def test_one_edge_of_a_list_moves_the_degrees_of_regions_by_what_was_promised(degree: Degree, form: Form) -> None:
    regional = tt.regional_degree_plan(
        PLACES, 6, "user-out", tt.Loss(rho=1), True, form, degree=degree, contributions=2
    )
    nodes = Nodes.read(small_graphs.people(EVERYONE), "id", ["town"])
    own = sum(1 << bit for bit, (source, _) in enumerate(POSSIBLE) if source in (0, 2))
    kept = MASKS[MASKS & ~own == 0]  # the lists of two people: everybody else's degrees can meet
    number = {
        mask: readers.regional_sizes(regional, nodes, graph(EVERYONE, pairs_of(mask))[1], {"place": "town"}, KEY).number
        for mask in kept.tolist()
    }
    bits = [1 << bit for bit in range(len(POSSIBLE)) if own >> bit & 1]
    promised = larger(*regional.unit.piece_sensitivities("place.town"))
    parents = PLACES.ancestors(0)
    found = []
    for mask, bit in ((mask, bit) for mask in number for bit in bits if mask & bit):
        change = number[mask] - number[mask ^ bit]
        regions = np.array([change[parents == region].sum(axis=0) for region in range(2)])
        for level in (change, regions, change.sum(axis=0, keepdims=True)):
            measured = level if form == "histogram" else level.cumsum(axis=1)
            found.append(norms(measured.reshape(1, -1)))
    assert larger(*found) == promised


def test_lists_that_are_not_shortened_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: all edges of a list are counted at other people."""
    monkeypatch.setattr(readers, "shortened", lambda nodes, edges, most, key: edges)
    every = degrees_of_all(plan("user-out", "in", contributions=1))
    found = max_of(every, list(lists_exchanged("add-remove")), "histogram")
    assert found > degree_sensitivity("user-out", "in", "histogram", "add-remove", 6, 1)


def test_what_is_kept_of_a_list_does_not_depend_on_other_lists() -> None:
    shorter = plan("user-out", "in", contributions=1)
    alone, beside, only = (
        readers.bounded_degrees(shorter, *graph(EVERYONE, pairs), KEY)
        for pairs in (((0, 1), (0, 2), (0, 3)), ((0, 1), (0, 2), (0, 3), (1, 3), (2, 0)), ((1, 3), (2, 0)))
    )
    assert alone.sum() == 1 and (beside - only).tolist() == alone.tolist()


def without(mask: int, person: int) -> tuple[Nodes, Edges]:
    kept = tuple(node for node in EVERYONE if node != person)
    return graph(kept, tuple(pair for pair in pairs_of(mask) if person not in pair))


@pytest.mark.parametrize("theta", [1, 2])
@pytest.mark.parametrize("degree", ["in", "out"])
def test_one_person_moves_projected_in_and_out_degrees_by_what_was_promised(degree: Degree, theta: int) -> None:
    made = plan("node", degree, theta)
    less = {
        (person, mask & rest): readers.bounded_degrees(made, *without(mask, person), KEY)
        for person in EVERYONE
        for rest in [sum(1 << bit for bit, pair in enumerate(POSSIBLE) if person not in pair)]
        for mask in {mask & rest for mask in MASKS.tolist()}
    }
    every = degrees_of_all(made)
    assert every.max() == theta
    for form in FORMS:
        found = (0, 0)
        for person in EVERYONE:
            rest = sum(1 << bit for bit, pair in enumerate(POSSIBLE) if person not in pair)
            gone = np.array([less[person, mask & rest] for mask in MASKS.tolist()])
            change = norms(people(every, form, theta) - people(gone, form, theta))
            found = max(found[0], change[0]), max(found[1], change[1])
        promised = degree_sensitivity("node", degree, form, "add-remove", theta)
        assert found[0] <= promised.l1 and found[1] <= promised.l2_squared


def people(degrees: Ints, form: Form, largest: int) -> Ints:
    """What is measured where the number of people is not public: the last cumulative count too."""
    number = counts(degrees, "histogram", largest)
    return number if form == "histogram" else number.cumsum(axis=-1)


WORST: Pairs = (
    *((0, 1), (0, 2), (3, 1), (3, 2)),  # person 0 leads to two others, who have one more edge each
    *((4, 0), (5, 0), (4, 6), (5, 6), (4, 7), (5, 8)),  # and is led to by two, who would have room for one more
)


def test_the_worst_person_moves_in_degrees_as_far_as_was_promised() -> None:
    found: dict[Form, tuple[int, int]] = dict.fromkeys(FORMS, (0, 0))
    rest = tuple(pair for pair in WORST if 0 not in pair)
    whole, less = graph(tuple(range(9)), WORST), graph(tuple(range(1, 9)), rest)
    for number in range(40):  # the order of edges is the key's: some are worse than others
        key = Key(bytes([number]) * 32)
        one, other = (projected_degrees(*given, 2, key, "in") for given in (whole, less))
        for form in FORMS:
            change = norms(people(one, form, 2) - people(other, form, 2))
            found[form] = max(found[form][0], change[0]), max(found[form][1], change[1])
    for form in FORMS:
        assert found[form] == degree_sensitivity("node", "in", form, "add-remove", 2) == tuple(_THETA_2[form])


_THETA_2 = {"histogram": Sensitivity(9, 29), "cumulative": Sensitivity(5, 9)}


def test_in_degrees_of_a_graph_that_is_projected_by_all_edges_are_not_bounded() -> None:
    """The fault: one room for all edges of a person, of which those that come in are counted.

    Along a path that turns at every other person, taking its first away exchanges all edges that are kept, and with
    them the direction of the one that each person keeps.
    """
    length = 24
    turned = [(i, i + 1) if i // 2 % 2 == 0 else (i + 1, i) for i in range(length)]

    def in_degrees(edges: list[tuple[int, int]]) -> Ints:
        full: set[int] = set()
        come = np.zeros(length + 1, np.int64)
        for one, other in edges:
            if one not in full and other not in full:
                full |= {one, other}
                come[other] += 1
        return come

    moved = np.abs(in_degrees(turned) - in_degrees(turned[1:])).sum()
    assert moved > 2 * 1 + 1 and moved >= length // 3


def test_a_promise_for_one_end_does_not_hold_for_all_edges() -> None:
    """The fault: the noise of out-degrees for degrees that both ends of an edge have."""
    every = degrees_of_all(plan("edge", "total"))
    bit = 1
    having = MASKS[MASKS & bit > 0]
    found = worst(every[having], every[having ^ bit], "cumulative")
    assert found > degree_sensitivity("edge", "out", "cumulative", "add-remove", 6)
