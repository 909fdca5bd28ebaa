"""The split of a loss with the least error for a public prior: in closed form, or by trials on its table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Literal, TypeAlias, Unpack

import numpy as np

from treetop._util.dtypes import Floats, Ints
from treetop._util.numbers import Number, positive
from treetop._util.system import Progress
from treetop.advice._error_laws import Term, error_law, least_error, least_loss
from treetop.advice._losses import (
    REST,
    add_rest,
    definition_of,
    levels_named,
    loss_report,
    share_of_loss,
    smallest_loss,
)
from treetop.advice._report import Report
from treetop.advice.public import Planned, Prior, counts_groups, layers, open_plan, prior_of
from treetop.advice.trials import Nodes, TrialOptions, public_twin, simulate, squared_errors
from treetop.counts.counts import Counts, layout, pack
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import LossError, PlanError
from treetop.plan.plan import Plan
from treetop.plan.workload import as_weights, budgets_by_worth
from treetop.privacy import Definition, Loss, Unit
from treetop.release.errors import merge, starts

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
    shares_weight: ShareWeight | None = None,
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
        shares_weight: With `shares`: whether a part of the share p gets a sum in proportion to p ("linear", default),
            to log(1 + p) ("log", more for small parts), or to p² ("quadratic", more for large ones).
        runs: Trials of each split of a plan for group sizes, whose split is found by trials alone.
        threads: Trials at once; as many as cores by default.
        progress: Called with the fraction of trials done.
    """
    if objective == "consistent" and squared_error is not None:
        raise PlanError('`squared_error` is about measurements: leave out `objective="consistent"`')
    if shares_weight is not None and shares is None:
        raise PlanError("`shares_weight` is about a sum that is dealt out by counts: give `shares` as well")
    own, file = open_plan(plan, open_loss=squared_error is not None)
    if not counts_groups(own):
        own.refuse_unless_top_down()
    public, notes = prior_of(file, prior, prior_source)
    weigh = level_weights(own.spine, weights)
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
    if refine:
        task = None if shares is None else _read_shares(own.spine, shares, shares_weight or "linear")
        parts["refined"] = refine_split(best, public, weigh, shares=task, threads=threads)
        best = parts["refined"].plan
    how = f"Expected of the prior ({public.words}): the root of the mean squared error of max(0, measurement)."
    report = _compare(own, best, public, weigh, CONSISTENT if objective == "consistent" else how)
    if public.spine.digest != own.spine.digest:
        notes.append(
            "The prior has other codes than the plan: only the distribution of its counts in each level counts."
        )
    return replace(report, parts=parts, public_notes=tuple(notes))


def level_weights(spine: Spine, weights: Mapping[str, Number] | None) -> dict[str, float]:
    """Return the weight of the errors of the total and of every level (default 1); a short name is for all of them."""
    result = dict.fromkeys([TOTAL, *(level.name for level in spine.levels)], 1.0)
    for name, number in (weights or {}).items():
        weight = float(number)
        if not (math.isfinite(weight) and weight >= 0):
            raise LossError(f"the weight of {name} is {number}: give zero or a positive number")
        result |= dict.fromkeys(levels_named(spine, name), weight)
    return result


# In closed form.


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
    prior.fits(plan.spine, nodes=objective != "separate")
    weigh = level_weights(plan.spine, weights)
    if objective == "separate":
        terms = terms_of(plan.unit, plan.loss, prior, weigh, levels)
        answer = iter(least_error([term for term in terms if term is not None], float(plan.loss.budget)).budgets)
        return as_weights(levels, [0.0 if term is None else next(answer) for term in terms])
    names = [TOTAL, *(level.name for level in plan.spine.levels)]
    coefficients = reached_coefficients(plan.spine, prior.twin, [weigh[name] for name in names])
    worths = [float(coefficients[names.index(name)]) for name in levels]
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
    plan: Plan, prior: Prior, error: float, weights: Mapping[str, float], kind: Definition, delta: Fraction | None
) -> Report:
    """Find the smallest loss, and its split, at which the total squared error expected of a prior is at most `error`.

    That is program (7) of Ko, Ziani and Fioretto. A level that the prior expects not to be measured, or without weight,
    and each margin, is given the share `REST`.
    """
    trial = replace(plan, loss=Loss(epsilon=1) if kind == "pure" else Loss(rho=1), split="uniform")
    prior.fits(plan.spine, nodes=False)
    levels = [part.name for part in trial.levels if part.is_measured]
    terms = zip(levels, terms_of(plan.unit, trial.loss, prior, weights, levels), strict=True)
    priced = {name: term for name, term in terms if term is not None}
    budgets = least_loss(list(priced.values()), error).budgets
    needs = {name: share_of_loss(Fraction(budget)) for name, budget in zip(priced, budgets, strict=True)}
    why = dict.fromkeys(needs, "the cheapest division for the squared error of all levels")
    split, why = add_rest(trial, needs, why, REST, "no error is expected")
    found = smallest_loss(plan, kind, delta, split)
    return loss_report(found, [f"a total squared error of {error:,g}, expected of the prior"], why)


