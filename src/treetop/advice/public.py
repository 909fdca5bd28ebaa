"""Public tables beside a plan: priors and twins, read as the plan reads its private table, which they must not be.

A split that depends on the private counts makes the noise depend on them. Then no finite epsilon holds, whether or not
the split is published: with scales 1/e and 1/e′ on neighbouring tables the ratio of two Laplace densities,
(e/e′)·exp(−(e − e′)·|z|), has no bound.

The guard finds the same object, file, content (also inside gzip) or database query, without reading a row. Then it
compares records: both tables are read as the plan reads its own, all records of every unit, and are the same where
every leaf has as many. So a copy in another format, order, compression or database is found, with other ids or none,
and whether or not contributions are bounded. It is against accidents: a table from which one record was taken, or in
which one was changed, is not recognised, nor is one with its attributes under other names or codes.

What is published about groups is mostly a table of places, sizes and numbers. So that is taken for a plan for group
sizes as well, whatever a row of the private table is. A public table may have any number of groups.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from treetop._util.dtypes import Flags, Floats, Ints
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.counts import Counts, go_down
from treetop.counts.group_reader import GroupColumns, GroupSizes, GroupTableReader
from treetop.counts.reading import read_counts
from treetop.counts.tally import Tally
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL, Unit, Unknown
from treetop.errors import DataError, PlanError, PrivatePrior
from treetop.io.source import Source, reads_once
from treetop.io.table import Table, batches, same_table
from treetop.measure.questions import leaves_of
from treetop.measure.readers import group_reader, leaves_above_zero, read_true_counts
from treetop.noise import Key
from treetop.plan.file import PlanFile, read_plan
from treetop.plan.group_plan import SIZE, GroupSizeReader, inner
from treetop.plan.mechanism import JointMechanism
from treetop.plan.plan import Plan
from treetop.release.release import Release
from treetop.release.selection import Selection

# A plan, and its kind.

Planned: TypeAlias = Plan | PlanFile | str | Path
"""A plan, its file, or where that is."""


def open_plan(plan: Planned, *, open_loss: bool = False) -> tuple[Plan, PlanFile | None]:
    """Return a plan and its file, if there is one.

    With `open_loss` the file may leave the loss open; an epsilon of 1 stands in for it.
    """
    if isinstance(plan, Plan):
        return plan, None
    file = plan if isinstance(plan, PlanFile) else read_plan(plan, stand_in=1 if open_loss else None)
    return file.plan, file


def counts_groups(plan: Plan) -> bool:
    """Whether the plan is for group sizes."""
    return plan.reader.name == "groups"


def refuse_other_kinds(plan: Plan) -> None:
    """Refuse a kind of plan whose loss and split cannot be advised on."""
    if not (counts_groups(plan) or JointMechanism.runs(plan)):
        plan.refuse_unless_top_down()


# The guard.

Role: TypeAlias = Literal["prior", "twin"]
"""What a public table is for: to choose a split by, or to try a plan on."""

NOT_COMPARED = "The plan names no private table, so nothing could be compared with it: be sure that this one is public."
_WHY = {
    "prior": (
        "noise whose size depends on the private counts has no guarantee, even if the sizes are kept secret; "
        "plan from an earlier release, a public table, a synthetic one, or from no table at all"
    ),
    "twin": (
        "trials draw noise that anybody can compute, and print the errors of what they are given; try the plan on an "
        "earlier release, a public table, or a synthetic one"
    ),
}


def refuse_counts(table: object) -> None:
    """Refuse private counts where a public table is expected."""
    if isinstance(table, Counts):
        raise PrivatePrior(f"a prior cannot be made from Counts, which are private: {_WHY['prior']}")


def refuse_private(prior_source: Table, plan_source: Table | None, role: Role = "prior") -> None:
    """Refuse a prior or twin whose table is the plan's own; None where the plan does not say what it will read."""
    refuse_counts(prior_source)
    if plan_source is not None and (what := same_table(prior_source, plan_source)) is not None:
        raise PrivatePrior(f"the {role} is the private table itself ({what}): {_WHY[role]}")


def refuse_same_records(public: bytes | None, private: Counts, role: Role = "prior") -> None:
    """Refuse a prior or twin with the same records as the private table, before contributions are bounded.

    `public` is the digest of its counts (`Prior.records`); None where there is no table.
    """
    if public is not None and public == private.digest:
        raise PrivatePrior(f"the {role} has the same records as the private table, whatever its file is: {_WHY[role]}")


