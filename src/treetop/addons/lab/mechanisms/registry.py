"""Every mechanism, by its name on the command line; another one is added by one registration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar, TypeVar

import numpy as np

from treetop._util.choices import nearest
from treetop._util.dtypes import Ints
from treetop.addons.lab.mechanisms import baselines, inftda
from treetop.addons.lab.mechanisms.compared import ComparedMechanism, Estimate, LevelEstimate, NotServed
from treetop.advice.public import sizes_of
from treetop.counts.counts import Counts, pack
from treetop.errors import PlanError
from treetop.measure.readers import leaves_above_zero
from treetop.measure.vectors import measured_groups
from treetop.noise import Key
from treetop.noise.gate import Gate
from treetop.plan.group_plan import SIZE, GroupSizeReader
from treetop.plan.group_unit import Form, GroupUnit
from treetop.plan.plan import Plan
from treetop.plan.region_histograms import Method, Public, RegionHistograms, region_tree
from treetop.repair.groups import round_cumulative, round_direct

# The mechanisms for group sizes: sizes or cumulative sizes are measured, and repaired in one of three ways.
# Differential Privacy of Hierarchical Census Data (CP 2019), M_H and M_c, each rounded (r) or exact (dp); and the joint
# repair (r+dp), which is not in the paper. They are compared under one unit, loss and split.


@dataclass(frozen=True)
class RoundedHistograms(RegionHistograms):
    """Also real numbers that add up, rounded one by one, so that they need not add up any more."""

    methods: ClassVar[Mapping[tuple[bool, str], Method]] = {
        **RegionHistograms.methods,
        (False, "rounded"): ("M_H^r", round_direct),
        (True, "rounded"): ("M_c^r", round_cumulative),
    }


@dataclass(frozen=True, eq=False)
class OfGroups(inftda.OfPlan):
    """A mechanism for group sizes: a class for every form of the measurements and repair, named by both."""

    form: ClassVar[Form]
    repair: ClassVar[str]

    public: Public = "total"
    """Public numbers of groups; only joint repairs keep those of regions."""

    def __post_init__(self) -> None:
        if self.unit.counts != GroupUnit.counts:
            raise NotServed(
                f"{self.name} is for group sizes, and these are counts of records: compare inftda or others"
            )
        plan = Plan(
            self.spine,
            GroupUnit.of(self.unit).in_plan(self.form, self.spine.attributes[SIZE].sizes[-1] - 1),
            self.loss,
            self.split,
            "euclidean",
            reader=GroupSizeReader("histogram", number=1),  # the noise is not bound to it: any number can be read
            mechanism=RoundedHistograms(self.public, self.repair),
        )
        object.__setattr__(self, "plan", plan)

    @property
    def definition(self) -> str:
        """The privacy that a run gives, in one sentence."""
        return f"{self.unit.sentence()} {self.loss.sentence()}"

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Measure the private sizes once, and return the publishable estimate."""
        with measured_groups(self.plan, sizes_of(self.spine, counts), Gate(key), None, threads) as found:
            released = found.counts
        levels = [self._level(depth, released[own]) for depth, own in enumerate(region_tree(self.plan.regions).levels)]
        leaves = levels[-1]
        if self.repair != "rounded":
            return Estimate(self.spine, leaves.keys, leaves.value)
        # Rounded one by one, levels are not the sums of those below.
        total = LevelEstimate(tuple(pack(self.spine, np.zeros((2, 1), np.int32))), np.array([released[0].sum()]))
        return Estimate(self.spine, leaves.keys, leaves.value, (total, *levels))

    def _level(self, depth: int, number: Ints) -> LevelEstimate:
        """Return the nodes of a level that are not zero: the path of each is that of its first leaf."""
        (size, region), value = leaves_above_zero(number)
        leaf = region
        if depth == 0:
            leaf = np.zeros_like(region)
        elif depth < len(self.plan.regions.levels):
            above = self.plan.regions.ancestors(depth - 1)
            leaf = np.searchsorted(above, region)
        nodes = {SIZE: size, self.plan.place: leaf}
        rows = np.array([nodes[name] for name in self.spine.attributes], np.int32)
        return LevelEstimate(tuple(pack(self.spine, rows)), value)


_ABOUT: dict[tuple[Form, str], str] = {
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


def _kind(form: Form, repair: str, about: str) -> type[OfGroups]:
    name = f"{form}-{repair}"
    return type(f"OfGroups[{name}]", (OfGroups,), {"name": name, "about": about, "form": form, "repair": repair})


KINDS = tuple(_kind(*of, about) for of, about in _ABOUT.items())


Kind = TypeVar("Kind", bound=type[ComparedMechanism])

MECHANISMS: dict[str, type[ComparedMechanism]] = {}
GROUP_MECHANISMS: dict[str, type[ComparedMechanism]] = {}
PRACTICES: dict[str, type[ComparedMechanism]] = {}
"""Practices without a guarantee, for comparison only."""


def register(kind: Kind) -> Kind:
    """Register a mechanism under its name; refuse one without a description. Also a decorator."""
    name, about = (getattr(kind, what, "").strip() for what in ("name", "about"))
    if not name or not about:
        raise PlanError(f"{kind.__name__} cannot be registered: give it a name, and say what it is about in a sentence")
    if (every() | {name: kind})[name] is not every().get(name, kind):
        raise PlanError(f"there is a mechanism {name!r} already: give {kind.__name__} another name")
    practice = issubclass(kind, baselines.Practice)
    own = GROUP_MECHANISMS if issubclass(kind, OfGroups) else PRACTICES if practice else MECHANISMS
    own[name] = kind
    return kind


def every() -> dict[str, type[ComparedMechanism]]:
    """Return all mechanisms by name."""
    return MECHANISMS | PRACTICES | GROUP_MECHANISMS


def named(name: str) -> type[ComparedMechanism]:
    """Return the mechanism of a name."""
    if name not in every():
        raise PlanError(
            f"there is no mechanism {name!r}{nearest(name, every())}; the mechanisms are {', '.join(MECHANISMS)}; "
            f"without a guarantee {', '.join(PRACTICES)}; and for group sizes {', '.join(GROUP_MECHANISMS)}"
        )
    return every()[name]


_OWN: dict[ModuleType, str] = {
    inftda: "InfTDA WithMargins WithFacts LowerError TDAl2 EuclideanTDA TDAlinf",
    baselines: "VanillaGauss StabilityHistogram BottomUp Hay PerLevel Suppression Rounding",
}
for _kind_of in (*(getattr(module, name) for module, names in _OWN.items() for name in names.split()), *KINDS):
    register(_kind_of)