def _compare(plan: Plan, best: Plan, prior: Prior, weights: Mapping[str, float], how: str) -> Report:
    """Report the errors that a prior expects with the plan's split and with the best one."""
    measured = [part.name for part in plan.levels if part.is_measured]
    # Unweighted, so that a level without weight is shown as well.
    terms = dict(zip(measured, terms_of(plan.unit, plan.loss, prior, {}, measured), strict=True))
    nodes = {name: 0 if term is None else int(term.nodes.sum()) for name, term in terms.items()}
    errors = [
        {
            part.name: 0.0 if (term := terms[part.name]) is None else term.error(float(plan.budget) * float(part.share))
            for part in one.levels
            if part.name in terms
        }
        for one in (plan, best)
    ]
    before, after = (sum(weights[name] * error for name, error in own.items()) for own in errors)
    return _report(plan, best, prior, nodes, errors, (before, after), how)


def _report(
    plan: Plan,
    best: Plan,
    prior: Prior,
    nodes: Mapping[str, int],
    errors: Sequence[Mapping[str, float]],
    totals: tuple[float, float],
    how: str,
) -> Report:
    """Report squared errors by level, and in total, with the plan's split and with the best one."""
    before, after = totals
    shares = [{part.name: float(part.share) for part in one.levels} for one in (plan, best)]
    rows = [
        {
            "name": name,
            "measured": number,
            "share_before": shares[0][name],
            "share": shares[1][name],
            "error_before": math.sqrt(errors[0][name] / number) if number else 0.0,
            "error": math.sqrt(errors[1][name] / number) if number else 0.0,
        }
        for name, number in nodes.items()
    ]
    split = best.split if isinstance(best.split, Mapping) else {}
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
            f"{before / after if after else 1.0:.3g}.",
        ),
    )


# By trials: splits are compared on one noise, and the best of them is judged on another, since the best of several
# looks better than it is.

STANDARD_ERRORS = 2.0
"""A split is better if it is so many standard errors of the difference better."""


def _gain(before: Floats, after: Floats) -> tuple[bool, float]:
    """Return whether errors got smaller by more than luck, and the standard error of the difference."""
    saved = before - after
    unsure = float(saved.std(ddof=1) / math.sqrt(len(saved))) if len(saved) > 1 else math.inf
    return bool(saved.mean() > STANDARD_ERRORS * unsure), unsure


def _split_by_trials(
    plan: Plan, prior: Prior, weights: Mapping[str, float], *, runs: int, threads: int | None, progress: Progress | None
) -> Report:
    """Find the best of several splits of a plan for group sizes, whose errors have no closed form.

    Shares are in whole percents, from even ones to those that levels by themselves would have.
    """
    by_level = np.array([0.0, *(weights[level.name] for level in plan.spine.levels)])
    power = 1 / 3 if plan.loss.definition == "pure" else 1 / 2
    levels = [level for level, _ in plan.workload.measured]
    need = np.array([level.nodes * max(weights[level.name], 1e-3) for level in levels])
    splits: list[dict[str, Fraction]] = []
    for step in (0.0, 0.25, 0.5, 0.75, 1.0):
        part = need ** (step * power)
        percents = np.maximum(np.rint(100 * part / part.sum()), 1).astype(int)
        split = {level.name: Fraction(int(one)) for level, one in zip(levels, percents, strict=True)}
        splits += [split] if split not in splits else []
    plans = [plan, *(replace(plan, split=split) for split in splits)]
    tried: list[float] = []
    for done, one in enumerate(plans, start=1):
        tried.append(float((squared_errors(one, prior, runs=runs, threads=threads) @ by_level).mean()))
        if progress is not None:
            progress("trials", done / len(plans))
    chosen, kept = plans[int(np.argmin(tried))], ""
    before, after = (squared_errors(one, prior, runs=runs, threads=threads, seed=1) for one in (plan, chosen))
    better, _ = _gain(before @ by_level, after @ by_level)
    if not better:
        chosen, after = plan, before
        kept = " No split was better by more than two standard errors: the plan keeps its own."
    how = (
        f"In {runs} trials each on {prior.words}, of {len(splits)} splits. Errors are the root of the mean squared "
        f"error of released numbers of groups, zeros included.{kept}"
    )
    measured = [part for part in plan.levels if part.is_measured]
    errors = [{part.name: float(own[:, part.index].mean()) for part in measured} for own in (before, after)]
    nodes = {part.name: part.nodes for part in measured}
    totals = float((before @ by_level).mean()), float((after @ by_level).mean())
    return _report(plan, chosen, prior, nodes, errors, totals, how)


