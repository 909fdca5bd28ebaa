"""What tasks of a descent give, gathered as it comes: in memory, or in files where it may be more than that holds.

The files have no name: nobody else can open them, and they are gone with the process, however that ends. What is in
them is noisy, hence public, but for the ranges of a frontier, which are not kept for leaves.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from treetop.engine.staging import allocate
from treetop.measure.evidence import LevelEvidence, Remainders
from treetop.measure.frontier import Descended, Frontier

IN_MEMORY = 1 << 23
"""So many bytes of an array are gathered in memory before they go to a file."""
ROWS = 1 << 17
"""So many rows of arrays that may be in files are looked at together."""


@dataclass(frozen=True)
class Room:
    """Where arrays are that are as long as a level has nodes."""

    folder: Path | None = None
    """A private folder, in which they are files without a name; None where they are in memory."""

    def array(self, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
        """Return an array to be written to, in whatever order."""
        size = int(np.prod(shape)) * np.dtype(kind).itemsize
        if self.folder is None or size <= IN_MEMORY:
            return np.empty(shape, kind)
        with tempfile.TemporaryFile(dir=self.folder) as file:
            file.truncate(size)
            allocate(file.fileno(), size)
            return np.asarray(np.memmap(file, kind, "r+", shape=shape))

    def growing(self, kind: DTypeLike = np.int64, width: tuple[int, ...] = ()) -> Growing:
        """Return an array without rows, to which others are added."""
        return Growing(self.folder, np.empty((0, *width), kind))


MEMORY = Room()
"""Where there is no folder."""


class Growing:
    """An array that others are added to at its end."""

    def __init__(self, folder: Path | None, empty: NDArray[Any]) -> None:
        self._folder, self._empty = folder, empty
        self._waiting: list[NDArray[Any]] = []
        self._bytes = 0
        self._file: Any = None

    def add(self, more: NDArray[Any]) -> None:
        """Add some rows."""
        self._waiting.append(more)
        self._bytes += more.nbytes
        if self._folder is not None and self._bytes > IN_MEMORY:
            self._write()

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - the map of it outlives it
        for one in self._waiting:
            self._file.write(np.ascontiguousarray(one).data)
        self._waiting, self._bytes = [], 0

    def array(self) -> NDArray[Any]:
        """Return all rows; those in a file take no memory but for what is looked at."""
        if self._file is None:
            return self._waiting[0] if len(self._waiting) == 1 else np.concatenate([self._empty, *self._waiting])
        self._write()
        self._file.flush()
        kept = np.memmap(self._file, self._empty.dtype, "c").reshape(-1, *self._empty.shape[1:])
        self._file.close()
        return np.asarray(kept)


def runs(rows: int) -> Iterator[slice]:
    """Cut rows into some at a time."""
    return (slice(start, min(start + ROWS, rows)) for start in range(0, rows, ROWS))


def gathered(parts: Iterable[Descended], attributes: int, levels: int, room: Room) -> Descended:
    """Join what was reached from nodes that follow each other, with evidence of so many levels each."""
    if room.folder is None:
        return Descended.join(list(parts), attributes, levels)
    nodes = room.growing(np.int32, (attributes,))
    names = ("count", "start", "stop", "seen", "seen_at")
    frontier, *seen = [[room.growing() for _ in range(5)] for _ in range(1 + levels)]
    left: list[Remainders] = []
    for part in parts:
        nodes.add(part.frontier.nodes.T)
        _add(frontier, [getattr(part.frontier, name) for name in names])
        for own, found in zip(seen, part.levels, strict=True):
            for more in found:
                _add(own, [more.measured, more.highest, more.slots])
        left += part.left
    evidence = tuple((LevelEvidence(*(column.array() for column in own[:3])),) for own in seen)
    joined = {name: one.array() for name, one in zip(names, frontier, strict=True)}
    return Descended(Frontier(nodes=_by_attribute(nodes.array(), room), **joined), evidence, tuple(left))


def _add(columns: Sequence[Growing], arrays: Sequence[NDArray[Any]]) -> None:
    for column, array in zip(columns, arrays, strict=False):
        column.add(array)


def _by_attribute(nodes: NDArray[np.int32], room: Room) -> NDArray[np.int32]:
    """Return nodes attribute by attribute, each of which kernels take as it is."""
    turned = room.array(nodes.shape[::-1], np.int32)
    for run in runs(len(nodes)):
        turned[:, run] = nodes[run].T
    return turned
