"""A fact: something public that a release must keep, as a plan states it: a count, a bound, an impossible cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treetop._util.dtypes import Ints
from treetop._util.lazy import FrozenMap
from treetop._util.numbers import NO_BOUND
from treetop.domain.marginal import is_within
from treetop.domain.spine import Spine
from treetop.domain.spine_level import AttributeStep, Level, Nodes
from treetop.domain.table_cells import (
    MOST_ROWS,
    CellBounds,
    CellNumbering,
    Depths,
    Possible,
    PossibleCells,
    complement,
    meet,
    ordered_cells,
)
from treetop.errors import FactError

SAME = "same"
"""The rule that only equal codes go together."""
ORDERED = "ordered"
"""The rule that of two ends with one hierarchy the second does not come before the first: unordered pairs."""
COUNTED = ("exact", "at_least", "at_most")
"""Kinds that state one number for every listed cell."""
LISTED = ("possible", "impossible")
"""Kinds that state a list of cells."""
INVARIANT = "invariant"
"""Kinds that are read from the private table and published without noise."""


@dataclass(frozen=True, eq=False)
class Fact:
    """Public knowledge of one table, which a plan names as it names margins: "place.state", "age.band * status".

    Numbers and lists are public: a path, a table, or in Python a mapping from codes to counts, or a list of codes. Of
    several attributes, codes are tuples.

    >>> Fact(exact={"A": 120, "B": 80}).kinds, Fact(at_least={"A": 3}, possible=["A", "B"]).kinds
    (('exact',), ('at_least', 'possible'))
    """

    exact: Any = None
    """The counts of all cells: instead of measuring, these are released."""
    at_least: Any = None
    at_most: Any = None
    possible: Any = None
    """The cells that there can be, and no others; or "same": those with equal codes; or, of edges without direction,
    "ordered": those whose first end does not come after the second."""
    impossible: Any = None
    invariant: bool = False
    """The private table's own counts, published exactly: they are not protected."""
    unchecked: bool = False
    """Whether the private table is not compared with it before anything is spent; it is kept all the same."""
    sha256: str | None = None

    def __post_init__(self) -> None:
        for name in ("invariant", "unchecked"):
            if not isinstance(getattr(self, name), bool):
                raise FactError(f"{name} is {getattr(self, name)!r}: it is true or false")
        kinds = self.kinds
        if not kinds:
            raise FactError(f"says nothing: give one of {', '.join((*COUNTED, *LISTED))}, or invariant = true")
        if len(kinds) > 1 and (alone := [kind for kind in kinds if kind in ("exact", "invariant")]):
            other = next(kind for kind in kinds if kind != alone[0])
            raise FactError(f"{alone[0]} says all about its table, and {other} stands beside it: keep one of them")
        if "possible" in kinds and "impossible" in kinds:
            raise FactError("possible and impossible both list the cells there can be: keep one of them")
        if self.unchecked and self.invariant:
            raise FactError("an invariant is what the private table has: leave unchecked out")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that it states."""
        stated = tuple(kind for kind in (*COUNTED, *LISTED) if getattr(self, kind) is not None)
        return (*stated, INVARIANT) if self.invariant else stated

    @staticmethod
    def of(stated: Any) -> Fact:
        """Return a plan's statements about a table: a fact, or the table's exact counts themselves."""
        if isinstance(stated, Fact):
            return stated
        if stated is None or isinstance(stated, bool):
            raise FactError(f"is {stated!r}: give a file of counts, or a treetop.Fact")
        return Fact(exact=stated)


PAIR = 2

# All facts of a plan together: what they say of any node, and whether they can all be true.

_SHOWN = 3


@dataclass(frozen=True, eq=False)
class TableFact:
    """The constraint on one table, with its cells numbered."""

    table: CellNumbering
    kinds: tuple[str, ...]
    """The statements about it: "exact", "at_least", "at_most", "possible", "impossible", "invariant"."""
    boxes: CellBounds | None = field(default=None, repr=False)
    """The bounds of its cells; exact counts are bounds that meet."""
    rule: PossibleCells | None = field(default=None, repr=False)
    unchecked: bool = False
    """Whether the private table is not compared with it."""
    sha256: str = ""
    """SHA-256 of the content, independent of how it was written."""
    places: Mapping[str, str] = field(default_factory=dict)
    """By kind, the name of the file, or "same"; empty if it was given in memory."""
    stated: Mapping[str, tuple[Ints, Ints]] = field(default_factory=dict, repr=False)
    """By kind, the cells, ascending, and their numbers if they have any."""
    sources: tuple[Any, ...] = field(default=(), repr=False)
    """The locations of the files that it was read from; none of them may be the private table."""

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.table.name

    @property
    def words(self) -> str:
        """Name the fact, for messages."""
        stated = (f"{kind} = {self.places[kind]!r}" if self.places.get(kind) else kind for kind in self.kinds)
        return f"{self.name} ({', '.join(stated)})"

    def told(self, count: Ints | None) -> TableFact:
        """Return it with the counts of all its cells, in their order; as it is where there are none."""
        if count is None:
            return self
        cells = np.arange(len(count))
        stated = {**self.stated, INVARIANT: (cells, count)}
        return replace(self, boxes=CellBounds(self.table, cells, count, count), stated=FrozenMap(stated))

    def describe(self) -> dict[str, Any]:
        """Return it as plain values, for cards and digests."""
        description: dict[str, Any] = {"table": self.name, "states": list(self.kinds)}
        if self.sha256:
            description["sha256"] = self.sha256
        return description | ({"unchecked": True} if self.unchecked else {})


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """The facts of a plan."""

    spine: Spine
    facts: tuple[TableFact, ...] = ()
    _at: dict[Depths, CellBounds] = field(default_factory=dict, init=False, repr=False)

    def __bool__(self) -> bool:
        return bool(self.facts)

    def __iter__(self) -> Iterator[TableFact]:
        return iter(self.facts)

    @cached_property
    def possible(self) -> Possible:
        """Cells that all structural zeros together allow."""
        return Possible.of(self.spine, [fact.rule for fact in self.facts if fact.rule is not None])

    @cached_property
    def ordered(self) -> tuple[int, int] | None:
        """The two attributes of which one end does not come after the other in any leaf; None if there are none."""
        rules = [fact.rule for fact in self.facts if fact.rule is not None]
        if len(rules) != 1 or rules[0].depths != self.spine.finest or len(rules[0].table.attributes) != PAIR:
            return None
        cells = ordered_cells(rules[0].table)
        first, last = rules[0].table.attributes
        return (first, last) if cells is not None and np.array_equal(cells, rules[0].cells) else None

    @cached_property
    def invariants(self) -> tuple[Depths, ...]:
        """The invariants: tables that are published without noise."""
        return tuple(fact.table.depths for fact in self.facts if INVARIANT in fact.kinds)

    @cached_property
    def bounded(self) -> tuple[Depths, ...]:
        """The tables with bounds, and all that two of them both tell: the finest first, the total last."""
        stated = {fact.table.depths for fact in self.facts if fact.boxes is not None}
        tables = stated | ({(0,) * len(self.spine.trees)} if stated else set())
        while more := {meet(table, other) for table, other in combinations(tables, 2)} - tables:
            tables |= more
        return tuple(sorted(tables, key=lambda depths: (-sum(depths), depths)))

    def at(self, depths: Depths) -> CellBounds:
        """Return the bounds of a table's cells, from its own constraint and those of finer tables."""
        if depths not in self._at:
            stated = [fact.boxes for fact in self.facts if fact.boxes is not None and fact.table.depths == depths]
            finer = (self.at(one) for one in self.bounded if one != depths and is_within(depths, one))
            bounds = [*stated, *(boxes.summed(depths, self.possible) for boxes in finer)]
            possible = [one.possible(self.possible) for one in bounds]
            self._at[depths] = CellBounds.joined(CellNumbering(self.spine, depths), possible)
        return self._at[depths]

    def exact(self, depths: Depths) -> CellBounds | None:
        """Return the counts of all possible cells of a table where facts decide them; None where they do not."""
        boxes = self.at(depths)
        if not (boxes.lower == boxes.upper).all():
            return None
        root = (0,) * len(self.spine.trees)
        number = int(self.possible.number(boxes.table, root, np.zeros(1, np.int64))[0])
        return boxes if len(boxes.cells) == number else None

    def decides(self, depths: Depths) -> bool:
        """Whether all counts of a table are known: by exact facts, or by an invariant that a run reads."""
        if any(is_within(depths, invariant) for invariant in self.invariants):
            return True
        return self.says_something(depths) and self.exact(depths) is not None

    @cached_property
    def of_total(self) -> tuple[int, int]:
        """Lower and upper bound of the total."""
        lower, upper = self.at((0,) * len(self.spine.trees)).of(np.zeros(1, np.int64))
        return int(lower[0]), int(upper[0])

    def says_something(self, depths: Depths) -> bool:
        """Whether there are bounds of the cells of a table, by its own facts or those of finer tables."""
        # Asked first, since a table that is finer than all facts may have more cells than can be numbered.
        return any(is_within(depths, table) for table in self.bounded) and len(self.at(depths).cells) > 0

    def bounds(self, depths: Depths, nodes: NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Return the least and the most that nodes have, given by attribute: such that their children can share it."""
        if not self.says_something(depths):
            return np.zeros(len(nodes[0]), np.int64), np.full(len(nodes[0]), NO_BOUND, np.int64)
        return self.at(depths).of(CellNumbering(self.spine, depths).numbers(nodes, depths))

    def around(self, depths: Depths, nodes: NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Return the bounds of nodes, none above that of a coarser cell it is in; impossible nodes have none."""
        lower, upper = self.bounds(depths, nodes)
        for coarser in {meet(table, depths) for table in self.bounded} - {depths}:
            boxes = self.at(coarser)
            upper = np.minimum(upper, boxes.of(boxes.table.numbers(nodes, depths))[1])
        there = self.possible.allows(depths, nodes)
        return np.where(there, lower, 0), np.where(there, upper, 0)

    def with_exact(self, exact: Mapping[Depths, Ints]) -> PublicFacts:
        """Return these facts with the counts of invariants, which a run has read: of all cells, in their order."""
        return PublicFacts(self.spine, tuple(fact.told(exact.get(fact.table.depths)) for fact in self.facts))

    def check(self) -> None:
        """Refuse facts that cannot all be true, naming the fewest that contradict each other."""
        why = self._contradiction()
        if why is None:
            self._refuse_incomplete()
            return
        for size in range(1, len(self.facts)):
            for few in combinations(self.facts, size):
                if (contradiction := PublicFacts(self.spine, few)._contradiction()) is not None:
                    _refuse(few, contradiction)
        _refuse(self.facts, why)

    def _refuse_incomplete(self) -> None:
        """Refuse exact counts that leave out cells that there can be: 0 and not known are not the same."""
        root, one = (0,) * len(self.spine.trees), np.zeros(1, np.int64)
        for fact in self.facts:
            if "exact" not in fact.kinds or fact.boxes is None:
                continue
            there = fact.boxes.possible(self.possible)
            missing = int(self.possible.number(fact.table, root, one)[0]) - len(there.cells)
            if missing:
                example = ""
                if fact.table.number <= MOST_ROWS:  # not too large to look
                    others = complement(fact.table, there.cells)
                    others = others[self.possible.allows(fact.table.depths, fact.table.nodes(others))]
                    example = f", such as {fact.table.words(int(others[0]))}"
                raise FactError(
                    f"{fact.words} leaves out {missing:,} of its cells{example}: "
                    "list all that are possible, with 0 where there is nobody. For some cells only, state at_least and "
                    "at_most instead; under add-remove, bounds that meet need unchecked = true"
                )

    def _contradiction(self) -> str | None:
        """Say where facts cannot all be true; None where they can."""
        for rule in self.possible.rules:
            if len(rule.cells) == 0:
                return "nothing is left that is possible"
        for fact in self.facts:
            if (boxes := fact.boxes) is None:
                continue
            there = self.possible.allows(boxes.table.depths, boxes.table.nodes(boxes.cells))
            if len(wrong := np.flatnonzero(~there & (boxes.lower > 0))):
                return _examples(boxes, wrong, "would have at least {0:,}, and is impossible")
        for depths in self.bounded:
            boxes = self.at(depths)
            if len(wrong := np.flatnonzero(boxes.lower > boxes.upper)):
                return _examples(boxes, wrong, "would have at least {0:,} and at most {1:,}")
        return None

    def describe(self) -> list[dict[str, Any]]:
        """Return the facts as plain values, for cards and digests."""
        return [fact.describe() for fact in self.facts]


def _examples(boxes: CellBounds, wrong: Ints, words: str) -> str:
    """Say what is wrong with the first of some cells, by their lower and upper bounds."""
    examples = [
        f"{boxes.table.words(int(boxes.cells[one]))} {words.format(int(boxes.lower[one]), int(boxes.upper[one]))}"
        for one in wrong[:_SHOWN]
    ]
    return "; ".join(examples) + (f"; and so on for {len(wrong) - _SHOWN:,} more" if len(wrong) > _SHOWN else "")


def _refuse(facts: Sequence[TableFact], why: str) -> None:
    if len(facts) == 1:
        raise FactError(f"{facts[0].words} contradicts itself: {why}. Correct it")
    named = "; ".join(fact.words for fact in facts)
    raise FactError(f"these cannot all be true: {named}. By them, {why}. Correct one, or leave one out")


# A spine without what cannot be: at a level with structural zeros, the children of a node are those that are possible.


@dataclass(frozen=True, eq=False)
class NarrowLevel(Level):
    """A level at which some children are impossible; ranks are those among the possible children of a node."""

    rule: PossibleCells = field(repr=False)
    depths: Depths
    """How many levels of every attribute are refined here."""

    @property
    def is_plain(self) -> bool:
        """Possible children do not follow each other."""
        return False

    @property
    def part(self) -> AttributeStep:
        """The step of the level without structural zeros."""
        return self.parts[0]

    @cached_property
    def divides(self) -> bool:
        """Whether any possible node has more than one possible child."""
        _, width, families = self._families
        parent = families // width * width + self.part.above[families % width]
        return bool((parent[1:] == parent[:-1]).any())

    @cached_property
    def _families(self) -> tuple[CellNumbering, int, Ints]:
        return self.rule.families(self.depths, self.part.attribute)

    def _start(self, nodes: Nodes, refined: Depths, child: Ints) -> Ints:
        """Return the place of children among all possible ones, by their other attributes."""
        beside, width, families = self._families
        return np.searchsorted(families, beside.numbers(nodes, refined) * width + child)

    @cached_property
    def _above(self) -> Depths:
        return tuple(depth - (attribute == self.part.attribute) for attribute, depth in enumerate(self.depths))

    def fanout(self, nodes: Nodes) -> Ints:
        """Return how many possible children each node of the level above has."""
        parent = nodes[self.part.attribute]
        first, last = (self._start(nodes, self._above, self.part.first[node]) for node in (parent, parent + 1))
        fanout: Ints = last - first
        return fanout

    def number_between(self, nodes: Nodes, start: Ints, stop: Ints) -> Ints:
        """Return how many possible children nodes of the level above have among nodes of the refined attribute."""
        stop = np.maximum(start, stop)
        return self._start(nodes, self._above, stop) - self._start(nodes, self._above, start)

    def go_down(self, nodes: Nodes, rank: Nodes) -> None:
        """Turn nodes of the level above, in place, into their possible children of these ranks."""
        _, width, families = self._families
        parent = nodes[self.part.attribute]
        place = self._start(nodes, self._above, self.part.first[parent]) + rank
        nodes[self.part.attribute] = families[place] % width

    def ranks(self, nodes: Nodes) -> Ints:
        """Return the rank of each possible node of the level among its possible siblings."""
        parent = np.asarray(nodes[self.part.attribute], np.int64)
        eldest = self.part.first[self.part.above[parent]]
        ranks: Ints = self._start(nodes, self.depths, parent) - self._start(nodes, self.depths, eldest)
        return ranks


def is_narrow(spine: Spine) -> bool:
    """Whether a spine has left something out."""
    return any(isinstance(level, NarrowLevel) for level in spine.levels)


def narrowed(spine: Spine, possible: Possible) -> Spine:
    """Return a spine whose levels have possible children only, dropping earlier restrictions."""
    if is_narrow(spine):
        spine = type(spine)(spine.splits, spine.attributes)
    return spine.with_levels([_narrowed(spine, level, possible) for level in spine.levels])


def _narrowed(spine: Spine, level: Level, possible: Possible) -> Level:
    depths = spine.depths(level.index)
    # The rules that say which children are possible where an attribute is refined to these depths.
    attributes = [part.attribute for part in level.parts]
    rules = [rule for one in attributes for rule in possible.rules if rule.depths[one] >= depths[one]]
    number = int(possible.number(CellNumbering(spine, depths), (0,) * len(depths), np.zeros(1, np.int64))[0])
    plain = Level(level.index, level.name, level.parts, min(level.nodes, number))
    if not rules:
        return plain
    rule = rules[0]
    if level.is_merged:
        raise FactError(
            f"{rule.table.name} says what is possible, and the merged step {level.name!r} cannot leave out the rest: "
            "refine its attributes one after the other"
        )
    return NarrowLevel(plain.index, plain.name, plain.parts, plain.nodes, rule, depths)
