"""Two-sided repair: a block of counts that agrees with its rows and with its columns at once.

The rows of a block are retained nodes, the columns the children that all of them can have, and both sums are known: P
of the rows from the level above, M of the columns from a margin. Of targets t the nearest real block is

    x_ij = max(0, t_ij + a_i + b_j),   Σ_j x_ij = P_i,   Σ_i x_ij = M_j,

and every row can have every column, so that there always is one. Offsets a are found exactly, row by row, offsets b by
steps that all columns take together: with the rows solved, a column's residual M_j − Σ_i x_ij is the gradient of the
dual, and Σ_i (1 − 1/n_i) over its cells above zero, n_i of them in a row, its curvature. The steps are halved, which
makes them safe, and accelerated (Nesterov 1983, started again where they turn: O'Donoghue and Candès 2015).

Nearly all cells are zero, so that only candidates are fitted; a sweep over all others looks for cells that the offsets
lift above zero, which then become candidates too. Without any, the fit is that of the whole block.

Then whole numbers: floors, and in every row the largest remainders, with what its columns lack so far added to them;
then units are moved within rows along the shortest paths from columns with too much to columns with too little. The
polytope is integral, and all cells are allowed: rows and columns come out exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
Marks = NDArray[np.bool_]

TOLERANCE = 0.01
"""A fit ends when no column is off by more: what is left is for the whole numbers."""
MOST_SWEEPS = 60
"""So many steps at a time, before all other cells are looked at."""
MOST_ROUNDS = 30
"""So often candidates are added to; what is still not optimal then is made exact by moves of units all the same."""
_MOST_NEWTON = 60
_FEW = 8
"""A column that lacks more than so many units after all moves gets several cells at once."""


@kernel
def repair_block(
    target: Reals, likely: Marks, rows: Ints, columns: Ints, spare: int, scale: float, tolerance: float, sweeps: int,
    rounds: int, out: Ints,
) -> None:  # fmt: skip
    """Write whole numbers with these sums of rows and columns, row by row, that are near to targets.

    `likely` cells are the first candidates. Where columns have more than rows, `spare` more, a row of which nothing is
    known takes the rest. `scale` is how far one step may go: some standard deviations of the noise.
    """
    if len(rows) == 1 and spare == 0:
        out[:] = columns
    elif len(columns) == 1:
        out[:] = rows
    else:
        start, column, fitted = fit_block(target, likely, rows, columns, spare, scale, tolerance, sweeps, rounds)
        round_block(target, likely, start, column, fitted, rows, columns, spare, out)


@kernel
def fit_block(
    target: Reals, likely: Marks, rows: Ints, columns: Ints, spare: int, scale: float, tolerance: float, sweeps: int,
    rounds: int,
) -> tuple[Ints, Ints, Reals]:  # fmt: skip
    """Return the nearest real block: where each row's candidates start, their columns, and what they have.

    All other cells are zero. The spare row comes last.
    """
    open_block(target, likely, rows, columns)
    a, b = np.zeros(len(rows) + 1), np.zeros(len(columns))
    total = columns.sum()
    start, column, fitted = _candidates(target, likely, rows, columns, spare, total)
    for number in range(max(rounds, 1)):
        few = min(sweeps, 5 << min(number, 10))  # at first, candidates are too few for a fit to be worth much
        worst = fit(start, column, fitted, rows, columns, spare, scale, tolerance, few, a, b)
        if _lift(target, likely, columns, a, b) > 0:
            start, column, fitted = _candidates(target, likely, rows, columns, spare, total)
        elif worst <= tolerance:
            break
    for i in range(len(start) - 1):
        if start[i] < start[i + 1]:  # once more, since candidates may have come, and columns have moved
            count = rows[i] if i < len(rows) else spare
            a[i] = _offset(fitted, column, b, start[i], start[i + 1], count, a[i])
        for k in range(start[i], start[i + 1]):
            fitted[k] = max(fitted[k] + a[i] + b[column[k]], 0.0)
    return start, column, fitted


@kernel
def round_block(
    target: Reals, likely: Marks, start: Ints, column: Ints, fitted: Reals, rows: Ints, columns: Ints, spare: int,
    out: Ints,
) -> None:  # fmt: skip
    """Write whole numbers near to what was fitted for candidates, with the sums of rows and columns exact.

    Where no path through candidates is left, the cell with the highest target that joins two columns becomes one.
    """
    total, width = columns.sum(), len(columns)
    if rows.sum() + spare != total:
        raise ValueError("rows and columns of a block do not have the same sum")
    whole = _whole(start, column, fitted, rows, spare, width)
    while not _balance(start, column, fitted, columns, whole):
        _join(target, likely, start, column, columns, whole)
        more = _candidates(target, likely, rows, columns, spare, total)
        fitted, whole = _moved(start, column, fitted, more[0], more[1]), _moved(start, column, whole, more[0], more[1])
        start, column = more[0], more[1]
    out[:] = 0
    for i in range(len(rows)):
        for k in range(start[i], start[i + 1]):
            out[i * width + column[k]] = whole[k]


@kernel
def open_block(target: Reals, likely: Marks, rows: Ints, columns: Ints) -> None:
    """Make sure that every row, and every column with a sum, has a candidate, and empty columns have none."""
    height, width = len(rows), len(columns)
    best_row = np.full(width, -1, np.int64)
    best = np.full(width, -np.inf)
    for i in range(height):
        there, highest = False, -1
        for j in range(width):
            if columns[j] == 0:
                likely[i * width + j] = False
                continue
            there = there or likely[i * width + j]
            if highest < 0 or target[i * width + j] > target[i * width + highest]:
                highest = j
            if likely[i * width + j]:
                best_row[j] = height
            elif best_row[j] < height and target[i * width + j] > best[j]:
                best_row[j], best[j] = i, target[i * width + j]
        if not there:
            likely[i * width + highest] = True
    for j in range(width):
        if columns[j] > 0 and best_row[j] < height:
            likely[best_row[j] * width + j] = True


@kernel
def _candidates(
    target: Reals, likely: Marks, rows: Ints, columns: Ints, spare: int, total: int
) -> tuple[Ints, Ints, Reals]:
    """Return where each row's candidates start, their columns and their targets; the spare row comes last."""
    height, width = len(rows), len(columns)
    size = np.count_nonzero(likely) + (width if spare > 0 else 0)
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
def fit(
    start: Ints, column: Ints, target: Reals, rows: Ints, columns: Ints, spare: int, scale: float, tolerance: float,
    sweeps: int, a: Reals, b: Reals,
) -> float:  # fmt: skip
    """Improve the offsets of candidates; return by how much the worst column is still off."""
    width = len(columns)
    total, curved = np.empty(width), np.empty(width)
    before, after = b.copy(), b.copy()
    momentum, worst = 1.0, 0.0
    for _ in range(sweeps):
        total[:] = 0.0
        curved[:] = 0.0
        for i in range(len(start) - 1):
            if start[i] < start[i + 1]:
                count = rows[i] if i < len(rows) else spare
                a[i] = _offset(target, column, b, start[i], start[i + 1], count, a[i])
                _add_row(target, column, b, start[i], start[i + 1], a[i], total, curved)
        worst, turned = 0.0, 0.0
        for j in range(width):
            if columns[j] == 0:
                continue
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
    return worst


