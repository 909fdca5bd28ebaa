"""Public tables beside a plan: a twin or a prior, read as the plan reads its private table, which they must not be.

What is published about groups is mostly a table of places, sizes and numbers. So that is taken for a plan for group
sizes as well, whatever a row of the private table is. A public table may have any number of groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from treetop.advice.prior import (
    Kind,
    Prior,
    Role,
    keeping_alike,
    prior_levels,
    read_alike,
    refuse_counts,
    refuse_private,
    refuse_same_records,
)
from treetop.counts.counts import Counts
from treetop.counts.group_reader import GroupColumns, GroupSizes, Reader
from treetop.domain.spine import Spine
from treetop.errors import DataError, PlanError, PrivatePrior
from treetop.io.source import Source, reads_once
from treetop.measure.questions import leaves_of
from treetop.measure.readers import group_reader, leaves_above_zero, read_true_counts
from treetop.plan.file import PlanFile, read_plan
from treetop.plan.graphs.degrees import DegreeCounts
from treetop.plan.groups.planned import SIZE, GroupTablePlan, inner
from treetop.plan.plan import Plan
from treetop.release.release import Release

NOT_COMPARED = "The plan names no private table, so nothing could be compared with it: be sure that this one is public."

Planned: TypeAlias = Plan | PlanFile | str | Path
"""A plan, its file, or where that is."""

MOST_CELLS = 1 << 24
"""Most counts of a public table of group sizes, unless the plan itself has more."""
WIDE = 1_000
"""Sizes of a public table are told apart up to this, or four times the plan's largest, within `MOST_CELLS`."""
_PUBLIC_COUNTS = ("count", "number", "groups")
"""Possible names of the column of numbers in a public table."""


@dataclass(frozen=True, eq=False)
class GroupTwin:
    """Public group sizes, with those above the plan's largest."""

    prior: Prior
    """The sizes up to the plan's largest, to be released on trial."""
    sizes: GroupSizes
    """All sizes."""
    open_ended: bool
    """The last size stands for larger ones as well."""


def read_group_twin(
    plan: GroupTablePlan, file: PlanFile, location: str, source: str, role: Role = "twin"
) -> tuple[GroupTwin, list[str]]:
    """Read a public table of group sizes; return what was not done as for the private one. The caller compares them."""
    stated, present, notes = keeping_alike(inner(file.table(location)), role)
    most = MOST_CELLS // plan.regions.sizes[-1] - 1
    widest = max(plan.sizes.largest, min(max(WIDE, 4 * plan.sizes.largest), most))
    reader = _reader(plan, file, present, widest)
    sizes = _with_empty(plan, reader, reader.read(stated))
    return _twin(plan, sizes, "public table", source, bool(sizes.number[:, -1].any())), notes


def released_group_twin(plan: GroupTablePlan, location: str, source: str) -> GroupTwin:
    """Take an earlier release of group sizes in the same regions, with at least as many sizes."""
    release = Release.load(location)
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
    if largest < plan.sizes.largest:
        raise PlanError(
            f"the sizes of {location} end at {largest:,}, and the plan tells them apart up to {plan.sizes.largest:,}: "
            "give another public table, or try the plan with that largest"
        )
    sizes = sizes_of(release.spine, Counts.from_leaves(release.spine, list(release.nodes), release.count))
    title = source or str(release.card["title"] or "an earlier release")
    return _twin(plan, sizes, "release", title, True)


def sizes_of(spine: Spine, counts: Counts) -> GroupSizes:
    """Return counts of a spine of sizes and places as group sizes."""
    place = next(name for name in spine.attributes if name != SIZE)
    regions, sizes = spine.attributes[place], spine.attributes[SIZE]
    (size, region), count = leaves_of(spine, counts)
    number = np.zeros((regions.sizes[-1], sizes.sizes[-1]), np.int64)
    np.add.at(number, (region, size), count)
    return GroupSizes(regions, number)


def _twin(plan: GroupTablePlan, sizes: GroupSizes, kind: Kind, source: str, open_ended: bool) -> GroupTwin:
    """Top-code the sizes as the plan does."""
    largest = plan.sizes.largest
    number = sizes.number[:, : largest + 1].copy()
    number[:, -1] += sizes.number[:, largest + 1 :].sum(axis=1)
    nodes, count = leaves_above_zero(number)
    counts = Counts.from_leaves(plan.spine, list(nodes), count)
    prior = Prior(kind, source, plan.spine, prior_levels(plan.spine, counts), counts, counts.digest)
    return GroupTwin(prior, sizes, open_ended)


def _reader(plan: GroupTablePlan, file: PlanFile, present: list[str] | None, widest: int) -> Reader:
    """Read as the plan does if the columns are there; otherwise as numbers of groups by place and size."""
    own = group_reader(plan, file.columns, file.count)
    if present is None or all(name in present for name in own.columns.wanted()):
        return replace(own, largest=widest, number=None, listed=own.listed if own.rows == "people" else None)
    columns = file.columns or {}
    place = _first(present, columns.get(plan.place), plan.place, plan.regions.levels[-1])
    size = _first(present, columns.get(SIZE), SIZE)
    number = _first(present, file.count, *_PUBLIC_COUNTS)
    if place is None or size is None or number is None:
        missing = ", ".join(repr(name) for name in own.columns.wanted() if name not in present)
        raise PlanError(
            f"a public table for this plan has the plan's own columns (without {missing}), or those of a "
            f"published one: {plan.place!r}, {SIZE!r} and 'count', the number of groups of that size in that place"
        )
    return Reader(own.regions, widest, "histogram", GroupColumns(region=place, size=size, number=number), None)


