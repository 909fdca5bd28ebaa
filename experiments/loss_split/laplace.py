"""The paper's noise: continuous Laplace noise, which is not drawn by Treetop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from treetop._util.dtypes import Floats
from treetop.advice._error_laws import ErrorLaw, as_counts


@dataclass(frozen=True)
class LaplaceErrors(ErrorLaw):
    """Continuous Laplace noise of scale Δ/epsilon (KZF Propositions 1 and 2, equation 3), with bias and variance."""

    def noise_variance(self, budget: float) -> float:
        """2/e², with e = epsilon/Δ."""
        return 2 / (budget / self.sensitivity) ** 2

    def bias(self, budget: float, counts: ArrayLike) -> Floats:
        """e^(−x)/(2e), with x = e·n."""
        e, x = self._scaled(budget, counts)
        return np.exp(-x) / (2 * e)

    def variance(self, budget: float, counts: ArrayLike) -> Floats:
        """The variance of the released count, for each true count."""
        return self.mse(budget, counts) - self.bias(budget, counts) ** 2

    def mse(self, budget: float, counts: ArrayLike) -> Floats:
        """(2 − (1 + x)·e^(−x))/e²."""
        e, x = self._scaled(budget, counts)
        return (2 - (1 + x) * np.exp(-x)) / e**2

    def slope(self, budget: float, counts: ArrayLike) -> Floats:
        """((x² + 2x + 2)·e^(−x) − 4)/e³, by epsilon."""
        e, x = self._scaled(budget, counts)
        return ((x * x + 2 * x + 2) * np.exp(-x) - 4) / e**3 / self.sensitivity

    def _scaled(self, budget: float, counts: ArrayLike) -> tuple[float, Floats]:
        e = budget / self.sensitivity
        # Beyond 700 the exponential is nothing, and x² could overflow.
        return e, np.minimum(e * as_counts(counts), 700.0)
