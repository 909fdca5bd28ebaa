"""The protected unit: an entity, how many records each has, and which data sets count as neighbours."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, cast

from treetop._util.choices import Choices, with_article
from treetop._util.lazy import FrozenMap, set_fields
from treetop._util.numbers import whole
from treetop.errors import PlanError, UnitError

Neighbours: TypeAlias = Literal["replace", "add-remove"]
IdClean: TypeAlias = Literal["trim", "nfc", "casefold"]
"""A difference of spelling that does not tell ids apart: blanks at the ends, Unicode forms of one letter, case."""

TOTAL = "total"
"""The name of level 0: the one cell that holds every record."""


class Sensitivity(NamedTuple):
    """How far one unit can move the counts of a level, as exact integers."""

    l1: int
    """The largest change of the counts, summed over the nodes."""
    l2_squared: int


@dataclass(frozen=True)
class NeighbourRule:
    """Which data sets are neighbours, with the words for it: {entity} and {records} are filled in."""

    name: str
    hides: str
    """The protection that it gives, for people who choose."""
    words: str
    """The fact that the loss keeps from being disclosed, for the card."""
    units: int
    """How many units' records stand in the difference of two neighbours."""
    keeps_number: bool
    """Whether neighbours have the same number of units."""


NEIGHBOURS = Choices(
    "neighbours",
    NeighbourRule(
        "replace",
        hides="hides what the records of one {entity} say, by exchanging them for another's",
        words="the records of any one {entity}, at most {records}",
        units=2,
        keeps_number=True,
    ),
    NeighbourRule(
        "add-remove",
        hides="also hides whether one {entity} is in the data at all",
        words="whether any one {entity}, with at most {records}, is in the data",
        units=1,
        keeps_number=False,
    ),
)


