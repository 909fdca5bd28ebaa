"""(b) A release of a 300 × 300 table, over the public reference implementation on the same table and rho."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa

import treetop as tt
from benchmarks.synthetic import two_level_square
from benchmarks.timing import median_seconds
from treetop.counts.reading import read_counts
from treetop.measure.descent import descent_of, run_descent
from treetop.noise import Key

RHO = Fraction(1, 10)
REFERENCE = Path(".bench/bin/python")


def rows() -> list[tuple[str, str, str, str]]:
    square = two_level_square()
    places = tt.Hierarchy.from_table(square.place_table(), square.levels)
    plan = tt.Plan(
        tt.Spine.destination_first(origin=places, destination=places),
        tt.Unit("trip", neighbours="replace"),
        tt.Loss(rho=RHO),
    )
    alike = replace(plan, margins="none")
    codes = pa.array(square.codes("zone"))
    table = pa.table(
        {
            "origin": codes.take(pa.array(square.origin)),
            "destination": codes.take(pa.array(square.destination)),
            "count": square.count,
        }
    )
    counts, key = read_counts(table, plan.spine, count="count"), Key.fresh()
    ours = {
        "(b) release, 300 × 300": median_seconds(
            lambda: tt.make_release(plan, table, tt.RunOptions(count="count", threads=1)), repeats=31
        ),
        "(b) its descent alone": median_seconds(lambda: run_descent(descent_of(plan), counts, key), repeats=31),
        "(b) release without margins, like theirs": median_seconds(
            lambda: tt.make_release(alike, table, tt.RunOptions(count="count", threads=1)), repeats=31
        ),
        "(b) its descent alone, like theirs": median_seconds(
            lambda: run_descent(descent_of(alike), counts, key), repeats=31
        ),
    }
    if not REFERENCE.exists():
        return [(name, f"{time * 1e3:.1f} ms", "inf-tda: not set up (make bench)", "-") for name, time in ours.items()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "square.npz"
        np.savez(
            path, origin=square.origin, destination=square.destination, count=square.count, region=square.parents[1]
        )
        script = Path(__file__).with_name("inf_tda_baseline.py")
        run = subprocess.run(
            [REFERENCE, script, path, "--rho", str(float(RHO))], check=True, capture_output=True, text=True
        )
    theirs = json.loads(run.stdout)["release_seconds"]
    return [
        (name, f"{time * 1e3:.1f} ms", f"inf-tda {theirs:.2f} s", f"{theirs / time:,.0f} ×")
        for name, time in ours.items()
    ]
