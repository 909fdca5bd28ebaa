"""The numbers of the page of results."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.facts.figures import FIGURES
from experiments.facts.measure import DELTA, Study
from experiments.kit import pages
from experiments.kit.tables import number, percent, table
from experiments.kit.verdicts import verdict

CHANGE = 0.02
"""An error that changes by less is called the same."""


def page(studies: Sequence[Study]) -> str:
    """Return the page in Markdown."""
    return pages.render(
        "facts/page.md",
        delta=DELTA,
        runs=" or ".join(dict.fromkeys(str(len(next(iter(study.runs.values())))) for study in studies)),
        studies=studies,
        sentences=sentences,
        errors=errors,
        costs=costs,
        machine=pages.machine(),
        figures=pages.pictures(FIGURES),
    )


def sentences(study: Study) -> str:
    """Say what facts did to the leaves, to levels above them, and to time."""
    told = []
    first = study.epsilons[0]
    exact = [
        name
        for at, name in enumerate(study.levels)
        if study.better(first, at) is None and study.error(first, False, at) > 0
    ]
    if exact:
        told.append(f"Exact with facts: {', '.join(exact)}.")
    for epsilon in study.epsilons:
        before, after = (
            percent(study.mean(epsilon, facts, "invented") / max(study.mean(epsilon, facts, "released"), 1))
            for facts in (False, True)
        )
        said = leaves(study, epsilon)
        told.append(
            f"At ε = {epsilon:g} errors of leaves {said}; of the released leaves {before} are invented without facts, "
            f"and {after} with."
        )
    return " ".join(told)


@verdict("facts.leaves")
def leaves(study: Study, epsilon: float) -> str:
    """Say what facts did to the errors of leaves."""
    gain = study.better(epsilon, len(study.levels) - 1)
    if gain is None:
        return "are exact"
    if abs(gain - 1) < CHANGE:
        return "stay the same"
    return f"are {gain:.2f} times smaller" if gain > 1 else f"are {1 / gain:.2f} times larger"


def errors(study: Study) -> str:
    """Return the mean errors of every level, without and with facts."""
    rows = []
    for at, name in enumerate(study.levels):
        cells = (
            f"{number(study.error(epsilon, False, at))} → {number(study.error(epsilon, True, at))}"
            for epsilon in study.epsilons
        )
        rows.append((name, f"{study.public[at]:,}", f"{study.nodes[at]:,}", *cells))
    return table(("counts", "nodes", "possible", *(f"ε = {one:g}" for one in study.epsilons)), rows)


def costs(studies: Sequence[Study]) -> str:
    """Return invented leaves, measurements and time, without and with facts."""
    rows = []
    for study in studies:
        for epsilon in study.epsilons:
            pairs = (
                f"{study.mean(epsilon, False, what):,.0f} → {study.mean(epsilon, True, what):,.0f}"
                for what in ("released", "invented", "draws")
            )
            seconds = f"{study.mean(epsilon, False, 'seconds'):.2g} → {study.mean(epsilon, True, 'seconds'):.2g}"
            rows.append((study.title, f"{epsilon:g}", *pairs, seconds, f"{study.slower(epsilon):.2g}"))
    head = ("table", "ε", "leaves released", "of them invented", "measurements", "seconds", "× as long")
    return table(head, rows)
