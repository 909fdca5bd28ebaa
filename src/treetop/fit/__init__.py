"""The joint fit: combine all measured tables, fit non-negative counts to them, and round these to whole numbers."""

from treetop.fit._entropy import FittedTable, fit
from treetop.fit._joint import JointFit, joint_fit
from treetop.fit._rounding import largest_remainders, round_down, two_sided, whole_margin, whole_shares
from treetop.fit._swaps import swap
from treetop.fit.combine import CombinedTables, combine, component_variances
from treetop.fit.noisy_tables import Depths, Grid, NoisyTable, join

__all__ = [
    "CombinedTables", "Depths", "FittedTable", "Grid", "JointFit", "NoisyTable", "combine", "component_variances",
    "fit", "join", "joint_fit", "largest_remainders", "round_down", "swap", "two_sided", "whole_margin", "whole_shares",
]  # fmt: skip
