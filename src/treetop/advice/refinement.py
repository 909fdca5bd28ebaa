"""Refining a split by trials on a public table, by the errors of counts or of shares dealt out by them.

Shares are the task of Ko, Ziani and Fioretto, "Optimal Allocation of Privacy Budget on Hierarchical Data Release":
how far money, or seats, go astray if a fixed sum is apportioned by released counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from treetop._util.choices import nearest
from treetop._util.lazy import FrozenMap
from treetop._util.numbers import Number, positive
from treetop.advice.error_laws import Floats
from treetop.advice.prior import Prior
from treetop.advice.report import Report
from treetop.advice.trials import Ints, Nodes, each_release, public_twin, squared_errors
from treetop.counts.counts import Counts, layout, pack
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import LossError, PlanError
from treetop.plan.plan import Plan
from treetop.release.errors import merge, starts


@dataclass(frozen=True)
class Shares:
    """Every node of the level `inside` has the same sum, apportioned by the counts of `level`."""

    level: str
    inside: str = TOTAL

    def __str__(self) -> str:
        return f"shares of {self.level} in {self.inside}"


def share_errors(
    plan: Plan, prior: Prior, shares: Shares, *, runs: int, threads: int | None = None, seed: int = 0
) -> Floats:
    """Return, for each trial on the prior's table, the sum of squared errors of all shares, a whole sum being 1.

    If an area is released empty, nothing is dealt out; one that is empty in the table has no shares.
    """
    coarse, fine = (_depth(plan.spine, name) for name in (shares.inside, shares.level))
    if coarse >= fine:
        raise PlanError(f"{shares.level} is not refined after {shares.inside}: its nodes do not lie in one each")
    twin = public_twin(prior)

    def error(nodes: Nodes, count: Ints) -> float:
        return squared_share_error(plan.spine, twin, nodes, count, coarse, fine)

    return np.array(list(each_release(plan, prior, error, runs=runs, threads=threads, seed=seed)))


def squared_share_error(spine: Spine, twin: Counts, nodes: Nodes, count: Ints, coarse: int, fine: int) -> float:
    """Return the sum of squared errors of shares of level `fine` inside `coarse`, by their positions in the spine."""
    both = merge(pack(spine, nodes), count, twin)
    if not len(both.true):
        return 0.0
    begin = [np.arange(len(both.true)) == 0, *(starts(both.keys, digit) for digit in layout(spine))]
    first = np.flatnonzero(begin[fine])
    area = (np.cumsum(begin[coarse]) - 1)[first]
    counts = [np.add.reduceat(values.astype(np.float64), first) for values in (both.released, both.true)]
    wholes = [np.bincount(area, own)[area] for own in counts]
    released, true = (own / np.maximum(whole, 1) for own, whole in zip(counts, wholes, strict=True))
    return float((np.where(wholes[1] > 0, released - true, 0.0) ** 2).sum())


def _depth(spine: Spine, name: str) -> int:
    return 0 if name == TOTAL else spine.level(name).index


# A pattern search on a public twin, judged on fresh noise.

_FIRST_FACTOR = 2.0
_LAST_FACTOR = 1.05
_STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Refinement:
    """The result of a search for a better split; errors are of releases with fresh noise."""

    split: Mapping[str, Fraction]
    """The split to use: the one that was found if it is better, otherwise the one that was given."""
    better: bool
    """Whether the one that was found is better by two standard errors."""
    found: Mapping[str, Fraction]
    start_error: float
    found_error: float
    standard_error: float
    """Of the difference between the two errors."""
    tried: int
    what: str

    def __str__(self) -> str:
        gain = 1 - self.found_error / self.start_error if self.start_error else 0.0
        verdict = "is better, and is taken" if self.better else "does not beat the given one, which is kept"
        return (
            f"Of {self.tried} splits the best {verdict}: {self.what} {self.found_error:,.6g} against "
            f"{self.start_error:,.6g} ({gain:+.1%}, give or take {self.standard_error:,.3g}) on fresh noise."
        )

    def report(self, plan: Plan) -> Report:
        """Report the search; `plan` has the split to use."""
        splits = {name: {level: float(by) for level, by in getattr(self, name).items()} for name in ("split", "found")}
        rows = tuple({"name": level, **{name: splits[name][level] for name in splits}} for level in splits["found"])
        columns = (("level", "{name}"), ("tried", "{found:.4g}"), ("taken", "{split:.4g}"))
        return Report(
            plan,
            "refined",
            "Splits near it, tried on the prior",
            rows,
            columns,
            values={**asdict(self), **splits},
            notes=(str(self),),
        )


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
) -> Refinement:
    """Search near the plan's split for one with less weighted squared error in releases of the prior's twin, or with
    less squared error of `shares` that are dealt out by the released counts.

    Every level's share in turn is multiplied and divided by a factor, which shrinks when nothing helps.
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


def _start(plan: Plan) -> dict[str, Fraction]:
    """Return the plan's own weights if it has any: they are shorter than the shares."""
    given = plan.split if isinstance(plan.split, Mapping) else {}
    measured = [level for level in plan.levels if level.is_measured]
    return {level.name: positive(given.get(level.name, level.share), level.name) for level in measured}


def _split(logs: Mapping[str, float]) -> dict[str, Fraction]:
    top = max(logs.values())
    total = math.fsum(math.exp(value - top) for value in logs.values())
    return {name: Fraction(Decimal(f"{math.exp(value - top) / total:.6g}")) for name, value in logs.items()}


def level_weights(spine: Spine, weights: Mapping[str, Number] | None) -> dict[str, float]:
    """Return the weight of the errors of the total and of every level (default 1)."""
    names = [TOTAL, *(level.name for level in spine.levels)]
    result = dict.fromkeys(names, 1.0)
    for name, weight in (weights or {}).items():
        if name not in names:
            raise LossError(f"the weights name {name!r}, which is not a level{nearest(name, names)}")
        result[name] = float(weight)
        if not (math.isfinite(result[name]) and result[name] >= 0):
            raise LossError(f"the weight of {name} is {weight}: give zero or a positive number")
    return result
