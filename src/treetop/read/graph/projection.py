"""Edge-addition projection (Day, Li and Lyu 2016): edges are kept, in a fixed order, while both ends have room.

Take a node x with k kept edges away. Every other node's change of degree is a number of tokens, and each kept edge of x
puts down one. Going on in the order, an edge of two others that is kept in one graph only is kept there because an end
is full in the other: it takes a token from that end and puts one down at the other end, or takes two. So there are
never more than k tokens, k ≤ theta, although all the edges that are kept may be others. That bounds the degrees, and
only them: counts of kept edges between groups have no such bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.basics.buffers import buffers
from treetop.basics.checked import whole_number
from treetop.basics.kernel import kernel
from treetop.basics.siphash import siphash_texts, siphash_word
from treetop.basics.sorting import sort_rows
from treetop.errors import NumberError
from treetop.noise import Key
from treetop.read.graph.edges import Edges
from treetop.read.graph.nodes import Nodes

Words = NDArray[np.uint64]


def projected_degrees(nodes: Nodes, edges: Edges, theta: int, key: Key) -> NDArray[np.int64]:
    """Return the degrees, in and out together, of the edges that are kept: at most `theta` each.

    The order of an edge comes from the key and the ids of its ends, so it is the same whoever else is in the graph.
    """
    theta = whole_number(theta, "the largest degree", least=1)
    for ends in (edges.source, edges.target):
        if len(ends) and not 0 <= ends.min() <= ends.max() < len(nodes):
            raise NumberError(f"an edge ends at a node that is none of the {len(nodes):,}")
    secret = np.frombuffer(key.secret, "<u8").astype(np.uint64)
    names = np.empty(len(nodes), np.uint64)
    siphash_texts(secret[0], secret[1], *buffers(nodes.ids), names)
    rank = np.empty(len(edges), np.uint64)
    _rank_edges(edges.source, edges.target, names, secret, rank)
    _, order = sort_rows([rank], np.arange(len(edges)))
    assert order is not None
    degrees = np.zeros(len(nodes), np.int64)
    _add_edges(edges.source, edges.target, order, theta, degrees)
    return degrees


@kernel
def _rank_edges(source: NDArray[np.int32], target: NDArray[np.int32], names: Words, secret: Words, rank: Words) -> None:
    for i in range(len(rank)):
        one, other = names[source[i]], names[target[i]]
        low, high = (one, other) if one < other else (other, one)
        rank[i] = siphash_word(secret[2] ^ low, secret[3], high)


@kernel
def _add_edges(
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    order: NDArray[np.int64],
    theta: int,
    degrees: NDArray[np.int64],
) -> None:
    for i in order:
        if degrees[source[i]] < theta and degrees[target[i]] < theta:
            degrees[source[i]] += 1
            degrees[target[i]] += 1
