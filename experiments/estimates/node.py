"""One constructed node: what repairs do to large children beside one whose measurement is far below zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.estimates.closest import closest
from treetop import repair
from treetop.noise import Key

Ints = NDArray[np.int64]

TRUE = np.array([400, 300, 200, 30, 20, 10, 5, 5, 0, 0, 0, 0])
"""The true counts of the children: three large ones, some small ones, and four that are empty."""
LARGE = 3
"""How many of them are large."""
LOW = -60
"""The very negative measurement of an empty child."""
DRAWS = 4000


def _closest(x: Ints, count: int, seed: int) -> Ints:
    key = Key(b"one node".ljust(24) + seed.to_bytes(8, "little"))
    return closest(x, np.array([0, len(x)]), np.array([count]), key)


REPAIRS: Mapping[str, Callable[[Ints, int, int], Ints]] = {
    "fewer-invented": lambda x, count, seed: repair.chebyshev(x, count, "ascending", seed=seed),
    "fewer-lost": lambda x, count, seed: repair.chebyshev(x, count, "descending", seed=seed),
    "euclidean": lambda x, count, seed: repair.euclidean(x, count, "ascending", seed=seed),
    "closest": _closest,
}
"""The repairs, each as a function of measurements, parent's count and seed."""


@dataclass(frozen=True)
class Pushed:
    """What one repair does to the large children, and to all."""

    shown: tuple[int, ...]
    """The outcome where all is measured exactly, but for one empty child that is very negative."""
    change: float
    """The mean of released less true count of a large child, over draws in which that child is so negative."""
    error: float
    """The mean absolute error of all children, over the same draws."""
    change_of_any: float
    """The mean of released less true count of a large child, over draws with any noise."""
    error_of_any: float
    """The mean absolute error of all children, over those."""


@dataclass(frozen=True)
class Node:
    """The constructed node, and what each repair makes of it."""

    sigma: float
    """The standard deviation of the noise."""
    draws: int
    """How many sets of measurements were drawn of each kind."""
    by_repair: Mapping[str, Pushed]
    """What each repair does."""


def constructed_node(sigma: float, draws: int = DRAWS) -> Node:
    """Measure the node many times, and repair it in every way; the parent's count is the true one."""
    rng = np.random.default_rng(20250)  # rounded normal noise is near enough here: nothing is released
    total = int(TRUE.sum())
    shown = np.append(TRUE[:-1], LOW)
    drawn = TRUE + np.rint(rng.normal(0, sigma, (draws, len(TRUE)))).astype(np.int64)
    low = drawn.copy()
    low[:, -1] = LOW
    found = {}
    for name, function in REPAIRS.items():
        off, any_off = (np.stack([function(row, total, i) for i, row in enumerate(x)]) - TRUE for x in (low, drawn))
        found[name] = Pushed(
            shown=tuple(function(shown, total, 0).tolist()),
            change=float(off[:, :LARGE].mean()),
            error=float(np.abs(off).mean()),
            change_of_any=float(any_off[:, :LARGE].mean()),
            error_of_any=float(np.abs(any_off).mean()),
        )
    return Node(sigma, draws, found)
