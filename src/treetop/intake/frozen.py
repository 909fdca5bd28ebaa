"""Counts that lie in files: they take no memory but for what is looked at, and travel by their place and range.

Who has them elsewhere opens the same files. They are as private as the table, and lie in a staging folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import header_data_from_array_1_0, open_memmap, write_array_header_1_0
from numpy.typing import NDArray

from treetop.engine.staging import allocate, drafted
from treetop.intake.counts import Counts

BEFORE = "before"
_PIECE = 1 << 20
"""So many leaves are copied at a time."""


@dataclass(frozen=True, eq=False, repr=False)
class FrozenCounts(Counts):
    """Some leaves, which follow each other, of counts in a folder."""

    folder: Path = field(default=Path(), repr=False)
    """Where all of them are."""
    begin: int = 0
    """Which is the first."""

    @staticmethod
    def opened(folder: Path, begin: int = 0, end: int | None = None) -> FrozenCounts:
        """Open counts, or a range of them."""
        before = opened(folder, BEFORE)
        end = len(before) - 1 if end is None else end
        keys = (opened(folder, word)[begin:end] for word in words_in(folder))
        return FrozenCounts(tuple(keys), before[begin : end + 1], folder, begin)

    def part(self, begin: int, end: int) -> FrozenCounts:
        """Return the counts of some leaves that follow each other."""
        own = super().part(begin, end)
        return FrozenCounts(own.keys, own.before, self.folder, self.begin + begin)

    def only(self, there: NDArray[np.bool_]) -> FrozenCounts:
        """Return the counts of some leaves, in files of their own."""
        folder, size = self.folder.with_name(f"{self.folder.name}-possible"), int(np.count_nonzero(there))
        with drafted(folder) as draft:
            for word in range(len(self.keys)):
                room(draft, f"word{word}", np.uint64, size)
            room(draft, BEFORE, np.int64, size + 1)
            done, records = 0, 0
            for begin in range(0, len(there), _PIECE):
                fewer = self.part(begin, begin + _PIECE)._only(there[begin : begin + _PIECE])
                for word, key in enumerate(fewer.keys):
                    write_part(draft, f"word{word}", done, key)
                write_part(draft, BEFORE, done + 1, fewer.before[1:] + records)
                done, records = done + len(fewer), records + fewer.total
        return FrozenCounts.opened(folder)

    def _only(self, there: NDArray[np.bool_]) -> Counts:
        return super().only(there)

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenCounts.opened, (self.folder, self.begin, self.begin + len(self))


def words_in(folder: Path) -> list[str]:
    """Return the names of the words of paths in a folder, in order."""
    return sorted((file.stem for file in folder.glob("word*.npy")), key=lambda name: int(name[4:]))


def save(folder: Path, name: str, array: NDArray[Any]) -> None:
    """Write an array to a file of a folder."""
    with (folder / f"{name}.npy").open("wb") as file:
        write_array_header_1_0(file, header_data_from_array_1_0(array))
        file.write(np.ascontiguousarray(array).data)  # unlike numpy, this says why it fails, as on a full disk


def opened(folder: Path, name: str) -> NDArray[Any]:
    """Open an array in a file without reading it."""
    path = folder / f"{name}.npy"
    try:
        return np.asarray(np.load(path, mmap_mode="r"))
    except ValueError:  # nothing can be mapped where there is nothing
        return np.asarray(np.load(path))


def room(folder: Path, name: str, kind: type, size: int) -> None:
    """Make a file for an array, to be written part by part."""
    if size:
        path = folder / f"{name}.npy"
        open_memmap(path, "w+", np.dtype(kind), (size,))
        with path.open("r+b") as file:
            allocate(file.fileno(), path.stat().st_size)
    else:
        save(folder, name, np.empty(0, kind))


def write_part(folder: Path, name: str, begin: int, array: NDArray[Any]) -> None:
    """Write a part of an array to its place in a file."""
    if len(array):
        np.load(folder / f"{name}.npy", mmap_mode="r+")[begin : begin + len(array)] = array
