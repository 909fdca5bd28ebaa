"""A plan for group sizes as a table: read from people, groups or histograms, released like any other counts.

The counts are of groups by size and place, with the spine `size, place.state, place.county`: the sizes of all regions
together, then of every region of each level. The mechanism measures exactly these tables, so every level of the card is
one of its levels, and all methods of `Plan` and `Release` apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NoReturn

from treetop._util.choices import nearest
from treetop._util.numbers import Number, whole
from treetop.counts.group_reader import GroupList, Rows, check_cells
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL, GuaranteeCondition
from treetop.errors import PlanError
from treetop.io.source import VIEW, Source, leaves_out, selected
from treetop.io.table import Table
from treetop.plan.fields import GROUPS, decided
from treetop.plan.groups.plan import GroupPlan, GroupRepair, Public
from treetop.plan.groups.unit import Form, GroupTableUnit, GroupUnit
from treetop.plan.plan import Plan
from treetop.plan.workload import CONFIDENCE
from treetop.privacy import Loss, Split

SIZE = "size"
"""Name of the size attribute and of its one level."""

COLUMNS = ("group", SIZE, "quantity")


@dataclass(frozen=True, eq=False)
class GroupTablePlan(Plan):
    """A plan for the release of group sizes; made by `group_plan`.

    >>> plan = group_plan(
    ...     Hierarchy.flat(["east", "west"]), 9, GroupUnit("person", event="join-leave"), Loss(epsilon=1),
    ...     rows="histogram", number=20,
    ... )
    >>> [(level.name, level.nodes) for level in plan.levels]
    [('total', 1), ('size', 10), ('place', 20)]
    """

    rows: Rows = "histogram"
    """Meaning of a row of the private table."""
    number: int = 0
    """Number of groups: public, and released exactly."""
    public: Public = "total"
    """Public numbers of groups that the repair uses: "total", or that of each region ("regions")."""
    listed: GroupList | None = field(default=None, repr=False)
    list_sha256: str | None = field(default=None, repr=False)
    """SHA-256 of the list; cards contain only this."""
    method: GroupRepair = "joint"
    """The repair: all regions and sizes at once, or the method of the paper."""

    def __post_init__(self) -> None:
        if not isinstance(self.unit, GroupTableUnit):
            raise PlanError(f"unit is {self.unit!r}: a plan for group sizes is made with group_plan")
        if self.rows not in ("people", "groups", "histogram"):
            kinds = ("people", "groups", "histogram")
            raise PlanError(f"rows is {self.rows!r}{nearest(str(self.rows), kinds)}; choose one of {', '.join(kinds)}")
        if self.loss.accounting == "exact":
            raise PlanError('exact accounting is not for group sizes: leave it out, or write accounting = "zcdp"')
        if whole(self.number) is None:
            raise PlanError(f"number is {self.number!r}: give the number of all groups, 1 or more")
        if self.rows == "people" and self.list_sha256 is None:
            raise PlanError(
                "a table of people does not say which groups are empty, and whether one is must stay hidden: give the "
                "public list of groups"
            )
        if self.method not in ("joint", "exact"):
            raise PlanError(f"repair is {self.method!r}: choose one of joint, exact")
        if self.public == "regions" and self.method != "joint":
            raise PlanError('public="regions" keeps the number of groups of each region, which needs repair="joint"')
        if self.listed is not None and self.listed.number != self.number:
            raise PlanError(f"number is {self.number:,}, but the public list has {self.listed.number:,} groups")
        object.__setattr__(self, "margins", "none")  # there is no second table of such counts
        super().__post_init__()
        self.core.check_number(self.number)  # what does not fit is refused now

    @property
    def sizes(self) -> GroupTableUnit:
        """The unit, typed as a unit of group sizes."""
        assert isinstance(self.unit, GroupTableUnit)
        return self.unit

    @property
    def population(self) -> int | None:
        """Least public number of units: all groups if these are protected, otherwise the declared number."""
        return self.number if self.sizes.group.event == "group" else self.unit.population

    @property
    def place(self) -> str:
        """Name of the region attribute."""
        return next(name for name in self.spine.attributes if name != SIZE)

    @property
    def regions(self) -> Hierarchy:
        """The public tree of regions."""
        return self.spine.attributes[self.place]

    @property
    def has_intervals(self) -> bool:
        """Whether released numbers have intervals."""
        return self.confidence is not None

    @property
    def keeps_regions(self) -> bool:
        """Whether the release keeps the number of groups of every region."""
        return self.public == "regions"

    @cached_property
    def core(self) -> GroupPlan:
        """The mechanism, with the noise of this plan."""
        unit = self.sizes
        return core_of(self, self.regions, unit.largest, unit.group, unit.form, self.method, self.public)

    @property
    def conditions(self) -> tuple[GuaranteeCondition, ...]:
        """The conditions of the guarantee: declared properties of groups and their members."""
        told: list[GuaranteeCondition] = []
        entity, group = self.unit.entity, self.sizes.group
        if self.list_sha256 is None:
            public = {"number": self.number, "public": self.public}
            same = "the table has all groups that there are, and these and their regions are public (declared)"
            told.append(GuaranteeCondition(same, {self.place: self.regions.digest}, public))
        if group.event != "group" and not (self.rows == "people" and self.unit.id is not None):
            told.append(GuaranteeCondition(f"no {entity} is in two groups (declared)"))
        if group.event != "group" and self.rows != "people":
            told.append(GuaranteeCondition(f"no {entity} adds more than {group.quantity} to a group (declared)"))
        return tuple(told)

    def describe(self) -> dict[str, Any]:
        """Return the plan's decisions as plain values, for cards and digests."""
        groups = {"mechanism": self.core.name, **decided(self, GROUPS)["groups"]}
        return super().describe() | {"order": "none", "groups": groups | {"edition": 2}}

    @property
    def terms(self) -> int:
        """Measurements per count: a number of groups of one size is the difference of two cumulative counts."""
        return 2 if self.sizes.form == "cumulative" else 1

    def _bound(self, index: int, risk: Fraction) -> int | None:
        """Return 0 for the exact total, and None for other levels: no simultaneous bound is proven."""
        return 0 if index == 0 else None

    def refuse_unless_top_down(self) -> None:
        """Refuse: group sizes are measured all levels at once."""
        refuse()

    def check_source(self, source: Source | None) -> None:
        """Refuse read options that may drop groups or people: their number may be public."""
        if source is None:
            return
        if source.blank_lines == "skip":
            raise PlanError(
                'blank_lines = "skip" may drop a row, and none may be left out here: delete the blank lines'
            )
        view = VIEW if leaves_out(source) == VIEW else None
        reason = selected(source.keep, source.query, format_may=view, drop=source.drop)
        if reason is not None:
            self._refuse_selected(reason)

    def _refuse_selected(self, reason: str) -> None:
        """Refuse to select groups by private columns: their number is exact, and one unit may change it.

        People who are left out are in no group. On a public list, groups that are left out have size 0, which is one of
        the possible sizes of a protected group.
        """
        if self.rows == "people" or (self.list_sha256 is not None and self.sizes.group.event == "group"):
            return
        entity = self.unit.entity
        if self.list_sha256 is None:
            why = f"the number of groups is released without noise, and one {entity} may change which rows are kept"
        else:
            why = f"one {entity} may change whether a row is kept, and with it a size by more than the noise hides"
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
    split: Literal["uniform"] | Mapping[str, Number] | Split = "uniform",
    public: Public | None = None,
    repair: GroupRepair | None = None,
    id: str | None = None,
    place: str = "place",
    title: str = "",
    population: int | None = None,
    confidence: Number | None = CONFIDENCE,
) -> GroupTablePlan:
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
    return GroupTablePlan(
        spine=spine_of_numbers(SIZE, largest, regions, place),
        unit=GroupTableUnit(unit, form, largest, id, population),
        loss=loss,
        split=split,
        repair="euclidean",
        title=title,
        rows=rows,
        number=listed.number if number is None and listed is not None else number or 0,
        public=public,
        listed=listed,
        list_sha256=None if listed is None else listed.digest,
        method=repair or best_repair(form, public),
        confidence=confidence,
    )


