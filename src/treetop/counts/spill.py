"""Counts that lie in files: they take no memory but for what is looked at, and travel by their place and range.

Who has them elsewhere opens the same files. They are as private as the table, and lie in a staging folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import header_data_from_array_1_0, open_memmap, write_array_header_1_0
from numpy.typing import NDArray

from treetop._util.dtypes import Flags, Words
from treetop._util.system import Progress
from treetop.counts.contribution_cap import keep_of_units
from treetop.counts.counts import TOO_MANY, Counts
from treetop.counts.encode import EncodedRows, Encoder
from treetop.counts.graph_reader import open_table
from treetop.counts.tally import Tally
from treetop.domain.spine import LARGEST_TOTAL
from treetop.engine.engine import Executor
from treetop.engine.staging import allocate, drafted
from treetop.errors import DataError
from treetop.io import table as tables

BEFORE = "before"
_PIECE = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class FrozenCounts(Counts):
    """Some leaves, which follow each other, of counts in a folder."""

    folder: Path = field(default=Path(), repr=False)
    begin: int = 0

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

    def only(self, there: Flags) -> FrozenCounts:
        """Return the counts of some leaves, in files of their own."""
        folder, size = self.folder.with_name(f"{self.folder.name}-possible"), int(np.count_nonzero(there))
        with drafted(folder) as draft:
            for word in range(len(self.keys)):
                room(draft, f"word{word}", np.uint64, size)
            room(draft, BEFORE, np.int64, size + 1)
            done, records = 0, 0
            for begin in range(0, len(there), _PIECE):
                fewer = super().part(begin, begin + _PIECE).only(there[begin : begin + _PIECE])
                for word, key in enumerate(fewer.keys):
                    write_part(draft, f"word{word}", done, key)
                write_part(draft, BEFORE, done + 1, fewer.before[1:] + records)
                done, records = done + len(fewer), records + fewer.total
        return FrozenCounts.opened(folder)

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


# Reading a table that does not fit into memory: sorted runs of rows go to files, and are merged range by range.

_SAMPLE = 512
"""So many paths of a run tell where its ranges are, well enough."""
BYTES_A_WORD = 32
"""What a task holds of a row, for each word of its path and for its count: the row, and what sorting it takes."""
_LIBRARIES = 200 << 20
_NUMBER, _HIGH, _LOW = "number", "high", "low"
_END = 1 << 64


@dataclass(frozen=True)
class Space:
    """Where there is room for runs, and how many rows of one are in memory at a time."""

    folder: Path
    memory: int
    executor: Executor = field(repr=False)

    def rows(self, encoder: Encoder) -> int:
        """Return how many rows a task may hold: those of bounded units have a hash of two words as well."""
        words = encoder.words + (1 if encoder.cap is None else 3)
        return max((self.memory - _LIBRARIES) // (BYTES_A_WORD * words), 1 << 12)


@dataclass(frozen=True, eq=False)
class SortedRun:
    """Rows in files, in the order of their first word."""

    folder: Path
    size: int
    sample: Words = field(repr=False)


@dataclass(frozen=True, eq=False)
class _Encode:
    encoder: Encoder = field(repr=False)
    piece: Any
    folder: Path
    rows: int


@dataclass(frozen=True, eq=False)
class _Encoded:
    runs: tuple[SortedRun, ...]
    rows: int
    tally: Tally


@dataclass(frozen=True, eq=False)
class _Range:
    """The rows of all runs with first words in a range."""

    runs: tuple[SortedRun, ...]
    begin: int
    end: int
    folder: Path
    most: int = 0
    """How many records of a unit are kept, where units are bounded."""
    distinct: bool = False
    """Whether those of one leaf are one."""


@dataclass(frozen=True, eq=False)
class _Merged:
    run: SortedRun
    total: int
    units: int = 0


def read_staged(
    table: tables.Table, encoder: Encoder, space: Space, progress: Progress | None, tally: Tally
) -> FrozenCounts:
    """Read a private table as `read_counts` does, with no more rows in memory at a time than there is room for."""
    tally.unknown = encoder.unknown
    runs: list[SortedRun] = []
    rows = 0
    opened_table, tells_units = open_table(table, tally)
    most = space.rows(encoder)
    pieces = tables.pieces(opened_table, most)
    read = [opened_table] if pieces is None else pieces  # a source that cannot be cut is read here
    tasks = [_Encode(encoder, piece, space.folder / f"run{at}", most) for at, piece in enumerate(read)]
    every = map(_encode, tasks) if pieces is None else space.executor.map(_encode, tasks)
    for done, encoded in enumerate(every, start=1):
        runs += encoded.runs
        rows += encoded.rows
        tally.join(encoded.tally)
        if progress is not None:
            progress("reading", 0.8 * done / len(tasks))
    if not rows:
        tables.warn_of_none(table)
    if encoder.cap is not None:
        limit = (encoder.cap.most, encoder.cap.distinct)
        kept = [_Range(*one, *limit) for one in _ranges(runs, space, encoder, "kept")]
        bounded = list(space.executor.map(_bound, kept))
        if tells_units:
            tally.units, tally.unit_rows = sum(one.units for one in bounded), sum(run.size for run in runs)
        tally.counted = sum(one.total for one in bounded)
        runs = [one.run for one in bounded]
    merged = [_Range(*one) for one in _ranges(runs, space, encoder, "merged")]
    parts = list(space.executor.map(_merge, merged))
    counts = _freeze(parts, encoder.words, space)
    if progress is not None:
        progress("reading", 1.0)
    return counts


def _encode(task: _Encode) -> _Encoded:
    """Read a piece of the table, and write its rows as runs: a pure function, but for the files."""
    tally, rows, runs, waiting = Tally(), 0, list[SortedRun](), list[EncodedRows]()
    tally.unknown = task.encoder.unknown

    def write() -> None:
        if waiting:
            runs.append(_written(task, waiting, task.folder.with_name(f"{task.folder.name}-{len(runs)}")))
            waiting.clear()

    for batch in tables.batches(task.piece, task.encoder.wanted):
        rows += len(batch.rows)
        waiting.append(task.encoder.rows(batch, tally))
        if sum(len(encoded.keys[0]) for encoded in waiting) >= task.rows:
            write()
    write()
    return _Encoded(tuple(runs), rows, tally)


def _written(task: _Encode, waiting: Sequence[EncodedRows], folder: Path) -> SortedRun:
    """Write rows as a run: of leaves with their counts; or, where units are bounded, of rows by their unit's hash."""
    keys = [np.concatenate(words) for words in zip(*(encoded.keys for encoded in waiting), strict=True)]
    some = [encoded.weights for encoded in waiting if encoded.weights is not None]
    weights = np.concatenate(some) if some else None
    cap = task.encoder.cap
    if cap is None:
        return _save_counts(folder, Counts.from_keys(keys, weights))
    high, low = np.concatenate([cap.hashes(encoded.ids) for encoded in waiting], axis=1)
    order = np.argsort(high)
    columns = {_HIGH: high, _LOW: low, **{f"word{word}": key for word, key in enumerate(keys)}}
    if weights is not None:
        columns[_NUMBER] = weights.view(np.uint64)
    with drafted(folder) as draft:
        for name, column in columns.items():
            save(draft, name, column[order])
    return SortedRun(folder, len(order), _sampled(high[order]))


