"""The numbers of the page of results."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.kit import pages
from experiments.kit.tables import number, percent, table
from experiments.kit.verdicts import NOT_RUN, WORDS, verdict
from experiments.plan_design.measure import CLOSE, DELTA, EPSILON, LARGE, MOST, WAYS, Outcome, Study

HEAD = ("counts", "mean count", "not small", *(f"{way}: expected → measured" for way in WAYS))


def page(studies: Sequence[Study]) -> str:
    """Return the page in Markdown."""
    every = [(study, one) for study in studies for one in study.outcomes]
    claimed = [(study, one) for study, one in every if one.is_claimed]
    missed = [(study, one) for study, one in claimed if not one.is_close]
    worths = [(study, one) for study in studies for one in study.worths]
    return pages.render(
        "plan_design/page.md",
        epsilon=EPSILON,
        delta=DELTA,
        large=LARGE,
        most=f"{MOST:.0%}",
        close=f"{CLOSE:.0%}",
        expected=expected(studies),
        better_than_zeros=better_than_zeros(studies),
        every=len(every),
        claimed=len(claimed),
        missed=[_row(study, one) for study, one in missed],
        least=min((one.ratio for _, one in claimed), default=1.0),
        largest=max((one.ratio for _, one in claimed), default=1.0),
        beyond=[_row(study, one) for study, one in every if one.ratio > 1 + CLOSE and not one.is_claimed],
        studies=studies,
        levels=_levels,
        leaves=[_leaves(study) for study in studies],
        judged=len(worths),
        trues=sum(one.is_true for _, one in worths),
        worths=[
            (
                study.title,
                f"{one.epsilon:g}",
                one.verdict,
                number(one.needed),
                percent(one.crowded),
                number(one.error),
                "yes" if one.is_true else "no",
            )
            for study, one in worths
        ],
    )


@verdict("plan_design.expected")
def expected(studies: Sequence[Study]) -> str:
    """Say whether errors were as expected, where that is claimed."""
    return _word([one.is_close for study in studies for one in study.outcomes if one.is_claimed])


@verdict("plan_design.better_than_zeros")
def better_than_zeros(studies: Sequence[Study]) -> str:
    """Say whether what was said of releases beside zeros came true."""
    return _word([one.is_true for study in studies for one in study.worths])


def _word(held: Sequence[bool]) -> str:
    return WORDS[True if all(held) else None if any(held) else False] if held else NOT_RUN


def _row(study: Study, one: Outcome) -> tuple[str, ...]:
    return study.title, one.way, one.counts, number(one.expected), number(one.measured), f"{one.ratio:.2f}"


def _levels(study: Study) -> str:
    """Return every table that is cared for, with what was expected and what was measured, by plan."""
    rows = []
    for own in zip(*(study.by(way) for way in WAYS), strict=True):
        cells = (f"{number(one.expected)} → {number(one.measured)}" for one in own)
        rows.append((own[0].counts, number(own[0].average), percent(min(one.large for one in own)), *cells))
    return table(HEAD, rows)


def _leaves(study: Study) -> tuple[str, ...]:
    """Return what the advice gains, beside both other plans: leaves, and totals at the worst of them."""
    without, with_margins, advised = (study.by(way) for way in WAYS)
    leaf = [own[-1].measured for own in (without, with_margins, advised)]
    totals = [max(one.measured for one in own if "×" not in one.counts) for own in (without, with_margins, advised)]
    return study.title, *map(number, leaf), f"{leaf[0] / leaf[2]:.2f}", *map(number, totals)
