"""The repairs of one node, by name, with their descriptions for cards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treetop._util.arrays import writable
from treetop._util.choices import Choices
from treetop._util.dtypes import check_sum, whole_number, whole_numbers
from treetop._util.numbers import NO_BOUND
from treetop.errors import NumberError
from treetop.repair.bounded import repair_bounded
from treetop.repair.state import (
    ASCENDING,
    CHEBYSHEV,
    DESCENDING,
    EUCLIDEAN,
    SCRATCH_SIZE,
    STATE_SIZE,
    begin,
    settled,
    solve,
)

Order = Literal["ascending", "descending"]
Repair = Literal["chebyshev", "euclidean", "least-squares"]


RepairFunction = Callable[[NDArray[np.int64], int, Order, int], NDArray[np.int64]]
"""A repair of one node: a function of its measurements, its count, the order and a seed; it sees no private data.

It returns non-negative integers with the count as sum, one for each measurement, and the same for the same arguments.
The seed, any 64-bit word, is for treating equal measurements alike; it has made no noise.
"""


@dataclass(frozen=True)
class NodeRepair:
    """A repair of one node. It is sent to workers by name, so every worker process must register it."""

    name: str
    """Its name in plans."""
    words: tuple[str, ...]
    """Its description on cards; `{order}` stands for the words of the order."""
    function: RepairFunction = field(repr=False)
    code: int | None = None
    """Its code in the compiled kernels; None if it is a Python function that is called once a node."""
    again: bool = False
    """Whether this repair only serves the descent, and all counts are re-estimated from all measurements after it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _registered, (self.name,)


@dataclass(frozen=True)
class RepairOrder:
    """Which entries a repair lowers first."""

    name: Order
    """Its name in plans."""
    words: str
    """Its description on cards."""
    code: int
    """The direction in which kernels go through the measurements: 1 up, −1 down."""


ORDERS: Choices[RepairOrder] = Choices(
    "order",
    RepairOrder("ascending", "small entries being lowered first", ASCENDING),
    RepairOrder("descending", "large entries being lowered first", DESCENDING),
)


def chebyshev(
    measurements: ArrayLike,
    count: int,
    order: Order,
    seed: int,
    *,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> NDArray[np.int64]:
    """Return the non-negative integers with sum `count` and the least largest change (InfTDA, Algorithm 2).

    Among equally good results, `order="ascending"` lowers small measurements first, so that fewer entries are invented,
    and `order="descending"` large ones, so that fewer are lost. `seed`, any 64-bit word, breaks ties of equal
    measurements: the same arguments give the same counts. With bounds, one for all children or one for each, no child
    is below `lower` or above `upper`.

    >>> chebyshev([5, 0, 0], 2, "ascending", 1).tolist()
    [2, 0, 0]
    >>> chebyshev([5, 0, 0], 2, "ascending", 1, lower=[0, 1, 0]).tolist()
    [1, 1, 0]
    """
    return _repair(measurements, count, CHEBYSHEV, order, seed, lower, upper)


def euclidean(
    measurements: ArrayLike,
    count: int,
    order: Order,
    seed: int,
    *,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> NDArray[np.int64]:
    """Return the non-negative integers with sum `count`, and within bounds, that are nearest in squared distance.

    `seed`, any 64-bit word, decides among equally near ones: the same arguments give the same counts.

    >>> euclidean([5, 3, -2], 6, "ascending", 1).tolist(), euclidean([5, 3, -2], 6, "ascending", 1, upper=3).tolist()
    ([4, 2, 0], [3, 3, 0])
    """
    return _repair(measurements, count, EUCLIDEAN, order, seed, lower, upper)


def _repair(
    measurements: ArrayLike,
    count: int,
    code: int,
    order: Order,
    seed: int,
    lower: ArrayLike | None,
    upper: ArrayLike | None,
) -> NDArray[np.int64]:
    x = whole_numbers(np.atleast_1d(measurements), "the measurements")
    count = whole_number(count, "the parent's count")
    if len(x) == 0:
        raise NumberError("there is nothing to repair: a node has at least one child")
    check_sum(x, count, "the measurements and the parent's count")
    if order not in ORDERS:
        raise NumberError(f"order is {order!r}: choose one of {', '.join(ORDERS)}")
    word = np.uint64(whole_number(seed, "the seed", most=2**64 - 1))
    state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
    if lower is not None or upper is not None:
        low, high = _bounds(lower, upper, len(x), count)
        repaired = np.empty_like(x)
        repair_bounded(x, low, high, count, code, ORDERS[order].code, word, state, scratch, repaired)
        return repaired
    begin(state, len(x), count, code, ORDERS[order].code, word)
    solve(state, scratch, x)
    return np.array([settled(state, value) for value in x], dtype=np.int64)


def _bounds(
    lower: ArrayLike | None, upper: ArrayLike | None, size: int, count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a lower and an upper bound for each child, and refuse those that no children with this sum are within."""
    low = _each_child(0 if lower is None else lower, size, "lower")
    high = _each_child(NO_BOUND if upper is None else upper, size, "upper")
    check_sum(low, count, "the lower bounds and the parent's count")
    if low.min() < 0:
        raise NumberError(f"the lower bounds: {low.min():,} is negative, and no count is")
    if (crossed := np.flatnonzero(low > high)).size:
        i = int(crossed[0])
        raise NumberError(f"the bounds of child {i} cross: it is to be at least {low[i]:,} and at most {high[i]:,}")
    if low.sum() > count or high.sum(dtype=np.float64) < count:
        raise NumberError(
            f"no children within these bounds have the sum {count:,}: it is between {low.sum():,} and {high.sum():,}"
        )
    return low, high


def _each_child(bounds: ArrayLike, size: int, which: str) -> NDArray[np.int64]:
    given = np.asarray(bounds)
    if given.shape not in ((), (size,)):
        raise NumberError(f"the {which} bounds: give one for all, or one for each of {size} children")
    whole = whole_numbers(given, f"the {which} bounds", given.ndim, NO_BOUND)
    return writable(np.ascontiguousarray(np.broadcast_to(whole, (size,))))


_REPAIRED = (
    "Each node's measurements were repaired to non-negative whole numbers that sum to their parent, with the least "
    "{change}, {{order}}; ties were broken at random."
)

REPAIRS: Choices[NodeRepair] = Choices(
    "repair",
    NodeRepair("chebyshev", (_REPAIRED.format(change="largest change"),), chebyshev, CHEBYSHEV),
    NodeRepair("euclidean", (_REPAIRED.format(change="sum of squared changes"),), euclidean, EUCLIDEAN),
    NodeRepair(
        "least-squares",
        (
            "On the way down, each node's measurements were repaired to non-negative whole numbers that sum to their "
            "parent, with the least largest change; children that were repaired to zero were not descended into.",
            "Then all measurements were combined, upwards and downwards, by the inverse of their variances, and made "
            "whole numbers again from the top down. At the last level the counts were shared by how likely each unit "
            "is to be there, as far as the measurements themselves tell how true counts are spread. What was not "
            "descended into stays zero.",
        ),
        chebyshev,
        CHEBYSHEV,
        again=True,
    ),
)


def _registered(name: str) -> NodeRepair:
    return REPAIRS[name]


def register_repair(name: str, words: tuple[str, ...], function: RepairFunction) -> NodeRepair:
    """Register a custom repair, a function of one node's measurements; a release checks its results.

    It is called once a node, with all the node's children in memory, so it is slower than the built-in repairs.
    """
    return REPAIRS.register(NodeRepair(name, words, function))
