"""Two-sided repair of a block that is too large for memory: reads some rows at a time, repeatedly.

Only the candidates and the row and column sums are kept in memory. The rest of the block is read piece by piece: once
for the first candidates, once after every fit for cells that the offsets lift above zero, and again if the whole
numbers find no path. The kernels, and so the counts, are those of blocks in memory (`two_sided`, `whole_blocks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from treetop.repair.two_sided import (
    COVERED,
    MOST_ROUNDS,
    MOST_SWEEPS,
    NOBODY,
    TOLERANCE,
    finish,
    fit_round,
    lift,
    open_rows,
)
from treetop.repair.whole_blocks import balance, join_rows, moved, wanting, whole_rows

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
Marks = NDArray[np.bool_]
T = TypeVar("T")
R = TypeVar("R")


class RowSource(Protocol):
    """Some rows of a block. Their targets can be requested repeatedly."""

    @property
    def first(self) -> int:
        """Index of the first row."""

    @property
    def height(self) -> int:
        """Number of rows."""

    def opened(self) -> tuple[Reals, Marks]:
        """Return the targets of all their cells, and which are the first candidates."""

    def targets(self) -> Reals:
        """Return the targets of the likely cells that are no candidates; the other values are undefined."""


class Each(Protocol):
    """Applies a function, anywhere: it is pure, and yields its results in order."""

    def __call__(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
        """Yield the function's result for each task."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Cells of a block that may be above zero, row by row."""

    cell: Ints
    """Their positions in the whole block."""
    target: Reals

    def joined(self, cell: Ints, target: Reals) -> Candidates:
        """Return them with others, which may come twice."""
        cells, which = np.unique(np.concatenate([self.cell, cell]), return_index=True)
        return Candidates(cells, np.concatenate([self.target, target])[which])

    def by_row(self, rows: Ints, columns: Ints, spare: int) -> tuple[Ints, Ints, Reals]:
        """Return the same as `candidates` for a block in memory; the spare row comes last."""
        height, width = len(rows), len(columns)
        start = np.searchsorted(self.cell, np.arange(height + 2) * width)
        column, target = self.cell % width, self.target.copy()
        if spare > 0:
            there = np.flatnonzero(columns)
            start[-1] += len(there)
            column = np.concatenate([column, there])
            target = np.concatenate([target, spare * (columns[there] / columns.sum())])
        return start, column, target

    def within(self, piece: RowSource, width: int) -> Ints:
        """Return the positions of a piece's candidates within the piece."""
        bounds = np.searchsorted(self.cell, [piece.first * width, (piece.first + piece.height) * width])
        return self.cell[slice(*bounds)] - piece.first * width


def repair_streamed(
    pieces: Sequence[RowSource], rows: Ints, columns: Ints, spare: int, sigma: float, each: Each
) -> tuple[Ints, Ints]:
    """Return the cells that may be above zero, and their whole numbers: those that `repair_block` writes."""
    found = _open(pieces, columns, sigma, each)
    a, b = np.zeros(len(rows) + 1), np.zeros(len(columns))
    start, column, fitted = found.by_row(rows, columns, spare)
    for number in range(MOST_ROUNDS):
        worst = fit_round(
            number, start, column, fitted, rows, columns, spare, sigma, TOLERANCE, MOST_SWEEPS, a, b
        )  # fmt: skip
        cell, target = _lifted(pieces, found, columns, a, b, each)
        if len(cell):
            found = found.joined(cell, target)
            start, column, fitted = found.by_row(rows, columns, spare)
        elif worst <= TOLERANCE:
            break
    finish(start, column, fitted, rows, spare, sigma, a, b, None)
    return round_streamed(pieces, found, fitted, rows, columns, spare)


