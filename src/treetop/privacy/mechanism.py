"""The exact noise of each level, and the way back from the noise to what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from treetop.basics.exact import Number, positive
from treetop.domain.unit import Sensitivity, Unit
from treetop.errors import LossError
from treetop.noise import DiscreteGaussian, DiscreteLaplace
from treetop.privacy.loss import Definition, Loss

WHOLE = Fraction(1)

LAW_OF: Mapping[Definition, type[DiscreteGaussian] | type[DiscreteLaplace]] = {
    "pure": DiscreteLaplace,
    "zcdp": DiscreteGaussian,
    "approximate": DiscreteGaussian,
}
"""The law of noise for each definition of privacy that a loss can be stated in."""


def noise_for(change: Sensitivity, loss: Loss, share: Fraction = WHOLE) -> DiscreteGaussian | DiscreteLaplace:
    """The law of noise that makes counts which one unit changes by this much cost a share of the loss."""
    return LAW_OF[loss.definition].costing(change.l1, change.l2_squared, loss.budget * share)


def cost_of(change: Sensitivity, law: DiscreteGaussian | DiscreteLaplace) -> Fraction:
    """What counts with this noise cost, from the noise back: rho for the Gaussian, pure epsilon for the Laplace."""
    return law.cost(change.l1, change.l2_squared)


def level_noise(unit: Unit, loss: Loss, level: str, share: Number) -> DiscreteGaussian | DiscreteLaplace:
    """The law of the noise of a level that is given this share of the loss."""
    part = positive(share, f"The share of level {level}")
    if part > WHOLE:
        raise LossError(f"The share of level {level} is {share}, more than the whole loss; give at most 1.")
    return noise_for(unit.sensitivity(level), loss, part)


def cost(unit: Unit, level: str, law: DiscreteGaussian | DiscreteLaplace) -> Fraction:
    """What a level with this noise costs: rho for the Gaussian, pure epsilon for the Laplace."""
    return cost_of(unit.sensitivity(level), law)
