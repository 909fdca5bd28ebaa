"""Repairs: measurements become non-negative integers that sum to their parent. Pure functions on integers."""

from treetop.repair._cumulative import isotonic, relax_cumulative, relax_isotonic
from treetop.repair._node import (
    ORDERS,
    REPAIRS,
    NodeRepair,
    Order,
    Repair,
    RepairOrder,
    chebyshev,
    euclidean,
    register_repair,
)
from treetop.repair._projection import certified, project_tree, relax_tree
from treetop.repair._tree import Tree, whole_weights

__all__ = [
    "ORDERS", "REPAIRS", "NodeRepair", "Order", "Repair", "RepairOrder", "Tree", "certified", "chebyshev", "euclidean",
    "isotonic", "project_tree", "register_repair", "relax_cumulative", "relax_isotonic", "relax_tree", "whole_weights",
]  # fmt: skip
