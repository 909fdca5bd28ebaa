"""What every mechanism of a comparison offers: its guarantee, its noise, its cost, and one run on private counts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Protocol

from treetop.basics.exact import Number
from treetop.basics.nearest import nearest
from treetop.compare.mechanisms.estimate import Estimate
from treetop.domain.spine import Spine
from treetop.errors import LossError, PlanError, Refusal
from treetop.intake.counts import Counts
from treetop.noise import Key, Law
from treetop.noise.gate import bind, digest
from treetop.plan.workload import Part
from treetop.privacy import Loss, Unit, rho_from_epsilon_loose


class NotServed(Refusal):
    """A mechanism that cannot serve this unit, this loss, or a tree of this size."""


class Mechanism(Protocol):
    """A way to publish counts. Making one does all that is public, checks included; only `run` sees private counts.

    The counts hold every record of the private table. Under `replace` with one record a unit the total is then the
    same for all neighbours; where rows may have been dropped on the way, mechanisms that use it are told so
    (`records_may_be_dropped`).
    """

    name: ClassVar[str]
    """The name on the command line."""
    about: ClassVar[str]
    """What it does, in one sentence."""

    def __init__(self, spine: Spine, unit: Unit, loss: Loss) -> None: ...

    @property
    def spine(self) -> Spine:
        """The public order of refinement."""

    @property
    def unit(self) -> Unit:
        """What is protected."""

    @property
    def loss(self) -> Loss:
        """The privacy loss of one run."""

    @property
    def levels(self) -> tuple[Part, ...]:
        """The total and every level of the spine: what is measured there, with which noise, at what cost."""

    @property
    def spent(self) -> Fraction:
        """What a run costs, never more than the loss: rho or, where the guarantee is stated in it, epsilon."""

    @property
    def definition(self) -> str:
        """The privacy that a run gives, in one sentence."""

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Measure the private counts once and return what may be published.

        The noise is a function of the key, the mechanism's decisions and the counts; it does not depend on `threads`.
        """


def paper_loss(epsilon: Number, delta: Number) -> Loss:
    """The loss that papers with the looser conversion, rho + 2√(rho·ln(1/δ)), spend at (epsilon, delta).

    >>> float(paper_loss(1, 1e-8).budget)
    0.0132153628528
    """
    return Loss(rho=rho_from_epsilon_loose(epsilon, delta), delta=delta)


def promise(unit: Unit, guarantee: str) -> str:
    """Say for whom a guarantee holds."""
    records = "1 record" if unit.contributions == 1 else f"{unit.contributions} records"
    way = "replaced by another" if unit.neighbours == "replace" else "added or removed"
    return f"For one {unit.entity} of at most {records}, {way}: {guarantee[:1].lower()}{guarantee[1:]}"


def check_parts(spine: Spine, unit: Unit, loss: Loss) -> None:
    """Refuse parts of the wrong kind, and caps on levels that the spine does not have."""
    for what, value, kind in (("spine", spine, Spine), ("unit", unit, Unit), ("loss", loss, Loss)):
        if not isinstance(value, kind):
            raise PlanError(f"{what} is {value!r}: give a treetop.{kind.__name__}")
    names = [level.name for level in spine.levels]
    for name in unit.per_node:
        if name not in names:
            raise PlanError(f"the unit caps records per node of {name!r}, which is not a level{nearest(name, names)}")


def check_width(law: Law, leaves: int) -> None:
    """Refuse noise so wide that sums of it over all leaves could leave 64 bits."""
    if law.margin(Fraction(1, 2**80)) * leaves >= 2**61:
        raise LossError("the noise would be too wide for 64-bit counts: give a larger loss")


def bound_key(key: Key, counts: Counts, name: str, spine: Spine, decisions: dict[str, Any]) -> Key:
    """Bind a key to what a mechanism does and to the data."""
    return bind(key, name, digest([spine.digest, decisions]), counts.digest)
