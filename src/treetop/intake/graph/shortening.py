"""Shortening lists: of everybody's own out-edges at most m are kept, at random, by a rule that reads that list only.

So exchanging one person's list exchanges at most m kept edges, which is what the sensitivities assume: neither the
lists of others nor the order of the rows have a part in it.
"""

from __future__ import annotations

import numpy as np

from treetop.basics.checked import whole_number
from treetop.basics.sorting import sort_rows
from treetop.intake.graph.edges import Edges
from treetop.intake.graph.nodes import Nodes
from treetop.intake.graph.projection import edge_ranks
from treetop.noise import Key


def shortened(nodes: Nodes, edges: Edges, most: int, key: Key) -> Edges:
    """Return the edges that are kept: of every list those of the lowest ranks, at most `most`."""
    most = whole_number(most, "how many edges of a list count", least=1)
    rank = edge_ranks(nodes, edges, key, ordered=True)
    _, order = sort_rows([edges.source.astype(np.uint64), rank], np.arange(len(edges)))
    assert order is not None
    own = edges.source[order]
    position = np.arange(len(own)) - np.searchsorted(own, own)
    kept = order[position < most]
    return Edges(edges.source[kept], edges.target[kept], edges.directed)