def _save_counts(folder: Path, counts: Counts) -> SortedRun:
    with drafted(folder) as draft:
        for word, key in enumerate(counts.keys):
            save(draft, f"word{word}", key)
        save(draft, _NUMBER, np.diff(counts.before).view(np.uint64))
    return SortedRun(folder, len(counts), _sampled(counts.keys[0]))


def _sampled(words: Words) -> Words:
    return words[:: max(len(words) // _SAMPLE, 1)].copy()


def _ranges(
    runs: Sequence[SortedRun], space: Space, encoder: Encoder, name: str
) -> list[tuple[tuple[SortedRun, ...], int, int, Path]]:
    """Cut the first words of all runs into ranges with about as many rows as fit, or a single word."""
    if not runs:
        return []
    sample = np.concatenate([run.sample for run in runs])
    weight = np.concatenate([np.full(len(run.sample), run.size / max(len(run.sample), 1)) for run in runs])
    order = np.argsort(sample)
    after = np.cumsum(weight[order])
    number = int(np.ceil(after[-1] / space.rows(encoder))) if len(after) else 1
    wanted = np.searchsorted(after, after[-1] * np.arange(1, number) / number) if number > 1 else np.empty(0, int)
    cuts = [0, *np.unique(sample[order][wanted]).tolist(), _END]
    ranges = [(begin, end) for begin, end in pairwise(cuts) if begin < end]
    return [(tuple(runs), *one, space.folder / f"{name}{at}") for at, one in enumerate(ranges)]


def _slices(task: _Range, first: str) -> Iterator[tuple[Path, slice]]:
    for run in task.runs:
        words = opened(run.folder, first)
        begin = int(np.searchsorted(words, np.uint64(task.begin)))
        rows = slice(begin, len(words) if task.end == _END else int(np.searchsorted(words, np.uint64(task.end))))
        if rows.start < rows.stop:
            yield run.folder, rows


def _together(slices: Sequence[tuple[Path, slice]], name: str) -> Words:
    return np.concatenate([np.empty(0, np.uint64), *(opened(folder, name)[rows] for folder, rows in slices)])


def _bound(task: _Range) -> _Merged:
    """Bring the rows of some units together, and write those that are kept as a run of leaves."""
    slices = list(_slices(task, _HIGH))
    words = [_together(slices, name) for name in words_in(task.runs[0].folder)]
    counted = (task.runs[0].folder / f"{_NUMBER}.npy").exists()
    weights = _together(slices, _NUMBER).view(np.int64) if counted else None
    high, low = _together(slices, _HIGH), _together(slices, _LOW)
    kept, units = keep_of_units(high, low, words, weights, task.most, task.distinct)
    counts = Counts.from_keys(list(kept.keys), kept.weights)
    return _Merged(_save_counts(task.folder, counts), counts.total, units)


def _merge(task: _Range) -> _Merged:
    """Merge a range of all runs: equal paths become one leaf."""
    slices = list(_slices(task, "word0"))
    words = [_together(slices, name) for name in words_in(task.runs[0].folder)]
    counts = Counts.from_keys(words, _together(slices, _NUMBER).view(np.int64))
    return _Merged(_save_counts(task.folder, counts), counts.total)


def _freeze(parts: Sequence[_Merged], words: int, space: Space) -> FrozenCounts:
    """Write parts, which follow each other, as one."""
    folder, leaves, records = space.folder / "counts", 0, 0
    placed = []
    for part in parts:
        placed.append((folder, part.run.folder, leaves, records))
        leaves, records = leaves + part.run.size, records + part.total
    if records > LARGEST_TOTAL:
        raise DataError(TOO_MANY)
    folder.mkdir()
    for word in range(words):
        room(folder, f"word{word}", np.uint64, leaves)
    room(folder, BEFORE, np.int64, leaves + 1)
    for _ in space.executor.map(_place, placed):
        pass
    return FrozenCounts.opened(folder)


def _place(task: tuple[Path, Path, int, int]) -> None:
    """Write a part into the whole, after so many leaves and records."""
    folder, run, leaves, records = task
    for name in words_in(run):
        write_part(folder, name, leaves, opened(run, name))
    write_part(folder, BEFORE, leaves + 1, np.cumsum(opened(run, _NUMBER).view(np.int64)) + records)
