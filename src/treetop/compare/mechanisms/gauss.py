"""Noise on every public leaf and nothing else: the paper's VanillaGauss, and the same without negative counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from treetop.compare.mechanisms.bounds import sums_of_clipped, sums_of_noise
from treetop.compare.mechanisms.dense import MOST_LEAVES, PublicTree, measure_leaves, refuse_large
from treetop.compare.mechanisms.estimate import Estimate
from treetop.compare.mechanisms.mechanism import bound_key, check_parts, check_width, promise
from treetop.domain.spine import Spine
from treetop.intake.counts import Counts
from treetop.noise import Key
from treetop.noise.sampler import sampler
from treetop.plan.workload import Measured, Part, PassThrough
from treetop.privacy import TOTAL, Loss, Unit
from treetop.privacy.mechanism import cost, level_noise


@dataclass(frozen=True, eq=False)
class VanillaGauss:
    """Discrete Gaussian noise (discrete Laplace for a pure loss) on every public leaf; the leaves pay the whole loss.

    Canonne, Kamath and Steinke 2020, Theorem 14. Coarser counts are sums of noisy leaves; negative ones are kept, so
    that the sums are unbiased.
    """

    name: ClassVar[str] = "gauss"
    about: ClassVar[str] = "Noise on every public leaf; unbiased, negative counts are kept."

    spine: Spine
    """The public order of refinement."""
    unit: Unit
    """What is protected."""
    loss: Loss
    """The privacy loss of one run."""
    clamp: bool = False
    """Whether negative counts are set to zero."""
    limit: int = MOST_LEAVES
    """The most public leaves that are served."""
    levels: tuple[Part, ...] = field(init=False, repr=False)
    """The total and every level of the spine; only the leaves are measured."""

    def __post_init__(self) -> None:
        check_parts(self.spine, self.unit, self.loss)
        refuse_large(self.spine, self.limit, self.name)
        object.__setattr__(self, "levels", only_leaves(self.spine, self.unit, self.loss))
        law = self.levels[-1].law
        check_width(law, self.spine.leaves)
        sampler(law)

    @property
    def spent(self) -> Fraction:
        """What a run costs: rho, or epsilon for a pure loss."""
        return self.levels[-1].cost

    @property
    def definition(self) -> str:
        """The privacy that a run gives, in one sentence."""
        return promise(self.unit, self.loss.kept_by("zcdp").sentence())

    @cached_property
    def tree(self) -> PublicTree:
        """All public leaves."""
        return PublicTree.of(self.spine)

    def bounds(self, risk: Fraction, records: int) -> tuple[int, ...]:
        """What no error of a level exceeds but with that risk, for the total and every level, each by itself."""
        bound = sums_of_clipped if self.clamp else sums_of_noise
        return bound(self.spine, self.levels[-1].law, risk)

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Measure every leaf once."""
        law = self.levels[-1].law
        # The clamped counts are the same measurements seen through another function: the key is the same.
        bound = bound_key(key, counts, "leaves", self.spine, law.describe())
        value = measure_leaves(self.tree, counts, law, bound, threads)
        if self.clamp:
            np.maximum(value, 0, out=value)
        return Estimate.from_leaves(self.spine, self.tree.keys, value)


@dataclass(frozen=True, eq=False)
class BottomUp(VanillaGauss):
    """The same measurements with negative counts set to zero, summed upwards: consistent, but biased upwards."""

    name: ClassVar[str] = "bottom-up"
    about: ClassVar[str] = "Noise on every public leaf, negative counts set to zero; coarser counts are sums."

    clamp: bool = True
    """Negative counts are set to zero."""


def only_leaves(spine: Spine, unit: Unit, loss: Loss) -> tuple[Part, ...]:
    """Return the levels of a mechanism that measures the leaves with the whole loss, and nothing above them."""
    nodes = [(TOTAL, 1), *((level.name, level.nodes) for level in spine.levels)]
    above = [Part(i, name, size, Fraction(0), PassThrough()) for i, (name, size) in enumerate(nodes[:-1])]
    name, size = nodes[-1]
    law = level_noise(unit, loss, name, 1)
    return (*above, Part(len(above), name, size, Fraction(1), Measured(law), cost(unit, name, law)))
