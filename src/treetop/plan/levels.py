"""The levels of a plan: how the loss is divided over them, the noise that each gets, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from treetop.basics.exact import Number
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import LossError, PlanError
from treetop.noise import Law
from treetop.privacy import Loss, Split, Unit, cost, level_noise, shares
from treetop.privacy.exact_accounting import rho_of_levels
from treetop.read.counts import LARGEST_TOTAL


@dataclass(frozen=True)
class PlannedLevel:
    """What a plan does at one level."""

    index: int
    """The position in the spine; the total is 0."""
    name: str
    """The name of the level."""
    nodes: int
    """How many nodes the public domain has there."""
    share: Fraction
    """Its share of the loss."""
    law: Law | None
    """The noise of one measurement; None where nothing is measured."""
    cost: Fraction
    """What it spends: rho, or epsilon for a pure loss."""

    def describe(self) -> dict[str, Any]:
        """Return it as plain values, for cards and digests."""
        return {
            "level": self.index,
            "name": self.name,
            "nodes": self.nodes,
            "share": str(self.share),
            "cost": str(self.cost),
            "noise": None if self.law is None else self.law.describe(),
        }


def plan_levels(
    spine: Spine,
    unit: Unit,
    loss: Loss,
    split: Literal["uniform"] | Mapping[str, Number] | Split,
    *,
    records_may_be_dropped: bool,
) -> tuple[Fraction, tuple[PlannedLevel, ...]]:
    """Return what the levels divide among them (epsilon when pure, otherwise rho), and each of them."""
    public_total = unit.total_is_exact(records_may_be_dropped)
    nodes = [(TOTAL, 1, not public_total)]
    nodes += [(level.name, level.nodes, level.divides) for level in spine.levels]
    measured = [name for name, _, is_measured in nodes if is_measured]
    share = dict(zip(measured, shares(split, measured), strict=True)) if measured else {}
    divided = _spent_by(unit, loss, share)
    levels = []
    for index, (name, size, _) in enumerate(nodes):
        law = level_noise(unit, divided, name, share[name]) if name in share else None
        if law is not None:
            _refuse_overflow(name, law, 1 if index == 0 else spine.levels[index - 1].widest)
        spent = Fraction(0) if law is None else cost(unit, name, law)
        levels.append(PlannedLevel(index, name, size, share.get(name, Fraction(0)), law, spent))
    total = sum((level.cost for level in levels), Fraction(0))
    if total > divided.budget:  # exact arithmetic: a bug, not rounding
        raise PlanError(f"the levels would cost {total}, more than the loss {divided.budget}")
    return divided.budget, tuple(levels)


def _spent_by(unit: Unit, loss: Loss, share: Mapping[str, Fraction]) -> Loss:
    """The loss as the levels divide it: with exact accounting, the rho that it leaves to these shares."""
    if loss.accounting != "exact" or not share:
        return loss
    return Loss(rho=rho_of_levels(unit, loss, share))


def _refuse_overflow(name: str, law: Law, widest: int) -> None:
    """Refuse noise so wide that sums of measurements could leave 64 bits."""
    if law.margin(Fraction(1, 2**80)) * widest + LARGEST_TOTAL >= 2**56:
        raise LossError(f"the noise of {name} would be too wide for 64-bit counts: give the level more of the loss")
