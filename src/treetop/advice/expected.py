"""Error laws of one released count, max(0, n + noise): its mean squared error, and how fast it falls, in closed form.

KZF is Ko, Ziani and Fioretto, "Optimal Allocation of Privacy Budget on Hierarchical Data Release", which has the
continuous Laplace at sensitivity 1. Here every law takes any sensitivity, and the discrete laws are those that are
drawn.

For noise X that is symmetric about zero, max(0, n + X) = n + X + max(0, −X − n). So

    MSE(n) = Var X − Σ_{j>n} (j² − n²)·P(X = j),

so that Var X / 2 = MSE(0) ≤ MSE(n) < Var X for every such law: KZF Proposition 4, which states it for the Laplace.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treetop.domain.marginal import exact_margins, title_of
from treetop.domain.spine import Spine
from treetop.errors import LossError, PlanError
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Law
from treetop.plan.plan import Plan
from treetop.plan.workload import CONFIDENCE
from treetop.privacy import Loss, Unit
from treetop.repair import REPAIRS

Floats: TypeAlias = NDArray[np.float64]

SUMMED_UP_TO = 16.0
"""The discrete Gaussian is summed up to this scale; beyond, the closed form is within 1e-9 of the sums."""

_erfc = np.vectorize(math.erfc, otypes=[np.float64])


@dataclass(frozen=True)
class ErrorLaw(ABC):
    """The error of max(0, n + noise), where the noise is set by what is spent on it: the budget."""

    sensitivity: float
    """How far one unit can move the counts that are measured: in L1 for Laplace noise, in L2 for Gaussian."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.sensitivity) and self.sensitivity > 0):
            raise LossError(f"the sensitivity is {self.sensitivity}: give a positive number")

    @abstractmethod
    def mse(self, budget: float, counts: ArrayLike) -> Floats:
        """The mean squared error, for each true count."""

    @abstractmethod
    def slope(self, budget: float, counts: ArrayLike) -> Floats:
        """The derivative of the mean squared error by the budget, for each true count: negative."""


@dataclass(frozen=True)
class DiscreteLaplaceErrors(ErrorLaw):
    """Discrete Laplace noise of scale Δ/epsilon: the pure loss."""

    def mse(self, budget: float, counts: ArrayLike) -> Floats:
        """(2a − a^(n+1))/(1 − a)² − 2n·a^(n+1)/(1 − a²)."""
        e, n = budget / self.sensitivity, as_counts(counts)
        power = np.exp(-e * (n + 1))
        return (2 * math.exp(-e) - power) / math.expm1(-e) ** 2 + 2 * n * power / math.expm1(-2 * e)

    def slope(self, budget: float, counts: ArrayLike) -> Floats:
        """The derivative of `mse` by epsilon, where a has the derivative −a/Δ."""
        e, n = budget / self.sensitivity, as_counts(counts)
        a, gap, wide = math.exp(-e), -math.expm1(-e), -math.expm1(-2 * e)
        power = np.exp(-e * (n + 1))
        first = (2 * a - (n + 1) * power) / gap**2 + 2 * a * (2 * a - power) / gap**3
        second = 2 * n * power * ((n + 1) * wide + 2 * a * a) / wide**2
        return (second - first) / self.sensitivity


@dataclass(frozen=True)
class GaussianErrors(ErrorLaw):
    """Continuous Gaussian noise of variance s = Δ²/(2·rho)."""

    def parameter(self, budget: float) -> float:
        """The variance that rho buys; the discrete law has it as its parameter."""
        return self.sensitivity**2 / (2 * budget)

    def mse(self, budget: float, counts: ArrayLike) -> Floats:
        """s·(a²·Φ(−a) + Φ(a) − a·φ(a))."""
        s, n = self.parameter(budget), as_counts(counts)
        a = n / math.sqrt(s)
        tail = _tail(a)
        return s * (1 - tail - a * _density(a)) + n * n * tail

    def slope(self, budget: float, counts: ArrayLike) -> Floats:
        """−(s/rho)·(Φ(a) − a·φ(a)). It rises with rho: the second derivative is positive for every n."""
        s, n = self.parameter(budget), as_counts(counts)
        a = n / math.sqrt(s)
        return -s / budget * (1 - _tail(a) - a * _density(a))


