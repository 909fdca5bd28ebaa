"""A plan for group sizes: read from people, groups or histograms, released like any other counts.

The counts are of groups by size and place, with the spine `size, place.state, place.county`: the sizes of all regions
together, then of every region of each level.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, get_args

from treetop._util.choices import check_choice
from treetop._util.numbers import Number, whole
from treetop.counts.group_reader import GroupList, Rows, check_cells
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import Spine
from treetop.domain.unit import GuaranteeCondition
from treetop.errors import PlanError
from treetop.io.source import VIEW, Source, leaves_out, selected
from treetop.io.table import Table
from treetop.plan.fields import GROUPS, decided
from treetop.plan.group_unit import Form, GroupUnit
from treetop.plan.mechanism import Reader
from treetop.plan.plan import Plan
from treetop.plan.region_histograms import Public, RegionHistograms
from treetop.plan.workload import CONFIDENCE
from treetop.privacy import Loss, SplitLike

SIZE = "size"
"""Name of the size attribute and of its one level."""

COLUMNS = ("group", SIZE, "quantity")

NOT_TOP_DOWN = (
    "this plan is for group sizes, whose levels are measured together and repaired at once; this is about counts "
    "of records that are measured from the top down. `treetop plan`, with `target`, `epsilon_grid`, `twin` or "
    "`prior` too, and release, check, query, compare and export take it"
)


@dataclass(frozen=True, eq=False)
class GroupSizeReader(Reader):
    """Counts of groups by size, read from people, groups or histograms."""

    name: ClassVar[str] = "groups"
    axis: ClassVar[str | None] = SIZE
    what: ClassVar[str] = "groups"
    not_top_down: ClassVar[str] = NOT_TOP_DOWN

    rows: Rows
    number: int
    """Number of groups: public, and released exactly."""
    listed: GroupList | None = field(default=None, repr=False)
    list_sha256: str | None = field(default=None, repr=False)
    """SHA-256 of the list; cards contain only this."""

    def check(self, plan: Plan) -> None:
        """Refuse contradictions with the rest of the plan."""
        check_choice("rows", self.rows, get_args(Rows))
        if plan.loss.accounting == "exact":
            raise PlanError(
                "exact accounting is not for group sizes: it knows the loss of counts that all move by one, and one "
                'unit may move numbers of groups by several. Leave it out, or write accounting = "zcdp"'
            )
        if whole(self.number) is None:
            raise PlanError(f"number is {self.number!r}: give the number of all groups, 1 or more")
        if self.rows == "people" and self.list_sha256 is None:
            raise PlanError(
                "a table of people does not say which groups are empty, and whether one is must stay hidden: give the "
                "public list of groups"
            )
        if self.listed is not None and self.listed.number != self.number:
            raise PlanError(f"number is {self.number:,}, but the public list has {self.listed.number:,} groups")

    def check_workload(self, plan: Plan) -> None:
        """Refuse more groups than the repair can hold: their number is public."""
        RegionHistograms.of(plan).check_number(plan, self.number)

    def population(self, plan: Plan) -> int | None:
        """Return the number of all groups if these are protected, otherwise the declared number of units."""
        return self.number if GroupUnit.of(plan.unit).event == "group" else plan.unit.population

    def conditions(self, plan: Plan) -> tuple[GuaranteeCondition, ...]:
        """Return the conditions of the guarantee: declared properties of groups and their members."""
        told: list[GuaranteeCondition] = []
        unit = GroupUnit.of(plan.unit)
        if self.list_sha256 is None:
            public = {"number": self.number, "public": RegionHistograms.of(plan).public}
            same = "the table has all groups that there are, and these and their regions are public (declared)"
            told.append(GuaranteeCondition(same, {plan.place: plan.regions.digest}, public))
        if unit.event != "group" and not (self.rows == "people" and unit.id is not None):
            told.append(GuaranteeCondition(f"no {unit.entity} is in two groups (declared)"))
        if unit.event != "group" and self.rows != "people":
            told.append(GuaranteeCondition(f"no {unit.entity} adds more than {unit.quantity} to a group (declared)"))
        return tuple(told)

    def describe(self, plan: Plan) -> dict[str, Any]:
        """Return the plan's decisions about groups, as plain values for cards and digests."""
        stated = decided(plan, GROUPS)["groups"]
        title = RegionHistograms.of(plan).title(plan)
        return {"order": "none", "groups": {"mechanism": title, **stated, "edition": 2}}

    def check_source(self, plan: Plan, source: Source | None) -> None:
        """Refuse read options that may drop groups or people: their number may be public."""
        if source is None:
            return
        if source.blank_lines == "skip":
            raise PlanError(
                'blank_lines = "skip" may drop a row, and none may be left out here: delete the blank lines'
            )
        view = VIEW if leaves_out(source) == VIEW else None
        reason = selected(source, view)
        if reason is not None:
            self._refuse_selected(plan, reason)

    def _refuse_selected(self, plan: Plan, reason: str) -> None:
        """Refuse to select groups by private columns: their number is exact, and one unit may change it.

        People who are left out are in no group. On a public list, groups that are left out have size 0, which is one of
        the possible sizes of a protected group.
        """
        unit = GroupUnit.of(plan.unit)
        if self.rows == "people" or (self.list_sha256 is not None and unit.event == "group"):
            return
        if self.list_sha256 is None:
            why = (
                f"the number of groups is released without noise, and one {unit.entity} may change which rows are kept"
            )
        else:
            why = f"one {unit.entity} may change whether a row is kept, and with it a size by more than the noise hides"
        raise PlanError(
            f"{reason}, and a row stands for whole groups: {why}. Give a table of people with the public list of "
            "groups, or a table that has every group and is taken whole"
        )

    def own_table(self, table: Table) -> GroupTable:
        """Return a private table as one of group sizes."""
        return GroupTable(table)


