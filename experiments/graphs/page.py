"""The numbers of the results page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.graphs.measure import DELTA, METHODS, QUESTIONS, Errors, Rebalancing, Study
from experiments.graphs.networks import Network
from experiments.kit.pages import render


def page(study: Study) -> str:
    """Return the page in Markdown."""
    losses = [f"ε {epsilon:g}" for epsilon in study.epsilons]
    tables = {"errors": _errors, "degrees": _degrees(study), "answers": _answers, "balanced": _balanced}
    return render("graphs/page.md", study=study, delta=DELTA, losses=losses, **tables)


def _errors(network: Network, rows: Sequence[Errors]) -> Iterator[tuple[str, ...]]:
    limit = {"edge": "", "user-out": f", {network.most} edges of a list", "node": f", at most {network.bound:,} edges"}
    for row in rows:
        cut = f"{100 * row.truncated:.1f}% of edges" if row.truncated else "none"
        yield f"`{row.relation}`{limit[row.relation]}", *(f"{100 * runs.mean():.3g}%" for runs in row.misplaced), cut


def _degrees(study: Study) -> Iterator[tuple[str, ...]]:
    for network, row in study.degrees.items():
        yield network.title, *(f"{100 * value:.2g}%" for value in row.errors.values())


def _answers(study: Study, title: str) -> Iterator[tuple[str, ...]]:
    for k, row in zip(QUESTIONS, study.noise[title], strict=True):
        yield str(k), *map(short, row)


def _balanced(row: Rebalancing) -> Iterator[tuple[str, ...]]:
    for method in METHODS:
        small, *_, large = row.bias[method]
        yield method, *(f"{runs.mean():.3g}" for runs in row.errors[method]), f"{small:+.3g} / {large:+.3g}"


def short(value: float) -> str:
    """Write a number of a few digits."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
