"""The exact noise of each level, and the way back from the noise to what it costs."""

from __future__ import annotations

from fractions import Fraction

from treetop.basics.exact import Number, positive
from treetop.domain.unit import Sensitivity, Unit
from treetop.errors import LossError
from treetop.noise import DiscreteGaussian, DiscreteLaplace
from treetop.privacy.loss import Loss

WHOLE = Fraction(1)


def noise_for(change: Sensitivity, loss: Loss, share: Fraction = WHOLE) -> DiscreteGaussian | DiscreteLaplace:
    """The law of noise that makes counts which one unit changes by this much cost a share of the loss.

    It has the variance Δ₂²/(2·rho) of the Gaussian (Canonne, Kamath and Steinke 2020, Theorem 14) or, when the loss
    is pure, the scale Δ₁/epsilon of the Laplace. Shares add up (Bun and Steinke 2016, Lemma 1.7).
    """
    if loss.definition == "pure":
        return DiscreteLaplace(change.l1 / (loss.budget * share))
    return DiscreteGaussian(change.l2_squared / (2 * loss.budget * share))


def cost_of(change: Sensitivity, law: DiscreteGaussian | DiscreteLaplace) -> Fraction:
    """What counts with this noise cost, from the noise back: rho for the Gaussian, pure epsilon for the Laplace."""
    if isinstance(law, DiscreteLaplace):
        return change.l1 / law.scale
    return change.l2_squared / (2 * law.variance)


def level_noise(unit: Unit, loss: Loss, level: str, share: Number) -> DiscreteGaussian | DiscreteLaplace:
    """The law of the noise of a level that is given this share of the loss."""
    part = positive(share, f"The share of level {level}")
    if part > WHOLE:
        raise LossError(f"The share of level {level} is {share}, more than the whole loss; give at most 1.")
    return noise_for(unit.sensitivity(level), loss, part)


def cost(unit: Unit, level: str, law: DiscreteGaussian | DiscreteLaplace) -> Fraction:
    """What a level with this noise costs: rho for the Gaussian, pure epsilon for the Laplace."""
    return cost_of(unit.sensitivity(level), law)
