"""(c), (d) An Italy-like table: what a release costs beyond its own noise, and full detail in seconds and bytes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from functools import partial
from typing import Literal

import numpy as np

import treetop as tt
from benchmarks.synthetic import italy_like
from benchmarks.timing import median_seconds
from treetop.counts.counts import Counts
from treetop.engine.engine import Threads
from treetop.measure.descent import descent_of, run_descent
from treetop.noise import Key, NoiseStream

CHUNK = 1 << 15  # so many draws stay in a core's own cache
Detail = Literal["municipality", "section"]


def prepared(detail: Detail, epsilon: float) -> tuple[tt.Plan, Counts]:
    """Return a plan without margins, which `benchmarks.margins` adds, and the counts."""
    trips = italy_like(detail=detail)
    places = tt.Hierarchy.from_table(trips.place_table(), trips.levels)
    spine = tt.Spine.destination_first(origin=places, destination=places)
    loss = tt.Loss(epsilon=epsilon, delta=1e-8)
    plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), loss, margins="none")
    return plan, Counts.from_leaves(spine, [trips.destination, trips.origin], trips.count)


def slots(plan: tt.Plan, counts: Counts, key: Key) -> int:
    """How many samples a release draws: the children of every retained node that has several."""
    leaves = run_descent(descent_of(plan), counts, key).leaves
    release = tt.Release(plan.spine, leaves.nodes, leaves.count, {})
    drawn = 0
    for level in plan.spine.levels:
        fanout = release.tree.fanout(level.index)
        drawn += int(fanout[fanout > 1].sum())
    return drawn


def noise_alone(plan: tt.Plan, size: int, key: Key) -> None:
    law = plan.levels[-1].law
    assert law is not None
    stream, out = NoiseStream(law, key), np.empty(CHUNK, np.int64)
    for slot in range(0, size, CHUNK):
        stream.fill(out[: size - slot], slot)


def overhead() -> list[tuple[str, str, str, str]]:
    found = []
    for epsilon in (1, 10):
        plan, counts = prepared("municipality", epsilon)
        key = Key(bytes(32))
        size = slots(plan, counts, key)
        release = median_seconds(partial(run_descent, descent_of(plan), counts, key), 15)
        noise = median_seconds(partial(noise_alone, plan, size, key), 15)
        name = f"(c) municipalities, ε = {epsilon}"
        found.append(
            (name, f"{release * 1e3:.0f} ms", f"its noise alone {noise * 1e3:.1f} ms", f"{release / noise:.1f}")
        )
    return found


def full_detail() -> list[tuple[str, str, str, str]]:
    """Each in a process of its own, for its peak memory."""
    found = []
    for epsilon in ("1", "10"):
        run = subprocess.run(
            [sys.executable, "-m", "benchmarks.italy", epsilon], check=True, capture_output=True, text=True
        )
        drawn, leaves, one, two, noise, peak = run.stdout.split()
        name = f"(d) sections, ε = {epsilon}"
        about = f"{int(drawn) / 1e6:.0f} million draws, {int(leaves) / 1e6:.2f} million leaves, {float(peak):.2f} GB"
        found.append(
            (
                name,
                f"{float(two):.2f} s on 2 threads",
                f"{float(one):.2f} s on 1; {about}",
                f"{float(one) / float(two):.1f} ×",
            )
        )
        alone = f"its noise alone {float(noise):.3f} s"
        found.append((f"{name}, 1 thread", f"{float(one):.2f} s", alone, f"{float(one) / float(noise):.1f}"))
    return found


def main() -> None:
    plan, counts = prepared("section", float(sys.argv[1]))
    key = Key(bytes(32))
    leaves = run_descent(descent_of(plan), counts, key).leaves
    one = median_seconds(lambda: run_descent(descent_of(plan), counts, key), 3)
    two = median_seconds(lambda: run_descent(descent_of(plan), counts, key, Threads(min(2, os.cpu_count() or 1))), 3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    size = slots(plan, counts, key)
    noise = median_seconds(partial(noise_alone, plan, size, key), 7)
    print(size, len(leaves), one, two, noise, peak)


if __name__ == "__main__":
    main()
