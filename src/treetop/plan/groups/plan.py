"""A plan for group sizes: the decisions before private data is read, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from treetop._util.choices import nearest
from treetop._util.numbers import Number, whole
from treetop._util.system import refuse_beyond_memory
from treetop.counts.group_reader import CELL_BYTES, check_cells
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import LossError, PlanError
from treetop.plan.groups.unit import Form, GroupUnit
from treetop.plan.workload import Measured, Part, PassThrough, Workload
from treetop.privacy import TOTAL, Loss, Split, shares
from treetop.privacy.accountant import cost_of, noise_for
from treetop.repair import Tree, whole_weights
from treetop.repair import groups as repairs

GroupRepair: TypeAlias = Literal["exact", "rounded", "joint"]
Public: TypeAlias = Literal["total", "regions"]

WIDEST = 1 << 34

_WAYS = {
    ("direct", "exact"): ("M_H^dp", repairs.repair_direct),
    ("direct", "rounded"): ("M_H^r", repairs.round_direct),
    ("cumulative", "exact"): ("M_c^dp", repairs.repair_cumulative),
    ("cumulative", "rounded"): ("M_c^r", repairs.round_cumulative),
    ("direct", "joint"): ("M_H^r+dp", repairs.join_direct),
    ("cumulative", "joint"): ("M_c^r+dp", repairs.join_cumulative),
}


@dataclass(frozen=True, eq=False)
class GroupPlan:
    """A release of the number of groups of each size in every region, from a public list of groups.

    >>> plan = GroupPlan(Hierarchy.flat(["east", "west"]), 9, GroupUnit("person", event="join-leave"), Loss(epsilon=1))
    >>> plan.name, [level.law for level in plan.levels]
    ('M_c^dp', [DiscreteLaplace(scale=Fraction(2, 1)), DiscreteLaplace(scale=Fraction(2, 1))])
    """

    regions: Hierarchy
    """The public tree of regions; every group is in one leaf."""
    largest: int
    """The largest size that is told apart; larger groups are counted with it. Size 0 is counted too."""
    unit: GroupUnit
    loss: Loss
    """The privacy loss: pure epsilon gives Laplace noise, rho or epsilon with delta Gaussian noise."""
    form: Form = "cumulative"
    """Measured form: the number of groups of each size, or of each size and those below."""
    repair: GroupRepair = "exact"
    """Whole numbers that add up ("exact"), or rounded real numbers that may not ("rounded", for comparisons)."""
    split: Literal["uniform"] | Mapping[str, Number] | Split = "uniform"
    """Shares of the loss over the measured levels."""
    public: Public = "total"
    """Numbers of groups that the repair uses: "total", or that of each region ("regions"). Both are public."""
    workload: Workload = field(init=False, repr=False)
    """The workload: the sizes of all regions together, and those of every level of regions."""

    def __post_init__(self) -> None:
        self._check()
        object.__setattr__(self, "workload", self._workload())
        for level, law in self.workload.measured:
            if law.margin(Fraction(1, 2**80)) > WIDEST:
                raise LossError(f"The noise of level {level.name} is too wide for 64-bit counts; give a larger loss.")

    def _check(self) -> None:
        for what, value, kind in (("regions", self.regions, Hierarchy), ("unit", self.unit, GroupUnit),
                                  ("loss", self.loss, Loss)):  # fmt: skip
            if not isinstance(value, kind):
                raise PlanError(f"{what} is {value!r}: give a {kind.__name__}")
        choices = (("form", self.form, Form), ("repair", self.repair, GroupRepair), ("public", self.public, Public))
        for what, given, kinds in choices:
            if given not in get_args(kinds):
                names = get_args(kinds)
                raise PlanError(f"{what} is {given!r}{nearest(str(given), names)}; choose one of: {', '.join(names)}")
        if whole(self.largest) is None:
            raise PlanError(f"largest is {self.largest!r}: give the largest size, a whole number, 1 or more")
        if self.public == "regions" and self.repair != "joint" and (self.form, self.repair) != ("cumulative", "exact"):
            raise PlanError(
                'public="regions" keeps each region\'s number of groups, so it needs repair="joint"; with '
                'form="cumulative" and repair="exact" it is used, but not kept'
            )
        check_cells(self.regions, self.largest, by=f" by {self.name}")

    def check_number(self, number: int) -> None:
        """Refuse more groups than repairs in 64 bits allow; their number is public, so a plan can check it."""
        widest = max(law.margin(Fraction(1, 2**80)) for _, law in self.workload.measured)
        sizes, most = self.largest + 1, number + widest
        summed = self.form == "cumulative" and most * sizes**2 >= 2**62
        if summed:
            raise PlanError(
                f"{number:,} groups of sizes up to {self.largest:,} do not fit 64-bit sums: lower largest, or count "
                'sizes by themselves, with form = "direct"'
            )
        if 4 * most * int(self.weights.sum()) + 2**40 >= 2**61:
            raise PlanError(
                f"{number:,} groups do not fit 64-bit sums with the weights of this split: divide the loss more evenly"
            )

    def check_memory(self) -> None:
        """Refuse a plan that needs more than this machine's memory."""
        cells = check_cells(self.regions, self.largest)
        what = f"{self.tree.nodes:,} regions with {self.largest + 1:,} sizes"
        refuse_beyond_memory(CELL_BYTES * cells, what, "lower largest, or take a larger machine")

    def _workload(self) -> Workload:
        names = (TOTAL, *self.regions.levels)
        nodes = (1, *self.regions.sizes)
        # A level with as many regions as the one below would be measured twice: the finer one pays.
        measured = [name for k, name in enumerate(names) if k + 1 == len(names) or nodes[k] < nodes[k + 1]]
        part = dict(zip(measured, shares(self.split, measured), strict=True))
        change = self.unit.sensitivity(self.form, self.largest)
        parts = []
        for index, (name, size) in enumerate(zip(names, nodes, strict=True)):
            if name not in part:
                parts.append(Part(index, name, size, Fraction(0), PassThrough()))
                continue
            law = noise_for(change, self.loss, part[name])
            parts.append(Part(index, name, size, part[name], Measured(law), cost_of(change, law)))
        return Workload(tuple(parts))

    @property
    def levels(self) -> tuple[Part, ...]:
        """The root and the levels of the regions."""
        return self.workload.parts

    @property
    def name(self) -> str:
        """The name of the mechanism in the paper."""
        return _WAYS[self.form, self.repair][0]

    @property
    def repaired(self) -> Callable[..., NDArray[np.int64]]:
        """The repair: a function from measurements to counts that add up."""
        return _WAYS[self.form, self.repair][1]

    @cached_property
    def tree(self) -> Tree:
        """The regions, with the root, as a tree."""
        return Tree.from_levels(self.regions.first)

    @cached_property
    def weights(self) -> NDArray[np.int64]:
        """By level, whole numbers in proportion to 1/variance; 0 for levels that are not measured."""
        # Noise that is almost never there is as good as exact: its weight need not be larger still.
        variances = [max(law.standard_deviation, 1e-3) ** 2 for _, law in self.workload.measured]
        weights = np.zeros(len(self.levels), np.int64)
        weights[[level.index for level, _ in self.workload.measured]] = whole_weights(
            [1 / variance for variance in variances]
        )
        return weights

    @property
    def spent(self) -> Fraction:
        """The cost of a run: epsilon if the loss is pure, otherwise rho."""
        return self.workload.spent

    def describe(self) -> dict[str, Any]:
        """Return all decisions, for cards and for binding the noise to them."""
        return {
            "mechanism": self.name,
            "regions": self.regions.digest,
            "largest": self.largest,
            "unit": {"entity": self.unit.entity, "event": self.unit.event, "quantity": self.unit.quantity},
            "public": self.public,
            "levels": [[level.name, level.law.describe() if level.is_measured else None] for level in self.levels],
        }
