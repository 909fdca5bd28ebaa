"""Structural zeros: which combinations of codes there can be at all, by all rules of a plan together.

A node is possible if some combination that every rule allows lies under it. Rules about the same attributes are joined
into one table of what all of them allow, at the finest levels that they name; rules about different attributes do not
meet, and are kept apart. So a node that is possible for every rule by itself, but has nothing under it that all rules
allow, is impossible as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from treetop.domain.cells import Cells, Depths, Ints, below, meet
from treetop.domain.spine import Spine
from treetop.errors import FactError

MOST_ROWS = 1 << 24
"""A table of possible combinations has at most so many rows."""


@dataclass(frozen=True, eq=False)
class Rule:
    """The possible cells of one table."""

    table: Cells
    """The table."""
    cells: Ints = field(repr=False)
    """Their numbers, ascending, each once."""
    _projected: dict[Depths, Ints] = field(default_factory=dict, init=False, repr=False)
    _families: dict[tuple[Depths, int], Ints] = field(default_factory=dict, init=False, repr=False)

    @property
    def depths(self) -> Depths:
        """What the table tells apart."""
        return self.table.depths

    def at(self, depths: Depths) -> tuple[Cells, Ints]:
        """Return the part of a table that the rule is about, and its possible cells, ascending."""
        coarse = meet(depths, self.depths)
        table = self.table if coarse == self.depths else Cells(self.table.spine, coarse)
        if coarse not in self._projected:
            same = coarse == self.depths
            self._projected[coarse] = self.cells if same else np.unique(self.table.coarser(coarse, self.cells))
        return table, self._projected[coarse]

    def allows(self, depths: Depths, nodes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Tell which nodes, by attribute, are possible."""
        table, cells = self.at(depths)
        asked = table.numbers(nodes, depths)
        place = np.minimum(np.searchsorted(cells, asked), len(cells) - 1)
        return np.asarray(cells[place] == asked) if len(cells) else np.zeros(len(asked), np.bool_)

    def families(self, depths: Depths, attribute: int) -> tuple[Cells, int, Ints]:
        """Return the possible cells of a table by what they have beside an attribute, and then by its nodes.

        A family is what stands beside it, times how many nodes the attribute has; the nodes are added to that.
        """
        table, cells = self.at(depths)
        beside = Cells(table.spine, tuple(0 if one == attribute else depth for one, depth in enumerate(table.depths)))
        width = table.spine.trees[attribute].sizes[table.depths[attribute] - 1]
        if (key := (table.depths, attribute)) not in self._families:
            nodes = table.nodes(cells)
            self._families[key] = np.sort(beside.numbers(nodes, table.depths) * width + nodes[attribute])
        return beside, width, self._families[key]

    def joined(self, other: Rule) -> Rule:
        """Return what both rules allow."""
        spine = self.table.spine
        shared = meet(self.depths, other.depths)
        mine, theirs = (one.table.coarser(shared, one.cells) for one in (self, other))
        order = np.argsort(theirs, kind="stable")
        start, stop = (np.searchsorted(theirs[order], mine, side=side) for side in ("left", "right"))
        size = stop - start
        refuse_many(int(size.sum()), f"{self.table.name} and {other.table.name} together allow")
        left = np.repeat(np.arange(len(mine)), size)
        right = order[np.arange(len(left)) - np.repeat(np.cumsum(size) - size, size) + np.repeat(start, size)]
        one, two = self.table.nodes(self.cells[left]), other.table.nodes(other.cells[right])
        finer = np.array(self.depths) >= np.array(other.depths)
        depths = tuple(map(max, self.depths, other.depths))
        both = Cells(spine, depths)
        return Rule(both, np.unique(both.numbers(np.where(finer[:, None], one, two), depths)))


