"""The tables of a plan, levels and margins: how the loss is divided over them, their noise, and what each costs."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from fractions import Fraction
from typing import Literal

from treetop.basics.exact import Number, positive
from treetop.basics.nearest import nearest
from treetop.domain.margin import MARGIN, Margin
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import LossError, PlanError
from treetop.intake.counts import LARGEST_TOTAL
from treetop.noise import Law
from treetop.plan.workload import Exact, Measured, Part, PassThrough, Workload
from treetop.privacy import Loss, Split, Unit, shares
from treetop.privacy.exact_accounting import is_exact_by_default, rho_of_levels
from treetop.privacy.mechanism import cost, level_noise

ALL_MARGINS = "margins"
"""What a split calls all margins together."""
SHARE_OF_MARGINS = Fraction(3, 10)
"""What margins have of the loss, all together, where the split does not say."""
WEIGHT_OF_LEAVES = 2
"""What leaves weigh beside the other levels where margins are kept and the split is uniform: margins help the sums of
leaves, and hardly the leaves."""


def plan_tables(
    spine: Spine,
    unit: Unit,
    loss: Loss,
    split: Literal["uniform"] | Mapping[str, Number] | Split,
    margins: Sequence[Margin] = (),
    *,
    known: Container[int] = (),
    records_may_be_dropped: bool,
) -> tuple[Fraction, Workload]:
    """Return what the tables divide among them (epsilon when pure, otherwise rho), and each: levels, then margins.

    The levels that are `known`, by their positions, follow from public facts and cost nothing.
    """
    public_total = unit.total_is_exact(records_may_be_dropped) or 0 in known
    nodes = [(TOTAL, 1, not (public_total or unit.total_follows))]
    nodes += [(level.name, level.nodes, level.divides and level.index not in known) for level in spine.levels]
    measured = [name for name, _, is_measured in nodes if is_measured]
    share = table_shares(split, measured, [margin.part for margin in margins])
    divided = _spent_by(unit, loss, share)
    widest = [1, *(level.widest for level in spine.levels), *(margin.nodes for margin in margins)]
    nodes += [(margin.part, margin.nodes, True) for margin in margins]
    parts = []
    for index, (name, size, _) in enumerate(nodes):
        if name not in share:
            is_exact = public_total if index == 0 else index in known and spine.levels[index - 1].divides
            parts.append(Part(index, name, size, Fraction(0), Exact() if is_exact else PassThrough()))
            continue
        law = level_noise(unit, divided, name, share[name])
        _refuse_overflow(name, law, widest[index])
        parts.append(Part(index, name, size, share[name], Measured(law), cost(unit, name, law)))
    workload = Workload(tuple(parts))
    if workload.spent > divided.budget:  # exact arithmetic: a bug, not rounding
        raise PlanError(f"the levels would cost {workload.spent}, more than the loss {divided.budget}")
    return divided.budget, workload


def table_shares(
    split: Literal["uniform"] | Mapping[str, Number] | Split, levels: Sequence[str], margins: Sequence[str]
) -> dict[str, Fraction]:
    """Return each measured table's share of the loss.

    A split that names no margin divides among the levels what the margins leave; one that names margins alone says what
    these have of the loss, and the levels divide the rest.
    """
    if not levels:
        return {}
    if not margins:
        return dict(zip(levels, shares(split, levels), strict=True))
    named = split.shares if isinstance(split, Split) else split if isinstance(split, Mapping) else {}
    beside = [name for name in named if name == ALL_MARGINS or name.startswith(MARGIN)]
    if not beside:
        weights = split if split != "uniform" else _usual(levels)
        own = dict(zip(levels, shares(weights, levels), strict=True))
        left = {name: (1 - SHARE_OF_MARGINS) * share for name, share in own.items()}
        return left | dict.fromkeys(margins, SHARE_OF_MARGINS / len(margins))
    if len(beside) == len(named):
        return _with_shares_of_margins(named, levels, margins)
    stated = _stated(named, margins)
    every = [*levels, *margins]
    return dict(zip(every, shares(Split(stated) if isinstance(split, Split) else stated, every), strict=True))


def without_margins(split: Literal["uniform"] | Mapping[str, Number] | Split) -> Literal["uniform"] | Split:
    """Return how a split divides the loss among levels alone."""
    named = split.shares if isinstance(split, Split) else split if isinstance(split, Mapping) else {}
    own = {name: weight for name, weight in named.items() if name != ALL_MARGINS and not name.startswith(MARGIN)}
    return Split.weighted(own) if own else "uniform"


def _usual(levels: Sequence[str]) -> dict[str, Number]:
    """How levels divide what margins leave them."""
    return {**dict.fromkeys(levels, 1), levels[-1]: WEIGHT_OF_LEAVES}


def _with_shares_of_margins(
    named: Mapping[str, Number], levels: Sequence[str], margins: Sequence[str]
) -> dict[str, Fraction]:
    """Return the shares where only those of margins are stated."""
    stated = _stated(named, margins)
    for name in stated:
        if name not in margins:
            raise LossError(f"The split names {name!r}, which is not measured{nearest(name, margins)}.")
    if missing := [name for name in margins if name not in stated]:
        raise LossError(
            f"The split leaves out {', '.join(missing)}; give them a share, or all that are not named one: "
            f"{ALL_MARGINS} = 0.3."
        )
    taken = sum(stated.values(), Fraction(0))
    if taken >= 1:
        raise LossError(
            f"The split names margins alone, which then are shares of the whole loss, and they take {float(taken):g} "
            "of 1; leave the levels something, or give every level a weight as well."
        )
    own = shares(_usual(levels), levels)
    return {level: (1 - taken) * share for level, share in zip(levels, own, strict=True)} | stated


def _stated(named: Mapping[str, Number], margins: Sequence[str]) -> dict[str, Fraction]:
    """Return the numbers of a split, with that of all margins divided evenly among those that are not named."""
    stated = {name: positive(value, f"The weight of {name}") for name, value in named.items() if name != ALL_MARGINS}
    rest = [name for name in margins if name not in stated]
    if ALL_MARGINS in named:
        if not rest:
            raise LossError(f"The split names every margin, and {ALL_MARGINS} as well; leave one of them out.")
        stated |= dict.fromkeys(rest, positive(named[ALL_MARGINS], "The weight of margins") / len(rest))
    return stated


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
