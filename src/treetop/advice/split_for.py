"""What the noise of each level adds to the errors of a consistent release: closed forms for least-squares repair.

Where children are moved to their parent's count by least squares, and none is clipped at zero, a child's error is that
of its measurement less the siblings' mean, plus its part 1/b of its parent's error. So the weighted total of squared
errors is Σ C_l·σ_l² over the levels, with D_v = w + Σ_children D_c / b², the weight of an error of node v in all that
lies under it, and C_l = Σ (1 − 1/b)·D_c over the nodes c of level l. The error of a real release is not quite that:
clipping makes it smaller, most of all where nodes are empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from treetop._util.choices import nearest
from treetop._util.numbers import Number
from treetop.advice.expected import ErrorLaw, Floats, error_law
from treetop.advice.prior import Prior, layers
from treetop.counts.counts import Counts
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import Spine
from treetop.domain.spine_level import AttributeStep
from treetop.domain.unit import TOTAL, Unknown
from treetop.errors import LossError
from treetop.plan.splits import as_weights, budgets_by_worth, measured_levels, split_by_nodes
from treetop.privacy import Loss, Unit


def public_coefficients(spine: Spine, weights: Sequence[float]) -> Floats:
    """Return C for the total and every level of the whole public tree, given a weight for each of them.

    The tree of a spine is a product, so D is a sum of products, and no more is computed than the attributes have nodes.
    """
    last = len(spine.levels)
    depths = [spine.depths(index) for index in range(last + 1)]
    result = np.zeros(last + 1)
    for index in range(last + 1):
        for finer in range(index, last + 1):
            if weights[finer] == 0:
                continue
            passed = [
                _passed(tree, depth, fine)
                for tree, depth, fine in zip(spine.trees, depths[index], depths[finer], strict=True)
            ]
            parts = spine.levels[index - 1].parts if index > 0 else ()
            for last_part in range(max(len(parts), 1)):
                result[index] += _product(weights[finer], passed, parts[: last_part + 1])
    return result


def _product(weight: float, passed: Sequence[Floats], parts: Sequence[AttributeStep]) -> float:
    """Return a weight times the summed product of what attributes pass, each of these by 1/b, the last by 1 − 1/b.

    Over the attributes that a level refines, these add up to 1 − 1/b of all of them together.
    """
    own = list(passed)
    for part in parts:
        children = np.diff(part.first)
        share = 1 - 1 / children if part is parts[-1] else 1 / children
        own[part.attribute] = own[part.attribute] * np.repeat(share, children)
    return math.prod((float(one.sum()) for one in own), start=weight)


def reached_coefficients(spine: Spine, twin: Counts, weights: Sequence[float]) -> Floats:
    """Return C for the nodes that a descent of a public table would measure; empty nodes end there."""
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


def _passed(tree: Hierarchy, depth: int, finer: int) -> Floats:
    """For every node of a depth (0 is the root), the summed squares of what an error passes to those of a finer one."""
    passed = np.ones(tree.sizes[finer - 1] if finer else 1)
    for first in reversed(tree.first[depth:finer]):
        passed = np.add.reduceat(passed, first[:-1]) / np.diff(first) ** 2
    return passed


# The programs of dividing a loss over levels: least error at a given loss, and least loss at a given error.

_STEPS = 200
_GROW = 60
_TOLERANCE = 1e-14


@dataclass(frozen=True, eq=False)
class Term:
    """One level's part of the objective: what its counts are expected to be, and how much their errors weigh."""

    law: ErrorLaw
    """The errors of its measurements."""
    counts: Floats = field(repr=False)
    """The distinct counts that are expected there: public."""
    nodes: Floats = field(repr=False)
    """How many nodes have each of them."""
    weight: float = 1.0
    """What a squared error there weighs; with 0 the level is given nothing."""

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.nodes) or not self.nodes.sum() > 0 or self.nodes.min() < 0:
            raise LossError("a level needs expected counts and, for each, how many nodes have it")
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise LossError(f"a level's weight is {self.weight}: give zero or a positive number")

    @staticmethod
    def of(law: ErrorLaw, counts: ArrayLike, weight: float = 1.0) -> Term:
        """Take the expected count of every node."""
        distinct, nodes = np.unique(np.asarray(counts, dtype=np.float64), return_counts=True)
        return Term(law, distinct, nodes.astype(np.float64), weight)

    def error(self, budget: float) -> float:
        """The weighted sum of mean squared errors when this much is spent here."""
        return self.weight * float(self.nodes @ self.law.mse(budget, self.counts))

    def gain(self, budget: float) -> float:
        """How fast the error falls with the budget: what the next bit is worth here."""
        return -self.weight * float(self.nodes @ self.law.slope(budget, self.counts))

    def budget_at(self, price: float, guess: float) -> float:
        """How much to spend here when a bit of budget costs this much error."""
        return falling_root(self.gain, price, guess / 1.5, guess * 1.5)


