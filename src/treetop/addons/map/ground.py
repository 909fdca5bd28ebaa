"""Coastlines and borders that lie under places with coordinates: those in sight, cut to what a map can show."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

from treetop.addons.map.arcs import pack
from treetop.addons.map.atlas import Degrees, Frame, parts

REACH = 2.0
"""How far around a map the ground goes, in widths or heights of the map, whichever is larger."""
_SMALLEST = 2.0  # grid steps: what is narrower is not seen


@cache
def _world() -> list[Degrees]:
    """Return the outer rings of all countries, the widest first."""
    with as_file(files("treetop.addons.map") / "world.npz") as file, np.load(file) as world:
        steps, sizes, scale = world["steps"], world["sizes"], float(world["scale"])
    return [
        np.cumsum(ring, axis=0) / scale
        for ring in np.split(steps.T.astype(np.int64), np.cumsum(sizes.astype(np.int64))[:-1])
    ]


def ground(frame: Frame) -> list[str]:
    """Return the land around the places of a frame, as packed rings of the grid: a start and steps."""
    reach = REACH * max(frame.width, frame.height)
    low, high = np.array([-reach, -reach]), np.array([frame.width + reach, frame.height + reach])
    opposite = frame.west + float(np.degrees(frame.width / frame.scale)) / 2 - 180
    return [pack(np.diff(ring, axis=0, prepend=0).ravel().tolist()) for ring in _rings(frame, opposite, low, high)]


def _rings(frame: Frame, at: float, low: Degrees, high: Degrees) -> Iterator[NDArray[np.int64]]:
    for outline in _world():
        for piece in parts([outline], at):
            ring = frame.lay(piece[0])
            if (ring.max(axis=0) < low).any() or (ring.min(axis=0) > high).any():
                continue
            for axis in (0, 1):
                for sign, edge in ((1, high[axis]), (-1, -low[axis])):
                    ring = _kept(ring, axis, sign, float(edge))
            grid = np.round(ring).astype(np.int64)
            grid = grid[np.any(np.diff(grid, axis=0, prepend=np.iinfo(np.int32).max) != 0, axis=1)]
            if len(grid) > 3 and np.ptp(grid, axis=0).max() >= _SMALLEST:
                yield grid


def _kept(ring: Degrees, axis: int, sign: int, edge: float) -> Degrees:
    """Return the part of a ring on one side of an edge (Sutherland and Hodgman 1974)."""
    along = sign * ring[:, axis] - edge
    if len(ring) == 0 or (along <= 0).all():
        return ring
    after, beyond = np.roll(ring, -1, axis=0), np.roll(along, -1)
    crosses = (along <= 0) != (beyond <= 0)
    share = np.where(crosses, along / np.where(crosses, along - beyond, 1), 0)[:, None]
    both = np.stack([ring, ring + share * (after - ring)], axis=1).reshape(-1, 2)
    chosen: Degrees = both[np.stack([along <= 0, crosses], axis=1).ravel()]
    return chosen
