"""Splits of the loss that need only the plan: presets, and by the number of public nodes.

All return a weight for every measured level, for `Plan(split=…)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

from treetop._util.choices import nearest
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL, Unknown, drops
from treetop.errors import LossError
from treetop.privacy import Loss, Unit

SMALLEST_SHARE = 0.001
"""Least share of a level, given to levels with weight 0: they are measured all the same."""

_DIGITS = 6


@dataclass(frozen=True)
class NamedSplit:
    """A split that a plan file can name."""

    words: str
    weights: Callable[[Spine, Unit, Loss, Unknown, Container[str]], dict[str, Fraction]]


def measured_levels(spine: Spine, unit: Unit, unknown: Unknown = "error", known: Container[str] = ()) -> list[str]:
    """Return the names of the levels that a plan would measure, from the top, without those `known` from facts."""
    total = [] if unit.total_is_exact(records_may_be_dropped=drops(unknown)) else [TOTAL]
    return [name for name in (*total, *(level.name for level in spine.levels if level.divides)) if name not in known]


def named_split(
    name: str, spine: Spine, unit: Unit, loss: Loss, *, unknown: Unknown = "error", known: Container[str] = ()
) -> dict[str, Fraction]:
    """Return a split by the name that a plan file may give."""
    if name not in SPLITS:
        raise LossError(f"there is no split {name!r}{nearest(name, SPLITS)}; choose one of {', '.join(SPLITS)}")
    return SPLITS[name].weights(spine, unit, loss, unknown, known)


def split_by_nodes(
    spine: Spine,
    unit: Unit,
    loss: Loss,
    unknown: Unknown = "error",
    known: Container[str] = (),
    weights: Mapping[str, float] | None = None,
) -> dict[str, Fraction]:
    """Return the best split if all counts are large, so that only the number of public nodes matters.

    rho ∝ √(w·n·Δ²), epsilon ∝ ∛(w·n·Δ²), for weights w by level (default 1).
    """
    levels = measured_levels(spine, unit, unknown, known)
    weight = weights or {}
    worth = [weight.get(name, 1.0) * (1 if name == TOTAL else spine.level(name).nodes) for name in levels]
    return as_weights(levels, budgets_by_worth(unit, loss, levels, worth)) if levels else {}


def budgets_by_worth(unit: Unit, loss: Loss, levels: Sequence[str], worth: Sequence[float]) -> list[float]:
    """Minimise Σ worth·variance: the variance is Δ²/(2·rho), or 2Δ²/epsilon² (a little less for discrete noise)."""
    pure = loss.definition == "pure"
    changes = [unit.sensitivity(name) for name in levels]
    squares = [change.l1**2 if pure else change.l2_squared for change in changes]
    budgets = [(one * square) ** (1 / 3 if pure else 1 / 2) for one, square in zip(worth, squares, strict=True)]
    if not sum(budgets) > 0:
        raise LossError("no measured level has a weight: give at least one")
    scale = float(loss.budget) / math.fsum(budgets)
    return [scale * budget for budget in budgets]


def as_weights(levels: Sequence[str], budgets: Sequence[float]) -> dict[str, Fraction]:
    """Round budgets to short decimals, with a least share for levels of zero worth."""
    whole = math.fsum(budgets)
    shares = [budget / whole for budget in budgets]
    rest = 1 - SMALLEST_SHARE * sum(share <= 0 for share in shares)
    kept = [SMALLEST_SHARE if share <= 0 else share * rest for share in shares]
    return {name: Fraction(Decimal(f"{share:.{_DIGITS}g}")) for name, share in zip(levels, kept, strict=True)}


def _preset(words: str, powers: Callable[[int], Sequence[int]]) -> NamedSplit:
    """Return a geometric split: 2 to these powers, by level."""

    def weights(spine: Spine, unit: Unit, loss: Loss, unknown: Unknown, known: Container[str]) -> dict[str, Fraction]:
        levels = measured_levels(spine, unit, unknown, known)
        return {name: Fraction(2) ** power for name, power in zip(levels, powers(len(levels)), strict=True)}

    return NamedSplit(words, weights)


SPLITS: Mapping[str, NamedSplit] = MappingProxyType(
    {
        "uniform": _preset("every level the same", lambda levels: [0] * levels),
        "top-heavy": _preset("each level twice the next finer one", lambda levels: range(levels - 1, -1, -1)),
        "bottom-heavy": _preset("each level twice the next coarser one", range),
        "by-nodes": NamedSplit("by the number of public nodes, the best where all counts are large", split_by_nodes),
    }
)
"""The splits that a plan file can name."""
