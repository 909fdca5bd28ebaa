"""What a plan reads, and the mechanism that measures it: the public half of both, as values of the plan.

The half that sees private counts has the same name: `measure/readers.py` reads what a reader describes, and
`publishing/releasing.py` runs a mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from treetop.domain.marginal import Margin, margins_of, refuse_crossing
from treetop.domain.spine import Spine
from treetop.domain.unit import GuaranteeCondition, drops
from treetop.errors import PlanError
from treetop.io.table import Table
from treetop.plan.constraints_kept import conditions_of, exact_beside, known_levels
from treetop.plan.workload import Workload, joint_tables, plan_tables

if TYPE_CHECKING:
    from treetop.plan.plan import Plan


class Reader:
    """What a plan counts, and the public part of how it is read."""

    name: ClassVar[str]
    """What is counted: "records", "groups" or "degrees"; the unit's `counts`, and the family of plan fields."""
    axis: ClassVar[str | None] = None
    """Attribute that the plan itself adds to those of the table, such as the size of a group."""
    what: ClassVar[str] = "records"
    """What a released count is of."""
    not_top_down: ClassVar[str] = ""
    """Why operations on counts from the top down refuse such a plan."""

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Return the reader of a plan, which must be of this kind."""
        if plan.reader.name != cls.name:
            raise PlanError(f"this is about plans for {cls.name}, and the plan is for {plan.reader.name}")
        return cast(Self, plan.reader)

    def check(self, plan: Plan) -> None:
        """Refuse contradictions with the rest of the plan, before its tables are known."""

    def check_workload(self, plan: Plan) -> None:
        """Refuse what does not go with the plan's tables."""

    def population(self, plan: Plan) -> int | None:
        """Return the least number of units that is public before data is read; None if there is none."""
        return plan.unit.population

    def conditions(self, plan: Plan) -> tuple[GuaranteeCondition, ...]:
        """Return the conditions of the guarantee: invariants, compared facts, and declared caps."""
        return conditions_of(plan.spine, plan.public_facts, plan.unit, plan.unknown)

    def describe(self, plan: Plan) -> dict[str, Any]:
        """Return the plan's decisions about reading, as plain values for cards and digests."""
        return plan.mechanism.describe(plan, {})

    def own_table(self, table: Table) -> Table:
        """Return a private table as it is read."""
        return table


@dataclass(frozen=True)
class RecordReader(Reader):
    """Counts of records, of a table or of the edges of a graph."""

    name: ClassVar[str] = "records"


