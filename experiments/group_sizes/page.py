"""The numbers of the page of results: the paper's table 1 again, its claims one by one, and time by largest size."""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from experiments.group_sizes.measure import EPSILONS, SMALL, WAYS, Run
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
        small=SMALL,
        about=about,
        tables=tables,
        errors=lambda name: _errors(runs, name),
        refused=refused,
        wins=_wins(runs, tables),
        best_of_paper=verdict(runs, tables, PAPERS, "M_c^dp"),
        best_of_all=verdict(runs, tables, CONSISTENT, "M_c^r+dp"),
        concentrated=_concentrated(runs, tables),
        by_size=_by_size(runs, tables),
        ratios=lambda one, other, what="error": _ratios(runs, tables, one, other, what),
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


PAPERS = ("M_H^r", "M_H^dp", "M_c^r", "M_c^dp")
CONSISTENT = ("M_H^dp", "M_c^dp", "M_c^r+dp")
"""Those whose numbers add up, and that know no more than the number of all groups."""


@dataclass(frozen=True)
class Verdict:
    """In how many settings one of several mechanisms has the least error: all of them ran in every one."""

    settings: int
    """How many there are: by table, epsilon and level."""
    clearly: int
    """Its mean error is the least, by more than two standard errors of the difference to the next."""
    within: int
    """Its mean error is within two standard errors of the least."""
    worse: tuple[str, ...]
    """Where it is further off than that, and which is better."""


def verdict(runs: Sequence[Run], tables: Sequence[str], among: Sequence[str], name: str) -> Verdict:
    """Judge whether one is the most accurate; a setting in which one of them did not run does not count."""
    clearly = within = settings = 0
    worse = []
    for table_name, epsilon, level in product(tables, EPSILONS, LEVELS):
        found = {way: [getattr(run, level) for run in of(runs, table_name, way, epsilon)] for way in among}
        if any(len(errors) < 2 for errors in found.values()):
            continue
        settings += 1
        rival = min((way for way in among if way != name), key=lambda way: float(np.mean(found[way])))
        apart = float(np.mean(found[name]) - np.mean(found[rival]))
        error = float(np.sqrt(sum(np.var(found[way], ddof=1) / len(found[way]) for way in (name, rival))))
        clearly += apart < -2 * error
        within += -2 * error <= apart <= 2 * error
        if apart > 2 * error:
            worse.append(f"{table_name}, {level.replace('_', ' ')}, ε = {epsilon:g}: {rival}")
    return Verdict(settings, clearly, within, tuple(worse))


def _wins(runs: Sequence[Run], tables: Sequence[str]) -> str:
    """Return for every mechanism in how many settings it is the most accurate, of those that all ran."""
    rows = []
    for name in WAYS:
        found = verdict(runs, tables, tuple(WAYS), name)
        rows.append((name, str(found.clearly), str(found.within), str(len(found.worse)), str(found.settings)))
    return table(("mechanism", "clearly the best", "as good as the best", "worse", "settings"), rows)


def _shares(runs: Sequence[Run], name: str, way: str) -> list[float]:
    found = [of(runs, name, way, epsilon) for epsilon in EPSILONS]
    return [mean(some, "small") / mean(some) for some in found if some]


def _by_size(runs: Sequence[Run], tables: Sequence[str]) -> str:
    """Return the part of the error that lies on small sizes."""
    rows = ((name, way, *(f"{share:.1%}" for share in _shares(runs, name, way))) for name in tables for way in WAYS)
    return table(("table", "mechanism", *_HEAD), (row for row in rows if len(row) == 2 + len(_HEAD)))


def _concentrated(runs: Sequence[Run], tables: Sequence[str]) -> tuple[int, int]:
    """Return in how many settings M_c^dp has more of its error on small sizes than M_H^dp, and of how many."""
    pairs = [
        pair
        for name in tables
        for pair in zip(_shares(runs, name, "M_c^dp"), _shares(runs, name, "M_H^dp"), strict=False)
    ]
    return sum(cumulative > direct for cumulative, direct in pairs), len(pairs)


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
