"""The numbers of the page of results."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from experiments.joint_fit.measure import DELTA, EPSILONS, STAGES, Study
from experiments.kit import pages
from experiments.kit.tables import number, percent
from experiments.kit.verdicts import WORDS, verdict

TARGETS = {"one": 18.0, "two": 22.0, "worst_two": 32.0, "three": 24.0, "cells": 0.75, "invented": 0.27, "lost": 0.20}
"""What the whole counts of the taxi trips should reach at an epsilon of 1."""
AT = 1.0
ROUNDING = 0.05
"""How much whole numbers may add to the error of tables of two attributes."""
FIGURES = ("one", "two", "worst_two", "three", "cells", "invented", "lost")


def page(study: Study) -> str:
    """Return the page in Markdown."""
    return pages.render(
        "joint_fit/page.md",
        study=study,
        delta=DELTA,
        cells=study.records.truth.size,
        total=int(study.records.truth.sum()),
        filled=int((study.records.truth > 0).sum()),
        rows=list(_rows(study)),
        targets=targets(study),
        targeted=[(name.replace("_", " "), number(goal), number(study.mean(AT, "whole", name)))
                  for name, goal in TARGETS.items()],
        at=AT,
        rounding=rounding(study),
        most=ROUNDING,
        costs=[(f"{epsilon:g}", percent(cost(study, epsilon))) for epsilon in EPSILONS],
        seconds=float(np.median(study.seconds)),
    )  # fmt: skip


@verdict("joint_fit.targets")
def targets(study: Study) -> str:
    """Say whether the whole counts reach every target."""
    held = [study.mean(AT, "whole", name) <= goal for name, goal in TARGETS.items()]
    return WORDS[True if all(held) else None if any(held) else False]


@verdict("joint_fit.rounding")
def rounding(study: Study) -> str:
    """Say whether whole numbers cost little at every loss."""
    held = [cost(study, epsilon) <= ROUNDING for epsilon in EPSILONS]
    return WORDS[True if all(held) else None if any(held) else False]


def cost(study: Study, epsilon: float) -> float:
    """Return by which share rounding raises the error of tables of two attributes."""
    return study.mean(epsilon, "whole", "two") / study.mean(epsilon, "fitted", "two") - 1


def _rows(study: Study) -> Iterator[tuple[str, ...]]:
    for epsilon in EPSILONS:
        for stage in STAGES:
            told = [study.mean(epsilon, stage, name) for name in FIGURES]
            yield f"{epsilon:g}", stage, *map(number, told[:5]), *map(percent, told[5:])
