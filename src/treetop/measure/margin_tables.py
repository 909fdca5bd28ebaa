"""Margins: measure each table whole, and make them consistent before the descent begins.

The measurements of one attribute form a small tree: its margins, and those levels of the spine that refine this
attribute only. Least squares combine all its measurements, and whole numbers from the top down follow: every margin
adds up to its parent and to the total. A table of several attributes is then fitted to the kept tables of fewer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treetop._util.arrays import writable
from treetop._util.kernel import kernel
from treetop._util.numbers import NO_BOUND
from treetop.counts.counts import Counts, Digit
from treetop.domain.constraints import PublicFacts
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.marginal import Fit, cells_of, depths_alone, fit_to, is_within
from treetop.domain.table_cells import Depths
from treetop.noise import Key, NoiseStream
from treetop.plan.workload import Measured
from treetop.repair.least_squares import MeasuredLevel, least_squares
from treetop.repair.sharing import share_by_least_squares, share_within
from treetop.repair.two_sided import MOST_ROUNDS, MOST_SWEEPS, TOLERANCE, repair_block

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

_KEYS = 1 << 16
"""Leaves that are processed together, so that their nodes stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table of a few attributes that is measured before the descent."""

    depths: Depths
    """Number of levels by attribute."""
    how: Measured
    part: int
    """Index of the table in the workload."""
    exact: bool = True
    """Whether the counts agree with it exactly. If not, it is measured only, because it crosses another table."""


@dataclass(frozen=True)
class MarginalConstraint:
    """The margin that a level of the spine agrees with when it refines one attribute."""

    decided: Depths
    """The table that its counts add up to exactly."""
    refined: Depths
    """Number of refined levels by attribute."""
    is_measured: bool = False
    """Whether the level is itself a table that is measured before the descent."""
    limited: bool = False
    """Whether some of its cells are impossible or bounded; it then agrees as nearly as possible."""
    after: bool = False
    """Whether such a level is above it; it then agrees, in proportion, with the attribute's counts of that level."""


@dataclass(frozen=True, eq=False)
class Margins:
    """All tables that are measured before the descent."""

    trees: tuple[Hierarchy, ...]
    """The attributes, with the levels that the spine refines."""
    digits: tuple[tuple[Digit, ...], ...]
    """Positions of the ranks in the keys of the counts, by attribute and level."""
    tables: tuple[Table, ...]
    """Margins, and those levels of the spine that are tables of one attribute with margins."""
    exact: tuple[Depths, ...] = ()
    """The finest tables of one attribute that facts fix; kept without being measured."""


@dataclass(frozen=True, eq=False)
class ConsistentMarginals:
    """Measured tables and their consistent counts: noisy, hence public."""

    trees: tuple[Hierarchy, ...] = field(repr=False)
    tables: tuple[Table, ...]
    measured: Mapping[Depths, Ints] = field(repr=False)
    """Measurements of every cell of a table, with one axis per attribute."""
    counts: Mapping[Depths, Ints] = field(repr=False)
    """Consistent whole numbers, with the same axes."""

    def at(self, depths: Depths) -> Ints:
        """Return the counts of a table by summing up an exactly kept one."""
        finer = next(own for own in self.counts if self.is_exact(own) and is_within(depths, own))
        return coarser(self.trees, self.counts[finer], finer, depths)

    def is_exact(self, depths: Depths) -> bool:
        """Whether counts agree with a table exactly."""
        return all(table.exact for table in self.tables if table.depths == depths)


def by_group(table: Ints, depths: Depths, attribute: int) -> Ints:
    """Return a table with the nodes of one attribute as columns and the cells of all others as rows."""
    axis = int(np.count_nonzero(depths[:attribute]))
    return writable(np.ascontiguousarray(np.moveaxis(table, axis, -1).reshape(-1, table.shape[axis])))