@dataclass(frozen=True)
class DiscreteGaussianErrors(GaussianErrors):
    """Discrete Gaussian noise with parameter s = Δ²/(2·rho): the zero-concentrated and the approximate loss.

    Small scales are summed. For large ones the sums over j > n differ from integrals by the terms of Euler and
    Maclaurin at n, where the summands are zero but not smooth: −f′/12 + f‴/720, with f = (j² − n²)·φ.
    """

    def mse(self, budget: float, counts: ArrayLike) -> Floats:
        """The continuous error, plus n·φ_σ(n)·(1/6 − (n²/s² − 2/s)/120)."""
        s, n = self.parameter(budget), as_counts(counts)
        if s <= SUMMED_UP_TO**2:
            sums = gaussian_sums(s)
            at = sums.place(n)
            return np.asarray(sums.second - (sums.tail2[at] - sums.at[at] ** 2 * sums.tail0[at]))
        return super().mse(budget, n) + mse_correction(s, n)

    def slope(self, budget: float, counts: ArrayLike) -> Floats:
        """The derivative of `mse` by rho."""
        s, n = self.parameter(budget), as_counts(counts)
        if s > SUMMED_UP_TO**2:
            return super().slope(budget, n) - s / budget * _correction_slope(s, n)
        # d E[g(X)]/dt = −Cov(g(X), X²) for P(k) ∝ e^(−t·k²), and t = rho/Δ².
        sums = gaussian_sums(s)
        at = sums.place(n)
        square = sums.at[at] ** 2
        lost = (sums.tail4[at] - square * sums.tail2[at]) - sums.second * (sums.tail2[at] - square * sums.tail0[at])
        return np.asarray(-(sums.fourth - sums.second**2 - lost) / self.sensitivity**2)


def error_law(unit: Unit, loss: Loss, level: str) -> ErrorLaw:
    """The error law of a level's measurements: of the noise that a plan with this unit and loss would draw."""
    change = unit.sensitivity(level)
    if loss.definition == "pure":
        return DiscreteLaplaceErrors(float(change.l1))
    return DiscreteGaussianErrors(math.sqrt(change.l2_squared))


def mean_absolute_of_count(law: Law, terms: int) -> float:
    """The mean absolute error of a count that is the difference of two measurements (`terms` = 2), or is one (1).

    With a = e^(−rate), the sum of two discrete Laplace draws is k with probability
    ((1 − a)/(1 + a))²·a^|k|·(|k| + (1 + a²)/(1 − a²)). That of two discrete Gaussians is as one of twice the variance,
    up to the factor of `treetop.noise.sum_noise`. Of other laws the mean is bounded by the triangle inequality.

    >>> from fractions import Fraction
    >>> from treetop.noise import DiscreteLaplace
    >>> round(mean_absolute_of_count(DiscreteLaplace(Fraction(1000)), 2))  # close to 1.5 times the scale
    1500
    """
    if terms == 1:
        return mean_absolute(law)
    if isinstance(law, DiscreteLaplace):
        rate = float(law.rate)
        if rate >= 700:
            return 0.0
        a, gap = math.exp(-rate), -math.expm1(-rate)
        both = a * (1 + a) / gap**3 + (1 + a * a) / -math.expm1(-2 * rate) * a / gap**2
        return 2 * (gap / (1 + a)) ** 2 * both
    if isinstance(law, DiscreteGaussian):
        return mean_absolute(DiscreteGaussian(2 * law.variance))
    return 2 * mean_absolute(law)


def mean_absolute(law: Law) -> float:
    """The mean absolute value of the noise, E|X|: what one measurement is off by on average.

    >>> from fractions import Fraction
    >>> from treetop.noise import DiscreteGaussian
    >>> round(mean_absolute(DiscreteGaussian(Fraction(400))), 4)  # close to 20·√(2/π)
    15.9544
    """
    if isinstance(law, DiscreteLaplace):
        return 1 / math.sinh(float(law.rate)) if law.rate < 700 else 0.0
    s = float(1 / (2 * law.rate))
    if s <= SUMMED_UP_TO**2:
        return float(2 * gaussian_sums(s).tail1[0])
    return 2 * (s - 1 / 12 - 1 / (240 * s) - 1 / (2016 * s * s)) / math.sqrt(2 * math.pi * s)