_FIRST_FACTOR = 2.0
_LAST_FACTOR = 1.05


def refine_split(
    plan: Plan,
    prior: Prior,
    weights: Mapping[str, Number] | None = None,
    *,
    shares: Shares | None = None,
    runs: int = 6,
    tries: int = 40,
    fresh_runs: int = 20,
    threads: int | None = None,
    seed: int = 0,
) -> Report:
    """Search near the plan's split for one with less weighted squared error in releases of the prior's twin, or with
    less squared error of `shares` that are dealt out by the released counts.

    Every level's share in turn is multiplied and divided by a factor, which shrinks when nothing helps. The report's
    plan has the best split if that is better by two standard errors, and otherwise the one that it had.
    """
    if fresh_runs < 2 or tries < 1:
        raise PlanError("a refinement needs at least 1 try, and 2 fresh runs to judge it by")
    weigh = np.array(list(level_weights(plan.spine, weights).values()))
    # The plan's own weights if it has any: they are shorter than the shares.
    given = plan.split if isinstance(plan.split, Mapping) else {}
    start = {
        level.name: positive(given.get(level.name, level.share), level.name)
        for level in plan.levels
        if level.is_measured
    }

    def errors(split: Mapping[str, Fraction], runs: int, seed: int) -> Floats:
        trial = replace(plan, split=split)
        options: TrialOptions = {"runs": runs, "threads": threads, "seed": seed}
        if shares is not None:
            return share_errors(trial, prior, shares, **options)
        return np.asarray(squared_errors(trial, prior, **options) @ weigh)

    best = {name: math.log(float(share)) for name, share in start.items()}
    least = float(errors(start, runs, 2 * seed).mean())
    found, tried, factor = start, 1, _FIRST_FACTOR
    while tried < tries and factor > _LAST_FACTOR and len(start) > 1:
        improved = False
        for name in start:
            for step in (math.log(factor), -math.log(factor)):
                if tried >= tries:
                    break
                candidate = {**best, name: best[name] + step}
                split = _scaled(candidate)
                error = float(errors(split, runs, 2 * seed).mean())
                tried += 1
                if error < least:
                    best, found, least, improved = candidate, split, error, True
                    break
        if not improved:
            factor = math.sqrt(factor)
    before, after = (errors(split, fresh_runs, 2 * seed + 1) for split in (start, found))
    better, unsure = _gain(before, after)
    better = better and found != start
    taken = found if better else start
    what = "total squared error" if shares is None else f"squared error of {shares}"
    old, new = float(before.mean()), float(after.mean())
    verdict = "is better, and is taken" if better else "does not beat the given one, which is kept"
    return Report(
        replace(plan, split=taken),
        "refined",
        "Splits near it, tried on the prior",
        tuple({"name": name, "split": float(taken[name]), "found": float(found[name])} for name in start),
        (("level", "{name}"), ("tried", "{found:.4g}"), ("taken", "{split:.4g}")),
        values={
            "split": {name: float(share) for name, share in taken.items()},
            "better": better,
            "found": {name: float(share) for name, share in found.items()},
            "start_error": old,
            "found_error": new,
            "standard_error": unsure,
            "tried": tried,
            "what": what,
        },
        notes=(
            f"Of {tried} splits the best {verdict}: {what} {new:,.6g} against {old:,.6g} "
            f"({1 - new / old if old else 0.0:+.1%}, give or take {unsure:,.3g}) on fresh noise.",
        ),
    )


