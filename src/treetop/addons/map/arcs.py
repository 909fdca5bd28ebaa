"""Polygons as shared arcs: neighbours keep one border between them however much it is simplified, and can be merged.

The idea is TopoJSON's: cut every ring at the points where its neighbours change, and store each piece once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import atan2

import numpy as np
from numpy.typing import NDArray

# Whole numbers as short text, in the manner of encoded polylines: five bits a character, the small ones in one.

_FIRST = 63  # "?": from here to "~" nothing has a meaning in HTML
_MORE = 32


def pack(numbers: Iterable[int]) -> str:
    """Write numbers of either sign one after the other.

    >>> pack([0, -1, 1, 15, 16, -4000])
    '?@A]_@~xF'
    """
    text = []
    for number in numbers:
        rest = number << 1 if number >= 0 else ~(number << 1)
        while rest >= _MORE:
            text.append(chr((rest & 31 | _MORE) + _FIRST))
            rest >>= 5
        text.append(chr(rest + _FIRST))
    return "".join(text)


def pack_rings(rings: Iterable[Sequence[int]]) -> str:
    """Write rings of arcs: how many, then each as its step from the one before."""
    numbers: list[int] = []
    last = 0
    for ring in rings:
        numbers.append(len(ring))
        for arc in ring:
            numbers.append(arc - last)
            last = arc
    return pack(numbers)


Points = NDArray[np.int64]
"""Grid positions, a row per point: x, y."""
Ring = list[int]
"""Arcs one after the other, by number; `~i` is arc i backwards."""
Polygon = Sequence[NDArray[np.float64]]
"""An outer ring and its holes, each a row per point."""

POINTS = 40_000
"""Most points of a map's borders, besides the ends of arcs."""
_LEAST = 1.0  # a bend of less than one grid step is not seen
_SLIVER = 4.0  # grid steps: narrower than any place that a map of the whole can show
_KEPT = np.inf


