"""What mechanisms that measure every level share: a plan, which divides the loss and sets the noise of each level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal

from treetop.basics.exact import Number
from treetop.compare.mechanisms.estimate import Estimate
from treetop.compare.mechanisms.mechanism import promise
from treetop.compare.mechanisms.topdown import LevelRepair, descend
from treetop.domain.facts import PublicFacts
from treetop.domain.margin import Margins
from treetop.domain.spine import Spine
from treetop.intake.counts import Counts
from treetop.measure.topdown import descent_of
from treetop.noise import Key
from treetop.noise.gate import bind
from treetop.plan.plan import PurePlan
from treetop.plan.workload import Part
from treetop.privacy import Loss, Split, Unit
from treetop.repair import Repair


@dataclass(frozen=True, eq=False)
class Planned:
    """A mechanism whose noise and cost are those of a plan.

    At level l, one unit moves the counts by at most Δ_l (`Unit.sensitivity`), under the unit's own neighbours; each
    level pays its share of the loss, and the total pays as well wherever neighbours can differ in it.
    """

    name: ClassVar[str]
    """The name on the command line."""
    plan_repair: ClassVar[Repair] = "chebyshev"
    """The repair that the plan names; mechanisms that bring their own do not ask it."""
    bounded: ClassVar[bool] = False
    """Whether the plan's bounds hold: they are for whole, consistent releases from the top down, and no others."""

    spine: Spine
    """The public order of refinement."""
    unit: Unit
    """What is protected."""
    loss: Loss
    """The privacy loss of one run."""
    split: Literal["uniform"] | Mapping[str, Number] | Split = "uniform"
    """How the loss is divided over the measured levels."""
    records_may_be_dropped: bool = False
    """Whether records with unknown codes may have been dropped; then the total is not public."""
    plan: PurePlan = field(init=False, repr=False)
    """The plan: noise and cost of every level."""

    def __post_init__(self) -> None:
        unknown: Literal["drop", "error"] = "drop" if self.records_may_be_dropped else "error"
        # All mechanisms get the same noise for the same loss; exact accounting is asked for.
        loss = self.loss.kept_by("zcdp") if getattr(self.loss, "accounting", "") is None else self.loss
        plan = PurePlan(
            self.spine,
            self.unit,
            loss,
            self.split,
            repair=self.plan_repair,
            unknown=unknown,
            margins=self.beside,
            facts=self.known,
        )
        object.__setattr__(self, "plan", plan)
        descent_of(plan)  # now, before data is read: a noise that cannot be drawn is refused here

    @property
    def beside(self) -> Margins:
        """Which tables are measured beside the spine."""
        return "none"

    @property
    def known(self) -> PublicFacts | Mapping[str, Any]:
        """Which public facts are kept: most mechanisms know none."""
        return {}

    @property
    def levels(self) -> tuple[Part, ...]:
        """The total and every level of the spine, with noise and cost."""
        return self.plan.levels

    @property
    def spent(self) -> Fraction:
        """What a run costs: rho, or epsilon for a pure loss."""
        return self.plan.spent

    @property
    def definition(self) -> str:
        """The privacy that a run gives, in one sentence."""
        return promise(self.unit, self.plan.kept_loss.sentence())


@dataclass(frozen=True, eq=False)
class OwnRepair(Planned):
    """A mechanism that measures as the engine does and repairs whole levels by a function of its own."""

    bounded: ClassVar[bool] = True
    level_repair: ClassVar[LevelRepair]
    """The repair, which sees measurements only."""

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Descend once, on one thread."""
        bound = bind(key, self.name, bytes.fromhex(self.plan.digest), counts.digest)
        leaves = descend(descent_of(self.plan), counts, bound, self.level_repair)
        return Estimate.from_nodes(self.spine, leaves.nodes, leaves.count)
