"""Plans that can be run: what a pure plan decides, and the one run that reads private data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from treetop._util.numbers import Number
from treetop._util.system import Progress
from treetop.card import Facts
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.unit import Policies
from treetop.engine.engine import AUTO, Engine, as_engine
from treetop.io.table import Table
from treetop.ledger import Ledger
from treetop.noise.gate import Charge
from treetop.plan import file as plan_files
from treetop.plan.graphs.degrees import PureDegreePlan
from treetop.plan.graphs.regional import PureRegionalPlan
from treetop.plan.graphs.unit import Degree, Form
from treetop.plan.groups.planned import PureGroupTablePlan
from treetop.plan.plan import PurePlan
from treetop.plan.workload import CONFIDENCE
from treetop.privacy import Loss, Neighbours, Split
from treetop.publishing.charging import Account, PaidRun, nothing, spending
from treetop.publishing.releasing import Run
from treetop.release.release import Release


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
        engine: str | Engine = AUTO,
        progress: Progress | None = None,
        before_measuring: Charge | None = None,
        keep_measurements: bool = False,
        allow_dropped: bool = False,
        testing_key: bytes | None = None,
        ledger: str | Path | Ledger | None = None,
        dataset: str | None = None,
        expect_head: str | None = None,
    ) -> Release:
        """Read the private table, run the plan once, and return the public result.

        `columns` names the column of each attribute where it is not the attribute's name, `count` a column that says
        how many records a row stands for; the card states `description` and `period`. Every call draws fresh noise and
        spends the loss again; `before_measuring` is called when the table has been read and nothing has been spent yet.
        With `keep_measurements` the release keeps all that was measured, for later estimates; one of lower error that
        has intervals always does. The log tells the steward how many unknown codes were dropped or counted under a
        leaf; above 3 % of the table `ManyDropped` is raised and nothing is spent, unless `allow_dropped`. With a
        `testing_key` of 32 bytes the noise is reproducible, and the release says that it is not private.

        With a `ledger`, the loss is charged to its `dataset` before anything is measured, and recorded as complete when
        the release is saved. An `engine` says where all this is done, by its name or as an `Engine`: the release is
        the same, bit for bit. Left out, a table that would not fit into memory is counted out of core.
        """
        facts, where = (
            Facts(columns=columns, count=count, description=description, period=period),
            as_engine(engine, threads),
        )
        how = Run(facts, before_measuring, where, progress, keep_measurements, allow_dropped, testing_key)
        account = Account.open(ledger, dataset, expect_head, testing_key)
        paid = PaidRun(self, how, account, before_measuring or nothing)
        paid.check_budget(table)
        with spending(account):
            return paid(table)


@dataclass(frozen=True, eq=False, repr=False)
class GroupTablePlan(Plan, PureGroupTablePlan):
    """What will be released of group sizes; make one with `make`. It is a `Plan`, and its release a `Release`.

    `columns` of `release` names the columns: of the place and, by what a row is, `group` and `quantity` (people),
    `size` and `group` (groups), or `size` (histogram), whose numbers of groups are in the column `count`. A table may
    also be `GroupSizes`. No group is ever dropped, whatever is allowed.
    """


@dataclass(frozen=True, eq=False, repr=False, init=False)
class DegreePlan(Plan, PureDegreePlan):
    """What will be released of the degrees of a graph: how many people have how many edges. `release` takes a `Graph`.

    `degree` says which edges of a person are counted, "out", "in" or "total": left out, those that go out where edges
    have a direction, and all of them without, and under "node". `largest` is the largest degree that is told apart, and
    stands for more as well: under "node" it is theta, and edges are left out until nobody has more; several candidates
    have it chosen privately, for the share `choosing` of the loss. `form` says what is
    measured: how many people have each degree, or each degree and those below. `contributions` is how many edges of a
    list count where, under "user-out", its edges are counted at other people. `policies` are those of the graph.

    >>> print(DegreePlan("node", "add-remove", Loss(rho=1), largest=9).sentence())
    The neighbour relation is "node": graphs that differ in one person, with all edges, in and out. It rests on no \
promise: edges are left out until nobody has more than the largest degree. One person is added or removed. \
Zero-concentrated differential privacy with rho 1; Gaussian noise.
    """

    def __init__(
        self,
        relation: str,
        neighbours: Neighbours,
        loss: Loss,
        largest: int | Sequence[int],
        form: Form = "cumulative",
        directed: bool = True,
        *,
        degree: Degree | None = None,
        contributions: int | None = None,
        choosing: Number | None = None,
        policies: Policies | None = None,
        entity: str | None = None,
        population: int | None = None,
        title: str = "",
        confidence: Number | None = CONFIDENCE,
    ) -> None:
        made = PureDegreePlan.make(
            relation, neighbours, loss, largest, form, directed, degree=degree, contributions=contributions,
            choosing=choosing, policies=policies, entity=entity, population=population, title=title,
            confidence=confidence,
        )  # fmt: skip
        self.__dict__.update(made.__dict__)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class RegionalPlan(Plan, PureRegionalPlan):
    """What will be released of the degrees of every region, so that all levels add up. `release` takes a `Graph`.

    Every person is in one leaf of `regions`, in the column of the node table that is called as the `place`, or as
    `columns` of `release` says; who is in which region is public. Under "edge" one edge is added or removed, under
    "user-out" one list is exchanged for another.
    """

    def __init__(
        self,
        regions: Hierarchy,
        largest: int,
        relation: str,
        loss: Loss,
        directed: bool = True,
        form: Form = "cumulative",
        *,
        degree: Degree | None = None,
        contributions: int | None = None,
        split: Literal["uniform"] | Mapping[str, Number] | Split = "uniform",
        place: str = "place",
        policies: Policies | None = None,
        population: int | None = None,
        title: str = "",
        confidence: Number | None = CONFIDENCE,
    ) -> None:
        made = PureRegionalPlan.make(
            regions, largest, relation, loss, directed, form, degree=degree, contributions=contributions, split=split,
            place=place, policies=policies, population=population, title=title, confidence=confidence,
        )  # fmt: skip
        self.__dict__.update(made.__dict__)


_RUNS: Mapping[type[PurePlan], type[Plan]] = {
    PurePlan: Plan,
    PureGroupTablePlan: GroupTablePlan,
    PureDegreePlan: DegreePlan,
    PureRegionalPlan: RegionalPlan,
}


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
    return runnable_file(plan_files.read_plan(path, stand_in=stand_in))


def runnable_file(file: plan_files.PlanFile) -> PlanFile:
    """Return the same plan file, with a plan that can be run."""
    told = {one.name: getattr(file, one.name) for one in fields(file)}
    return PlanFile(**told | {"plan": runnable(file.plan)})
