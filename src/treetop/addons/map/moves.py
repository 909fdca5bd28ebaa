"""Moves between places: they decide at which meridian a map of the world is cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.addons.map.atlas import Traffic, unrolled
from treetop.addons.map.boundaries import Boundaries
from treetop.domain.hierarchy import Hierarchy
from treetop.exporting.levels import Depths, counts_at, trees_of
from treetop.exporting.places import Places
from treetop.release.selection import Selection


def traffic_of(
    release: Selection,
    depths: Depths,
    attributes: Sequence[str],
    places: Mapping[str, Places],
    boundaries: Boundaries | None,
) -> Traffic:
    """Return the counts of a release by the longitudes of its ends; counts without a position are left out."""
    trees = trees_of(release)
    known = {name: _longitudes(trees[name], places.get(name), boundaries) for name in attributes}
    table = counts_at(release, depths | {name: depth for name, (depth, _) in known.items()}, attributes)
    ends = []
    for name in attributes:
        depth, degrees = known[name]
        ends.append(degrees[pc.index_in(table[name], value_set=trees[name].codes[depth]).to_numpy()])
    placed = np.all([~np.isnan(end) for end in ends], axis=0)
    count = table["count"].to_numpy().astype(np.float64)
    return Traffic(ends[0][placed], ends[-1][placed], count[placed])


def weights_of(
    release: Selection, depths: Depths, attributes: Sequence[str], boundaries: Boundaries | None, known: Sequence[str]
) -> dict[str, tuple[int, NDArray[np.float64]]]:
    """Return, by attribute, the finest level of the map and the count at each node.

    Attributes with one hierarchy share their weights: a place is in one position as origin and as destination.
    """
    trees = trees_of(release)
    found: dict[str, tuple[str, int]] = {}
    shared: dict[tuple[str, int], NDArray[np.float64]] = {}
    for name in attributes:
        tree = trees[name]
        outlined = len(tree.levels) - 1 if boundaries is None or name in known else boundaries.depth(tree) or 0
        depth = min(depths[name], outlined)
        table = release.by(f"{name}.{tree.levels[depth]}", intervals=False)
        weight = np.zeros(len(tree.codes[depth]))
        weight[pc.index_in(table.column(0), value_set=tree.codes[depth]).to_numpy()] = table["count"].to_numpy()
        shared[tree.digest, depth] = shared.get((tree.digest, depth), 0.0) + weight
        found[name] = (tree.digest, depth)
    return {name: (key[1], shared[key]) for name, key in found.items()}


def _longitudes(
    tree: Hierarchy, places: Places | None, boundaries: Boundaries | None
) -> tuple[int, NDArray[np.float64]]:
    """Return the finest level with positions, and the longitude of each of its nodes; NaN if unknown."""
    if places is not None:
        depth = len(tree.levels) - 1
        row = pc.index_in(tree.codes[depth], value_set=places.code)
        return depth, pc.take(pa.array(places.longitude), row).to_numpy(zero_copy_only=False)
    assert boundaries is not None
    depth = boundaries.depth(tree) or 0
    return depth, np.array([_middle(boundaries.shapes.get(code, [])) for code in tree.codes[depth].to_pylist()])


def _middle(polygons: Sequence[Sequence[NDArray[np.float64]]]) -> float:
    """Return the longitude of the middle of the widest polygon; NaN if there is none."""
    rings = [unrolled(polygon[0])[:, 0] for polygon in polygons if len(polygon[0])]
    if not rings:
        return np.nan
    widest = max(rings, key=np.ptp)
    return float(widest.min() + widest.max()) / 2
