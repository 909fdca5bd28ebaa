"""Work on several threads: on runs of rows, or on one thing while the next is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_runs(threads: int, rows: int, work: Callable[[slice], Result], runs_of_each: int = 8) -> list[Result]:
    """Do the work on runs of rows, some runs for each thread, and return what it gives, in order."""
    size = max(-(-rows // (runs_of_each * max(threads, 1))), 1)
    runs = [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
    if threads <= 1 or len(runs) == 1:
        return [work(run) for run in runs]
    with ThreadPoolExecutor(max_workers=threads) as pool:
        return list(pool.map(work, runs))


def behind(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Do the work on items, on other threads, while this one makes the next item; return what it gives, in order."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        try:
            pool.submit(int)
        except RuntimeError:  # there is no thread to be had, for lack of memory
            return [work(item) for item in items]
        return list(pool.map(work, items))