def groups_under(
    trees: Sequence[Hierarchy], nodes: NDArray[np.integer], refined: Depths, depths: Depths, attribute: int
) -> Ints:
    """Return the row of `by_group` for each node."""
    others = [0 if one == attribute else depth for one, depth in enumerate(depths)]
    return cells_of(trees, others, refined, nodes)


def coarser(trees: Sequence[Hierarchy], values: Ints, fine: Depths, coarse: Depths) -> Ints:
    """Sum a table up to a coarser one."""
    axis = 0
    for tree, depth, wanted in zip(trees, fine, coarse, strict=True):
        if depth == 0:
            continue
        for level in range(depth - 1, max(wanted, 1) - 1, -1):
            values = np.add.reduceat(values, tree.first[level][:-1], axis=axis)
        if wanted == 0:
            values = values.sum(axis=axis)
        else:
            axis += 1
    return values


def measure_margins(
    margins: Margins, counts: Counts, total: int, key: Key, facts: PublicFacts | None = None
) -> ConsistentMarginals:
    """Measure all tables, and make them consistent with a known total, with each other and with facts."""
    measured = {}
    for table, true in zip(margins.tables, _true_tables(margins, counts), strict=True):
        noise = np.empty(true.size, np.int64)
        NoiseStream(table.how.law, key.derive("margin", table.part)).fill(noise, 0)
        measured[table.depths] = true + noise.reshape(true.shape)
    known = None if facts is None else Known(facts, margins.exact)
    return consistent(margins.trees, margins.tables, measured, total, known)


def _true_tables(margins: Margins, counts: Counts) -> Iterator[Ints]:
    """Yield the true counts of all cells of each table. Private."""
    done: dict[Depths, Ints] = {}
    for table in sorted(margins.tables, key=lambda one: -sum(one.depths)):
        finer = next((one for one in done if is_within(table.depths, one)), None)
        done[table.depths] = (
            _count_table(margins, counts, table.depths)
            if finer is None
            else coarser(margins.trees, done[finer], finer, table.depths)
        )
    yield from (done[table.depths] for table in margins.tables)


def _count_table(margins: Margins, counts: Counts, depths: Depths) -> Ints:
    every = zip(margins.trees, margins.digits, depths, strict=True)
    about = [(tree, digits, depth) for tree, digits, depth in every if depth]
    shape = tuple(tree.sizes[depth - 1] for tree, _, depth in about)
    table = np.zeros(math.prod(shape), np.int64)
    for start in range(0, len(counts), _KEYS):
        chunk = slice(start, min(start + _KEYS, len(counts)))
        cell = np.zeros(chunk.stop - start, np.int64)
        for tree, digits, depth in about:
            node = np.zeros(len(cell), np.int64)
            for first, digit in zip(tree.first[:depth], digits, strict=False):
                _go_down(node, first, counts.keys[digit.word][chunk], digit.shift, np.uint64(2**digit.bits - 1))
            cell *= tree.sizes[depth - 1]
            cell += node
        _count(table, cell, counts.before[start : chunk.stop + 1])
    return table.reshape(shape)


@kernel
def _go_down(node: Ints, first: Ints, keys: NDArray[np.uint64], shift: int, mask: np.uint64) -> None:
    """Replace nodes by their children, given the ranks in the paths of leaves."""
    for i in range(len(node)):
        node[i] = first[node[i]] + np.int64((keys[i] >> np.uint64(shift)) & mask)


@kernel
def _count(table: Ints, cell: Ints, before: Ints) -> None:
    for i in range(len(cell)):
        table[cell[i]] += before[i + 1] - before[i]


class Bounds(NamedTuple):
    """Lower and upper bounds of the nodes of one level of an attribute."""

    lower: Ints
    upper: Ints

    @property
    def exact(self) -> bool:
        """Whether the bounds fix every count."""
        return bool((self.lower == self.upper).all())

    @property
    def anything(self) -> bool:
        """Whether the bounds exclude any count."""
        return bool((self.lower > 0).any() or (self.upper < NO_BOUND).any())


