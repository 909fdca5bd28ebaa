"""Counts of boxes that were measured one by one, made consistent: least squares over the pieces that they are made of.

Boxes cut the domain into pieces, each inside some boxes and outside the others. The numbers of records of the pieces
that fit all measurements best, each by one over the variance of its noise, are not negative and then whole; the count
of a box is the sum of its pieces, so that boxes that add up have counts that do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_MOST_SWEEPS = 5_000
_NEAR = 1e-4


def fit_boxes(measured: Floats, variance: Floats, pieces: Sequence[int]) -> Ints:
    """Return a count for every box, from measurements of all of them; a piece is the set of its boxes, as bits.

    The real numbers that are not negative and fit best are found piece by piece, until nothing moves; then whole ones
    next to them, of which no single piece could be one more or one less and the counts be nearer.
    """
    inside = [[box for box in range(len(measured)) if piece >> box & 1] for piece in pieces]
    start = np.cumsum([0, *map(len, inside)])
    boxes = np.array([box for own in inside for box in own], np.int64)
    weight = 1 / np.maximum(variance, 1e-12)
    weight /= weight.max()
    number = np.zeros(len(inside))
    fitted = _fit(measured, weight, start, boxes, number)
    whole = np.rint(number)
    counts: Ints = _settle(fitted, weight, start, boxes, whole).astype(np.int64)
    return counts


@kernel
def _fit(measured: Floats, weight: Floats, start: Ints, boxes: Ints, number: Floats) -> Floats:
    """Move one piece at a time to where it fits best, and return the counts of the boxes."""
    counts = np.zeros(len(measured))
    for _ in range(_MOST_SWEEPS):
        moved = 0.0
        for piece in range(len(number)):
            slope, curve = 0.0, 0.0
            for at in range(start[piece], start[piece + 1]):
                box = boxes[at]
                slope += weight[box] * (measured[box] - counts[box])
                curve += weight[box]
            step = max(slope / curve, -number[piece])
            number[piece] += step
            for at in range(start[piece], start[piece + 1]):
                counts[boxes[at]] += step
            moved = max(moved, abs(step))
        if moved < _NEAR:
            break
    return counts


@kernel
def _settle(fitted: Floats, weight: Floats, start: Ints, boxes: Ints, whole: Floats) -> Floats:
    """Move whole pieces by one while that brings the counts nearer to what fits best, and return them."""
    counts = np.zeros(len(fitted))
    for piece in range(len(whole)):
        for at in range(start[piece], start[piece + 1]):
            counts[boxes[at]] += whole[piece]
    better = True
    while better:
        better = False
        for piece in range(len(whole)):
            slope, curve = 0.0, 0.0
            for at in range(start[piece], start[piece + 1]):
                box = boxes[at]
                slope += weight[box] * (fitted[box] - counts[box])
                curve += weight[box]
            step = 1.0 if slope > 0 else -1.0
            if 2 * step * slope <= curve * (1 + 1e-9) or whole[piece] + step < 0:
                continue
            whole[piece] += step
            better = True
            for at in range(start[piece], start[piece + 1]):
                counts[boxes[at]] += step
    return counts
