"""All peers on one table, and the page of results: `python -m benchmarks.peers`."""

from __future__ import annotations

import argparse
import math
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.common import loose_epsilon
from benchmarks.peers.environments import MBI, OPENDP, REFERENCE, Environment
from benchmarks.synthetic import OriginDestination, two_level_square
from experiments.kit.pages import write
from experiments.kit.stamp import SEEN, now
from treetop import Counts, Hierarchy, Loss, Plan, Spine, Unit
from treetop.addons.lab.comparison import estimate_errors, number, percent, seconds, spread
from treetop.addons.lab.mechanisms.compared import Estimate, LevelEstimate
from treetop.counts.counts import pack
from treetop.release.errors import LevelErrors

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "results" / "peers.md"
EPSILON, DELTA, REPEATS = 1.0, 1e-8, 5


@dataclass(frozen=True)
class Peer:
    """A tool, and how it is run."""

    title: str
    """Its name on the page."""
    script: str
    """Its module in this folder."""
    environment: Environment | None
    """Where it is installed; None for Treetop's own."""
    arguments: tuple[str, ...] = ()
    """More arguments of the script."""
    about: str = ""
    """What it does, where the script does not say."""
    repeats: int = REPEATS
    """How often it is run."""


PEERS = (
    Peer("Treetop", "ours", None),
    Peer("Treetop, no margins", "ours", None, ("--plain",), "top down, every level; total public"),
    Peer("inf-tda", "inf_tda", REFERENCE),
    Peer("OpenDP, pairs", "opendp_leaves", OPENDP, repeats=3),
    Peer("OpenDP, every level", "opendp_levels", OPENDP, repeats=3),
    Peer("mbi", "mbi_fit", MBI, repeats=3),
)


@dataclass(frozen=True)
class Outcome:
    """What the runs of a peer came to."""

    peer: Peer
    version: str
    about: str
    errors: list[tuple[LevelErrors, ...]]
    violations: list[int]
    totals: list[float]
    seconds: list[float]
    processor: list[float]
    memory: int
    rho: float
    """The zero-concentrated loss that it was given; not a number if its noise is pure."""
    origins: list[float] = field(default_factory=list)
    """By run, the mean absolute error of the totals of origin zones: sums of released pairs, and no level."""


def main() -> None:
    """Run every peer that can be run, and write the page."""
    parser = argparse.ArgumentParser(description="Treetop beside public tools.")
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    SEEN.begin()
    square = two_level_square()
    spine, truth = _truth(square)
    outcomes, missing = [], []
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.npz"
        origin, destination = square.records()
        np.savez(table, origin=origin, destination=destination, region=square.parents[1])
        origins, rho = np.bincount(origin, minlength=square.sizes[1]), common_rho(spine)
        for peer in PEERS:
            found = run(peer, table, Path(folder) / "out.npz", spine, truth, origins, rho)
            SEEN.add(now())
            if isinstance(found, Outcome):
                outcomes.append(found)
                print(f"{peer.title}: {np.mean(found.seconds):.3g} s")
            else:
                missing.append((peer, found))
                print(f"{peer.title}: {found}")
    text = "\n".join(page(outcomes, missing, square))
    print(f"wrote {write(asked.page, text)}")


def common_rho(spine: Spine) -> float:
    """Return the rho that exact accounting gives Treetop's default plan: every tool that takes a rho is given it."""
    unit = Unit("trip", contributions=1, neighbours="replace")
    return float(Plan(spine, unit, Loss(epsilon=EPSILON, delta=DELTA)).spent)