@dataclass(frozen=True, init=False)
class Unit:
    """One protected unit.

    >>> Unit("trip", neighbours="replace").sensitivity("place.region")
    Sensitivity(l1=2, l2_squared=2)
    """

    entity: str
    """One unit, as a singular noun: "trip", "person", "household"."""
    contributions: int
    """The most records that one unit has."""
    neighbours: Neighbours
    """"replace" exchanges one unit's records for another's; "add-remove" adds or leaves out one unit."""
    id: str | None
    """The column that identifies the unit; with it, contributions are enforced rather than declared."""
    per_node: Mapping[str, int]
    """By level name, the declared cap of the records of one unit in one node of that level."""
    population: int | None
    """How many units there are at least, as far as that is public; a delta of one in so many is then asked about."""
    id_clean: tuple[IdClean, ...]
    """Which differences of spelling do not tell ids apart; none by default: "ann" and "Ann" are then two units."""
    may_be_missing: bool
    """Under `replace` with one record each: whether that one may be missing from what is counted, because something on
    the way drops records. Then neighbours may differ in the total, and it is measured; elsewhere it always is."""
    distinct: bool
    """Whether a leaf counts at most once of each unit, as trips that are all different: enforced, by the id."""
    leaf: str | None = field(init=False)
    """The name of the finest level, which a plan tells a unit of distinct records; nobody else knows it."""
    graph: Any = field(init=False, repr=False)
    """The `GraphRules` of a unit of a graph; None for others."""

    counts: ClassVar[str] = "records"
    """What plans for such a unit count: "records", "groups" or "degrees"."""

    @classmethod
    def of(cls, unit: Unit) -> Self:
        """Return a unit as one of this kind, which it must be."""
        if unit.counts != cls.counts:
            raise UnitError(f"this is about a unit of {cls.counts}, and the unit is of {unit.counts}")
        return cast(Self, unit)

    def __init__(
        self,
        entity: str | None = None,
        contributions: int = 1,
        neighbours: Neighbours | None = None,
        id: str | None = None,
        per_node: Mapping[str, int] | None = None,
        population: int | None = None,
        id_clean: Collection[IdClean] = (),
        may_be_missing: bool = False,
        distinct: bool = False,
    ) -> None:
        if not _is_name(entity):
            raise UnitError(
                f"The unit's entity is {entity!r}, but what is protected has no default; "
                'name one of them, such as entity="trip" or entity="person".'
            )
        if neighbours not in tuple(NEIGHBOURS):
            choices = "; ".join(f'"{name}" {rule.hides.format(entity=entity)}' for name, rule in NEIGHBOURS.items())
            raise UnitError(
                f"The unit's neighbours is {neighbours!r}, but there is no default for it; choose one. {choices}."
            )
        if id is not None and not _is_name(id):
            raise UnitError(f"The unit's id is {id!r}; name the column that identifies one {entity}, or omit it.")
        most = _whole(contributions, "contributions")
        caps = _caps({} if per_node is None else per_node, most)
        if population is not None and whole(population) is None:
            raise UnitError(
                f"The unit's population is {population!r}; give the least number of units that there are publicly, a "
                "whole number, 1 or more, or omit it."
            )
        ways = _ways(id_clean, id)
        if distinct and id is None:
            raise UnitError(
                f"The unit's distinct says that a leaf counts once of each {entity}, which is enforced by an id, and "
                "there is none; name its column, or declare a cap of 1 at the finest level with per_node."
            )
        set_fields(
            self,
            entity=entity,
            contributions=most,
            neighbours=neighbours,
            id=id,
            per_node=caps,
            population=None if population is None else whole(population),
            id_clean=ways,
            may_be_missing=bool(may_be_missing) and NEIGHBOURS[str(neighbours)].keeps_number and most == 1,
            distinct=bool(distinct),
            leaf=None,
            graph=None,
        )

    def at_leaves(self, level: str) -> Unit:
        """Return the unit where the finest level has this name, which decides what distinct records mean.

        Of one unit a leaf then counts at most once (`Bound` sees to that), so its cap is 1; coarser nodes may hold all
        of a unit's leaves, and have none.
        """
        if not self.distinct or self.leaf == level:
            return self
        unit = copy(self)
        set_fields(unit, leaf=level)
        return unit

    @property
    def caps(self) -> Mapping[str, int]:
        """By level name, the most records of one unit in one node of that level: those declared, and that of leaves."""
        return self.per_node if self.leaf is None else FrozenMap({**self.per_node, self.leaf: 1})

    @property
    def rule(self) -> NeighbourRule:
        """Which data sets are neighbours."""
        return NEIGHBOURS[self.neighbours]

    @property
    def enforced(self) -> bool:
        """Whether the limit on contributions is enforced on the data, or only declared."""
        return self.id is not None

    @property
    def displaces(self) -> bool:
        """Whether one record more of a unit can take the place of another that was counted."""
        return self.enforced

    @property
    def extent(self) -> str:
        """How much one unit is, in words."""
        return "1 record" if self.contributions == 1 else f"up to {self.contributions} records"

    @property
    def limits(self) -> str:
        """Properties that distinguish units of one name, in the words that a ledger keeps.

        An enforced limit protects everybody, a declared one only those who keep it; and an exact total protects nobody
        who may have no record at all.
        """
        most = "exactly" if self.exactly_one else "at most"
        how = "enforced" if self.enforced else "declared"
        same = f"; {self.spelling} do not tell ids apart" if self.id_clean else ""
        return f"{most} {_records(self.contributions)} ({how}{same}), {self.neighbours}"

    @property
    def cumulative(self) -> bool:
        """Whether the values of an axis are each counted with those below, such as groups of at most a size."""
        return bool(getattr(self, "form", None) == "cumulative")

    @property
    def binding(self) -> dict[str, Any]:
        """Properties that the noise of histograms by region is bound to."""
        return {"entity": self.entity}

    @property
    def moves_by_one(self) -> bool:
        """Whether one unit moves no count by more than one, in any table: it has one record."""
        return self.contributions == 1

    def sensitivity(self, level: str) -> Sensitivity:
        """How far one unit can move the counts of a level.

        A unit's counts v have Σv ≤ m and max v ≤ c, so Σv² is largest when as many nodes as possible hold c.
        A replacement changes the counts by v − w with v, w ≥ 0, so its squared norm is at most Σv² + Σw²; in the
        single cell of the total it is a difference of two numbers between 0 and m.
        """
        most = self.contributions
        if level == TOTAL:
            return Sensitivity(l1=most, l2_squared=most**2)
        full, rest = divmod(most, cap := self.caps.get(level, most))
        return Sensitivity(l1=self.rule.units * most, l2_squared=self.rule.units * (full * cap**2 + rest**2))

    @property
    def piece(self) -> str | None:
        """The smaller unit for which a card states a loss as well, in words; None if there is none."""
        if self.contributions > 1:
            return "one record"
        # One of several records can show more than the whole unit does by being there or not: it moves two cells.
        if self.displaces and self.neighbours == "add-remove":
            return f"one record of {with_article(self.entity)} with several"
        return None

    def piece_sensitivities(self, level: str) -> tuple[Sensitivity, ...]:
        """How far one piece can move the counts of a level, for each way in which it can, in the same order at all.

        A record that is added moves one cell of every level, the total's as well. Where the limit is enforced, it may
        displace another: that moves two cells of every level and leaves the total. Under `replace` a record is changed,
        with the sensitivity of the total that covers one that is added as well.
        """
        added, changed = Sensitivity(1, 1), Sensitivity(2, 2)
        if self.neighbours == "replace":
            return (added if level == TOTAL else changed,)
        if not self.displaces:
            return (added,)
        return added, Sensitivity(0, 0) if level == TOTAL else changed

    def total_is_exact(self, records_may_be_dropped: bool) -> bool:
        """Whether neighbours always have the same total, so that it can be released without noise."""
        return self.exactly_one and not records_may_be_dropped

    @property
    def total_follows(self) -> bool:
        """Whether the total is the sum of measured counts, neither exact nor measured itself."""
        return False

    @property
    def exactly_one(self) -> bool:
        """Whether a unit is exchanged for another, and each has one record that is certainly counted."""
        return self.rule.keeps_number and self.contributions == 1 and not self.may_be_missing

    def sentence(self) -> str:
        """Say in plain English what is protected.

        >>> print(Unit("trip", neighbours="add-remove").sentence())
        Protects one trip: the loss limits what the release tells about \
whether any one trip, with at most 1 record, is in the data. The limit of 1 record is declared, not enforced.
        """
        records = _records(self.contributions)
        limit = f'is enforced by the column "{self.id}"' if self.enforced else "is declared, not enforced"
        caps = "".join(
            f" Of them, at most {cap} in one node of {level} (declared)." for level, cap in self.per_node.items()
        )
        caps += " Records of one leaf count as one (enforced)." if self.distinct else ""
        if self.exactly_one:
            # Not "at most one": a unit without a record would change the total, which is the same for all neighbours.
            return (
                f"Protects one {self.entity}: the loss limits what the release tells about the record of any one "
                f"{self.entity}. Each has exactly one record, which {limit}. How many there are is not hidden.{caps}"
            )
        secret = self.rule.words.format(entity=self.entity, records=records)
        promise = f"Protects one {self.entity}: the loss limits what the release tells about {secret}."
        return f"{promise} The limit of {records} {limit}.{caps}"

    @property
    def spelling(self) -> str:
        """Which differences of spelling do not tell ids apart, in words; empty where all do.

        >>> Unit("person", neighbours="replace", id="name", id_clean=["casefold", "trim"]).spelling
        'blanks at the ends and case'
        """
        words = [_SPELLINGS[way] for way in self.id_clean]
        return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _whole(value: object, what: str) -> int:
    number = whole(value)
    if number is None:
        raise UnitError(f"The unit's {what} is {value!r}; give a whole number of records, 1 or more.")
    return number


