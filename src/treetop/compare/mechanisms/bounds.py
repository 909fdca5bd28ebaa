"""How far the baselines may be off, level by level: Proposition 1 of the InfTDA paper, with its constants.

The proposition (Boninsegna and Silvestri, PETS 2025) bounds the largest error of a level up to a constant, for trees
whose nodes all have b children. Here the numbers are those of the tree and of the exact laws of the noise:

- noise on every leaf, summed upwards: a node of level l is off by the sum of the noise of the k leaves under it, at
  most as far as a sum of k draws is but with probability β/|V_l|, and so are all nodes of the level but with
  probability β. That grows with √k.
- the stability histogram: a leaf that is there is off by its noise or, where it is dropped, by its count, which is
  below the threshold less the noise; one that is not there, by nothing. With noise within z on all n leaves that are
  there, but with probability β, a node is off by at most min(k, n)·(t − 1 + z), t being the threshold. That grows
  with k.

Negative counts that are set to zero bring each leaf nearer to the truth, but their errors no longer cancel: k·z.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np

from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import Spine
from treetop.noise import Law
from treetop.noise.sum_noise import sum_margin


def leaves_under(spine: Spine) -> list[int]:
    """Return the most leaves that lie under a node, for the total and every level.

    A node is a pair, or tuple, of places, so its leaves are the product of theirs.
    """
    return [
        prod(_most_under(tree, depth) for tree, depth in zip(spine.trees, spine.depths(index), strict=True))
        for index in range(len(spine.levels) + 1)
    ]


def _most_under(tree: Hierarchy, depth: int) -> int:
    under = np.ones(tree.sizes[-1], np.int64)
    for first in reversed(tree.first[depth:]):
        under = np.add.reduceat(under, first[:-1])
    return int(under.max())


def sums_of_noise(spine: Spine, law: Law, risk: Fraction) -> tuple[int, ...]:
    """Bound the largest error of the total and of every level where counts are sums of noisy leaves (equation 4)."""
    nodes = [1, *(level.nodes for level in spine.levels)]
    return tuple(
        sum_margin(law, under, risk / (2 * number)) for number, under in zip(nodes, leaves_under(spine), strict=True)
    )


def sums_of_clipped(spine: Spine, law: Law, risk: Fraction) -> tuple[int, ...]:
    """Bound the same where negative leaves are set to zero."""
    margin = law.margin(risk / spine.leaves)
    return tuple(under * margin for under in leaves_under(spine))


def sums_of_survivors(spine: Spine, law: Law, least: int, records: int, risk: Fraction) -> tuple[int, ...]:
    """Bound the same of a stability histogram of so many records (equation 5)."""
    there = min(spine.leaves, records)
    if there == 0:
        return (0,) * (len(spine.levels) + 1)
    one = least - 1 + law.margin(risk / there)
    return tuple(min(under, there) * one for under in leaves_under(spine))
