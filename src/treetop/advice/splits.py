"""The split of a loss with the least error for a public prior: in closed form, or by trials on its table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from treetop._util.numbers import Number
from treetop._util.system import Progress
from treetop.advice.error_laws import Floats, Term, error_law, least_error, least_loss
from treetop.advice.losses import REST, definition_of, levels_named, loss_report, share_of_loss, smallest_loss
from treetop.advice.prior import Prior, layers
from treetop.advice.public import Planned, counts_groups, open_plan, prior_of, refuse_other_kinds
from treetop.advice.refinement import Shares, level_weights, refine_split
from treetop.advice.report import Report
from treetop.advice.trials import squared_errors
from treetop.counts.counts import Counts
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import LossError, PlanError
from treetop.plan.plan import Plan
from treetop.plan.splits import as_weights, budgets_by_worth
from treetop.plan.workload import Part
from treetop.privacy import Definition, Loss, Unit

SplitObjective: TypeAlias = Literal["separate", "consistent"]
"""Errors of separate measurements, max(0, measurement), or of counts after least-squares repair, none clipped."""

CONSISTENT = (
    "The split is the best for counts that are made consistent by least squares, none of them clipped; errors are "
    "those of max(0, measurement), which it does not minimise."
)


def split_for(
    plan: Planned,
    prior: Prior | str | Path,
    *,
    prior_source: str | None = None,
    weights: Mapping[str, Number] | None = None,
    objective: SplitObjective | None = None,
    squared_error: float | None = None,
    delta: Number | None = None,
    pure: bool = False,
    refine: bool = False,
    shares: str | None = None,
    runs: int = 20,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Find the split of the plan's loss with the least total squared error for a prior; no private data is read.

    Args:
        plan: The plan, or its file.
        prior: A `Prior`, or the location of an earlier release or a public table. It must not be the private table.
        prior_source: Where the prior is from, in words; a table must say.
        weights: Weight of each level's error (default 1). A short name such as "town" is for all levels of that name.
        objective: "separate" (default) for errors of max(0, measurement), "consistent" for least-squares repair.
        squared_error: Find the smallest loss, too, at which the total squared error of measurements is at most this.
        delta: With `squared_error`: delta of the epsilon to find.
        pure: With `squared_error`: find a pure epsilon.
        refine: Try splits near the best on the prior's table; take one that is better by two standard errors.
        shares: With `refine`: judge splits by shares of a fixed sum, as in "place.block in place.tract".
        runs: Trials of each split of a plan for group sizes, whose split is found by trials alone.
        threads: Trials at once; as many as cores by default.
        progress: Called with the fraction of trials done.
    """
    if objective == "consistent" and squared_error is not None:
        raise PlanError('`squared_error` is about measurements: leave out `objective="consistent"`')
    own, file = open_plan(plan, open_loss=squared_error is not None)
    refuse_other_kinds(own)
    public, notes = prior_of(own, file, prior, prior_source)
    weigh = level_weights(
        own.spine, {level: by for name, by in (weights or {}).items() for level in levels_named(own.spine, name)}
    )
    if counts_groups(own):
        if objective or refine or squared_error is not None:
            raise PlanError("a plan for group sizes has its split found by trials: give `prior` and `weights` only")
        report = _split_by_trials(own, public, weigh, runs=runs, threads=threads, progress=progress)
        return replace(report, public_notes=tuple(notes))
    parts = {}
    if squared_error is not None:
        kind, exact = definition_of(own, file, delta, pure)
        parts["answer"] = _loss_for_error(own, public, squared_error, weigh, kind, exact)
        best = parts["answer"].plan
        own = replace(own, loss=best.loss, split="uniform")
    else:
        best = replace(own, split=optimal_split(own, public, weigh, objective or "separate"))
    how = CONSISTENT if objective == "consistent" else ""
    if refine:
        task = None if shares is None else _read_shares(own.spine, shares)
        tried = refine_split(best, public, weigh, shares=task, threads=threads)
        best = replace(best, split=tried.split)
        parts["refined"] = tried.report(best)
    report = _compare(own, best, public, weigh, how)
    return replace(report, parts=parts, public_notes=tuple(notes))


def optimal_split(
    plan: Plan, prior: Prior, weights: Mapping[str, Number] | None = None, objective: SplitObjective = "separate"
) -> dict[str, Fraction]:
    """Return the split with the least total squared error, weighted by level (default 1).

    "separate" is program (6) of Ko, Ziani and Fioretto, "Optimal Allocation of Privacy Budget on Hierarchical Data
    Release", over the nodes that a descent of the prior would reach.
    """
    levels = [part.name for part in plan.levels if part.is_measured]
    if not levels:
        return {}
    prior.fits(plan.spine)
    weigh = level_weights(plan.spine, weights)
    if objective == "separate":
        terms = terms_of(plan.unit, plan.loss, prior, weigh, levels)
        answer = iter(least_error([term for term in terms if term is not None], float(plan.loss.budget)).budgets)
        return as_weights(levels, [0.0 if term is None else next(answer) for term in terms])
    if prior.twin is None:
        raise LossError("the prior has no table, which says which nodes lie under which: give one")
    ordered = [weigh[TOTAL], *(weigh[level.name] for level in plan.spine.levels)]
    coefficients = reached_coefficients(plan.spine, prior.twin, ordered)
    places = [0 if name == TOTAL else plan.spine.level(name).index for name in levels]
    worths = [float(coefficients[place]) for place in places]
    return as_weights(levels, budgets_by_worth(plan.unit, plan.loss, levels, worths))


