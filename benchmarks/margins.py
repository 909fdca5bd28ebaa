"""(f) What margins cost: the descent alone, and a whole release at full detail through the command line.

Runs with and without margins take turns, and seconds are those of the processor: on a machine with other work the
clock says little.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.italy import Detail, prepared
from benchmarks.timing import run
from treetop.measure.descent import descent_of, run_descent
from treetop.noise import Key

Row = tuple[str, str, str, str]

DESCENTS: tuple[tuple[Detail, str, int], ...] = (
    ("municipality", "0.01", 9),
    ("municipality", "0.1", 9),
    ("municipality", "1", 9),
    ("municipality", "10", 9),
    ("section", "1", 3),
    ("section", "10", 3),
)
"""Detail, epsilon and number of turns."""
TURNS = 3
"""How often the command line is run, each way."""


def descent() -> list[Row]:
    """Each in a process of its own, as its memory is."""
    found = []
    for detail, epsilon, turns in DESCENTS:
        command = [sys.executable, "-m", "benchmarks.margins", detail, epsilon, str(turns)]
        seconds = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        without, with_margins = map(float, seconds)
        name = f"(f) descent with margins, {detail}, ε = {epsilon}, processor time of one thread"
        found.append(_row(name, with_margins, without, "s", 3))
    return found


def command_line(folder: Path) -> list[Row]:
    """Release what `benchmarks.full_detail` has written to a folder."""
    plans = {"each": "trips.toml", "none": "no_margins.toml"}
    seconds: dict[str, list[float]] = {margins: [] for margins in plans}
    peaks: dict[str, list[float]] = {margins: [] for margins in plans}
    for _ in range(TURNS):
        for margins, plan in plans.items():
            out = folder / "release"
            shutil.rmtree(out, ignore_errors=True)
            cost = run("release", str(folder / plan), str(folder / "trips.parquet"), "--out", str(out))
            seconds[margins].append(cost.processor)
            peaks[margins].append(cost.peak)
    found = []
    for what, got, unit in (("processor time", seconds, "s"), ("peak memory", peaks, "GB")):
        with_margins, without = (statistics.median(got[margins]) for margins in plans)
        found.append(_row(f"(f) command line with margins, sections, ε = 1, {what}", with_margins, without, unit, 2))
    return found


def _row(name: str, with_margins: float, without: float, unit: str, digits: int) -> Row:
    beside = f"without margins {without:.{digits}f} {unit}"
    return name, f"{with_margins:.{digits}f} {unit}", beside, f"{with_margins / without:.2f}"


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        # Not in this process: a command's peak memory would begin with that of the process that starts it.
        subprocess.run([sys.executable, "-m", "benchmarks.full_detail", folder, "--trips"], check=True)
        return descent() + command_line(Path(folder))


def main() -> None:
    """Print the median seconds of a descent without and with margins."""
    detail: Detail = "section" if sys.argv[1] == "section" else "municipality"
    plan, counts = prepared(detail, float(sys.argv[2]))
    descents = [descent_of(replace(plan, margins=margins)) for margins in ("none", "each")]
    seconds: list[list[float]] = [[], []]
    for turn in range(int(sys.argv[3]) + 1):
        for found, one in zip(seconds, descents, strict=True):
            start = time.thread_time()
            run_descent(one, counts, Key(bytes([turn] * 32)))
            found.append(time.thread_time() - start)
    print(*(statistics.median(found[1:]) for found in seconds))  # the first turn warms up


if __name__ == "__main__":
    main()
