"""Counts of lower error under margins: the last level shared by how probable each unit is, rows and columns exact.

Above the last level the counts are those of the descent, which agree with the margins. At the last level a cell with
measurement y has as many units as are more probable than a threshold, and the threshold of a cell is the sum of one of
its row and one of its column, in standard deviations of a normal law. Thresholds of rows are found exactly, those of
columns by steps that all take together, as in the two-sided repair, whose rounding makes whole numbers of the fit.
Cells are told apart by what rows and columns lead to expect of them, P_i·M_j/ΣM.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from treetop.basics.copying import copy_into, writable
from treetop.basics.kernel import kernel
from treetop.noise import Law
from treetop.release.estimates import prior
from treetop.release.estimates.prior import Posterior
from treetop.release.estimates.sharing import due
from treetop.repair.two_sided import open_block
from treetop.repair.whole_blocks import candidates, round_block

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

_SWEEPS = 30
_NONE = cast(int, np.int64(0))  # a plain 0 is a type of its own to Numba, with a variant of each kernel
"""So often rows and columns take turns."""
_NEAR = 0.5
"""A fit ends when no column is off by more."""
_AHEAD = 24.0
"""Cells that have units up to so many steps, three standard deviations, from their row's first threshold are fitted."""
_FAR = 8.0
"""So many steps, a standard deviation, is the farthest that a column goes at a time."""


def share_under_margin(law: Law, first: Ints, measured: Ints, node: Ints, columns: Ints, count: Ints) -> Ints:
    """Share counts of rows among cells; `first` says where each row's cells start, `node` which column a cell is.

    Rows with the same cells are one block; nothing else of the columns belongs to a block.
    """
    fanout = np.diff(first)
    several = fanout > 1
    owner = np.repeat(np.arange(len(fanout)), fanout)
    eldest = node[np.minimum(first[:-1], max(len(node) - 1, 0))] if len(node) else np.zeros(len(fanout), np.int64)
    order = np.argsort(eldest, kind="stable")
    before = np.concatenate([[0], np.cumsum(columns)])
    together = (before[eldest + fanout] - before[eldest])[owner]
    expected = count[owner] * (columns[node] / np.maximum(together, 1))
    useful = several[owner] & (expected > 0)
    kind = np.zeros(len(measured), np.int64)
    kind[useful] = prior.classes(expected[useful])
    learned = prior.learn(law, measured[useful], kind[useful])
    out = np.zeros(len(measured), np.int64)
    _share_blocks(first, order, eldest, writable(measured), kind, learned, writable(columns), writable(count), out)
    return out


@kernel
def _share_blocks(
    first: Ints, order: Ints, eldest: Ints, measured: Ints, kind: Ints, learned: Posterior, columns: Ints, count: Ints,
    out: Ints,
) -> None:  # fmt: skip
    at = 0
    while at < len(order):
        end = at + 1
        while end < len(order) and eldest[order[end]] == eldest[order[at]]:
            end += 1
        width = first[order[at] + 1] - first[order[at]]
        own = columns[eldest[order[at]] : eldest[order[at]] + width]
        if width == 1:
            for row in order[at:end]:
                out[first[row]] = count[row]
        elif end - at == 1 and own.sum() == count[order[at]]:
            copy_into(out[first[order[at]] :], own)
        else:
            _share_block(order[at:end], first, measured, kind, learned, own, count, out)
        at = end


@kernel
def _share_block(
    rows: Ints, first: Ints, measured: Ints, kind: Ints, learned: Posterior, columns: Ints, count: Ints, out: Ints
) -> None:
    height, width = len(rows), len(columns)
    near = np.zeros(height * width, np.bool_)
    target = np.empty(height * width)
    wanted, a = np.empty(height, np.int64), np.empty(height)
    for i in range(height):
        at, wanted[i] = first[rows[i]], count[rows[i]]
        a[i] = _first_step(learned, kind[at : at + width], measured[at : at + width], columns, wanted[i])
        for j in range(width):
            target[i * width + j] = measured[at + j]
            near[i * width + j] = _units(learned, kind[at + j], measured[at + j], a[i] + _AHEAD) > 0.0
    open_block(target, near, columns)
    start, column, _ = candidates(target, near, wanted, columns, _NONE, _NONE)
    cell_kind, cell_measured = np.empty(len(column), np.int64), np.empty(len(column), np.int64)
    for i in range(height):
        for k in range(start[i], start[i + 1]):
            at = first[rows[i]] + column[k]
            cell_kind[k], cell_measured[k] = kind[at], measured[at]
    fitted = _fit(start, column, cell_kind, cell_measured, learned, wanted, columns, a)
    whole = np.empty(height * width, np.int64)
    round_block(target, near, start, column, fitted, wanted, columns, _NONE, whole)
    for i in range(height):
        copy_into(out[first[rows[i]] :], whole[i * width : (i + 1) * width])


