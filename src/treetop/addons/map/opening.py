"""The opening view of a map: all places that count; or, if a few far ones would make the others small, the others.

The page says how many places are outside the view, and shows them at a touch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.addons.map.atlas import Frame

_SPARED = 0.05  # of all that is counted
_FEW = 0.15  # of the places
_GAP = 0.06  # of what is shown: those beyond it are far
_WORTH = 1 / 2  # of the room that all take: what is left out must make the rest larger
_LEAST = 40.0  # grid steps: a single place is not enlarged beyond what the grid can show

Box = tuple[float, float, float, float]


def opening(frame: Frame, extent: NDArray[np.float64], weight: NDArray[np.float64]) -> list[int]:
    """Return x, y, width and height, for places with their extents: left, top, right, bottom."""
    counted = weight > 0
    if not counted.any():
        return [0, 0, frame.width, frame.height]
    whole, inner = _around(extent[counted]), _around(extent[_near(extent, weight, counted)])
    left, top, right, bottom = inner if _area(inner) <= _WORTH * _area(whole) else whole
    wide, high = max(right - left, _LEAST), max(bottom - top, _LEAST)
    across, down = (left + right - wide) / 2, (top + bottom - high) / 2
    return [round(across), round(down), round(wide), round(high)]


def _around(extent: NDArray[np.float64]) -> Box:
    left, top = extent[:, :2].min(axis=0).tolist()
    right, bottom = extent[:, 2:].max(axis=0).tolist()
    return left, top, right, bottom


def _area(box: Box) -> float:
    return max(box[2] - box[0], 1.0) * max(box[3] - box[1], 1.0)


def _near(extent: NDArray[np.float64], weight: NDArray[np.float64], counted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which places are left without those beyond wide gaps, as long as these are few and count little."""
    middle = [extent[:, [axis, axis + 2]].mean(axis=1) for axis in (0, 1)]
    near = counted.copy()
    while True:
        sides = [far for values in middle for far in _beyond(values, near)]
        outside = [(counted & ~near) | far for far in sides]
        fit = [
            one
            for one in outside
            if weight[one].sum() <= _SPARED * weight.sum() and np.count_nonzero(one) <= _FEW * np.count_nonzero(counted)
        ]
        if not fit:
            return near
        near = counted & ~min(fit, key=lambda one: float(weight[one].sum()))


def _beyond(values: NDArray[np.float64], near: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
    """Return those on either side of every wide gap between places."""
    inside = np.sort(values[near])
    wide = np.flatnonzero(np.diff(inside) > _GAP * max(np.ptp(inside), 1.0))
    return [near & side for at in wide for side in (values <= inside[at], values > inside[at])]
