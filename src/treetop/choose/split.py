"""Splits of the loss: presets, by the number of public nodes, or the best for a public prior.

All return a weight for every measured level, to be used as `Plan(split=…)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from treetop.basics.exact import Number
from treetop.basics.nearest import nearest
from treetop.choose.consistency import public_coefficients, reached_coefficients
from treetop.choose.error_laws import error_law
from treetop.choose.prior import Prior
from treetop.choose.programs import Term, least_error
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import LossError
from treetop.privacy import Loss, Unit
from treetop.read.encode import Unknown

Preset: TypeAlias = Literal["uniform", "top-heavy", "bottom-heavy"]
Objective: TypeAlias = Literal["separate", "consistent"]
Nodes: TypeAlias = Literal["reached", "public"]

SPLITS = ("uniform", "top-heavy", "bottom-heavy", "by-nodes")
"""The splits that a plan file may name."""

SMALLEST_SHARE = 0.001
"""The share of a level whose errors weigh nothing: it is measured all the same, and needs some."""

_DIGITS = 6


def measured_levels(spine: Spine, unit: Unit, unknown: Unknown = "error") -> list[str]:
    """Return the names of the levels that a plan would measure, from the top."""
    total = [] if unit.total_is_exact(records_may_be_dropped=unknown == "drop") else [TOTAL]
    return total + [level.name for level in spine.levels if level.divides]


def preset_split(
    preset: Preset, spine: Spine, unit: Unit, *, unknown: Unknown = "error", ratio: Number = 2
) -> dict[str, Fraction]:
    """Return one of the splits that need no prior.

    "uniform" gives every level the same. "top-heavy" gives each level `ratio` times what the next finer one has, and
    "bottom-heavy" `ratio` times what the next coarser one has.
    """
    factor = Fraction(str(ratio))
    if factor <= 1:
        raise LossError(f"the ratio of a split is {ratio}: give more than 1")
    levels = measured_levels(spine, unit, unknown)
    powers = {
        "uniform": [0] * len(levels),
        "top-heavy": range(len(levels) - 1, -1, -1),
        "bottom-heavy": range(len(levels)),
    }
    if preset not in powers:
        raise LossError(
            f"there is no split {preset!r}{nearest(str(preset), powers)}; choose one of {', '.join(powers)}"
        )
    return {name: factor**power for name, power in zip(levels, powers[preset], strict=True)}


def named_split(name: str, spine: Spine, unit: Unit, loss: Loss, *, unknown: Unknown = "error") -> dict[str, Fraction]:
    """Return a split by the name that a plan file may give; "by-nodes" is the best where all counts are large."""
    if name == "by-nodes":
        return optimal_split(spine, unit, loss, unknown=unknown)
    if name not in SPLITS:
        raise LossError(f"there is no split {name!r}{nearest(name, SPLITS)}; choose one of {', '.join(SPLITS)}")
    return preset_split(name, spine, unit, unknown=unknown)  # type: ignore[arg-type]


def optimal_split(
    spine: Spine,
    unit: Unit,
    loss: Loss,
    prior: Prior | None = None,
    weights: Mapping[str, Number] | None = None,
    *,
    objective: Objective = "separate",
    nodes: Nodes = "reached",
    unknown: Unknown = "error",
) -> dict[str, Fraction]:
    """Return the split with the least total squared error, weighted by level (1 for a level that is not named).

    "separate" counts the error of max(0, measurement) at every node, which the prior's counts decide: program (6) of
    Ko, Ziani and Fioretto. Without a prior all counts are taken to be large, so that only the number of public nodes
    matters: rho ∝ √(w·n·Δ²), epsilon ∝ ∛(w·n·Δ²). "consistent" counts the error after least-squares repair, in
    closed form (see `consistency`). Of a prior, the nodes that a descent would reach count, or all that are public.
    """
    levels = measured_levels(spine, unit, unknown)
    if not levels:
        return {}
    weight = level_weights(spine, weights)
    if prior is not None:
        prior.fits(spine)
    if objective == "consistent":
        budgets = _consistent(spine, unit, loss, prior if nodes == "reached" else None, weight, levels)
    elif prior is None:
        worth = [weight[name] * (1 if name == TOTAL else spine.level(name).nodes) for name in levels]
        budgets = _by_power(unit, loss, levels, worth)
    else:
        budgets = _separate(unit, loss, prior, weight, levels, nodes)
    return _as_weights(levels, budgets)


def terms_of(
    unit: Unit, loss: Loss, prior: Prior, weights: Mapping[str, float], levels: Sequence[str], nodes: Nodes = "reached"
) -> list[Term | None]:
    """Return the terms of the programs for a prior; None for a level where it expects nothing to be measured."""
    terms: list[Term | None] = []
    for name in levels:
        expected = prior.level(name) if nodes == "reached" else prior.level(name).everywhere()
        weight = weights.get(name, 1.0)
        known = expected.measured > 0 and weight > 0
        terms.append(Term(error_law(unit, loss, name), expected.counts, expected.nodes, weight) if known else None)
    return terms


def _separate(
    unit: Unit, loss: Loss, prior: Prior, weights: Mapping[str, float], levels: Sequence[str], nodes: Nodes
) -> list[float]:
    terms = terms_of(unit, loss, prior, weights, levels, nodes)
    answer = iter(least_error([term for term in terms if term is not None], float(loss.budget)).budgets)
    return [0.0 if term is None else next(answer) for term in terms]


def _consistent(
    spine: Spine, unit: Unit, loss: Loss, prior: Prior | None, weights: Mapping[str, float], levels: Sequence[str]
) -> list[float]:
    ordered = [weights[TOTAL], *(weights[level.name] for level in spine.levels)]
    if prior is None:
        coefficients = public_coefficients(spine, ordered)
    elif prior.twin is None:
        raise LossError("a sketch does not say which nodes lie under which: give a table, or nodes='public'")
    else:
        coefficients = reached_coefficients(spine, prior.twin, ordered)
    places = [0 if name == TOTAL else spine.level(name).index for name in levels]
    return _by_power(unit, loss, levels, [float(coefficients[place]) for place in places])


def _by_power(unit: Unit, loss: Loss, levels: Sequence[str], worth: Sequence[float]) -> list[float]:
    """Minimise Σ worth·variance: the variance is Δ²/(2·rho), or 2Δ²/epsilon² (a little less for discrete noise)."""
    pure = loss.definition == "pure"
    changes = [unit.sensitivity(name) for name in levels]
    squares = [change.l1**2 if pure else change.l2_squared for change in changes]
    budgets = [(one * square) ** (1 / 3 if pure else 1 / 2) for one, square in zip(worth, squares, strict=True)]
    if not sum(budgets) > 0:
        raise LossError("no measured level has a weight: give at least one")
    scale = float(loss.budget) / math.fsum(budgets)
    return [scale * budget for budget in budgets]


def level_weights(spine: Spine, weights: Mapping[str, Number] | None) -> dict[str, float]:
    """Return the weight of the total and of every level; 1 where none is given."""
    names = [TOTAL, *(level.name for level in spine.levels)]
    result = dict.fromkeys(names, 1.0)
    for name, weight in (weights or {}).items():
        if name not in names:
            raise LossError(f"the weights name {name!r}, which is not a level{nearest(name, names)}")
        result[name] = float(weight)
        if not (math.isfinite(result[name]) and result[name] >= 0):
            raise LossError(f"the weight of {name} is {weight}: give zero or a positive number")
    return result


def _as_weights(levels: Sequence[str], budgets: Sequence[float]) -> dict[str, Fraction]:
    """Turn budgets into short decimals, with something for levels that are worth nothing."""
    shares = np.array(budgets) / math.fsum(budgets)
    nothing = shares <= 0
    shares = np.where(nothing, SMALLEST_SHARE, shares * (1 - SMALLEST_SHARE * nothing.sum()))
    return {
        name: Fraction(Decimal(f"{share:.{_DIGITS}g}")) for name, share in zip(levels, shares.tolist(), strict=True)
    }
