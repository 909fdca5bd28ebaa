"""The atlas of a map: position on the grid and outline of every node of the hierarchies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.addons.map.arcs import Mesh, Ring
from treetop.addons.map.boundaries import Boundaries
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import DataError
from treetop.exporting.places import Places

# Where the world is cut: at the meridian that the fewest of those who move pass, and outlines are cut with it.

Degrees = NDArray[np.float64]
"""Longitudes; or a ring, a row per point, longitude and latitude."""

_SPARED = 0.005  # of all that move: so few may be cut off where a wider gap is to be had
_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Traffic:
    """Moves from one longitude to another; a count at a place moves from there to there."""

    start: Degrees
    end: Degrees
    count: NDArray[np.float64]


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
    """Return the middle of the widest part of a gap without outlines; of the gap if they fill it."""
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


# The frame of a map: a Mercator projection on to a grid of whole numbers, cut where no place lies.

SIDE = 4000
"""The longer side of the grid: a screen's width can be enlarged several times before its steps show."""
_CLOSE_PLACES = 1e-6  # degrees: a tenth of a metre
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
    height: int

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
        east = (longitude - self.west + _CLOSE_PLACES) % 360 - _CLOSE_PLACES
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


@dataclass(frozen=True, eq=False)
class Spots:
    """The nodes of one level of a hierarchy on the grid."""

    code: list[str]
    name: list[str]
    """Their names; a node without a name has its code."""
    centre: NDArray[np.float64]
    """Their positions, a row per node; NaN if unknown."""
    rings: list[list[Ring]]


