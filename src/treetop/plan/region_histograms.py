"""The mechanism for counts by region along an axis: the groups of each size, or the people of each degree.

The sizes of all regions together are measured, then those of every region of each level, and all of them are repaired
at once to whole numbers that add up. Differential Privacy of Hierarchical Census Data (CP 2019) has the two exact
methods; the joint repair is not in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from treetop._util.choices import check_choice
from treetop._util.dtypes import Ints
from treetop._util.system import refuse_beyond_memory
from treetop.counts.group_reader import CELL_BYTES, check_cells
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import LossError, PlanError
from treetop.plan.mechanism import Mechanism
from treetop.plan.workload import Part
from treetop.privacy import TOTAL
from treetop.repair import Tree, whole_weights
from treetop.repair import groups as repairs

if TYPE_CHECKING:
    from treetop.plan.plan import Plan

Public: TypeAlias = Literal["total", "regions"]
Method: TypeAlias = tuple[str, Callable[..., Ints]]
"""A name in the paper, and the repair: a function from measurements to counts that add up."""

WIDEST = 1 << 34


@dataclass(frozen=True)
class RegionHistograms(Mechanism):
    """Histograms of every region at every level, in which regions add up: measured once, and repaired together."""

    name: ClassVar[str] = "region-histograms"
    counts: ClassVar[tuple[str, ...]] = ("groups", "degrees")
    methods: ClassVar[Mapping[tuple[bool, str], Method]] = {
        (False, "joint"): ("M_H^r+dp", repairs.join_direct),
        (True, "joint"): ("M_c^r+dp", repairs.join_cumulative),
        (False, "exact"): ("M_H^dp", repairs.repair_direct),
        (True, "exact"): ("M_c^dp", repairs.repair_cumulative),
    }
    """The methods, by whether counts are cumulative and by repair."""

    public: Public = "total"
    """Numbers that the repair keeps, which are public: of all regions together, or of each ("regions")."""
    repair: str = "joint"
    """The repair: all regions and sizes at once, or the method of the paper."""

    def __post_init__(self) -> None:
        check_choice("repair", self.repair, list(dict.fromkeys(repair for _, repair in self.methods)))
        check_choice("public", self.public, get_args(Public))
        if self.public == "regions" and self.repair != "joint":
            raise PlanError('public="regions" keeps the number of groups of each region, which needs repair="joint"')

    @property
    def keeps_regions(self) -> bool:
        """Whether the release keeps the public number of every region."""
        return self.public == "regions"

    def title(self, plan: Plan) -> str:
        """Return its name in the paper."""
        return self.methods[plan.unit.cumulative, self.repair][0]

    def repaired(self, plan: Plan) -> Callable[..., Ints]:
        """Return the repair, a function from measurements to counts that add up."""
        return self.methods[plan.unit.cumulative, self.repair][1]

    def levels(self, plan: Plan) -> list[tuple[Part, int]]:
        """Return the measured tables, each with its finest level in the tree of regions (the root is 0)."""
        nodes = (1, *plan.regions.sizes)
        deepest = [max(at for at, number in enumerate(nodes) if number == own) for own in nodes]
        return [(part, deepest[part.index - 1]) for part, _ in plan.workload.measured]

    def weights(self, plan: Plan) -> Ints:
        """Return, by level of the tree, whole numbers in proportion to 1/variance; 0 if it is not measured."""
        weights = np.zeros(1 + len(plan.regions.sizes), np.int64)
        # Noise that is almost never there is as good as exact: its weight need not be larger still.
        variances = [max(part.law.standard_deviation, 1e-3) ** 2 for part, _ in self.levels(plan)]
        weights[[depth for _, depth in self.levels(plan)]] = whole_weights([1 / variance for variance in variances])
        return weights

    def check_workload(self, plan: Plan) -> None:
        """Refuse noise that is too wide."""
        for level, law in plan.workload.measured:
            if law.margin(Fraction(1, 2**80)) > WIDEST:
                raise LossError(f"The noise of level {level.name} is too wide for 64-bit counts; give a larger loss.")

    def check_number(self, plan: Plan, number: int) -> None:
        """Refuse more groups than repairs in 64 bits allow; their number is public, so a plan can check it."""
        widest = max(law.margin(Fraction(1, 2**80)) for _, law in plan.workload.measured)
        largest, most = plan.largest, number + widest
        if plan.unit.cumulative and most * (largest + 1) ** 2 >= 2**62:
            raise PlanError(
                f"{number:,} groups of sizes up to {largest:,} do not fit 64-bit sums: lower largest, or count "
                'sizes by themselves, with form = "direct"'
            )
        if 4 * most * int(self.weights(plan).sum()) + 2**40 >= 2**61:
            raise PlanError(
                f"{number:,} groups do not fit 64-bit sums with the weights of this split: divide the loss more evenly"
            )

    def check_memory(self, plan: Plan) -> None:
        """Refuse a plan that needs more than this machine's memory."""
        largest = plan.largest
        what = f"{1 + sum(plan.regions.sizes):,} regions with {largest + 1:,} sizes"
        refuse_beyond_memory(
            CELL_BYTES * check_cells(plan.regions, largest), what, "lower largest, or take a larger machine"
        )

    def terms(self, plan: Plan) -> int:
        """Return 2 if counts are cumulative: a number of one size is the difference of two of them."""
        return 2 if plan.unit.cumulative else 1

    def bound(self, plan: Plan, index: int, risk: Fraction) -> int | None:
        """Return 0 for the exact total, and None for other levels: no simultaneous bound is proven."""
        return 0 if index == 0 else None

    def describe(self, plan: Plan, stated: Mapping[str, Any]) -> dict[str, Any]:
        """Return the decisions of a reader with the method's name in the paper."""
        return {**stated, "mechanism": self.title(plan)}

    def binding(self, plan: Plan) -> dict[str, Any]:
        """Return the decisions that the noise is bound to, beside the data; levels have the names of the tree."""
        names = (TOTAL, *plan.regions.levels)
        laws: list[Any] = [None] * len(names)
        for part, depth in self.levels(plan):
            laws[depth] = part.law.describe()
        return {
            "mechanism": self.title(plan),
            "regions": plan.regions.digest,
            "largest": plan.largest,
            "unit": plan.unit.binding,
            "public": self.public,
            "levels": [list(pair) for pair in zip(names, laws, strict=True)],
        }


@lru_cache(maxsize=8)
def region_tree(regions: Hierarchy) -> Tree:
    """Return the regions, with the root, as a tree."""
    return Tree.from_levels(regions.first)
