"""Where the world is cut: at the meridian that the fewest of those who move pass, and outlines are cut with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Degrees = NDArray[np.float64]
"""Longitudes; or a ring, a row per point, longitude and latitude."""

_SPARED = 0.005  # of all that move: so few may be cut off where a wider gap is to be had
_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Traffic:
    """What moves from one longitude to another; what is only counted at a place moves from there to there."""

    start: Degrees
    """Where it begins."""
    end: Degrees
    """Where it ends."""
    count: NDArray[np.float64]
    """How much it is."""


def cut(traffic: Traffic, rings: Iterable[Degrees] = ()) -> float:
    """Return the meridian at which to cut, where there is some traffic: in a gap between its ends.

    Who goes from one place to another takes the shorter way round. Of the gaps that hardly anybody passes it is the
    widest; in this, it is where no outline is, if there is such a place.

    >>> around = Traffic(np.array([-157.0, 140.0]), np.array([174.0, -157.0]), np.ones(2))  # Hawaii, Japan, New Zealand
    >>> cut(around)
    -8.5
    """
    places, index = np.unique(np.concatenate([traffic.start, traffic.end]) % 360, return_inverse=True)
    widths = np.diff(places, append=places[0] + 360)
    passing = _passing(places, index.reshape(2, -1), traffic.count)
    allowed = passing <= passing.min() + _SPARED * traffic.count.sum()
    gap = int(np.argmax(np.where(allowed, widths, -1)))
    at = _uncovered(float(places[gap]), float(widths[gap]), rings)
    return (at + 180) % 360 - 180


def unrolled(ring: Degrees) -> Degrees:
    """Return a ring whose longitudes go on beyond 180° where it crosses that meridian, instead of jumping back."""
    steps = np.diff(ring[:, 0])
    if not np.any(np.abs(steps) > 180):
        return ring
    turned = ring.copy()
    turned[1:, 0] = ring[0, 0] + np.cumsum(steps - 360 * np.rint(steps / 360))
    # What does not come back goes around a pole; it is drawn as it is.
    return turned if abs(turned[-1, 0] - turned[0, 0]) < 180 else ring


def parts(polygon: Sequence[Degrees], at: float) -> list[list[Degrees]]:
    """Return a polygon in pieces that a sheet from one meridian eastward, once around, holds without a jump."""
    rings = [unrolled(ring) for ring in polygon if len(ring)]
    if not rings:
        return []
    outer = rings[0]
    outer = _moved(outer, -360 * np.floor((outer[:, 0].min() - at + _CLOSE) / 360))
    middle = (outer[:, 0].min() + outer[:, 0].max()) / 2
    holes = [_moved(ring, 360 * np.rint((middle - ring[:, 0].mean()) / 360)) for ring in rings[1:]]
    if outer[:, 0].max() <= at + 360 + _CLOSE:
        return [[outer, *holes]]
    here, beyond = ([_side(ring, at + 360, sign) for ring in (outer, *holes)] for sign in (1, -1))
    pieces = [here, [_moved(ring, -360) for ring in beyond]]
    return [[ring for ring in piece if len(ring)] for piece in pieces if len(piece[0])]


def _passing(places: Degrees, index: NDArray[np.int64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much passes the gap after each place, every move going the shorter way round."""
    start, end = index
    eastward = (places[end] - places[start]) % 360 <= 180
    west, east = np.where(eastward, start, end), np.where(eastward, end, start)
    change = np.zeros(len(places) + 1)
    np.add.at(change, west, count)
    np.add.at(change, east, -count)
    change[0] += count[east < west].sum()
    passing: NDArray[np.float64] = np.cumsum(change)[:-1]
    return passing


def _uncovered(start: float, width: float, rings: Iterable[Degrees]) -> float:
    """Return the middle of the widest part of a gap without outlines; of the gap where they fill it."""
    spans = []
    for ring in (unrolled(ring) for ring in rings if len(ring)):
        west, east = float(ring[:, 0].min()), float(ring[:, 0].max())
        offset = (west - start) % 360
        spans += [(offset, offset + east - west), (offset - 360, offset - 360 + east - west)]
    best, middle, reached = 0.0, start + width / 2, 0.0
    for west, east in [*sorted(spans), (width, width)]:
        if min(west, width) - reached > best:
            best, middle = min(west, width) - reached, start + (reached + min(west, width)) / 2
        reached = max(reached, east)
    return middle


def _moved(ring: Degrees, by: float) -> Degrees:
    moved: Degrees = ring + np.array([by, 0.0])
    return moved


def _side(ring: Degrees, at: float, sign: int) -> Degrees:
    """Return the part of a ring on one side of a meridian (Sutherland and Hodgman 1974)."""
    inside = sign * (at - ring[:, 0]) >= 0
    kept: list[Degrees] = []
    for this, that, is_in, goes_on in zip(ring, np.roll(ring, -1, axis=0), inside, np.roll(inside, -1), strict=True):
        if is_in:
            kept.append(this)
        if is_in != goes_on:
            share = (at - this[0]) / (that[0] - this[0])
            kept.append(np.array([at, this[1] + share * (that[1] - this[1])]))
    return np.array(kept).reshape(-1, 2) if len(kept) > 2 else np.zeros((0, 2))
