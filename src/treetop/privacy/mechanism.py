"""The exact noise of each level, and the way back from the noise to what it costs."""

from __future__ import annotations

from fractions import Fraction

from treetop.basics.exact import Number, positive
from treetop.domain.unit import Sensitivity, Unit
from treetop.errors import LossError
from treetop.noise import LAWS, Law
from treetop.privacy.loss import Loss

WHOLE = Fraction(1)


def law_of(loss: Loss) -> type[Law]:
    """The law that a loss is kept with: the one that it names, or else Laplace if it is pure and Gaussian if not."""
    if loss.noise is None:
        return next(law for law in LAWS.values() if law.currency == loss.currency)
    law = LAWS[loss.noise]
    if law.currency != loss.currency:
        raise LossError(f"The noise {law.name!r} does not keep such a loss: its cost is stated as {law.currency}.")
    return law


def noise_for(change: Sensitivity, loss: Loss, share: Fraction = WHOLE) -> Law:
    """The law of noise that makes counts which one unit changes by this much cost a share of the loss.

    Shares add up (Bun and Steinke 2016, Lemma 1.7).
    """
    return law_of(loss).costing(change.l1, change.l2_squared, loss.budget * share)


def cost_of(change: Sensitivity, law: Law) -> Fraction:
    """What counts with this noise cost, from the noise back: rho, or pure epsilon."""
    return law.cost(change.l1, change.l2_squared)


def level_noise(unit: Unit, loss: Loss, level: str, share: Number) -> Law:
    """The law of the noise of a level that is given this share of the loss."""
    part = positive(share, f"The share of level {level}")
    if part > WHOLE:
        raise LossError(f"The share of level {level} is {share}, more than the whole loss; give at most 1.")
    return noise_for(unit.sensitivity(level), loss, part)


def cost(unit: Unit, level: str, law: Law) -> Fraction:
    """What a level with this noise costs: rho for the Gaussian, pure epsilon for the Laplace."""
    return cost_of(unit.sensitivity(level), law)
