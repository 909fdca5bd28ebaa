"""Splits of the loss: the best for a public prior, or for the number of public nodes.

They give a weight for every measured level, to be used as `Plan(split=…)`.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

from treetop.basics.exact import Number
from treetop.basics.nearest import nearest
from treetop.choose.consistency import public_coefficients, reached_coefficients
from treetop.choose.error_laws import error_law
from treetop.choose.prior import Prior
from treetop.choose.programs import Term, least_error
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import LossError
from treetop.intake.encode import Unknown
from treetop.plan.splits import as_weights, budgets_by_worth, measured_levels, split_by_nodes
from treetop.privacy import Loss, Unit

Objective: TypeAlias = Literal["separate", "consistent"]
Nodes: TypeAlias = Literal["reached", "public"]


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
    known: Container[str] = (),
) -> dict[str, Fraction]:
    """Return the split with the least total squared error, weighted by level (1 for a level that is not named).

    "separate" counts the error of max(0, measurement) at every node, which the prior's counts decide: program (6) of
    Ko, Ziani and Fioretto. Without a prior all counts are taken to be large, so that only the number of public nodes
    matters (`split_by_nodes`). "consistent" counts the error after least-squares repair, in closed form (see
    `consistency`). Of a prior, the nodes that a descent would reach count, or all that are public. The levels that are
    `known` follow from public facts, and are not measured.
    """
    levels = measured_levels(spine, unit, unknown, known)
    if not levels:
        return {}
    weight = level_weights(spine, weights)
    if prior is not None:
        prior.fits(spine)
    if objective == "consistent":
        budgets = _consistent(spine, unit, loss, prior if nodes == "reached" else None, weight, levels)
    elif prior is None:
        return split_by_nodes(spine, unit, loss, unknown, known, weight)
    else:
        budgets = _separate(unit, loss, prior, weight, levels, nodes)
    return as_weights(levels, budgets)


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
    return budgets_by_worth(unit, loss, levels, [float(coefficients[place]) for place in places])


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
