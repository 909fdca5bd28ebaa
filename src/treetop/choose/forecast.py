"""What a split would do for a prior: the expected errors of every level, beside those of another split."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from treetop.basics.exact import Number
from treetop.choose.prior import Prior
from treetop.choose.split import Objective, level_weights, optimal_split, terms_of
from treetop.plan.accuracy import text_table
from treetop.plan.plan import PurePlan


@dataclass(frozen=True)
class ForecastRow:
    """One measured level under two splits."""

    name: str
    """The name of the level."""
    measured: int
    """How many nodes a descent of the prior would measure there."""
    share_before: float
    """Its share of the loss in the plan as it is."""
    share: float
    """Its share in the best split."""
    error_before: float
    """The root of the mean squared error of its measurements, none below zero, in the plan as it is."""
    error: float
    """The same with the best split."""


@dataclass(frozen=True)
class Forecast:
    """The best split for a prior, and what it gains; print it for people."""

    plan: PurePlan
    """The plan with the best split."""
    rows: tuple[ForecastRow, ...]
    """Every measured level, from the top."""
    total_before: float
    """The weighted total of squared errors in the plan as it is."""
    total: float
    """The same with the best split."""
    prior: str
    """What the prior is."""
    words: str = ""
    """How errors were found, where not by the law of the noise."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for programs."""
        split = self.plan.split if isinstance(self.plan.split, Mapping) else {}
        return {
            "prior": self.prior,
            "split": {name: float(weight) for name, weight in split.items()},
            "levels": [asdict(row) for row in self.rows],
            "squared_error_before": self.total_before,
            "squared_error": self.total,
        }

    def __str__(self) -> str:
        head = ("level", "nodes measured", "share now", "best", "error now", "best")
        rows = [
            (
                row.name,
                f"{row.measured:,}",
                f"{row.share_before:.1%}",
                f"{row.share:.1%}",
                f"{row.error_before:,.4g}",
                f"{row.error:,.4g}",
            )
            for row in self.rows
        ]
        gain = self.total_before / self.total if self.total else 1.0
        how = self.words or (
            f"Expected of the prior ({self.prior}): the root of the mean squared error of max(0, measurement)."
        )
        note = (
            f"{how} All squared errors together: {self.total_before:,.4g} now, {self.total:,.4g} with the best split, "
            f"a factor of {gain:.3g}."
        )
        return f"{text_table([head, *rows], left=(0,))}\n\n{note}"


CONSISTENT = (
    "The split is the best for counts that are made consistent by least squares, none of them clipped; errors are "
    "those of max(0, measurement), which it does not minimise."
)


def forecast(
    plan: PurePlan,
    prior: Prior,
    weights: Mapping[str, Number] | None = None,
    objective: Objective = "separate",
) -> Forecast:
    """Find the best split of the plan's loss for a prior (weights by level, 1 where none is given)."""
    known = {part.name for part in plan.levels if not part.is_measured}
    split: dict[str, Fraction] = optimal_split(
        plan.spine, plan.unit, plan.loss, prior, weights, objective=objective, unknown=plan.unknown, known=known
    )
    words = CONSISTENT if objective == "consistent" else ""
    return forecast_of(plan, replace(plan, split=split), prior, weights, words)


def forecast_of(
    plan: PurePlan, best: PurePlan, prior: Prior, weights: Mapping[str, Number] | None = None, words: str = ""
) -> Forecast:
    """Return what a prior expects of a plan, and of the same with another split."""
    weigh = level_weights(plan.spine, weights)
    measured = [(old, new) for old, new in zip(plan.levels, best.levels, strict=True) if old.is_measured]
    names = [old.name for old, _ in measured]
    # Unweighted, so that a level that weighs nothing is shown as well.
    terms = terms_of(plan.unit, plan.loss, prior, {}, names)
    rows, totals = [], [0.0, 0.0]
    budget = float(plan.budget)
    for (old, new), term in zip(measured, terms, strict=True):
        shares = (float(old.share), float(new.share))
        errors = [0.0 if term is None else term.error(budget * share) for share in shares]
        nodes = 0 if term is None else int(term.nodes.sum())
        totals = [total + weigh[old.name] * error for total, error in zip(totals, errors, strict=True)]
        before, after = (math.sqrt(error / nodes) if nodes else 0.0 for error in errors)
        rows.append(ForecastRow(old.name, nodes, *shares, before, after))
    return Forecast(best, tuple(rows), totals[0], totals[1], f"{prior.kind}: {prior.source}", words)
