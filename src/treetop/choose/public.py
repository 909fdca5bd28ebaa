"""Public tables beside a plan: a prior or a twin, read as the plan reads its private table, which they must not be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from treetop.choose.group_twin import GroupTwin, read_group_twin, released_group_twin
from treetop.choose.guard import Role, refuse_private, refuse_same_records
from treetop.choose.prior import Prior, read_alike
from treetop.errors import DataError
from treetop.plan.file import PlanFile
from treetop.plan.groups.planned import PureGroupTablePlan, inner
from treetop.release.release import Release
from treetop.sources.source import Source, reads_once


def read_twin(
    file: PlanFile, location: str, source: str | None = None, *, compare: bool = True
) -> tuple[Prior, list[str]]:
    """Read a public twin as the plan reads its table, which it must not be; say what was not done alike.

    Without `compare` the caller has the private counts at hand, and will see to it that these are others.
    """
    return read_public(file, location, twin_source(location, source), "twin", compare)


def twin_source(location: str, source: str | None) -> str:
    """Return where a twin is from: as it was said, or where it is; a release says so itself."""
    return source or ("" if is_release(location) else location)


def is_release(location: str) -> bool:
    """Whether it is a release folder."""
    return (Path(location) / "card.json").is_file()


def read_public(
    file: PlanFile, location: str, source: str, role: Role, compare: bool = True
) -> tuple[Prior, list[str]]:
    """Take a release, or read a table as the private one is read, which it must not be; say what was not done alike."""
    if isinstance(file.plan, PureGroupTablePlan):
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
    file: PlanFile, plan: PureGroupTablePlan, location: str, source: str, role: Role, compare: bool = True
) -> tuple[GroupTwin, list[str]]:
    """Take a release of group sizes, or read a public table of them, which the private one must not be."""
    if is_release(location):
        return released_group_twin(plan, location, source), []
    for private in private_tables(file):
        refuse_private(location, private, role)
    twin, notes = read_group_twin(plan, file, location, source, role)
    return twin, notes + (_compare(file, twin.prior, role) if compare else [])


def _compare(file: PlanFile, prior: Prior, role: Role) -> list[str]:
    """Refuse a public table with the records of the private one; say so where they cannot be compared."""
    if file.source is None:
        return []  # said once, for all that was asked
    if reads_once(file.source):
        return [f"The {role} was not compared with {Source(file.source)}: be sure that it is public."]
    try:
        private = file.plan.counts(file.table(file.source), file.columns, file.count)
    except DataError:  # what it says is about private rows, and this output is not
        return [
            f"The {role} could not be compared with the private table, which cannot be read as the plan says: be sure "
            f"that the {role} is public."
        ]
    refuse_same_records(prior.records, private, role)
    return []


def private_tables(file: PlanFile) -> list[Any]:
    """Return what the plan is known to read: its table, or both tables of a graph."""
    if file.graph is not None:
        tables = (file.source, file.graph.graph.nodes, file.graph.graph.edges)
        return [table for table in tables if table is not None]
    return [] if file.source is None else [inner(file.table(file.source))]
