"""What a release will be worth, before anything is spent: which tables would be mostly noise, and what to do then.

It needs the number of records, roughly: from the steward, since that of the private table is not known yet. How they
are spread over the nodes nobody knows either. A table whose counts are smaller than its noise on average is mostly
noise, unless records crowd in few of its nodes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from treetop._util.numbers import Number
from treetop.advice.expected import expected_errors
from treetop.advice.prior import Prior
from treetop.advice.split_for import Objective, level_weights, optimal_split, terms_of
from treetop.errors import PlanError
from treetop.plan.plan import Plan
from treetop.plan.workload import text_table

Verdict: TypeAlias = Literal["better than zeros", "better than zeros if crowded", "worse than zeros"]
"""What a count of every leaf is worth, beside a table that says zero everywhere."""


@dataclass(frozen=True)
class TableOutlook:
    """What one table will be worth."""

    name: str
    """The level, or the margin."""
    counts: str
    """What is counted, in words."""
    nodes: int
    """How many nodes the public domain has there."""
    average: float
    """How many records a node has on average."""
    noise: float
    """The standard deviation to expect of a released count that is not small."""
    mostly_noise: bool
    """Whether the average is below it."""


@dataclass(frozen=True)
class Outlook:
    """What a release will be worth; print it for people."""

    total: float
    """The number of records, as declared."""
    tables: tuple[TableOutlook, ...]
    """Every level and every margin."""
    verdict: Verdict
    """What the leaves are worth."""
    needed: float
    """Half of the records must be in leaves with at least so many: else zeros everywhere would be closer."""
    remedies: tuple[str, ...]
    """What could be done, where something is mostly noise."""

    @property
    def noisy(self) -> list[TableOutlook]:
        """The tables that are mostly noise."""
        return [one for one in self.tables if one.mostly_noise]

    def sentences(self) -> list[str]:
        """Say what is to be expected, and what to do; nothing where all is well."""
        if not self.noisy:
            return []
        names = ", ".join(one.counts for one in self.noisy)
        said = [f"Mostly noise, where {self.total:,.0f} records are spread evenly: {names}."]
        if self.verdict == "worse than zeros":
            said.append(
                "A full release would be worse than zeros: even the leaves of a single attribute have fewer records "
                f"on average than the {self.needed:,.3g} by which a count is off."
            )
        elif self.verdict == "better than zeros if crowded":
            said.append(
                f"A full release is better than zeros only if more than half of the records are in leaves with "
                f"{self.needed:,.3g} or more of them. A twin would show it (--twin)."
            )
        return said + [f"- {remedy}" for remedy in self.remedies]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for programs."""
        return {
            "total": self.total,
            "verdict": self.verdict,
            "needed": self.needed,
            "tables": [asdict(one) for one in self.tables],
            "sentences": self.sentences(),
        }

    def __str__(self) -> str:
        head = ("counts", "public nodes", "average count", "noise (sd)", "mostly noise")
        rows = [
            (
                one.counts,
                f"{one.nodes:,}",
                f"{one.average:,.3g}" if one.average < 1000 else f"{one.average:,.0f}",
                f"{one.noise:,.3g}",
                "yes" if one.mostly_noise else "",
            )
            for one in self.tables
        ]
        return "\n".join([text_table([head, *rows], left=(0,)), *([""] if self.noisy else []), *self.sentences()])


def outlook(plan: Plan, total: float) -> Outlook:
    """Say what a release will be worth with about so many records; no data is read."""
    plan.refuse_unless_top_down()
    if not (math.isfinite(total) and total > 0):
        raise PlanError(f"the total is {total}: give about how many records there are, such as 40e6")
    spine = plan.spine
    named = [(level.name, spine.depths(level.index)) for level in spine.levels]
    named += [(margin.part, margin.depths) for margin in plan.margin_tables]
    expected = expected_errors(plan, [depths for _, depths in named])
    # As the plan counts them: not what public facts make impossible.
    sizes = [part.nodes for part in plan.workload][1:]
    tables = tuple(
        TableOutlook(name, one.title, size, total / size, one.deviation, bool(total / size < one.deviation))
        for (name, _), one, size in zip(named, expected, sizes, strict=True)
    )
    leaves = tables[len(spine.levels) - 1]
    verdict = _verdict(plan, total, leaves)
    remedies = _remedies(plan, total, tables[: len(spine.levels)]) if any(one.mostly_noise for one in tables) else []
    return Outlook(float(total), tables, verdict, leaves.noise, tuple(remedies))


def known_outlook(plan: Plan, declared: float | None = None) -> Outlook | None:
    """Say it with as many records as declared, or as there are units at least; None where nobody knows either."""
    if declared is not None:
        return outlook(plan, declared)
    try:
        plan.refuse_unless_top_down()
    except PlanError:  # nobody has asked, and of this kind of plan nothing can be said
        return None
    return None if plan.population is None else outlook(plan, plan.population)


def _verdict(plan: Plan, total: float, leaves: TableOutlook) -> Verdict:
    """Judge the leaves: where each leaf of one attribute has but one partner, they are crowded as can be expected."""
    if not leaves.mostly_noise:
        return "better than zeros"
    crowded = total / max(tree.sizes[-1] for tree in plan.spine.trees)
    return "better than zeros if crowded" if crowded >= leaves.noise else "worse than zeros"


def _remedies(plan: Plan, total: float, levels: Sequence[TableOutlook]) -> list[str]:
    """Say what would help, with numbers."""
    last = levels[-1]
    if not last.mostly_noise:
        return ["Give the loss to fewer tables, or more of it to these (--advise)."]
    good = [one for one in levels if not one.mostly_noise]
    said = [f"Stop at {good[-1].name}: leave the finer levels out of the spine."] if good else []
    if plan.resolve == "full":
        said.append("Name only what the measurements show: resolve = { fdr = 0.05 }.")
    cells = total / last.noise
    if cells >= 2:
        said.append(f"Merge leaves until there are no more than {cells:,.0f}.")
    said.append(f"Or spend more: about {_larger(plan, last)}.")
    return said


def _larger(plan: Plan, last: TableOutlook) -> str:
    """Return about what loss would bring the noise down to the average: noise falls as fast as epsilon grows."""
    factor, loss = last.noise / last.average, plan.loss
    if loss.epsilon is None:
        return f"rho {float(f'{float(loss.budget) * factor**2:.2g}'):,g}"
    return f"epsilon {float(f'{float(loss.epsilon) * factor:.2g}'):,g}"


# What a split would do for a prior: the expected errors of every level, beside those of another split.


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

    plan: Plan
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
    plan: Plan,
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
    plan: Plan, best: Plan, prior: Prior, weights: Mapping[str, Number] | None = None, words: str = ""
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
