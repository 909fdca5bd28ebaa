"""Noise: exact discrete laws, sampled from a keyed stream by slot."""

from treetop.noise.keystream import Key, Keystream, WordSource
from treetop.noise.law import LAWS, DiscreteGaussian, DiscreteLaplace, Law, register_law
from treetop.noise.sampler import NoiseStream

__all__ = [
    "LAWS", "DiscreteGaussian", "DiscreteLaplace", "Key", "Keystream", "Law", "NoiseStream", "WordSource",
    "register_law",
]  # fmt: skip
