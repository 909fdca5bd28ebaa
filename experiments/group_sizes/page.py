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
from numpy.typing import NDArray

from experiments.group_sizes.coverage import DERIVED, Covered
from experiments.group_sizes.measure import CLASSES, EPSILONS, SMALL, WAYS, Run
from experiments.group_sizes.solver import FORMS, Solved
from experiments.group_sizes.tables import Table
from experiments.kit.pages import render
from experiments.kit.tables import table
from experiments.kit.verdicts import NOT_RUN, WORDS, verdict

LEVELS = ("level_1", "level_2", "level_3")
_ROWS = csv.DictReader(Path(__file__).with_name("paper.csv").read_text().splitlines(), delimiter=";")
PAPER = {(row["table"], float(row["epsilon"]), row["mechanism"]): " / ".join(list(row.values())[3:]) for row in _ROWS}
"""The paper's table 1, in units: errors of three levels, and broken sums."""
THEIRS = {"Census 2000 with a tail": "census", "census-like": "census", "taxi-like, taxis in zones": "taxi"}
"""Which of our tables stand beside the paper's."""


FEW_HELD = 100
"""Of fewer intervals no share is told: it would be of chance."""


@dataclass(frozen=True)
class Found:
    """All that was measured."""

    tables: Sequence[Table]
    """The tables."""
    runs: Sequence[Run]
    """The runs on them."""
    times: Sequence[Run]
    """Those against the largest size."""
    refused: Sequence[str] = ()
    """What could not be run."""
    solved: Sequence[Solved] = ()
    """What the solver found."""
    covered: Sequence[Covered] = ()
    """What the intervals of releases held."""


def page(found: Found) -> str:
    """Return the page."""
    runs = found.runs
    tables = list(dict.fromkeys(run.table for run in runs))
    at_one = {name: some for name in tables if (some := of(runs, name, "M_H^r", 1.0))}
    return render(
        "group_sizes/page.md",
        cores=os.cpu_count(),
        machine=f"{platform.machine()}, Python {platform.python_version()}",
        about=[_about(one, runs) for one in found.tables],
        unsure=_unsure(runs, tables),
        tables=tables,
        errors=lambda name: _errors(runs, name),
        refused=found.refused,
        wins=_wins(runs, tables),
        best_of_paper=most_accurate(runs, tables, PAPERS, "M_c^dp"),
        best_of_all=most_accurate(runs, tables, CONSISTENT, "M_c^r+dp"),
        concentrated=shares(found.tables, runs, "M_c^dp", "M_H^dp"),
        redistributed=shares(found.tables, runs, "M_c^r", "M_c^dp"),
        by_size=_by_size(found.tables, runs),
        ratios=lambda one, other, what="error": _ratios(runs, tables, one, other, what),
        whole=whole_numbers(runs, tables),
        sums=broken_sums(runs),
        broken=[f"{name}: {mean(some, 'violations'):,.0f}" for name, some in at_one.items()],
        falls=falls(runs, tables),
        steady=_steady(runs, tables),
        seconds=_seconds(runs, tables),
        times=_times(found.times) if found.times else "",
        solved=_solved(found.solved) if found.solved else "",
        same=as_solved(found.solved),
        held=_held(found.covered),
        derived=_held(found.covered, DERIVED),
        worst_held=_worst(found.covered),
    )


def _about(one: Table, runs: Sequence[Run]) -> str:
    often = max((len(of(runs, one.name, way, 1.0)) for way in WAYS), default=0)
    return f"{one}; {often} runs of each setting"


def _unsure(runs: Sequence[Run], tables: Sequence[str]) -> str:
    """Return between which parts of themselves the standard errors of mean errors lie, level by level."""
    parts: dict[str, list[float]] = {level: [] for level in LEVELS}
    for name, way, epsilon, level in product(tables, WAYS, EPSILONS, LEVELS):
        values = [getattr(run, level) for run in of(runs, name, way, epsilon)]
        if len(values) > 1 and np.mean(values) > 0:
            parts[level].append(float(np.std(values, ddof=1) / np.sqrt(len(values)) / np.mean(values)))
    told = (f"{max(some):.1%} of it at level {level[-1]}" for level, some in parts.items() if some)
    return ", ".join(told) or "not known from one run"


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
        paper = [PAPER.get((THEIRS[name], epsilon, way), "-")] if name in THEIRS else []
        rows.append((f"{epsilon:g}", way, *cells, *paper))
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

    @property
    def word(self) -> str:
        """Whether it is the most accurate, as far as that can be told: everywhere, somewhere or nowhere."""
        return _word(self.settings - len(self.worse), self.settings)


