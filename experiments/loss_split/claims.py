"""What the paper says, claim by claim, beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.loss_split import error_claims as errors
from experiments.loss_split import share_claims as shares
from experiments.loss_split.claim import Claim
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


def claims(studies: Sequence[Study]) -> Iterator[Claim]:
    """Judge all claims by what was measured."""
    for judge in JUDGES:
        yield judge(studies)