def _caps(per_node: object, contributions: int) -> FrozenMap[int]:
    if not isinstance(per_node, Mapping):
        raise UnitError(f'The unit\'s per_node is {per_node!r}; give a cap by level name, such as {{"place.town": 1}}.')
    caps = {}
    for level, cap in per_node.items():
        if not _is_name(level):
            raise UnitError(f"The unit's per_node has the key {level!r}; name a level, such as place.town.")
        if level == TOTAL:
            raise UnitError("The total holds every record of a unit, so per_node cannot cap it; lower contributions.")
        caps[level] = _whole(cap, f"per_node cap at {level}")
        if caps[level] > contributions:
            raise UnitError(
                f"The unit's per_node cap at {level} is {cap}, above its contributions, {contributions}; "
                "lower the cap or leave it out."
            )
    return FrozenMap(caps)


_SPELLINGS: Mapping[IdClean, str] = {"trim": "blanks at the ends", "nfc": "Unicode form", "casefold": "case"}


def _ways(given: object, id: str | None) -> tuple[IdClean, ...]:
    """Return the ways to clean ids, each once and in one order, since the order makes no difference."""
    listed = list(given) if isinstance(given, Collection) and not isinstance(given, str | bytes) else [given]
    if wrong := [way for way in listed if way not in _SPELLINGS]:
        raise UnitError(
            f"The unit's id_clean has {wrong[0]!r}; list what does not tell ids apart, of "
            f"{', '.join(map(repr, _SPELLINGS))}."
        )
    if listed and id is None:
        raise UnitError("The unit's id_clean is about the spelling of ids, and there is no id; name its column.")
    return tuple(way for way in _SPELLINGS if way in listed)


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number} records"