def group_plan(
    regions: Hierarchy,
    largest: int,
    unit: GroupUnit,
    loss: Loss,
    *,
    rows: Rows,
    number: int | None = None,
    listed: GroupList | None = None,
    form: Form = "cumulative",
    split: SplitLike = "uniform",
    public: Public | None = None,
    repair: str | None = None,
    id: str | None = None,
    place: str = "place",
    title: str = "",
    population: int | None = None,
    confidence: Number | None = CONFIDENCE,
) -> Plan:
    """Return a plan for group sizes; nothing private is read.

    The levels of a split are `size`, for all regions together, and those of the place. `number` is of all groups; it
    may be left out if a public list gives it. `public` then defaults to the number of every region ("regions"), and
    otherwise to the total ("total"); every public number is kept. `id` is the column that identifies people,
    `population` the least public number of them.
    """
    check_cells(regions, largest)
    if number is None and listed is None:
        raise PlanError("the number of groups is public and released exactly: give it, or the list of groups")
    if place.casefold() in COLUMNS:
        raise PlanError(f"the place cannot be called {place!r}, as a column of group sizes is: rename it")
    public = public or ("total" if listed is None else "regions")
    return Plan(
        spine=spine_of_numbers(SIZE, largest, regions, place),
        unit=GroupUnit.of(unit).in_plan(form, largest, id, population),
        loss=loss,
        split=split,
        repair="euclidean",
        title=title,
        confidence=confidence,
        reader=GroupSizeReader(
            rows,
            listed.number if number is None and listed is not None else number or 0,
            listed,
            None if listed is None else listed.digest,
        ),
        # In our experiments "joint" was the most accurate; of direct sizes only the nearest numbers can be proven.
        mechanism=RegionHistograms(public, repair or ("exact" if (form, public) == ("direct", "total") else "joint")),
    )


@dataclass(frozen=True, eq=False)
class GroupTable:
    """A private table for a group size plan. The type prevents other code from counting its rows as records."""

    table: Table

    def __arrow_c_stream__(self, requested_schema: object = None) -> NoReturn:
        raise PlanError(NOT_TOP_DOWN)


def spine_of_numbers(name: str, largest: int, regions: Hierarchy | None, place: str = "place") -> Spine:
    """Return the spine of group sizes, or of degrees: the number, then the regions, if there are any.

    >>> spine_of_numbers("size", 10, Hierarchy.flat(["east", "west"])).trees[0].codes[-1].to_pylist()[:3]
    ['00', '01', '02']
    """
    width = len(str(largest))
    codes = [str(number).zfill(width) for number in range(largest + 1)]
    # The last class is open. Other codes have a name only if zeros were put before them.
    called = {code: code.lstrip("0") or "0" for code in codes if len(code) > 1 and code.startswith("0")}
    numbers = Hierarchy.flat(codes, level=name).named({name: called | {codes[-1]: f"{largest} or more"}})
    if regions is None:
        return Spine([f"{name}.{name}"], {name: numbers})
    splits = [f"{name}.{name}", *(f"{place}.{level}" for level in regions.levels)]
    return Spine(splits, {name: numbers, place: regions})


def inner(table: Table) -> Any:
    """Return the table of a `GroupTable`; any other as it is."""
    return table.table if isinstance(table, GroupTable) else table
