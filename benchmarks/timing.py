"""Taking times: medians of several runs, after one that warms up, and what a command takes."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def median_seconds(work: Callable[[], object], repeats: int = 7) -> float:
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


@dataclass(frozen=True)
class Cost:
    """What one command took."""

    wall: float
    """Seconds on the clock."""
    processor: float
    """Seconds of all processors."""
    peak: float
    """The most memory it held, in GB."""

    def cells(self) -> tuple[str, str, str]:
        """Return it as the cells of a table."""
        return f"{self.wall:.1f} s", f"{self.processor:.1f} s", f"{self.peak:.2f} GB"


def run(*command: str) -> Cost:
    """Run the command line in a process of its own."""
    start = time.perf_counter()
    with Path(os.devnull).open("wb") as nothing:
        program = [sys.executable, "-m", "treetop", *command]
        actions = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), 1)]
        process = os.posix_spawn(sys.executable, program, os.environ, file_actions=actions)
        _, status, usage = os.wait4(process, 0)
    if status != 0:
        raise SystemExit(f"treetop {' '.join(command)} failed")
    return Cost(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e9)