def terms_of(
    unit: Unit, loss: Loss, prior: Prior, weights: Mapping[str, float], levels: Sequence[str]
) -> list[Term | None]:
    """Return each level's term of the objective; None for one that the prior expects not to be measured."""
    terms: list[Term | None] = []
    for name in levels:
        expected, weight = prior.level(name), weights.get(name, 1.0)
        known = expected.measured > 0 and weight > 0
        terms.append(Term(error_law(unit, loss, name), expected.counts, expected.nodes, weight) if known else None)
    return terms


def reached_coefficients(spine: Spine, twin: Counts, weights: Sequence[float]) -> Floats:
    """Return C for the nodes that a descent of a public table would measure; empty nodes end there.

    If children are moved to their parent's count by least squares, and none is clipped at zero, a child's error is that
    of its measurement less the siblings' mean, plus 1/b of its parent's error. So the weighted total of squared errors
    is Σ C_l·σ_l² over the levels, with D_v = w + Σ_children D_c / b², the weight of an error of node v in everything
    under it, and C_l = Σ (1 − 1/b)·D_c over the nodes c of level l. Clipping makes real errors smaller, most of all of
    empty nodes.
    """
    tree = list(layers(spine, twin))
    result = np.zeros(len(tree) + 1)
    below = np.full(len(tree[-1].count), weights[-1])
    for index in range(len(tree), 0, -1):
        layer = tree[index - 1]
        children = layer.children.astype(np.float64)
        known = np.bincount(layer.parent, below, len(children))
        empty = children - np.bincount(layer.parent, minlength=len(children))
        under = known + empty * weights[index]
        result[index] = float(((1 - 1 / children) * under).sum())
        below = weights[index - 1] + under / children**2
    result[0] = float(below.sum())
    return result


def _loss_for_error(
    plan: Plan,
    prior: Prior,
    error: float,
    weights: Mapping[str, float],
    kind: Definition,
    delta: Fraction | None,
) -> Report:
    """Find the smallest loss, and its split, at which the total squared error expected of a prior is at most `error`.

    That is program (7) of Ko, Ziani and Fioretto. A level that the prior expects not to be measured, or without weight,
    and each margin, is given the share `REST`.
    """
    trial = replace(plan, loss=Loss(epsilon=1) if kind == "pure" else Loss(rho=1), split="uniform")
    prior.fits(plan.spine)
    names = [part.name for part in trial.workload if part.is_measured]
    levels = [part.name for part in trial.levels if part.is_measured]
    terms = terms_of(plan.unit, trial.loss, prior, weights, levels)
    budgets = iter(least_loss([term for term in terms if term is not None], error).budgets)
    split = {
        name: share_of_loss(Fraction(next(budgets)))
        for name, term in zip(levels, terms, strict=True)
        if term is not None
    }
    rest = [name for name in names if name not in split]
    if (left := 1 - REST * len(rest)) <= 0:
        raise LossError(f"{len(rest)} tables have no part in the squared error: their share, {REST}, leaves nothing")
    total = sum(split.values(), Fraction(0)) / left
    ordered = {name: split.get(name, share_of_loss(total * REST)) for name in names}
    found = smallest_loss(plan, kind, delta, ordered)
    why = dict.fromkeys(names, "the cheapest division for the squared error of all levels")
    why |= {
        name: f"{100 * float(REST):.3g}% of the loss: {'no error is expected' if name in levels else 'a margin'}"
        for name in rest
    }
    return loss_report(found, [f"a total squared error of {error:,g}, expected of the prior"], why)


def _compare(plan: Plan, best: Plan, prior: Prior, weights: Mapping[str, float], how: str = "") -> Report:
    """Report the errors that a prior expects with the plan's split and with another one."""
    measured = [(old, new) for old, new in zip(plan.levels, best.levels, strict=True) if old.is_measured]
    # Unweighted, so that a level without weight is shown as well.
    terms = terms_of(plan.unit, plan.loss, prior, {}, [old.name for old, _ in measured])
    rows, totals = [], [0.0, 0.0]
    budget = float(plan.budget)
    for (old, new), term in zip(measured, terms, strict=True):
        errors = [0.0 if term is None else term.error(budget * float(part.share)) for part in (old, new)]
        nodes = 0 if term is None else int(term.nodes.sum())
        totals = [total + weights[old.name] * error for total, error in zip(totals, errors, strict=True)]
        before, after = (math.sqrt(error / nodes) if nodes else 0.0 for error in errors)
        rows.append(_row(old, new, nodes, before, after))
    about = f"Expected of the prior ({prior.words}): the root of the mean squared error of max(0, measurement)."
    return _report(best, prior, rows, totals[0], totals[1], how or about)


