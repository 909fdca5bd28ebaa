"""Two-sided repair: a block of counts that agrees with its rows and with its columns at once.

The rows of a block are retained nodes, the columns the children that all of them can have, and both sums are known: P
of the rows from the level above, M of the columns from a margin. Of targets t the nearest real block is

    x_ij = max(0, t_ij + g_ij (a_i + b_j)),   Σ_j x_ij = P_i,   Σ_i x_ij = M_j,

and every row can have every column, so that there always is one. Distances are squared and weighted: a target clearly
above the noise gives way only a little (g_ij = `GIVE`), all others fully (g_ij = 1). So a large count keeps its
measurement as far as the sums allow, and the counts of small cells that were lost go to small cells.

Offsets a are found exactly, row by row, offsets b by steps that all columns take together: with the rows solved, a
column's residual M_j − Σ_i x_ij is the gradient of the dual, and Σ_i g_ij (1 − g_ij/G_i) over its cells above zero its
curvature, with G_i the sum of g over the row's cells above zero. The steps are halved, which makes them safe, and
accelerated (Nesterov 1983, started again where they turn: O'Donoghue and Candès 2015). Where that takes long, rows and
columns are solved in turns.

Nearly all cells are zero, so that only candidates are fitted; a sweep over all others looks for cells that the offsets
lift above zero, which then become candidates too. Without any, the fit is that of the whole block.

Cells may have bounds: lower bounds are subtracted first, and x_ij is clamped to the room above them. Then there may be
no block with all sums: rows are exact, and columns as near as the bounds allow. The offsets of such columns grow until
the sweeps end, and whole numbers decide (`whole_blocks`).
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from treetop._util.arrays import U, copy_into
from treetop._util.kernel import kernel, kernel_in_place, kernel_inlined
from treetop.repair.whole_blocks import balance, candidates, round_block, transposed, whole_rows

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
Marks = NDArray[np.bool_]

TOLERANCE = 0.01
"""A fit ends when no column is off by more; rounding to whole numbers corrects the rest."""
MOST_SWEEPS = cast(int, np.int64(60))  # to Numba a plain 60 is a type of its own, with a variant of each kernel
"""Maximum number of sweeps before all other cells are checked again."""
MOST_ROUNDS = cast(int, np.int64(30))
"""Maximum number of rounds that add candidates; after that, moving units still makes all sums exact."""
NOBODY, COVERED = -1, -2
"""Column markers: no row has the highest target yet; the column already has candidates."""
CLEAR = 4.0
"""A target of more standard deviations of the noise is clear: it was hardly ever raised from zero."""
GIVE = 0.0625
"""How much a clear target gives way, where any other gives 1."""
_FIRST_IN_TURNS = 3
"""First round in which rows and columns may be solved in turns."""
_MOST_NEWTON = 60


@kernel_inlined
def repair_block(
    target: Reals, likely: Marks, rows: Ints, columns: Ints, spare: int, sigma: float, tolerance: float, sweeps: int,
    rounds: int, out: Ints,
) -> None:  # fmt: skip
    """Write whole numbers near the targets with these sums of rows and columns, row by row.

    `likely` cells are the first candidates. If the column sums exceed the row sums by `spare`, an unconstrained row
    takes the rest. `sigma` is the standard deviation of the noise.
    """
    if len(rows) == 1 and spare == 0:
        copy_into(out, columns)
    elif len(columns) == 1:
        copy_into(out, rows)
    else:
        start, column, fitted = fit_block(target, likely, rows, columns, spare, sigma, tolerance, sweeps, rounds)
        round_block(target, likely, start, column, fitted, rows, columns, spare, out)


@kernel
def fit_block(
    target: Reals, likely: Marks, rows: Ints, columns: Ints, spare: int, sigma: float, tolerance: float, sweeps: int,
    rounds: int,
) -> tuple[Ints, Ints, Reals]:  # fmt: skip
    """Return the nearest real block: the start of each row's candidates, their columns, and their values.

    All other cells are zero. The spare row comes last.
    """
    open_block(target, likely, columns, sigma)
    a, b = np.zeros(len(rows) + 1), np.zeros(len(columns))
    total = columns.sum()
    start, column, fitted = candidates(target, likely, rows, columns, spare, total)
    for number in range(max(rounds, 1)):
        worst = fit_round(number, start, column, fitted, rows, columns, spare, sigma, tolerance, sweeps, a, b)
        if lift(target, likely, columns, a, b) > 0:
            start, column, fitted = candidates(target, likely, rows, columns, spare, total)
        elif worst <= tolerance:
            break
    finish(start, column, fitted, rows, spare, sigma, a, b, None)
    return start, column, fitted


@kernel
def repair_bounded_block(
    target: Reals, lower: Ints, upper: Ints, rows: Ints, columns: Ints, spare: int, sigma: float, tolerance: float,
    sweeps: int, out: Ints,
) -> np.int64:  # fmt: skip
    """Write whole numbers within bounds, row by row, with exact rows; return the total deviation of the columns.

    If the column sums exceed the row sums by `spare`, an unconstrained row without bounds takes the rest. `sigma` is
    the standard deviation of the noise. All cells with room are candidates.
    """
    height, width = len(rows), len(columns)
    if rows.sum() + spare != columns.sum():
        raise ValueError("rows and columns of a block do not have the same sum")
    left, wanted = rows.copy(), columns.copy()
    for i in range(height):
        most = np.int64(0)
        for k in range(i * width, (i + 1) * width):
            left[i] -= lower[k]
            wanted[k - i * width] -= lower[k]
            most = min(most + upper[k] - lower[k], np.int64(1) << 60)
        if left[i] < 0 or left[i] > most:
            raise ValueError("the bounds of a row do not allow its sum")
    start, column, fitted = candidates(target - lower, upper > lower, rows, columns, spare, max(columns.sum(), 1))
    room = np.full(len(column), max(spare, 0), np.int64)
    for i in range(height):
        for k in range(start[i], start[i + 1]):
            room[k] = upper[i * width + column[k]] - lower[i * width + column[k]]
    a, b = np.zeros(height + 1), np.zeros(width)
    fit(start, column, fitted, left, wanted, spare, sigma, tolerance, sweeps, a, b, room)
    finish(start, column, fitted, left, spare, sigma, a, b, room)
    whole = whole_rows(start, column, fitted, left, spare, width, room)
    short = balance(start, column, fitted, wanted, whole, 3.0 * sigma + 1.0, room)
    copy_into(out, lower)
    for i in range(height):
        for k in range(start[i], start[i + 1]):
            out[i * width + column[k]] += whole[k]
    return short


@kernel_inlined
def open_block(target: Reals, likely: Marks, columns: Ints, sigma: float) -> None:
    """Make candidates of clear targets, and make sure that every row, and every column with a sum, has a candidate.

    Empty columns have none.
    """
    width = len(columns)
    best_row, best = np.full(width, NOBODY, np.int64), np.full(width, -np.inf)
    open_rows(target, likely, columns, sigma, 0, best_row, best)
    for j in range(width):
        if best_row[j] >= 0:
            likely[best_row[j] * width + j] = True


@kernel_in_place
def open_rows(
    target: Reals, likely: Marks, columns: Ints, sigma: float, first: int, best_row: Ints, best: Reals
) -> None:
    """Do so for some rows of a block, from the row `first` on.

    Of every column with a sum and without a candidate so far, write down the row with the highest target.
    """
    width = len(columns)
    for i in range(len(target) // width):
        there, highest = False, -1
        for j in range(width):
            if columns[j] == 0:
                likely[i * width + j] = False
                continue
            if target[i * width + j] > CLEAR * sigma:
                likely[i * width + j] = True
            there = there or likely[i * width + j]
            if highest < 0 or target[i * width + j] > target[i * width + highest]:
                highest = j
            if likely[i * width + j]:
                best_row[j] = COVERED
            elif best_row[j] != COVERED and target[i * width + j] > best[j]:
                best_row[j], best[j] = first + i, target[i * width + j]
        if not there:
            likely[i * width + highest] = True


@kernel_inlined
def fit_round(
    number: int, start: Ints, column: Ints, target: Reals, rows: Ints, columns: Ints, spare: int, sigma: float,
    tolerance: float, sweeps: int, a: Reals, b: Reals,
) -> float:  # fmt: skip
    """Improve the offsets of candidates once more; return the residual of the worst column.

    Steps that all columns take together are quick near the end, but can swing around it for ever where very many cells
    enter and leave. So later rounds take turns with exact solves, which never make the dual worse.
    """
    few = min(sweeps, 5 << min(number, 10))  # at first, candidates are too few for a fit to be worth much
    if number < _FIRST_IN_TURNS or number % 2 == 0:
        return fit(start, column, target, rows, columns, spare, sigma, tolerance, few, a, b, None)
    return fit_in_turns(start, column, target, rows, columns, spare, sigma, tolerance, few, a, b)


@kernel
def fit(
    start: Ints, column: Ints, target: Reals, rows: Ints, columns: Ints, spare: int, sigma: float, tolerance: float,
    sweeps: int, a: Reals, b: Reals, room: Ints | None,
) -> float:  # fmt: skip
    """Improve the offsets of candidates; return by how much the worst column is still off.

    `room` has the upper bound of every candidate, if there are any.
    """
    width = len(columns)
    total, curved, own, give = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    scale = 3.0 * sigma + 1.0
    before, after = b.copy(), b.copy()
    momentum, worst = 1.0, 0.0
    for _ in range(sweeps):
        _solve_rows(start, column, target, rows, spare, sigma, a, b, own, give, total, curved, room)
        worst, turned = 0.0, 0.0
        for j in range(width):
            residual = columns[j] - total[j]
            worst = max(worst, abs(residual))
            step = 0.5 * residual / max(curved[j], 0.25 * GIVE)
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
def fit_in_turns(
    start: Ints, column: Ints, target: Reals, rows: Ints, columns: Ints, spare: int, sigma: float, tolerance: float,
    sweeps: int, a: Reals, b: Reals,
) -> float:  # fmt: skip
    """Solve for the offsets of rows and of columns in turns, each exactly: ascent of the dual by coordinates."""
    row, by_column, first = transposed(start, column, len(columns))
    turned, turned_row = target[by_column], row[by_column]
    give = _gives(start, target, rows, sigma)
    turned_give = give[by_column]
    own, worst = np.empty(max(len(a), len(b))), 0.0
    for _ in range(sweeps):
        for i in range(len(start) - 1):
            if start[i] < start[i + 1]:
                count = rows[i] if i < len(rows) else spare
                a[i] = _offset(target, column, give, b, start[i], start[i + 1], count, a[i], own, None)
        worst = 0.0
        for j in range(len(columns)):
            if columns[j] > 0:
                total = 0.0
                for k in range(first[j], first[j + 1]):
                    total += max(turned[k] + turned_give[k] * (a[turned_row[k]] + b[j]), 0.0)
                worst = max(worst, abs(columns[j] - total))
        if worst <= tolerance:
            break
        for j in range(len(columns)):
            if columns[j] > 0:
                b[j] = _offset(turned, turned_row, turned_give, a, first[j], first[j + 1], columns[j], b[j], own, None)
    return worst


@kernel
def finish(
    start: Ints, column: Ints, target: Reals, rows: Ints, spare: int, sigma: float, a: Reals, b: Reals,
    room: Ints | None,
) -> None:  # fmt: skip
    """Replace the targets of candidates by their fitted values, once more with exact rows."""
    own, give = np.empty(len(b)), _gives(start, target, rows, sigma)
    for i in range(len(start) - 1):
        if start[i] < start[i + 1]:
            count = rows[i] if i < len(rows) else spare
            a[i] = _offset(target, column, give, b, start[i], start[i + 1], count, a[i], own, room)
        for k in range(start[i], start[i + 1]):
            value = target[k] + give[k] * (a[i] + b[column[k]])
            target[k] = value if room is not None else max(value, 0.0)


@kernel
def _gives(start: Ints, target: Reals, rows: Ints, sigma: float) -> Reals:
    """Return how much each candidate gives way; the spare row gives way everywhere."""
    give = np.ones(len(target))
    for k in range(start[len(rows)]):
        if target[k] > CLEAR * sigma:
            give[k] = GIVE
    return give


# Rows are short, and there are many: cells that are zero are added as such, without a branch to be mispredicted, and
# numbers without sign are not looked up from the end. Handing over many arrays for each row would cost as much.


@kernel_in_place
def _solve_rows(
    start: Ints, column: Ints, target: Reals, rows: Ints, spare: int, sigma: float, a: Reals, b: Reals, own: Reals,
    give: Reals, total: Reals, curved: Reals, room: Ints | None,
) -> None:  # fmt: skip
    """Find the offsets of rows; write the sum of positive cells by column, and its derivative in the offsets.

    `own` and `give` are scratch memory for the cells of a row; the spare row gives way everywhere.
    """
    total[:] = 0.0
    curved[:] = 0.0
    for i in range(len(start) - 1):
        first, size = U(start[i]), U(start[i + 1] - start[i])
        if size == U(0):
            continue
        clear = CLEAR * sigma if i < len(rows) else np.inf
        for k in range(size):
            give[k] = GIVE if target[first + k] > clear else 1.0
            own[k] = target[first + k] + give[k] * b[U(column[first + k])]
        count = rows[i] if i < len(rows) else spare
        if room is None:
            offset = _summing_to(count, own, give, size, a[i])
        else:
            offset = _summing_within(count, own, give, room[start[i] : start[i + 1]], a[i])
        a[i], above = offset, 0.0
        for k in range(size):
            value = own[k] + give[k] * offset
            if room is not None and value >= room[first + k]:
                total[U(column[first + k])] += room[first + k]
                value = -1.0  # at its bound it gives way no further
            own[k] = value
            total[U(column[first + k])] += value if value > 0.0 else 0.0
            above += give[k] if value > 0.0 else 0.0
        free, held = (1.0 - 1.0 / above, GIVE * (1.0 - GIVE / above)) if above > 0.0 else (0.0, 0.0)
        for k in range(size):
            gives = free if give[k] == 1.0 else held
            curved[U(column[first + k])] += gives if own[k] > 0.0 else 0.0


@kernel_in_place
def _offset(
    target: Reals, column: Ints, give: Reals, b: Reals, start: int, stop: int, count: int, offset: float, own: Reals,
    room: Ints | None,
) -> float:  # fmt: skip
    """Return the offset with which a row sums to its count; `own` is scratch memory for its values without offset."""
    first, size = U(start), U(stop - start)
    for k in range(size):
        own[k] = target[first + k] + give[first + k] * b[U(column[first + k])]
    if room is not None:
        return _summing_within(count, own, give[start:stop], room[start:stop], offset)
    return _summing_to(count, own, give[start:stop], size, offset)


@kernel_in_place
def _summing_to(count: int, own: Reals, give: Reals, size: np.uint64, offset: float) -> float:
    """Return the offset with which cells sum to a count: Newton's method, exact once no cell enters or leaves."""
    near = 1e-8 * (1.0 + count)  # of sums of numbers that may be thousands of times larger
    for _ in range(_MOST_NEWTON):
        total, above = 0.0, 0.0
        for k in range(size):
            value = own[k] + give[k] * offset
            total += value if value > 0.0 else 0.0
            above += give[k] if value > 0.0 else 0.0
        if above == 0.0:
            offset = np.inf
            for k in range(size):
                offset = min(offset, (count - own[k]) / give[k])
            continue
        offset += (count - total) / above
        if abs(count - total) <= near:
            break
    return offset