@dataclass(frozen=True)
class Allocation:
    """A division of a loss."""

    budgets: tuple[float, ...]
    """What each level is given: epsilon for Laplace noise, rho for Gaussian."""
    error: float
    """The weighted total of mean squared errors."""
    price: float
    """How fast the error would fall with more loss."""

    @property
    def total(self) -> float:
        """The loss of all levels together."""
        return math.fsum(self.budgets)


def least_error(terms: Sequence[Term], budget: float) -> Allocation:
    """Divide a loss so that the weighted total mean squared error is least (KZF, program 6)."""
    weighted = [term for term in terms if term.weight > 0]
    if not weighted:
        raise LossError("no level has a weight: give at least one")
    if not (math.isfinite(budget) and budget > 0):
        raise LossError(f"the loss to divide is {budget}: give a positive number")
    budgets = [budget / len(weighted)] * len(weighted)

    def spent(price: float) -> float:
        budgets[:] = [term.budget_at(price, guess) for term, guess in zip(weighted, budgets, strict=True)]
        return math.fsum(budgets)

    gains = [term.gain(guess) for term, guess in zip(weighted, budgets, strict=True)]
    price = falling_root(spent, budget, min(gains), max(gains) * 1.01)
    # The root is within rounding of the loss; what is left of it goes to all alike.
    scale = budget / spent(price)
    given = iter(budgets)
    everywhere = tuple(next(given) * scale if term.weight > 0 else 0.0 for term in terms)
    return Allocation(everywhere, total_error(terms, everywhere), price)


def least_loss(terms: Sequence[Term], error: float) -> Allocation:
    """Find the least loss, and its division, at which the weighted total mean squared error is that (program 7)."""
    if not (math.isfinite(error) and error > 0):
        raise LossError(f"the squared error to reach is {error}: give a positive number")
    return least_error(terms, falling_root(lambda budget: least_error(terms, budget).error, error, 0.1, 1.0))


def total_error(terms: Sequence[Term], budgets: Sequence[float]) -> float:
    """The weighted total of mean squared errors of a given division."""
    return math.fsum(term.error(one) for term, one in zip(terms, budgets, strict=True) if term.weight > 0)


def falling_root(function: Callable[[float], float], value: float, low: float, high: float) -> float:
    """Return x > 0 with function(x) = value, for a function that falls from infinity to zero, both positive.

    Functions here are near powers of x, so steps are taken on logarithms, where they are near lines: the rule of false
    position with halving (Illinois), which keeps a bracket. The first bracket is widened where it is not one.
    """
    goal = math.log(value)

    def height(at: float) -> float:
        found = function(math.exp(at))
        return (math.log(found) if found > 0 else -math.inf) - goal

    left, right = math.log(low), math.log(high)
    above, below = height(left), height(right)
    for _ in range(_GROW):
        if above < 0:
            left, right, below = left - max(right - left, 1.0), left, above
            above = height(left)
        elif below > 0:
            left, right, above = right, right + max(right - left, 1.0), below
            below = height(right)
        else:
            break
    else:
        raise ArithmeticError(f"no root of {value} was found near {low} to {high}")
    side = 0
    for _ in range(_STEPS):
        if above == 0:
            return math.exp(left)
        if below == 0 or right - left <= _TOLERANCE * max(1.0, abs(left)):
            break
        # Where the function has vanished there is no slope to follow: halve.
        middle = (left * below - right * above) / (below - above) if math.isfinite(below) else (left + right) / 2
        if not left < middle < right:
            middle = (left + right) / 2
        at = height(middle)
        if at > 0:
            left, above = middle, at
            below = below / 2 if side == 1 else below
            side = 1
        else:
            right, below = middle, at
            above = above / 2 if side == -1 else above
            side = -1
    return math.exp(right)


# Splits of the loss: the best for a public prior, or for the number of public nodes.

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
