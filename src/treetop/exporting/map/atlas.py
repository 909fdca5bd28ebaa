"""The atlas of a map: where every node of the hierarchies lies on the grid, and its outline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.domain.hierarchy import Hierarchy
from treetop.errors import DataError
from treetop.exporting.map.arcs import Mesh, Ring
from treetop.exporting.map.boundaries import Boundaries
from treetop.exporting.map.frame import Frame
from treetop.exporting.map.meridian import Traffic, cut, parts
from treetop.exporting.places import Places


@dataclass(frozen=True, eq=False)
class Spots:
    """The nodes of one level of a hierarchy on the grid."""

    code: list[str]
    """Their codes."""
    name: list[str]
    """Their names; the code where there is none."""
    centre: NDArray[np.float64]
    """Their positions, a row per node; NaN where it is not known."""
    rings: list[list[Ring]]
    """Their outlines; empty where there is none."""


@dataclass(frozen=True, eq=False)
class Atlas:
    """Positions and outlines for the hierarchies of a release."""

    frame: Frame
    """The projection."""
    mesh: Mesh
    """The borders."""
    number: Mapping[str, int]
    """The shape of each code that has one."""
    called: Mapping[str, str]
    """What the boundaries call a code, where neither plan nor coordinates have a name."""
    depth: Mapping[str, int]
    """By attribute, the level that has outlines of its own; coarser ones are merged from it."""
    trees: Mapping[str, Hierarchy]
    """The hierarchies, by attribute."""
    places: Mapping[str, Places]
    """Coordinates and names of leaves, by attribute; none where only outlines are known."""
    weight: Mapping[str, tuple[int, NDArray[np.float64]]] = field(default_factory=dict)
    """By attribute, a level and what is counted at each of its nodes: where most is, is the middle of those above."""
    _known: dict[tuple[str, int], Spots] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(
        trees: Mapping[str, Hierarchy],
        places: Mapping[str, Places],
        boundaries: Boundaries | None,
        traffic: Traffic | None = None,
        weight: Mapping[str, tuple[int, NDArray[np.float64]]] | None = None,
    ) -> Atlas:
        """Lay everything that is known on one grid, cut where there is least traffic."""
        shapes = {} if boundaries is None else boundaries.shapes
        known = [here.at(trees[name], len(trees[name].levels) - 1) for name, here in places.items()]
        north = np.concatenate([np.zeros(0), *(here.latitude for here in known)])
        east = np.concatenate([np.zeros(0), *(here.longitude for here in known)])
        rings = [ring for polygons in shapes.values() for polygon in polygons for ring in polygon if len(ring)]
        if len(north) + len(rings) == 0:
            raise DataError(
                "the file with coordinates knows none of the places of the release: codes must agree to the letter, "
                "leading zeros included (--code COLUMN names another column)"
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
        """Return positions above a level that was weighed: where most is counted, not in the middle of an ocean."""
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
        """Return the shapes that each node of a level is made of."""
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
        """Return the rings around shapes; one that its file has cut, as at 180°, is made whole."""
        if len(shapes) == 1:
            rings = self.mesh.shapes[shapes[0]]
            used = {arc for ring in rings for arc in ring}
            if not any(~arc in used for arc in used):
                return [list(ring) for ring in rings]
        return self.mesh.merge(shapes)


def _numbers(rows: pa.Array) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = pc.fill_null(rows, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