def mse_correction(s: float, counts: ArrayLike) -> Floats:
    """What the discrete Gaussian's mean squared error has above the continuous one's, for scales of 0.7 and more."""
    n = as_counts(counts)
    return n * _density(n / math.sqrt(s)) / math.sqrt(s) * (1 / 6 - (n * n / s - 2) / s / 120)


def _correction_slope(s: float, n: Floats) -> Floats:
    """The derivative of `mse_correction` by s."""
    square = n * n / s
    change = (square - 1) / 2 * (1 / 6 - (square - 2) / s / 120) + (square - 1) / s / 60
    return np.asarray(n * _density(n / math.sqrt(s)) / s**1.5 * change)


def as_counts(counts: ArrayLike) -> Floats:
    """Return true counts as an array, refusing what cannot be one."""
    n = np.asarray(counts, dtype=np.float64)
    if n.size and not (np.isfinite(n).all() and n.min() >= 0):
        raise LossError("true counts are finite and not below zero")
    return n


def _density(a: Floats) -> Floats:
    """φ(a)."""
    a = np.minimum(a, 50.0)  # where it is nothing
    return np.exp(-a * a / 2) / math.sqrt(2 * math.pi)


def _tail(a: Floats) -> Floats:
    """Φ(−a), for a ≥ 0; called for what is not nothing only, since it is computed one by one."""
    tail = np.zeros_like(a)
    near = a < 38
    if near.any():
        tail[near] = _erfc(a[near] / math.sqrt(2)) / 2
    return tail


class Sums(NamedTuple):
    """Moments of a discrete Gaussian, whole and beyond each n: tail2[n] is Σ_{j>n} j²·P(X = j)."""

    at: Floats
    """The counts n for which there are sums: 0, 1, 2, …"""
    second: float
    """The variance of the law."""
    fourth: float
    """Its fourth moment."""
    tail0: Floats
    """The chance to be beyond n."""
    tail1: Floats
    """The part of the first moment beyond n."""
    tail2: Floats
    """The part of the second."""
    tail4: Floats
    """The part of the fourth."""

    def place(self, n: Floats) -> NDArray[np.int64]:
        """Where the sums of a count stand; beyond the last they are zero."""
        if (n != np.floor(n)).any():
            raise LossError("discrete noise is added to whole counts: round the counts first")
        return np.minimum(n, len(self.at) - 1).astype(np.int64)


@lru_cache(maxsize=256)
def gaussian_sums(s: float) -> Sums:
    """The sums of the law with parameter s, whose weights are e^(−j²/2s)."""
    width = max(math.ceil(13 * math.sqrt(s)), 2)  # what lies beyond is below 1e-36 of the whole
    j = np.arange(width + 1, dtype=np.float64)
    weight = np.exp(-j * j / (2 * s))
    mass = weight / (weight[0] + 2 * weight[1:].sum())

    def beyond(power: int) -> Floats:
        terms = (j**power * mass)[::-1]
        return np.append(np.cumsum(terms)[::-1][1:], 0.0)

    tails = [beyond(power) for power in (0, 1, 2, 4)]
    return Sums(j, float(2 * tails[2][0]), float(2 * tails[3][0]), *tails)


# The errors to expect of any table, measured or summed, from public sizes alone.

Depths: TypeAlias = tuple[int, ...]
"""A table: by attribute of the spine, how many of its levels are refined; 0 where it is summed over."""

MOST_COMPONENTS = 1 << 20
"""Tables of more components than this are refused: a plan of twenty attributes with one level each has as many."""
MEAN_OF_NORMAL = math.sqrt(2 / math.pi)
"""The mean absolute value of normal noise, in standard deviations."""


