"""Time the public reference, `inf-tda` 0.1, on a square table of two levels a side; prints JSON.

Run by the Python of an environment of its own, whose OpenDP is the one that the reference was made with:

    python -m venv .bench && .bench/bin/pip install inf-tda==0.1 opendp==0.12.1
    .bench/bin/python benchmarks/inf_tda_baseline.py square.npz --rho 0.1

The file has the integer arrays `origin`, `destination`, `count` (distinct pairs of zones and their trips) and
`region` (the region of each zone, one entry a zone).

What the reference promises, so that the comparison is fair: a release is rho-zCDP for the replacement of one
trip, with the total public. It takes epsilon and delta, finds rho from
epsilon = rho + 2 sqrt(rho ln(1/delta)), gives each of its T levels (4 here) rho / T, and adds discrete
Gaussian noise of scale sqrt(2) / sqrt(2 rho / T) = sqrt(T / rho) to every child of every node that was not
released as 0. Its index must list the whole domain, so the empty cells are filled in first. It needs no
workaround, and nothing of it is patched.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

# By name, because the type checker runs in Treetop's environment, which need not have these.
pandas: Any = import_module("pandas")
reference: Any = import_module("InfTDA")
privacy: Any = import_module("InfTDA.differential_privacy")


def read(path: Path, first: str) -> Any:
    """Every cell of the table, empty ones too, as the Series that `inf_tda` takes: its index is the spine."""
    with np.load(path) as table:
        region, count = table["region"], table["count"]
        ends = [table["origin"], table["destination"]]
    if first == "destination":
        ends.reverse()
    zones = len(region)
    cells = np.zeros((zones, zones), dtype=np.int64)
    cells[ends[0], ends[1]] = count
    one, other = (zone.ravel() for zone in np.indices(cells.shape))
    index = pandas.MultiIndex.from_arrays([region[one], region[other], one, other])
    return pandas.Series(cells.ravel(), index=index)


def measure(table: Path, rho: float, delta: float, repeats: int, first: str) -> dict[str, Any]:
    start = time.perf_counter()
    data = read(table, first)
    read_seconds = time.perf_counter() - start

    epsilon = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    budget = (epsilon, delta)
    arguments = {"contribution": 1, "privacy_type": "bounded", "distinct_tuples": True}
    releases, seconds = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        releases.append(reference.inf_tda(data, budget, **arguments))
        seconds.append(time.perf_counter() - start)

    # The reference sorts and sums the levels inside the call that adds the noise. The same two steps by
    # themselves say how much of the call is building the tree.
    levels = data.index.nlevels
    start = time.perf_counter()
    ordered = data.sort_index()
    for level in range(1, levels):
        ordered.groupby(level=list(range(level))).sum()
    tree_seconds = time.perf_counter() - start

    found_rho = privacy.get_rho_from_budget(budget)
    mechanism = privacy.make_gaussian_noise(d_in=math.sqrt(2), rho=found_rho / levels)
    start = time.perf_counter()
    mechanism([0] * 100_000)
    noise_seconds = (time.perf_counter() - start) / 100_000

    last = releases[-1].reindex(data.index, fill_value=0)
    samples = len(last.groupby(level=0))
    for level in range(1, levels):
        children = last.groupby(level=list(range(level + 1))).sum()
        samples += int((children.groupby(level=list(range(level))).transform("sum") > 0).sum())

    return {
        "versions": {name: version(name) for name in ("inf-tda", "opendp", "pandas", "numpy")},
        "cells": len(data),
        "levels": levels,
        "release_seconds": statistics.median(seconds),
        "release_seconds_each": seconds,
        "release_seconds_without_tree": statistics.median(seconds) - tree_seconds,
        "tree_seconds": tree_seconds,
        "read_seconds": read_seconds,
        "noise_samples": samples,
        "noise_seconds_per_sample": noise_seconds,
        "rho": found_rho,
        "epsilon": epsilon,
        "delta": delta,
        "neighbours": "replace one trip; the total is public",
        "noise_scale_each_level": math.sqrt(levels / found_rho),
        "total": int(data.sum()),
        "released_total": int(releases[-1].sum()),
        "released_least": int(releases[-1].min()),
        "released_cells": len(releases[-1]),
        "mean_absolute_error": float((last - data).abs().mean()),
        "largest_absolute_error": int((last - data).abs().max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Time inf-tda on a square table.")
    parser.add_argument("table", type=Path)
    parser.add_argument("--rho", type=float, default=0.1)
    parser.add_argument("--delta", type=float, default=1e-8, help="only names epsilon; rho sets the noise")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--first", choices=("destination", "origin"), default="destination")
    print(json.dumps(measure(**vars(parser.parse_args())), indent=2))


if __name__ == "__main__":
    main()
