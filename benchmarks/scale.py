"""Tables larger than memory, through the command line: seconds, memory, scratch space and leaves as records grow.

`make bench-scale` writes blocks of ten million trips between 362,292 census sections to a temporary folder, each drawn
anew, up to ten of them; a larger table has copies of these ten files. It runs `treetop release --engine processes` on
tables of the sizes that are asked for (`SIZES="10M 100M 1G"`) with a fixed `--memory`, and prints what each took; of
three sizes or more also a model of the costs (`benchmarks.cost_model`). There are no margins, unless the plan with them
is asked for (`PLAN=trips.toml`), and more leaves with a larger `EPSILON`. Memory is what a process cannot give back
(anonymous pages), sampled twenty times a second; pages of files, which the system drops when it needs room, come on
top.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from benchmarks import cost_model
from benchmarks.cost_model import Taken
from benchmarks.full_detail import TRIPS, show
from benchmarks.synthetic import OriginDestination, italy_like

HEAD = ("records", "on the clock", "processor", "a worker", "the driver", "scratch", "leaves released")
CLUSTER = (10**10, 10**9, 160, 1.5)
"""What is predicted from three sizes or more: records, leaves, cores, and how many times the processor seconds."""
BLOCK = 10_000_000
FILES = 10
_UNITS = {"K": 10**3, "M": 10**6, "G": 10**9}


def write_block(trips: OriginDestination, number: int, path: Path) -> None:
    """Write ten million trips: seven in ten are some that there were, the others lead to any section."""
    rng = np.random.default_rng(number)
    home, work = trips.records(seed=None)
    chosen = rng.integers(0, len(home), BLOCK)
    ends = home[chosen], np.where(rng.random(BLOCK) < 0.3, rng.integers(0, trips.sizes[-1], BLOCK), work[chosen])
    codes = pa.array(trips.codes("section"))
    columns = [pa.DictionaryArray.from_arrays(pa.array(end), codes) for end in ends]
    pq.write_table(pa.table(dict(zip(("home", "work"), columns, strict=True))), path, row_group_size=1 << 20)


def write_plans(folder: Path, epsilon: float) -> None:
    plan = TRIPS.replace("delta = 1e-8", "delta = 1e-12")  # well below one in the number of records
    plan = plan.replace("epsilon = 1.0", f"epsilon = {epsilon}")
    (folder / "trips.toml").write_text(plan)
    (folder / "no_margins.toml").write_text(plan.replace("[spine]", '[spine]\nmargins = "none"'))
    (folder / "resolved.toml").write_text(plan + "[release]\nresolve = { fdr = 0.05 }\n")


def write(folder: Path, largest: int) -> None:
    trips = italy_like()
    csv.write_csv(trips.place_table(), folder / "sections.csv")
    for number in range(min(FILES, -(-largest // BLOCK))):
        write_block(trips, number, folder / f"block{number}.parquet")


def table(folder: Path, records: int) -> Path:
    """Return a folder with as many blocks as have so many records, copies of the same ones where there are more."""
    listed = folder / f"table{records}"
    listed.mkdir()
    for number in range(-(-records // BLOCK)):
        # A second link to a file would be refused, as rows that are read twice.
        as_file = os.link if number < FILES else shutil.copyfile
        as_file(folder / f"block{number % FILES}.parquet", listed / f"part{number:03d}.parquet")
    return listed


@dataclass
class Watch:
    """Samples the memory of a process and of its children, and the space in a folder."""

    process: int
    scratch: Path
    driver: int = 0
    workers: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    space: int = 0

    def __call__(self, ended: threading.Event) -> None:
        """Sample until it has ended."""
        rounds = 0
        while not ended.wait(0.05):
            self.driver = max(self.driver, _anonymous(self.process))
            for child in _children(self.process):
                self.workers[child] = max(self.workers[child], _anonymous(child))
            if rounds % 20 == 0:
                self.space = max(self.space, _space(self.scratch))
            rounds += 1


def _status(process: int) -> dict[str, int]:
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":")[::2] for line in lines)
    return {name: int(value.split()[0]) for name, value in pairs if value.split()[:1] and value.split()[0].isdigit()}


def _anonymous(process: int) -> int:
    return 1024 * _status(process).get("RssAnon", 0)


def _children(process: int) -> list[int]:
    try:
        listed = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(child) for child in listed.split()]


def _space(folder: Path) -> int:
    total = 0
    for where, _, files in os.walk(folder):  # which passes over what is gone in between
        for name in files:
            with suppress(OSError):
                total += Path(where, name).stat().st_blocks * 512
    return total


def measure(folder: Path, plan: str, records: int, memory: str, workers: int) -> tuple[Taken, tuple[str, ...]]:
    """Release a table, and return what it took, also as a row."""
    out, scratch, listed = folder / "release", folder / "staging", table(folder, records)
    scratch.mkdir(exist_ok=True)
    shutil.rmtree(out, ignore_errors=True)
    options = ["--engine", "processes", "--staging", str(scratch), "--memory", memory, "--threads", str(workers)]
    command = ["release", str(folder / plan), str(listed), "--out", str(out), *options, "--quiet"]
    start = time.perf_counter()
    process = os.posix_spawn(sys.executable, [sys.executable, "-m", "treetop", *command], os.environ)
    watch, ended = Watch(process, scratch), threading.Event()
    watching = threading.Thread(target=watch, args=(ended,))
    watching.start()
    _, status, usage = os.wait4(process, 0)
    wall, processor = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
    ended.set()
    watching.join()
    if status != 0:
        raise SystemExit(f"treetop {' '.join(command)} failed")
    leaves = json.loads((out / "card.json").read_text(encoding="utf-8"))["released"]["leaves"]
    return Taken(records, leaves, wall, processor, workers, watch.driver), (
        f"{records:,}", f"{wall:.0f} s", f"{processor:.0f} s",
        f"{max(watch.workers.values(), default=0) / 1e9:.2f} GB", f"{watch.driver / 1e9:.2f} GB",
        f"{watch.space / 1e9:.1f} GB", f"{leaves:,}",
    )  # fmt: skip


def records_of(size: str) -> int:
    return int(float(size.rstrip("KMG")) * _UNITS.get(size[-1], 1))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("sizes", nargs="*", default=["10M", "100M"], help="how many records, as in 10M or 1G")
    options.add_argument("--memory", default="1GB", help="what a worker may hold")
    options.add_argument("--workers", type=int, default=2)
    plans = ["no_margins.toml", "trips.toml", "resolved.toml"]
    options.add_argument("--plan", default=plans[0], choices=plans, help="without margins, with them, or with fdr too")
    options.add_argument("--epsilon", type=float, default=1.0, help="more of it leaves more leaves above zero")
    options.add_argument("--keep", type=Path, help="a folder for the tables, which is used again if it has them")
    chosen = options.parse_args()
    sizes = [records_of(size) for size in chosen.sizes]
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "block0.parquet").exists():
            write(folder, max(sizes))
        write_plans(folder, chosen.epsilon)
        rows: list[tuple[str, ...]] = [HEAD]
        taken: list[Taken] = []
        for records in sizes:
            shutil.rmtree(folder / f"table{records}", ignore_errors=True)
            one, row = measure(folder, chosen.plan, records, chosen.memory, chosen.workers)
            taken.append(one)
            rows.append(row)
            shutil.rmtree(folder / f"table{records}")
            show(rows)
    if len(set(sizes)) >= 3 and chosen.workers > 1:
        print(*cost_model.say(cost_model.fit(taken), taken, *CLUSTER), sep="\n")


if __name__ == "__main__":
    main()
