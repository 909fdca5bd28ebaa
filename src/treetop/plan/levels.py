"""The levels of a plan: how the loss is divided over them, the noise that each gets, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

from treetop.basics.exact import Number
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import LossError, PlanError
from treetop.noise import Law
from treetop.plan.workload import Exact, Measured, Part, PassThrough, Workload
from treetop.privacy import Loss, Split, Unit, shares
from treetop.privacy.exact_accounting import is_exact_by_default, rho_of_levels
from treetop.privacy.mechanism import cost, level_noise
from treetop.read.counts import LARGEST_TOTAL


def plan_levels(
    spine: Spine,
    unit: Unit,
    loss: Loss,
    split: Literal["uniform"] | Mapping[str, Number] | Split,
    *,
    records_may_be_dropped: bool,
) -> tuple[Fraction, Workload]:
    """Return what the levels divide among them (epsilon when pure, otherwise rho), and each of them."""
    public_total = unit.total_is_exact(records_may_be_dropped)
    nodes = [(TOTAL, 1, not (public_total or unit.total_follows))]
    nodes += [(level.name, level.nodes, level.divides) for level in spine.levels]
    measured = [name for name, _, is_measured in nodes if is_measured]
    share = dict(zip(measured, shares(split, measured), strict=True)) if measured else {}
    divided = _spent_by(unit, loss, share)
    levels = []
    for index, (name, size, _) in enumerate(nodes):
        if name not in share:
            levels.append(
                Part(index, name, size, Fraction(0), Exact() if index == 0 and public_total else PassThrough())
            )
            continue
        law = level_noise(unit, divided, name, share[name])
        _refuse_overflow(name, law, 1 if index == 0 else spine.levels[index - 1].widest)
        levels.append(Part(index, name, size, share[name], Measured(law), cost(unit, name, law)))
    workload = Workload(tuple(levels))
    if workload.spent > divided.budget:  # exact arithmetic: a bug, not rounding
        raise PlanError(f"the levels would cost {workload.spent}, more than the loss {divided.budget}")
    return divided.budget, workload


def _spent_by(unit: Unit, loss: Loss, share: Mapping[str, Fraction]) -> Loss:
    """The loss as the levels divide it: with exact accounting, the rho that it leaves to these shares."""
    by_default = is_exact_by_default(unit, loss)
    if not share or not (by_default or loss.accounting == "exact"):
        return loss
    try:
        return Loss(rho=rho_of_levels(unit, loss, share))
    except LossError:
        if not by_default:
            raise
        return loss  # too extreme to be computed: rho keeps it too


def _refuse_overflow(name: str, law: Law, widest: int) -> None:
    """Refuse noise so wide that sums of measurements could leave 64 bits."""
    if law.margin(Fraction(1, 2**80)) * widest + LARGEST_TOTAL >= 2**56:
        raise LossError(f"the noise of {name} would be too wide for 64-bit counts: give the level more of the loss")
