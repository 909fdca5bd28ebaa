"""Round a block's real counts to whole numbers, with exact sums of all rows and columns.

Floors, and in every row the largest remainders, each plus the deficit of its column so far; then units are moved within
rows along the shortest paths from columns with a surplus to columns with a deficit. The polytope of a block is
integral, and all cells are allowed: rows and columns come out exact.

With bounds, units move as long as columns come nearer to their sums. By the max-flow min-cut theorem (Ford and
Fulkerson 1956) the total deviation of columns is then minimal, and zero if zero is possible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treetop._util.kernel import kernel, kernel_in_place, kernel_inlined

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
Marks = NDArray[np.bool_]

_FEW = 8
"""A column with a larger deficit after all moves gets several cells at once."""
_SHORT = 15
"""Up to this many indices are sorted by insertion, as in Numba's `argsort`."""


@kernel
def round_block(
    target: Reals, likely: Marks, start: Ints, column: Ints, fitted: Reals, rows: Ints, columns: Ints, spare: int,
    out: Ints,
) -> None:  # fmt: skip
    """Write whole numbers near the fitted values of candidates, with the sums of rows and columns exact.

    If no path through candidates is left, the cell with the highest target that joins two columns becomes a candidate.
    """
    total, width = columns.sum(), len(columns)
    if rows.sum() + spare != total:
        raise ValueError("rows and columns of a block do not have the same sum")
    whole = whole_rows(start, column, fitted, rows, spare, width, None)
    while balance(start, column, fitted, columns, whole, 1.0, None) > 0:
        _join(target, likely, start, column, columns, whole)
        more = candidates(target, likely, rows, columns, spare, total)
        fitted, whole = moved(start, column, fitted, more[0], more[1]), moved(start, column, whole, more[0], more[1])
        start, column = more[0], more[1]
    out[:] = 0
    for i in range(len(rows)):
        for k in range(start[i], start[i + 1]):
            out[i * width + column[k]] = whole[k]


@kernel
def candidates(
    target: Reals, likely: Marks, rows: Ints, columns: Ints, spare: int, total: int
) -> tuple[Ints, Ints, Reals]:
    """Return the start of each row's candidates, their columns and their targets; the spare row comes last."""
    height, width = len(rows), len(columns)
    size = width if spare > 0 else 0
    for one in likely:
        size += one
    start, column, wanted = np.empty(height + 2, np.int64), np.empty(size, np.int64), np.empty(size)
    at = 0
    for i in range(height):
        start[i] = at
        for j in range(width):
            if likely[i * width + j]:
                column[at], wanted[at] = j, target[i * width + j]
                at += 1
    start[height] = at
    if spare > 0:
        for j in range(width):
            if columns[j] > 0:
                column[at], wanted[at] = j, spare * (columns[j] / total)
                at += 1
    start[height + 1] = at
    return start, column[:at], wanted[:at]


@kernel
def whole_rows(start: Ints, column: Ints, fitted: Reals, rows: Ints, spare: int, width: int, room: Ints | None) -> Ints:
    """Round every row to its sum: floors, then the largest remainders, each plus the deficit of its column so far."""
    whole = np.zeros(len(column), np.int64)
    lacking, against, order = np.zeros(width), np.empty(width), np.empty(width, np.int64)
    pending = np.empty(128, np.int64)
    for i in range(len(start) - 1):
        left = rows[i] if i < len(rows) else np.int64(spare)
        size = start[i + 1] - start[i]
        if size == 0:
            continue
        for k in range(start[i], start[i + 1]):
            value = fitted[k] if room is None else min(max(fitted[k], 0.0), float(room[k]))
            whole[k] = np.int64(np.floor(value))
            left -= whole[k]
            against[k - start[i]] = np.inf if value == 0.0 else -(value - whole[k] + lacking[column[k]])
            lacking[column[k]] += value - whole[k]
        if left != 0:
            _sort_indices(against, size, order, pending)
            at = 0
            while left > 0:  # at most one for each: remainders are below one
                chosen = start[i] + order[at % size]
                at += 1
                if room is not None and whole[chosen] >= room[chosen]:
                    continue
                whole[chosen] += 1
                lacking[column[chosen]] -= 1.0
                left -= 1
            for _ in range(-left):  # a row that was not fitted to its end
                for chosen in range(start[i], start[i + 1]):
                    if whole[chosen] > 0:
                        whole[chosen] -= 1
                        lacking[column[chosen]] += 1.0
                        break
    return whole


