"""Refining a split by trial: a few steps of pattern search on a public twin, judged on fresh noise.

The closed forms leave out what repair and pruning do. Trials do not: each candidate split releases the twin with the
same words of noise, so that differences are due to the split (common random numbers). What the search finds is compared
with the start on words that it has not seen, and is taken only if it is better there beyond chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from treetop.basics.exact import Number, positive
from treetop.basics.frozen import FrozenMap
from treetop.choose.dealt import Shares, share_errors
from treetop.choose.error_laws import Floats
from treetop.choose.prior import Prior
from treetop.choose.simulate import squared_errors
from treetop.choose.split import level_weights
from treetop.errors import PlanError
from treetop.plan.plan import PurePlan

_FIRST_FACTOR = 2.0
_LAST_FACTOR = 1.05
_STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Refinement:
    """What a search for a better split came to."""

    split: Mapping[str, Fraction]
    """The split to use: the one that was found if it is better, otherwise the one that was given."""
    better: bool
    """Whether the search found one that is better on fresh noise, beyond two standard errors."""
    found: Mapping[str, Fraction]
    """The best split of the search, better or not."""
    start_error: float
    """The weighted total of squared errors with the split that was given, on fresh noise."""
    found_error: float
    """The same with the one that was found."""
    standard_error: float
    """Of the difference between the two."""
    tried: int
    """How many splits were tried."""
    what: str = "total squared error"
    """Of what the errors are."""

    def __str__(self) -> str:
        gain = 1 - self.found_error / self.start_error if self.start_error else 0.0
        verdict = "is better, and is taken" if self.better else "does not beat the given one, which is kept"
        return (
            f"Of {self.tried} splits the best {verdict}: {self.what} {self.found_error:,.6g} against "
            f"{self.start_error:,.6g} ({gain:+.1%}, give or take {self.standard_error:,.3g}) on fresh noise."
        )


def refine_split(
    plan: PurePlan,
    prior: Prior,
    weights: Mapping[str, Number] | None = None,
    *,
    shares: Shares | None = None,
    runs: int = 6,
    tries: int = 40,
    fresh_runs: int = 20,
    threads: int | None = None,
    seed: int = 0,
) -> Refinement:
    """Search near the plan's split for one with less weighted squared error in releases of the prior's twin, or with
    less squared error of `shares` that are dealt out by the released counts, in place of the counts.

    Every level's share is raised and lowered by a factor in turn, which shrinks when nothing helps.
    """
    if fresh_runs < 2 or tries < 1:
        raise PlanError("a refinement needs at least 1 try, and 2 fresh runs to judge it by")
    weigh = np.array(list(level_weights(plan.spine, weights).values()))
    start = _start(plan)
    names = list(start)

    def errors(split: Mapping[str, Fraction], runs: int, seed: int) -> Floats:
        trial = replace(plan, split=split)
        if shares is not None:
            return share_errors(trial, prior, shares, runs=runs, threads=threads, seed=seed)
        found: Floats = squared_errors(trial, prior, runs=runs, threads=threads, seed=seed) @ weigh
        return found

    best = {name: math.log(float(start[name])) for name in names}
    least = float(errors(start, runs, 2 * seed).mean())
    found, tried, factor = dict(start), 1, _FIRST_FACTOR
    while tried < tries and factor > _LAST_FACTOR and len(names) > 1:
        improved = False
        for name in names:
            for step in (math.log(factor), -math.log(factor)):
                if tried >= tries:
                    break
                candidate = {**best, name: best[name] + step}
                split = _split(candidate)
                error = float(errors(split, runs, 2 * seed).mean())
                tried += 1
                if error < least:
                    best, found, least, improved = candidate, split, error, True
                    break
        if not improved:
            factor = math.sqrt(factor)
    before, after = (errors(split, fresh_runs, 2 * seed + 1) for split in (start, found))
    spread = float((before - after).std(ddof=1) / math.sqrt(fresh_runs))
    better = float((before - after).mean()) > _STANDARD_ERRORS * spread and found != start
    return Refinement(
        FrozenMap(found if better else start),
        better,
        FrozenMap(found),
        float(before.mean()),
        float(after.mean()),
        spread,
        tried,
        "total squared error" if shares is None else f"squared error of {shares}",
    )


def _start(plan: PurePlan) -> dict[str, Fraction]:
    """Return the plan's own weights where it has any: they are shorter than the shares."""
    given = plan.split if isinstance(plan.split, Mapping) else {}
    measured = [level for level in plan.levels if level.is_measured]
    return {level.name: positive(given.get(level.name, level.share), level.name) for level in measured}


def _split(logs: Mapping[str, float]) -> dict[str, Fraction]:
    top = max(logs.values())
    total = math.fsum(math.exp(value - top) for value in logs.values())
    return {name: Fraction(Decimal(f"{math.exp(value - top) / total:.6g}")) for name, value in logs.items()}