@kernel
def _offset(target: Reals, column: Ints, b: Reals, start: int, stop: int, count: int, offset: float) -> float:
    """Return the offset with which a row sums to its count: Newton's method, exact once no cell enters or leaves."""
    near = 1e-8 * (1.0 + count)  # of sums of numbers that may be thousands of times larger
    for _ in range(_MOST_NEWTON):
        total, above, highest = 0.0, 0, -np.inf
        for k in range(start, stop):
            value = target[k] + b[column[k]]
            highest = max(highest, value)
            if value + offset > 0.0:
                total += value + offset
                above += 1
        if above == 0:
            offset = count - highest
            continue
        offset += (count - total) / above
        if abs(count - total) <= near:
            break
    return offset


@kernel
def _add_row(
    target: Reals, column: Ints, b: Reals, start: int, stop: int, offset: float, total: Reals, curved: Reals
) -> None:
    """Add the cells of a row above zero to the sums of their columns, and to how much these would give."""
    above = 0
    for k in range(start, stop):
        value = target[k] + offset + b[column[k]]
        if value > 0.0:
            total[column[k]] += value
            above += 1
    gives = 1.0 - 1.0 / above if above > 0 else 0.0
    for k in range(start, stop):
        if target[k] + offset + b[column[k]] > 0.0:
            curved[column[k]] += gives


@kernel
def _lift(target: Reals, likely: Marks, columns: Ints, a: Reals, b: Reals) -> int:
    """Make candidates of all cells that the offsets lift above zero; return how many there are."""
    width, lifted = len(columns), 0
    for i in range(len(a) - 1):
        for j in range(width):
            k = i * width + j
            if not likely[k] and columns[j] > 0 and target[k] + a[i] + b[j] > 0.0:
                likely[k] = True
                lifted += 1
    return lifted


@kernel
def _whole(start: Ints, column: Ints, fitted: Reals, rows: Ints, spare: int, width: int) -> Ints:
    """Round every row to its sum: floors, then the largest remainders, with what columns lack so far added to them."""
    whole = np.zeros(len(column), np.int64)
    lacking = np.zeros(width)
    for i in range(len(start) - 1):
        left = rows[i] if i < len(rows) else np.int64(spare)
        size = start[i + 1] - start[i]
        if size == 0:
            continue
        score = np.empty(size)
        for k in range(start[i], start[i + 1]):
            whole[k] = np.int64(np.floor(fitted[k]))
            left -= whole[k]
            score[k - start[i]] = -np.inf if fitted[k] == 0.0 else fitted[k] - whole[k] + lacking[column[k]]
            lacking[column[k]] += fitted[k] - whole[k]
        if left != 0:
            order = np.argsort(-score)
            for k in range(left):  # at most one for each: remainders are below one
                chosen = start[i] + order[k % size]
                whole[chosen] += 1
                lacking[column[chosen]] -= 1.0
            for _ in range(-left):  # a row that was not fitted to its end
                for chosen in range(start[i], start[i + 1]):
                    if whole[chosen] > 0:
                        whole[chosen] -= 1
                        lacking[column[chosen]] += 1.0
                        break
    return whole


