"""The same table on every engine: processor seconds of all processes, beside those of the local engine.

`make bench-engines` writes blocks of ten million trips (see `benchmarks.scale`) and releases them on threads of one
process, in worker processes, and, where Spark is installed, on `local[2]` from files and from a DataFrame. The seconds
are those of whole processes, Java and imports included: every run is waited for with all that it has started.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import treetop as tt
from benchmarks import scale
from benchmarks.full_detail import show
from treetop.addons.clusters.spark import session

HEAD = ("engine", "on the clock", "processor", "against local", "beyond its start", "against local")
PLAN = "no_margins.toml"
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: processes whose parents have ended become ours, so that their seconds are counted."""


def cost(command: Sequence[str]) -> tuple[float, float]:
    """Run a command; return the seconds on the clock, and those of the processors in it and all that it started."""
    before, start = os.times(), time.perf_counter()
    process = os.posix_spawn(sys.executable, [sys.executable, *command], os.environ)
    _, status = os.waitpid(process, 0)
    wall = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"python {' '.join(command)} failed")
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    after = os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def commands(folder: Path, listed: Path, memory: str) -> dict[str, list[str]]:
    """Return what to run for each engine on a table."""
    scratch = folder / "staging"
    scratch.mkdir(exist_ok=True)
    out = folder / "release"
    release = ["-m", "treetop", "release", str(folder / PLAN), str(listed), "--out", str(out), "--quiet"]
    staged = ["--staging", str(scratch), "--memory", memory]
    chosen = {
        "local": [*release, "--engine", "local"],
        "processes, 2 workers": [*release, "--engine", "processes", "--threads", "2", *staged],
    }
    if find_spec("pyspark") is not None:
        chosen["Spark local[2], files"] = [*release, "--engine", "spark", "--master", "local[2]", *staged]
        frame = ["--frame", str(listed), str(folder / PLAN), str(scratch), memory, str(out)]
        chosen["Spark local[2], DataFrame"] = ["-m", "benchmarks.engines", *frame]
    return chosen


def release_frame(listed: str, plan: str, scratch: str, memory: str, out: str) -> None:
    """Release a DataFrame that Spark reads from files."""
    with session("local[2]") as running:
        engine = tt.Engine("spark", staging=scratch, memory=memory)
        tt.publish(plan, running.read.parquet(listed), out, tt.RunOptions(engine=engine))


def measure(folder: Path, sizes: Sequence[int], memory: str) -> list[tuple[str, ...]]:
    """Run every engine on a small table, which tells what a start costs, and on the tables that are asked for."""
    started = {name: _run(folder, command)[1] for name, command in _listed(folder, 1, memory).items()}
    rows: list[tuple[str, ...]] = []
    for records in sizes:
        rows.append((f"{records:,} records", "", "", "", "", ""))
        local: tuple[float, float] | None = None
        for name, command in _listed(folder, records, memory).items():
            wall, processor = _run(folder, command)
            beyond = processor - started[name]
            local = local or (processor, beyond)
            rows.append(
                (name, f"{wall:.1f} s", f"{processor:.1f} s", f"{processor / local[0]:.2f}", f"{beyond:.1f} s",
                 f"{beyond / local[1]:.2f}")
            )  # fmt: skip
    return rows


def _listed(folder: Path, records: int, memory: str) -> dict[str, list[str]]:
    listed = folder / f"table{records}"
    if not listed.exists():
        if records >= scale.BLOCK:
            scale.table(folder, records)
        else:
            _first_rows(folder, listed)
    return commands(folder, listed, memory)


def _first_rows(folder: Path, listed: Path) -> None:
    listed.mkdir()
    few = next(pq.ParquetFile(folder / "block0.parquet").iter_batches(1000))
    pq.write_table(pa.Table.from_batches([few]), listed / "part000.parquet")


def _run(folder: Path, command: Sequence[str]) -> tuple[float, float]:
    shutil.rmtree(folder / "release", ignore_errors=True)
    return cost(command)


def main() -> None:
    if sys.argv[1:2] == ["--frame"]:
        release_frame(*sys.argv[2:])
        return
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("sizes", nargs="*", default=["10M"], help="how many records, as in 10M or 100M")
    options.add_argument("--memory", default="1GB", help="what a worker may hold")
    options.add_argument("--keep", type=Path, help="a folder for the tables, which is used again if it has them")
    chosen = options.parse_args()
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    sizes = [scale.records_of(size) for size in chosen.sizes]
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "block0.parquet").exists():
            scale.write(folder, max(sizes))
        scale.write_plans(folder, epsilon=1.0)
        show([HEAD, *measure(folder, sizes, chosen.memory)])


if __name__ == "__main__":
    main()
