"""Small graphs of people in towns, and the counts of them that a release measures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import treetop as tt
from treetop import Graph
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.graph_reader import Edges, Nodes
from treetop.counts.reading import read_counts
from treetop.measure import questions

from .engine import KEY

Pairs = tuple[tuple[int, int], ...]

TOWNS = ["A1", "A2", "B1", "B1", "A1"]
PLACES = tt.Hierarchy.from_prefixes(["A1", "A2", "B1"], widths=[1], levels=["region", "town"])
SPINE = tt.Spine.origin_first(origin=PLACES, destination=PLACES)
COLUMNS = {"origin": "source.town", "destination": "target.town"}


def people(kept: tuple[int, ...]) -> pa.Table:
    return pa.table({"id": [str(node) for node in kept], "town": [TOWNS[node] for node in kept]})


def table(pairs: Pairs) -> pa.Table:
    ends = list(zip(*pairs, strict=True)) or [(), ()]
    return pa.table(
        {name: pa.array(map(str, end), pa.string()) for name, end in zip(("source", "target"), ends, strict=True)}
    )


@lru_cache(maxsize=100_000)
def cells(kept: tuple[int, ...], pairs: Pairs, relation: Any, most: int) -> tuple[dict[Any, int], ...]:
    """Count the edges between groups at every level, by the way that a release counts them."""
    graph = Graph(people(kept), table(pairs), relation, contributions=most if relation == "user-out" else None,
                  degree_bound=most if relation == "node" else None)  # fmt: skip
    unit = graph.unit("add-remove")
    bound = None if unit.id is None else ContributionCap(unit.id, most, KEY)
    counts = read_counts(graph.table(), SPINE, COLUMNS, cap=bound)
    leaves, number = questions.leaves_of(SPINE, counts)
    found = []
    for index in range(len(SPINE.levels) + 1):
        depths = SPINE.depths(index)
        nodes = [tree.ancestors(d - 1)[leaf] for tree, leaf, d in zip(SPINE.trees, leaves, depths, strict=True) if d]
        level: dict[Any, int] = {}
        for *place, count in zip(*nodes, number, strict=True):
            level[tuple(place)] = level.get(tuple(place), 0) + int(count)
        found.append(level)
    return tuple(found)


def distances(one: tuple[dict[Any, int], ...], other: tuple[dict[Any, int], ...]) -> list[tuple[int, int]]:
    """How far two graphs are apart at every level, in L1 and squared in L2."""
    changes = [[a.get(cell, 0) - b.get(cell, 0) for cell in {*a, *b}] for a, b in zip(one, other, strict=True)]
    return [(sum(map(abs, change)), sum(c * c for c in change)) for change in changes]


def worst(pairs: Iterator[tuple[Any, Any]]) -> list[tuple[int, int]]:
    found = [distances(one, other) for one, other in pairs]
    return [(max(d[level][0] for d in found), max(d[level][1] for d in found)) for level in range(len(found[0]))]


NAMES = ["total", *(level.name for level in SPINE.levels)]


def all_graphs(nodes: int) -> Iterator[Pairs]:
    possible = list(combinations(range(nodes), 2))
    for chosen in product([False, True], repeat=len(possible)):
        yield tuple(edge for edge, there in zip(possible, chosen, strict=True) if there)


def norms(*changes: NDArray[np.int64]) -> tuple[int, int]:
    """The largest change in L1, and the largest one squared in L2, of changes along the last axis."""
    found = [(int(np.abs(one).sum(axis=-1).max()), int((one * one).sum(axis=-1).max())) for one in changes if one.size]
    return max((l1 for l1, _ in found), default=0), max((squared for _, squared in found), default=0)


def graph_of(kept: tuple[int, ...], pairs: Pairs, names: dict[tuple[int, ...], Nodes]) -> tuple[Nodes, Edges]:
    if kept not in names:
        names[kept] = Nodes.read(pa.table({"id": [str(node) for node in kept]}))
    number = {node: i for i, node in enumerate(kept)}
    ends = [np.array([number[edge[side]] for edge in pairs], np.int32) for side in (0, 1)]
    return names[kept], Edges(ends[0], ends[1], directed=False)
