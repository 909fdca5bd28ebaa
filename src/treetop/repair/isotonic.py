"""Isotonic repair: the nearest sequences that never decrease, by pooling adjacent violators.

Cumulative counts that were measured with noise may go down; the nearest sequence in squared distance that does not is
made of blocks, each at its mean (Barlow, Bartholomew, Bremner and Brunk 1972). Clipping it gives the nearest within
bounds. Rounding it gives the nearest of whole numbers: at every threshold k − ½ the set of entries above it is optimal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treetop.basics.checked import real_numbers, whole_numbers
from treetop.basics.kernel import kernel
from treetop.errors import NumberError

Numbers = NDArray[np.int64] | NDArray[np.float64]


@kernel
def pool(values: Numbers, sums: Numbers, sizes: NDArray[np.int64]) -> int:
    """Write the sum and size of each block of the nearest sequence; return how many blocks there are.

    Values may be integers: means are compared by cross-multiplication, which is then exact.
    """
    blocks = 0
    for i in range(len(values)):
        sums[blocks] = values[i]
        sizes[blocks] = 1
        while blocks > 0 and sums[blocks - 1] * sizes[blocks] >= sums[blocks] * sizes[blocks - 1]:
            blocks -= 1
            sums[blocks] += sums[blocks + 1]
            sizes[blocks] += sizes[blocks + 1]
        blocks += 1
    return blocks


@kernel
def _whole_rows(values: NDArray[np.int64], high: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    sums, sizes = np.empty(values.shape[1], np.int64), np.empty(values.shape[1], np.int64)
    for r in range(len(values)):
        at = 0
        for b in range(pool(values[r], sums, sizes)):
            rounded = (2 * sums[b] + sizes[b]) // (2 * sizes[b])  # ⌊mean + ½⌋
            out[r, at : at + sizes[b]] = min(max(rounded, 0), high[r])
            at += sizes[b]


@kernel
def _real_rows(values: NDArray[np.float64], high: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    sums, sizes = np.empty(values.shape[1]), np.empty(values.shape[1], np.int64)
    for r in range(len(values)):
        at = 0
        for b in range(pool(values[r], sums, sizes)):
            out[r, at : at + sizes[b]] = min(max(sums[b] / sizes[b], 0.0), high[r])
            at += sizes[b]


def isotonic(values: ArrayLike, high: ArrayLike) -> NDArray[np.int64]:
    """Return for each row the nearest non-decreasing whole numbers between 0 and `high`, a number or one a row.

    >>> isotonic([[3, 1, 4], [-2, 9, 5]], 6).tolist()
    [[2, 2, 4], [0, 6, 6]]
    """
    given = np.asarray(values)
    if given.ndim != 2 or given.size == 0 or not np.issubdtype(given.dtype, np.integer):
        raise NumberError(f"give rows of whole numbers, not {given.dtype} of shape {given.shape}")
    largest = max(int(given.max()), -int(given.min()))
    if largest * given.shape[1] ** 2 >= 2**62:
        raise NumberError(f"rows of {given.shape[1]} entries up to {largest} do not fit 64 bits when summed")
    rows = np.ascontiguousarray(given, np.int64)
    bound = whole_numbers(_one_a_row(high, rows), "the upper bounds", most=2**62)
    if bound.min() < 0:
        raise NumberError(f"the upper bound is {bound.min()}, below the lower one, 0")
    out = np.empty(rows.shape, np.int64)
    _whole_rows(rows, bound, out)
    return out


def relax_isotonic(values: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
    """Return for each row the nearest non-decreasing real numbers between 0 and `high`.

    >>> relax_isotonic([[3.0, 2.0, 4.0]], 9).tolist()
    [[2.5, 2.5, 4.0]]
    """
    rows = real_numbers(values, "the rows", ndim=2)
    if rows.size == 0:
        raise NumberError(f"give rows of finite numbers, not an array of shape {rows.shape}")
    bound = np.asarray(_one_a_row(high, rows), np.float64)
    if np.isnan(bound).any() or bound.min() < 0:
        raise NumberError("the upper bounds are numbers, 0 or more")
    out = np.empty(rows.shape)
    _real_rows(rows, np.ascontiguousarray(bound), out)
    return out


def _one_a_row(high: ArrayLike, rows: Numbers) -> NDArray[Any]:
    given = np.asarray(high)
    if given.shape not in ((), (len(rows),)) or given.dtype == object:
        raise NumberError(f"give one upper bound, or one for each of {len(rows)} rows, not an array of {given.shape}")
    return np.broadcast_to(given, len(rows))