def _word(held: int, settings: int) -> str:
    """Say in how many settings something holds, in a word."""
    return NOT_RUN if not settings else WORDS[True if held == settings else None if held else False]


@verdict("group_sizes.most_accurate")
def most_accurate(runs: Sequence[Run], tables: Sequence[str], among: Sequence[str], name: str) -> Verdict:
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
        found = most_accurate(runs, tables, tuple(WAYS), name)
        rows.append((name, str(found.clearly), str(found.within), str(len(found.worse)), str(found.settings)))
    return table(("mechanism", "clearly the best", "as good as the best", "worse", "settings"), rows)


@dataclass(frozen=True)
class Shares:
    """Whose error sits on small sizes: by table and epsilon, where not all sizes are small."""

    more: int
    """In so many settings one mechanism has clearly a larger part of its error there than another."""
    less: tuple[str, ...]
    """In these it has clearly a smaller one."""
    settings: int
    """How many there are."""
    most: int
    """In so many more than half of its error is there."""
    below: int
    """In so many its part is smaller than that of the groups."""

    @property
    def word(self) -> str:
        """Whether one has the larger part there: everywhere, somewhere or nowhere."""
        return _word(self.more, self.settings)

    @property
    def by_itself(self) -> str:
        """Whether most of its error is there."""
        return _word(self.most, self.settings)


@verdict("group_sizes.small_sizes")
def shares(tables: Sequence[Table], runs: Sequence[Run], one: str, other: str) -> Shares:
    """Judge where the error of one mechanism sits, by itself and beside another."""
    more = settings = most = below = 0
    less = []
    for where, epsilon in product(tables, EPSILONS):
        ours, theirs = (_small(of(runs, where.name, way, epsilon)) for way in (one, other))
        if min(len(ours), len(theirs)) < 2 or min(ours.min(), theirs.min()) == 1:
            continue
        settings += 1
        apart = float(ours.mean() - theirs.mean())
        error = float(np.sqrt(ours.var(ddof=1) / len(ours) + theirs.var(ddof=1) / len(theirs)))
        more += apart > 2 * error
        if apart < -2 * error:
            less.append(f"{where.name}, ε = {epsilon:g}")
        stop = list(CLASSES.values())[SMALL - 1][1]
        most += ours.mean() > 0.5
        below += ours.mean() < where.sizes.number[:, :stop].sum() / where.groups
    return Shares(more, tuple(less), settings, most, below)


def _small(runs: Sequence[Run]) -> NDArray[np.float64]:
    """Return the part of each run's error that lies on small sizes."""
    return np.array([sum(run.classes[:SMALL]) / run.error for run in runs if run.error > 0])


def _by_size(tables: Sequence[Table], runs: Sequence[Run]) -> str:
    """Return the part of the error that lies on each class of sizes, and that of the groups, at ε = 1."""
    rows = []
    for one in tables:
        groups = [one.sizes.number[:, first:stop].sum() / one.groups for first, stop in CLASSES.values()]
        rows.append((one.name, "the groups themselves", *(f"{share:.1%}" for share in groups)))
        for way in WAYS:
            if some := of(runs, one.name, way, 1.0):
                parts = np.mean([run.classes for run in some], axis=0)
                rows.append((one.name, way, *(f"{share:.1%}" for share in parts / parts.sum())))
    return table(("table", "error of", *CLASSES), rows)


def _complete(runs: Sequence[Run], tables: Sequence[str]) -> Iterator[list[list[Run]]]:
    """Yield the runs by epsilon of every table and mechanism that was run at each."""
    every = ([of(runs, name, way, epsilon) for epsilon in EPSILONS] for name in tables for way in WAYS)
    yield from (found for found in every if all(found))


@dataclass(frozen=True)
class Told:
    """A verdict, and what it was found from."""

    word: str
    """Whether something holds."""
    numbers: tuple[float, ...]
    """What it was found from."""


@verdict("group_sizes.falls")
def falls(runs: Sequence[Run], tables: Sequence[str]) -> Told:
    """Judge whether errors fall as epsilon rises."""
    found = [mean(one) > mean(two) > mean(three) for one, two, three in _complete(runs, tables)]
    return Told(_word(sum(found), len(found)), (sum(found), len(found)))


