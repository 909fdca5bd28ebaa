"""The frame of a map: a Mercator projection on to a grid of whole numbers, cut where no place lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from treetop.exporting.map.meridian import Degrees, Traffic, cut

SIDE = 4000
"""The longer side of the grid: a screen's width can be enlarged several times before its steps show."""
_CLOSE = 1e-6  # degrees: a tenth of a metre
_POLAR = 85.0  # Mercator's sheet has no end; web maps stop here too


@dataclass(frozen=True)
class Frame:
    """From degrees to the grid; x runs east and y south, as on a screen."""

    west: float
    """The meridian of the left edge, in degrees; places are counted eastward from it."""
    north: float
    """The top edge, in Mercator's units (radians)."""
    scale: float
    """Grid steps in a unit."""
    width: int
    """Grid steps from west to east."""
    height: int
    """Grid steps from north to south."""

    @staticmethod
    def around(latitude: Degrees, longitude: Degrees, at: float | None = None) -> Frame:
        """Make the frame that just holds the given points, of which there is at least one, cut at a meridian.

        Without one, it is cut where the widest gap between points is.

        >>> frame = Frame.around(np.array([60.0, 50.0]), np.array([170.0, -170.0]))
        >>> frame.place(np.array([60.0, 60.0]), np.array([170.0, -170.0])).round().tolist()
        [[0.0, 0.0], [4000.0, 0.0]]
        """
        if at is None:
            at = cut(Traffic(longitude, longitude, np.ones(len(longitude))))
        east, down = (longitude - at) % 360, _mercator(latitude)
        return Frame._holding(at + float(east.min()), float(np.radians(np.ptp(east))), down)

    @staticmethod
    def of_rings(rings: Sequence[Degrees], at: float, latitude: Degrees, longitude: Degrees) -> Frame:
        """Make the frame that holds outlines, in pieces from a meridian eastward, and points."""
        east = np.concatenate([(longitude - at) % 360, *(ring[:, 0] - at for ring in rings)])
        down = _mercator(np.concatenate([latitude, *(ring[:, 1] for ring in rings)]))
        return Frame._holding(at + float(east.min()), float(np.radians(np.ptp(east))), down)

    @staticmethod
    def _holding(west: float, width: float, down: Degrees) -> Frame:
        height = float(np.ptp(down))
        scale = SIDE / max(width, height, 1e-4)
        return Frame(west, float(down.max()), scale, round(width * scale), round(height * scale))

    @property
    def turn(self) -> float:
        """Grid steps once around the world."""
        return 2 * np.pi * self.scale

    def place(self, latitude: Degrees, longitude: Degrees) -> Degrees:
        """Return grid positions, a row per point: x, y."""
        # A point on the very edge must not come out on the other one.
        east = (longitude - self.west + _CLOSE) % 360 - _CLOSE
        return self._grid(latitude, east)

    def lay(self, ring: Degrees) -> Degrees:
        """Return the grid positions of a ring that lies in one piece east of the edge."""
        return self._grid(ring[:, 1], ring[:, 0] - self.west)

    def _grid(self, latitude: Degrees, east: Degrees) -> Degrees:
        return np.stack([np.radians(east) * self.scale, (self.north - _mercator(latitude)) * self.scale], axis=-1)

    def graticule(self) -> dict[str, list[tuple[int, str]]]:
        """Return the positions and names of some round meridians (`x`) and parallels (`y`)."""
        right = self.west + float(np.degrees(self.width / self.scale))
        bottom, top = (_latitude(self.north - down / self.scale) for down in (self.height, 0))
        span = max(right - self.west, top - bottom)
        step = next((step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if span / step <= 8), 30)
        east = np.arange(np.ceil(self.west / step), np.floor(right / step) + 1) * step
        north = np.arange(np.ceil(bottom / step), np.floor(top / step) + 1) * step
        turned = (east + 180) % 360 - 180
        across = self.place(np.zeros(len(east)), east)[:, 0]
        down = self.place(north, np.full(len(north), self.west))[:, 1]
        return {
            "x": [(round(at), _named(degrees, "E", "W")) for at, degrees in zip(across, turned, strict=True)],
            "y": [(round(at), _named(degrees, "N", "S")) for at, degrees in zip(down, north, strict=True)],
        }


def _latitude(up: float) -> float:
    return float(np.degrees(np.arctan(np.sinh(up))))


def _named(degrees: float, above: str, below: str) -> str:
    return f"{abs(degrees):.4g}°" + ("" if round(degrees, 9) == 0 else f" {above if degrees > 0 else below}")


def _mercator(latitude: Degrees) -> Degrees:
    up: Degrees = np.arcsinh(np.tan(np.radians(np.clip(latitude, -_POLAR, _POLAR))))
    return up
