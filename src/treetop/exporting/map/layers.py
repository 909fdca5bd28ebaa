"""The layers of a map, one a level: its places with what arrives, leaves and stays, and its largest flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.exporting.levels import Depths, counts_at, trees_of
from treetop.exporting.map.atlas import Atlas, Spots
from treetop.exporting.map.pack import pack_rings
from treetop.plan.accuracy import CONFIDENCE
from treetop.release.intervals.nodes import risk_of
from treetop.release.margins import find
from treetop.release.selection import Selection
from treetop.release.surviving import RATE, surviving

FLOWS = 12_000
"""The most flows that one layer holds; the largest are kept."""


@dataclass(frozen=True, eq=False)
class Layer:
    """One level of the map."""

    content: dict[str, Any]
    """What the page shows of it."""
    rows: int
    """Its counts above zero that are on the map: flows, or places where there are no flows."""
    missing: tuple[str, ...]
    """The codes with counts that have no place on the map."""
    points: NDArray[np.float64]
    """Where its places are."""
    weight: NDArray[np.float64]
    """What arrives, leaves or stays there."""


@dataclass(frozen=True, eq=False)
class _Gazetteer:
    """The places of a layer, each once, whichever ends of a flow it serves."""

    rows: list[tuple[str, str, int, int]]
    """Code, name and position; what has no position is not here."""
    rings: list[list[list[int]]]
    """Their outlines."""
    number: Mapping[str, NDArray[np.int64]]
    """By attribute, the place of each node; -1 where it has no position."""

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


def layer(release: Selection, atlas: Atlas, depths: Depths, attributes: Sequence[str]) -> Layer:
    """Return one level: flows between two attributes, or the counts of one."""
    spots = {name: atlas.spots(name, depths[name]) for name in attributes}
    gazetteer = _Gazetteer.of(spots)
    table = counts_at(release, depths, attributes)
    ends = [
        gazetteer.number[name][pc.index_in(table[name], value_set=pa.array(spots[name].code)).to_numpy()]
        for name in attributes
    ]
    count = table["count"].to_numpy()
    placed = np.all([end >= 0 for end in ends], axis=0)
    missing = {
        code
        for name, end in zip(attributes, ends, strict=True)
        for code in pc.unique(table[name].filter(pa.array(end < 0))).to_pylist()
    }
    content: dict[str, Any] = {
        "name": _name(atlas, depths, attributes),
        "margin": _margin(release, depths, attributes),
        "named": 100 * release.confidence if release.confidence is not None and release.whole.selective else None,
        "total": int(count.sum()),
        "unplaced": int(count[~placed].sum()),
        "places": _places(gazetteer),
        "totals": {name: _totals(release, gazetteer, spots[name], name, depths[name]) for name in attributes},
    }
    size = len(gazetteer.rows)
    if len(ends) == 2:
        tested = _tested(release, depths, attributes, table)
        content |= _flows(ends[0][placed], ends[1][placed], count[placed], size, tested and tested.only(placed))
    ends, count = [end[placed] for end in ends], count[placed]
    if len(ends) == 1:
        content["count"] = _sums(ends[0], count, size)
    weight = sum(np.bincount(end, count, size) for end in ends)
    points = np.array([row[2:] for row in gazetteer.rows], np.float64).reshape(-1, 2)
    return Layer(content, len(count), tuple(sorted(missing)), points, np.asarray(weight, np.float64))


def _totals(release: Selection, gazetteer: _Gazetteer, spots: Spots, name: str, depth: int) -> dict[str, Any]:
    """Return the totals of places, all else summed over, with the intervals of their own; None where one is zero."""
    level = f"{name}.{trees_of(release)[name].levels[depth]}"
    table = release.by(level)
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
class _Tested:
    """What the measurements say of flows, one by one."""

    real: NDArray[np.bool_]
    """Whether a flow survives the test of all that could have been drawn."""
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    """Its interval."""

    def only(self, chosen: NDArray[np.bool_]) -> _Tested:
        return _Tested(self.real[chosen], self.lower[chosen], self.upper[chosen])


def _tested(release: Selection, depths: Depths, attributes: Sequence[str], table: pa.Table) -> _Tested | None:
    """Return what the measurements of a level say of its flows; None where the flows are sums, or nothing was kept."""
    spine, trees = release.spine, trees_of(release)
    wanted = tuple(depths[name] + 1 if name in attributes else 0 for name in spine.attributes)
    index = spine.index_at(wanted)
    if index is None or release.confidence is None or release.whole.evidence is None:
        return None
    measured = release.whole.measured
    found = measured.intervals(release.confidence)[index]
    nodes = measured.tree.at(index).nodes[[list(spine.attributes).index(name) for name in attributes]]
    real = np.ones(nodes.shape[1], np.bool_) if release.whole.selective else surviving(measured, index)
    codes = [trees[name].codes[depths[name]] for name in attributes]
    shown = np.stack(
        [pc.index_in(table[name], value_set=own).to_numpy() for name, own in zip(attributes, codes, strict=True)]
    )
    row = _rows(nodes, shown, len(codes[1]))
    return _Tested(real[row], found.lower[row], found.upper[row])


def _rows(nodes: NDArray[np.integer], wanted: NDArray[np.integer], size: int) -> NDArray[np.int64]:
    """Return where pairs of nodes are among others, all of which are there."""
    key, asked = (one[0].astype(np.int64) * size + one[1] for one in (nodes, wanted))
    order = np.argsort(key)
    rows: NDArray[np.int64] = order[np.searchsorted(key[order], asked)]
    return rows


def _flows(
    origin: NDArray[np.int64],
    destination: NDArray[np.int64],
    count: NDArray[np.int64],
    places: int,
    tested: _Tested | None,
) -> dict[str, Any]:
    """Return flows between different places: those that stand out from the noise first, and the largest first."""
    apart = origin != destination
    stay = _sums(origin[~apart], count[~apart], places)
    real = np.ones(len(count), np.bool_) if tested is None else tested.real
    order = np.lexsort((destination[apart], origin[apart], -count[apart], ~real[apart]))[:FLOWS]
    columns = [origin, destination, count]
    if tested is not None:
        columns += [tested.lower, tested.upper]
    kept = [column[apart][order].tolist() for column in columns]
    return {
        "real": None if tested is None else int(np.count_nonzero(real[apart])),
        "rate": 100 * float(RATE),
        "in": _sums(destination[apart], count[apart], places),
        "out": _sums(origin[apart], count[apart], places),
        "stay": stay,
        "moving": int(count[apart].sum()),
        "pairs": int(apart.sum()),
        "flows": kept,
    }


def _sums(place: NDArray[np.int64], count: NDArray[np.int64], places: int) -> list[int]:
    sums = np.zeros(places, np.int64)
    np.add.at(sums, place, count)
    return sums.tolist()


def _name(atlas: Atlas, depths: Depths, attributes: Sequence[str]) -> str:
    names = [atlas.trees[name].levels[depths[name]] for name in attributes]
    return names[0] if len(set(names)) == 1 else " → ".join(names)


def _margin(release: Selection, depths: Depths, attributes: Sequence[str]) -> int | None:
    """Return the margin of the measurements that a layer shows; None where it shows sums of them.

    Where these decide what is named, and so is shown, it is as wide as that asks for.
    """
    names = list(release.spine.attributes)
    wanted = tuple(depths[name] + 1 if name in attributes else 0 for name in names)
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
