"""Executors: who runs the tasks of a descent. The tasks, and so the release, are the same with all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

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
