"""The page of results, and its claims as text: what the paper says, and what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from experiments.kit.pages import BELOW_ITS_CAPTION, pictures, render
from experiments.kit.tables import Claim, table
from experiments.loss_split import error_claims as errors
from experiments.loss_split import share_claims as shares
from experiments.loss_split.study import Study

JUDGES = (
    errors.threefold,
    errors.bias_and_variance,
    errors.finer_levels_get_more,
    errors.consistent_too,
    errors.consistency_helps,
    errors.least_loss,
    errors.prediction,
    errors.weights,
    errors.bottom_up,
    shares.shares_better,
    shares.log_gap,
    shares.shares_bias,
    shares.shares_variance,
    shares.skewness,
    errors.truth_for_the_split,
    errors.engine,
)
"""One for each claim, in the order of the page."""
WORDS = {True: "Holds", False: "Does not hold", None: "In part"}


def claims(studies: Sequence[Study]) -> Iterator[Claim]:
    """Judge all claims by what was measured."""
    yield from (judge(studies) for judge in JUDGES)


def judged(studies: Sequence[Study]) -> str:
    """Return the claims and their tables, as Markdown."""
    return render("loss_split/claims.md", claims=list(claims(studies)), words=WORDS)


def page(studies: Sequence[Study], figures: Mapping[str, str]) -> str:
    """Return the page; its figures are given with their captions."""
    rows = []
    for study in studies:
        (people,), tracts, blocks = study.tree.truth.levels
        numbers = f"{people:,}", f"{len(tracts):,}", f"{len(blocks):,}", f"{(blocks == 0).mean():.0%}"
        rows.append((study.tree.title, *numbers, study.tree.about))
    return render(
        "loss_split/page.md",
        populations=table(("population", "people", "tracts", "blocks", "empty blocks", ""), rows, "lrrrrl"),
        size=studies[0].size,
        claims=judged(studies),
        figures=pictures(figures, BELOW_ITS_CAPTION),
    )
