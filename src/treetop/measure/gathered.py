"""What tasks of a descent give, gathered as it comes: in memory, or in files where it may be more than that holds.

The files have no name: nobody else can open them, and they are gone with the process, however that ends. What is in
them is noisy, hence public, but for the ranges of a frontier, which are not kept for leaves.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treetop.measure.evidence import LevelEvidence, Remainders
from treetop.measure.frontier import Descended, Frontier

IN_MEMORY = 1 << 23
"""So many bytes of an array are gathered in memory before they go to a file."""


class Growing:
    """An array that others are added to at its end."""

    def __init__(self, folder: Path, empty: NDArray[Any]) -> None:
        self._folder = folder
        self._waiting = [empty]
        self._file: Any = None

    def add(self, more: NDArray[Any]) -> None:
        """Add some rows."""
        self._waiting.append(more)
        if sum(one.nbytes for one in self._waiting) > IN_MEMORY:
            self._write()

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - the map of it outlives it
        for one in self._waiting:
            self._file.write(np.ascontiguousarray(one).data)
        self._waiting = [one[:0] for one in self._waiting[:1]]

    def array(self) -> NDArray[Any]:
        """Return all rows; those in a file take no memory but for what is looked at."""
        if self._file is None:
            return np.concatenate(self._waiting)
        self._write()
        self._file.flush()
        like = self._waiting[0]
        kept = np.memmap(self._file, like.dtype, "c").reshape(-1, *like.shape[1:])
        self._file.close()
        return np.asarray(kept)


def gathered(parts: Iterable[Descended], attributes: int, levels: int, folder: Path | None) -> Descended:
    """Join what was reached from nodes that follow each other, with evidence of so many levels each."""
    if folder is None:
        return Descended.join(list(parts), attributes, levels)
    nodes = Growing(folder, np.empty((0, attributes), np.int32))
    names = ("count", "start", "stop", "seen", "seen_at")
    frontier, *seen = [[Growing(folder, np.empty(0, np.int64)) for _ in range(5)] for _ in range(1 + levels)]
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
    return Descended(Frontier(nodes=nodes.array().T, **joined), evidence, tuple(left))


def _add(columns: Sequence[Growing], arrays: Sequence[NDArray[Any]]) -> None:
    for column, array in zip(columns, arrays, strict=False):
        column.add(array)