@kernel
def _balance(start: Ints, column: Ints, fitted: Reals, columns: Ints, whole: Ints) -> bool:
    """Move units within rows until every column has its sum; return whether that was possible among candidates."""
    lacking = columns.copy()
    for k in range(len(column)):
        lacking[column[k]] -= whole[k]
    short = np.int64(0)
    for j in range(len(columns)):
        short += max(lacking[j], 0)
    if short == 0:
        return True
    row, by_column, first = _transposed(start, column, len(columns))
    # Cells that the fit has above zero come first: nothing is invented while a path through them is left.
    for least in (0.0, -1.0):
        short -= _move_within_rows(start, column, fitted, whole, lacking, least)
        while short > 0:
            moved = _move(start, column, fitted, whole, lacking, row, by_column, first, least)
            if moved == 0:
                break
            short -= moved
    return short == 0


@kernel
def _transposed(start: Ints, column: Ints, width: int) -> tuple[Ints, Ints, Ints]:
    """Return the row of every candidate, and the candidates by column with where each column starts."""
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


@kernel
def _move_within_rows(start: Ints, column: Ints, fitted: Reals, whole: Ints, lacking: Ints, least: float) -> int:
    """Move units, as many as a row has, from columns with too much straight to columns with too little."""
    moved = 0
    for i in range(len(start) - 1):
        for giving in range(start[i], start[i + 1]):
            if whole[giving] == 0 or lacking[column[giving]] >= 0:
                continue
            for taking in range(start[i], start[i + 1]):
                to = column[taking]
                if lacking[to] > 0 and (fitted[taking] > least or whole[taking] > 0):
                    amount = min(whole[giving], lacking[to], -lacking[column[giving]])
                    whole[giving] -= amount
                    whole[taking] += amount
                    lacking[to] -= amount
                    lacking[column[giving]] += amount
                    moved += amount
    return moved


@kernel
def _move(
    start: Ints, column: Ints, fitted: Reals, whole: Ints, lacking: Ints, row: Ints, by_column: Ints, first: Ints,
    least: float,
) -> int:  # fmt: skip
    """Move units along shortest paths, each row and column used by one of them at most; return how many."""
    width = len(lacking)
    source, sink = np.full(width, -1, np.int64), np.full(width, -1, np.int64)
    origin = np.full(width, -1, np.int64)
    seen, done = np.zeros(width, np.bool_), np.zeros(len(start) - 1, np.bool_)
    used = np.zeros(width, np.bool_)
    queue = np.empty(width, np.int64)
    size, at, moved = 0, 0, 0
    for j in range(width):
        if lacking[j] < 0:
            seen[j], queue[size], origin[j] = True, j, j
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
                if seen[to] or (fitted[taking] <= least and whole[taking] == 0):
                    continue
                seen[to], source[to], sink[to], origin[to] = True, giving, taking, origin[j]
                queue[size] = to
                size += 1
                if lacking[to] > 0 and not used[origin[j]]:
                    moved += _shift(source, sink, column, whole, lacking, to)
                    used[origin[j]] = True
    return moved


@kernel
def _shift(source: Ints, sink: Ints, column: Ints, whole: Ints, lacking: Ints, to: int) -> int:
    """Move as many units along a path as it can take, backwards from its end; return how many."""
    amount, at = lacking[to], to
    while source[at] >= 0:
        amount = min(amount, whole[source[at]])
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
    """Where no path is left, make candidates that join columns with too much to those with too little.

    For each of these the likeliest cell, and others as long as the rows so far cannot give what is lacking.
    """
    width = len(columns)
    lacking = columns.copy()
    for k in range(len(column)):
        lacking[column[k]] -= whole[k]
    for j in range(width):
        best, left = -1, lacking[j]
        for i in range(len(likely) // width):
            if left <= 0:
                break
            if likely[i * width + j]:
                continue
            given = np.int64(0)
            for k in range(start[i], start[i + 1]):
                if lacking[column[k]] < 0:
                    given += whole[k]
            if given > 0:
                if best < 0 or target[i * width + j] > target[best]:
                    best = i * width + j
                if lacking[j] > _FEW:
                    likely[i * width + j] = True
                    left -= given
        if best >= 0:
            likely[best] = True


@kernel
def _moved(start: Ints, column: Ints, values: Any, new_start: Ints, new_column: Ints) -> Any:
    """Return the values of candidates among more of them; the new ones have nothing."""
    moved = np.zeros(len(new_column), values.dtype)
    for i in range(len(start) - 1):
        k = start[i]
        for new in range(new_start[i], new_start[i + 1]):
            if k < start[i + 1] and column[k] == new_column[new]:
                moved[new] = values[k]
                k += 1
    return moved
