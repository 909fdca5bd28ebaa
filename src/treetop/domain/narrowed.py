"""A spine without what cannot be: at a level with structural zeros, the children of a node are those that are possible.

All else asks a level for children, ranks and numbers of nodes, and so never sees an impossible one: it is no slot, and
costs no noise, no time and no invented entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from treetop.domain.cells import Cells, Depths
from treetop.domain.level import Ints, Level, Nodes, Refinement
from treetop.domain.possible import Possible, Rule
from treetop.domain.spine import Spine
from treetop.errors import FactError


@dataclass(frozen=True, eq=False)
class NarrowLevel(Level):
    """A level at which some children are impossible; ranks are those among the possible children of a node."""

    rule: Rule = field(repr=False)
    """What is possible."""
    depths: Depths
    """How many levels of every attribute are refined here."""

    @property
    def is_plain(self) -> bool:
        """Possible children do not follow each other."""
        return False

    @property
    def part(self) -> Refinement:
        """What the level does, as if everything were possible."""
        return self.parts[0]

    @cached_property
    def divides(self) -> bool:
        """Whether any possible node has more than one possible child."""
        _, width, families = self._families
        parent = families // width * width + self.part.above[families % width]
        return bool((parent[1:] == parent[:-1]).any())

    @cached_property
    def _families(self) -> tuple[Cells, int, Ints]:
        return self.rule.families(self.depths, self.part.attribute)

    def _start(self, nodes: Nodes, refined: Depths, child: Ints) -> Ints:
        """Return the place of children among all that are possible, by what they have beside the attribute."""
        beside, width, families = self._families
        return np.searchsorted(families, beside.numbers(nodes, refined) * width + child)

    @cached_property
    def _above(self) -> Depths:
        return tuple(depth - (one == self.part.attribute) for one, depth in enumerate(self.depths))

    def fanout(self, nodes: Nodes) -> Ints:
        """Return how many possible children each node of the level above has."""
        own = nodes[self.part.attribute]
        first, last = (self._start(nodes, self._above, self.part.first[one]) for one in (own, own + 1))
        fanout: Ints = last - first
        return fanout

    def go_down(self, nodes: Nodes, rank: Nodes) -> None:
        """Turn nodes of the level above, in place, into their possible children of these ranks."""
        _, width, families = self._families
        own = nodes[self.part.attribute]
        place = self._start(nodes, self._above, self.part.first[own]) + rank
        nodes[self.part.attribute] = families[place] % width

    def ranks(self, nodes: Nodes) -> Ints:
        """Return the rank of each possible node of the level among its possible siblings."""
        own = np.asarray(nodes[self.part.attribute], np.int64)
        eldest = self.part.first[self.part.above[own]]
        ranks: Ints = self._start(nodes, self.depths, own) - self._start(nodes, self.depths, eldest)
        return ranks


def is_narrow(spine: Spine) -> bool:
    """Whether a spine has left something out."""
    return any(isinstance(level, NarrowLevel) for level in spine.levels)


def narrowed(spine: Spine, possible: Possible) -> Spine:
    """Return a spine whose levels have possible children only, whatever was left out of it before."""
    if is_narrow(spine):
        spine = type(spine)(spine.splits, spine.attributes)
    return spine.with_levels([_narrowed(spine, level, possible) for level in spine.levels])


def _narrowed(spine: Spine, level: Level, possible: Possible) -> Level:
    depths = spine.depths(level.index)
    own = [(part, rule) for part in level.parts for rule in possible.rules if _limits(rule, part.attribute, depths)]
    plain = Level(level.index, level.name, level.parts, min(level.nodes, _number(spine, depths, possible)))
    if not own:
        return plain
    ((_, rule), *_) = own
    if level.is_merged:
        raise FactError(
            f"{rule.table.name} says what is possible, and the merged step {level.name!r} cannot leave out the rest: "
            "refine its attributes one after the other"
        )
    return NarrowLevel(plain.index, plain.name, plain.parts, plain.nodes, rule, depths)


def _limits(rule: Rule, attribute: int, depths: Depths) -> bool:
    """Whether a rule says which children are possible where an attribute is refined to these depths."""
    return rule.depths[attribute] >= depths[attribute]


def _number(spine: Spine, depths: Depths, possible: Possible) -> int:
    """Return how many nodes of a level are possible."""
    root = (0,) * len(depths)
    return int(possible.number(Cells(spine, depths), root, np.zeros(1, np.int64))[0])
