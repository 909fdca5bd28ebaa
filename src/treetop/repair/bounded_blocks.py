"""Two-sided repair of a block with bounded cells: rows are exact, columns as near as the bounds allow.

For targets t the nearest real block is x_ij = clamp(t_ij + a_i + b_j), clamped to the bounds of the cell, with the sums
of rows and columns (`two_sided` is the same without bounds). Lower bounds of cells, rows and columns are subtracted
first, so that only capacity above zero remains. Cells without capacity, such as structural zeros, then cost nothing.

Bounds may leave no block with all sums. The column offsets then grow until the sweeps end, and the second half decides:
from whole rows, units move within rows along shortest paths from columns with a surplus to columns with a deficit,
until there is no path. By the max-flow min-cut theorem (Ford and Fulkerson 1956) the total deviation of columns is then
minimal, and zero if zero is possible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treetop._util.arrays import copy_into
from treetop._util.kernel import kernel
from treetop.repair.whole_blocks import transposed

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

_MOST_NEWTON = 60
_NEAR = 1e-8


@kernel
def repair_bounded_block(
    target: Reals, lower: Ints, upper: Ints, rows: Ints, columns: Ints, spare: int, scale: float, tolerance: float,
    sweeps: int, out: Ints,
) -> np.int64:  # fmt: skip
    """Write whole numbers within bounds, row by row, with exact rows; return the total deviation of the columns.

    If the column sums exceed the row sums by `spare`, an unconstrained row without bounds takes the rest. `scale` is
    the largest step: some standard deviations of the noise.
    """
    height, width = len(rows), len(columns)
    if rows.sum() + spare != columns.sum():
        raise ValueError("rows and columns of a block do not have the same sum")
    left, wanted = rows.copy(), columns.copy()
    size = np.int64(0)
    for i in range(height):
        room = np.int64(0)
        for k in range(i * width, (i + 1) * width):
            left[i] -= lower[k]
            wanted[k - i * width] -= lower[k]
            room = min(room + upper[k] - lower[k], np.int64(1) << 60)
            size += upper[k] > lower[k]
        if left[i] < 0 or left[i] > room:
            raise ValueError("the bounds of a row do not allow its sum")
    start, column, rest, room_of = _open_cells(target, lower, upper, columns, height, size, spare)
    sums = np.full(height + 1, spare, np.int64)
    copy_into(sums, left)
    fitted = _fit(start, column, rest, room_of, sums, wanted, scale, tolerance, sweeps)
    whole = _whole(start, column, fitted, room_of, sums, width)
    short = _balance(start, column, fitted, room_of, wanted, whole, scale)
    copy_into(out, lower)
    for i in range(height):
        for k in range(start[i], start[i + 1]):
            out[i * width + column[k]] += whole[k]
    return short


@kernel
def _open_cells(
    target: Reals, lower: Ints, upper: Ints, columns: Ints, height: int, size: Any, spare: int
) -> tuple[Ints, Ints, Reals, Ints]:
    """Return the start of each row's cells with room, their columns, targets and room; the spare row comes last."""
    width, total = len(columns), max(columns.sum(), 1)
    size += width if spare > 0 else 0
    start, column = np.empty(height + 2, np.int64), np.empty(size, np.int64)
    rest, room = np.empty(size), np.empty(size, np.int64)
    at = 0
    for i in range(height):
        start[i] = at
        for j in range(width):
            k = i * width + j
            if upper[k] > lower[k]:
                column[at], rest[at], room[at] = j, target[k] - lower[k], upper[k] - lower[k]
                at += 1
    start[height] = at
    if spare > 0:
        for j in range(width):
            column[at], rest[at], room[at] = j, spare * (columns[j] / total), spare
            at += 1
    start[height + 1] = at
    return start, column, rest, room


@kernel
def _fit(
    start: Ints, column: Ints, target: Reals, room: Ints, rows: Ints, columns: Ints, scale: float, tolerance: float,
    sweeps: int,
) -> Reals:  # fmt: skip
    """Return each cell's real value before clamping; rows are exact, columns nearly exact if they can be.

    With the rows solved, a column's residual is the gradient of the dual, and the steps are those of `two_sided.fit`.
    """
    width = len(columns)
    a, b = np.zeros(len(rows)), np.zeros(width)
    total, curved = np.empty(width), np.empty(width)
    before, after = b.copy(), b.copy()
    momentum = 1.0
    for _ in range(sweeps):
        total[:] = 0.0
        curved[:] = 0.0
        for i in range(len(rows)):
            a[i] = _offset(target, column, room, b, start[i], start[i + 1], rows[i], a[i])
            _add_row(target, column, room, b, start[i], start[i + 1], a[i], total, curved)
        worst, turned = 0.0, 0.0
        for j in range(width):
            residual = columns[j] - total[j]
            worst = max(worst, abs(residual))
            step = 0.5 * residual / max(curved[j], 0.25)
            after[j] = b[j] + min(max(step, -scale), scale)
            turned += residual * (after[j] - before[j])
        if worst <= tolerance:
            break
        if turned < 0.0:
            momentum = 1.0
        following = 0.5 + 0.5 * np.sqrt(1.0 + 4.0 * momentum * momentum)
        push = (momentum - 1.0) / following
        for j in range(width):
            b[j] = after[j] + min(max(push * (after[j] - before[j]), -scale), scale)
            before[j] = after[j]
        momentum = following
    fitted = np.empty(len(column))
    for i in range(len(rows)):
        a[i] = _offset(target, column, room, b, start[i], start[i + 1], rows[i], a[i])
        for k in range(start[i], start[i + 1]):
            fitted[k] = target[k] + a[i] + b[column[k]]
    return fitted