def _first(present: list[str], *names: str | None) -> str | None:
    return next((name for name in names if name in present), None)


def _with_empty(plan: GroupTablePlan, reader: Reader, sizes: GroupSizes) -> GroupSizes:
    """Add the empty groups of the public list if the table has none and the list is long enough."""
    if plan.listed is None or reader.rows == "people" or sizes.number[:, 0].any():
        return sizes
    missing = plan.listed.by_region - sizes.number.sum(axis=1)
    if missing.min() < 0:  # groups of another year, or of another country: nobody knows which of them are empty
        return sizes
    number = sizes.number.copy()
    number[:, 0] = missing
    return GroupSizes(sizes.regions, number)


# A plan, and what is read beside it.


def counts_groups(plan: Plan) -> TypeGuard[GroupTablePlan]:
    """Whether the plan is for group sizes."""
    return isinstance(plan, GroupTablePlan)


def counts_degrees(plan: Plan) -> bool:
    """Whether the plan is for degrees of a graph."""
    return isinstance(plan, DegreeCounts)


def open_plan(plan: Planned, *, open_loss: bool = False) -> tuple[Plan, PlanFile | None]:
    """Return a plan and its file, if there is one.

    With `open_loss` the file may leave the loss open; an epsilon of 1 stands in for it.
    """
    if isinstance(plan, Plan):
        return plan, None
    file = plan if isinstance(plan, PlanFile) else read_plan(plan, stand_in=1 if open_loss else None)
    return file.plan, file


def refuse_other_kinds(plan: Plan) -> None:
    """Refuse a kind of plan whose loss and split cannot be advised on."""
    if not counts_groups(plan):
        plan.refuse_unless_top_down()


def prior_of(
    plan: Plan, file: PlanFile | None, given: Prior | str | Path, source: str | None
) -> tuple[Prior, list[str]]:
    """Return a prior, read from its location if it is one, and what was not done as for the private table."""
    refuse_counts(given)
    if isinstance(given, Prior):
        return given, []
    if source is None and not is_release(str(given)):
        raise PlanError(
            f"say where {given} is from, since only public facts may shape the noise: "
            'give `prior_source`, such as "ISTAT, commuting 2011"'
        )
    return read_public(_file_for(file, given), str(given), source or "", "prior")


def twin_of(
    plan: Plan, file: PlanFile | None, given: Prior | GroupTwin | str | Path, source: str | None
) -> tuple[Prior | GroupTwin, list[str]]:
    """Return a twin, read from its location if it is one, and what was not done as for the private table."""
    refuse_counts(given)
    if isinstance(given, Prior | GroupTwin):
        return given, []
    location, file = str(given), _file_for(file, given)
    if counts_groups(plan):
        return read_public_groups(file, plan, location, _twin_source(location, source), "twin")
    return read_twin(file, location, source)


def _file_for(file: PlanFile | None, given: str | Path) -> PlanFile:
    if file is None:
        raise PlanError(f"only a plan file says how {given} is read: give that as the plan, or a Prior")
    return file


def read_twin(
    file: PlanFile, location: str, source: str | None = None, *, compare: bool = True
) -> tuple[Prior, list[str]]:
    """Read a public twin as the plan reads its table, which it must not be; return what was not done alike.

    Without `compare` the caller has the private counts at hand and compares them itself.
    """
    return read_public(file, location, _twin_source(location, source), "twin", compare)


def _twin_source(location: str, source: str | None) -> str:
    """Return where a twin is from: as stated, or its location; a release says so itself."""
    return source or ("" if is_release(location) else location)


def is_release(location: str) -> bool:
    """Whether it is a release folder."""
    return (Path(location) / "card.json").is_file()


def read_public(
    file: PlanFile, location: str, source: str, role: Role, compare: bool = True
) -> tuple[Prior, list[str]]:
    """Read a release, or a table as the private one is read, which it must not be; return what was not done alike."""
    if counts_groups(file.plan):
        groups, notes = read_public_groups(file, file.plan, location, source, role, compare)
        return groups.prior, notes
    if is_release(location):
        return Prior.from_release(Release.load(location), source), []
    for private in private_tables(file):
        refuse_private(location, private, role)
    plan = file.plan
    stated = Source(location) if file.graph is not None else file.table(location)
    table, bound, notes = read_alike(stated, plan.unit, role)
    prior = Prior.from_public_table(
        table, plan.spine, source=source, columns=file.columns, count=file.count, unknown=plan.unknown, bound=bound
    )
    if compare:
        notes += _compare(file, prior, role)
    return prior, notes


def read_public_groups(
    file: PlanFile, plan: GroupTablePlan, location: str, source: str, role: Role, compare: bool = True
) -> tuple[GroupTwin, list[str]]:
    """Read a release of group sizes, or a public table of them, which must not be the private one."""
    if is_release(location):
        return released_group_twin(plan, location, source), []
    for private in private_tables(file):
        refuse_private(location, private, role)
    twin, notes = read_group_twin(plan, file, location, source, role)
    return twin, notes + (_compare(file, twin.prior, role) if compare else [])


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


def private_tables(file: PlanFile) -> list[Any]:
    """Return the tables that the plan is known to read: its own, or both of a graph."""
    if file.graph is not None:
        tables = (file.source, file.graph.graph.nodes, file.graph.graph.edges)
        return [table for table in tables if table is not None]
    return [] if file.source is None else [inner(file.table(file.source))]
