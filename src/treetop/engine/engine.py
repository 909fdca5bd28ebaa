"""Engines: where a release is computed. All give the same release, bit for bit; they differ in capacity."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from treetop._util.choices import Choices
from treetop._util.system import available
from treetop.engine.staging import staging
from treetop.engine.worker import receive, send
from treetop.errors import EngineError

# Executors: who runs the tasks of a descent. The tasks, and so the release, are the same with all of them.

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Runs a function of tasks, anywhere and as often as it takes: it is pure, and all it needs is in the task."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
        """Yield the results in the order of the tasks."""


@dataclass(frozen=True)
class Threads:
    """Several tasks at a time, on threads of this process: kernels do not hold the interpreter."""

    threads: int = 1

    def map(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
        """Yield the results in the order of the tasks."""
        if self.threads <= 1:
            yield from map(function, tasks)
            return
        with ThreadPoolExecutor(max_workers=self.threads) as pool:
            yield from pool.map(function, tasks)


# Worker processes: as many tasks at a time as there are workers. One that dies is replaced, and its task repeated.

ATTEMPTS = 3
"""So often a task is begun, if workers die with it."""
AHEAD = 4
"""For each worker so many tasks are under way, or done and not asked for yet."""


class Processes:
    """Runs tasks in processes of their own. A task that is done again gives the same: it is a pure function."""

    def __init__(self, workers: int) -> None:
        self._free: SimpleQueue[_Worker] = SimpleQueue()
        self._workers = [_Worker() for _ in range(max(workers, 1))]
        for worker in self._workers:
            self._free.put(worker)

    def map(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
        """Yield what the function gives for each task, in the order of the tasks.

        Tasks are taken, and answers held, only a few ahead of the caller.
        """
        pool, stopped = ThreadPoolExecutor(len(self._workers)), Event()
        begun = (pool.submit(self._call, function, task, stopped) for task in tasks)
        waiting: deque[Future[R]] = deque()
        try:
            waiting.extend(islice(begun, AHEAD * len(self._workers)))
            while waiting:
                answer = waiting[0].result()
                waiting.popleft()
                waiting.extend(islice(begun, 1))
                yield answer
        except BaseException:  # an interrupt, or what one task raised, or who asked has enough
            if waiting:  # nobody waits for the others
                stopped.set()
                self.close()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _call(self, function: Callable[[T], R], task: T, stopped: Event) -> R:
        worker = self._free.get()
        try:
            for _ in range(ATTEMPTS):
                if stopped.is_set():
                    raise EngineError("the work was broken off")
                try:
                    done, answer = worker.call(function, task)
                except (EOFError, OSError, ValueError):  # its pipes are closed: it has ended, or was ended
                    worker.end()
                    continue
                if not done:
                    raise answer
                return answer  # type: ignore[no-any-return]
            raise EngineError(
                f"a worker process ended {ATTEMPTS} times in the middle of the same piece of work, most likely for "
                "lack of memory: let each hold less (`memory`), or have fewer of them (`threads`)"
            )
        except BaseException:
            worker.end()  # whatever it was doing, nobody waits for it any more
            raise
        finally:
            self._free.put(worker)

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.end()


class _Worker:
    """One process, started when it is needed first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def call(self, function: Callable[[Any], Any], task: Any) -> tuple[bool, Any]:
        """Call a function in the worker; return whether it succeeded, and its result or exception."""
        process = self._process
        if process is None:
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
            command = [sys.executable, "-P", "-m", "treetop.engine.worker"]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            process = self._process = subprocess.Popen(command, env=environment, **pipes)
        assert process.stdin is not None and process.stdout is not None
        send(process.stdin, (function, task))  # type: ignore[arg-type]
        return receive(process.stdout)  # type: ignore[no-any-return, arg-type]

    def end(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()


AUTO = "auto"
LEAST_MEMORY = 256 << 20
"""A worker that may hold less does not get far."""
MOST_MEMORY = 2 << 30
"""Default memory limit per worker in bytes, capped by available memory."""

_UNITS = {"": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Engine:
    """Where a release is computed, and with how much room.

    >>> Engine("processes", memory="2GB").memory
    2147483648
    """

    name: str = AUTO
    """"auto", "local" (in memory), "processes" (out of core, on this machine), "spark", "dask", or one that was
    registered."""
    staging: str | Path | None = None
    """Where engines that do not hold all counts in memory make their private folder; that of temporary files when None.
    True counts lie in it while they run: it must be a disk that the private table might lie on as well."""
    memory: int | str | None = None
    """Memory limit per worker, in bytes or as in "2GB"; None for 2 GB, or half of the memory if that is less."""
    workers: int | None = None
    """How many workers; as many as there are processors when None."""
    master: str | None = None

    def __post_init__(self) -> None:
        if self.name != AUTO:
            ENGINES[self.name]  # refused where there is none
        if self.memory is not None:
            object.__setattr__(self, "memory", _bytes(self.memory))
        if self.workers is not None and self.workers < 1:
            raise EngineError(f"there are {self.workers} workers: give one at least")

    @property
    def number(self) -> int:
        """How many workers there are."""
        return self.workers or os.cpu_count() or 1

    @property
    def bytes(self) -> int:
        """How many bytes a worker may hold."""
        if self.memory is not None:
            return max(int(self.memory), LEAST_MEMORY)
        there = available()
        share = MOST_MEMORY if there is None else there // (2 * self.number)
        return max(min(share, MOST_MEMORY), LEAST_MEMORY)

    def settled(self, table: Any, needed: int | None) -> Engine:
        """Decide where "auto" computes a table that takes about so many bytes in memory."""
        if self.name != AUTO:
            return self
        if is_frame(table):
            return replace(self, name="spark")
        if needed is None or needed < LEAST_MEMORY or (there := available()) is None or needed < there // 2:
            return replace(self, name="local")
        _LOG.warning(
            "the table may take %s bytes of memory, and %s are free: it is counted out of core, in a private folder "
            "that is deleted afterwards", f"{needed:,}", f"{there:,}",
        )  # fmt: skip
        return replace(self, name="processes")

    def refuse_own_staging(self, elsewhere: bool) -> None:
        """Refuse to choose a folder that workers elsewhere would have to see."""
        if elsewhere and self.staging is None:
            raise EngineError(
                f"the engine {self.name!r} needs a private folder that all its workers see under the same path, and "
                "that true counts may lie in for the time of the run: name it (`staging`)"
            )

    def started(self) -> AbstractContextManager[Machine]:
        """Start the engine's processes and folders; they are removed afterwards."""
        return ENGINES[self.name].start(self)


@dataclass(frozen=True)
class Machine:
    """A started engine."""

    executor: Executor = field(repr=False)
    folder: Path | None = None
    """Where counts are that are not to be in memory; None where they are."""
    memory: int = MOST_MEMORY
    files: Callable[[Any, Sequence[str], Path], list[Path]] | None = field(default=None, repr=False)
    """Writes columns of a DataFrame that lives on a cluster into a folder; None where there is no cluster."""

    def reachable(self, table: Any, columns: Sequence[str]) -> Any:
        """Return a table with columns that tasks can read: a DataFrame of a cluster is one when it lies in files."""
        if not is_frame(table):
            return table
        if self.files is None or self.folder is None:
            raise EngineError(
                'a DataFrame of Spark is read where it is, by the engine "spark": name that engine, or give '
                "df.toArrow() where it fits into memory"
            )
        empty = pa.table({name: pa.array([], pa.string()) for name in columns})
        return self.files(table, columns, self.folder / "frame") or empty


@dataclass(frozen=True)
class EngineKind:
    """A kind of engine."""

    name: str
    words: str
    start: Callable[[Engine], AbstractContextManager[Machine]] = field(repr=False)


ENGINES: Choices[EngineKind] = Choices("engine")


def as_engine(given: Any, threads: int | None = None) -> Engine:
    """Return an engine that is given as such, or by its name."""
    engine = given if isinstance(given, Engine) else Engine(given)
    return engine if threads is None else replace(engine, workers=threads)


def is_frame(table: Any) -> bool:
    """Tell whether a table is a DataFrame of Spark, classic or through Connect."""
    return type(table).__module__.startswith("pyspark.sql.") and hasattr(table, "mapInArrow")


@contextmanager
def _local(engine: Engine) -> Iterator[Machine]:
    yield Machine(Threads(engine.number))


@contextmanager
def _processes(engine: Engine) -> Iterator[Machine]:
    with staging(engine.staging) as folder:
        workers = Processes(engine.number)
        try:
            yield Machine(workers, folder, engine.bytes)
        finally:
            workers.close()


ENGINES.register(EngineKind("local", "On threads of one process, with all counts in memory.", _local))
ENGINES.register(EngineKind("processes", "In processes on one machine, with counts in a private folder.", _processes))
ENGINES.offer("spark", "treetop.addons.clusters:SPARK")
ENGINES.offer("dask", "treetop.addons.clusters:DASK")


def _bytes(given: int | str) -> int:
    size = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?B?)", str(given).strip().upper())
    unit = "" if size is None else size[2] if size[2] in _UNITS else f"{size[2]}B"
    if size is None or unit not in _UNITS or float(size[1]) <= 0:
        raise EngineError(f'{given!r} is not an amount of memory: give one such as "2GB" or "500MB"')
    return int(float(size[1]) * _UNITS[unit])
