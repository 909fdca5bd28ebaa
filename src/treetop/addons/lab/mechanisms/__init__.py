"""Mechanisms: the ways to publish counts that Treetop compares, side by side behind one interface."""

from treetop.addons.lab.mechanisms.baselines import BottomUp, Hay, PerLevel, StabilityHistogram, VanillaGauss
from treetop.addons.lab.mechanisms.inftda import EuclideanTDA, InfTDA, LowerError, Planned, TDAl2, TDAlinf
from treetop.addons.lab.mechanisms.mechanism import Estimate, LevelEstimate, Mechanism, NotServed, paper_loss
from treetop.addons.lab.mechanisms.registry import GROUP_MECHANISMS, MECHANISMS, PRACTICES, named, register

__all__ = [
    "GROUP_MECHANISMS",
    "MECHANISMS",
    "PRACTICES",
    "BottomUp",
    "Estimate",
    "EuclideanTDA",
    "Hay",
    "InfTDA",
    "LevelEstimate",
    "LowerError",
    "Mechanism",
    "NotServed",
    "PerLevel",
    "Planned",
    "StabilityHistogram",
    "TDAl2",
    "TDAlinf",
    "VanillaGauss",
    "named",
    "paper_loss",
    "register",
]
