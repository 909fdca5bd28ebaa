"""Mechanisms: the ways to publish counts that Treetop compares, side by side behind one interface."""

from treetop.mechanisms.estimate import Estimate, LevelEstimate
from treetop.mechanisms.gauss import BottomUp, VanillaGauss
from treetop.mechanisms.hay import Hay, PerLevel
from treetop.mechanisms.inftda import EuclideanTDA, InfTDA, LowerError
from treetop.mechanisms.mechanism import Mechanism, NotServed, paper_loss
from treetop.mechanisms.registry import MECHANISMS, named
from treetop.mechanisms.stability import StabilityHistogram
from treetop.mechanisms.tda_l2 import TDAl2
from treetop.mechanisms.tda_linf import TDAlinf

__all__ = [
    "MECHANISMS",
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
    "StabilityHistogram",
    "TDAl2",
    "TDAlinf",
    "VanillaGauss",
    "named",
    "paper_loss",
]
