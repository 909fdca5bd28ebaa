"""The joint fit: combine all measured tables, fit non-negative counts to them, and round these to whole numbers."""

from treetop.fit.combine import CombinedTables, combine
from treetop.fit.tables import Depths, Grid, NoisyTable

__all__ = ["CombinedTables", "Depths", "Grid", "NoisyTable", "combine"]
