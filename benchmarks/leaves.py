"""A release larger than memory, through the command line: seconds and memory of check, query, a table and an export.

`make bench-leaves` (`LEAVES=100M`) writes a release folder in parts, and runs the commands on it, each in a process of
its own. The folder is made up, and says that it is not private: leaves between 360,000 places, 2,500 of every pair of
provinces at 100 million, are drawn part by part and handed to the writer, with every count as its own measurement. Its
sums, intervals, hashes and card are as of any other release. Memory is the most that a process ever had, files that it
looked at included.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import treetop as tt
from benchmarks.full_detail import show
from benchmarks.scale import records_of
from treetop._util.dtypes import Ints
from treetop._util.lazy import later
from treetop.card import RunInfo, describe_release
from treetop.measure.descent import descent_of
from treetop.measure.measure import NOTHING, Evidence, LevelEvidence
from treetop.plan.workload import noise_of
from treetop.release.measurements import KeptMeasurements
from treetop.release.release import Release
from treetop.release.shards import PART, ROW_GROUPS, Leaves, Shards, Top
from treetop.release.tree import ReleasedTree

SIZES = (20, 10, 50, 36)
LEVELS = ("region", "province", "municipality", "section")
ACROSS = SIZES[0] * SIZES[1]
WITHIN = SIZES[2] * SIZES[3]
HEAD = ("command", "on the clock", "processor", "peak memory", "answer")


def places() -> tt.Hierarchy:
    """Return a hierarchy whose codes say where they are."""
    numbers = np.indices(SIZES).reshape(len(SIZES), -1)
    columns = {}
    for depth, level in enumerate(LEVELS):
        widths = (2, 1, 2, 2)[: depth + 1]
        texts = [np.char.zfill(own.astype(str), width) for own, width in zip(numbers, widths, strict=False)]
        code = texts[0]
        for text in texts[1:]:
            code = np.char.add(code, text)
        columns[level] = pa.array(code)
    return tt.Hierarchy.from_table(pa.table(columns), levels=list(LEVELS))


@dataclass(frozen=True, eq=False)
class MadeUp(Shards):
    """Leaves that are drawn when they are asked for, the same each time."""

    each: int = field(kw_only=True)
    """How many there are of every pair of provinces."""
    size: int = field(kw_only=True)
    """About how many a part has."""

    @property
    def counts(self) -> Ints:
        """The counts of the leaves of a pair of provinces."""
        return 1 + np.arange(self.each) % 9

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return self.each * ACROSS**2

    @property
    def group(self) -> int:
        """How many rows are written, and read again, at a time."""
        return self.size // ROW_GROUPS

    def leaves_of(self, number: int) -> Leaves:
        """Draw the leaves of a part."""
        first, last = self.starts[number : number + 2].tolist()
        rng = np.random.default_rng(number)
        share = WITHIN**2 // self.each
        path = rng.integers(0, share, (last - first, self.each)) + np.arange(self.each) * share
        pair = np.repeat(self.top.tree.at(self.top.level).nodes[:, first:last], self.each, axis=1)
        town, section = np.divmod(path.ravel(), SIZES[3] ** 2)
        ends = np.divmod(town, SIZES[2]), np.divmod(section, SIZES[3])
        names = list(self.spine.attributes)
        nodes = np.empty(pair.shape, np.int32)
        for at, end in enumerate(("destination", "origin")):
            own = names.index(end)
            nodes[own] = (pair[own] * SIZES[2] + ends[0][at]) * SIZES[3] + ends[1][at]
        return nodes, np.tile(self.counts, last - first)

    def evidence_of(self, number: int, tree: ReleasedTree) -> Sequence[tuple[Ints, Ints]]:
        """Return every count as its own measurement."""
        below = [tree.at(level.index) for level in self.spine.levels[self.top.level :]]
        return [(found.count, np.full(len(found), NOTHING)) for found in below]


def made_up(leaves: int, part: int = PART) -> Release:
    """Return a release of about so many leaves."""
    tree = places()
    spine = tt.Spine.destination_first(origin=tree, destination=tree)
    unit, loss = tt.Unit("trip", neighbours="replace"), tt.Loss(epsilon=1, delta=1e-12)
    plan = tt.Plan(spine, unit, loss, margins="none", title="Made up")
    each = max(leaves // ACROSS**2, 1)
    pairs = np.indices((SIZES[0], SIZES[0], SIZES[1], SIZES[1])).reshape(4, -1)
    nodes = np.empty((2, pairs.shape[1]), np.int64)
    for at, end in enumerate(("destination", "origin")):
        nodes[list(spine.attributes).index(end)] = pairs[at] * SIZES[1] + pairs[2 + at]
    top = Top.of(spine, 4, nodes, np.full(pairs.shape[1], int((1 + np.arange(each) % 9).sum())))
    descent = descent_of(plan)
    laws = tuple(noise_of(how) for how in (descent.total, *(step.how for step in descent.steps)))
    levels = [
        LevelEvidence(level.count, np.full(len(above), NOTHING), level.count)
        for above, level in pairwise([top.tree.at(at) for at in range(5)])
    ]
    levels.append(LevelEvidence(np.empty(0, np.int64), np.full(pairs.shape[1], NOTHING), np.empty(0, np.int64)))
    starts = np.append(np.arange(0, pairs.shape[1], max(part // each, 1)), pairs.shape[1])
    known = KeptMeasurements(top.tree, Evidence(None, tuple(levels), laws), down_to=top.level)
    shards = MadeUp(top, starts, known, each=each, size=part)
    card = describe_release(plan, RunInfo(private=False, description="Made up for a benchmark: no data is behind it."))

    def refuse() -> Any:
        raise AssertionError("all leaves at a time were asked for")

    return Release(spine, later(refuse), later(refuse), card, stored=shards)


def measure(*command: str) -> tuple[str, ...]:
    """Run a command, and return a row of what it took."""
    start, (read, write) = time.perf_counter(), os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, write, 1)]
    process = os.posix_spawn(
        sys.executable, [sys.executable, "-m", "treetop", *command], os.environ, file_actions=actions
    )
    os.close(write)
    with os.fdopen(read) as out:
        said = out.read().splitlines()
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        raise SystemExit(f"treetop {' '.join(command)} failed: {said[-5:]}")
    shown = " ".join(Path(word).name if "/" in word else word for word in command)
    return (
        f"treetop {shown}", f"{time.perf_counter() - start:.1f} s", f"{usage.ru_utime + usage.ru_stime:.1f} s",
        f"{usage.ru_maxrss * 1024 / 1e9:.2f} GB", f"{len(said)} lines, {said[0] if len(said) < 3 else said[-1]}"[:60],
    )  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("leaves", nargs="?", default="100M", help="how many leaves, as in 10M or 100M")
    options.add_argument("--keep", type=Path, help="a folder for the release, which is used again if it is there")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary) / "release"
        if not folder.exists():
            start = time.perf_counter()
            made_up(records_of(chosen.leaves)).save(folder)
            size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            print(f"written in {time.perf_counter() - start:.0f} s, {size / 1e9:.1f} GB")
        out = folder.parent / "export.csv"
        rows: list[tuple[str, ...]] = [HEAD]
        for command in (
            ("query", str(folder), "origin=070", "destination=131"),
            ("query", str(folder), "origin=0703512", "destination=1310107"),
            ("query", str(folder), "destination=1310107"),
            ("query", str(folder), "--by", "destination.region", "--csv"),
            ("query", str(folder), "--by", "origin.municipality", "--csv"),
            ("query", str(folder), "destination=13101", "--by", "origin.municipality", "--csv"),
            ("check", str(folder)),
            ("export", str(folder), "--to", "csv", "--out", str(out), "--force"),
        ):
            rows.append(measure(*command))
            show(rows)
        print(f"{out.stat().st_size / 1e9:.1f} GB of CSV")
        out.unlink()
        if chosen.keep is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