@dataclass(frozen=True, eq=False)
class Mesh:
    """The borders of many shapes."""

    arcs: tuple[Points, ...]
    """The stretches of border, each once."""
    shapes: tuple[tuple[Ring, ...], ...]
    """The rings of each shape; one that is smaller than a grid step has none."""
    middles: tuple[tuple[float, float], ...]
    """The mean point of each shape, for shapes that are too small for a centre of mass."""

    @staticmethod
    def of(shapes: Sequence[Sequence[Polygon]], points: int = POINTS) -> Mesh:
        """Cut shapes, given as polygons on the grid, into arcs, and simplify these to about so many points."""
        keyed = [[ring for polygon in shape for ring in _rings(polygon)] for shape in shapes]
        cuts = set(_cuts([ring for rings in keyed for ring in rings]).tolist())
        known: dict[bytes, int] = {}
        arcs: list[NDArray[np.int64]] = []
        numbered = tuple(
            tuple([_number(arc, known, arcs) for arc in _split(ring, cuts)] for ring in rings) for rings in keyed
        )
        middles = [np.concatenate([ring for polygon in shape for ring in polygon]).mean(axis=0) for shape in shapes]
        means = tuple((float(x), float(y)) for x, y in middles)
        return Mesh(_simplify([_unkey(arc) for arc in arcs], points), numbered, means)

    def merge(self, shapes: Iterable[int]) -> list[Ring]:
        """Return the rings around several shapes together, without the borders between two of them.

        If neighbours were drawn apart, their borders do not quite meet; the slivers between them are removed too. Small
        shapes stay: a city, an island, a state of one narrow county.
        """
        members = list(shapes)
        left: Counter[int] = Counter()
        for shape in members:
            for arc in (arc for ring in self.shapes[shape] for arc in ring):
                if left[~arc] > 0:
                    left[~arc] -= 1
                else:
                    left[arc] += 1
        rings = self._chain([arc for arc, times in left.items() for _ in range(times)])
        own = {frozenset(ring) for shape in members for ring in self.shapes[shape]}
        broad = [ring for ring in rings if _breadth(self._walk(ring)) > _SLIVER]
        around = [self._walk(ring) for ring in broad]
        narrow = [ring for ring in rings if ring not in broad]
        return broad + [ring for ring in narrow if frozenset(ring) in own or self._stands_alone(ring, around)]

    def _stands_alone(self, ring: Ring, others: Sequence[Points]) -> bool:
        """Whether a narrow ring is a place, rather than a gap between others or their overlap."""
        points = self._walk(ring)
        return _mass(points)[0] > 0 and not any(_within(points[:-1].mean(axis=0), other) for other in others)

    def centre(self, rings: Iterable[Ring]) -> tuple[float, float] | None:
        """Return the centre of mass of the largest ring; None if there is none."""
        areas = [_mass(self._walk(ring)) for ring in rings]
        area, x, y = max(areas, default=(0.0, 0.0, 0.0))
        return (x, y) if area > 0 else None

    def extent(self, rings: Iterable[Ring]) -> tuple[float, ...] | None:
        """Return left, top, right and bottom of rings; None if there are none."""
        walked = [self._walk(ring) for ring in rings]
        if not walked:
            return None
        points = np.concatenate(walked)
        return (*points.min(axis=0).tolist(), *points.max(axis=0).tolist())

    def packed(self) -> list[str]:
        """Return the arcs as text, each a start and steps: x, y, dx, dy, dx, dy, …"""
        return [pack(np.diff(arc, axis=0, prepend=0).ravel().tolist()) for arc in self.arcs]

    def _walk(self, ring: Ring) -> Points:
        """Return the points of a ring, back to the first."""
        return np.concatenate([self.arcs[arc] if arc >= 0 else self.arcs[~arc][::-1] for arc in ring])

    def _chain(self, arcs: Sequence[int]) -> list[Ring]:
        """Join arcs end to start into rings, none of which passes a point twice."""
        waiting: dict[tuple[int, ...], list[int]] = {}
        for arc in arcs:
            waiting.setdefault(self._end(~arc), []).append(arc)
        rings: list[Ring] = []
        for start in list(waiting):
            path: Ring = []
            passed = {start: 0}  # in the order of the path
            here = start
            while waiting.get(here):
                path.append(self._leftmost(path, waiting[here]))
                waiting[here].remove(path[-1])
                here = self._end(path[-1])
                if here not in passed:
                    passed[here] = len(path)
                    continue
                back = passed[here]
                rings.append(path[back:])
                del path[back:]
                while passed[next(reversed(passed))] > back:
                    passed.popitem()
        return rings

    def _leftmost(self, path: Ring, choices: Sequence[int]) -> int:
        """Return the way on that keeps outermost: rings run clockwise on the screen, so that is the leftmost."""
        if len(choices) == 1 or not path:
            return choices[-1]
        last = self._walk([path[-1]])
        dx, dy = (last[-1] - last[-2]).tolist()

        def left(arc: int) -> float:
            way = self._walk([arc])
            ex, ey = (way[1] - way[0]).tolist()
            return atan2(dy * ex - dx * ey, dx * ex + dy * ey)

        return max(choices, key=left)

    def _end(self, arc: int) -> tuple[int, ...]:
        return tuple(self.arcs[arc][-1].tolist() if arc >= 0 else self.arcs[~arc][0].tolist())


def _rings(polygon: Polygon) -> list[NDArray[np.int64]]:
    """Round to the grid: points as single numbers, none twice running, the inside always on the same hand."""
    rings = []
    for number, exact in enumerate(polygon):
        grid = np.rint(exact).astype(np.int64)
        points = grid[np.any(grid != np.roll(grid, 1, axis=0), axis=1)]
        if len(points) < 3:
            continue
        x, y = points.T
        clockwise = bool(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y) > 0)
        rings.append(_key(points if clockwise == (number == 0) else points[::-1]))
    return rings


def _key(points: Points) -> NDArray[np.int64]:
    return (points[:, 0] << 32) + points[:, 1] + (1 << 31)


def _unkey(keys: NDArray[np.int64]) -> Points:
    return np.stack([keys >> 32, (keys & ((1 << 32) - 1)) - (1 << 31)], axis=-1)


