"""The page of results: short tables of the leaves, pictures, and every number of every level."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.false_discoveries.measure import METHODS, Study, singles
from experiments.kit.outcomes import Form, leaf_table, level_table
from experiments.kit.pages import pictures, render
from experiments.kit.tables import number, percent, table
from experiments.kit.verdicts import tally, verdict

PAIRS: dict[str, dict[str, Form]] = {
    "Share of pairs: invented / lost": {"false_discoveries": percent, "false_negatives": percent},
    "Share of trips: invented / lost": {"false_mass": percent, "lost_mass": percent},
    "Error: share of trips in the wrong pair / largest error of a pair, in trips": {
        "misplaced": percent,
        "largest": number,
    },
}
"""The short tables: what stands in a cell, and the two metrics."""

LEAST = {
    "invented pairs": "false_discoveries",
    "invented trips": "false_mass",
    "lost pairs": "false_negatives",
    "lost trips": "lost_mass",
    "trips in the wrong pair": "misplaced",
    "largest error": "largest",
}
"""Of what each repair may have the least."""

COLUMNS = {
    "invented nodes": ("false_discoveries", percent),
    "invented count": ("false_mass", percent),
    "lost nodes": ("false_negatives", percent),
    "lost count": ("lost_mass", percent),
    "misplaced count": ("misplaced", percent),
    "mean error": ("mean", number),
    "largest error": ("largest", number),
}
"""The columns of the long tables."""

CAPTIONS = {
    "choice": "Lost against invented: a line for each repair, from epsilon 0.1 to 10. Down and left is better.",
    "errors": "Errors beside those of Chebyshev ascending, with bars from the least to the largest release.",
}
"""What the pictures of all tables together show."""


@verdict("false_discoveries.least")
def least(studies: Sequence[Study]) -> dict[str, dict[str, str]]:
    """Return, by repair and metric, in how many settings its mean at the leaves is the least (of equals, each is)."""
    settings = [[study.outcome(epsilon, one) for one in METHODS] for study in studies for epsilon in study.epsilons]
    means = {name: [[one.spread(-1, metric).mean for one in row] for row in settings] for name, metric in LEAST.items()}
    return {
        method.label: {name: str(tally(row[at] == min(row) for row in rows)) for name, rows in means.items()}
        for at, method in enumerate(METHODS)
    }


def short_tables(studies: Sequence[Study]) -> str:
    """Return the table of the data and, for the leaves, a table for each pair of metrics."""
    parts = [table(("table", "trips", "pairs that occur", "with one trip", "possible pairs"), map(_facts, studies))]
    parts += [f"**{title}**\n\n{leaf_table(studies, METHODS, pair, 'epsilon')}" for title, pair in PAIRS.items()]
    return "\n\n".join(parts)


def long_tables(studies: Sequence[Study]) -> str:
    """Return every metric of every level: the mean, and the least and largest of all repetitions."""
    parts = []
    for study in studies:
        parts.append(f"## {study.title}")
        for epsilon in study.epsilons:
            parts.append(f"### Epsilon {epsilon:g}\n\n{level_table(study, epsilon, METHODS, 'repair', COLUMNS)}")
    return "\n\n".join(parts)


def page(studies: Sequence[Study]) -> str:
    """Return the page."""
    captions = CAPTIONS | {study.table.name: f"Rates by level: {study.title}" for study in studies}
    return render(
        "false_discoveries/page.md",
        repetitions=len(studies[0].outcomes[0].runs),
        default=METHODS[0].label,
        least=(found := least(studies)),
        least_table=table(("repair", *LEAST), [(name, *row.values()) for name, row in found.items()]),
        short=short_tables(studies),
        figures=pictures({f"false_discoveries_{name}.png": words for name, words in captions.items()}),
        long=long_tables(studies),
    )


def _facts(study: Study) -> tuple[str, ...]:
    leaves, total = study.levels[-1], study.table.truth.total
    single = percent(singles(study) / leaves.true_nodes)
    return study.title, f"{total:,}", f"{leaves.true_nodes:,}", single, f"{leaves.nodes:,}"
