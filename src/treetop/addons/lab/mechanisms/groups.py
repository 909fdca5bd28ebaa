"""The mechanisms for group sizes: sizes or cumulative sizes are measured, and repaired in one of three ways.

Differential Privacy of Hierarchical Census Data (CP 2019), M_H and M_c, each rounded (r) or exact (dp); and the joint
repair (r+dp), which is not in the paper. They are compared under one unit, loss and split.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from treetop._util.numbers import Number
from treetop.addons.lab.mechanisms.mechanism import Estimate, LevelEstimate, Mechanism, NotServed
from treetop.advice.public import sizes_of
from treetop.counts.counts import Counts, pack
from treetop.domain.hierarchy import Hierarchy
from treetop.measure.readers import leaves_above_zero
from treetop.measure.vectors import measured_groups
from treetop.noise import Key
from treetop.noise.gate import Gate
from treetop.plan.groups.plan import GroupPlan, GroupRepair, Public
from treetop.plan.groups.planned import SIZE
from treetop.plan.groups.unit import Form, GroupTableUnit
from treetop.plan.workload import Exact, Part
from treetop.privacy import TOTAL, Split


@dataclass(frozen=True, eq=False)
class OfGroups(Mechanism):
    """A mechanism for group sizes: a class for every form of the measurements and repair, named by both."""

    form: ClassVar[Form]
    repair: ClassVar[GroupRepair]

    split: Literal["uniform"] | Mapping[str, Number] | Split = "uniform"
    public: Public = "total"
    """Public numbers of groups; only joint repairs keep those of regions."""
    core: GroupPlan = field(init=False, repr=False)

    def __post_init__(self) -> None:
        unit = self.unit
        if not isinstance(unit, GroupTableUnit):
            raise NotServed(
                f"{self.name} is for group sizes, and these are counts of records: compare inftda or others"
            )
        loss = self.loss.kept_by("zcdp") if getattr(self.loss, "accounting", "") is None else self.loss
        core = GroupPlan(
            self.regions, unit.largest, unit.group, loss, self.form, self.repair, self._split(), self.public
        )
        object.__setattr__(self, "core", core)

    @property
    def place(self) -> str:
        """The attribute of the regions."""
        return next(name for name in self.spine.attributes if name != SIZE)

    @property
    def regions(self) -> Hierarchy:
        """The public tree of regions."""
        return self.spine.attributes[self.place]

    def _split(self) -> Literal["uniform"] | Split:
        """Return the split with the mechanism's names of its levels."""
        if isinstance(self.split, str):
            return "uniform"
        shares = self.split.shares if isinstance(self.split, Split) else self.split
        own = dict(zip((level.name for level in self.spine.levels), (TOTAL, *self.regions.levels), strict=True))
        return Split.weighted({own[self.spine.level(name).name]: share for name, share in shares.items()})

    @property
    def levels(self) -> tuple[Part, ...]:
        """The total, which is public, and every level of the spine."""
        total = Part(0, TOTAL, 1, Fraction(0), Exact())
        pairs = zip(self.core.levels, self.spine.levels, strict=True)
        return total, *(Part(of.index, of.name, of.nodes, own.share, own.how, own.cost) for own, of in pairs)

    @property
    def spent(self) -> Fraction:
        """Cost of a run: epsilon if the loss is pure, otherwise rho."""
        return self.core.spent

    @property
    def definition(self) -> str:
        """The privacy that a run gives, in one sentence."""
        return f"{self.unit.sentence()} {self.loss.sentence()}"

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Measure the private sizes once, and return the publishable estimate."""
        with measured_groups(self.core, sizes_of(self.spine, counts), Gate(key), None, threads) as found:
            released = found.counts
        levels = [self._level(depth, released[own]) for depth, own in enumerate(self.core.tree.levels)]
        leaves = levels[-1]
        if self.repair != "rounded":
            return Estimate(self.spine, leaves.keys, leaves.value)
        # Rounded one by one, levels are not the sums of those below.
        total = LevelEstimate(tuple(pack(self.spine, np.zeros((2, 1), np.int32))), np.array([released[0].sum()]))
        return Estimate(self.spine, leaves.keys, leaves.value, (total, *levels))

    def _level(self, depth: int, number: NDArray[np.int64]) -> LevelEstimate:
        """Return the nodes of a level that are not zero: the path of each is that of its first leaf."""
        (size, region), value = leaves_above_zero(number)
        leaf = region
        if depth == 0:
            leaf = np.zeros_like(region)
        elif depth < len(self.regions.levels):
            above = self.regions.ancestors(depth - 1)
            leaf = np.searchsorted(above, region)
        nodes = {SIZE: size, self.place: leaf}
        rows = np.array([nodes[name] for name in self.spine.attributes], np.int32)
        return LevelEstimate(tuple(pack(self.spine, rows)), value)


_ABOUT: dict[tuple[Form, GroupRepair], str] = {
    ("direct", "rounded"): "M_H^r: sizes are measured, and the nearest real numbers that add up are rounded; sums may "
    "break.",
    ("direct", "exact"): "M_H^dp: sizes are measured, and become the nearest whole numbers that add up.",
    ("direct", "joint"): "M_H^r+dp: sizes are measured; the nearest real numbers become whole ones that keep all sums.",
    ("cumulative", "rounded"): "M_c^r: cumulative sizes are measured, and the nearest real ones that rise and add up "
    "are rounded.",
    ("cumulative", "exact"): "M_c^dp: cumulative sizes are measured, made to rise, and their differences to add up.",
    ("cumulative", "joint"): "M_c^r+dp: cumulative sizes are measured; the nearest that rise and add up become whole "
    "ones.",
}


def _kind(form: Form, repair: GroupRepair, about: str) -> type[OfGroups]:
    name = f"{form}-{repair}"
    return type(f"OfGroups[{name}]", (OfGroups,), {"name": name, "about": about, "form": form, "repair": repair})


KINDS = tuple(_kind(*of, about) for of, about in _ABOUT.items())
