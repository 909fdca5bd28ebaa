"""Edge-addition projection (Day, Li and Lyu 2016): edges are kept, in a fixed order, while both ends have room.

Take a node x with k kept edges away. Every other node's change of degree is a number of tokens, and each kept edge of x
puts down one. Going on in the order, an edge of two others that is kept in one graph only is kept there because an end
is full in the other: it takes a token from that end and puts one down at the other end, or takes two. So there are
never more than k tokens, k ≤ theta, although all the edges that are kept may be others. That bounds the degrees, and
only them: counts of kept edges between groups have no such bound.

For in- and out-degrees a person is two nodes, one where edges start and one where they end, each with room for theta;
so an edge of two others is kept while its source has room going out, and its target coming in. A person who goes takes
both nodes away, one after the other. Where the out-node goes, every token at an in-node is an edge less, and every one
at an out-node an edge more: an edge that is kept only without it takes a token from its target and puts one down at its
source, and one that is kept only with it the other way round. Where then the in-node goes, it is in-nodes that have
more. So in-degrees of others take at most theta steps down and theta steps up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from treetop._util.arrays import buffers, siphash_texts, siphash_word, sort_rows
from treetop._util.dtypes import Ints, Words, whole_number
from treetop._util.kernel import kernel
from treetop.counts.graph_reader import Edges, Nodes
from treetop.errors import NumberError
from treetop.noise import Key


def projected_degrees(
    nodes: Nodes, edges: Edges, theta: int, key: Key, which: Literal["out", "in", "total"] = "total"
) -> Ints:
    """Return degrees after the projection to theta; the order of an edge depends on the key and its two ids."""
    (degrees,) = projections(nodes, edges, [theta], key, which)
    return degrees


def projections(
    nodes: Nodes, edges: Edges, thetas: Sequence[int], key: Key, which: Literal["out", "in", "total"] = "total"
) -> Iterator[Ints]:
    """Yield the degrees of the edges that are kept for each theta, in one and the same order of the edges."""
    thetas = [whole_number(theta, "the largest degree", least=1) for theta in thetas]
    rank = edge_ranks(nodes, edges, key, ordered=which != "total")
    _, order = sort_rows([rank], np.arange(len(edges)))
    assert order is not None
    for theta in thetas:
        out, come = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
        if which == "total":
            come = out  # one room for both
        _add_edges(edges.source, edges.target, order, theta, out, come)
        yield come if which == "in" else out


def edge_ranks(nodes: Nodes, edges: Edges, key: Key, ordered: bool) -> Words:
    """Return a rank for every edge, random by the key, from the ids of its ends alone: in their order, or in any."""
    for ends in (edges.source, edges.target):
        if len(ends) and not 0 <= ends.min() <= ends.max() < len(nodes):
            raise NumberError(f"an edge ends at a node that is none of the {len(nodes):,}")
    secret = np.frombuffer(key.secret, "<u8").astype(np.uint64)
    names = np.empty(len(nodes), np.uint64)
    siphash_texts(secret[0], secret[1], *buffers(nodes.ids), names)
    rank = np.empty(len(edges), np.uint64)
    _rank_edges(edges.source, edges.target, names, secret, ordered, rank)
    return rank


@kernel
def _rank_edges(
    source: NDArray[np.int32], target: NDArray[np.int32], names: Words, secret: Words, ordered: bool, rank: Words
) -> None:
    for i in range(len(rank)):
        end, other = names[source[i]], names[target[i]]
        low, high = (end, other) if ordered or end < other else (other, end)
        rank[i] = siphash_word(secret[2] ^ low, secret[3], high)


@kernel
def _add_edges(
    source: NDArray[np.int32], target: NDArray[np.int32], order: Ints, theta: int, out: Ints, come: Ints
) -> None:
    for i in order:
        if out[source[i]] < theta and come[target[i]] < theta:
            out[source[i]] += 1
            come[target[i]] += 1


# Shortening lists: of everybody's own out-edges at most m are kept, at random, by a rule that reads that list only.


def shortened(nodes: Nodes, edges: Edges, most: int, key: Key) -> Edges:
    """Return the edges that are kept: of every list those of the lowest ranks, at most `most`."""
    most = whole_number(most, "how many edges of a list count", least=1)
    rank = edge_ranks(nodes, edges, key, ordered=True)
    _, order = sort_rows([edges.source.astype(np.uint64), rank], np.arange(len(edges)))
    assert order is not None
    source = edges.source[order]
    position = np.arange(len(source)) - np.searchsorted(source, source)
    kept = order[position < most]
    return Edges(edges.source[kept], edges.target[kept], edges.directed)
