"""TDA with Chebyshev repair by a solver: one mixed integer program a node, which takes whatever optimum is found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from treetop.basics.distribution import install_extra
from treetop.compare.mechanisms.mechanism import NotServed
from treetop.compare.mechanisms.planned import OwnRepair
from treetop.compare.mechanisms.topdown import LevelRepair
from treetop.errors import TreetopError
from treetop.noise import Key

Reals = NDArray[np.float64]


def solve_each(
    x: NDArray[np.int64], first: NDArray[np.int64], count: NDArray[np.int64], ties: Key
) -> NDArray[np.int64]:
    """Repair node after node; a solver has no use for tie words."""
    parts = np.split(x, first[1:-1])
    return np.concatenate([solve(part, int(c)) for part, c in zip(parts, count, strict=True)])


@dataclass(frozen=True, eq=False)
class TDAlinf(OwnRepair):
    """Top down, each node repaired by an integer program (InfTDA, section 5, where it is called TDA ℓ∞).

    The paper used GLPK; this is HiGHS. Both know nothing of which optimum invents few entries.
    """

    name: ClassVar[str] = "tda-linf"
    about: ClassVar[str] = "Top down, each node repaired by the least largest change, by a general solver."
    level_repair: ClassVar[LevelRepair] = staticmethod(solve_each)

    def __post_init__(self) -> None:
        super().__post_init__()
        _solver()  # now, before data is read


def solve(x: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return non-negative integers with sum `count` whose largest change from x is least.

    In terms of the change z = y − x: minimise α subject to −α ≤ z ≤ α, z ≥ −x and Σz = c − Σx (InfTDA, section 4.2).
    """
    milp, _ = _solver()
    goal, whole, matrix, low, high = _program(len(x))
    change = np.array([count - int(x.sum())], np.float64)
    found = milp(
        goal,
        integrality=whole,
        bounds=(np.append(-x, 0).astype(np.float64), np.inf),
        constraints=(matrix, np.append(low, change), np.append(high, change)),
        options={"mip_rel_gap": 0},
    )
    if found.x is None:
        raise TreetopError(f"the solver found nothing for a node of {len(x)} children: {found.message}")
    y: NDArray[np.int64] = x + np.rint(found.x[:-1]).astype(np.int64)
    if y.min() < 0 or int(y.sum()) != count:
        raise TreetopError(f"the solver left its constraints on a node of {len(x)} children: its counts are too large")
    return y


@lru_cache(maxsize=4096)
def _program(size: int) -> tuple[Reals, Reals, Any, Reals, Reals]:
    """Return what is the same for all nodes with so many children: goal, integrality, constraints and their bounds.

    The variables are the changes z and, last, α; the rows are z − α ≤ 0, z + α ≥ 0, and the sum, whose bounds
    each node adds.
    """
    _, sparse = _solver()
    eye, one = sparse.eye_array(size), np.ones((size, 1))
    rows = [[eye, -one], [eye, one], [one.T, np.zeros((1, 1))]]
    goal = np.append(np.zeros(size), 1.0)
    low = np.append(np.full(size, -np.inf), np.zeros(size))
    high = np.append(np.zeros(size), np.full(size, np.inf))
    return goal, 1 - goal, sparse.csc_array(sparse.block_array(rows)), low, high


def _solver() -> tuple[Any, Any]:
    """Return SciPy's solver of integer programs and its sparse matrices, which are an extra."""
    try:
        from scipy import sparse
        from scipy.optimize import milp
    except ImportError:
        raise NotServed(
            f"tda-linf needs scipy, which is not installed: {install_extra('compare')}, or leave tda-linf out"
        ) from None
    return milp, sparse
