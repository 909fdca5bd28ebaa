"""Priors: public counts by level for planning; the private table is refused as one.

A split that depends on the private counts makes the noise depend on them. Then no finite epsilon holds, whether or not
the split is published: with scales 1/e and 1/e′ on neighbouring tables the ratio of two Laplace densities,
(e/e′)·exp(−(e − e′)·|z|), has no bound.

The guard finds the same object, file, content (also inside gzip) or database query, without reading a row. Then it
compares records: both tables are read as the plan reads its own, all records of every unit, and are the same where
every leaf has as many. So a copy in another format, order, compression or database is found, with other ids or none,
and whether or not contributions are bounded. It is against accidents: a table from which one record was taken, or in
which one was changed, is not recognised, nor is one with its attributes under other names or codes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from treetop.advice.error_laws import Floats
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.counts import Counts, go_down
from treetop.counts.reading import read_counts
from treetop.counts.tally import Tally
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL, Unit, Unknown
from treetop.errors import DataError, PlanError, PrivatePrior
from treetop.io.same import same_table
from treetop.io.source import Source, reads_once
from treetop.io.table import Table, batches
from treetop.noise import Key
from treetop.release.release import Release
from treetop.release.selection import Selection

Role: TypeAlias = Literal["prior", "twin"]
"""What a public table is for: to choose a split by, or to try a plan on."""

_WHY = (
    "noise whose size depends on the private counts has no guarantee, even if the sizes are kept secret; "
    "plan from an earlier release, a public table, a synthetic one, or from no table at all"
)
_WHY_TWIN = (
    "trials draw noise that anybody can compute, and print the errors of what they are given; try the plan on an "
    "earlier release, a public table, or a synthetic one"
)


def refuse_counts(table: object) -> None:
    """Refuse private counts where a public table is expected."""
    if isinstance(table, Counts):
        raise PrivatePrior(f"a prior cannot be made from Counts, which are private: {_WHY}")


def refuse_private(prior_source: Table, plan_source: Table | None, role: Role = "prior") -> None:
    """Refuse a prior or twin whose table is the plan's own; None where the plan does not say what it will read."""
    refuse_counts(prior_source)
    if plan_source is None:
        return
    if (what := same_table(prior_source, plan_source)) is not None:
        raise PrivatePrior(f"the {role} is the private table itself ({what}): {_WHY if role == 'prior' else _WHY_TWIN}")


def refuse_same_records(public: bytes | None, private: Counts, role: Role = "prior") -> None:
    """Refuse a prior or twin with the same records as the private table, before contributions are bounded.

    `public` is the digest of its counts (`Prior.records`); None where there is no table.
    """
    if public is not None and public == private.digest:
        raise PrivatePrior(
            f"the {role} has the same records as the private table, whatever its file is: "
            f"{_WHY if role == 'prior' else _WHY_TWIN}"
        )


# The nodes above zero of a public table, layer by layer from the root, with the public children of each.

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Layer:
    """The nodes above zero at one level, in spine order."""

    count: Ints
    """The count of each."""
    parent: Ints
    """The position of its parent among the nodes above zero of the level above."""
    children: Ints
    """For each node above zero of the level above, how many public children it has."""

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Which nodes a descent would measure: those that are not an only child."""
        measured: NDArray[np.bool_] = self.children[self.parent] > 1
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

Kind: TypeAlias = Literal["release", "public table", "synthetic table"]

_CHOICE = Key(hashlib.blake2b(b"records of a public table", digest_size=32).digest())
"""Chooses which records of a public table count: the same advice each time."""


class Reading(TypedDict, total=False):
    """How a public table is read, and which table it must not be."""

    columns: Mapping[str, str] | None
    """The columns by attribute, where they are called otherwise."""
    count: str | None
    """The column of counts, where rows are not records."""
    unknown: Unknown
    """What becomes of codes that are not in the hierarchy."""
    private: Table | None
    """The table that the plan will read, where that is known: the same one is refused, and so is one with the same
    records, as far as both have the same columns."""
    bound: ContributionCap | None
    """With it, at most so many records of each unit are counted, as in a release."""


@dataclass(frozen=True, eq=False)
class PriorLevel:
    """How many nodes of which size are expected at one level, among those that a descent would measure.

    A descent measures the children of nodes above zero, except an only child, which has its parent's count.
    """

    name: str
    """The name of the level."""
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


@dataclass(frozen=True, eq=False)
class Prior:
    """Public knowledge about the counts of a spine; make one with `from_release`, `from_public_table`, …"""

    kind: Kind
    """What it is."""
    source: str
    """Where it is from, in the words of whoever gave it."""
    spine: Spine
    """The spine that it is about."""
    levels: tuple[PriorLevel, ...] = field(repr=False)
    """What is expected of the total and of every level."""
    twin: Counts | None = field(default=None, repr=False)
    """The whole public table; it can be released on trial."""
    records: bytes | None = field(default=None, repr=False)
    """A digest of all its records, also of those beyond a limit of contributions: for the guard."""

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
    def from_public_table(table: Table, spine: Spine, *, source: str, **reading: Unpack[Reading]) -> Prior:
        """Read a public table of the same kind, such as last decade's; `source` says who published it."""
        stated = _statement(source, "the public table", 'source="ISTAT, commuting 2011"')
        return _from_table("public table", stated, table, spine, **reading)

    @staticmethod
    def from_synthetic(table: Table, spine: Spine, *, made: str, **reading: Unpack[Reading]) -> Prior:
        """Read a made-up table; `made` says how. One that was fitted to private data without privacy is private."""
        stated = _statement(made, "the synthetic table", 'made="gravity model, public populations"')
        return _from_table("synthetic table", stated, table, spine, **reading)

    @property
    def words(self) -> str:
        """What it is and where it is from."""
        return f"{self.kind}: {self.source}"

    def level(self, name: str) -> PriorLevel:
        """Return what is expected of a level, by its name."""
        index = 0 if name == TOTAL else self.spine.level(name).index
        return self.levels[index]

    def fits(self, spine: Spine) -> None:
        """Refuse to serve another spine."""
        if self.spine.digest != spine.digest:
            raise PlanError("the prior is about another spine than the plan: read it with the plan's own spine")


