"""What every peer's script does alike: read the table, run so many times, write the releases with time and memory.

It needs NumPy only, because it runs in each peer's own environment.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Square:
    """A table of trips between zones that lie in regions, as records."""

    origin: Array
    """The zone where each trip starts."""
    destination: Array
    """The zone where each trip ends."""
    region: Array
    """The region of each zone."""
    epsilon: float
    delta: float
    rho: float
    """The zero-concentrated loss of the whole release, the same for every tool that takes one."""
    plain: bool = False
    """Whether the levels are all that is measured, where a tool measures more of itself."""

    @property
    def zones(self) -> int:
        """How many zones there are."""
        return len(self.region)

    def cells(self) -> Array:
        """Count the trips: one row an origin, one column a destination."""
        cells = np.zeros((self.zones, self.zones), np.int64)
        np.add.at(cells, (self.origin, self.destination), 1)
        return cells


Release = Mapping[str, Array]
"""Under "leaves" the counts by origin and destination; under "1", "2", "3" those of the levels above the leaves, where
they are published by themselves: destination regions; these by origin region; destination zones by origin region."""


def serve(prepare: Callable[[Square], Callable[[], Release]], about: str, version: str, *, pure: bool = False) -> None:
    """Run a peer as its script: `table.npz out.npz --epsilon 1 --delta 1e-8 --rho 0.0192 --repeats 3`.

    A `pure` one spends epsilon and has no rho.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--plain", action="store_true", help="measure the levels and nothing else")
    parser.add_argument("table", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, required=True)
    parser.add_argument("--rho", type=float, required=True)
    parser.add_argument("--repeats", type=int, required=True)
    asked = parser.parse_args()
    with np.load(asked.table) as table:
        ends = table["origin"], table["destination"]
        square = Square(*ends, table["region"], asked.epsilon, asked.delta, asked.rho, asked.plain)
    run = prepare(square)
    run()  # compiles and imports what there is to compile and import
    before = _most_memory()
    releases, seconds, processor = [], [], []
    for _ in range(asked.repeats):
        start, used = time.perf_counter(), time.process_time()
        releases.append(run())
        processor.append(time.process_time() - used)
        seconds.append(time.perf_counter() - start)
    arrays: dict[str, Any] = {
        name: np.stack([np.asarray(release[name]) for release in releases]) for name in releases[0]
    }
    np.savez(
        asked.out,
        **arrays,
        seconds=np.array(seconds),
        processor=np.array(processor),
        memory=np.array(max(_most_memory(), before)),
        about=np.array(about),
        version=np.array(version),
        rho=np.array(math.nan if pure else square.rho),
    )


def loose_epsilon(rho: float, delta: float) -> float:
    """The epsilon that the looser conversion gives a rho: rho + 2√(rho·ln(1/δ))."""
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def _most_memory() -> int:
    """The most memory that the process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