def _scaled(logs: Mapping[str, float]) -> dict[str, Fraction]:
    """Return shares that sum to 1, to six digits, from their logarithms."""
    top = max(logs.values())
    total = math.fsum(math.exp(value - top) for value in logs.values())
    return {name: Fraction(Decimal(f"{math.exp(value - top) / total:.6g}")) for name, value in logs.items()}


# Shares dealt out by counts, the task of Ko, Ziani and Fioretto: how far money, or seats, go astray if a fixed sum is
# apportioned by released counts.


ShareWeight: TypeAlias = Literal["log", "linear", "quadratic"]

SHARE_WEIGHTS: Mapping[ShareWeight, Callable[[Floats], Floats]] = {
    "log": np.log1p,
    "linear": lambda share: share,
    "quadratic": np.square,
}
"""What a part with a share of its area's count weighs: log(1 + p) favours small parts, p² large ones."""


@dataclass(frozen=True)
class Shares:
    """Every node of the level `inside` has the same sum, apportioned by the counts of `level`."""

    level: str
    inside: str = TOTAL
    weight: ShareWeight = "linear"

    def __post_init__(self) -> None:
        if self.weight not in SHARE_WEIGHTS:
            raise PlanError(f"the weight of shares is {self.weight!r}: give one of {', '.join(SHARE_WEIGHTS)}")

    def __str__(self) -> str:
        weight = "" if self.weight == "linear" else f" ({self.weight} weights)"
        return f"shares of {self.level} in {self.inside}{weight}"


def _read_shares(spine: Spine, text: str, weight: ShareWeight) -> Shares:
    """Read a task as people write it: "block in tract", or "block" for one sum in all."""
    names = [levels_named(spine, name.strip()) for name in text.split(" in ")]
    if len(names) > 2 or any(len(name) != 1 for name in names):
        raise PlanError(
            f'shares is {text!r}: write "LEVEL in LEVEL", each by its full name, as in "place.block in place.tract"'
        )
    level, *inside = (name for (name,) in names)
    return Shares(level, inside[0] if inside else TOTAL, weight)


def share_errors(plan: Plan, prior: Prior, shares: Shares, **options: Unpack[TrialOptions]) -> Floats:
    """Return, for each trial on the prior's table, the sum of squared errors of all shares, a whole sum being 1.

    If an area is released empty, nothing is dealt out; one that is empty in the table has no shares.
    """
    spine = plan.spine
    coarse, fine = (0 if name == TOTAL else spine.level(name).index for name in (shares.inside, shares.level))
    if coarse >= fine:
        raise PlanError(f"{shares.level} is not refined after {shares.inside}: its nodes do not lie in one each")
    twin = public_twin(prior)

    def error(nodes: Nodes, count: Ints) -> float:
        return squared_share_error(spine, twin, nodes, count, coarse, fine, shares.weight)

    return np.array(simulate(plan, prior, error, **options))


def squared_share_error(
    spine: Spine, twin: Counts, nodes: Nodes, count: Ints, coarse: int, fine: int, weight: ShareWeight = "linear"
) -> float:
    """Return the sum of squared errors of shares of level `fine` inside `coarse`, by their positions in the spine."""
    both = merge(pack(spine, nodes), count, twin)
    if not len(both.true):
        return 0.0
    begin = [np.arange(len(both.true)) == 0, *(starts(both.keys, digit) for digit in layout(spine))]
    first = np.flatnonzero(begin[fine])
    area = (np.cumsum(begin[coarse]) - 1)[first]

    def in_area(values: Floats) -> Floats:
        """Divide by the sum of each node's area; an area without any gives 0."""
        whole = np.bincount(area, values)[area]
        return np.asarray(values / np.where(whole > 0, whole, 1.0))

    shares = [in_area(np.add.reduceat(values.astype(np.float64), first)) for values in (both.released, both.true)]
    if weight != "linear":
        shares = [in_area(SHARE_WEIGHTS[weight](own)) for own in shares]
    released, true = shares
    has_shares = np.bincount(area, true)[area] > 0
    return float((np.where(has_shares, released - true, 0.0) ** 2).sum())
