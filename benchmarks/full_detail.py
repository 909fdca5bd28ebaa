"""Full detail through the command line: reading, descent, writing and checking, in seconds and bytes.

`make bench-detail` writes an Italy-like table (28.8 million trips between 362,292 census sections, ten levels,
131 billion possible leaves) to a temporary folder as Parquet and CSV, runs `treetop release` and `treetop check` on it
as a user would, and prints what each took, what the parts of reading take, and what every level of the descent did.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

import treetop as tt
from benchmarks import margins
from benchmarks.italy import prepared
from benchmarks.synthetic import OriginDestination, italy_like
from benchmarks.timing import run
from treetop.counts.contribution_cap import Paths, count_rows
from treetop.counts.counts import Counts
from treetop.counts.encode import Encoder
from treetop.counts.tally import Tally
from treetop.io import table as tables
from treetop.io.row_batch import RowBatch
from treetop.measure.descent import descent_of
from treetop.measure.level import Frontier, refine
from treetop.noise import Key
from treetop.plan.workload import text_table

T = TypeVar("T")

TRIPS = """
title = "Commuting in a country like Italy, by census section"
[attributes.origin]
column = "home"
hierarchy = "sections.csv"
levels = ["region", "province", "municipality", "area", "section"]
[attributes.destination]
column = "work"
same_as = "origin"
[spine]
order = "destination-first"
[unit]
entity = "trip"
contributions = 1
neighbours = "replace"
[loss]
epsilon = 1.0
delta = 1e-8
"""

PEOPLE = TRIPS.replace("trip", "person").replace("contributions = 1", 'contributions = 2\nid = "person"')

ZONES = """
title = "Ten million zones without a hierarchy"
[attributes.zone]
hierarchy = "zones.parquet"
levels = ["zone"]
[unit]
entity = "visit"
contributions = 1
neighbours = "replace"
[loss]
epsilon = 1.0
delta = 1e-8
"""


def write_trips(folder: Path, trips: OriginDestination) -> pa.Table:
    """Write the trips as records in random order, as Parquet, with plans with and without margins."""
    csv.write_csv(trips.place_table(), folder / "sections.csv")
    codes = pa.array(trips.codes("section"))
    home, work = (pa.DictionaryArray.from_arrays(pa.array(ends), codes).cast(pa.string()) for ends in trips.records())
    table = pa.table({"home": home, "work": work})
    pq.write_table(table, folder / "trips.parquet")
    (folder / "trips.toml").write_text(TRIPS)
    (folder / "no_margins.toml").write_text(TRIPS.replace("[spine]", '[spine]\nmargins = "none"'))
    return table


def write_people(folder: Path, trips: pa.Table) -> None:
    """Write the same trips as CSV, and with people, one in two with two of them."""
    rng = np.random.default_rng(1)
    person = pa.array(rng.integers(0, len(trips) * 2 // 3, len(trips))).cast(pa.string())
    csv.write_csv(trips, folder / "trips.csv")
    pq.write_table(trips.add_column(0, "person", person), folder / "people.parquet")
    (folder / "people.toml").write_text(PEOPLE)


def write_zones(folder: Path, zones: int = 10_000_000, visits: int = 1_000_000) -> None:
    """Write visits to few of very many zones."""
    rng = np.random.default_rng(2)
    codes = np.strings.zfill(np.arange(zones).astype("U8"), 8)
    visited = codes[rng.choice(zones, 20_000, replace=False)][rng.zipf(1.3, visits) % 20_000]
    pq.write_table(pa.table({"zone": codes}), folder / "zones.parquet")
    pq.write_table(pa.table({"zone": visited}), folder / "visits.parquet")
    (folder / "zones.toml").write_text(ZONES)


def commands(folder: Path) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("what", "on the clock", "processor", "peak memory")]
    for name, plan, table in (
        ("release, from Parquet", "trips.toml", "trips.parquet"),
        ("the same without margins", "no_margins.toml", "trips.parquet"),
        ("release, from CSV", "trips.toml", "trips.csv"),
        ("release, two trips a person by id, from Parquet", "people.toml", "people.parquet"),
        ("release of ten million flat zones, a million visits", "zones.toml", "visits.parquet"),
    ):
        out = folder / "release"
        shutil.rmtree(out, ignore_errors=True)
        rows.append((name, *run("release", str(folder / plan), str(folder / table), "--out", str(out)).cells()))
        if plan == "trips.toml" and table == "trips.parquet":
            rows.append(("check of it", *run("check", str(out)).cells()))
    return rows


def reading(folder: Path) -> list[tuple[str, ...]]:
    """Read the trips part by part, one part after the other, with nothing to overlap with."""
    rows: list[tuple[str, ...]] = [("part of reading", "processor", "a row")]
    encoder = Encoder(tt.read_plan(folder / "trips.toml").plan.spine, {"origin": "home", "destination": "work"})
    batches: list[RowBatch] = []
    keys: list[list[NDArray[np.uint64]]] = []

    def timed(name: str, work: Callable[[], T]) -> T:
        start = time.process_time()
        found = work()
        seconds = time.process_time() - start
        rows.append((name, f"{seconds:.2f} s", f"{seconds / records * 1e9:.0f} ns"))
        return found

    records = pq.read_metadata(folder / "trips.parquet").num_rows
    timed("decoding, and a look for damage", lambda: batches.extend(tables.batches(folder / "trips.parquet")))
    encoder.rows(batches[0], Tally())  # compiles, where that is still to do
    timed("codes and paths", lambda: keys.extend(encoder.rows(batch, Tally()).keys for batch in batches))
    batches.clear()
    counts = timed("sorting and counting", lambda: count_rows([Paths(words, None) for words in keys]))
    timed("the digest", lambda: counts.digest)
    return rows


def levels(plan: tt.Plan, counts: Counts) -> list[tuple[str, ...]]:
    """Descend on one thread, level by level."""
    rows: list[tuple[str, ...]] = [("level", "parents", "slots", "kept", "seconds")]
    nodes = Frontier.root(len(plan.spine.attributes), counts.total, len(counts))
    for step in descent_of(plan).steps:
        parents, slots = len(nodes), int(step.fanout(nodes).sum())
        start = time.perf_counter()
        nodes = refine(step, counts, nodes, Key(bytes(32)).derive("level", step.level.index)).frontier
        seconds = time.perf_counter() - start
        rows.append((step.level.name, f"{parents:,}", f"{slots:,}", f"{len(nodes):,}", f"{seconds:.2f}"))
    return rows


def show(rows: Sequence[tuple[str, ...]]) -> None:
    print(text_table(rows, left=(0,)), end="\n\n", flush=True)


def write(folder: Path, everything: bool) -> None:
    trips = write_trips(folder, italy_like())
    if everything:
        write_people(folder, trips)
        write_zones(folder)


def main() -> None:
    if len(sys.argv) > 1:
        write(Path(sys.argv[1]), everything="--trips" not in sys.argv)
        return
    with tempfile.TemporaryDirectory() as folder:
        # Not in this process: a command's peak memory would begin with that of the process that starts it.
        subprocess.run([sys.executable, "-m", "benchmarks.full_detail", folder], check=True)
        run("demo", "--out", f"{folder}/demo")  # compiles
        show(commands(Path(folder)))
        show(reading(Path(folder)))
        show(
            [("what margins cost", "with", "without", "ratio"), *margins.command_line(Path(folder)), *margins.descent()]
        )
    for epsilon in (1.0, 10.0):
        print(f"The descent at epsilon {epsilon:g} without margins, one thread:")
        plan, counts = prepared("section", epsilon)
        levels(plan, counts)
        show(levels(plan, counts))


if __name__ == "__main__":
    main()
