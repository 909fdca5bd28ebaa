"""How many nodes of a level are tested: those that are measured there, and those that were measured further up.

A node with a single public descendant at a finer level has all that the descendant has, so that its measurement tests
both. Whether the node was named makes no difference: a test that was not passed is a test.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treetop.domain.level import Level
from treetop.domain.narrowed import NarrowLevel

Ints = NDArray[np.int64]


def number_of_tests(levels: Sequence[Level], index: int, nodes: NDArray[np.integer]) -> Ints:
    """Return how many nodes of each level, the root's included, are tested by what is measured at level `index`.

    That are all children of the given nodes of the level above (columns) that have several. They and the public tree
    decide it, so that a folder tells it as well as a descent. `levels` are all of the spine.
    """
    if any(isinstance(level, NarrowLevel) for level in levels[index - 1 :]):
        return _one_by_one(levels, index, nodes)
    level = levels[index - 1]
    tests = np.zeros(len(levels) + 1, np.int64)
    nodes = nodes[:, level.fanout(nodes) > 1]
    edges: dict[int, Ints] = {}  # by attribute, where what is below each of its nodes starts, the last one's stop added
    single = np.ones(nodes.shape[1], dtype=bool)  # whether a node has one descendant of the other attributes
    # By attribute that the level refines, how many of its children have one descendant of that.
    children = {part.attribute: (part, part.fanout(nodes)) for part in level.parts}
    for later in levels[index - 1 :]:
        for below in later.parts if later.index > index else ():
            edges[below.attribute] = below.first[edges.get(below.attribute, np.arange(len(below.first)))]
            alone, own = np.diff(edges[below.attribute]) == 1, nodes[below.attribute]
            if below.attribute in children:
                part, before = children[below.attribute][0], np.concatenate([[0], np.cumsum(alone)])
                children[below.attribute] = part, before[part.first[own + 1]] - before[part.first[own]]
            else:
                single &= alone[own]
        tests[later.index] = np.prod([number[single] for _, number in children.values()], axis=0).sum()
        if tests[later.index] == 0:  # nor any further down
            break
    return tests


def _one_by_one(levels: Sequence[Level], index: int, nodes: NDArray[np.integer]) -> Ints:
    """Return the same where some children are impossible, by listing what is measured."""
    level, tests = levels[index - 1], np.zeros(len(levels) + 1, np.int64)
    fanout = level.fanout(nodes)
    children = level.children(nodes, np.where(fanout > 1, fanout, 0))
    tests[index] = len(children[0])
    for later in levels[index:]:
        children = children[:, later.fanout(children) == 1]
        later.go_down(children, np.zeros(len(children[0]), np.int64))
        tests[later.index] = len(children[0])
    return tests