@verdict("group_sizes.whole_numbers")
def whole_numbers(runs: Sequence[Run], tables: Sequence[str]) -> Told:
    """Judge whether whole numbers are at least twice as close at the root as rounded ones, as the paper has it."""
    pairs = [(of(runs, name, "M_H^dp", one), of(runs, name, "M_H^r", one)) for name in tables for one in EPSILONS]
    ratios = [mean(ours, "level_1") / mean(theirs, "level_1") for ours, theirs in pairs if ours and theirs]
    return Told(_word(sum(ratio <= 0.5 for ratio in ratios), len(ratios)), tuple(ratios))


@verdict("group_sizes.sums")
def broken_sums(runs: Sequence[Run]) -> Told:
    """Judge whether exact and joint repairs keep all sums: the numbers are those that they broke, run by run."""
    found = [run.violations for run in runs if "dp" in run.mechanism]
    return Told(_word(sum(not one for one in found), len(found)), tuple(found))


@verdict("group_sizes.solver")
def as_solved(solved: Sequence[Solved]) -> Told:
    """Judge whether the exact repair of M_H has the solver's cost: the numbers are the ratios of costs."""
    ratios = [one.others[0].cost / one.cost for one in solved if one.mechanism == "M_H" and one.solved]
    return Told(_word(sum(ratio == 1 for ratio in ratios), len(ratios)), tuple(ratios))


def _steady(runs: Sequence[Run], tables: Sequence[str]) -> float:
    """Return by which factor the time of a mechanism at one epsilon is at most that at another."""
    times = ([mean(some, "seconds") for some in found] for found in _complete(runs, tables))
    return max((max(one) / min(one) for one in times if min(one) > 0), default=1.0)


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


def _solved(solved: Sequence[Solved]) -> str:
    """Return what the solver took and found, beside the repairs of the same measurements."""
    rows = []
    for size, name in product(sorted({one.largest for one in solved}), FORMS):
        every = [one for one in solved if (one.largest, one.mechanism) == (size, name)]
        some = [one for one in every if one.solved]
        cells = [f"{len(some)} of {len(every)}", f"{np.mean([one.seconds for one in every]):.2f}"]
        for at in (0, 1):
            for what in ("cost", "error"):
                ratios = [getattr(one.others[at], what) / getattr(one, what) for one in some]
                cells.append(f"{np.mean(ratios):.3f}" if ratios else "-")
        rows.append((str(size), name, *cells))
    dp, joint = "exact (dp)", "joint (r+dp)"
    head = (
        "N",
        "program",
        "solved",
        "seconds",
        f"cost of {dp}",
        f"error of {dp}",
        f"cost of {joint}",
        f"error of {joint}",
    )
    return table(head, rows)


def _held(covered: Sequence[Covered], what: Sequence[str] = tuple(CLASSES)) -> str:
    """Return, for each table, mechanism, epsilon and level, which part of the intervals held the truth."""
    rows = []
    settings = dict.fromkeys((one.table, one.way, one.epsilon) for one in covered)
    for setting, level in product(settings, (1, 2, 3)):
        name, way, epsilon = setting
        found = [held for one in covered if (one.table, one.way, one.epsilon) == setting for held in one.found]
        cells = []
        for kind in what:
            some = [held for held in found if (held.what, held.level) == (kind, level)]
            number = sum(held.intervals for held in some)
            good = sum(held.held for held in some)
            if not number:
                cells.append("-")
                continue
            cells.append(f"{good} of {number}" if number < FEW_HELD else f"{good / number:.1%} ({number:,})")
        often = sum((one.table, one.way, one.epsilon) == setting for one in covered)
        rows.append((name, way, f"{epsilon:g}", str(often), str(level), *cells))
    return table(("table", "mechanism", "ε", "releases", "level", *what), rows)


def _worst(covered: Sequence[Covered]) -> str:
    """Return the lowest share held among classes of at least a thousand intervals."""
    lowest = 1.0
    sums: dict[tuple[str, ...], list[int]] = {}
    for one in covered:
        for held in one.found:
            cell = sums.setdefault((one.table, one.way, f"{one.epsilon}", held.what, f"{held.level}"), [0, 0])
            cell[0] += held.held
            cell[1] += held.intervals
    for good, number in sums.values():
        if number >= 1_000:
            lowest = min(lowest, good / number)
    return f"{lowest:.1%}"
