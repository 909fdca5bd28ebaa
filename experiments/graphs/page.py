"""The results page: the plots with the numbers behind them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from experiments.graphs.measure import DELTA, METHODS, QUESTIONS, Errors, Study
from experiments.graphs.networks import Network

ERRORS = """## Friendships between groups

Half the sum of all errors at the leaves, as a share of the edges: where the total is right, that is the share of edges
in the wrong cell, and an empty table would have 50%. Mean, and the band that holds 95% of the runs. `user-out` counts
so many edges of a list; its truncation is a bias that no epsilon mends. `node` rests on the promise that nobody has
more edges than stated.

![Errors against epsilon](../images/graphs_errors.png)
"""
DEGREES = """## Degree distributions

Cumulative, measured once with epsilon 1 and made to rise. Under `edge` one friendship is hidden, and little noise is
needed. Under `node` a whole person is, after the projection that leaves nobody more than theta edges: the dashed line
is what that alone does.

![Degree distributions](../images/graphs_degrees.png)
"""
QUESTIONS_AT_ONCE = """## Many questions at once

The standard deviation of one answer among k that all overlap, exact. Sharing epsilon, the noise grows with k; sharing
rho, with its root. Where people are added and removed, questions about different places cost no more than one.

![Noise of k questions](../images/graphs_questions.png)
"""
REBALANCING = """## Rebalancing

People of each group under their noisy parent: repaired to add up, or first pulled towards shares of the parent. Only
noisy values are read. It is off unless it is called for. Even shares are wrong ones: they move people from large groups
to small ones wherever noise is large. Public shares are those of a made-up survey of 2,000 other people in each parent.

![Rebalancing](../images/graphs_rebalancing.png)
"""


def page(study: Study) -> str:
    """Return the page in Markdown."""
    start = (
        "# Graphs: what each relation costs\n\n"
        f"Written by `python -m experiments.graphs`: {study.runs} runs of each setting, delta {DELTA:g}, neighbours\n"
        "by adding and removing. The plots show the truth; those of a private network would be for its steward only.\n"
        "What each relation protects is in [graphs](../graphs.md).\n"
    )
    parts = [start, ERRORS, *_errors(study), DEGREES, _degrees(study), QUESTIONS_AT_ONCE, *_questions(study)]
    return "\n".join([*parts, REBALANCING, *_rebalancing(study)])


def _errors(study: Study) -> Iterable[str]:
    head = ["relation", *_losses(study), "truncated"]
    for network, rows in study.errors.items():
        yield f"{network.title}:\n"
        yield _table(
            head,
            (
                [_name(row, network), *(f"{100 * runs.mean():.3g}%" for runs in row.misplaced), _cut(row)]
                for row in rows
            ),
        )


def _name(row: Errors, network: Network) -> str:
    limit = {"edge": "", "user-out": f", {network.most} edges of a list", "node": f", at most {network.bound:,} edges"}
    return f"`{row.relation}`{limit[row.relation]}"


def _cut(row: Errors) -> str:
    return f"{100 * row.truncated:.1f}% of edges" if row.truncated else "none"


def _degrees(study: Study) -> str:
    head = ["largest distance, as a share of people", *next(iter(study.degrees.values())).errors]
    return _table(
        head,
        (
            [network.title, *(f"{100 * value:.2g}%" for value in row.errors.values())]
            for network, row in study.degrees.items()
        ),
    )


def _questions(study: Study) -> Iterable[str]:
    for title, table in study.noise.items():
        yield f"{title.capitalize()}:\n"
        rows = zip(QUESTIONS, table, strict=True)
        yield _table(["k", *_losses(study)], ([str(k), *(_short(value) for value in row)] for k, row in rows))


def _rebalancing(study: Study) -> Iterable[str]:
    bias = f"bias of the smallest / largest quarter, ε {study.epsilons[0]:g}"
    for network, row in study.balanced.items():
        yield f"{network.title}, mean error of a group in people:\n"
        yield _table(
            ["method", *_losses(study), bias],
            (
                [
                    method,
                    *(f"{runs.mean():.3g}" for runs in row.errors[method]),
                    f"{row.bias[method][0]:+.3g} / {row.bias[method][-1]:+.3g}",
                ]
                for method in METHODS
            ),
        )


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def _losses(study: Study) -> list[str]:
    return [f"ε {epsilon:g}" for epsilon in study.epsilons]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"