def round_streamed(
    pieces: Sequence[RowSource], found: Candidates, fitted: Reals, rows: Ints, columns: Ints, spare: int
) -> tuple[Ints, Ints]:
    """Return cells and whole numbers near the fitted values of the candidates, with all sums exact."""
    start, column, _ = found.by_row(rows, columns, spare)
    whole = whole_rows(start, column, fitted, rows, spare, len(columns), None)
    while balance(start, column, fitted, columns, whole, 1.0, None) > 0:
        found = found.joined(*_joining(pieces, found, *wanting(start, column, columns, whole)))
        more = found.by_row(rows, columns, spare)
        fitted, whole = (moved(start, column, values, more[0], more[1]) for values in (fitted, whole))
        start, column = more[0], more[1]
    return found.cell, whole[: len(found.cell)]


def _open(pieces: Sequence[RowSource], columns: Ints, sigma: float, each: Each) -> Candidates:
    """Return the first candidates: every row, and every column with a sum, has one."""
    best_row, best = np.full(len(columns), NOBODY, np.int64), np.full(len(columns), -np.inf)
    cells, targets = [], []
    for cell, target, own_row, own in each(_open_piece, [(piece, columns, sigma) for piece in pieces]):
        cells.append(cell)
        targets.append(target)
        higher = (best_row != COVERED) & ((own > best) | (own_row == COVERED))
        best_row[higher], best[higher] = own_row[higher], own[higher]
    lonely = np.flatnonzero(best_row >= 0)
    found = Candidates(np.concatenate(cells), np.concatenate(targets))
    return found.joined(best_row[lonely] * len(columns) + lonely, best[lonely])


def _open_piece(asked: tuple[RowSource, Ints, float]) -> tuple[Ints, Reals, Ints, Reals]:
    piece, columns, sigma = asked
    best_row, best = np.full(len(columns), NOBODY, np.int64), np.full(len(columns), -np.inf)
    target, likely = piece.opened()
    open_rows(target, likely, columns, sigma, piece.first, best_row, best)
    cell = np.flatnonzero(likely)
    return piece.first * len(columns) + cell, target[cell], best_row, best


def _lifted(
    pieces: Sequence[RowSource], found: Candidates, columns: Ints, a: Reals, b: Reals, each: Each
) -> tuple[Ints, Reals]:
    """Return all cells that the offsets lift above zero and that are no candidates."""
    asked = [
        (piece, found.within(piece, len(columns)), columns, a[piece.first : piece.first + piece.height + 1], b)
        for piece in pieces
    ]
    parts = list(each(_lift_piece, asked))
    return np.concatenate([cell for cell, _ in parts]), np.concatenate([target for _, target in parts])


def _lift_piece(asked: tuple[RowSource, Ints, Ints, Reals, Reals]) -> tuple[Ints, Reals]:
    piece, known, columns, a, b = asked
    target, likely = piece.targets(), np.zeros(piece.height * len(columns), np.bool_)
    likely[known] = True
    lift(target, likely, columns, a, b)
    likely[known] = False
    cell = np.flatnonzero(likely)
    return piece.first * len(columns) + cell, target[cell]


def _joining(pieces: Sequence[RowSource], found: Candidates, lacking: Ints, given: Ints) -> tuple[Ints, Reals]:
    """Return cells that join columns with too much to those with too little, in rows that can give something."""
    width = len(lacking)
    left, best_row, best = lacking.copy(), np.full(width, NOBODY, np.int64), np.full(width, -np.inf)
    cells, targets = [], []
    for piece in pieces:
        own = given[piece.first : piece.first + piece.height]
        if not own.any():
            continue
        target, likely, known = piece.targets(), np.zeros(len(own) * width, np.bool_), found.within(piece, width)
        likely[known] = True
        join_rows(target, likely, own, lacking, piece.first, left, best_row, best)
        likely[known] = False
        cell = np.flatnonzero(likely)
        cells.append(piece.first * width + cell)
        targets.append(target[cell])
    there = np.flatnonzero(best_row >= 0)
    cells.append(best_row[there] * width + there)
    return np.concatenate(cells), np.concatenate([*targets, best[there]])