@dataclass(frozen=True, eq=False)
class Possible:
    """What all rules of a plan allow; without any, everything."""

    spine: Spine
    """The spine."""
    rules: tuple[Rule, ...] = ()
    """Joined, so that no two are about the same attribute."""

    @staticmethod
    def of(spine: Spine, rules: Sequence[Rule]) -> Possible:
        """Join rules; the small ones first, so that what is joined stays small."""
        joined: list[Rule] = []
        for rule in sorted(rules, key=lambda rule: len(rule.cells)):
            meeting = [one for one in joined if any(meet(one.depths, rule.depths))]
            joined = [one for one in joined if one not in meeting]
            joined.append(reduce(lambda one, other: one.joined(other), meeting, rule))
        return Possible(spine, tuple(joined))

    def allows(self, depths: Depths, nodes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Tell which nodes, by attribute and refined to these depths, are possible."""
        there = np.ones(len(nodes[0]), np.bool_)
        for rule in self.rules:
            there &= rule.allows(depths, nodes)
        return there

    def number(self, table: Cells, depths: Depths, cells: Ints) -> Ints:
        """Return how many possible cells of a table lie in each of some cells of a coarser one."""
        inside = Cells(self.spine, depths).nodes(cells)
        number = np.ones(len(cells), np.int64)
        about: set[int] = set()
        for rule in self.rules:
            about.update(rule.table.attributes)
            number *= _number(rule, table.depths, depths, inside)
        for one in table.attributes:
            if one not in about:
                start, stop = below(self.spine.trees[one], depths[one], table.depths[one], inside[one])
                number *= stop - start
        return number


def refuse_many(size: int, what: str) -> None:
    """Refuse a table of combinations that has too many."""
    if size > MOST_ROWS:
        raise FactError(
            f"{what} {size:,} combinations, and at most {MOST_ROWS:,} are kept: state the rule at coarser levels, or "
            "as fewer rules that share attributes"
        )


def _number(rule: Rule, fine: Depths, coarse: Depths, inside: Ints) -> Ints:
    """Return how many possible cells of a table lie in cells of a coarser one, as far as a rule's attributes go."""
    spine = rule.table.spine
    table, cells = rule.at(fine)
    nodes = table.nodes(cells)
    weight = np.ones(len(cells), np.int64)
    outside = np.ones(inside.shape[1], np.int64)
    for one in rule.table.attributes:
        tree = spine.trees[one]
        if coarse[one] > rule.depths[one]:
            start, stop = below(tree, coarse[one], fine[one], inside[one])
            outside *= stop - start
        else:
            start, stop = below(tree, table.depths[one], fine[one], nodes[one])
            weight *= stop - start
    summed = Cells(spine, meet(coarse, rule.depths))
    group, place = np.unique(summed.numbers(nodes, table.depths), return_inverse=True)
    total = np.bincount(place, weight, len(group)).astype(np.int64) if len(group) else np.zeros(0, np.int64)
    asked = summed.numbers(inside, coarse)
    at = np.minimum(np.searchsorted(group, asked), max(len(group) - 1, 0))
    there = group[at] == asked if len(group) else np.zeros(len(asked), np.bool_)
    return np.where(there, total[at] if len(group) else 0, 0) * outside


def complement(table: Cells, cells: Ints) -> Ints:
    """Return all other cells of a table."""
    refuse_many(table.number, f"{table.name}, of which some cells are impossible, has")
    there = np.ones(table.number, np.bool_)
    there[cells] = False
    return np.flatnonzero(there)


def equal_codes(table: Cells) -> Ints:
    """Return the cells of a table whose codes are all the same."""
    listed = (table.codes(one).to_pylist() for one in table.attributes)
    places = [{code: node for node, code in enumerate(codes)} for codes in listed]
    shared = [code for code in places[0] if all(code in place for place in places[1:])]
    nodes = np.zeros((len(table.depths), len(shared)), np.int64)
    for one, place in zip(table.attributes, places, strict=True):
        nodes[one] = [place[code] for code in shared]
    return np.sort(table.numbers(nodes, table.depths))