# The nodes above zero of a public table, layer by layer from the root, with the public children of each.


@dataclass(frozen=True, eq=False)
class Layer:
    """The nodes above zero at one level, in spine order."""

    count: Ints
    parent: Ints
    """The position of each one's parent among the nodes above zero of the level above."""
    children: Ints
    """For each node above zero of the level above, how many public children it has."""

    @property
    def measured(self) -> Flags:
        """Which nodes a descent would measure: those that are not an only child."""
        measured: Flags = self.children[self.parent] > 1
        return measured

    @property
    def empty(self) -> int:
        """How many nodes are empty and would be measured all the same: those beside or under a node above zero."""
        return int(self.children[self.children > 1].sum() - self.measured.sum())


def layers(spine: Spine, counts: Counts) -> Iterator[Layer]:
    """Yield the nodes above zero of every level of the spine, for counts that are public."""
    leaves = len(counts)
    worth = np.diff(counts.before)
    node = [np.zeros(leaves, np.int64) for _ in spine.attributes]
    starts = np.zeros(leaves, dtype=bool)
    starts[:1] = True
    for level in spine.levels:
        children = level.fanout(np.array([own[starts] for own in node]))
        go_down(spine, level.index, counts, node)
        inside = np.cumsum(starts) - 1
        for part in level.parts:
            starts[1:] |= node[part.attribute][1:] != node[part.attribute][:-1]
        first = np.flatnonzero(starts)
        count = np.add.reduceat(worth, first) if leaves else worth
        yield Layer(count, inside[first], children)


# Priors: what is publicly known, or supposed, about the counts before they are measured.

Kind: TypeAlias = Literal["release", "public table"]

_CHOICE = Key(hashlib.blake2b(b"records of a public table", digest_size=32).digest())
"""Chooses which records of a public table count: the same advice each time."""


@dataclass(frozen=True, eq=False)
class PriorLevel:
    """How many nodes of which size are expected at one level, among those that a descent would measure.

    A descent measures the children of nodes above zero, except an only child, which has its parent's count.
    """

    name: str
    counts: Floats = field(repr=False)
    """The distinct counts, ascending."""
    nodes: Floats = field(repr=False)
    """How many nodes have each."""
    public: int
    """How many nodes the public domain has there, measured or not."""

    @property
    def measured(self) -> int:
        """How many nodes are expected to be measured."""
        return int(self.nodes.sum())


def prior_levels(spine: Spine, counts: Counts) -> tuple[PriorLevel, ...]:
    """Return what a public table tells of the total and of every level."""
    rows = [PriorLevel(TOTAL, np.array([float(counts.total)]), np.ones(1), 1)]
    for level, layer in zip(spine.levels, layers(spine, counts), strict=True):
        sizes, nodes = np.unique(layer.count[layer.measured], return_counts=True)
        if layer.empty:
            sizes, nodes = np.insert(sizes, 0, 0), np.insert(nodes, 0, layer.empty)
        rows.append(PriorLevel(level.name, sizes.astype(np.float64), nodes.astype(np.float64), level.nodes))
    return tuple(rows)


