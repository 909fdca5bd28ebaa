"""The study in Markdown: short tables for the page, and a file with every level."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from experiments.false_discoveries.measure import METHODS, Study, singles
from experiments.kit.tables import number, percent, table

PAIRS = (
    ("Share of pairs: invented / lost", "false_discoveries", "false_negatives"),
    ("Share of trips: invented / lost", "false_mass", "lost_mass"),
    ("Error: share of trips in the wrong pair / largest error of a pair, in trips", "misplaced", "largest"),
)
"""The short tables: what stands in a cell, and the two metrics."""

COLUMNS = (
    ("invented nodes", "false_discoveries"),
    ("invented count", "false_mass"),
    ("lost nodes", "false_negatives"),
    ("lost count", "lost_mass"),
    ("misplaced count", "misplaced"),
    ("mean error", "mean"),
    ("largest error", "largest"),
)
"""The columns of the long tables."""

HEAD = """\
# False discoveries: all numbers

Written by `python -m experiments.false_discoveries`; [the page](../false-discoveries.md) explains them.
Each is the mean of {repetitions} releases, with the least and the largest in brackets."""


def short_tables(studies: Sequence[Study]) -> str:
    """Return the table of the data and, for the leaves, a table for each pair of metrics."""
    parts = [table(("table", "trips", "pairs that occur", "with one trip", "possible pairs"), map(_facts, studies))]
    for title, *metrics in PAIRS:
        rows = []
        for study in studies:
            for epsilon in study.epsilons:
                outcomes = [study.outcome(epsilon, method) for method in METHODS]
                cells = (" / ".join(_form(name)(one.spread(-1, name).mean) for name in metrics) for one in outcomes)
                rows.append((study.title, f"{epsilon:g}", *cells))
        parts.append(f"**{title}**\n\n" + table(("table", "epsilon", *(method.label for method in METHODS)), rows))
    return "\n\n".join(parts)


def long_tables(studies: Sequence[Study]) -> str:
    """Return every metric of every level: the mean, and the least and largest of all repetitions."""
    parts = [HEAD.format(repetitions=len(studies[0].outcomes[0].runs))]
    head = ("level (nodes that occur, of all)", "repair", *(title for title, _ in COLUMNS))
    for study in studies:
        parts.append(f"## {study.title}")
        for epsilon in study.epsilons:
            rows = []
            for level in study.levels[1:]:
                for method in METHODS:
                    outcome = study.outcome(epsilon, method)
                    cells = (outcome.spread(level.level, name).say(_form(name)) for _, name in COLUMNS)
                    rows.append((f"{level.name} ({level.true_nodes:,} of {level.nodes:,})", method.label, *cells))
            parts.append(f"### Epsilon {epsilon:g}\n\n" + table(head, rows))
    return "\n\n".join(parts) + "\n"


def _facts(study: Study) -> tuple[str, ...]:
    leaves, total = study.levels[-1], study.table.truth.total
    single = percent(singles(study) / leaves.true_nodes)
    return study.title, f"{total:,}", f"{leaves.true_nodes:,}", single, f"{leaves.nodes:,}"


def _form(metric: str) -> Callable[[float], str]:
    return number if metric in ("mean", "largest") else percent
