"""Structural zeros: a node is possible exactly if some leaf under it is that all rules allow, whatever is asked."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop.counts.constraint_reader import read_facts
from treetop.domain.constraints import PublicFacts, narrowed
from treetop.domain.table_cells import MOST_ROWS, CellNumbering, PossibleCells, above
from treetop.errors import FactError

PLACE = tt.Hierarchy.from_prefixes(["AX1", "AX2", "AY1", "BX1", "BX2", "BZ1"], [1, 2], ["state", "county", "tract"])
AGE = tt.Hierarchy.from_prefixes(["01", "02", "11", "12"], [1], ["band", "year"])
SEX = tt.Hierarchy.flat(["f", "m"])
SPINE = tt.Spine(
    ["place.state", "age.band", "sex", "place.county", "age.year", "place.tract"],
    {"place": PLACE, "age": AGE, "sex": SEX},
)
LEAVES = np.array(list(product(range(6), range(4), range(2)))).T
FINEST = (3, 2, 1)
TABLES = ["place.county * age.band", "place.tract * sex", "age.year * sex", "place.state * sex", "age.band", "sex"]


def some_facts(seed: int) -> PublicFacts:
    """A few rules, some as lists of what is possible and some of what is not."""
    rng = np.random.default_rng(seed)
    stated = {}
    for name in rng.choice(TABLES, rng.integers(1, 4), replace=False):
        levels = [one.partition(".") for one in name.split(" * ")]
        trees = [SPINE.attributes[attribute] for attribute, _, _ in levels]
        codes = [
            tree.codes[tree.levels.index(level) if level else 0]
            for tree, (_, _, level) in zip(trees, levels, strict=True)
        ]
        cells = list(product(*(one.to_pylist() for one in codes)))
        few = [cells[one] for one in np.flatnonzero(rng.random(len(cells)) < 0.4)] or cells[:1]
        stated[str(name)] = (
            tt.Fact(impossible=few) if rng.random() < 0.5 and len(few) < len(cells) else tt.Fact(possible=few)
        )
    try:
        return read_facts(SPINE, stated)
    except FactError:  # nothing is left that is possible
        return some_facts(seed + 1_000)


def allowed(facts: PublicFacts) -> NDArray[np.bool_]:
    """Which leaves every rule allows, one rule at a time."""
    there = np.ones(LEAVES.shape[1], bool)
    for fact in facts:
        assert fact.rule is not None
        there &= np.isin(fact.table.numbers(LEAVES, FINEST), fact.rule.cells)
    return there


@pytest.mark.parametrize("seed", range(25))
def test_a_node_is_possible_exactly_if_a_leaf_under_it_is(seed: int) -> None:
    facts = some_facts(seed)
    there = allowed(facts)
    for depths in product(range(4), range(3), range(2)):
        table = CellNumbering(SPINE, depths)
        every = np.arange(table.number)
        expected = np.isin(every, table.numbers(LEAVES, FINEST)[there])
        assert facts.possible.allows(depths, table.nodes(every)).tolist() == expected.tolist()


@pytest.mark.parametrize("seed", range(25))
def test_the_children_of_possible_nodes_are_those_that_are_possible(seed: int) -> None:
    facts = some_facts(seed)
    for level in SPINE.levels:
        table = CellNumbering(SPINE, SPINE.depths(level.index - 1))
        nodes = table.nodes(np.arange(table.number))
        nodes = nodes[:, facts.possible.allows(table.depths, nodes)]
        (part,), depths = level.parts, SPINE.depths(level.index)
        narrow = narrowed(SPINE, facts.possible).levels[level.index - 1]
        start = np.concatenate([[0], np.cumsum(narrow.fanout(nodes))])
        for at in range(nodes.shape[1]):
            own = nodes[part.attribute, at]
            children = np.arange(part.first[own], part.first[own + 1])
            inside = np.repeat(nodes[:, at : at + 1], len(children), axis=1)
            inside[part.attribute] = children
            expected = children[facts.possible.allows(depths, inside)]
            assert start[at + 1] - start[at] == len(expected)
            found = np.repeat(nodes[:, at : at + 1], len(expected), axis=1)
            narrow.go_down(found, np.arange(len(expected)))
            assert found[part.attribute].tolist() == expected.tolist()
            assert narrow.ranks(found).tolist() == list(range(len(expected)))
            narrow.go_up(found)
            assert (found == nodes[:, at : at + 1]).all()


@pytest.mark.parametrize("seed", range(15))
def test_possible_cells_are_counted(seed: int) -> None:
    facts = some_facts(seed)
    for fine in [(3, 2, 1), (2, 1, 0), (1, 2, 1), (3, 0, 1)]:
        table = CellNumbering(SPINE, fine)
        cells = np.arange(table.number)
        cells = cells[facts.possible.allows(fine, table.nodes(cells))]
        for coarse in product(*(range(depth + 1) for depth in fine)):
            inside = table.coarser(coarse, cells)
            number = np.bincount(inside, minlength=CellNumbering(SPINE, coarse).number)
            assert facts.possible.number(table, coarse, np.arange(len(number))).tolist() == number.tolist()


def test_rules_about_one_attribute_are_joined_and_those_about_others_are_not() -> None:
    facts = read_facts(
        SPINE,
        {
            "place.county * sex": tt.Fact(possible=[("AX", "f"), ("BX", "m")]),
            "age.band": tt.Fact(impossible=["0"]),
            "place.state * sex": tt.Fact(possible=[("A", "f"), ("A", "m")]),
        },
    )
    assert sorted(len(rule.cells) for rule in facts.possible.rules) == [1, 1]
    # Each rule by itself allows the state B; together they leave nothing in it.
    assert facts.possible.allows((1, 0, 0), np.array([[0, 1], [0, 0], [0, 0]])).tolist() == [True, False]


def test_flows_within_a_county_are_as_many_as_there_are_counties() -> None:
    ends = tt.Spine.origin_first(PLACE, PLACE)
    facts = read_facts(ends, {"origin.county * destination.county": tt.Fact(possible="same")})
    (rule,) = facts.possible.rules
    assert len(rule.cells) == 4
    level = ends.level("destination.county")
    # Of origins in the counties AX and BZ, whose destination is known by state, one county is left.
    narrow = narrowed(ends, facts.possible)
    nodes = np.array([[0, 3], [0, 1]])
    assert narrow.levels[level.index - 1].fanout(nodes).tolist() == [1, 1]
    assert not narrow.levels[level.index - 1].divides
    narrow.levels[level.index - 1].go_down(nodes, np.zeros(2, np.int64))
    assert nodes[1].tolist() == [0, 3]
    # Below, tracts are free.
    level = narrow.level("destination.tract")
    assert level.fanout(np.array([[0], [0]])).tolist() == [2] and level.is_plain
    assert narrow.leaves < ends.leaves


def test_what_lies_above_a_node_is_found_without_listing_the_level() -> None:
    for depth, refined in ((0, 3), (1, 3), (2, 3), (3, 3), (1, 2)):
        nodes = np.arange(PLACE.sizes[refined - 1])
        expected = PLACE.ancestors(depth - 1, refined - 1) if depth else np.zeros(len(nodes))
        assert above(PLACE, depth, refined, nodes).tolist() == expected.tolist()


def test_too_many_combinations_are_refused_with_their_number() -> None:
    many = tt.Hierarchy.flat([f"{code:04d}" for code in range(5_000)])
    spine = tt.Spine(["a", "b"], {"a": many, "b": many})
    with pytest.raises(FactError, match=r"25,000,000 combinations.*16,777,216"):
        read_facts(spine, {"a * b": tt.Fact(impossible=[("0000", "0001")])})
    table = CellNumbering(spine, (1, 0))
    one, other = PossibleCells(table, np.arange(5_000)), PossibleCells(CellNumbering(spine, (0, 1)), np.arange(5_000))
    assert len(one.cells) * len(other.cells) > MOST_ROWS
    with pytest.raises(FactError, match="together allow 25,000,000"):
        one.joined(other)