@kernel
def _units(learned: Posterior, kind: int, measured: int, step: float) -> float:
    """Return how many units a cell has at a threshold: between two steps, in proportion."""
    last = len(learned.shift) - 1
    at = min(max(step, 0.0), float(last))
    low = int(at)
    units = float(due(learned, kind, measured, low))
    if at > low:
        units += (at - low) * (due(learned, kind, measured, low + 1) - units)
    return units


@kernel
def _first_step(learned: Posterior, kind: Ints, measured: Ints, columns: Ints, count: int) -> float:
    """Return the last step at which a row has no more than its count, were there no columns."""
    low, high = 0, len(learned.shift)
    while high - low > 1:
        middle = (low + high) // 2
        total = np.int64(0)
        for j in range(len(measured)):
            if columns[j] > 0:
                total += due(learned, kind[j], measured[j], middle)
        if total <= count:
            low = middle
        else:
            high = middle
    return float(low)


@kernel
def _fit(
    start: Ints, column: Ints, kind: Ints, measured: Ints, learned: Posterior, rows: Ints, columns: Ints, a: Reals
) -> Reals:
    """Return what every candidate has when rows have their counts, and columns nearly."""
    b, total, slope = np.zeros(len(columns)), np.empty(len(columns)), np.empty(len(columns))
    fitted = np.empty(len(column))
    for _ in range(_SWEEPS):
        total[:] = 0.0
        slope[:] = 0.0
        for i in range(len(rows)):
            own = slice(start[i], start[i + 1])
            a[i] = _row_step(column[own], kind[own], measured[own], learned, b, rows[i], a[i], fitted[own])
            for k in range(start[i], start[i + 1]):
                total[column[k]] += fitted[k]
                slope[column[k]] += _units(learned, kind[k], measured[k], a[i] + b[column[k]] + 1.0) - fitted[k]
        worst = 0.0
        for j in range(len(columns)):
            lacking = columns[j] - total[j]
            worst = max(worst, abs(lacking))
            b[j] += min(max(0.7 * lacking / max(slope[j], 0.1), -_FAR), _FAR)
        if worst < _NEAR:
            break
    return fitted


@kernel
def _row_step(
    column: Ints, kind: Ints, measured: Ints, learned: Posterior, b: Reals, count: int, step: float, fitted: Reals
) -> float:
    """Find the threshold at which a row has its count, by narrowing from nearby; write what its cells have there.

    Beyond the steps all cells give, or take, alike.
    """
    low, high, stride = step, step, 0.5
    low_total = high_total = _row(column, kind, measured, learned, b, step, fitted)
    most = 3.0 * len(learned.shift)
    while low_total > count and low > -most:
        high, high_total = low, low_total
        low -= stride
        stride *= 3.0
        low_total = _row(column, kind, measured, learned, b, low, fitted)
    while high_total < count and high < most:
        low, low_total = high, high_total
        high += stride
        stride *= 3.0
        high_total = _row(column, kind, measured, learned, b, high, fitted)
    total = low_total
    step = low
    for turn in range(40):
        if abs(total - count) < 1e-6 or high - low < 1e-9 or high_total <= low_total:
            break
        share = 0.5 if turn % 3 == 2 else (count - low_total) / (high_total - low_total)
        step = low + share * (high - low)
        total = _row(column, kind, measured, learned, b, step, fitted)
        if total > count:
            high, high_total = step, total
        else:
            low, low_total = step, total
    total = _row(column, kind, measured, learned, b, step, fitted)
    for k in range(len(fitted)):
        fitted[k] *= count / total if total > 0.0 else 0.0
    if total == 0.0:
        fitted[:] = count / len(fitted)
    return step


@kernel
def _row(column: Ints, kind: Ints, measured: Ints, learned: Posterior, b: Reals, step: float, fitted: Reals) -> float:
    total = 0.0
    for k in range(len(fitted)):
        fitted[k] = _units(learned, kind[k], measured[k], step + b[column[k]])
        total += fitted[k]
    return total
