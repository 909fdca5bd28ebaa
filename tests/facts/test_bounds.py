"""Bounds of tables: what they say of any node, and which facts contradict each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treetop as tt
from treetop._util.numbers import NO_BOUND
from treetop.counts.constraint_reader import read_facts
from treetop.domain.constraints import PublicFacts
from treetop.domain.table_cells import CellNumbering
from treetop.errors import FactError

PLACE = tt.Hierarchy.from_prefixes(["AX1", "AX2", "AY1", "BX1", "BX2", "BZ1"], [1, 2], ["state", "county", "tract"])
SPINE = tt.Spine(
    ["place.state", "place.county", "sex", "place.tract"], {"place": PLACE, "sex": tt.Hierarchy.flat(["f", "m"])}
)


def codes(level: str) -> list[str]:
    found: list[str] = PLACE.codes[PLACE.levels.index(level)].to_pylist()
    return found


def some_bounds(seed: int) -> dict[str, tt.Fact]:
    """Bounds that some true counts keep, of places and of places by sex."""
    rng = np.random.default_rng(seed)
    truth = rng.poisson(4, (6, 2))
    stated: dict[str, tt.Fact] = {}
    for level, by_sex in (("state", False), ("county", False), ("county", True), ("tract", True)):
        if rng.random() < 0.3:
            continue
        counts: dict[Any, int] = {}
        for code in codes(level):
            own = truth[[tract.startswith(code) for tract in codes("tract")]].sum(axis=0)
            counts |= {(code, "f"): int(own[0]), (code, "m"): int(own[1])} if by_sex else {code: int(own.sum())}
        some = {cell: number for cell, number in counts.items() if rng.random() < 0.7} or counts
        stated[f"place.{level}{' * sex' if by_sex else ''}"] = tt.Fact(
            at_least={cell: max(number - int(rng.integers(0, 4)), 0) for cell, number in some.items()},
            at_most={cell: number + int(rng.integers(0, 4)) for cell, number in some.items()},
        )
    return stated


def by_hand(facts: PublicFacts, depth: int, nodes: tuple[int, int]) -> tuple[int, int]:
    """The bounds of a node of the spine, from its own and from those of its children, down to the leaves."""
    depths = SPINE.depths(depth)
    lower, upper = 0, NO_BOUND
    for fact in facts:
        if fact.table.depths == depths and fact.boxes is not None:
            cell = fact.table.numbers(np.array(nodes)[:, None], depths)
            low, high = fact.boxes.of(cell)
            lower, upper = int(low[0]), int(high[0])
    if depth < len(SPINE.levels):
        (level,) = SPINE.levels[depth].parts
        own = nodes[level.attribute]
        below = []
        for child in range(level.first[own], level.first[own + 1]):
            inside = list(nodes)
            inside[level.attribute] = child
            below.append(by_hand(facts, depth + 1, (inside[0], inside[1])))
        lower = max(lower, sum(low for low, _ in below))
        upper = min(upper, sum(high for _, high in below))
    return lower, upper


@pytest.mark.parametrize("seed", range(20))
def test_bounds_are_handed_up_the_tree(seed: int) -> None:
    facts = read_facts(SPINE, some_bounds(seed))
    for index in range(len(SPINE.levels) + 1):
        table = CellNumbering(SPINE, SPINE.depths(index))
        every = np.arange(table.number)
        lower, upper = facts.at(table.depths).of(every)
        for cell, low, high, node in zip(every, lower, upper, table.nodes(every).T, strict=True):
            expected = by_hand(facts, index, (int(node[0]), int(node[1])))
            assert (low, min(high, NO_BOUND)) == (expected[0], min(expected[1], NO_BOUND)), table.words(int(cell))


@pytest.mark.parametrize("seed", range(20))
def test_children_of_a_node_within_its_bounds_always_have_room_for_its_count(seed: int) -> None:
    """So a repair within bounds is feasible at every node, however the noise falls."""
    facts = read_facts(SPINE, some_bounds(seed))
    for level in SPINE.levels:
        table = CellNumbering(SPINE, SPINE.depths(level.index - 1))
        every = np.arange(table.number)
        lower, upper = facts.at(table.depths).of(every)
        nodes, fanout = table.nodes(every), level.fanout(table.nodes(every))
        for at in range(len(every)):
            children = np.repeat(nodes[:, at : at + 1], fanout[at], axis=1)
            level.go_down(children, np.arange(fanout[at]))
            least, most = facts.bounds(SPINE.depths(level.index), children)
            assert least.sum() <= lower[at]
            assert sum(map(int, most)) >= upper[at]


def test_a_finer_node_has_at_most_what_the_cell_around_it_has() -> None:
    facts = read_facts(SPINE, {"sex": tt.Fact(at_most={"f": 7}), "place.county": tt.Fact(at_most={"AX": 5, "AY": 0})})
    # Both sexes of the counties AX and BX.
    nodes = np.array([[0, 0, 2, 2], [0, 1, 0, 1]])
    lower, upper = facts.around(SPINE.depths(SPINE.level("sex").index), nodes)
    assert upper.tolist() == [5, 5, 7, NO_BOUND] and not lower.any()


def test_exact_counts_decide_coarser_levels_too() -> None:
    counts = {("AX", "f"): 3, ("AX", "m"): 2, ("AY", "f"): 1, ("BX", "f"): 4, ("BX", "m"): 4, ("BZ", "m"): 6}
    facts = read_facts(
        SPINE, {"place.county * sex": counts, "place.tract * sex": tt.Fact(impossible=[("AY1", "m"), ("BZ1", "f")])}
    )
    for depths, expected in (((2, 1), [3, 2, 1, 4, 4, 6]), ((1, 0), [6, 14]), ((0, 1), [8, 12]), ((0, 0), [20])):
        boxes = facts.exact(depths)
        assert boxes is not None and boxes.lower.tolist() == boxes.upper.tolist() == expected
    assert facts.exact((3, 0)) is None


CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "sums of two levels": (
        {"place.state": {"A": 10, "B": 5}, "place.county": {"AX": 3, "AY": 4, "BX": 3, "BZ": 2}},
        r"place\.state \(exact\); place\.county \(exact\).*place\.state 'A' would have at least 10 and at most 7",
    ),
    "totals of two attributes": (
        {"place.state": {"A": 10, "B": 5}, "sex": {"f": 9, "m": 9}},
        r"the total would have at least 18 and at most 15",
    ),
    "bounds that cross": (
        {"sex": tt.Fact(at_least={"f": 3}, at_most={"f": 2, "m": 9})},
        r"sex \(at_least, at_most\) contradicts itself: sex 'f' would have at least 3 and at most 2",
    ),
    "a bound far below": (
        {"place.state": tt.Fact(at_most={"A": 4}),
         "place.tract * sex": tt.Fact(at_least={("AX1", "f"): 2, ("AY1", "m"): 3})},
        r"place\.state 'A' would have at least 5 and at most 4",
    ),
    "something where nothing can be": (
        {"place.county * sex": tt.Fact(impossible=[("AX", "f"), ("AX", "m")]),
         "place.county": tt.Fact(at_least={"AX": 1})},
        r"place\.county 'AX' would have at least 1, and is impossible",
    ),
    "children that are too few": (
        {"place.state": tt.Fact(at_least={"A": 9}), "place.county": tt.Fact(at_most={"AX": 5}),
         "place.county * sex": tt.Fact(impossible=[("AY", "f"), ("AY", "m")])},
        r"place\.state \(at_least\); place\.county \(at_most\); place\.county \* sex \(impossible\)",
    ),
    "nothing that is possible": (
        {"place.state * sex": tt.Fact(possible=[("A", "f")]), "place.county": tt.Fact(possible=["BX"])},
        r"nothing is left that is possible",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_contradictions_are_named_with_their_cells(what: str) -> None:
    stated, message = CONTRADICTIONS[what]
    with pytest.raises(FactError, match=message):
        read_facts(SPINE, stated)


OTHERS: dict[str, Any] = {"place.tract": {"BZ1": 10**6}, "place.tract * sex": {("BZ1", "f"): 10**6}}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_only_the_fewest_facts_that_contradict_each_other_are_named(what: str) -> None:
    stated, message = CONTRADICTIONS[what]
    others = {
        "place.tract": tt.Fact(at_most={"BZ1": 10**6}),
        "place.tract * sex": tt.Fact(at_most={("BZ1", "f"): 10**6}),
    }
    with pytest.raises(FactError, match=message) as refused:
        read_facts(SPINE, {**{name: fact for name, fact in others.items() if name not in stated}, **stated})
    assert "place.tract (" not in str(refused.value)