def _row(old: Part, new: Part, nodes: int, before: float, after: float) -> dict[str, object]:
    shares = {"share_before": float(old.share), "share": float(new.share)}
    return {"name": old.name, "measured": nodes, **shares, "error_before": before, "error": after}


def _report(
    best: Plan, prior: Prior, rows: Sequence[dict[str, object]], before: float, after: float, how: str
) -> Report:
    split = best.split if isinstance(best.split, Mapping) else {}
    gain = before / after if after else 1.0
    return Report(
        best,
        "forecast",
        "The best split for the prior",
        tuple(rows),
        (
            ("level", "{name}"),
            ("nodes measured", "{measured:,}"),
            ("share now", "{share_before:.1%}"),
            ("best", "{share:.1%}"),
            ("error now", "{error_before:,.4g}"),
            ("best", "{error:,.4g}"),
        ),
        values={
            "prior": prior.words,
            "split": {name: float(weight) for name, weight in split.items()},
            "squared_error_before": before,
            "squared_error": after,
        },
        notes=(
            f"{how} All squared errors together: {before:,.4g} now, {after:,.4g} with the best split, a factor of "
            f"{gain:.3g}.",
        ),
    )


def _read_shares(spine: Spine, text: str) -> Shares:
    """Read a task as people write it: "block in tract", or "block" for one sum in all."""
    names = [levels_named(spine, name.strip()) for name in text.split(" in ")]
    if len(names) > 2 or any(len(name) != 1 for name in names):
        raise PlanError(
            f'shares is {text!r}: write "LEVEL in LEVEL", each by its full name, as in "place.block in place.tract"'
        )
    return Shares(*(name for (name,) in names))


# The split of a plan for group sizes, found by trials: their errors have no closed form.

STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Splits to try: how far each is from even shares towards those that levels by themselves would have."""
STANDARD_ERRORS = 2.0
"""A split is better if it is so many standard errors of the difference better."""


def _split_by_trials(
    plan: Plan,
    prior: Prior,
    weights: Mapping[str, float],
    *,
    runs: int,
    threads: int | None,
    progress: Progress | None,
) -> Report:
    """Find the best of several splits in trials on the prior's table."""
    by_level = np.array([0.0, *(weights[level.name] for level in plan.spine.levels)])
    splits = _splits(plan, weights)
    plans = [plan, *(replace(plan, split=split) for split in splits)]
    tried: list[float] = []
    for done, one in enumerate(plans, start=1):
        tried.append(float((squared_errors(one, prior, runs=runs, threads=threads) @ by_level).mean()))
        if progress is not None:
            progress("trials", done / len(plans))
    # Judged on other noise than that of the search: the best of several looks better than it is.
    chosen, kept = plans[int(np.argmin(tried))], ""
    own, best = (squared_errors(one, prior, runs=runs, threads=threads, seed=1) for one in (plan, chosen))
    saved = (own - best) @ by_level
    unsure = saved.std(ddof=1) / math.sqrt(runs) if runs > 1 else math.inf
    if saved.mean() <= STANDARD_ERRORS * unsure:
        chosen, best = plan, own
        kept = " No split was better by more than two standard errors: the plan keeps its own."
    how = (
        f"In {runs} trials each on {prior.words}, of {len(splits)} splits. Errors are the root of the mean squared "
        f"error of released numbers of groups, zeros included.{kept}"
    )
    rows = [
        _row(
            old, new, old.nodes, *(math.sqrt(float(errors[:, old.index].mean()) / old.nodes) for errors in (own, best))
        )
        for old, new in zip(plan.levels, chosen.levels, strict=True)
        if old.is_measured
    ]
    before, after = (float((errors @ by_level).mean()) for errors in (own, best))
    return _report(chosen, prior, rows, before, after, how)


def _splits(plan: Plan, weights: Mapping[str, float]) -> list[dict[str, Fraction]]:
    """Return shares in whole percents, from even ones to those that levels by themselves would have."""
    power = 1 / 3 if plan.loss.definition == "pure" else 1 / 2
    levels = [level for level, _ in plan.workload.measured]
    need = np.array([level.nodes * max(float(weights[level.name]), 1e-3) for level in levels])
    splits = []
    for step in STEPS:
        part = need ** (step * power)
        percents = np.maximum(np.rint(100 * part / part.sum()), 1).astype(int)
        splits.append({level.name: Fraction(int(one)) for level, one in zip(levels, percents, strict=True)})
    return [split for number, split in enumerate(splits) if split not in splits[:number]]
