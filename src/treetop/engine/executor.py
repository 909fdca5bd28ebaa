"""Executors: who runs the tasks of a descent. The tasks, and so the release, are the same with all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from queue import SimpleQueue
from threading import Event
from typing import Any, Protocol, TypeVar

from treetop.engine.worker import receive, send
from treetop.errors import EngineError

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Runs a function of tasks, anywhere and as often as it takes: it is pure, and all it needs is in the task."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
        """Yield the results in the order of the tasks."""


@dataclass(frozen=True)
class Serial:
    """One task after the other, here."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
        """Yield the results in the order of the tasks."""
        return map(function, tasks)


@dataclass(frozen=True)
class Threads:
    """Several tasks at a time, on threads of this process: kernels do not hold the interpreter."""

    threads: int

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