@dataclass(frozen=True, eq=False)
class Prior:
    """Public knowledge about the counts of a spine; make one with `from_release`, `from_public_table`, …"""

    kind: Kind
    source: str
    """Where it is from, in the words of whoever gave it."""
    spine: Spine
    levels: tuple[PriorLevel, ...] = field(repr=False)
    """What is expected of the total and of every level."""
    twin: Counts = field(repr=False)
    """The whole public table; it can be released on trial."""
    records: bytes | None = field(default=None, repr=False)
    """A digest of all its records, also of those beyond a limit of contributions: for the guard."""
    sizes: GroupSizes | None = field(default=None, repr=False)
    """Of group sizes: all of them, also those above the plan's largest, which the twin counts as that one."""
    open_ended: bool = False
    """Of group sizes: the last one stands for larger ones as well."""

    @staticmethod
    def from_release(release: Release | Selection, source: str = "") -> Prior:
        """Take an earlier release: what it tells has been paid for."""
        refuse_counts(release)
        if isinstance(release, Selection):
            raise PlanError(f"this is only what matches {', '.join(release.conditions)}: give the whole release")
        if not isinstance(release, Release):
            raise PlanError(f"{type(release).__name__} is not a release: load one with Release.load, or name the table")
        if not release.card["private"]:
            raise PrivatePrior(
                "the release was made with a testing key, so that it is not private, and cannot be a prior; "
                "if the table behind it is public, give that with Prior.from_public_table"
            )
        counts = Counts.from_leaves(release.spine, list(release.nodes), release.count)
        title = source or str(release.card["title"] or "an earlier release")
        return Prior("release", title, release.spine, prior_levels(release.spine, counts), counts, counts.digest)

    @staticmethod
    def from_public_table(
        table: Table,
        spine: Spine,
        *,
        source: str,
        columns: Mapping[str, str] | None = None,
        count: str | None = None,
        unknown: Unknown = "error",
        private: Table | None = None,
        bound: ContributionCap | None = None,
    ) -> Prior:
        """Read a public table of the same kind, such as last decade's, or a made-up one.

        Args:
            table: One that was fitted to private data without privacy is private.
            spine: The spine of the plan.
            source: Who published it, or how it was made.
            columns: The columns by attribute if they have other names.
            count: The column of counts if rows are not records.
            unknown: What is done with unknown codes.
            private: The table that the plan will read, if that is known: the same one is refused, and so is one with
                the same records, as far as both have the same columns.
            bound: Counts at most so many records of each unit, as a release does.
        """
        if not (source or "").strip():
            raise PlanError(
                "say where the public table is from, since only public facts may shape the noise: "
                'source="ISTAT, commuting 2011"'
            )
        refuse_private(table, private)
        tally = Tally(compares=True)
        counts = read_counts(table, spine, columns, count, unknown, bound, tally=tally)
        if private is not None:
            with suppress(DataError):  # a table that is not there, or is read otherwise, is not this one
                refuse_same_records(tally.every, read_counts(private, spine, columns, count, unknown))
        levels = prior_levels(spine, counts)
        return Prior("public table", source.strip(), spine, levels, counts, tally.every)

    @property
    def words(self) -> str:
        """What it is and where it is from."""
        return f"{self.kind}: {self.source}"

    def level(self, name: str) -> PriorLevel:
        """Return what is expected of a level, by its name."""
        return self.levels[0 if name == TOTAL else self.spine.level(name).index]

    def fits(self, spine: Spine, *, nodes: bool = True) -> None:
        """Refuse to serve another spine; without `nodes`, one that has the same levels in the same order will do.

        Codes change between years. The distribution of counts in a level needs none of them; what is matched node by
        node needs all.
        """
        if self.spine.digest == spine.digest:
            return
        here, there = ([level.name for level in own.levels] for own in (spine, self.spine))
        if here != there:
            raise PlanError(
                f"the prior has another spine than the plan: its levels are {', '.join(there)}, and the plan's are "
                f"{', '.join(here)}. Give a prior with the plan's levels in the same order"
            )
        if nodes:
            raise PlanError(
                "the prior has other codes than the plan, so its nodes cannot be matched: give one with its codes, "
                "or ask only for what the distribution of its counts tells (a split without trials)"
            )


# Reading them beside a plan file.


def prior_of(file: PlanFile | None, given: Prior | str | Path, source: str | None) -> tuple[Prior, list[str]]:
    """Return a prior, read from its location if it is one, and what was not done as for the private table."""
    refuse_counts(given)
    if not isinstance(given, Prior) and source is None and not is_release(str(given)):
        raise PlanError(
            f"say where {given} is from, since only public facts may shape the noise: "
            'give `prior_source`, such as "ISTAT, commuting 2011"'
        )
    return twin_of(file, given, source or "", "prior")


def twin_of(
    file: PlanFile | None, given: Prior | str | Path, source: str | None, role: Role = "twin"
) -> tuple[Prior, list[str]]:
    """Return a twin, read from its location if it is one, and what was not done as for the private table."""
    refuse_counts(given)
    if isinstance(given, Prior):
        return given, []
    if file is None:
        raise PlanError(f"only a plan file says how {given} is read: give that as the plan, or a Prior")
    return read_public(file, str(given), source, role)


def is_release(location: str) -> bool:
    """Whether it is a release folder."""
    return (Path(location) / "card.json").is_file()


def private_tables(file: PlanFile) -> list[Any]:
    """Return the tables that the plan is known to read: its own, or both of a graph."""
    if file.graph is not None:
        tables = (file.source, file.graph.graph.nodes, file.graph.graph.edges)
        return [table for table in tables if table is not None]
    return [] if file.source is None else [inner(file.table(file.source))]


