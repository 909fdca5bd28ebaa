"""The exact noise of each level, and the way back from the noise to what it costs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from treetop.errors import LossError
from treetop.privacy.exact import Number, positive
from treetop.privacy.loss import Loss
from treetop.privacy.unit import Unit

if TYPE_CHECKING:
    from treetop.noise import DiscreteGaussian, DiscreteLaplace


def level_scale(unit: Unit, loss: Loss, level: str, share: Number) -> Fraction:
    """The noise that makes a level cost its share of the loss.

    It is the variance Δ₂²/(2·rho) of the Gaussian (Canonne, Kamath and Steinke 2020, Theorem 14) or, when
    the loss is pure, the scale Δ₁/epsilon of the Laplace. Levels add up (Bun and Steinke 2016, Lemma 1.7).
    """
    part = positive(share, f"The share of level {level}")
    if part > 1:
        raise LossError(f"The share of level {level} is {share}, more than the whole loss; give at most 1.")
    change = unit.sensitivity(level)
    if loss.definition == "pure":
        return change.l1 / (loss.budget * part)
    return change.l2_squared / (2 * loss.budget * part)


def level_noise(unit: Unit, loss: Loss, level: str, share: Number) -> DiscreteGaussian | DiscreteLaplace:
    """The law of the noise of a level that is given this share of the loss."""
    from treetop.noise import DiscreteGaussian, DiscreteLaplace

    scale = level_scale(unit, loss, level, share)
    return DiscreteLaplace(scale) if loss.definition == "pure" else DiscreteGaussian(scale)


def cost(unit: Unit, level: str, law: DiscreteGaussian | DiscreteLaplace) -> Fraction:
    """What a level with this noise costs: rho for the Gaussian, pure epsilon for the Laplace."""
    from treetop.noise import DiscreteLaplace

    change = unit.sensitivity(level)
    if isinstance(law, DiscreteLaplace):
        return change.l1 / law.scale
    return change.l2_squared / (2 * law.variance)