@dataclass(frozen=True)
class Tables:
    """What a plan measures, as far as errors depend on it."""

    sizes: tuple[tuple[int, ...], ...]
    """By attribute, how many nodes each depth has; the first has one."""
    levels: tuple[Depths, ...]
    """The levels of the spine that are measured, from the top; the total among them if it is."""
    margins: tuple[Depths, ...] = ()
    """The tables beside it."""
    exact_total: bool = True
    """Whether the total is known without noise."""
    top_down: bool = True
    """Whether counts are those of the descent; otherwise least squares of all measurements."""
    known: tuple[Depths, ...] = ()
    """The tables that public facts decide: there is no error in them."""
    crossing: tuple[Depths, ...] = ()
    """The margins that are measured and not kept: released counts are taken from other tables."""

    @staticmethod
    def of(plan: Plan) -> Tables:
        """Return what a plan measures."""
        kept = exact_margins(plan.spine, plan.margin_tables)
        return Tables(
            sizes_of(plan.spine),
            tuple(plan.spine.depths(part.index) for part in plan.levels if part.is_measured),
            tuple(margin.depths for margin in plan.margin_tables),
            plan.levels[0].is_exact,
            # Under margins, counts of lower error are the descent's but for the leaves.
            bool(plan.margin_tables) or not REPAIRS[plan.repair].again,
            plan.known_tables,
            tuple(margin.depths for margin, is_kept in zip(plan.margin_tables, kept, strict=True) if not is_kept),
        )

    @property
    def all(self) -> tuple[Depths, ...]:
        """Levels, then margins."""
        return self.levels + self.margins

    def nodes(self, table: Depths) -> int:
        """Return how many cells a table has."""
        return math.prod(own[depth] for own, depth in zip(self.sizes, table, strict=True))


def sizes_of(spine: Spine) -> tuple[tuple[int, ...], ...]:
    """Return, by attribute, the number of nodes at every depth that the spine refines."""
    return tuple((1, *tree.sizes) for tree in spine.trees)


@dataclass(frozen=True, eq=False)
class ErrorModel:
    """The variance of some tables as a function of the precision with which others are measured."""

    tables: Tables
    """What is measured."""
    wanted: tuple[Depths, ...]
    """The tables whose errors are asked for."""
    _parts: tuple[Floats, Floats] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_parts", self._components())

    @property
    def coefficients(self) -> Floats:
        """By wanted table and class of components, what these add to its variance, at precision 1."""
        return self._parts[0]

    @property
    def weights(self) -> Floats:
        """By measured table and class of components, what a precision of 1 tells of each of these."""
        return self._parts[1]

    def variances(self, precision: Floats) -> Floats:
        """Return the mean variance of a node of every wanted table; `precision` is 1/variance of each table's noise."""
        variances: Floats = self.coefficients @ (1 / (precision @ self.weights))
        return variances

    def pulls(self, precision: Floats, cares: Floats) -> tuple[float, Floats]:
        """Return Σ cares·log V, and how far each table's precision, by its logarithm, pulls that down.

        Variances are inversely proportional to all precisions together, so the pulls sum to what is cared for.
        """
        settled = precision @ self.weights
        variances = self.coefficients @ (1 / settled)
        slope = (cares / variances) @ self.coefficients / settled**2
        return float(cares @ np.log(variances)), precision * (self.weights @ slope)

    def _components(self) -> tuple[Floats, Floats]:
        """Sum what components add that are taken from the same tables: there are few such classes."""
        tables = self.tables
        deepest = np.max([*self.wanted, (0,) * len(tables.sizes)], axis=0)
        if math.prod(int(depth) + 1 for depth in deepest) > MOST_COMPONENTS:
            raise PlanError(
                "the plan has too many attributes for errors of all of them together: name tables of a few, such as "
                '--care "place.state * sex"'
            )
        lattice = np.indices(deepest + 1).reshape(len(deepest), -1)
        size = np.ones(lattice.shape[1])
        for own, at in zip(tables.sizes, lattice, strict=True):
            size *= np.diff(own, prepend=0)[at]
        lattice, size = lattice[:, size > 0], size[size > 0]
        if tables.exact_total:
            lattice, size = lattice[:, 1:], size[1:]
        for table in tables.known:
            new = ~_under(lattice, table)
            lattice, size = lattice[:, new], size[new]
        taken = self._taken(lattice)
        _, first, group = np.unique(np.packbits(taken, axis=0), axis=1, return_index=True, return_inverse=True)
        group = group.reshape(-1)
        leaves = math.prod(own[-1] for own in tables.sizes)
        weights = taken[:, first] * np.array([[leaves / tables.nodes(table)] for table in tables.all])
        coefficients = np.array(
            [
                np.bincount(group, size * _under(lattice, table), len(first)) * leaves / tables.nodes(table) ** 2
                for table in self.wanted
            ]
        )
        return coefficients.reshape(len(self.wanted), len(first)), weights

    def _taken(self, lattice: NDArray[np.int64]) -> NDArray[np.bool_]:
        """By measured table and component, whether the estimate takes the one from the other."""
        tables = self.tables
        tells = np.array([_under(lattice, table) for table in tables.all]).reshape(len(tables.all), -1)
        tells &= np.array([table not in tables.crossing for table in tables.all], dtype=bool)[:, None]
        if not tables.top_down:
            return tells
        levels = len(tables.levels)
        first = np.zeros_like(tells)
        if levels:
            told = tells[:levels].any(axis=0)
            first[tells[:levels].argmax(axis=0)[told], np.flatnonzero(told)] = True
        alone = {np.flatnonzero(table).item() for table in tables.margins if np.count_nonzero(table) == 1}
        # A level at which one attribute alone is refined is one of its tables, and least squares take it with them.
        beside = np.array(
            [np.count_nonzero(table) == 1 and np.flatnonzero(table).item() in alone for table in tables.levels]
            + [True] * len(tables.margins),
            dtype=bool,
        )
        of_margins = tells & beside[:, None]
        # The total is settled before all margins.
        by_margins = of_margins.any(axis=0) & lattice.any(axis=0)
        taken: NDArray[np.bool_] = np.where(by_margins, of_margins, first)
        return taken