class Mechanism:
    """Which tables a plan measures, and what is known of their errors."""

    name: ClassVar[str]
    counts: ClassVar[tuple[str, ...]]
    """Names of the readers whose counts it can measure."""
    has_margins: ClassVar[bool] = False
    """Whether tables beside the spine can be measured."""
    not_top_down: ClassVar[str] = ""
    """Why operations on counts from the top down refuse it; empty if the reader says so."""

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Return the mechanism of a plan, which must be of this kind."""
        if plan.mechanism.name != cls.name:
            raise PlanError(f"this is about the mechanism {cls.name}, and the plan's is {plan.mechanism.name}")
        return cast(Self, plan.mechanism)

    @classmethod
    def runs(cls, plan: Plan) -> bool:
        """Whether it is the mechanism of a plan."""
        return plan.mechanism.name == cls.name

    def tables(self, plan: Plan) -> tuple[Fraction, Workload]:
        """Return the budget of all tables (epsilon if pure, otherwise rho), and the tables: levels, then margins."""
        return plan_tables(
            plan.spine,
            plan.unit,
            plan.loss,
            plan.split,
            plan.margin_tables,
            known=known_levels(plan.spine, plan.public_facts),
            records_may_be_dropped=drops(plan.unknown),
        )

    def margin_tables(self, plan: Plan) -> tuple[Margin, ...]:
        """Return the tables that are measured beside the spine; one that follows from facts is not measured."""
        margins = margins_of(plan.spine, plan.margins)
        return tuple(margin for margin in margins if not plan.public_facts.decides(margin.depths))

    def check(self, plan: Plan) -> None:
        """Refuse fields that do not go with it."""
        if past := plan.spine.goes_past:
            # Counts of skipped levels are known as sums only.
            what = "margins" if plan.margin_tables else "facts" if plan.public_facts else None
            if what is not None:
                remedy = "set margins to none" if what == "margins" else "leave the facts out"
                raise PlanError(
                    f"the spine goes past {', '.join(past)}, which are then sums of its leaves, and the plan has "
                    f"{what}: {remedy}, or refine level by level"
                )
        refuse_crossing(plan.spine, plan.margin_tables)

    def check_workload(self, plan: Plan) -> None:
        """Refuse tables with noise that its arithmetic cannot hold."""

    def terms(self, plan: Plan) -> int:
        """Return the number of measurements per count; "± one" and accuracy targets refer to their summed error."""
        return 1

    def bound(self, plan: Plan, index: int, risk: Fraction) -> int | None:
        """Return the simultaneous error bound of a level that holds except with this risk; None if none is proven."""
        raise NotImplementedError

    def describe(self, plan: Plan, stated: Mapping[str, Any]) -> dict[str, Any]:
        """Return the decisions of a reader with those of the mechanism, as plain values for cards and digests."""
        return dict(stated)

    def as_released(self, plan: Plan, spine: Spine) -> Plan:
        """Return the plan as settled by a release with this spine, if a run completes it."""
        return plan


@dataclass(frozen=True)
class TopDown(Mechanism):
    """Level by level: the children of a node are measured, and repaired to add up to it."""

    name: ClassVar[str] = "top-down"
    counts: ClassVar[tuple[str, ...]] = ("records",)
    has_margins: ClassVar[bool] = True

    def bound(self, plan: Plan, index: int, risk: Fraction) -> int | None:
        """Return the simultaneous error bound of a level; None if two tables determine its counts: none is proved.

        An error grows, from a node to its children, by at most twice the largest noise among them (InfTDA, Theorem 1;
        here with exact quantiles of the noise instead of its tail bound, each at the confidence that a union bound over
        levels and public nodes leaves; it holds for both repairs).
        """
        if index < len(plan.levels) and plan.levels[index].is_exact:
            return 0
        if index > 0 and (plan.margin_tables or exact_beside(plan.spine, plan.public_facts)):
            return None
        measured = [level for level in plan.levels[: index + 1] if level.is_measured]
        bound = 0
        for level in measured:
            largest = level.margin(risk / (len(measured) * level.nodes))
            bound += largest if level.index == 0 else 2 * largest
        return bound


MOST_CELLS = 10_000_000
"""Most leaves of a joint fit, which enumerates all of them."""


@dataclass(frozen=True)
class JointMechanism(Mechanism):
    """Tables of a few attributes, measured whole, and one table of all attributes fitted to all of them at once.

    Least squares combine the tables, a non-negative table is fitted, and rounded to whole numbers (`treetop.fit`). No
    order of refinement matters, and no table is measured that nobody asks for. All leaves are enumerated.
    """

    name: ClassVar[str] = "joint"
    counts: ClassVar[tuple[str, ...]] = ("records",)
    has_margins: ClassVar[bool] = True
    not_top_down: ClassVar[str] = (
        "this is about plans that go level by level, and this plan fits all its tables together: give it an order of "
        "refinement"
    )

    def margin_tables(self, plan: Plan) -> tuple[Margin, ...]:
        """Return the measured tables, of which one may be that of the leaves."""
        return margins_of(plan.spine, plan.margins, levels="kept")

    def tables(self, plan: Plan) -> tuple[Fraction, Workload]:
        """Return the budget of all tables, and the tables: the total, the leaves unmeasured, and the listed ones."""
        dropped = drops(plan.unknown)
        return joint_tables(plan.spine, plan.unit, plan.loss, plan.split, plan.margin_tables, dropped=dropped)

    def check(self, plan: Plan) -> None:
        """Refuse what an order of refinement decides, and tables that leave out what is released."""
        if plan.public_facts:
            raise PlanError("a joint fit does not keep public facts yet: leave the facts out, or give an order")
        if plan.resolve != "full":
            raise PlanError("resolve names nodes from the top down, and a joint fit has no order: leave resolve out")
        if (plan.repair, plan.order) != ("chebyshev", "ascending"):
            raise PlanError("prefer and repair work from the top down, and a joint fit does not: leave them out")
        if len(plan.spine.levels) != 1:
            raise PlanError("a joint fit has no order of refinement: make its spine with Spine.bottom_up")
        if plan.spine.leaves > MOST_CELLS:
            raise PlanError(
                f"a joint fit enumerates all cells, at most {MOST_CELLS:,}, and there are {plan.spine.leaves:,}: use "
                "coarser levels, leave an attribute out, or give an order of refinement"
            )
        trees = zip(plan.spine.attributes, plan.spine.trees, strict=True)
        for attribute, (name, tree) in enumerate(trees):
            finest = max((margin.depths[attribute] for margin in plan.margin_tables), default=0)
            if finest < len(tree.levels) and tree.sizes[-1] > (tree.sizes[finest - 1] if finest else 1):
                raise PlanError(
                    f"margins: no table tells {name}.{tree.levels[-1]} apart, which is released: add one that does, "
                    f'such as "{name}.{tree.levels[-1]}"'
                )

    def bound(self, plan: Plan, index: int, risk: Fraction) -> int | None:
        """Return the bound of the total's error; none is proved for fitted counts."""
        return plan.levels[0].margin(risk) if index == 0 else None

    def describe(self, plan: Plan, stated: Mapping[str, Any]) -> dict[str, Any]:
        """Return its name, in place of a repair and its order."""
        return {"mechanism": self.name, "repair": "joint-fit", "order": "none"}
