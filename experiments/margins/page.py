"""The numbers of the page of results, and every number as a table for programs."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.kit.compared import CONFIDENCE as CHANCE
from experiments.kit.pages import BELOW_ITS_CAPTION, pictures, render
from experiments.kit.tables import number, percent
from experiments.kit.verdicts import verdict
from experiments.margins.figures import FIGURES
from experiments.margins.measure import (
    ADVISED,
    BEFORE,
    CONFIDENCE,
    DELTA,
    DENSE,
    EACH,
    LOWER,
    PAPER,
    VARIANTS,
    Depths,
    Study,
    Variant,
)
from experiments.margins.targets import EPSILON, TARGETS, Judged, Target

RATES = ("invented", "invented_mass", "lost", "lost_mass")
HEAD = (
    *("table", "epsilon", "variant", "counts", "nodes", "runs", "mean_error", "largest_error"),
    *("fdr", "fdr_mass", "fnr", "fnr_mass", "coverage_measured", "coverage_released", "half_width"),
)
SHOWN = (BEFORE, EACH, LOWER, ADVISED)
ALL = Path("margins.csv")
"""Every number, beside the page."""


def page(studies: Sequence[Study]) -> str:
    """Return the page in Markdown."""
    judged = [(target, target.judged(studies)) for target in TARGETS]
    return render(
        "margins/page.md",
        delta=DELTA,
        epsilon=EPSILON,
        csv=ALL.name,
        heads=[
            "table",
            *(f"{what}, ε = {one:g}" for what in ("second end", "leaf pairs") for one in studies[0].epsilons),
        ],
        confidence=f"{CONFIDENCE:.0%}",
        chance=f"{CHANCE:.0%}",
        dense=f"{DENSE:.0%}",
        runs=runs(studies),
        targets=[_row(target.title, found) for target, found in judged],
        missed=[row for target, found in judged for row in _missed(target, found)],
        errors=[_errors(study) for study in studies],
        others=[row for study in studies for row in _others(study)],
        leaves=[_leaves(study) for study in studies],
        variants=[variant.label for variant in VARIANTS],
        rates=[_rates(study, variant) for study in studies for variant in SHOWN if study.found[EPSILON, variant]],
        coverage=[_coverage(study) for study in studies],
        by_epsilon=[_by_epsilon(study) for study in studies],
        figures=pictures(FIGURES, BELOW_ITS_CAPTION),
    )


def _row(title: str, found: Sequence[Judged]) -> tuple[str, str, str, str]:
    """Return what is told of a target."""
    by = {one: [each for each in found if each.verdict == one] for one in ("met", "missed", "not resolved")}
    tables = len({one.study.title for one in found})
    where = [f"{one.study.title}: {_times(one)}" for one in by["missed"]]
    where += [f"{one.study.title}: {_times(one)} (not resolved)" for one in by["not resolved"]]
    counted = f"{len(by['met'])} of {len(found)}" + ("" if tables == len(found) else f", on {tables} tables")
    return title, f"**{reached(found)}**", counted, "; ".join(where)


@verdict("margins.reached")
def reached(found: Sequence[Judged]) -> str:
    """Say whether a target was reached on all tables that it is about."""
    verdicts = {one.verdict for one in found}
    return next((one for one in ("missed", "not resolved", "met") if one in verdicts), "not tried")


def _times(one: Judged) -> str:
    """Say how much better, or worse, something came out."""
    value = one.found.value
    return f"{1 / value:.2f} × better" if value <= 1 else f"{value:.2f} × worse"


def _missed(target: Target, found: Sequence[Judged]) -> Iterator[tuple[str, ...]]:
    """Yield where a target was not met, with the numbers and the reason."""
    title = target.title
    for one in found:
        if one.verdict != "met":
            what = f"{one.study.title}, {one.study.name(one.depths)}"
            errors = " → ".join(map(number, one.errors))
            yield title, what, errors, f"{_times(one)}, {one.verdict}", target.why(one)
            title = ""


def runs(studies: Sequence[Study]) -> str:
    """Say how many runs there were, and of what fewer."""
    usual = max(len(found) for study in studies for found in study.found.values())
    fewer: dict[tuple[str, int, str], list[str]] = {}
    for study in studies:
        for (epsilon, variant), found in study.found.items():
            if len(found) < usual:
                fewer.setdefault((study.title, len(found), variant.label), []).append(f"{epsilon:g}")
    told = (f"{less} of {title}, {label}, at ε = {', '.join(at)}" for (title, less, label), at in fewer.items())
    return "; ".join((f"{usual} runs each", *told))


def _errors(study: Study) -> tuple[str, ...]:
    """Return the essentials: InfTDA, 0.2.0 and the default beside each other."""
    tables = (study.margins(study.second)[-1], study.margins(study.first)[-1], study.middle, study.leaves)
    return study.title, *(_along(study, depths, (PAPER, BEFORE, EACH)) for depths in tables)


def _along(study: Study, depths: Depths, variants: Sequence[Variant], epsilon: float = EPSILON) -> str:
    return " → ".join(number(study.mean(epsilon, variant, depths)) for variant in variants)


def _others(study: Study) -> Iterator[tuple[str, ...]]:
    """Yield the totals of attributes that are neither first nor second."""
    for attribute in range(len(study.table.spine.trees)):
        if attribute not in (study.first, study.second):
            depths = study.margins(attribute)[-1]
            name, codes = study.name(depths), study.codes(depths)
            yield study.title, f"{name} ({codes:,})", _along(study, depths, (PAPER, BEFORE, EACH))


def _leaves(study: Study) -> tuple[str, ...]:
    before = study.mean(EPSILON, BEFORE, study.leaves)
    means = [study.mean(EPSILON, variant, study.leaves) for variant in VARIANTS]
    gains = (number(before / means[VARIANTS.index(one)]) for one in (EACH, ADVISED))
    return f"{study.title} ({percent(study.density)})", *map(number, means), *gains


def _rates(study: Study, variant: Variant) -> tuple[str, ...]:
    rates = (percent(study.mean(EPSILON, variant, study.leaves, rate)) for rate in RATES)
    largest = number(study.mean(EPSILON, variant, study.leaves, "largest"))
    return study.title if variant == BEFORE else "", variant.label, *rates, largest


def _coverage(study: Study) -> tuple[str, ...]:
    """Return coverage and half width of totals of the second end; and the coverage of leaves."""
    second = study.margins(study.second)[-1]
    cells = []
    for variant in (BEFORE, EACH):
        found = study.coverage(EPSILON, variant, second)
        cells.append(f"{_share(found.share)}, ± {number((found.width or 0) / 2)}")
    for whose in ("measured", "released"):
        both = (study.coverage(EPSILON, variant, study.leaves, whose).share for variant in (EACH, LOWER, ADVISED))
        cells.append(" / ".join(map(_share, both)))
    return study.title, *cells


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}%"


def _by_epsilon(study: Study) -> tuple[str, ...]:
    tables = (study.margins(study.second)[-1], study.leaves)
    cells = (_along(study, depths, (PAPER, BEFORE, EACH), epsilon) for depths in tables for epsilon in study.epsilons)
    return study.title, *cells


def write_all(studies: Sequence[Study], file: Path) -> Path:
    """Write every number: a row a table, epsilon, variant, and level or margin; means over runs."""
    with file.open("w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(HEAD)
        for study in studies:
            for (epsilon, variant), found in study.found.items():
                for depths in study.depths if found else ():
                    means = [study.mean(epsilon, variant, depths, one) for one in ("mean", "largest", *RATES)]
                    measured, shown = (
                        study.coverage(epsilon, variant, depths, one) for one in ("measured", "released")
                    )
                    numbers = (
                        *means,
                        measured.share,
                        shown.share,
                        None if measured.width is None else measured.width / 2,
                    )
                    about = (study.table.name, f"{epsilon:g}", variant.label, study.name(depths), study.codes(depths))
                    rows.writerow((*about, len(found), *("" if one is None else f"{one:.4g}" for one in numbers)))
    return file