def _under(lattice: NDArray[np.int64], table: Depths) -> NDArray[np.bool_]:
    """Whether a table tells of each component."""
    return np.asarray(np.all(lattice <= np.array(table)[:, None], axis=0))


@dataclass(frozen=True)
class Expected:
    """What to expect of one table."""

    table: Depths
    """Which one."""
    title: str
    """What it counts, in words."""
    nodes: int
    """How many cells the public domain has."""
    variance: float
    """The mean variance of a count, where no count is near zero."""

    @property
    def deviation(self) -> float:
        """Its root."""
        return math.sqrt(self.variance)

    @property
    def error(self) -> float:
        """The mean absolute error, where no count is near zero."""
        return MEAN_OF_NORMAL * self.deviation


@dataclass(frozen=True, eq=False)
class Expectation:
    """What to expect of the counts that a plan releases."""

    plan: Plan
    """The plan."""

    @cached_property
    def precision(self) -> Floats:
        """1/variance of every measured table: levels, then margins."""
        return np.array([part.deviation**-2.0 for part in self.plan.workload if part.is_measured])

    def of(self, tables: Sequence[Depths]) -> list[Expected]:
        """Return what to expect of some tables."""
        if not tables:
            return []
        measured = Tables.of(self.plan)
        if measured.all:
            variances = ErrorModel(measured, tuple(tables)).variances(self.precision)
        else:
            variances = np.zeros(len(tables))
        return [
            Expected(table, title_of(self.plan.spine, table), measured.nodes(table), float(variance))
            for table, variance in zip(tables, variances, strict=True)
        ]


def expected_errors(plan: Plan, tables: Sequence[Depths]) -> list[Expected]:
    """Return what to expect of some tables of a plan's release, measured or summed; no data is read."""
    return Expectation(plan).of(tables)


@dataclass(frozen=True)
class NotKept:
    """A listed margin that crosses another one, so that the released counts do not add up to it."""

    name: str
    """The margin, as shares and costs name it."""
    counts: str
    """What it counts, in words."""
    margin: int
    """Its own measurement is within this of the truth, with the confidence asked for."""
    least: float
    """The mean absolute error of its released counts, if they followed its own measurement;"""
    most: float
    """and if they are sums of other tables alone, where no count is near zero."""

    def __str__(self) -> str:
        return (
            f"{self.name} will not be kept, because it crosses a margin listed before it. Its counts are released as "
            f"sums of the leaves: the ± {self.margin:,} of its own measurement does not apply to them. Expect a mean "
            f"error between {self.least:,.3g} and about {self.most:,.3g}. Leave it out, or list it first."
        )


def margins_not_kept(plan: Plan, confidence: float = CONFIDENCE) -> list[NotKept]:
    """Return the margins of a plan that are not kept, with the errors to expect of them; no data is read."""
    kept = exact_margins(plan.spine, plan.margin_tables)
    crossing = [index for index, is_kept in enumerate(kept) if not is_kept]
    rows = plan.accuracy(confidence).margins if crossing else ()
    expected = expected_errors(plan, [plan.margin_tables[index].depths for index in crossing])
    found = []
    for index, one in zip(crossing, expected, strict=True):
        row = rows[index]
        least = min(MEAN_OF_NORMAL * row.noise, one.error)
        found.append(NotKept(row.name, row.title, row.margin, least, one.error))
    return found