@kernel_in_place
def _sort_indices(values: Reals, size: int, order: Ints, pending: Ints) -> None:
    """Write the indices of the first `size` values, sorted by value; `pending` is scratch memory for 64 ranges.

    This is the quicksort of Numba's `np.argsort`, with the same order of equal values. It compiles faster: Numba's took
    an eighth of the first run.
    """
    for k in range(size):
        order[k] = k
    low, high, ranges = 0, size - 1, 0
    while True:
        while high - low >= _SHORT:
            at = _partition(values, order, low, high)
            if high - at > at - low:  # the longer part waits
                pending[2 * ranges], pending[2 * ranges + 1] = at + 1, high
                high = at - 1
            else:
                pending[2 * ranges], pending[2 * ranges + 1] = low, at - 1
                low = at + 1
            ranges += 1
        for k in range(low + 1, high + 1):
            index, at = order[k], k
            while at > low and values[index] < values[order[at - 1]]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = index
        if ranges == 0:
            break
        ranges -= 1
        low, high = pending[2 * ranges], pending[2 * ranges + 1]


@kernel_inlined
def _partition(values: Reals, order: Ints, low: int, high: int) -> int:
    """Partition indices around the median of the first, middle and last value; return its position."""
    middle = (low + high) >> 1
    if values[order[middle]] < values[order[low]]:
        order[low], order[middle] = order[middle], order[low]
    if values[order[high]] < values[order[middle]]:
        order[high], order[middle] = order[middle], order[high]
    if values[order[middle]] < values[order[low]]:
        order[low], order[middle] = order[middle], order[low]
    pivot = values[order[middle]]
    order[high], order[middle] = order[middle], order[high]
    i, j = low, high - 1
    while True:
        while i < high and values[order[i]] < pivot:
            i += 1
        while j >= low and pivot < values[order[j]]:
            j -= 1
        if i >= j:
            break
        order[i], order[j] = order[j], order[i]
        i += 1
        j -= 1
    order[i], order[high] = order[high], order[i]
    return i


@kernel
def balance(
    start: Ints, column: Ints, fitted: Reals, columns: Ints, whole: Ints, near: float, room: Ints | None
) -> np.int64:
    """Move units within rows as long as columns come nearer to their sums; return the deviation that is left.

    Cells that the fit has above zero are filled first, then those less than `near` below, then all others.
    """
    lacking = columns.copy()
    for k in range(len(column)):
        lacking[column[k]] -= whole[k]
    if np.abs(lacking).sum() == 0:
        return np.int64(0)
    row, by_column, first = transposed(start, column, len(columns))
    for least in (0.0, -near, -np.inf):
        _move_within_rows(start, column, fitted, whole, lacking, least, room)
        while np.abs(lacking).sum() > 0:
            if _move(start, column, fitted, whole, lacking, row, by_column, first, least, room) == 0:
                break
    return np.abs(lacking).sum()


@kernel
def transposed(start: Ints, column: Ints, width: int) -> tuple[Ints, Ints, Ints]:
    """Return the row of every candidate, and the candidates by column with each column's start."""
    row = np.empty(len(column), np.int64)
    first = np.zeros(width + 1, np.int64)
    for i in range(len(start) - 1):
        for k in range(start[i], start[i + 1]):
            row[k] = i
            first[column[k] + 1] += 1
    first = np.cumsum(first)
    at = first.copy()
    by_column = np.empty(len(column), np.int64)
    for k in range(len(column)):
        by_column[at[column[k]]] = k
        at[column[k]] += 1
    return row, by_column, first


@kernel_in_place
def _move_within_rows(
    start: Ints, column: Ints, fitted: Reals, whole: Ints, lacking: Ints, least: float, room: Ints | None
) -> None:
    """Move units, as many as a row has, from columns with too much straight to columns with too little."""
    for i in range(len(start) - 1):
        for giving in range(start[i], start[i + 1]):
            if whole[giving] == 0 or lacking[column[giving]] >= 0:
                continue
            for taking in range(start[i], start[i + 1]):
                to = column[taking]
                if lacking[to] > 0 and (fitted[taking] > least or whole[taking] > 0):
                    amount = min(whole[giving], lacking[to], -lacking[column[giving]])
                    if room is not None:
                        amount = min(amount, room[taking] - whole[taking])
                    whole[giving] -= amount
                    whole[taking] += amount
                    lacking[to] -= amount
                    lacking[column[giving]] += amount


