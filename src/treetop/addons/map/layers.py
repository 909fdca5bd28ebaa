"""The layers of a map, one per level: places with their arrivals, departures and stays, and the largest flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.addons.map.arcs import pack, pack_rings
from treetop.addons.map.atlas import Atlas, Spots, Traffic, unrolled
from treetop.addons.map.boundaries import Boundaries
from treetop.domain.hierarchy import Hierarchy
from treetop.exporting.levels import Depths, counts_at, trees_of
from treetop.exporting.page_statements import carries_no_noise
from treetop.exporting.places import Places
from treetop.plan.workload import CONFIDENCE
from treetop.release.intervals.nodes import risk_of
from treetop.release.margins import find
from treetop.release.measurements import RATE, surviving
from treetop.release.selection import Selection

FLOWS = 100_000
"""Most flows of one layer; the largest are kept."""


@dataclass(frozen=True, eq=False)
class MapLayer:
    """One level of the map."""

    content: dict[str, Any]
    rows: int
    """Counts above zero on the map: of flows, or of places if there are no flows."""
    missing: tuple[str, ...]
    """The codes with counts that have no place on the map."""
    extent: NDArray[np.float64]
    """Extents of its places: left, top, right and bottom, a row each."""
    weight: NDArray[np.float64]
    """Counts of each place: arrivals, departures and stays."""


@dataclass(frozen=True, eq=False)
class _Gazetteer:
    """The places of a layer, each once, even if it is an end of many flows."""

    rows: list[tuple[str, str, int, int]]
    """Code, name and position; places without a position are left out."""
    rings: list[list[list[int]]]
    number: Mapping[str, NDArray[np.int64]]
    """By attribute, the place of each node; -1 if it has no position."""

    @staticmethod
    def of(parts: Mapping[str, Spots]) -> _Gazetteer:
        known: dict[tuple[str, str, int, int], int] = {}
        rings: list[list[list[int]]] = []
        numbers = {}
        for attribute, part in parts.items():
            number = np.full(len(part.code), -1)
            for node in np.flatnonzero(~np.isnan(part.centre[:, 0])).tolist():
                x, y = part.centre[node].round().astype(int).tolist()
                key = (part.code[node], part.name[node], x, y)
                number[node] = known.setdefault(key, len(rings))
                if number[node] == len(rings):
                    rings.append(part.rings[node])
            numbers[attribute] = number
        return _Gazetteer(list(known), rings, numbers)


def layer(
    release: Selection, atlas: Atlas, depths: Depths, attributes: Sequence[str], kept: Depths | None = None
) -> MapLayer:
    """Return one level: flows between two attributes, or the counts of one; `kept` has the depths of conditions."""
    spots = {name: atlas.spots(name, depths[name]) for name in attributes}
    gazetteer = _Gazetteer.of(spots)
    table = _counts(release, depths, attributes)
    ends = [
        gazetteer.number[name][pc.index_in(table[name], value_set=pa.array(spots[name].code)).to_numpy()]
        for name in attributes
    ]
    refined = {**(kept or {}), **{name: depths[name] for name in attributes}}
    count = table["count"].to_numpy()
    placed = np.all([end >= 0 for end in ends], axis=0)
    missing = {
        code
        for name, end in zip(attributes, ends, strict=True)
        for code in pc.unique(table[name].filter(pa.array(end < 0))).to_pylist()
    }
    content: dict[str, Any] = {
        "name": _name(atlas, depths, attributes),
        "of": [[name, trees_of(release)[name].levels[depths[name]]] for name in attributes],
        "margin": _margin(release, refined),
        "exact": carries_no_noise(release, [refined.get(name, -1) + 1 for name in release.spine.attributes]),
        "named": 100 * release.confidence if release.confidence is not None and release.whole.selective else None,
        "total": int(count.sum()),
        "unplaced": int(count[~placed].sum()),
        "places": _places(gazetteer),
        "totals": {name: _totals(release, gazetteer, spots[name], name, depths[name]) for name in attributes},
    }
    size = len(gazetteer.rows)
    if len(ends) == 2:
        real = _real(release, depths, attributes, table)
        origin, destination = (end[placed] for end in ends)
        lower, upper = (_bound(table, name, placed) for name in ("lower", "upper"))
        tested = None if real is None else real[placed]
        rows = _Rows(origin, destination, count[placed], lower, upper, tested)
        content |= _flows(rows, size)
    ends, count = [end[placed] for end in ends], count[placed]
    if len(ends) == 1:
        content["count"] = _sums(ends[0], count, size)
    weight = sum(np.bincount(end, count, size) for end in ends)
    return MapLayer(
        content, len(count), tuple(sorted(missing)), _extent(atlas, gazetteer), np.asarray(weight, np.float64)
    )


def _counts(release: Selection, depths: Depths, attributes: Sequence[str]) -> pa.Table:
    """Return the counts of a layer, each with its own interval if the release has them: of sums and parts too."""
    table = counts_at(release, depths, attributes, more=True)
    if "lower" not in table.column_names and release.confidence is not None:
        trees = trees_of(release)
        table = release.table([f"{name}.{trees[name].levels[depths[name]]}" for name in attributes]).arrow
        table = table.rename_columns([*attributes, *table.column_names[len(attributes) :]])
    return table.select([*attributes, *(name for name in ("count", "lower", "upper") if name in table.column_names)])


def _bound(table: pa.Table, name: str, placed: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    return table[name].to_numpy()[placed] if name in table.column_names else None


def _extent(atlas: Atlas, gazetteer: _Gazetteer) -> NDArray[np.float64]:
    found = [
        atlas.mesh.extent(rings) or (x, y, x, y)
        for (_, _, x, y), rings in zip(gazetteer.rows, gazetteer.rings, strict=True)
    ]
    return np.array(found, np.float64).reshape(-1, 4)


def _totals(release: Selection, gazetteer: _Gazetteer, spots: Spots, name: str, depth: int) -> dict[str, Any]:
    """Return the totals of places, all else summed over, with their own intervals; None for a zero."""
    level = f"{name}.{trees_of(release)[name].levels[depth]}"
    table = release.table(level).arrow
    place = gazetteer.number[name][pc.index_in(table[level], value_set=pa.array(spots.code)).to_numpy()]
    totals: dict[str, Any] = {}
    for column in table.column_names[1:]:
        found: list[int | None] = [None] * len(gazetteer.rows)
        for own, value in zip(place.tolist(), table[column].to_pylist(), strict=True):
            if own >= 0:
                found[own] = value
        totals[column] = found
    return totals


def _places(gazetteer: _Gazetteer) -> dict[str, Any]:
    code, name, x, y = (list(column) for column in zip(*gazetteer.rows, strict=True)) if gazetteer.rows else [[]] * 4
    # A name that is the code is not said twice.
    shown = [None if here == said else said for here, said in zip(code, name, strict=True)]
    return {"code": code, "name": shown, "x": x, "y": y, "rings": [pack_rings(rings) for rings in gazetteer.rings]}


@dataclass(frozen=True, eq=False)
class _Rows:
    """The flows of a layer."""

    origin: NDArray[np.int64]
    destination: NDArray[np.int64]
    count: NDArray[np.int64]
    lower: NDArray[np.int64] | None
    upper: NDArray[np.int64] | None
    """The count and its interval."""
    real: NDArray[np.bool_] | None
    """Whether each flow survives the test of all possible flows; None if they were not tested."""

    @property
    def columns(self) -> list[NDArray[np.int64]]:
        return [self.count] if self.lower is None or self.upper is None else [self.count, self.lower, self.upper]


def _real(release: Selection, depths: Depths, attributes: Sequence[str], table: pa.Table) -> NDArray[np.bool_] | None:
    """Return which flows survive the test of a level; None if flows are sums, or measurements were not kept."""
    spine, trees = release.spine, trees_of(release)
    wanted = tuple(depths[name] + 1 if name in attributes else 0 for name in spine.attributes)
    index = spine.index_at(wanted)
    if index is None or release.confidence is None or release.whole.evidence is None:
        return None
    measured = release.whole.measured
    nodes = measured.tree.at(index).nodes[[list(spine.attributes).index(name) for name in attributes]]
    real = np.ones(nodes.shape[1], np.bool_) if release.whole.selective else surviving(measured, index)
    codes = [trees[name].codes[depths[name]] for name in attributes]
    shown = np.stack(
        [pc.index_in(table[name], value_set=own).to_numpy() for name, own in zip(attributes, codes, strict=True)]
    )
    row = _rows(nodes, shown, len(codes[1]))
    if release.conditions and not np.array_equal(measured.tree.at(index).count[row], table["count"].to_numpy()):
        return None  # what is shown is a part of what was tested
    tested: NDArray[np.bool_] = real[row]
    return tested


def _rows(nodes: NDArray[np.integer], wanted: NDArray[np.integer], size: int) -> NDArray[np.int64]:
    """Return the positions of pairs of nodes among others, which include them all."""
    key, asked = (one[0].astype(np.int64) * size + one[1] for one in (nodes, wanted))
    order = np.argsort(key)
    rows: NDArray[np.int64] = order[np.searchsorted(key[order], asked)]
    return rows


def _flows(rows: _Rows, places: int) -> dict[str, Any]:
    """Return flows between different places: those that stand out from the noise first, and the largest first."""
    apart = rows.origin != rows.destination
    real = np.ones(len(rows.count), np.bool_) if rows.real is None else rows.real
    chosen = np.flatnonzero(apart)
    order = np.lexsort((rows.destination[chosen], rows.origin[chosen], -rows.count[chosen], ~real[chosen]))
    chosen = chosen[order][:FLOWS]
    kept = [column[chosen] for column in (rows.origin, rows.destination, *rows.columns)]
    # Bounds are near their counts: as steps from them they are short.
    kept[3:] = [bound - kept[2] for bound in kept[3:]]
    moving = rows.count[apart]
    return {
        "pairs": len(moving),
        "moving": int(moving.sum()),
        "standing": None if rows.real is None else int(np.count_nonzero(real[apart])),
        "real": None if rows.real is None else int(np.count_nonzero(real[chosen])),
        "rate": 100 * float(RATE),
        "in": _sums(rows.destination[apart], moving, places),
        "out": _sums(rows.origin[apart], moving, places),
        "stay": _sums(rows.origin[~apart], rows.count[~apart], places),
        "stays": _stays(rows, ~apart, places),
        "flows": [pack(column.tolist()) for column in kept],
    }


def _stays(rows: _Rows, within: NDArray[np.bool_], places: int) -> list[list[int | None]] | None:
    """Return the bounds of the stays within each place; None for a place without a released stay."""
    if rows.lower is None or rows.upper is None:
        return None
    bounds: list[list[int | None]] = []
    for column in (rows.lower, rows.upper):
        own: list[int | None] = [None] * places
        for place, bound in zip(rows.origin[within].tolist(), column[within].tolist(), strict=True):
            own[place] = bound
        bounds.append(own)
    return bounds


def _sums(place: NDArray[np.int64], count: NDArray[np.int64], places: int) -> list[int]:
    sums = np.zeros(places, np.int64)
    np.add.at(sums, place, count)
    return sums.tolist()


def _name(atlas: Atlas, depths: Depths, attributes: Sequence[str]) -> str:
    names = [atlas.trees[name].levels[depths[name]] for name in attributes]
    return names[0] if len(set(names)) == 1 else " → ".join(names)


def _margin(release: Selection, depths: Depths) -> int | None:
    """Return the noise quantile of the measurements that a layer shows; None if it shows sums of them.

    If they decide which nodes are named, and so shown, it is wider for that.
    """
    wanted = tuple(depths.get(name, -1) + 1 for name in release.spine.attributes)
    levels = release.card.get("levels", [])
    for index in range(1, len(release.spine.levels) + 1):
        if release.spine.depths(index) == wanted and index < len(levels):
            if release.whole.selective and release.confidence is not None:
                return release.whole.measured.named_margin(index, release.confidence)
            # A level that divides nothing repeats the one above it.
            measured = [level["margin"] for level in levels[: index + 1] if level["measured"]]
            return measured[-1] if measured else None
    table = find(release.whole.margins, release.spine, wanted)
    return None if table is None else table.law.margin(risk_of(release.confidence or CONFIDENCE))


# Moves between places: they decide at which meridian a map of the world is cut.


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
        table = release.table(f"{name}.{tree.levels[depth]}", intervals=False).arrow
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
