"""The numbers of the page of results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.kit import pages
from experiments.kit.tables import number, percent
from experiments.kit.verdicts import WORDS, standing, tally, verdict
from experiments.large_counts.measure import CONFIDENCE, DELTA, LARGEST, VARIANTS, Study

MOST_ERROR = 1.05
"""The error that margins may cost the largest counts, as a multiple of that without margins."""
MOST_OUTSIDE = 0.01
"""The share of counts that may be outside their own interval."""
SURE = 2.0
"""A bias of more standard errors is one."""


def page(studies: Sequence[Study]) -> str:
    """Return the page in Markdown."""
    return pages.render(
        "large_counts/page.md",
        studies=[
            (one.title, *(f"{size:,}" for size in (one.spine.leaves, len(one.truth), one.truth.total)))
            for one in (study.table for study in studies)
        ],
        rows=[row for study in studies for row in _rows(study)],
        runs=len(studies[0].values(studies[0].epsilons[0], "default", "bias")),
        delta=DELTA,
        largest=LARGEST,
        confidence=CONFIDENCE,
        errors=WORDS[errors(studies)],
        biases=WORDS[biases(studies)],
        outside=WORDS[outside(studies)],
        most_error=MOST_ERROR,
        most_outside=MOST_OUTSIDE,
        sure=SURE,
    )


@verdict("large_counts.errors")
def errors(studies: Sequence[Study]) -> bool | None:
    """Say whether margins cost the largest counts hardly any accuracy."""
    return standing(
        tally(
            study.mean(epsilon, "default", "error") <= MOST_ERROR * study.mean(epsilon, "no margins", "error")
            for study, epsilon in _settings(studies)
        )
    )


@verdict("large_counts.biases")
def biases(studies: Sequence[Study]) -> bool | None:
    """Say whether the largest counts have no more bias than without margins, up to the chance of the runs."""
    return standing(tally(_is_unbiased(study, epsilon) for study, epsilon in _settings(studies)))


@verdict("large_counts.outside")
def outside(studies: Sequence[Study]) -> bool | None:
    """Say whether hardly any large count is outside its own interval."""
    return standing(
        tally(
            study.mean(epsilon, "default", "outside") <= MOST_OUTSIDE for study, epsilon in _settings(studies)
        )
    )  # fmt: skip


def _is_unbiased(study: Study, epsilon: float) -> bool:
    without = abs(study.mean(epsilon, "no margins", "bias"))
    chance = SURE * study.standard_error(epsilon, "default", "bias")
    return abs(study.mean(epsilon, "default", "bias")) <= without + chance


def _settings(studies: Sequence[Study]) -> Iterator[tuple[Study, float]]:
    return ((study, epsilon) for study in studies for epsilon in study.epsilons)


def _rows(study: Study) -> Iterator[tuple[str, ...]]:
    for epsilon in study.epsilons:
        for variant in VARIANTS:
            bias, error, every = (study.mean(epsilon, variant, name) for name in ("bias", "error", "every"))
            chance = study.standard_error(epsilon, variant, "bias")
            shares = (study.mean(epsilon, variant, name) for name in ("outside", "invented", "lost"))
            told = f"{bias:+.3g} ± {chance:.2g}", number(error), number(every), *map(percent, shares)
            yield study.table.title, f"{epsilon:g}", variant, *told