def _cuts(rings: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return, in order, the points that have different neighbours in different rings."""
    if not rings:
        return np.zeros(0, np.int64)
    here = np.concatenate(rings)
    before, after = (np.concatenate([np.roll(ring, step) for ring in rings]) for step in (1, -1))
    triples = np.stack([here, np.minimum(before, after), np.maximum(before, after)])
    ordered = triples[:, np.lexsort(triples[::-1])]
    another = np.any(ordered[:, 1:] != ordered[:, :-1], axis=0) & (ordered[0, 1:] == ordered[0, :-1])
    return np.unique(ordered[0, 1:][another])


def _split(ring: NDArray[np.int64], cuts: set[int]) -> list[NDArray[np.int64]]:
    """Cut a ring into arcs that share their ends; a ring without cuts is an arc that returns to its least point."""
    at = [position for position, point in enumerate(ring.tolist()) if point in cuts]
    if not at:
        turned = np.roll(ring, -int(np.argmin(ring)))
        return [np.append(turned, turned[0])]
    turned = np.roll(ring, -at[0])
    closed = np.append(turned, turned[0])
    ends = [*(position - at[0] for position in at), len(ring)]
    return [closed[start : stop + 1] for start, stop in pairwise(ends)]


def _number(arc: NDArray[np.int64], known: dict[bytes, int], arcs: list[NDArray[np.int64]]) -> int:
    """Return the number of an arc, negative if it is known in the other direction."""
    backwards = (arc[-1], arc[-2]) < (arc[0], arc[1])
    forwards = np.ascontiguousarray(arc[::-1] if backwards else arc)
    number = known.setdefault(forwards.tobytes(), len(arcs))
    if number == len(arcs):
        arcs.append(forwards)
    return ~number if backwards else number


def _simplify(arcs: Sequence[Points], points: int) -> tuple[Points, ...]:
    """Keep the ends of every arc, and the points that matter most for the shape of all of them."""
    weights = [bends(arc) for arc in arcs]
    inner = np.concatenate([weight[1:-1] for weight in weights]) if weights else np.zeros(0)
    least = _LEAST if len(inner) <= points else max(_LEAST, float(np.partition(inner, -points)[-points]))
    return tuple(arc[weight >= least] for arc, weight in zip(arcs, weights, strict=True))


def bends(arc: Points) -> NDArray[np.float64]:
    """Return the distance by which the arc would miss each point without it (Douglas and Peucker 1973)."""
    weight = np.zeros(len(arc))
    weight[[0, -1]] = _KEPT
    spans = [(0, len(arc) - 1, _KEPT)]
    if len(arc) > 3 and np.array_equal(arc[0], arc[-1]):
        # What returns to its start has no line to be far from: keep the farthest point, and one off their line.
        far = int(np.argmax(np.sum((arc - arc[0]) ** 2, axis=1)))
        off = int(np.argmax(_distance(arc, arc[0], arc[far])))
        kept = sorted({0, far, off, len(arc) - 1})
        weight[kept] = _KEPT
        spans = [(start, stop, _KEPT) for start, stop in pairwise(kept)]
    while spans:
        start, stop, most = spans.pop()
        if stop - start < 2:
            continue
        distance = _distance(arc[start + 1 : stop], arc[start], arc[stop])
        worst = int(np.argmax(distance))
        # A point never outlives the one that split its span, so that any threshold leaves a proper line.
        value = min(most, float(distance[worst]))
        if value < _LEAST:
            continue
        middle = start + 1 + worst
        weight[middle] = value
        spans += [(start, middle, value), (middle, stop, value)]
    return weight


def _distance(points: Points, start: Points, stop: Points) -> NDArray[np.float64]:
    """Return the distance of points from the segment between two others."""
    along = (stop - start).astype(np.float64)
    length = float(along @ along)
    offset = (points - start).astype(np.float64)
    share = np.clip(offset @ along / length, 0, 1) if length else np.zeros(len(points))
    away: NDArray[np.float64] = np.hypot(*(offset - share[:, None] * along).T)
    return away


def _breadth(ring: Points) -> float:
    """Return the mean breadth of a ring, as if it were a strip."""
    around = float(np.hypot(*(ring[1:] - ring[:-1]).T).sum())
    return 2 * abs(_mass(ring)[0]) / around if around else 0.0


def _within(point: NDArray[np.float64], ring: Points) -> bool:
    """Whether a ring goes around a point: a ray to the right passes it an odd number of times."""
    (x, y), (ax, ay), (bx, by) = point, ring[:-1].T.astype(np.float64), ring[1:].T.astype(np.float64)
    passes = (ay > y) != (by > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = ax + (y - ay) / (by - ay) * (bx - ax)
    return bool(np.count_nonzero(passes & (at > x)) % 2)


def _mass(ring: Points) -> tuple[float, float, float]:
    """Return area and centre of mass; zeros if the area is zero."""
    x, y = (ring - ring[0]).T.astype(np.float64)
    cross = x[:-1] * y[1:] - x[1:] * y[:-1]
    area = float(cross.sum()) / 2
    if area == 0:
        return 0.0, 0.0, 0.0
    centre = [float(((values[:-1] + values[1:]) * cross).sum()) / (6 * area) for values in (x, y)]
    return area, centre[0] + float(ring[0, 0]), centre[1] + float(ring[0, 1])
