"""The numbers of the page of results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from experiments.joint_fit.mbi_fit import ITERATIONS
from experiments.joint_fit.measure import (
    AT,
    CLASSES,
    CONFIDENCE,
    EPSILONS,
    MBI_LARGE,
    MBI_RUNS,
    STAGES,
    All,
    Held,
    Study,
)
from experiments.joint_fit.tables import DELTA
from experiments.kit import pages
from experiments.kit.tables import number, percent
from experiments.kit.verdicts import NOT_RUN, WORDS, verdict

TARGETS = {"one": 18.0, "two": 22.0, "worst_two": 32.0, "three": 24.0, "cells": 0.75, "invented": 0.27, "lost": 0.20}
"""What the whole counts of the taxi trips should reach."""
PATIENTS = 25.0
"""What the coarse tables of two attributes of the patients should reach."""
BESIDE = 1.2
"""How many times as far off as those of `mbi` tables of two attributes may be."""
ROUNDING = 0.05
"""How much whole numbers may add to the error of tables of two attributes."""
OUTSIDE = 0.01
"""Largest share of released counts outside their own interval."""
SHORT = 0.005
"""By how much the share of intervals that hold the truth may be short of the confidence."""
WIDTH = 1.15
"""Largest width of intervals of a table beside the best linear unbiased estimate."""
FEW = 200
"""Of a class with fewer intervals nothing is said."""
SECONDS, LARGE_SECONDS = 0.3, 60.0
FIGURES = ("one", "two", "worst_two", "three", "cells", "invented", "lost")


def page(found: All) -> str:
    """Return the page in Markdown."""
    widths = [[one.title, number(float(np.mean(one.widths))), number(max(one.widths))] for one in found.studies]
    return pages.render(
        "joint_fit/page.md",
        found=found,
        delta=DELTA,
        at=AT,
        confidence=CONFIDENCE,
        runs=max(one.runs for one in found.studies),
        described=[_description(one) for one in found.studies],
        rows={one.title: list(_rows(one)) for one in found.studies},
        targets=targets(found),
        targeted=_targeted(found),
        patients=patients(found),
        patients_most=PATIENTS,
        patients_reached=_reached(found.named("patients"), "coarse_two"),
        beside=beside(found),
        beside_most=BESIDE,
        compared=list(_compared(found)),
        iterations=ITERATIONS,
        mbi_runs=MBI_RUNS,
        mbi_large=MBI_LARGE,
        rounding=rounding(found),
        most=ROUNDING,
        costs=list(_costs(found)),
        coverage=coverage(found),
        short=SHORT,
        held=list(_held(found)),
        outside=outside(found),
        outside_most=OUTSIDE,
        width=width(found),
        width_most=WIDTH,
        widths=widths,
        speed=speed(found),
        seconds=_seconds(found.named("taxi")),
        seconds_most=SECONDS,
        large=found.large_seconds,
        large_most=LARGE_SECONDS,
    )


@verdict("joint_fit.targets")
def targets(found: All) -> str:
    """Say whether the whole counts of the taxi trips reach every target."""
    if (taxi := found.named("taxi")) is None:
        return NOT_RUN
    held = [taxi.mean(AT, "whole", name) <= goal for name, goal in TARGETS.items()]
    return WORDS[True if all(held) else None if any(held) else False]


@verdict("joint_fit.patients")
def patients(found: All) -> str:
    """Say whether the coarse tables of the patients reach their target."""
    own = found.named("patients")
    return NOT_RUN if own is None else WORDS[own.mean(AT, "whole", "coarse_two") <= PATIENTS]


@verdict("joint_fit.beside")
def beside(found: All) -> str:
    """Say whether tables of two attributes are about as good as those of `mbi`."""
    held = [ratio(one, "two") <= BESIDE for one in found.studies if not math.isnan(ratio(one, "two"))]
    return WORDS[True if all(held) else None if any(held) else False] if held else NOT_RUN


@verdict("joint_fit.rounding")
def rounding(found: All) -> str:
    """Say whether whole numbers cost little at every loss."""
    held = [cost <= ROUNDING for one in found.studies for cost in costs(one).values()]
    return WORDS[True if all(held) else None if any(held) else False] if held else NOT_RUN


@verdict("joint_fit.coverage")
def coverage(found: All) -> str:
    """Say whether intervals of measured counts hold the truth as often as they say, in every class."""
    classes = [one for one in _every(found) if one.number >= FEW and one.what == "measured"]
    held = [one.truth / one.number >= CONFIDENCE - SHORT for one in classes]
    return WORDS[True if all(held) else None if any(held) else False] if held else NOT_RUN


@verdict("joint_fit.outside")
def outside(found: All) -> str:
    """Say whether released counts are inside their own intervals, in every table."""
    held = [beyond(one) <= OUTSIDE for one in found.studies]
    return WORDS[True if all(held) else None if any(held) else False]


@verdict("joint_fit.width")
def width(found: All) -> str:
    """Say whether intervals of every table are nearly as narrow as they can be."""
    held = [one <= WIDTH for study in found.studies for one in study.widths]
    return WORDS[True if all(held) else None if any(held) else False] if held else NOT_RUN


@verdict("joint_fit.speed")
def speed(found: All) -> str:
    """Say whether both fits are fast enough."""
    taxi = found.named("taxi")
    if taxi is None or math.isnan(found.large_seconds):
        return NOT_RUN
    held = [_seconds(taxi) <= SECONDS, found.large_seconds <= LARGE_SECONDS]
    return WORDS[True if all(held) else None if any(held) else False]


def ratio(study: Study, figure: str) -> float:
    """Return the error of whole counts beside that of `mbi` in the same runs; NaN if it was not run."""
    others = [getattr(one, figure) for one in study.errors if one.stage == "mbi"]
    own = [getattr(one, figure) for one in study.errors if (one.epsilon, one.stage) == (AT, "whole")]
    return float(np.mean(own[: len(others)]) / np.mean(others)) if others else math.nan


def costs(study: Study) -> Mapping[float, float]:
    """Return by which share rounding raises the error of tables of two attributes, by epsilon."""
    both = {
        epsilon: (study.mean(epsilon, "whole", "two"), study.mean(epsilon, "fitted", "two")) for epsilon in EPSILONS
    }
    return {epsilon: whole / fitted - 1 for epsilon, (whole, fitted) in both.items() if not math.isnan(fitted)}


def beyond(study: Study) -> float:
    """Return the share of released counts of measured tables outside their own interval."""
    own = [one for one in study.held if (one.what, one.by) == ("measured", "true")]
    return 1 - sum(one.released for one in own) / sum(one.number for one in own)


def _seconds(study: Study | None) -> float:
    return float(np.median(study.seconds)) if study is not None and study.seconds else math.nan


def _description(study: Study) -> tuple[str, ...]:
    sizes = (study.records, study.cells, study.filled, study.tables, study.runs)
    return study.title, *(f"{one:,}" for one in sizes), "yes" if study.tuned else "no"


def _rows(study: Study) -> Iterator[tuple[str, ...]]:
    for epsilon in EPSILONS:
        for stage in STAGES[:-1]:  # the other tool has fewer runs
            told = [study.mean(epsilon, stage, name) for name in FIGURES]
            if not math.isnan(told[0]):
                yield f"{epsilon:g}", stage, *map(number, told[:5]), *map(percent, told[5:])


def _reached(study: Study | None, figure: str) -> str:
    return "–" if study is None else number(study.mean(AT, "whole", figure))


def _targeted(found: All) -> list[tuple[str, ...]]:
    taxi = found.named("taxi")
    return [(name.replace("_", " "), number(goal), _reached(taxi, name)) for name, goal in TARGETS.items()]


def _compared(found: All) -> Iterator[tuple[str, ...]]:
    for one in found.studies:
        if not math.isnan(ratio(one, "two")):
            figures = ("one", "two", "worst_two", "three", "cells")
            yield one.title, *(number(ratio(one, figure)) for figure in figures)


def _costs(found: All) -> Iterator[tuple[str, ...]]:
    for one in found.studies:
        own = costs(one)
        if own:
            yield one.title, *(percent(own[epsilon]) if epsilon in own else "–" for epsilon in EPSILONS)


def _every(found: All) -> list[Held]:
    """Return the intervals of all tables together, by class."""
    held = [one for study in found.studies for one in study.held]
    keys = dict.fromkeys((one.what, one.by, one.least) for one in held)
    return [
        Held(*key, *(sum(getattr(one, name) for one in own) for name in ("number", "truth", "released")))
        for key in keys
        if (own := [one for one in held if (one.what, one.by, one.least) == key])
    ]


def _held(found: All) -> Iterator[tuple[str, ...]]:
    names = [f"{a:,} to {b - 1:,}" if b - a > 1 else f"{a}" for a, b in pairwise(CLASSES)]
    names.append(f"{CLASSES[-1]:,} and more")
    for one in _every(found):
        if one.number:
            what = "measured tables" if one.what == "measured" else "all attributes"
            shares = percent(one.truth / one.number), percent(1 - one.released / one.number)
            yield what, one.by, names[CLASSES.index(one.least)], f"{one.number:,}", *shares
