"""Graphs: who connects to whom between groups, how many edges people have, and questions about them, kept private."""

from treetop.graphs.cleaning import Cleaning
from treetop.graphs.graph import Graph
from treetop.graphs.policies import Policies
from treetop.graphs.relation import Relation, unit_of

__all__ = ["Cleaning", "Graph", "Policies", "Relation", "unit_of"]