@dataclass(frozen=True, eq=False)
class Known:
    """Facts about single attributes."""

    facts: PublicFacts
    """All facts of the plan."""
    exact: tuple[Depths, ...] = ()
    """The finest tables of one attribute that facts fix, beside the spine."""

    def of(self, attribute: int) -> dict[int, Bounds]:
        """Return the bounds of the nodes of an attribute by depth; levels without bounds are omitted."""
        tree, size, found = self.facts.spine.trees[attribute], len(self.facts.spine.trees), {}
        for depth in range(1, len(tree.levels) + 1):
            nodes = np.zeros((size, tree.sizes[depth - 1]), np.int64)
            nodes[attribute] = np.arange(tree.sizes[depth - 1])
            bounds = Bounds(*self.facts.around(depths_alone(size, attribute, depth), nodes))
            if bounds.anything:
                found[depth] = bounds
        return found

    def deepest(self, attribute: int) -> int:
        """Return the greatest depth at which an attribute is known exactly beside the spine."""
        return max((depths[attribute] for depths in self.exact), default=0)


def consistent(
    trees: Sequence[Hierarchy], tables: Sequence[Table], measured: Mapping[Depths, Ints], total: int,
    known: Known | None = None,
) -> ConsistentMarginals:  # fmt: skip
    """Return whole numbers from measurements that add up to the total and to each other; reads no private data.

    Ties are broken by the order of the hierarchies: the same measurements give the same counts.
    """
    counts: dict[Depths, Ints] = {}
    for attribute, tree in enumerate(trees):
        levels, deepest = _alone(tables, measured, attribute), 0
        bounds: dict[int, Bounds] = {}
        if known is not None:
            bounds, deepest = known.of(attribute), known.deepest(attribute)
        depth = max([*levels, deepest])
        for refined, count in enumerate(_whole_tree(tree, levels, total, depth, bounds), start=1):
            counts[depths_alone(len(trees), attribute, refined)] = count
    kept = ConsistentMarginals(tuple(trees), tuple(tables), measured, counts)
    for table in tables:
        if np.count_nonzero(table.depths) > 1:
            sigma = table.how.law.standard_deviation
            counts[table.depths] = _fitted(kept, table.depths, measured[table.depths], sigma)
    return kept


def _alone(tables: Sequence[Table], measured: Mapping[Depths, Ints], attribute: int) -> dict[int, tuple[Reals, float]]:
    """Return the measurements of one attribute and their variance by depth; sums of other tables serve too.

    A table of several attributes is used for a depth only if no table of the attribute alone has it.
    """
    found: dict[int, tuple[Reals, float]] = {}
    for table in sorted(tables, key=lambda one: np.count_nonzero(one.depths)):
        depth, values = table.depths[attribute], measured[table.depths]
        if depth == 0 or (np.count_nonzero(table.depths) > 1 and max(found, default=0) >= depth):
            continue
        axis = np.count_nonzero(table.depths[:attribute])
        others = tuple(one for one in range(values.ndim) if one != axis)
        variance = table.how.law.standard_deviation**2 * (values.size / values.shape[axis])
        found[depth] = (values.sum(axis=others).astype(np.float64), variance)
    return found


