"""The errors to expect of any table, measured or summed, from public sizes alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from treetop._util.dtypes import Flags, Floats, Ints
from treetop.domain.marginal import exact_margins, title_of
from treetop.domain.spine import Spine
from treetop.errors import PlanError
from treetop.plan.mechanism import TopDown
from treetop.plan.plan import Plan
from treetop.plan.workload import CONFIDENCE
from treetop.repair import REPAIRS

Depths: TypeAlias = tuple[int, ...]
"""A table: for each attribute of the spine, how many of its levels are refined; 0 if it is summed over."""

MOST_COMPONENTS = 1 << 20
"""Most components of a table; a plan of twenty attributes with one level each has as many."""
_NOTHING = 1e-300
"""Precision of what no table tells."""
_GUESSED = 1e100
MEAN_OF_NORMAL = math.sqrt(2 / math.pi)
"""The mean absolute value of normal noise, in standard deviations."""


@dataclass(frozen=True)
class Tables:
    """The tables that a plan measures, and how their measurements are combined."""

    sizes: tuple[tuple[int, ...], ...]
    """For each attribute, the number of nodes at every depth; the first is 1."""
    levels: tuple[Depths, ...]
    """The measured levels of the spine, from the top; the total if it is measured."""
    margins: tuple[Depths, ...] = ()
    exact_total: bool = True
    top_down: bool = True
    """Counts are those of the descent; otherwise least squares of all measurements."""
    known: tuple[Depths, ...] = ()
    """Tables that public facts determine: they have no error."""
    crossing: tuple[Depths, ...] = ()
    """Margins that are measured and not kept: released counts are taken from other tables."""

    @staticmethod
    def of(plan: Plan) -> Tables:
        """Return what a plan measures."""
        margins, top_down = plan.margin_tables, TopDown.runs(plan)
        kept = exact_margins(plan.spine, margins) if top_down else [True] * len(margins)
        return Tables(
            sizes_of(plan.spine),
            tuple(plan.spine.depths(part.index) for part in plan.levels if part.is_measured),
            tuple(margin.depths for margin in margins),
            plan.levels[0].is_exact,
            # Under margins, counts of lower error are the descent's but for the leaves.
            top_down and (bool(margins) or not REPAIRS[plan.repair].again),
            plan.known_tables,
            tuple(margin.depths for margin, is_kept in zip(margins, kept, strict=True) if not is_kept),
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
    """The variances of the wanted tables as functions of the precision (1/variance) of the measured ones."""

    tables: Tables
    wanted: tuple[Depths, ...]

    def variances(self, precision: Floats) -> Floats:
        """Return the mean variance of a node of every wanted table."""
        coefficients, weights = self.components
        variances: Floats = coefficients @ (1 / np.maximum(precision @ weights, _NOTHING))
        return variances

    def pulls(self, precision: Floats, weights: Floats) -> tuple[float, Floats]:
        """Return Σ weights·log V, and minus its derivative by the logarithm of each measured table's precision.

        Variances are inversely proportional to all precisions together, so the pulls sum to the weights.
        """
        coefficients, of_tables = self.components
        settled = precision @ of_tables
        variances = coefficients @ (1 / settled)
        slope = (weights / variances) @ coefficients / settled**2
        return float(weights @ np.log(variances)), precision * (of_tables @ slope)

    @cached_property
    def components(self) -> tuple[Floats, Floats]:
        """The variance that each class of components (column) adds to each wanted table (row) at precision 1, and its
        precision per unit of precision of each measured table (row).

        A class is of all components that are taken from the same tables.
        """
        tables = self.tables
        deepest = np.max([*self.wanted, (0,) * len(tables.sizes)], axis=0)
        if math.prod(int(depth) + 1 for depth in deepest) > MOST_COMPONENTS:
            raise PlanError(
                "the plan has too many attributes for errors of all of them together: name tables of a few, such as "
                '`care="place.state * sex"`'
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
        added = (np.bincount(group, size * _under(lattice, table), len(first)) for table in self.wanted)
        coefficients = [own * leaves / tables.nodes(table) ** 2 for own, table in zip(added, self.wanted, strict=True)]
        wanted = np.array(coefficients).reshape(len(self.wanted), len(first))
        used = wanted.any(axis=0)
        return wanted[:, used], weights[:, used]

    def _taken(self, lattice: Ints) -> Flags:
        """Whether the estimate takes each component (column) from each measured table (row)."""
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
        taken: Flags = np.where(by_margins, of_margins, first)
        return taken


def _under(lattice: Ints, table: Depths) -> Flags:
    """Whether a table determines each component."""
    return np.asarray(np.all(lattice <= np.array(table)[:, None], axis=0))


LEAST_SHARE = 0.01
"""Least share of a measured table: a level must be measured for the descent to go on below it."""
_STEPS = 1000
_CLOSE = 1e-9


def best_shares(
    model: ErrorModel, weights: Floats, scale: Floats, power: int = 1, least: float = LEAST_SHARE
) -> Floats:
    """Return the shares of the measured tables, none below `least`, with the smallest Σ weights·log V.

    A table's precision is scale·share^power. At the optimum, shares are in proportion to their pulls, but for those at
    the least. A step goes so far towards that on the logarithmic scale that tables which add to one error alone are
    settled at once. (With power 2, Laplace noise, there may be several optima, and this is one of them.)
    """
    share = np.full(len(scale), 1 / len(scale))
    if len(share) * least >= 1:
        return share
    step = 1 / (1 + power)
    value = math.inf
    for _ in range(_STEPS):
        new, pull = model.pulls(scale * share**power, weights)
        if value - new < _CLOSE:
            break
        value, share = new, _raised(share ** (1 - step) * (pull / pull.sum()) ** step, least)
    return share


def _raised(share: Floats, least: float) -> Floats:
    """Scale shares to a sum of 1 with none below the least."""
    low = np.zeros(len(share), dtype=bool)
    while True:
        free = ~low
        scaled = np.where(low, least, share * (1 - least * low.sum()) / share[free].sum())
        if not (scaled[free] < least).any():
            return scaled
        low |= scaled < least


@dataclass(frozen=True)
class Expected:
    """The mean variance of one table's counts, if no count is near zero."""

    table: Depths
    title: str
    nodes: int
    variance: float

    @property
    def is_told(self) -> bool:
        """Whether a measured table tells it; otherwise its counts are a guess."""
        return self.variance < _GUESSED

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.variance)

    @property
    def error(self) -> float:
        """The mean absolute error."""
        return MEAN_OF_NORMAL * self.deviation


