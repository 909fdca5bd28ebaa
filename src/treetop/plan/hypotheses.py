"""How many nodes of a level are tested: those that are measured there, and those that were measured further up.

A node with a single public descendant at a finer level has all that the descendant has, so that its measurement tests
both. Whether the node was named makes no difference: a test that was not passed is a test.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treetop.domain.spine import Level

Ints = NDArray[np.int64]


def number_of_tests(levels: Sequence[Level], index: int, nodes: NDArray[np.integer]) -> Ints:
    """Return how many nodes of each level, the root's included, are tested by what is measured at level `index`.

    That are all children of the given nodes of the level above (columns) that have several. They and the public tree
    decide it, so that a folder tells it as well as a descent. `levels` are all of the spine.
    """
    level = levels[index - 1]
    first, tests = level.first, np.zeros(len(levels) + 1, np.int64)
    nodes = nodes[:, first[nodes[level.attribute] + 1] - first[nodes[level.attribute]] > 1]
    divided = nodes[level.attribute]
    edges: dict[int, Ints] = {}  # by attribute, where what is below each of its nodes starts, the last one's stop added
    single = np.ones(nodes.shape[1], dtype=bool)  # whether a node has one descendant of the other attributes
    children: Ints = first[divided + 1] - first[divided]  # how many of its children have one of the attribute itself
    for later in levels[index - 1 :]:
        if later.index > index:
            edges[later.attribute] = later.first[edges.get(later.attribute, np.arange(len(later.first)))]
            alone = np.diff(edges[later.attribute]) == 1
            if later.attribute == level.attribute:
                before = np.concatenate([[0], np.cumsum(alone)])
                children = before[first[divided + 1]] - before[first[divided]]
            else:
                single &= alone[nodes[later.attribute]]
        tests[later.index] = children[single].sum()
        if tests[later.index] == 0:  # nor any further down
            break
    return tests
