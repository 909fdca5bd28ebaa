"""Memory limits, work on several threads, and progress of long work."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Full, Queue
from threading import Thread, main_thread
from types import FrameType
from typing import TypeAlias, TypeVar

from treetop.errors import Refusal

LEAST = 1 << 30
"""How many bytes of address space loading everything takes, with room for a small table."""


class TooLarge(Refusal):
    """Something that would not fit in memory."""


def refuse_beyond_memory(needed: int, what: str, remedy: str) -> None:
    """Refuse a need for more bytes than are available, and state both numbers."""
    there = available()
    if there is not None and needed > there:
        raise TooLarge(f"{what} would take about {needed:,} bytes of memory, and {there:,} are to be had: {remedy}")


def available() -> int | None:
    """Return how many bytes of memory this process can still get; None where nobody knows."""
    most, used = limit(), _field("/proc/self/status", "VmSize:")
    below_limit = None if most is None or used is None else most - used
    most, used = (_number(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))  # of a container
    below_group = None if most is None or used is None else most - used
    parts = (_field("/proc/meminfo", "MemAvailable:"), below_group, below_limit)
    known = [part for part in parts if part is not None]
    return max(min(known), 0) if known else None


def limit() -> int | None:
    """Return how many bytes of address space this process may have; None where there is no such limit."""
    try:
        import resource
    except ImportError:  # not on this system
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if most == resource.RLIM_INFINITY else most


def too_little() -> str | None:
    """Say that nothing can be loaded reliably, where it cannot: libraries hang or abort with less."""
    most = limit()
    if most is None or most >= LEAST:
        return None
    return (
        f"there is not enough memory: this process may use {most >> 20:,} MB, and loading the libraries takes "
        f"{LEAST >> 20:,} MB. Raise the limit (ulimit -v)"
    )


def _field(file: str, name: str) -> int | None:
    try:
        lines = Path(file).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    value = next((line.split()[1] for line in lines if line.startswith(name)), "")
    return 1024 * int(value) if value.isdigit() else None


def _number(file: str) -> int | None:
    try:
        text = Path(file).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


# Work on several threads: on runs of rows, on one thing while the next is made, or on pieces as they come.

Item = TypeVar("Item")
Result = TypeVar("Result")

_PATIENCE = 0.1
"""After so many seconds without room for a result it is looked whether the program still runs."""


def in_runs(threads: int, rows: int, work: Callable[[slice], Result], runs_of_each: int = 8) -> list[Result]:
    """Process runs of rows, some runs for each thread, and return the results in order."""
    size = max(-(-rows // (runs_of_each * max(threads, 1))), 1)
    runs = [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
    if threads <= 1 or len(runs) == 1:
        return [work(run) for run in runs]
    with ThreadPoolExecutor(max_workers=threads) as pool:
        return list(pool.map(work, runs))


def behind(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Process items on other threads while this one makes the next item; return the results in order."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        try:
            pool.submit(int)
        except RuntimeError:  # there is no thread to be had, for lack of memory
            return [work(item) for item in items]
        return list(pool.map(work, items))


def as_they_come(
    threads: int, work: Callable[[Item], Iterable[Result]], items: Sequence[Item]
) -> Generator[Result, None, None]:
    """Process items, several at a time; yield results (never None) in any order. The first item's error is raised."""
    waiting, failed = deque(enumerate(items)), dict[int, BaseException]()
    coming: Queue[Result | None] = Queue(2 * threads)

    def take() -> None:
        with suppress(IndexError):  # until none is waiting
            while True:
                number, item = waiting.popleft()
                try:
                    for result in work(item):
                        if (failed and min(failed) < number) or not _put(coming, result):
                            break
                except BaseException as problem:  # raised where the results are taken
                    failed[number] = problem
                    waiting.clear()  # all of these come after it
        _put(coming, None)

    running = _started(take, min(threads, len(items)))
    if not running:
        yield from (result for item in items for result in work(item))
        return
    left = len(running)
    try:
        while left:
            if (result := coming.get()) is None:
                left -= 1
            else:
                yield result
    finally:  # also where nobody wants the rest: nothing works on when the interpreter ends
        if left:
            failed[-1] = GeneratorExit()
            waiting.clear()
        while left:
            left -= coming.get() is None
        for thread in running:
            thread.join()
    if failed:
        raise failed[min(failed)]


def _put(coming: Queue[Item], item: Item) -> bool:
    """Put an item into a queue, once there is room; False where the program ends first, and nobody takes it."""
    while main_thread().is_alive():
        with suppress(Full):
            coming.put(item, timeout=_PATIENCE)
            return True
    return False


def _started(work: Callable[[], None], number: int) -> list[Thread]:
    """Start so many threads, or fewer where there are no more to be had, for lack of memory."""
    running = []
    with suppress(RuntimeError):
        for _ in range(number):
            thread = Thread(target=work)
            thread.start()
            running.append(thread)
    return running


# How far a long piece of work has come, as it is told to whoever waits for it.

Progress: TypeAlias = Callable[[str, float], None]
"""Called with the present step and the share of it that is done, from 0 to 1."""


# Signals that wait: Ctrl-C, or a request to end, never comes in the middle of a step that must be whole.

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def held_signals() -> Iterator[None]:
    """Hold back the handlers of signals that end a program, until the block is over; then call them.

    Python calls handlers in the main thread only: in another one there is nothing to hold back. A signal that has no
    handler of Python is left as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Callable[[int, FrameType | None], object]] = {}
    try:
        for number in ENDING:
            if callable(handler := signal.getsignal(number)):
                handlers[number] = handler
                signal.signal(number, lambda *signalled: came.append(signalled))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in came:
            handlers[number](number, frame)