@kernel
def _move(
    start: Ints, column: Ints, fitted: Reals, whole: Ints, lacking: Ints, row: Ints, by_column: Ints, first: Ints,
    least: float, room: Ints | None,
) -> int:  # fmt: skip
    """Move units along shortest paths that share no row or column; return the number of units moved."""
    width = len(lacking)
    source, sink = np.full(width, -1, np.int64), np.full(width, -1, np.int64)
    origin, queue = np.full(width, -1, np.int64), np.empty(width, np.int64)
    done, used = np.zeros(len(start) - 1, np.bool_), np.zeros(width, np.bool_)
    size, at, moved = 0, 0, 0
    for j in range(width):
        if lacking[j] < 0:
            queue[size], origin[j] = j, j
            size += 1
    while at < size:
        j = queue[at]
        at += 1
        if used[origin[j]]:
            continue
        for index in range(first[j], first[j + 1]):
            giving = by_column[index]
            i = row[giving]
            if whole[giving] == 0 or done[i]:
                continue
            done[i] = True
            for taking in range(start[i], start[i + 1]):
                to = column[taking]
                if origin[to] >= 0 or (fitted[taking] <= least and whole[taking] == 0):
                    continue
                if room is not None and whole[taking] >= room[taking]:
                    continue
                source[to], sink[to], origin[to] = giving, taking, origin[j]
                queue[size] = to
                size += 1
                if lacking[to] > 0 and not used[origin[j]]:
                    moved += _shift(source, sink, column, whole, lacking, to, room)
                    used[origin[j]] = True
    return moved


@kernel_in_place
def _shift(source: Ints, sink: Ints, column: Ints, whole: Ints, lacking: Ints, to: int, room: Ints | None) -> int:
    """Move as many units along a path as it can take, backwards from its end; return how many."""
    amount, at = lacking[to], to
    while source[at] >= 0:
        amount = min(amount, whole[source[at]])
        if room is not None:
            amount = min(amount, room[sink[at]] - whole[sink[at]])
        at = column[source[at]]
    amount = min(amount, -lacking[at])
    lacking[to] -= amount
    lacking[at] += amount
    while source[to] >= 0:
        whole[source[to]] -= amount
        whole[sink[to]] += amount
        to = column[source[to]]
    return amount


@kernel
def _join(target: Reals, likely: Marks, start: Ints, column: Ints, columns: Ints, whole: Ints) -> None:
    """If no path is left, add candidates that join columns with a surplus to those with a deficit."""
    width = len(columns)
    lacking, given = wanting(start, column, columns, whole)
    left, best_row, best = lacking.copy(), np.full(width, -1, np.int64), np.full(width, -np.inf)
    join_rows(target, likely, given[: len(likely) // width], lacking, 0, left, best_row, best)
    for j in range(width):
        if best_row[j] >= 0:
            likely[best_row[j] * width + j] = True


@kernel
def wanting(start: Ints, column: Ints, columns: Ints, whole: Ints) -> tuple[Ints, Ints]:
    """Return the deficit of every column, and the units that every row has in columns with a surplus."""
    lacking, given = columns.copy(), np.zeros(len(start) - 1, np.int64)
    for k in range(len(column)):
        lacking[column[k]] -= whole[k]
    for i in range(len(given)):
        for k in range(start[i], start[i + 1]):
            if lacking[column[k]] < 0:
                given[i] += whole[k]
    return lacking, given


@kernel_in_place
def join_rows(
    target: Reals, likely: Marks, given: Ints, lacking: Ints, first: int, left: Ints, best_row: Ints, best: Reals
) -> None:
    """Look for new candidates in rows with spare units, from the row `first` on.

    For each column with a deficit the likeliest cell is written down. Others become candidates at once as long as the
    rows so far cannot cover the remaining deficit.
    """
    width = len(lacking)
    for i in range(len(given)):
        if given[i] == 0:
            continue
        for j in range(width):
            if left[j] <= 0 or likely[i * width + j]:
                continue
            if best_row[j] < 0 or target[i * width + j] > best[j]:
                best_row[j], best[j] = first + i, target[i * width + j]
            if lacking[j] > _FEW:
                likely[i * width + j] = True
                left[j] -= given[i]


@kernel
def moved(start: Ints, column: Ints, values: Any, new_start: Ints, new_column: Ints) -> Any:
    """Return the values of candidates in a larger set of candidates; the new ones are zero."""
    found = np.zeros(len(new_column), values.dtype)
    for i in range(len(start) - 1):
        k = start[i]
        for new in range(new_start[i], new_start[i + 1]):
            if k < start[i + 1] and column[k] == new_column[new]:
                found[new] = values[k]
                k += 1
    return found
