"""The best split of a plan for group sizes on a public table, found by trials.

All levels are repaired at once, so that no formula has the error of one of them. Were they by themselves, the least sum
of squared errors would have shares in proportion to the cube root of a level's counts (pure), or to their square root
(by rho). Several splits on the way from even shares to those are tried, and the best is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from treetop.basics.exact import Number
from treetop.basics.progress import Progress
from treetop.choose.error_laws import Floats
from treetop.choose.forecast import Forecast, ForecastRow
from treetop.choose.prior import Prior
from treetop.choose.simulate import squared_errors
from treetop.choose.split import level_weights
from treetop.plan.groups.planned import PureGroupTablePlan
from treetop.plan.workload import Part

RUNS = 20
"""How often each split is tried."""
STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How far the splits are on the way from even shares."""
SURE = 2.0
"""A split is better where it is so many standard errors of the difference better."""


def group_forecast(
    plan: PureGroupTablePlan,
    prior: Prior,
    weights: Mapping[str, Number] | None = None,
    *,
    runs: int = RUNS,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Forecast:
    """Find the best split of the plan's loss in trials on a public table (weights by level, 1 where none is given)."""
    weigh = level_weights(plan.spine, weights)
    by_level = np.array([0.0, *(weigh[level.name] for level in plan.spine.levels)])
    splits = _splits(plan, weigh)
    plans = [plan, *(replace(plan, split=split) for split in splits)]
    tried: list[float] = []
    for done, one in enumerate(plans, start=1):
        tried.append(float((squared_errors(one, prior, runs=runs, threads=threads) @ by_level).mean()))
        if progress is not None:
            progress("trials", done / len(plans))
    # With other noise than that by which it was chosen: the best of several would look better than it is.
    own, best = (squared_errors(one, prior, runs=runs, threads=threads, seed=1)
                 for one in (plan, plans[int(np.argmin(tried))]))  # fmt: skip
    chosen, kept = plans[int(np.argmin(tried))], ""
    saved = (own - best) @ by_level
    unsure = saved.std(ddof=1) / math.sqrt(runs) if runs > 1 else math.inf
    if saved.mean() <= SURE * unsure:
        chosen, best = plan, own
        kept = " No split was better by more than two standard errors: the plan keeps its own."
    words = (
        f"In {runs} trials each on {prior.kind}: {prior.source}, of {len(splits)} splits. Errors are the root of the "
        f"mean squared error of released numbers of groups, zeros included.{kept}"
    )
    rows = tuple(
        ForecastRow(old.name, old.nodes, float(old.share), float(new.share), *_roots(own, best, old))
        for old, new in zip(plan.levels, chosen.levels, strict=True)
        if old.is_measured
    )
    before, after = (float((errors @ by_level).mean()) for errors in (own, best))
    return Forecast(chosen, rows, before, after, f"{prior.kind}: {prior.source}", words)


def _roots(own: Floats, best: Floats, level: Part) -> tuple[float, float]:
    before, after = (math.sqrt(float(errors[:, level.index].mean()) / level.nodes) for errors in (own, best))
    return before, after


def _splits(plan: PureGroupTablePlan, weigh: Mapping[str, float]) -> list[dict[str, Fraction]]:
    """Return shares in whole percents, from even ones to those that levels by themselves would have."""
    power = 1 / 3 if plan.loss.definition == "pure" else 1 / 2
    levels = [level for level, _ in plan.workload.measured]
    need = np.array([level.nodes * max(float(weigh[level.name]), 1e-3) for level in levels])
    found = []
    for step in STEPS:
        part = need ** (step * power)
        percents = np.maximum(np.rint(100 * part / part.sum()), 1).astype(int)
        found.append({level.name: Fraction(int(one)) for level, one in zip(levels, percents, strict=True)})
    return [one for number, one in enumerate(found) if one not in found[:number]]