@kernel
def _offset(
    target: Reals, column: Ints, room: Ints, b: Reals, start: int, stop: int, count: Any, offset: float
) -> float:
    """Return the offset with which a row sums to its count: safeguarded Newton's method.

    Below the lowest offset every cell is empty, above the highest every one is full.
    """
    if start == stop:
        return 0.0
    low, high = np.inf, -np.inf
    for k in range(start, stop):
        value = target[k] + b[column[k]]
        low = min(low, -value)
        high = max(high, min(room[k], count) - value)
    if count == 0:
        return low
    for _ in range(_MOST_NEWTON):
        if not low <= offset <= high:
            offset = 0.5 * (low + high)
        total, inside = 0.0, 0
        for k in range(start, stop):
            value = target[k] + b[column[k]] + offset
            total += min(max(value, 0.0), room[k])
            inside += 0.0 < value < room[k]
        if abs(count - total) <= _NEAR * (1.0 + count):
            break
        if total < count:
            low = offset
        else:
            high = offset
        offset = offset + (count - total) / inside if inside > 0 else 0.5 * (low + high)
    return offset


@kernel
def _add_row(
    target: Reals, column: Ints, room: Ints, b: Reals, start: int, stop: int, offset: float, total: Reals,
    curved: Reals,
) -> None:  # fmt: skip
    """Add the cells of a row to the sums of their columns, and to the derivatives of these."""
    inside = 0
    for k in range(start, stop):
        value = target[k] + offset + b[column[k]]
        total[column[k]] += min(max(value, 0.0), room[k])
        inside += 0.0 < value < room[k]
    gives = 1.0 - 1.0 / inside if inside > 0 else 0.0
    for k in range(start, stop):
        if 0.0 < target[k] + offset + b[column[k]] < room[k]:
            curved[column[k]] += gives


@kernel
def _whole(start: Ints, column: Ints, fitted: Reals, room: Ints, rows: Ints, width: int) -> Ints:
    """Round every row to its sum: floors, then the largest remainders, each plus the deficit of its column so far."""
    whole = np.zeros(len(column), np.int64)
    lacking = np.zeros(width)
    for i in range(len(rows)):
        left, size = rows[i], start[i + 1] - start[i]
        score = np.empty(size)
        for k in range(start[i], start[i + 1]):
            value = min(max(fitted[k], 0.0), room[k])
            whole[k] = np.int64(np.floor(value))
            left -= whole[k]
            score[k - start[i]] = -np.inf if value == 0.0 else value - whole[k] + lacking[column[k]]
            lacking[column[k]] += value - whole[k]
        order = np.argsort(-score) if left != 0 else np.empty(0, np.int64)
        while left != 0:  # one round, but for a row that was not fitted to its end
            for k in range(size):
                chosen = start[i] + order[k if left > 0 else size - 1 - k]
                unit = 1 if left > 0 else -1
                if left != 0 and 0 <= whole[chosen] + unit <= room[chosen]:
                    whole[chosen] += unit
                    lacking[column[chosen]] -= unit
                    left -= unit
    return whole


@kernel
def _balance(
    start: Ints, column: Ints, fitted: Reals, room: Ints, columns: Ints, whole: Ints, scale: float
) -> np.int64:
    """Move units within rows as long as columns come nearer to their sums; return the deviation that is left.

    Cells that the fit has above zero are filled first, then those that it has nearly there, then all others.
    """
    lacking = columns.copy()
    for k in range(len(column)):
        lacking[column[k]] -= whole[k]
    row, by_column, first = transposed(start, column, len(columns))
    for least in (0.0, -scale, -np.inf):
        while np.abs(lacking).sum() > 0:
            if _move(start, column, fitted, room, whole, lacking, row, by_column, first, least) == 0:
                break
    return np.abs(lacking).sum()


@kernel
def _move(
    start: Ints, column: Ints, fitted: Reals, room: Ints, whole: Ints, lacking: Ints, row: Ints, by_column: Ints,
    first: Ints, least: float,
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
                if origin[to] >= 0 or whole[taking] >= room[taking] or (fitted[taking] <= least and whole[taking] == 0):
                    continue
                source[to], sink[to], origin[to] = giving, taking, origin[j]
                queue[size] = to
                size += 1
                if lacking[to] > 0 and not used[origin[j]]:
                    moved += _shift(source, sink, column, room, whole, lacking, to)
                    used[origin[j]] = True
    return moved


@kernel
def _shift(source: Ints, sink: Ints, column: Ints, room: Ints, whole: Ints, lacking: Ints, to: int) -> int:
    """Move as many units along a path as it can take, backwards from its end; return how many."""
    amount, at = lacking[to], to
    while source[at] >= 0:
        amount = min(amount, whole[source[at]], room[sink[at]] - whole[sink[at]])
        at = column[source[at]]
    amount = min(amount, -lacking[at])
    lacking[to] -= amount
    lacking[at] += amount
    while source[to] >= 0:
        whole[source[to]] -= amount
        whole[sink[to]] += amount
        to = column[source[to]]
    return amount