def run(
    peer: Peer, table: Path, out: Path, spine: Spine, truth: Counts, origins: NDArray[np.int64], rho: float
) -> Outcome | str:
    """Run a peer in its environment and compare with the truth (`origins`, by origin zone too); or return why not."""
    if peer.environment is not None and (problem := peer.environment.make()):
        return f"it could not be installed: {problem}"
    python = sys.executable if peer.environment is None else peer.environment.python
    loss = ["--epsilon", str(EPSILON), "--delta", str(DELTA), "--rho", str(rho), "--repeats", str(peer.repeats)]
    command = [python, "-m", f"benchmarks.peers.{peer.script}", *peer.arguments, table, out, *loss]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode:
        return f"it could not be run: {(ended.stderr.strip().splitlines() or ['no message'])[-1]}"
    with np.load(out) as found:
        arrays: dict[str, Any] = dict(found)
    estimates = [_estimate(spine, arrays, at) for at in range(peer.repeats)]
    return Outcome(
        peer,
        str(arrays["version"]),
        peer.about or str(arrays["about"]),
        [estimate_errors(estimate, truth) for estimate in estimates],
        [estimate.violations() for estimate in estimates],
        [float(estimate.total) for estimate in estimates],
        arrays["seconds"].tolist(),
        arrays["processor"].tolist(),
        int(arrays["memory"]),
        float(arrays["rho"]),
        np.abs(arrays["leaves"].sum(axis=2) - origins).mean(axis=1).tolist(),
    )


def _truth(square: OriginDestination) -> tuple[Spine, Counts]:
    places = Hierarchy.from_table(square.place_table(), square.levels)
    spine = Spine.destination_first(origin=places, destination=places)
    ends = {"origin": square.origin, "destination": square.destination}
    return spine, Counts.from_leaves(spine, [ends[name] for name in spine.attributes], square.count.copy())


def _estimate(spine: Spine, arrays: dict[str, Any], at: int) -> Estimate:
    """Turn a release into an estimate of the leaves, and of every level that was published by itself."""
    leaves = arrays["leaves"][at]
    origin, destination = (end.ravel() for end in np.indices(leaves.shape))
    keys, order = _sorted(pack(spine, [destination, origin]))
    value = _whole(leaves.ravel()[order])
    if "1" not in arrays:
        return Estimate.from_leaves(spine, keys, value)
    first = np.searchsorted(spine.trees[0].ancestors(0), np.arange(spine.trees[0].sizes[0]))
    levels = [LevelEstimate(tuple(np.zeros(1, np.uint64) for _ in keys), np.array([arrays["1"][at].sum()]))]
    for index, name in enumerate(("1", "2", "3"), start=1):
        values = arrays[name][at]
        nodes = [axis.ravel() for axis in np.indices(values.shape)]
        ends = [first[nodes[0]] if index < 3 else nodes[0], first[nodes[1]] if index > 1 else np.zeros_like(nodes[0])]
        paths, order = _sorted(pack(spine, ends))
        levels.append(LevelEstimate(tuple(paths), _whole(values.ravel()[order])))
    levels.append(LevelEstimate(tuple(keys), value))
    return Estimate.from_leaves(spine, keys, value, tuple(levels))


def _sorted(keys: list[NDArray[np.uint64]]) -> tuple[list[NDArray[np.uint64]], NDArray[np.int64]]:
    order = np.lexsort(keys[::-1])
    return [key[order] for key in keys], order


def _whole(values: NDArray[Any]) -> NDArray[np.int64] | NDArray[np.float64]:
    return values.astype(np.int64) if values.dtype.kind in "iu" else values.astype(np.float64)


HEAD = """\
# Beside public tools

Written by `python -m benchmarks.peers`: one made-up table of {trips:,} trips between {zones} zones in {regions} regions
({pairs:,} of {cells:,} pairs occur), ε = {epsilon:g}, δ = {delta:g}, for one trip exchanged for another. Every tool has
an environment of its own and starts from the same records, but for `inf-tda` and `mbi`, which are given the counts.
Times are medians over the runs of one process, after one run that warms up; {cores} cores ({machine}), with other work
going on at the same time. Memory is the most that the process had, libraries and table included.
"""

