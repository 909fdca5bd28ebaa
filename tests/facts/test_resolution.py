"""How many tests there are where some children are impossible: those that are measured, and their only descendants."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import treetop as tt
from treetop.counts.constraint_reader import read_facts
from treetop.domain.constraints import narrowed
from treetop.domain.table_cells import CellNumbering
from treetop.plan.resolution import number_of_tests

PLACE = tt.Hierarchy.from_prefixes(["AX1", "AX2", "AY1", "BX1", "BZ1"], [1, 2], ["state", "county", "tract"])
ENDS = tt.Spine.origin_first(PLACE, PLACE)


def descendants(leaves: list[tuple[int, ...]], spine: tt.Spine, index: int) -> set[tuple[int, ...]]:
    """Return the nodes of a level that possible leaves are under."""
    depths, finest = spine.depths(index), tuple(len(tree.levels) for tree in spine.trees)
    nodes = np.array(leaves).T
    table = CellNumbering(spine, depths)
    return {tuple(node) for node in table.nodes(np.unique(table.numbers(nodes, finest))).T.tolist()}


@pytest.mark.parametrize(
    "rule",
    [
        {"origin.county * destination.county": tt.Fact(possible="same")},
        {"origin.state * destination.state": tt.Fact(possible="same")},
        {"origin.tract * destination.county": tt.Fact(possible=[("AX1", "AX"), ("AX2", "BZ"), ("BX1", "BX")])},
    ],
)
def test_tests_are_counted_as_by_listing_all_leaves(rule: dict[str, tt.Fact]) -> None:
    facts = read_facts(ENDS, rule)
    spine = narrowed(ENDS, facts.possible)
    size = PLACE.sizes[-1]
    every = np.array(list(product(range(size), repeat=2))).T
    leaves = [tuple(leaf) for leaf in every[:, facts.possible.allows((3, 3), every)].T.tolist()]
    for index in range(1, len(spine.levels) + 1):
        above = sorted(descendants(leaves, spine, index - 1))
        measured = []
        for node in above:
            own = [leaf for leaf in leaves if descendants([leaf], spine, index - 1) == {node}]
            children = descendants(own, spine, index)
            measured += [(child, own) for child in children] if len(children) > 1 else []
        expected = [0] * (len(spine.levels) + 1)
        for later in range(index, len(spine.levels) + 1):
            for child, own in measured:
                inside = [leaf for leaf in own if descendants([leaf], spine, index) == {child}]
                expected[later] += len(descendants(inside, spine, later)) == 1
        assert number_of_tests(spine.levels, index, np.array(above).T).tolist() == expected
