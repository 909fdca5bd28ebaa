"""The numbers of the page of results: the paper's table 1 again, its claims one by one, and time by largest size."""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from experiments.group_sizes.measure import EPSILONS, SLOW, WAYS, Run
from experiments.kit.pages import render
from experiments.kit.tables import table

LEVELS = ("level_1", "level_2", "level_3")
_ROWS = csv.DictReader(Path(__file__).with_name("paper.csv").read_text().splitlines(), delimiter=";")
PAPER = {(row["table"], float(row["epsilon"]), row["mechanism"]): " / ".join(list(row.values())[3:]) for row in _ROWS}
"""The paper's table 1, in units: errors of three levels, and broken sums."""


def page(runs: Sequence[Run], times: Sequence[Run], refused: Sequence[str], about: Sequence[str] = ()) -> str:
    """Return the page."""
    tables = list(dict.fromkeys(run.table for run in runs))
    at_one = {name: some for name in tables if (some := of(runs, name, "M_H^r", 1.0))}
    return render(
        "group_sizes/page.md",
        often=max(len(of(runs, run.table, run.mechanism, run.epsilon)) for run in runs),
        cores=os.cpu_count(),
        machine=f"{platform.machine()}, Python {platform.python_version()}",
        slow=SLOW,
        about=about,
        tables=tables,
        errors=lambda name: _errors(runs, name),
        refused=refused,
        settings=len(tables) * len(EPSILONS) * len(LEVELS),
        beaten=best_everywhere(runs, tables),
        ratios=lambda one, other, what="error": _ratios(runs, tables, one, other, what),
        slow_was_run=any(run.mechanism == SLOW for run in runs),
        worst=max((run.violations for run in runs if run.mechanism.endswith("dp")), default=0),
        broken=[f"{name}: {mean(some, 'violations'):,.0f}" for name, some in at_one.items()],
        falls=_falls(runs, tables),
        seconds=_seconds(runs, tables),
        times=_times(times) if times else "",
    )


def of(runs: Sequence[Run], table: str, mechanism: str, epsilon: float) -> list[Run]:
    """Return the runs of one setting."""
    return [run for run in runs if (run.table, run.mechanism, run.epsilon) == (table, mechanism, epsilon)]


def mean(runs: Sequence[Run], what: str = "error") -> float:
    """Return the mean of one figure."""
    return float(np.mean([getattr(run, what) for run in runs]))


def _errors(runs: Sequence[Run], name: str) -> str:
    """Return table 1 for one of our tables, beside the paper's numbers where it has any."""
    rows = []
    for epsilon, way in product(EPSILONS, WAYS):
        some = of(runs, name, way, epsilon)
        cells = ["-", "-", "-", "-", "not run"]
        if some:
            cells = [f"{mean(some, one):,.0f} ({np.std([getattr(r, one) for r in some]):,.0f})" for one in LEVELS]
            cells += [f"{mean(some, 'violations'):,.0f}", str(len(some))]
        rows.append((f"{epsilon:g}", way, *cells, *([PAPER[key]] if (key := (name, epsilon, way)) in PAPER else [])))
    head = ("ε", "mechanism", "level 1", "level 2", "level 3", "#CV", "runs", "the paper's")
    return table(head[: len(rows[0])], rows)


def _ratios(runs: Sequence[Run], tables: Sequence[str], one: str, other: str, what: str) -> str:
    """Return the ratio of two mechanisms at each epsilon, where both were run."""
    rows = []
    for name in tables:
        pairs = [(of(runs, name, one, epsilon), of(runs, name, other, epsilon)) for epsilon in EPSILONS]
        if any(ours and theirs for ours, theirs in pairs):
            cells = (f"{mean(a, what) / mean(b, what):.3f}" if a and b else "-" for a, b in pairs)
            rows.append((name, *cells))
    return table(("table", *_HEAD), rows)


_HEAD = tuple(f"ε = {epsilon:g}" for epsilon in EPSILONS)


def best_everywhere(runs: Sequence[Run], tables: Sequence[str]) -> list[str]:
    """Return the settings, by table, level and epsilon, where M_c^dp is not the most accurate one."""
    beaten = []
    for name in tables:
        for epsilon in EPSILONS:
            own = of(runs, name, "M_c^dp", epsilon)
            rivals = {way: some for way in WAYS if way != "M_c^dp" and (some := of(runs, name, way, epsilon))}
            for level in LEVELS:
                better = [way for way, some in rivals.items() if mean(some, level) < mean(own, level)]
                if better:
                    beaten.append(f"{name}, {level.replace('_', ' ')}, ε = {epsilon:g}: {', '.join(better)}")
    return beaten


def _complete(runs: Sequence[Run], tables: Sequence[str]) -> Iterator[list[list[Run]]]:
    """Yield the runs by epsilon of every table and mechanism that was run at each."""
    every = ([of(runs, name, way, epsilon) for epsilon in EPSILONS] for name in tables for way in WAYS)
    yield from (found for found in every if all(found))


def _falls(runs: Sequence[Run], tables: Sequence[str]) -> bool:
    """Whether errors fall as epsilon rises, everywhere."""
    return all(mean(one) > mean(two) > mean(three) for one, two, three in _complete(runs, tables))


def _seconds(runs: Sequence[Run], tables: Sequence[str]) -> str:
    rows = (
        (found[0][0].table, found[0][0].mechanism, *(f"{mean(some, 'seconds'):.2f}" for some in found))
        for found in _complete(runs, tables)
    )
    return table(("table", "mechanism", *_HEAD), rows)


def _times(times: Sequence[Run]) -> str:
    sizes = sorted({run.largest for run in times})
    rows = []
    for name in WAYS:
        found = ([run for run in times if (run.mechanism, run.largest) == (name, size)] for size in sizes)
        rows.append((name, *(f"{mean(some, 'seconds'):.3f}" if some else "-" for some in found)))
    return table(("mechanism", *(f"N = {size}" for size in sizes)), rows)
