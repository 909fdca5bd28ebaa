"""A small map of a made-up twin: the largest counts of a release, with invented ones marked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treetop.advice.made_up import MadeUpRelease
from treetop.exporting.levels import ENDS
from treetop.exporting.places import Places
from treetop.plan.file import PlanFile
from treetop.publishing.publish import places_of

WIDE, HIGH = 640, 360
DRAWN = 150
DOTS = 1000
_EDGE = 24
_SEEN = (4, 96)
"""Places beyond these percentiles do not affect the extent of the map."""

Floats = NDArray[np.float64]


def draw(file: PlanFile, tried: MadeUpRelease) -> dict[str, Any] | None:
    """Return the lines and dots of a map; None if places have no coordinates."""
    found = places_of(file)
    placed = {name: _points(tried, name, found) for name in tried.attributes}
    ends = [name for name in ENDS if placed.get(name) is not None]
    one = next((name for name in tried.attributes if placed[name] is not None), None)
    if len(ends) < len(ENDS) and (one is None or set(ENDS) <= set(tried.attributes)):
        return None
    shown = ends if len(ends) == len(ENDS) else [str(one)]
    at = {name: tried.attributes.index(name) for name in shown}
    frame = _frame(np.concatenate([_known(placed[name]) for name in shown]))
    largest = sorted(tried.released, key=lambda node: -tried.released[node][0])[:DRAWN]
    top = max((tried.released[node][0] for node in largest), default=1)
    marks = []
    for node in reversed(largest):  # the largest last, on top
        ends_at = [frame(placed[name], node[at[name]]) for name in shown]
        if all(point is not None for point in ends_at):
            real = node in tried.true
            marks.append({"real": real, "wide": _width(tried.released[node][0], top), **_shape(ends_at)})
    dots = {frame(placed[name], node) for name in shown for node in range(_nodes(placed[name]))[:DOTS]} - {None}
    invented = sum(node not in tried.true for node in largest)
    about = {"width": WIDE, "height": HIGH, "drawn": len(largest), "invented": invented}
    return {**about, "marks": marks, "dots": sorted(dots)}


def _points(tried: MadeUpRelease, name: str, found: dict[str, Places]) -> Floats | None:
    """Return latitude and longitude (rows) of the nodes of an attribute; NaN for a node without coordinates."""
    index = list(tried.spine.attributes).index(name)
    tree, depth = tried.spine.trees[index], tried.depths[index] - 1
    if tree.digest not in found:
        return None
    places = found[tree.digest].at(tree, depth)
    number = {code: row for row, code in enumerate(places.code.to_pylist())}
    rows = [number.get(code, -1) for code in tree.codes[depth].to_pylist()]
    points = np.stack([np.append(places.latitude, np.nan), np.append(places.longitude, np.nan)])
    return np.asarray(points[:, rows], np.float64)


def _nodes(points: Floats | None) -> int:
    return 0 if points is None else int(points.shape[1])


def _known(points: Floats | None) -> Floats:
    assert points is not None
    known: Floats = points[:, ~np.isnan(points).any(axis=0)].T
    return known


def _frame(known: Floats) -> Any:
    """Return the function from a node to a point of the picture, so that most places are seen."""
    low, high = np.percentile(known, _SEEN, axis=0)
    shrink = math.cos(math.radians(float(low[0] + high[0]) / 2))
    tall, wide = max(high[0] - low[0], 1e-6), max((high[1] - low[1]) * shrink, 1e-6)
    scale = min((HIGH - 2 * _EDGE) / tall, (WIDE - 2 * _EDGE) / wide)
    middle = (low + high) / 2

    def point(points: Floats, node: int) -> tuple[float, float] | None:
        latitude, longitude = points[:, node]
        if math.isnan(latitude):
            return None
        x = WIDE / 2 + (longitude - middle[1]) * shrink * scale
        return round(float(x), 1), round(float(HIGH / 2 - (latitude - middle[0]) * scale), 1)

    return point


def _width(count: int, top: int) -> float:
    return round(0.6 + 5 * math.sqrt(count / top), 2)


def _shape(points: list[Any]) -> dict[str, Any]:
    """Return a bent line between two points, or a dot."""
    if len(points) == 1 or points[0] == points[1]:
        return {"dot": points[0], "line": None}
    (x, y), (u, v) = points
    bend = (round((x + u) / 2 + (v - y) / 8, 1), round((y + v) / 2 - (u - x) / 8, 1))
    return {"dot": None, "line": f"M{x} {y}Q{bend[0]} {bend[1]} {u} {v}"}
