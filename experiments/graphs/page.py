"""The numbers of the results page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from experiments.graphs.claims import claims
from experiments.graphs.measure import DELTA, QUESTIONS, Errors, Study
from experiments.graphs.networks import Network
from experiments.graphs.theta import Sweep
from experiments.kit.pages import render
from experiments.kit.verdicts import verdict

EMPTY = 0.5
"""The error of an empty table, as errors are counted here."""


def page(study: Study) -> str:
    """Return the page in Markdown."""
    losses = [f"ε {epsilon:g}" for epsilon in study.epsilons]
    tables = {
        "errors": _errors,
        "degrees": _degrees(study),
        "answers": _answers,
        "thetas": _thetas,
        "choices": _choices,
    }
    return render(
        "graphs/page.md",
        study=study,
        delta=DELTA,
        losses=losses,
        claims=list(claims(study)),
        worth=list(_worth(study)),
        agree=agreement(study),
        price=prices(study),
        short=short,
        **tables,
    )


@verdict("graphs.prices")
def prices(study: Study) -> dict[str, float]:
    """Say over all networks and losses what the private choice of theta costs, and what it is better than."""
    price = np.concatenate([one.price for one in study.sweeps.values()])
    beaten = np.concatenate([one.beaten / len(one.thetas) for one in study.sweeps.values()])
    more = {"settings": len(price), "thetas": len(next(iter(study.sweeps.values())).thetas)}
    told = {"least": price.min(), "mean": price.mean(), "most": price.max(), "beaten": beaten.mean()}
    blind = np.concatenate([one.blind for one in study.sweeps.values()]).mean()
    return {**told, "worst": beaten.min(), "blind": blind, **more}


@verdict("graphs.agreement")
def agreement(study: Study) -> tuple[int, int]:
    """Return in how many settings the arithmetic of `treetop plan` says what was measured: worse than empty, or not."""
    said = [(by_noise, measured) for _, by_noise, measured in _verdicts(study)]
    return sum(one == other for one, other in said), len(said)


def _verdicts(study: Study) -> Iterator[tuple[tuple[Network, float, float, int, float], bool, bool]]:
    """Yield of every table of edges under "node" whether it is worse than none: by its noise, and as measured."""
    for network, rows in study.errors.items():
        for row in rows:
            if row.needed is None:
                continue
            for epsilon, needed, runs in zip(study.epsilons, row.needed, row.misplaced, strict=True):
                mean = float(runs.mean())
                yield (network, epsilon, float(needed), row.edges, mean), needed > row.edges, mean > EMPTY


def _worth(study: Study) -> Iterator[tuple[str, ...]]:
    for (network, epsilon, needed, edges, mean), by_noise, worse in _verdicts(study):
        cells = (f"{needed:,.0f}", f"{edges:,}", "worse" if by_noise else "better", "worse" if worse else "better")
        yield network.title.partition(" (")[0], f"{epsilon:g}", *cells, f"{mean / EMPTY:.2f} ×"


def _thetas(row: Sweep) -> Iterator[tuple[str, ...]]:
    """Yield by theta the mean distances, the best of each epsilon in bold."""
    for at, theta in enumerate(row.thetas):
        means = [(row.fixed[i, at].mean(), row.best(i) == at) for i in range(len(row.epsilons))]
        cells = [f"**{100 * mean:.1f}%**" if best else f"{100 * mean:.1f}%" for mean, best in means]
        yield f"{theta:,}", *cells, f"{100 * row.cut[at]:.1f}%"


def _choices(row: Sweep) -> Iterator[tuple[str, ...]]:
    for at, epsilon in enumerate(row.epsilons):
        low, middle, high = np.quantile(row.chosen[at], [0, 0.5, 1], method="lower")
        best = row.best(at)
        yield (
            f"{epsilon:g}",
            f"{row.thetas[best]:,}: {100 * row.fixed[at, best].mean():.1f}%",
            f"{middle:,} ({low:,} to {high:,}): {100 * row.private[at].mean():.1f}%",
            f"{row.price[at]:.2f} ×",
            f"{row.beaten[at]} of {len(row.thetas)}",
        )


def _errors(network: Network, rows: Sequence[Errors]) -> Iterator[tuple[str, ...]]:
    limit = {"edge": "", "user-out": f", {network.most} edges of a list", "node": f", at most {network.bound:,} edges"}
    for row in rows:
        cut = f"{100 * row.truncated:.1f}% of edges" if row.truncated else "none"
        yield f"`{row.relation}`{limit[row.relation]}", *(f"{100 * runs.mean():.3g}%" for runs in row.misplaced), cut


def _degrees(study: Study) -> Iterator[tuple[str, ...]]:
    for network, row in study.degrees.items():
        yield network.title, f"{row.theta:,}", *(f"{100 * value:.2g}%" for value in row.errors.values())


def _answers(study: Study, title: str) -> Iterator[tuple[str, ...]]:
    for k, row in zip(QUESTIONS, study.noise[title], strict=True):
        yield str(k), *map(short, row)


def short(value: float) -> str:
    """Write a number of a few digits."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