def read_public(
    file: PlanFile, location: str, source: str | None = None, role: Role = "twin", *, compare: bool = True
) -> tuple[Prior, list[str]]:
    """Read a release, or a table as the private one is read, which it must not be; return what was not done alike.

    Without a `source` a twin is named by its location; a release says itself where it is from. Without `compare` the
    caller has the private counts at hand and compares them itself.
    """
    plan = file.plan
    if is_release(location):
        release = Release.load(location)
        if counts_groups(plan):
            return _released_groups(plan, release, location, source or ""), []
        return Prior.from_release(release, source or ""), []
    for private in private_tables(file):
        refuse_private(location, private, role)
    source = (source or location) if role == "twin" else source or ""
    if counts_groups(plan):
        prior, notes = read_public_groups(plan, file, location, source, role)
    else:
        stated = Source(location) if file.graph is not None else file.table(location)
        table, bound, notes = _read_alike(stated, plan.unit, role)
        prior = Prior.from_public_table(
            table, plan.spine, source=source, columns=file.columns, count=file.count, unknown=plan.unknown, bound=bound
        )
    return prior, notes + (_compare(file, prior, role) if compare else [])


def _compare(file: PlanFile, prior: Prior, role: Role) -> list[str]:
    """Refuse a public table with the records of the private one; return a note if they cannot be compared."""
    if not private_tables(file):
        return [NOT_COMPARED]
    if file.source is None:
        return []
    if reads_once(file.source):
        return [f"The {role} was not compared with {Source(file.source)}: be sure that it is public."]
    try:
        private = read_true_counts(file.plan, file.table(file.source), file.columns, file.count)
    except DataError:  # what it says is about private rows, and this output is not
        return [
            f"The {role} could not be compared with the private table, which cannot be read as the plan says: be sure "
            f"that the {role} is public."
        ]
    refuse_same_records(prior.records, private, role)
    return []


def _read_alike(source: Source, unit: Unit, role: Role) -> tuple[Source, ContributionCap | None, list[str]]:
    """Return how a public table is read as the private one is, and what to say where it cannot be.

    `source` has the options of the plan. Those that its kind of file has no use for are left out; so are conditions on
    columns that it lacks, and the limit of contributions where it does not tell units apart.
    """
    source, present, notes = _keeping_alike(source, role)
    if unit.id is None:
        return source, None, notes
    limit = f"The limit of {unit.contributions:,} record{'s' * (unit.contributions != 1)}"
    what = "trial" if role == "twin" else "forecast"
    if present is not None and unit.id not in present:
        return source, None, [*notes, f"{limit} is not in the {what}: the {role} has no column {unit.id!r}."]
    notes.append(f"{limit} is in the {what}: of the {role} only the records that it keeps are counted.")
    return source, ContributionCap.of(unit, _CHOICE), notes


def _keeping_alike(source: Source, role: Role) -> tuple[Source, list[str] | None, list[str]]:
    """Return a public table without options that its kind of file has no use for, and without conditions on columns
    that it lacks; its columns (None if it can be read only once), and what to say of that."""
    kind = next(source.formats())
    own: dict[str, Any] = {} if kind.is_text else {"fields": None}
    own |= {} if kind.is_text or kind.has_header else {"header": None, "names": None}
    own |= {} if kind.has_sheets else {"sheet": None}
    source = replace(source, query=source.query if kind.is_database else None, **own)
    if reads_once(source.location):
        return source, None, []
    with closing(batches(replace(source, keep=None, drop=None))) as parts:  # type: ignore[type-var]
        present = list(next(parts).rows.schema.names)
    absent = [name for name in {**(source.keep or {}), **(source.drop or {})} if name not in present]
    if not absent:
        return source, present, []
    named = ", ".join(map(repr, absent))
    note = f"The plan keeps some rows only, by {named}; the {role} has no such column, so all its rows count."
    keep, drop = (
        {name: values for name, values in (own or {}).items() if name not in absent}
        for own in (source.keep, source.drop)
    )
    return replace(source, keep=keep, drop=drop), present, [note]


# Public group sizes, with those above the plan's largest.

MOST_CELLS = 1 << 24
"""Most counts of a public table of group sizes, unless the plan itself has more."""
WIDE = 1_000
"""Sizes of a public table are told apart up to this, or four times the plan's largest, within `MOST_CELLS`."""
_PUBLIC_COUNTS = ("count", "number", "groups")
"""Possible names of the column of numbers in a public table."""


