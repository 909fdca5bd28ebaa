"""The frame of a map: a Mercator projection on to a grid of whole numbers, cut where no place lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SIDE = 4000
"""The longer side of the grid: a screen's width can be enlarged several times before its steps show."""
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
    def around(latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> Frame:
        """Make the frame that just holds the given points, of which there is at least one.

        >>> frame = Frame.around(np.array([60.0, 50.0]), np.array([170.0, -170.0]))
        >>> frame.place(np.array([60.0, 60.0]), np.array([170.0, -170.0])).round().tolist()
        [[0.0, 0.0], [4000.0, 0.0]]
        """
        west = _cut(longitude)
        across, down = np.radians((longitude - west) % 360), _mercator(latitude)
        width, height = float(np.ptp(across)), float(np.ptp(down))
        scale = SIDE / max(width, height, 1e-4)
        return Frame(west, float(down.max()), scale, round(width * scale), round(height * scale))

    def place(self, latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return grid positions, a row per point: x, y."""
        across = np.radians((longitude - self.west) % 360)
        return np.stack([across * self.scale, (self.north - _mercator(latitude)) * self.scale], axis=-1)

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

    def view(self, points: NDArray[np.float64], weight: Sequence[float] | NDArray[np.float64]) -> list[int]:
        """Return x, y, width and height of what to show first.

        That is everything, unless a third of the sheet or more serves the outermost hundredth of the traffic alone.
        """
        inner = [_span(points[:, axis], np.asarray(weight, np.float64)) for axis in (0, 1)]
        (left, right), (top, bottom) = inner
        if (right - left) * (bottom - top) > 2 / 3 * self.width * self.height or right <= left or bottom <= top:
            return [0, 0, self.width, self.height]
        return [round(left), round(top), round(right - left), round(bottom - top)]


def _cut(longitude: NDArray[np.float64]) -> float:
    """Return the meridian east of the widest gap between places."""
    around = np.unique(longitude % 360)
    gaps = np.diff(around, append=around[0] + 360)
    return float(around[(int(np.argmax(gaps)) + 1) % len(around)])


def _latitude(up: float) -> float:
    return float(np.degrees(np.arctan(np.sinh(up))))


def _named(degrees: float, above: str, below: str) -> str:
    return f"{abs(degrees):.4g}°" + ("" if round(degrees, 9) == 0 else f" {above if degrees > 0 else below}")


def _mercator(latitude: NDArray[np.float64]) -> NDArray[np.float64]:
    up: NDArray[np.float64] = np.arcsinh(np.tan(np.radians(np.clip(latitude, -_POLAR, _POLAR))))
    return up


def _span(values: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[float, float]:
    order = np.argsort(values)
    below = np.cumsum(weight[order])
    low, high = np.searchsorted(below, [below[-1] * 0.005, below[-1] * 0.995])
    return float(values[order][low]), float(values[order][min(high, len(values) - 1)])