@dataclass(frozen=True, eq=False)
class Atlas:
    """Positions and outlines for the hierarchies of a release."""

    frame: Frame
    mesh: Mesh
    number: Mapping[str, int]
    """Number of each code's shape; codes without a shape are left out."""
    called: Mapping[str, str]
    """Names of codes in the boundaries, for codes without a name in the plan or the coordinates."""
    depth: Mapping[str, int]
    """By attribute, the level that has outlines of its own; coarser ones are merged from it."""
    trees: Mapping[str, Hierarchy]
    places: Mapping[str, Places]
    """Coordinates and names of leaves, by attribute; none if only outlines are known."""
    weight: Mapping[str, tuple[int, NDArray[np.float64]]] = field(default_factory=dict)
    """By attribute, a level and the count at each of its nodes: coarser nodes are centred where most is counted."""
    _known: dict[tuple[str, int], Spots] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(
        trees: Mapping[str, Hierarchy],
        places: Mapping[str, Places],
        boundaries: Boundaries | None,
        traffic: Traffic | None = None,
        weight: Mapping[str, tuple[int, NDArray[np.float64]]] | None = None,
    ) -> Atlas:
        """Lay all known places on one grid, cut at the meridian with the least traffic."""
        shapes = {} if boundaries is None else boundaries.shapes
        known = [here.at(trees[name], len(trees[name].levels) - 1) for name, here in places.items()]
        north = np.concatenate([np.zeros(0), *(here.latitude for here in known)])
        east = np.concatenate([np.zeros(0), *(here.longitude for here in known)])
        rings = [ring for polygons in shapes.values() for polygon in polygons for ring in polygon if len(ring)]
        if len(north) + len(rings) == 0:
            raise DataError(
                "the file with coordinates knows none of the places of the release: codes must agree to the letter, "
                "leading zeros included (`code` names another column)"
            )
        if traffic is None or len(traffic.count) == 0:
            every = np.concatenate([east, *(ring[:, 0] for ring in rings)])
            traffic = Traffic(every, every, np.ones(len(every)))
        at = cut(traffic, rings)
        pieces = [[part for polygon in polygons for part in parts(polygon, at)] for polygons in shapes.values()]
        frame = Frame.of_rings([ring for shape in pieces for part in shape for ring in part], at, north, east)
        mesh = Mesh.of([[[frame.lay(ring) for ring in part] for part in shape] for shape in pieces])
        depths = {} if boundaries is None else {name: boundaries.depth(tree) for name, tree in trees.items()}
        found = {name: depth for name, depth in depths.items() if depth is not None}
        numbers = {code: i for i, code in enumerate(shapes)}
        names = {} if boundaries is None else boundaries.names
        return Atlas(frame, mesh, numbers, names, found, trees, places, weight or {})

    def spots(self, attribute: str, depth: int) -> Spots:
        """Return the nodes of a level, in the order of the hierarchy."""
        if (attribute, depth) not in self._known:
            self._known[attribute, depth] = self._spots(attribute, depth)
        return self._known[attribute, depth]

    def knows(self, attribute: str, depth: int) -> bool:
        """Whether a level can be drawn at all."""
        return attribute in self.places or self.depth.get(attribute, -1) >= depth

    def _spots(self, attribute: str, depth: int) -> Spots:
        tree = self.trees[attribute]
        codes: list[str] = tree.codes[depth].to_pylist()
        members = self._members(attribute, depth)
        rings = [self._outline(group) for group in members]
        centre = np.full((len(codes), 2), np.nan)
        for node, group in enumerate(members):
            middle = self.mesh.centre(rings[node])
            if middle is None and group:  # all of it is smaller than a step of the grid
                middle = tuple(np.mean([self.mesh.middles[shape] for shape in group], axis=0).tolist())
            if middle is not None:
                centre[node] = middle
        names = [[None] * len(codes) if depth != self.depth.get(attribute) else list(map(self.called.get, codes))]
        if attribute in self.places:
            here = self.places[attribute].at(tree, depth)
            row = pc.index_in(tree.codes[depth], value_set=here.code)
            names.append(pc.if_else(pc.equal(here.name, here.code), None, here.name).take(row).to_pylist())
            # A place with an outline is labelled in its middle, unless it is a leaf whose own position is known.
            leaf = depth == len(tree.levels) - 1
            known = _numbers(row)
            use = (known >= 0) & (leaf | np.isnan(centre[:, 0]))
            placed = self.frame.place(here.latitude, here.longitude)
            centre[use] = placed[known[use]]
        if (own := tree.names.get(tree.levels[depth])) is not None:
            names.append(own.to_pylist())
        # The plan's own names first, then those of the coordinates, then those of the outlines.
        called = [next(filter(None, said), code) for code, *said in zip(codes, *reversed(names), strict=True)]
        return Spots(codes, called, self._weighed(attribute, depth, centre), rings)

    def _weighed(self, attribute: str, depth: int, centre: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return positions above a weighed level: where most is counted, rather than in the middle of an ocean."""
        finer, weight = self.weight.get(attribute, (depth, np.zeros(0)))
        if finer <= depth:
            return centre
        below, above = self.spots(attribute, finer).centre, self.trees[attribute].ancestors(depth, finer)
        weight = np.where(np.isnan(below[:, 0]), 0.0, weight)
        whole = np.bincount(above, weight, len(centre))
        sums = [np.bincount(above, weight * np.nan_to_num(column), len(centre)) for column in below.T]
        counted = (whole > 0)[:, None]
        mean: NDArray[np.float64] = np.where(counted, np.stack(sums, axis=-1) / np.maximum(whole, 1)[:, None], centre)
        return mean

    def _members(self, attribute: str, depth: int) -> list[list[int]]:
        """Return the shapes that make up each node of a level."""
        tree = self.trees[attribute]
        own = self.depth.get(attribute, -1)
        members: list[list[int]] = [[] for _ in range(len(tree.codes[depth]))]
        if own < depth:
            return members
        above = tree.ancestors(depth, own) if own > depth else np.arange(len(members))
        for node, code in zip(above.tolist(), tree.codes[own].to_pylist(), strict=True):
            if code in self.number:
                members[node].append(self.number[code])
        return members

    def _outline(self, shapes: list[int]) -> list[Ring]:
        """Return the rings around shapes; a shape that its file has cut, as at 180°, is joined."""
        if len(shapes) == 1:
            rings = self.mesh.shapes[shapes[0]]
            used = {arc for ring in rings for arc in ring}
            if not any(~arc in used for arc in used):
                return [list(ring) for ring in rings]
        return self.mesh.merge(shapes)


def _numbers(rows: pa.Array) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = pc.fill_null(rows, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


# The opening view: all places that count; or, if a few far ones would make the others small, the others. The page
# says how many places are outside the view, and shows them at a touch.

_OUTSIDE = 0.05  # of all that is counted
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
            if weight[one].sum() <= _OUTSIDE * weight.sum()
            and np.count_nonzero(one) <= _FEW * np.count_nonzero(counted)
        ]
        if not fit:
            return near
        near = counted & ~min(fit, key=lambda one: float(weight[one].sum()))


def _beyond(values: NDArray[np.float64], near: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
    """Return those on either side of every wide gap between places."""
    inside = np.sort(values[near])
    wide = np.flatnonzero(np.diff(inside) > _GAP * max(np.ptp(inside), 1.0))
    return [near & side for at in wide for side in (values <= inside[at], values > inside[at])]