def expected_errors(plan: Plan, tables: Sequence[Depths]) -> list[Expected]:
    """Return the errors to expect of some tables of a plan's release, measured or summed; no data is read.

    All advice on errors of plans without a twin goes through here.
    """
    if not tables:
        return []
    measured = Tables.of(plan)
    variances = np.zeros(len(tables))
    if measured.all:
        precision = np.array([part.deviation**-2.0 for part in plan.workload if part.is_measured])
        variances = ErrorModel(measured, tuple(tables)).variances(precision)
    return [
        Expected(table, title_of(plan.spine, table), measured.nodes(table), float(variance))
        for table, variance in zip(tables, variances, strict=True)
    ]


@dataclass(frozen=True)
class NotKept:
    """A listed margin that crosses another one, so that the released counts do not add up to it."""

    name: str
    """As shares and costs name it."""
    counts: str
    margin: int
    """Its own measurement is within this of the truth, with the confidence asked for."""
    least: float
    """Mean absolute error of its released counts if they followed its own measurement."""
    most: float
    """Mean absolute error if they are sums of other tables alone, and no count is near zero."""

    def __str__(self) -> str:
        return (
            f"{self.name} will not be kept, because it crosses a margin listed before it. Its counts are released as "
            f"sums of the leaves: the ± {self.margin:,} of its own measurement does not apply to them. Expect a mean "
            f"error between {self.least:,.3g} and about {self.most:,.3g}. Leave it out, or list it first."
        )


def margins_not_kept(plan: Plan, confidence: float = CONFIDENCE) -> list[NotKept]:
    """Return the margins of a plan that are not kept, with the errors to expect of them; no data is read."""
    if not TopDown.runs(plan):  # no table has precedence in a joint fit
        return []
    kept = exact_margins(plan.spine, plan.margin_tables)
    crossing = [index for index, is_kept in enumerate(kept) if not is_kept]
    rows = plan.accuracy(confidence).margins if crossing else ()
    expected = expected_errors(plan, [plan.margin_tables[index].depths for index in crossing])
    return [
        NotKept(row.name, row.title, row.margin, min(MEAN_OF_NORMAL * row.noise, one.error), one.error)
        for row, one in zip((rows[index] for index in crossing), expected, strict=True)
    ]
