"""The errors to expect of any table, measured or summed, from public sizes alone.

A table is told by its depths: how many levels of each attribute it has refined. With hierarchies of n_0 = 1 < n_1 < …
nodes, taken to be balanced, what a release says of all tables falls into independent components, one for each vector a
of depths: what is new at these depths, and known from nothing coarser. A component has Π d_a dimensions, d_0 = 1 and
d_i = n_i − n_{i−1}. A table T, whose nodes hold s_T leaves each, tells of every component a ≤ T, with precision
s_T / variance of its noise. The mean variance of a node of table i is then

    V_i = Σ_{a ≤ i} Π d_a · s_i / (n_i · Λ_a),    Λ_a = Σ s_T / σ_T²  over the tables that the estimate takes a from.

Least squares take a component from all tables that tell of it. A descent takes it from the first level that does, and
what margins tell of it from the margins alone, all of them together.

It holds where no count is near zero. Counts that are not negative have smaller errors, the more so the smaller they
are; only sums of very many small counts can have larger ones. A margin that crosses another and is not kept tells
nothing here: on real tables the counts had 0.1 to 1.8 times the errors that follow without it, though its own noise was
far smaller. Where margins of several attributes are kept beside others, it is a rough guide: how they are made to agree
is not in it. Of public facts, those are in it that decide a
whole table; what bounds and impossible cells gain comes on top.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from treetop.choose.error_laws import Floats
from treetop.domain.margin import exact_margins, title_of
from treetop.domain.spine import Spine
from treetop.errors import PlanError
from treetop.plan.accuracy import CONFIDENCE
from treetop.plan.plan import PurePlan
from treetop.repair import REPAIRS

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
    def of(plan: PurePlan) -> Tables:
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

    plan: PurePlan
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


def expected_errors(plan: PurePlan, tables: Sequence[Depths]) -> list[Expected]:
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


def margins_not_kept(plan: PurePlan, confidence: float = CONFIDENCE) -> list[NotKept]:
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
