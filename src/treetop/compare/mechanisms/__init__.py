"""Mechanisms: the ways to publish counts that Treetop compares, side by side behind one interface."""

from treetop.compare.mechanisms.estimate import Estimate, LevelEstimate
from treetop.compare.mechanisms.gauss import BottomUp, VanillaGauss
from treetop.compare.mechanisms.hay import Hay, PerLevel
from treetop.compare.mechanisms.inftda import EuclideanTDA, InfTDA, LowerError
from treetop.compare.mechanisms.mechanism import Mechanism, NotServed, paper_loss
from treetop.compare.mechanisms.planned import Planned
from treetop.compare.mechanisms.registry import GROUP_MECHANISMS, MECHANISMS, PRACTICES, named, register
from treetop.compare.mechanisms.stability import StabilityHistogram
from treetop.compare.mechanisms.tda_l2 import TDAl2
from treetop.compare.mechanisms.tda_linf import TDAlinf

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