def read_public_groups(
    plan: Plan, file: PlanFile, location: str, source: str, role: Role = "twin"
) -> tuple[Prior, list[str]]:
    """Read a public table of group sizes; return what was not done as for the private one. The caller compares them."""
    stated, present, notes = _keeping_alike(inner(file.table(location)), role)
    most = MOST_CELLS // plan.regions.sizes[-1] - 1
    reader = _reader(plan, file, present, max(plan.largest, min(max(WIDE, 4 * plan.largest), most)))
    sizes = reader.read(stated)
    listed = GroupSizeReader.of(plan).listed
    if listed is not None and reader.rows != "people" and not sizes.number[:, 0].any():
        # The empty groups of the public list, if it is long enough: of groups of another year, or of another country,
        # nobody knows which are empty.
        missing = listed.by_region - sizes.number.sum(axis=1)
        if missing.min() >= 0:
            number = sizes.number.copy()
            number[:, 0] = missing
            sizes = GroupSizes(sizes.regions, number)
    return _of_groups(plan, sizes, "public table", source, bool(sizes.number[:, -1].any())), notes


def _reader(plan: Plan, file: PlanFile, present: list[str] | None, widest: int) -> GroupTableReader:
    """Read as the plan does if the columns are there; otherwise as numbers of groups by place and size."""
    own = group_reader(plan, file.columns, file.count)
    if present is None or all(name in present for name in own.columns.wanted()):
        return replace(own, largest=widest, number=None, listed=own.listed if own.rows == "people" else None)
    columns = file.columns or {}
    possible = (
        (columns.get(plan.place), plan.place, plan.regions.levels[-1]),
        (columns.get(SIZE), SIZE),
        (file.count, *_PUBLIC_COUNTS),
    )
    place, size, number = (next((name for name in names if name in present), None) for names in possible)
    if place is None or size is None or number is None:
        missing = ", ".join(repr(name) for name in own.columns.wanted() if name not in present)
        raise PlanError(
            f"a public table for this plan has the plan's own columns (without {missing}), or those of a "
            f"published one: {plan.place!r}, {SIZE!r} and 'count', the number of groups of that size in that place"
        )
    return GroupTableReader(
        own.regions, widest, "histogram", GroupColumns(region=place, size=size, number=number), None
    )


def _released_groups(plan: Plan, release: Release, location: str, source: str) -> Prior:
    """Take an earlier release of group sizes in the same regions, with at least as many sizes."""
    if not release.card["private"]:
        raise PrivatePrior(
            "the release was made with a testing key, so that it is not private: if the table behind it is public, "
            "give that table"
        )
    attributes = release.spine.attributes
    if "groups" not in release.card["plan"] or plan.place not in attributes:
        raise PlanError(f"{location} is not a release of group sizes by {plan.place}: give one, or a public table")
    if attributes[plan.place].digest != plan.regions.digest:
        raise PlanError(
            f"{location} has other regions than the plan: give a release, or a table, of the plan's regions"
        )
    largest = attributes[SIZE].sizes[-1] - 1
    if largest < plan.largest:
        raise PlanError(
            f"the sizes of {location} end at {largest:,}, and the plan tells them apart up to {plan.largest:,}: "
            "give another public table, or try the plan with that largest"
        )
    sizes = sizes_of(release.spine, Counts.from_leaves(release.spine, list(release.nodes), release.count))
    return _of_groups(plan, sizes, "release", source or str(release.card["title"] or "an earlier release"), True)


def sizes_of(spine: Spine, counts: Counts) -> GroupSizes:
    """Return counts of a spine of sizes and places as group sizes."""
    place = next(name for name in spine.attributes if name != SIZE)
    regions, sizes = spine.attributes[place], spine.attributes[SIZE]
    (size, region), count = leaves_of(spine, counts)
    number = np.zeros((regions.sizes[-1], sizes.sizes[-1]), np.int64)
    np.add.at(number, (region, size), count)
    return GroupSizes(regions, number)


def _of_groups(plan: Plan, sizes: GroupSizes, kind: Kind, source: str, open_ended: bool) -> Prior:
    """Top-code the sizes as the plan does."""
    largest = plan.largest
    number = sizes.number[:, : largest + 1].copy()
    number[:, -1] += sizes.number[:, largest + 1 :].sum(axis=1)
    nodes, count = leaves_above_zero(number)
    counts = Counts.from_leaves(plan.spine, list(nodes), count)
    levels = prior_levels(plan.spine, counts)
    return Prior(kind, source, plan.spine, levels, counts, counts.digest, sizes, open_ended)
