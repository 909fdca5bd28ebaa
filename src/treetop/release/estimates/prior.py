"""How the true counts of a level are spread, learned from the noisy measurements alone: empirical Bayes.

A histogram of measurements is the histogram of true counts blurred by noise of a known law. Expectation maximisation
finds the spread of true counts that explains it best (Dempster, Laird and Rubin 1977), and Bayes' rule then says, for a
child that measured x, with which probability its true count is at least y. Children are told apart by what their
parents have on average for each, in octaves, so that those of busy places do not stand for those of empty ones.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treetop.noise import Law

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

STEPS = 129
"""How many thresholds of the probability are told apart, evenly in standard deviations of a normal law up to 8."""
ENOUGH = 1000
"""A class of children has at least so many, or is joined with the next."""
ROUNDS = 400
"""Of expectation maximisation: enough for the bulk, too few to make spikes of single measurements."""
_CELLS = 32
"""A standard deviation of the noise is cut into at most so many cells."""
_BELOW, _WITHIN, _ABOVE = 7, 9, 14
"""In standard deviations: tables hold measurements from -7 up to 9, and true counts up to 14."""
_GROWTH = 0.35
"""How much wider each bin of true counts is than those before it together."""


class Posterior(NamedTuple):
    """For the children of one level: how many units each should have, by how sure each unit is."""

    cell: int
    """The width of a cell of the tables."""
    lowest: int
    """The least measurement that they hold."""
    units: Ints
    """By class, step and cell of the measurement: the largest y with P(count ≥ y) above the step's probability."""
    shift: Ints
    """By step: the same less the measurement, for measurements above those of the tables."""


def thresholds() -> Reals:
    """Return the probabilities of the steps, falling: of a normal law above -8, …, 8 standard deviations."""
    return np.array([0.5 * math.erfc(u / math.sqrt(2)) for u in np.linspace(-8, 8, STEPS)])


def learn(law: Law, measured: Ints, kind: Ints) -> Posterior:
    """Learn the spread of true counts in every class of children (`kind`, from 0) from their measurements."""
    sigma = law.standard_deviation
    cell = max(round(sigma / _CELLS), 1)
    lowest = -int(_BELOW * sigma) // cell * cell
    cells = max((int(_WITHIN * sigma) - lowest) // cell, 1)
    true = np.arange(max(int(_ABOVE * sigma) // cell, 4) + 1) * cell
    # The middle of a cell stands for it.
    off = np.abs(lowest + cell * np.arange(cells)[:, None] + (cell - 1) / 2 - true[None, :])
    likelihood = np.exp(-float(law.rate) * off**law.power)
    at = np.clip((measured - lowest) // cell, 0, cells)
    classes = int(kind.max(initial=-1)) + 1
    seen = np.bincount(kind * (cells + 1) + at, minlength=classes * (cells + 1)).reshape(classes, cells + 1)
    limits = thresholds()
    units = np.stack([_units(likelihood * _spread(row[:-1], likelihood), limits) * cell for row in seen])
    # Of a large count nothing is known but its measurement: P(count ≥ y) = P(N ≤ x − y).
    shift = np.array([-law.quantile(Fraction(limit)) for limit in limits.tolist()], np.int64)
    return Posterior(cell, lowest, units, shift)


def classes(average: Reals) -> Ints:
    """Tell children apart by what their parents have for each, in octaves; classes that are too small are joined."""
    octave = np.clip(np.floor(np.log2(np.maximum(average, 1e-3))), -12, 40).astype(np.int64) + 12
    sizes = np.bincount(octave)
    joined, current, size = np.zeros(len(sizes), np.int64), 0, 0
    for i in np.flatnonzero(sizes).tolist():
        if size >= ENOUGH and sizes[i:].sum() >= ENOUGH:
            current, size = current + 1, 0
        joined[i] = current
        size += int(sizes[i])
    return joined[octave]


def _spread(seen: Ints, likelihood: Reals) -> Reals:
    """Return the probabilities of the true counts under which the measurements are likeliest; smooth within bins."""
    edges = [0, 1]
    while edges[-1] < likelihood.shape[1]:
        edges.append(edges[-1] + max(1, int(edges[-1] * _GROWTH)))
    edges[-1] = likelihood.shape[1]
    width = np.diff(edges)
    there = seen > 0
    bins = np.add.reduceat(likelihood[there], edges[:-1], axis=1) / width
    weight = np.full(len(width), 0.5 / max(len(width) - 1, 1))
    weight[0] = 0.5
    number = seen[there].astype(np.float64)
    for _ in range(ROUNDS if number.sum() > 0 else 0):
        weight *= bins.T @ (number / np.maximum(bins @ weight, 1e-300)) / number.sum()
    weight = (weight + 1e-7) / (weight + 1e-7).sum()
    return np.repeat(weight / width, width)


def _units(joint: Reals, limits: Reals) -> Ints:
    """Return, by step and cell, how many true counts above zero are at least that probable to be reached."""
    chance = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
    reached = np.cumsum(chance[:, ::-1], axis=1)[:, ::-1][:, 1:]
    found = np.stack([np.searchsorted(-row, -limits) for row in reached], axis=1)
    return np.maximum.accumulate(found, axis=0).astype(np.int64)
