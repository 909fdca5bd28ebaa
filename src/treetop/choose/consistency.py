"""What the noise of each level adds to the errors of a consistent release: closed forms for least-squares repair.

Where children are moved to their parent's count by least squares, and none is clipped at zero, a child's error is that
of its measurement less the siblings' mean, plus its part 1/b of its parent's error. So the weighted total of squared
errors is Σ C_l·σ_l² over the levels, with D_v = w + Σ_children D_c / b², the weight of an error of node v in all that
lies under it, and C_l = Σ (1 − 1/b)·D_c over the nodes c of level l. The error of a real release is not quite that:
clipping makes it smaller, most of all where nodes are empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from treetop.choose.error_laws import Floats
from treetop.choose.layers import layers
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.level import Refinement
from treetop.domain.spine import Spine
from treetop.intake.counts import Counts


def public_coefficients(spine: Spine, weights: Sequence[float]) -> Floats:
    """Return C for the total and every level of the whole public tree, given a weight for each of them.

    The tree of a spine is a product, so D is a sum of products, and no more is computed than the attributes have nodes.
    """
    last = len(spine.levels)
    depths = [spine.depths(index) for index in range(last + 1)]
    result = np.zeros(last + 1)
    for index in range(last + 1):
        for finer in range(index, last + 1):
            if weights[finer] == 0:
                continue
            passed = [
                _passed(tree, depth, fine)
                for tree, depth, fine in zip(spine.trees, depths[index], depths[finer], strict=True)
            ]
            parts = spine.levels[index - 1].parts if index > 0 else ()
            for last_part in range(max(len(parts), 1)):
                result[index] += _product(weights[finer], passed, parts[: last_part + 1])
    return result


def _product(weight: float, passed: Sequence[Floats], parts: Sequence[Refinement]) -> float:
    """Return a weight times the summed product of what attributes pass, each of these by 1/b, the last by 1 − 1/b.

    Over the attributes that a level refines, these add up to 1 − 1/b of all of them together.
    """
    own = list(passed)
    for part in parts:
        children = np.diff(part.first)
        share = 1 - 1 / children if part is parts[-1] else 1 / children
        own[part.attribute] = own[part.attribute] * np.repeat(share, children)
    return math.prod((float(one.sum()) for one in own), start=weight)


def reached_coefficients(spine: Spine, twin: Counts, weights: Sequence[float]) -> Floats:
    """Return C for the nodes that a descent of a public table would measure; empty nodes end there."""
    tree = list(layers(spine, twin))
    result = np.zeros(len(tree) + 1)
    below = np.full(len(tree[-1].count), weights[-1])
    for index in range(len(tree), 0, -1):
        layer = tree[index - 1]
        children = layer.children.astype(np.float64)
        known = np.bincount(layer.parent, below, len(children))
        empty = children - np.bincount(layer.parent, minlength=len(children))
        under = known + empty * weights[index]
        result[index] = float(((1 - 1 / children) * under).sum())
        below = weights[index - 1] + under / children**2
    result[0] = float(below.sum())
    return result


def _passed(tree: Hierarchy, depth: int, finer: int) -> Floats:
    """For every node of a depth (0 is the root), the summed squares of what an error passes to those of a finer one."""
    passed = np.ones(tree.sizes[finer - 1] if finer else 1)
    for first in reversed(tree.first[depth:finer]):
        passed = np.add.reduceat(passed, first[:-1]) / np.diff(first) ** 2
    return passed
