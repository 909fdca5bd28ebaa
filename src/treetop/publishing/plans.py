"""Plans that can be run: what a pure plan decides, and the one run that reads private data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from treetop.basics.exact import Number
from treetop.basics.progress import Progress
from treetop.card import Facts
from treetop.noise.gate import Charge
from treetop.plan import file as plan_files
from treetop.plan.groups.planned import PureGroupTablePlan
from treetop.plan.plan import PurePlan
from treetop.publishing.releasing import Run, run
from treetop.release.release import Release
from treetop.tables.table import Table


@dataclass(frozen=True, eq=False, repr=False)
class Plan(PurePlan):
    """What will be released, for whom it is private, and at what loss; made without private data, and run by `release`.

    `treetop.publish` runs a plan and writes the release to a folder, charged to a ledger.
    """

    def release(
        self,
        table: Table,
        *,
        columns: Mapping[str, str] | None = None,
        count: str | None = None,
        description: str = "",
        period: str | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
        before_measuring: Charge | None = None,
        keep_measurements: bool = False,
        allow_dropped: bool = False,
        testing_key: bytes | None = None,
    ) -> Release:
        """Read the private table, run the plan once, and return the public result.

        `columns` names the column of each attribute where it is not the attribute's name, `count` a column that says
        how many records a row stands for; the card states `description` and `period`. Every call draws fresh noise and
        spends the loss again; `before_measuring` is called when the table has been read and nothing has been spent yet.
        With `keep_measurements` the release keeps all that was measured, for later estimates; one of lower error that
        has intervals always does. Where unknown codes are dropped, the log tells the steward how many; above 3 % of
        the table `ManyDropped` is raised and nothing is spent, unless `allow_dropped`. With a `testing_key` of 32 bytes
        the noise is reproducible, and the release says that it is not private.
        """
        facts = Facts(columns=columns, count=count, description=description, period=period)
        how = Run(facts, before_measuring, threads, progress, keep_measurements, allow_dropped, testing_key)
        return run(self, table, how)


@dataclass(frozen=True, eq=False, repr=False)
class GroupTablePlan(Plan, PureGroupTablePlan):
    """What will be released of group sizes; make one with `make`. It is a `Plan`, and its release a `Release`.

    `columns` of `release` names the columns: of the place and, by what a row is, `group` and `quantity` (people),
    `size` and `group` (groups), or `size` (histogram), whose numbers of groups are in the column `count`. A table may
    also be `GroupSizes`. No group is ever dropped, whatever is allowed.
    """


_RUNS: Mapping[type[PurePlan], type[Plan]] = {PurePlan: Plan, PureGroupTablePlan: GroupTablePlan}


def runnable(plan: PurePlan) -> Plan:
    """Return the same plan, as one that can be run."""
    if isinstance(plan, Plan):
        return plan
    same = object.__new__(_RUNS[type(plan)])
    same.__dict__.update(plan.__dict__)  # decided and checked already, and frozen
    return same


@dataclass(frozen=True)
class PlanFile(plan_files.PlanFile):
    """A plan that was read from a file and can be run, with what the file says about the private table."""

    plan: Plan


def read_plan(path: str | Path, *, stand_in: Number | None = None) -> PlanFile:
    """Read a plan file; private data is not touched.

    A loss that is left open is a question, unless there is an epsilon to stand in for it while one is looked for.
    """
    file = plan_files.read_plan(path, stand_in=stand_in)
    told = {one.name: getattr(file, one.name) for one in fields(file)}
    return PlanFile(**told | {"plan": runnable(file.plan)})
