"""The atlas of a map: where every node of the hierarchies lies on the grid, and its outline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.domain.hierarchy import Hierarchy
from treetop.errors import DataError
from treetop.exporting.map.arcs import Mesh, Ring
from treetop.exporting.map.boundaries import Boundaries
from treetop.exporting.map.frame import Frame
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
    """What the boundaries call a code, where coordinates do not come with a name."""
    depth: Mapping[str, int]
    """By attribute, the level that has outlines of its own; coarser ones are merged from it."""
    trees: Mapping[str, Hierarchy]
    """The hierarchies, by attribute."""
    places: Mapping[str, Places]
    """Coordinates and names of leaves, by attribute; none where only outlines are known."""

    @staticmethod
    def of(trees: Mapping[str, Hierarchy], places: Mapping[str, Places], boundaries: Boundaries | None) -> Atlas:
        """Lay everything that is known on one grid."""
        shapes = {} if boundaries is None else boundaries.shapes
        known = [here.at(trees[name], len(trees[name].levels) - 1) for name, here in places.items()]
        leaves = [(here.latitude, here.longitude) for here in known]
        rings = [ring for polygons in shapes.values() for polygon in polygons for ring in polygon]
        north = np.concatenate([*(leaf[0] for leaf in leaves), *(ring[:, 1] for ring in rings)])
        east = np.concatenate([*(leaf[1] for leaf in leaves), *(ring[:, 0] for ring in rings)])
        if len(north) == 0:
            raise DataError(
                "the file with coordinates knows none of the places of the release: codes must agree to the letter, "
                "leading zeros included (--code COLUMN names another column)"
            )
        frame = Frame.around(north, east)
        mesh = Mesh.of(
            [
                [[frame.place(ring[:, 1], ring[:, 0]) for ring in polygon] for polygon in polygons]
                for polygons in shapes.values()
            ]
        )
        depths = {} if boundaries is None else {name: boundaries.depth(tree) for name, tree in trees.items()}
        found = {name: depth for name, depth in depths.items() if depth is not None}
        numbers = {code: i for i, code in enumerate(shapes)}
        return Atlas(frame, mesh, numbers, {} if boundaries is None else boundaries.names, found, trees, places)

    def knows(self, attribute: str, depth: int) -> bool:
        """Whether a level can be drawn at all."""
        return attribute in self.places or self.depth.get(attribute, -1) >= depth

    def spots(self, attribute: str, depth: int) -> Spots:
        """Return the nodes of a level, in the order of the hierarchy."""
        tree = self.trees[attribute]
        codes: list[str] = tree.codes[depth].to_pylist()
        rings = self._rings(attribute, depth)
        outlined = depth == self.depth.get(attribute)
        centre = np.full((len(codes), 2), np.nan)
        for node, outline in enumerate(rings):
            middle = self.mesh.centre(outline)
            if middle is None and outlined and codes[node] in self.number:
                middle = self.mesh.middles[self.number[codes[node]]]
            if middle is not None:
                centre[node] = middle
        own = tree.names.get(tree.levels[depth])
        names = codes if own is None else pc.coalesce(own, tree.codes[depth]).to_pylist()
        if outlined:
            names = [self.called.get(code, name) for code, name in zip(codes, names, strict=True)]
        if attribute in self.places:
            here = self.places[attribute].at(tree, depth)
            row = pc.index_in(tree.codes[depth], value_set=here.code)
            named = pc.if_else(pc.equal(here.name, here.code), None, here.name).take(row).to_pylist()
            names = [given or known for given, known in zip(named, names, strict=True)]
            # A place with an outline is labelled in its middle, unless it is a leaf whose own position is known.
            leaf = depth == len(tree.levels) - 1
            known = _numbers(row)
            use = (known >= 0) & (leaf | np.isnan(centre[:, 0]))
            placed = self.frame.place(here.latitude, here.longitude)
            centre[use] = placed[known[use]]
        return Spots(codes, names, centre, rings)

    def _rings(self, attribute: str, depth: int) -> list[list[Ring]]:
        tree = self.trees[attribute]
        own = self.depth.get(attribute, -1)
        if own < depth:
            return [[] for _ in range(len(tree.codes[depth]))]
        shape = [self.number.get(code, -1) for code in tree.codes[own].to_pylist()]
        if own == depth:
            return [[] if number < 0 else [list(ring) for ring in self.mesh.shapes[number]] for number in shape]
        above = tree.ancestors(depth, own)
        members: list[list[int]] = [[] for _ in range(len(tree.codes[depth]))]
        for node, number in zip(above.tolist(), shape, strict=True):
            if number >= 0:
                members[node].append(number)
        return [self.mesh.merge(group) for group in members]


def _numbers(rows: pa.Array) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = pc.fill_null(rows, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
