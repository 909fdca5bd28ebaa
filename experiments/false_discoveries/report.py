"""The study in Markdown: short tables for the page, and a file with every level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from experiments.false_discoveries.measure import METHODS, Spread, Study

Format = Callable[[float], str]

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


def percent(share: float) -> str:
    """Return a share to three digits."""
    if 0 < 100 * share < 0.001:
        return "<0.001%"
    return f"{number(100 * share)}%"


def number(value: float) -> str:
    """Return a number to three digits, or whole."""
    return f"{value:,.0f}" if value == 0 or value >= 99.95 else f"{value:#.3g}"


def short_tables(studies: Sequence[Study]) -> str:
    """Return the table of the data and, for the leaves, a table for each pair of metrics."""
    parts = [_table(("table", "trips", "pairs that occur", "with one trip", "possible pairs"), map(_facts, studies))]
    for title, one, other in PAIRS:
        rows = [
            (study.title, f"{epsilon:g}", *_cells(study, epsilon, one, other))
            for study in studies
            for epsilon in study.epsilons
        ]
        parts.append(f"**{title}**\n\n" + _table(("table", "epsilon", *(method.label for method in METHODS)), rows))
    return "\n\n".join(parts)


def long_tables(studies: Sequence[Study]) -> str:
    """Return every metric of every level: the mean, and the least and largest of all repetitions."""
    repetitions = len(studies[0].outcomes[0].runs)
    parts = [
        "# False discoveries: all numbers",
        "Written by `python -m experiments.false_discoveries`; [the page](../false-discoveries.md) explains them.\n"
        f"Each is the mean of {repetitions} releases, with the least and the largest in brackets.",
    ]
    for study in studies:
        parts.append(f"## {study.title}")
        for epsilon in study.epsilons:
            rows = [
                (f"{level.name} ({level.true_nodes:,} of {level.nodes:,})", method.label, *_spreads(spreads))
                for level in study.levels[1:]
                for method in METHODS
                for spreads in [[study.outcome(epsilon, method).spread(level.level, name) for _, name in COLUMNS]]
            ]
            head = ("level (nodes that occur, of all)", "repair", *(title for title, _ in COLUMNS))
            parts.append(f"### Epsilon {epsilon:g}\n\n" + _table(head, rows))
    return "\n\n".join(parts) + "\n"


def insert(page: Path, text: str) -> None:
    """Put the text between the two marks of a page."""
    start, stop = "<!-- tables -->\n", "<!-- end of tables -->\n"
    old = page.read_text(encoding="utf-8")
    head, found, rest = old.partition(start)
    _, closed, tail = rest.partition(stop)
    if not found or not closed:
        raise ValueError(f"{page} has no marks {start.strip()} and {stop.strip()} for the tables")
    page.write_text(f"{head}{start}\n{text}\n\n{stop}{tail}", encoding="utf-8")


def _facts(study: Study) -> tuple[str, ...]:
    leaves = study.levels[-1]
    singles = percent(study.singles / leaves.true_nodes)
    return study.title, f"{study.total:,}", f"{leaves.true_nodes:,}", singles, f"{leaves.nodes:,}"


def _cells(study: Study, epsilon: float, one: str, other: str) -> list[str]:
    outcomes = [study.outcome(epsilon, method) for method in METHODS]
    return [" / ".join(_format(name)(outcome.spread(-1, name).mean) for name in (one, other)) for outcome in outcomes]


def _spreads(spreads: Sequence[Spread]) -> list[str]:
    cells = []
    for (_, metric), spread in zip(COLUMNS, spreads, strict=True):
        form = _format(metric)
        ends = f" ({form(spread.low)}–{form(spread.high)})" if spread.low < spread.high else ""
        cells.append(form(spread.mean) + ends)
    return cells


def _format(metric: str) -> Format:
    return number if metric in ("mean", "largest") else percent


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])