# What happens to edges that are not proper ones.

Policy: TypeAlias = Literal["error", "drop", "keep"]

_CHOICES = {"self_loops": ("error", "drop"), "repeated": ("error", "drop", "keep"), "unknown": ("error", "drop")}
_DROPPED = {"self_loops": "self-loops", "repeated": "repeated edges", "unknown": "edges to unknown nodes"}

Unknown = Literal["error", "drop"] | Mapping[str, str]
"""What happens to missing and unknown codes: refuse them, drop their rows, or by attribute "error", "drop" or the leaf
that they count under; those of attributes that are left out are refused."""


def drops(unknown: Unknown) -> bool:
    """Whether records with an unknown code may be left out.

    >>> drops("drop"), drops({"home": "drop"}), drops({"home": "elsewhere"})
    (True, True, False)
    """
    return "drop" in (unknown.values() if isinstance(unknown, Mapping) else (unknown,))


@dataclass(frozen=True)
class Policies:
    """Policy for self-loops, repeated edges and edges to unknown nodes."""

    self_loops: Policy = "error"
    """Edges from a node to itself: refused or dropped."""
    repeated: Policy = "error"
    """Further edges between the same two ends, in either direction where edges have none: refused, dropped or kept."""
    unknown: Policy = "error"
    """Edges to ids that the node table does not have: refused or dropped."""
    weighted: bool = False
    """Whether a row stands for as many edges as one of its columns says; further edges between two are then kept."""

    def __post_init__(self) -> None:
        if self.weighted and self.repeated != "keep":
            raise PlanError('a weight is a number of edges between the same two: set repeated to "keep"')
        for name, choices in _CHOICES.items():
            if (given := getattr(self, name)) not in choices:
                raise PlanError(f"{name} is {given!r}: choose one of {', '.join(choices)}")

    @property
    def drop(self) -> bool:
        """Whether an edge of the file may be no part of the graph."""
        return "drop" in (self.self_loops, self.repeated, self.unknown)

    @property
    def dropped(self) -> str:
        """Dropped edges, in words."""
        return " and ".join(words for name, words in _DROPPED.items() if getattr(self, name) == "drop")

    def describe(self) -> dict[str, Any]:
        """Return them as plain values."""
        return {**{name: getattr(self, name) for name in _CHOICES}, **({"weighted": True} if self.weighted else {})}

    @staticmethod
    def of(described: Mapping[str, Any]) -> Policies:
        """Restore the policies from a `describe` mapping, which may hold more."""
        return Policies(**{name: described[name] for name in (*_CHOICES, "weighted") if name in described})


# What a guarantee is conditional on: what neighbours must agree on, and what is declared about units.

_DIGITS = 16


@dataclass(frozen=True)
class GuaranteeCondition:
    """One condition of a guarantee, public like the plan that states it."""

    words: str
    trees: Mapping[str, str] = field(default_factory=dict)
    """By attribute that it is about, the SHA-256 of the hierarchy."""
    states: Any = None
    """Values that distinguish it from a condition in the same words."""


def only_if(conditions: Sequence[GuaranteeCondition]) -> str:
    """Join the clauses of conditions; empty if there are none.

    >>> only_if([GuaranteeCondition("it rains"), GuaranteeCondition("it is cold")])
    'only if it rains and it is cold'
    """
    return f"only if {' and '.join(one.words for one in conditions)}" if conditions else ""


def fingerprint(conditions: Sequence[GuaranteeCondition], reading: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits of a SHA-256 over conditions and how the table that they are about is read.

    `reading` holds plain values; of its `columns`, by attribute, only those that the conditions are about count.
    """
    columns: Mapping[str, str] = reading.get("columns") or {}
    told = [
        [
            condition.words,
            [[name, tree, columns.get(name, name)] for name, tree in sorted(condition.trees.items())],
            condition.states,
        ]
        for condition in conditions
    ]
    read = {name: value for name, value in reading.items() if name != "columns"}
    return sha256(json.dumps([told, read], sort_keys=True).encode()).hexdigest()[:_DIGITS]
