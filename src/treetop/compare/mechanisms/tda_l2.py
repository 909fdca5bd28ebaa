"""TDA with Euclidean repair as the paper has it: project on the simplex, round, and take the excess from small values.

The measurements are whole, so all entries that the projection leaves above zero share one fractional part. Rounding
them therefore errs by less than one each, and what rounding added or left out is put right by one a node, smallest
first when there is too much, largest first when too little. Either way the large ones end rounded up and the small ones
down, so the direction of rounding does not matter, and the outcome is an integer point of least squared distance, one
of those that the exact Euclidean repair (`tda-l2-exact`) chooses from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from treetop.compare.mechanisms.planned import OwnRepair
from treetop.compare.mechanisms.topdown import LevelRepair
from treetop.noise import Key, Keystream
from treetop.repair import Repair


def project_and_round(
    x: NDArray[np.int64], first: NDArray[np.int64], count: NDArray[np.int64], ties: Key
) -> NDArray[np.int64]:
    """Repair all nodes of a level at once, in whole numbers throughout.

    The projection of x is max(x − θ, 0) with θ = (Σ of the k largest − c)/k, where k is the largest number for which
    the k-th largest exceeds its θ (Held, Wolfe and Crowder 1974). It is rounded half up.
    """
    fanout = np.diff(first)
    node = np.repeat(np.arange(len(count)), fanout)
    tie = np.empty(len(x), np.uint64)
    Keystream(ties).fill(tie, 0)
    order = np.lexsort((tie, -x, node))  # largest first within each node, equals in random order
    value, rank = x[order], np.arange(len(x)) - np.repeat(first[:-1], fanout)
    running = np.cumsum(value)
    before = np.repeat(running[first[:-1]] - value[first[:-1]], fanout)
    excess = running - before - count[node]  # of the largest so far over the count
    above = value > excess // (rank + 1)
    k = np.add.reduceat(above, first[:-1], dtype=np.int64)
    whole, part = np.divmod(excess[first[:-1] + k - 1], k)  # θ = whole + part/k
    lowered = whole + (2 * part > k)
    repaired: NDArray[np.int64] = np.maximum(value - np.repeat(lowered, fanout), 0)
    missing = count - np.add.reduceat(repaired, first[:-1])
    positive = np.add.reduceat(repaired > 0, first[:-1], dtype=np.int64)
    repaired += rank < np.repeat(np.maximum(missing, 0), fanout)
    too_much = np.repeat(np.minimum(missing, 0), fanout)
    last = np.repeat(positive, fanout)
    repaired -= (rank >= last + too_much) & (rank < last)
    result: NDArray[np.int64] = np.empty_like(repaired)
    result[order] = repaired
    return result


@dataclass(frozen=True, eq=False)
class TDAl2(OwnRepair):
    """Top down, each node projected on the simplex and rounded (InfTDA, section 5, where it is called TDA ℓ₂)."""

    name: ClassVar[str] = "tda-l2"
    about: ClassVar[str] = "Top down, each node projected in squared distance and rounded, small values lowered first."
    plan_repair: ClassVar[Repair] = "euclidean"
    level_repair: ClassVar[LevelRepair] = staticmethod(project_and_round)