@kernel_in_place
def _summing_within(count: int, own: Reals, give: Reals, room: Ints, offset: float) -> float:
    """Return the offset with which cells clamped to their room sum to a count: safeguarded Newton's method.

    Below the lowest offset every cell is empty, above the highest every one is full.
    """
    low, high = np.inf, -np.inf
    for k in range(len(room)):
        low = min(low, -own[k] / give[k])
        high = max(high, (min(room[k], count) - own[k]) / give[k])
    if count == 0:
        return low
    for _ in range(_MOST_NEWTON):
        if not low <= offset <= high:
            offset = 0.5 * (low + high)
        total, inside = 0.0, 0.0
        for k in range(len(room)):
            value = own[k] + give[k] * offset
            total += min(max(value, 0.0), room[k])
            inside += give[k] if 0.0 < value < room[k] else 0.0
        if abs(count - total) <= 1e-8 * (1.0 + count):
            break
        if total < count:
            low = offset
        else:
            high = offset
        offset = offset + (count - total) / inside if inside > 0.0 else 0.5 * (low + high)
    return offset


@kernel_in_place
def lift(target: Reals, likely: Marks, columns: Ints, a: Reals, b: Reals) -> int:
    """Make candidates of all cells that the offsets lift above zero; return how many there are."""
    width, lifted = len(columns), 0
    for i in range(len(a) - 1):
        for j in range(width):
            k = i * width + j
            if not likely[k] and columns[j] > 0 and target[k] + a[i] + b[j] > 0.0:
                likely[k] = True
                lifted += 1
    return lifted
