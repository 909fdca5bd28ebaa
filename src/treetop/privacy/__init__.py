"""Privacy: the protected unit, the loss, and the noise of each level."""

from treetop.domain.unit import TOTAL, Neighbours, Sensitivity, Unit
from treetop.privacy.loss import (
    Accounting,
    Definition,
    Loss,
    Split,
    SplitLike,
    epsilon_from_rho,
    rho_from_epsilon,
    rho_from_epsilon_loose,
    shares,
)

__all__ = [
    "TOTAL", "Accounting", "Definition", "Loss", "Neighbours", "Sensitivity", "Split", "SplitLike", "Unit",
    "epsilon_from_rho", "rho_from_epsilon", "rho_from_epsilon_loose", "shares",
]  # fmt: skip
