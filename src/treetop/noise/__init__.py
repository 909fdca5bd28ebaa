"""Noise: exact discrete laws, sampled from a keyed stream by slot."""

from treetop.noise.keystream import Key, Keystream, Words
from treetop.noise.law import DiscreteGaussian, DiscreteLaplace, Law
from treetop.noise.sampler import NoiseStream

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Key", "Keystream", "Law", "NoiseStream", "Words"]
