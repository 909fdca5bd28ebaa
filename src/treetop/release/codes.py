"""Codes of nodes: the text columns of a table whose rows are nodes of one level, written and read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.domain.spine import Spine


def codes_at(spine: Spine, index: int, nodes: NDArray[np.integer]) -> dict[str, pa.Array]:
    """Return one column for each attribute that is refined at a level, from the nodes of each attribute (row)."""
    about = zip(spine.attributes, spine.trees, spine.depths(index), nodes, strict=True)
    return {name: tree.codes[depth - 1].take(pa.array(own)) for name, tree, depth, own in about if depth > 0}


def nodes_at(spine: Spine, index: int, table: pa.Table) -> NDArray[np.int32]:
    """Return the nodes of every attribute (row); 0 while it is not refined, −1 where its hierarchy lacks the code."""
    nodes = np.zeros((len(spine.attributes), table.num_rows), np.int32)
    about = zip(spine.attributes, spine.trees, spine.depths(index), strict=True)
    for attribute, (name, tree, depth) in enumerate(about):
        if depth > 0:
            codes = pc.cast(table.column(name), pa.string())
            nodes[attribute] = pc.fill_null(pc.index_in(codes, value_set=tree.codes[depth - 1]), -1).to_numpy()
    return nodes