@dataclass(frozen=True, eq=False)
class GroupTable:
    """A private table for a group size plan. The type prevents other code from counting its rows as records."""

    table: Table

    def __arrow_c_stream__(self, requested_schema: object = None) -> NoReturn:
        refuse()


def refuse() -> NoReturn:
    """Refuse operations that need counts measured from the top down."""
    raise PlanError(
        "this plan is for group sizes, whose levels are measured together and repaired at once; this is about counts "
        "of records that are measured from the top down. `treetop plan`, with `target`, `epsilon_grid`, `twin` or "
        "`prior` too, and release, check, query, compare and export take it"
    )


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


def best_repair(form: Form, public: Public) -> GroupRepair:
    """Return the most accurate repair in our experiments; for direct sizes only the nearest numbers can be proven."""
    return "exact" if (form, public) == ("direct", "total") else "joint"


def core_of(
    plan: Plan,
    regions: Hierarchy,
    largest: int,
    unit: GroupUnit,
    form: Form,
    repair: GroupRepair,
    public: Public,
) -> GroupPlan:
    """Return the mechanism, with the noise of a plan with levels for all regions' sizes and for each region level."""
    measured = plan.workload.measured
    named = _core_levels(regions)
    split = Split({name: level.share for name, (level, _) in zip(named, measured, strict=True)})
    core = GroupPlan(regions, largest, unit, plan.loss, form, repair, split, public=public)
    own = [law for _, law in core.workload.measured]
    if own != [law for _, law in measured]:  # exact arithmetic: a bug, not rounding
        raise PlanError(f"the mechanism would add the noise {own}, and not that of the plan")
    return core


def _core_levels(regions: Hierarchy) -> list[str]:
    """Return the measured levels by the mechanism's names; of several identical levels, the finest."""
    names, nodes = (TOTAL, *regions.levels), (1, *regions.sizes)
    return [name for k, name in enumerate(names) if k + 1 == len(names) or nodes[k] < nodes[k + 1]]


def inner(table: Table) -> Any:
    """Return the table of a `GroupTable`; any other as it is."""
    return table.table if isinstance(table, GroupTable) else table