def _from_table(
    kind: Kind,
    stated: str,
    table: Table,
    spine: Spine,
    *,
    columns: Mapping[str, str] | None = None,
    count: str | None = None,
    unknown: Unknown = "error",
    private: Table | None = None,
    bound: ContributionCap | None = None,
) -> Prior:
    refuse_private(table, private)
    tally = Tally(compares=True)
    counts = read_counts(table, spine, columns, count, unknown, bound, tally=tally)
    if private is not None:
        with suppress(DataError):  # a table that is not there, or is read otherwise, is not this one
            refuse_same_records(tally.every, read_counts(private, spine, columns, count, unknown))
    return Prior(kind, stated, spine, prior_levels(spine, counts), counts, tally.every)


def read_alike(source: Source, unit: Unit, role: Role) -> tuple[Source, ContributionCap | None, list[str]]:
    """Return how a public table is read as the private one is, and what to say where it cannot be.

    `source` has the options of the plan. Those that its kind of file has no use for are left out; so are conditions on
    columns that it lacks, and the limit of contributions where it does not tell units apart.
    """
    source, present, notes = keeping_alike(source, role)
    if unit.id is None:
        return source, None, notes
    limit = f"The limit of {unit.contributions:,} record{'s' * (unit.contributions != 1)}"
    what = "trial" if role == "twin" else "forecast"
    if present is not None and unit.id not in present:
        return source, None, [*notes, f"{limit} is not in the {what}: the {role} has no column {unit.id!r}."]
    notes.append(f"{limit} is in the {what}: of the {role} only the records that it keeps are counted.")
    return source, ContributionCap.of(unit, _CHOICE), notes


def keeping_alike(source: Source, role: Role) -> tuple[Source, list[str] | None, list[str]]:
    """Return a public table without conditions on columns that it lacks, its columns, and what to say of that."""
    source = of_its_kind(source)
    present = column_names(source)
    chosen = {**(source.keep or {}), **(source.drop or {})}
    absent = [name for name in chosen if present is not None and name not in present]
    if not absent:
        return source, present, []
    named = ", ".join(map(repr, absent))
    told = f"The plan keeps some rows only, by {named}; the {role} has no such column, so all its rows count."
    keep, drop = (
        {name: values for name, values in (own or {}).items() if name not in absent}
        for own in (source.keep, source.drop)
    )
    return replace(source, keep=keep, drop=drop), present, [told]


def of_its_kind(source: Source) -> Source:
    """Leave out the positions of fields where there is no text, and the query where there is no database."""
    kind = next(source.formats())
    own: dict[str, Any] = {} if kind.is_text else {"fields": None}
    own |= {} if kind.is_text or kind.has_header else {"header": None, "names": None}
    own |= {} if kind.has_sheets else {"sheet": None}
    return replace(source, query=source.query if kind.is_database else None, **own)


def column_names(source: Source) -> list[str] | None:
    """Return the columns of a table; None for standard input or a pipe, which is read only once."""
    if reads_once(source.location):
        return None
    with closing(batches(replace(source, keep=None, drop=None))) as parts:  # type: ignore[type-var]
        return list(next(parts).rows.schema.names)


def prior_levels(spine: Spine, counts: Counts) -> tuple[PriorLevel, ...]:
    """Return what a public table tells of the total and of every level."""
    total = PriorLevel(TOTAL, np.array([float(counts.total)]), np.ones(1), 1)
    rows = [total]
    for level, layer in zip(spine.levels, layers(spine, counts), strict=True):
        sizes, nodes = np.unique(layer.count[layer.measured], return_counts=True)
        if layer.empty:
            sizes, nodes = np.insert(sizes, 0, 0), np.insert(nodes, 0, layer.empty)
        rows.append(PriorLevel(level.name, sizes.astype(np.float64), nodes.astype(np.float64), level.nodes))
    return tuple(rows)


def _statement(text: object, what: str, example: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise PlanError(f"say where {what} is from, since only public facts may shape the noise: {example}")
    return text.strip()
