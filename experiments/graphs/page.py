"""The numbers of the results page."""

from __future__ import annotations

from collections.abc import Iterator

from experiments.graphs.measure import DELTA, METHODS, QUESTIONS, Errors, Study
from experiments.graphs.networks import Network
from experiments.kit.pages import render
from experiments.kit.tables import table

Titled = tuple[str, str]
"""A title, and the table below it."""


def page(study: Study) -> str:
    """Return the page in Markdown."""
    return render(
        "graphs/page.md",
        study=study,
        delta=f"{DELTA:g}",
        errors=list(_errors(study)),
        degrees=_degrees(study),
        questions=list(_questions(study)),
        rebalancing=list(_rebalancing(study)),
    )


def _errors(study: Study) -> Iterator[Titled]:
    for network, rows in study.errors.items():
        cells = (
            (_name(row, network), *(f"{100 * runs.mean():.3g}%" for runs in row.misplaced), _cut(row)) for row in rows
        )
        yield network.title, table(("relation", *_losses(study), "truncated"), cells)


def _name(row: Errors, network: Network) -> str:
    limit = {"edge": "", "user-out": f", {network.most} edges of a list", "node": f", at most {network.bound:,} edges"}
    return f"`{row.relation}`{limit[row.relation]}"


def _cut(row: Errors) -> str:
    return f"{100 * row.truncated:.1f}% of edges" if row.truncated else "none"


def _degrees(study: Study) -> str:
    head = ("largest distance, as a share of people", *next(iter(study.degrees.values())).errors)
    rows = (
        (network.title, *(f"{100 * value:.2g}%" for value in row.errors.values()))
        for network, row in study.degrees.items()
    )
    return table(head, rows)


def _questions(study: Study) -> Iterator[Titled]:
    for title, noise in study.noise.items():
        rows = ((str(k), *map(short, row)) for k, row in zip(QUESTIONS, noise, strict=True))
        yield title.capitalize(), table(("k", *_losses(study)), rows)


def _rebalancing(study: Study) -> Iterator[Titled]:
    bias = f"bias of the smallest / largest quarter, ε {study.epsilons[0]:g}"
    for network, row in study.balanced.items():
        rows = (
            (
                method,
                *(f"{runs.mean():.3g}" for runs in row.errors[method]),
                " / ".join(f"{row.bias[method][end]:+.3g}" for end in (0, -1)),
            )
            for method in METHODS
        )
        yield network.title, table(("method", *_losses(study), bias), rows)


def short(value: float) -> str:
    """Write a number of a few digits."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def _losses(study: Study) -> list[str]:
    return [f"ε {epsilon:g}" for epsilon in study.epsilons]