def _whole_tree(
    tree: Hierarchy, measured: Mapping[int, tuple[Reals, float]], total: int, deepest: int, bounds: Mapping[int, Bounds]
) -> Iterator[Ints]:
    """Yield whole numbers for every level of a tree, down to a depth, that add up to a total and are within bounds."""
    levels = [MeasuredLevel(np.zeros(1, np.int64), np.array([total]), np.zeros(1))]
    for depth in range(1, deepest + 1):
        first = tree.first[depth - 1]
        value, variance = measured.get(depth, (np.zeros(tree.sizes[depth - 1]), np.inf))
        if depth in bounds and bounds[depth].exact:
            value, variance = bounds[depth].lower.astype(np.float64), 0.0
        parent = np.repeat(np.arange(len(first) - 1), np.diff(first))
        levels.append(MeasuredLevel(parent, value, np.full(len(value), variance)))
    above = np.array([total])
    for depth, estimate in enumerate(least_squares(levels)[1:], start=1):
        first, out = tree.first[depth - 1], np.empty(len(estimate.value), np.int64)
        spread = np.where(np.isfinite(estimate.variance), np.maximum(estimate.variance, 1e-9), 1.0)
        if depth in bounds:
            share_within(first, estimate.value, spread, *bounds[depth], above, out)
        else:
            share_by_least_squares(first, estimate.value, spread, np.ones(len(out), np.bool_), above, 0, out)
        yield out
        above = out


def _fitted(kept: ConsistentMarginals, depths: Depths, measured: Ints, sigma: float) -> Ints:
    """Fit a table of several attributes to the kept tables; the cells of its last attribute are the columns."""
    tables = [own for own in kept.counts if kept.is_exact(own)]
    last = max(attribute for attribute, depth in enumerate(depths) if depth)
    fit = fit_to(depths, tables) or _nearest_fit(depths, tables, last)
    if any(is_within(fit.rows, own) for own in tables):
        rows = kept.at(fit.rows)
    else:
        rows = _fitted(kept, fit.rows, coarser(kept.trees, measured, depths, fit.rows), sigma)
    columns = kept.at(fit.columns)
    others, groups = ((*own[:last], 0, *own[last + 1 :]) for own in (depths, fit.columns))
    group = groups_of(kept.trees, others, groups)
    bounds = _first_children(kept.trees[last], fit.rows[last], depths[last])
    flat, wanted = (values.reshape(len(group), -1) for values in (measured, rows))
    out = np.zeros(flat.shape, np.int64)
    for number, cells in enumerate(columns.reshape(-1, columns.shape[-1])):
        for parent, (start, stop) in enumerate(pairwise(bounds)):
            there, own = np.flatnonzero((group == number) & (wanted[:, parent] > 0)), cells[start:stop]
            if len(there) and own.sum() > 0:
                block = np.zeros(len(there) * len(own), np.int64)
                target = flat[there, start:stop].astype(np.float64).ravel()
                repair_block(
                    target, target > 0, wanted[there, parent], own, 0, sigma, TOLERANCE, MOST_SWEEPS, MOST_ROUNDS, block
                )  # fmt: skip
                out[there, start:stop] = block.reshape(len(there), -1)
    return out.reshape(measured.shape)


def _nearest_fit(depths: Depths, tables: Sequence[Depths], last: int) -> Fit:
    """Return the fit of a table that is kept nearly: it agrees with some of the kept tables."""
    columns = max((tuple(map(min, own, depths)) for own in tables if own[last] >= depths[last]), key=sum)
    return Fit((*depths[:last], 0, *depths[last + 1 :]), columns)


def _first_children(tree: Hierarchy, coarse: int, fine: int) -> list[int]:
    """Return the start of each coarse node's range in a finer depth, and its size; depth 0 is the root."""
    if coarse == 0:
        return [0, tree.sizes[fine - 1]]
    first = np.searchsorted(tree.ancestors(coarse - 1, fine - 1), np.arange(tree.sizes[coarse - 1] + 1))
    return [int(at) for at in first]


def groups_of(trees: Sequence[Hierarchy], fine: Depths, coarse: Depths) -> Ints:
    """Return the coarser cell of each finer cell, both in the order of their tables."""
    group = np.zeros(1, np.int64)
    for tree, depth, wanted in zip(trees, fine, coarse, strict=True):
        if depth:
            own = tree.ancestors(wanted - 1, depth - 1) if wanted else np.zeros(tree.sizes[depth - 1], np.int64)
            group = (group[:, None] * (tree.sizes[wanted - 1] if wanted else 1) + own[None, :]).ravel()
    return group
