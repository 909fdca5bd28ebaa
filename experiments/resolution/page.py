"""The page of results: written whole from what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from experiments.false_discoveries.measure import Spread
from experiments.false_discoveries.report import number, percent
from experiments.resolution.measure import DELTA, SETTINGS, Setting, Study

COLUMNS = (
    ("resolved", "resolved"),
    ("invented nodes", "false_discoveries"),
    ("invented count", "false_mass"),
    ("missing nodes", "false_negatives"),
    ("missing count", "lost_mass"),
    ("mean error of named", "mean_released"),
    ("largest error of named", "largest_released"),
)
"""The columns of the long tables: a title and a metric."""
SURE = 2.0
"""So many standard errors above the rate that was asked for, a mean is called too high."""

HEAD = """\
# Resolution: what was measured

Written by `python -m experiments.resolution`; [the page on resolution](../resolution.md) explains it. Each table is
released {runs} times with each setting, at ε = {epsilons} and δ = {delta:g} with exact accounting. One trip is
protected, exchanged for any other, and the loss is divided evenly over the levels. Keys are derived from the name of
the run, so the same version gives everybody the same numbers.

- *Resolved*: the share of the total that is resolved down to the level. The rest stays at coarser nodes.
- *Invented* (the false discovery rate, FDR): of the nodes named at the level, or of the count in them, the share in
  nodes that are truly empty.
- *Missing* (the false negative rate, FNR): of the nodes that are truly there, or of the true count, the share in nodes
  that are not named. In a full release such a node is released as zero. In a resolved one its count is part of what is
  unresolved further up.
- *Error of named*: over the nodes that are named, in trips.

**For the steward only.** All of it needs the true counts. These tables are public, so they can be shown.
"""

PICTURES = (
    ("resolution_choice.png", "Invented leaves against the share that is resolved to the leaves"),
    ("resolution_levels.png", "What is resolved at each level"),
)


@dataclass(frozen=True)
class Promise:
    """One level of one table with one loss and one rate: what was asked for, and what came out."""

    study: Study
    epsilon: float
    setting: Setting
    level: int

    @property
    def asked(self) -> float:
        """The rate that was asked for."""
        assert self.setting.fdr is not None
        return self.setting.fdr

    @property
    def found(self) -> Spread:
        """The rate that was found."""
        return self.study.outcome(self.epsilon, self.setting).spread(self.level, "false_discoveries")

    @property
    def excess(self) -> float:
        """By how many standard errors the mean is above what was asked for."""
        return self.study.outcome(self.epsilon, self.setting).excess(self.level)


def promises(studies: Sequence[Study]) -> Iterator[Promise]:
    """Yield every level of every table at every loss and rate."""
    for study in studies:
        for epsilon in study.epsilons:
            for setting in SETTINGS:
                if setting.fdr is not None:
                    yield from (Promise(study, epsilon, setting, level.level) for level in study.levels[1:])


def page(studies: Sequence[Study]) -> str:
    """Return the page in Markdown."""
    runs = len(studies[0].outcomes[0].runs)
    epsilons = " and ".join(f"{epsilon:g}" for epsilon in studies[0].epsilons)
    parts = [HEAD.format(runs=runs, epsilons=epsilons, delta=DELTA), "## The tables", _tables(studies)]
    parts += ["## The leaves", _leaves(studies)]
    parts += [f"![{caption}](../images/{file})" for file, caption in PICTURES]
    parts += ["## Is the rate held?", *_held(studies), "## Every level"]
    for study in studies:
        parts.append(f"### {study.title}")
        parts += [f"**ε = {epsilon:g}**\n\n{_levels(study, epsilon)}" for epsilon in study.epsilons]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _tables(studies: Sequence[Study]) -> str:
    rows = []
    for study in studies:
        leaves = study.levels[-1]
        shares = f"{leaves.true_nodes:,}", f"{leaves.nodes:,}", percent(leaves.true_nodes / leaves.nodes)
        rows.append((study.title, f"{study.total:,}", str(len(study.levels) - 1), *shares))
    return table(("table", "trips", "levels", "leaves that occur", "possible leaves", "share"), rows)


def _leaves(studies: Sequence[Study]) -> str:
    rows = []
    for study in studies:
        for epsilon in study.epsilons:
            outcomes = [study.outcome(epsilon, setting) for setting in SETTINGS]
            cells = [
                " / ".join(percent(one.spread(-1, metric).mean) for metric in ("false_discoveries", "resolved"))
                for one in outcomes
            ]
            rows.append((study.title, f"{epsilon:g}", *cells))
    text = table(("table", "ε", *(setting.label for setting in SETTINGS)), rows)
    return f"Invented, of the named leaves / resolved, of the total; means of the runs:\n\n{text}"


def _held(studies: Sequence[Study]) -> Iterator[str]:
    """Say how often the rate that was asked for was kept, and where it was not."""
    every = list(promises(studies))
    above = [one for one in every if one.found.mean > one.asked]
    surely = [one for one in above if one.excess > SURE]
    yield (
        f"There are {len(every)} combinations of table, ε, rate and level. In {len(every) - len(above)} of them the "
        f"mean rate of the runs is at most the one that was asked for. In {len(above)} it is above, in {len(surely)} "
        f"of these by more than {SURE:g} standard errors of the mean. The rate is promised in expectation, so single "
        "runs lie on both sides of it, the more so at levels where few nodes are named."
    )
    leaves = []
    for study in studies:
        for epsilon in study.epsilons:
            ours = [one for one in every if (one.study, one.epsilon) == (study, epsilon)]
            found = [_spread(one.found, percent) for one in ours if one.level == study.levels[-1].level]
            leaves.append((study.title, f"{epsilon:g}", *found))
    rates = tuple(f"asked for {setting.fdr:g}" for setting in SETTINGS if setting.fdr is not None)
    yield "Invented leaves, of those that are named: the mean, and the least and the largest run:\n\n" + table(
        ("table", "ε", *rates), leaves
    )
    if above:
        rows = [
            (
                one.study.title,
                f"{one.epsilon:g}",
                one.study.levels[one.level].name,
                f"{one.asked:g}",
                _spread(one.found, percent),
                f"{one.excess:.1f}",
            )
            for one in sorted(above, key=lambda one: -one.excess)
        ]
        head = ("table", "ε", "level", "asked for", "found", "standard errors above")
        yield "Where the mean is above:\n\n" + table(head, rows)


def _levels(study: Study, epsilon: float) -> str:
    rows = []
    for level in study.levels[1:]:
        for setting in SETTINGS:
            outcome = study.outcome(epsilon, setting)
            cells = [
                _spread(outcome.spread(level.level, metric), number if metric.endswith("_released") else percent)
                for _, metric in COLUMNS
            ]
            rows.append((f"{level.name} ({level.true_nodes:,} of {level.nodes:,})", setting.label, *cells))
    return table(("level (nodes that occur, of all)", "setting", *(title for title, _ in COLUMNS)), rows)


def _spread(spread: Spread, say: object) -> str:
    assert callable(say)
    mean, low, high = (str(say(value)) for value in (spread.mean, spread.low, spread.high))
    return mean if low == high else f"{mean} ({low}–{high})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])