NOTES = """\
- All rows but one spend the same rho (zero-concentrated), which exact accounting gives Treetop at this ε and δ. By the
  looser conversion of the InfTDA paper, which `inf-tda` uses, it is ε = {loose:.3f}: that is what `inf-tda` was given.
  OpenDP for pairs alone takes Laplace noise, which is pure: it spends ε = {epsilon:g} and no δ.
- By default Treetop also measures margins, the counts of each attribute alone, and gives them a part of the loss. That
  leaves less for the levels, and makes the totals of origins more accurate, which are no level here.
- `inf-tda` runs on OpenDP 0.12.1: with 0.13.0, 0.14.2, 0.15.1 and 0.16.0 it stops with a type error.
- OpenDP answers single queries: it promises no consistency between levels, and was asked for none. Its Gaussian noise
  under exchange is √2 wider than need be: it bounds the change by 2 where it is √2.
- `mbi` fits, and neither draws noise nor keeps account: noise and total were given to it. Its numbers are real: whoever
  needs whole ones must round, and lose the sums or the fit. A real number is hardly ever zero, so what it invents and
  loses says little. It was given 10,000 steps, ten times its default.
- The total is public under exchange. A tool that uses it releases it exactly; one that only sums its pairs does not."""


def page(outcomes: list[Outcome], missing: list[tuple[Peer, str]], square: OriginDestination) -> list[str]:
    """Return the lines of the page."""
    sizes = {"trips": square.trips, "zones": square.sizes[1], "regions": square.sizes[0], "pairs": len(square.count)}
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    more = {"cells": square.sizes[1] ** 2, "epsilon": EPSILON, "delta": DELTA, "cores": os.cpu_count()}
    lines = [HEAD.format(**sizes, **more, machine=machine)]
    head = ("tool", "what it does", "loss", "runs", "seconds", "of a processor", "memory", "nodes that are no sum")
    lines += _table((*head, "below zero", "not whole", "total released"), [_what(outcome) for outcome in outcomes])
    names = [errors.name for errors in outcomes[0].errors[0]]
    lines += ["", "Largest absolute error by level:", ""]
    lines += _table(
        ("tool", *names),
        [
            (
                one.peer.title,
                *(spread((round(run[at].largest, 6) for run in one.errors), number) for at in range(len(names))),
            )
            for one in outcomes
        ],
    )
    lines += [
        "",
        "Mean absolute error over all public nodes, and of the totals of origin zones, which are sums of pairs and no "
        "level; at the pairs what is invented and lost:",
        "",
    ]
    lines += _table(
        ("tool", *names[1:], "totals of origin zones", "invented", "lost"),
        [
            (
                one.peer.title,
                *(spread((run[at].mean_of_all for run in one.errors), number) for at in range(1, len(names))),
                spread(one.origins, number) if one.origins else "–",
                spread((run[-1].false_discoveries for run in one.errors), percent),
                spread((run[-1].false_negatives for run in one.errors), percent),
            )
            for one in outcomes
        ],
    )
    lines += ["", "The least and the largest of these errors:", ""]
    lines += _table(("level", "mean: least", "most", "largest: least", "most"), _extremes(outcomes, names[1:]))
    rho = next((one.rho for one in outcomes if not math.isnan(one.rho)), math.nan)
    lines += ["", NOTES.format(epsilon=EPSILON, loose=loose_epsilon(rho, DELTA))]
    lines += [f"- {peer.title} is not here: {why}." for peer, why in missing]
    return lines


def _extremes(outcomes: list[Outcome], names: list[str]) -> list[tuple[str, ...]]:
    """Say, level by level below the total, which tool has the least and the most error, by the means over its runs."""

    def ends(level: int, metric: str) -> tuple[str, str]:
        means = {one.peer.title: np.mean([getattr(run[level], metric) for run in one.errors]) for one in outcomes}
        return min(means, key=means.__getitem__), max(means, key=means.__getitem__)

    return [(name, *ends(at, "mean_of_all"), *ends(at, "largest")) for at, name in enumerate(names, start=1)]


def _what(one: Outcome) -> tuple[str, ...]:
    return (
        f"{one.peer.title} ({one.version})",
        one.about,
        f"ε = {EPSILON:g}, pure" if math.isnan(one.rho) else f"rho = {one.rho:.4g}",
        str(one.peer.repeats),
        seconds(float(np.median(one.seconds))),
        seconds(float(np.median(one.processor))),
        f"{one.memory / 2**20:,.0f} MB",
        spread(one.violations, number),
        spread((run[-1].negative for run in one.errors), number),
        spread((run[-1].fractional for run in one.errors), number),
        spread(one.totals, lambda total: f"{total:,.0f}"),
    )


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows)]


if __name__ == "__main__":
    main()
