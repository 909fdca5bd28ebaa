"""Whole numbers of lower error: estimates from all measurements, made non-negative and consistent from the top down.

Above the last level, least squares give each child of a node its share. If the descent left a child at zero, its own
children were not measured. It stays at zero, since its count could not be placed below it. At the last measured level
the counts are shared by how probable each is to be there (`prior`), for the least expected absolute error. All of it
works on noisy values, so it costs no privacy.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from treetop._util.arrays import copy_into, writable
from treetop._util.dtypes import Flags, Floats, Ints, whole_number, whole_numbers
from treetop._util.kernel import kernel
from treetop.counts.counts import pack
from treetop.domain.marginal import cells_of, decided_at, depths_alone, stages_of
from treetop.domain.spine import Spine
from treetop.domain.spine_level import AttributeStep, Level
from treetop.measure.blocks import FAR, cells_of_rows
from treetop.measure.merged import Rows, fit_rows
from treetop.noise import Law
from treetop.release.margins import MarginTable, columns_of, find
from treetop.release.measurements import LevelMeasurements, Measurements, measured_tree
from treetop.release.tree import LevelNodes, ReleasedTree, spans_at
from treetop.repair.least_squares import from_below
from treetop.repair.sharing import share_by_least_squares
from treetop.repair.state import ASCENDING, EUCLIDEAN, SCRATCH_SIZE, STATE_SIZE, begin, mix, settled, solve
from treetop.repair.two_sided import open_block
from treetop.repair.whole_blocks import candidates, round_block

# How the true counts of a level are spread, learned from the noisy measurements alone: empirical Bayes.

STEPS = 129
"""Number of thresholds of the probability, evenly spaced from −8 to 8 standard deviations of a normal law."""
ENOUGH = 1000
"""Least size of a class of children; a smaller one is joined with the next."""
ROUNDS = 400
"""Rounds of expectation maximisation: enough for the bulk, too few to make spikes of single measurements."""
_CELLS = 32
"""Most cells per standard deviation of the noise."""
_BELOW, _WITHIN, _ABOVE = 7, 9, 14
"""In standard deviations: tables hold measurements from -7 up to 9, and true counts up to 14."""
_GROWTH = 0.35
"""How much wider each bin of true counts is than those before it together."""


class Posterior(NamedTuple):
    """For the children of one level: how many units each should have, by how sure each unit is."""

    cell: int
    lowest: int
    """Least measurement in the tables."""
    units: Ints
    """By class, step and cell of the measurement: the largest y with P(count ≥ y) above the step's probability."""
    shift: Ints
    """By step: the same less the measurement, for measurements above the tables."""


def thresholds() -> Floats:
    """Return the probabilities of the steps, falling: of a normal law above -8, …, 8 standard deviations."""
    return np.array([0.5 * math.erfc(u / math.sqrt(2)) for u in np.linspace(-8, 8, STEPS)])


def learn(law: Law, measured: Ints, kind: Ints) -> Posterior:
    """Learn the spread of true counts in every class of children (`kind`, from 0) from their measurements."""
    sigma = law.standard_deviation
    cell = max(round(sigma / _CELLS), 1)
    lowest = -int(_BELOW * sigma) // cell * cell
    cells = max((int(_WITHIN * sigma) - lowest) // cell, 1)
    true = np.arange(max(int(_ABOVE * sigma) // cell, 4) + 1) * cell
    # The middle of a cell stands for it.
    off = np.abs(lowest + cell * np.arange(cells)[:, None] + (cell - 1) / 2 - true[None, :])
    likelihood = np.exp(-float(law.rate) * off**law.power)
    at = np.clip((measured - lowest) // cell, 0, cells)
    classes = int(kind.max(initial=-1)) + 1
    seen = np.bincount(kind * (cells + 1) + at, minlength=classes * (cells + 1)).reshape(classes, cells + 1)
    limits = thresholds()
    units = []
    for row in seen:  # by step and cell, how many true counts above zero are at least that probable to be reached
        joint = likelihood * _spread(row[:-1], likelihood)
        chance = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        reached = np.cumsum(chance[:, ::-1], axis=1)[:, ::-1][:, 1:]
        found = np.stack([np.searchsorted(-own, -limits) for own in reached], axis=1)
        units.append(np.maximum.accumulate(found, axis=0).astype(np.int64) * cell)
    # Of a large count nothing is known but its measurement: P(count ≥ y) = P(N ≤ x − y).
    shift = np.array([-law.quantile(Fraction(limit)) for limit in limits.tolist()], np.int64)
    return Posterior(cell, lowest, np.stack(units), shift)


def classes(average: Floats) -> Ints:
    """Class children by their parent's average count, in octaves; small classes are joined with the next."""
    octave = np.clip(np.floor(np.log2(np.maximum(average, 1e-3))), -12, 40).astype(np.int64) + 12
    sizes = np.bincount(octave)
    joined, current, size = np.zeros(len(sizes), np.int64), 0, 0
    for i in np.flatnonzero(sizes).tolist():
        if size >= ENOUGH and sizes[i:].sum() >= ENOUGH:
            current, size = current + 1, 0
        joined[i] = current
        size += int(sizes[i])
    return joined[octave]


def learn_by_size(law: Law, measured: Ints, expected: Floats, useful: Flags) -> tuple[Ints, Posterior]:
    """Return the class of every child by the count that is expected of it, and what the useful ones teach."""
    kind = np.zeros(len(measured), np.int64)
    kind[useful] = classes(expected[useful])
    return kind, learn(law, measured[useful], kind[useful])


def _spread(seen: Ints, likelihood: Floats) -> Floats:
    """Return the probabilities of the true counts under which the measurements are likeliest; smooth within bins."""
    edges = [0, 1]
    while edges[-1] < likelihood.shape[1]:
        edges.append(edges[-1] + max(1, int(edges[-1] * _GROWTH)))
    edges[-1] = likelihood.shape[1]
    width = np.diff(edges)
    there = seen > 0
    bins = np.add.reduceat(likelihood[there], edges[:-1], axis=1) / width
    weight = np.full(len(width), 0.5 / max(len(width) - 1, 1))
    weight[0] = 0.5
    number = seen[there].astype(np.float64)
    for _ in range(ROUNDS if number.sum() > 0 else 0):
        weight *= bins.T @ (number / np.maximum(bins @ weight, 1e-300)) / number.sum()
    weight = (weight + 1e-7) / (weight + 1e-7).sum()
    return np.repeat(weight / width, width)


# Sharing a node's count among its children, as whole numbers, by Bayes' rule.


@kernel
def share_by_probability(
    first: Ints, measured: Ints, kind: Ints, learned: Posterior, count: Ints, seed: int, out: Ints
) -> None:
    """Share counts among children so that the expected sum of absolute errors is least.

    A unit more for a child that has y changes its expected error by 1 − 2·P(count > y), which grows with y. So it is
    best to give unit by unit to the child for which the next one is likeliest (exactly, up to the distance between two
    steps): all units above one threshold, which is found by bisection, then the rest to those right below it.
    """
    state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
    steps = len(learned.shift)
    for i in range(len(count)):
        a, b = first[i], first[i + 1]
        if count[i] <= 0 or b - a <= 1:
            out[a:b] = count[i]
            continue
        low, high = -1, steps
        while high - low > 1:
            middle = (low + high) // 2
            total = np.int64(0)
            for j in range(a, b):
                total += due(learned, kind[j], measured[j], middle)
            if total <= count[i]:
                low = middle
            else:
                high = middle
        left = count[i]
        for j in range(a, b):
            out[j] = due(learned, kind[j], measured[j], max(low, 0))
            left -= out[j]
        if left == 0:
            continue
        if low < 0 or high == steps:  # beyond the steps: all children give, or take, alike
            begin(state, b - a, count[i], EUCLIDEAN, ASCENDING, np.uint64(seed + a))
            solve(state, scratch, out[a:b])
            for j in range(a, b):
                out[j] = settled(state, out[j])
            continue
        room = np.empty(b - a, np.int64)
        for j in range(a, b):
            room[j - a] = max(due(learned, kind[j], measured[j], high) - out[j], 0)
        give(room, measured[a:b], left, seed + a, out[a:b])


@kernel
def due(learned: Posterior, kind: int, measured: int, step: int) -> np.int64:
    """Return how many units a child has at a step."""
    at = max((measured - learned.lowest) // learned.cell, 0)
    if at < learned.units.shape[2]:
        return np.int64(learned.units[kind, step, at])
    return np.int64(max(measured + learned.shift[step], 0))


@kernel
def give(room: Ints, measured: Ints, left: int, seed: int, out: Ints) -> None:
    """Give the rest to the children that have room at the next step, in proportion to it; equals at random."""
    order = np.empty(len(out), np.int64)
    total = 0
    for j in range(len(out)):
        total += room[j]
        order[j] = (measured[j] << 20) | np.int64(mix(np.uint64(seed + j)) >> np.uint64(44))
    passed, given = np.int64(0), np.int64(0)
    for j in np.argsort(-order):
        passed += room[j]
        # In floats, since the product may leave 64 bits; rounding does not change the sum.
        due_ = np.int64(left)
        if passed < total:
            due_ = np.int64(min(due_, np.ceil(float(left) * float(passed) / total)))
        part = due_ - given
        out[j] += part
        given += part


# Rows of a merged last level: the counts after all its attributes but the last, by the probability of each unit.


def rows_of_last(
    law: Law, level: Level, above: LevelNodes, seen: LevelMeasurements, tables: Sequence[Ints | None]
) -> Rows:
    """Return the rows, zeros among them, of all nodes above that the level divides; by one attribute, these themselves.

    `tables` are the margins of the attributes that it refines, None if there is none.
    """
    fanout = level.fanout(above.nodes)
    there = fanout > 1
    place = np.cumsum(fanout) - fanout  # ties are broken alike whenever they are computed
    rows = Rows(above.nodes[:, there].astype(np.int32), above.count[there], fanout[there], place[there])
    for at, (part, table) in enumerate(zip(level.parts[:-1], tables, strict=False)):
        sums = _sums(law, rows, part, seen, list(zip(level.parts, tables, strict=True))[at:])
        if table is not None:
            groups, far = np.zeros(len(rows.count), np.int64), FAR * law.standard_deviation
            sums = fit_rows(rows, part, groups, table[None, :], sums, sums, far, ASCENDING)
        rows = rows.refined(part, sums)
    return rows


def _sums(
    law: Law,
    rows: Rows,
    part: AttributeStep,
    seen: LevelMeasurements,
    left: Sequence[tuple[AttributeStep, Ints | None]],
) -> Ints:
    """Share the counts of rows among all their cells, and sum up those of each child by an attribute.

    Classes of cells follow from the counts that rows and margins lead to expect of them.
    """
    if len(seen) == 0:
        return np.zeros(0, np.int64)
    expected = np.repeat(rows.count.astype(np.float64), rows.cells)
    for one, table in left:
        node = seen.nodes[one.attribute]
        if table is None:
            expected /= np.diff(one.first)[one.above[node]]
        else:
            expected *= table[node] / np.maximum(np.add.reduceat(table, one.first[:-1])[one.above[node]], 1)
    kind, learned = learn_by_size(law, seen.value, expected, expected > 0)
    out = np.zeros(len(seen), np.int64)
    share_by_probability(np.concatenate([[0], np.cumsum(rows.cells)]), seen.value, kind, learned, rows.count, 0, out)
    fanout = part.fanout(rows.nodes)
    inner = np.repeat(rows.cells // fanout, fanout)
    sums: Ints = np.add.reduceat(out, np.cumsum(inner) - inner)
    return sums


# Counts of lower error under margins: the last level shared by how probable each unit is, rows and columns exact.


_SWEEPS = 30
"""Rounds in which rows and columns take turns."""
_NONE = cast(int, np.int64(0))  # a plain 0 is a type of its own to Numba, with a variant of each kernel
_NEAR = 0.5
"""A fit ends when no column is off by more."""
_AHEAD = 24.0
"""Cells with units up to this many steps (three standard deviations) from their row's first threshold are fitted."""
_FAR = 8.0
"""Largest move of a column at a time: steps, a standard deviation."""


def share_under_margin(law: Law, first: Ints, measured: Ints, node: Ints, columns: Ints, count: Ints) -> Ints:
    """Share counts of rows among cells; `first` says the first cell of each row, `node` the column of each cell.

    Rows with the same cells are one block; nothing else of the columns belongs to a block.
    """
    fanout = np.diff(first)
    several = fanout > 1
    owner = np.repeat(np.arange(len(fanout)), fanout)
    eldest = node[np.minimum(first[:-1], max(len(node) - 1, 0))] if len(node) else np.zeros(len(fanout), np.int64)
    order = np.argsort(eldest, kind="stable")
    before = np.concatenate([[0], np.cumsum(columns)])
    together = (before[eldest + fanout] - before[eldest])[owner]
    expected = count[owner] * (columns[node] / np.maximum(together, 1))
    kind, learned = learn_by_size(law, measured, expected, several[owner] & (expected > 0))
    out = np.zeros(len(measured), np.int64)
    _share_blocks(first, order, eldest, writable(measured), kind, learned, writable(columns), writable(count), out)
    return out


@kernel
def _share_blocks(
    first: Ints, order: Ints, eldest: Ints, measured: Ints, kind: Ints, learned: Posterior, columns: Ints, count: Ints,
    out: Ints,
) -> None:  # fmt: skip
    at = 0
    while at < len(order):
        end = at + 1
        while end < len(order) and eldest[order[end]] == eldest[order[at]]:
            end += 1
        width = first[order[at] + 1] - first[order[at]]
        own = columns[eldest[order[at]] : eldest[order[at]] + width]
        if width == 1:
            for row in order[at:end]:
                out[first[row]] = count[row]
        elif end - at == 1 and own.sum() == count[order[at]]:
            copy_into(out[first[order[at]] :], own)
        else:
            _share_block(order[at:end], first, measured, kind, learned, own, count, out)
        at = end


@kernel
def _share_block(
    rows: Ints, first: Ints, measured: Ints, kind: Ints, learned: Posterior, columns: Ints, count: Ints, out: Ints
) -> None:
    height, width = len(rows), len(columns)
    near = np.zeros(height * width, np.bool_)
    target = np.empty(height * width)
    wanted, a = np.empty(height, np.int64), np.empty(height)
    for i in range(height):
        at, wanted[i] = first[rows[i]], count[rows[i]]
        a[i] = _first_step(learned, kind[at : at + width], measured[at : at + width], columns, wanted[i])
        for j in range(width):
            target[i * width + j] = measured[at + j]
            near[i * width + j] = _units(learned, kind[at + j], measured[at + j], a[i] + _AHEAD) > 0.0
    open_block(target, near, columns, np.inf)
    start, column, _ = candidates(target, near, wanted, columns, _NONE, _NONE)
    cell_kind, cell_measured = np.empty(len(column), np.int64), np.empty(len(column), np.int64)
    for i in range(height):
        for k in range(start[i], start[i + 1]):
            at = first[rows[i]] + column[k]
            cell_kind[k], cell_measured[k] = kind[at], measured[at]
    fitted = _fit(start, column, cell_kind, cell_measured, learned, wanted, columns, a)
    whole = np.empty(height * width, np.int64)
    round_block(target, near, start, column, fitted, wanted, columns, _NONE, whole)
    for i in range(height):
        copy_into(out[first[rows[i]] :], whole[i * width : (i + 1) * width])


@kernel
def _units(learned: Posterior, kind: int, measured: int, step: float) -> float:
    """Return how many units a cell has at a threshold: between two steps, in proportion."""
    last = len(learned.shift) - 1
    at = min(max(step, 0.0), float(last))
    low = int(at)
    units = float(due(learned, kind, measured, low))
    if at > low:
        units += (at - low) * (due(learned, kind, measured, low + 1) - units)
    return units


@kernel
def _first_step(learned: Posterior, kind: Ints, measured: Ints, columns: Ints, count: int) -> float:
    """Return the last step at which a row has no more than its count, were there no columns."""
    low, high = 0, len(learned.shift)
    while high - low > 1:
        middle = (low + high) // 2
        total = np.int64(0)
        for j in range(len(measured)):
            if columns[j] > 0:
                total += due(learned, kind[j], measured[j], middle)
        if total <= count:
            low = middle
        else:
            high = middle
    return float(low)


@kernel
def _fit(
    start: Ints, column: Ints, kind: Ints, measured: Ints, learned: Posterior, rows: Ints, columns: Ints, a: Floats
) -> Floats:
    """Return the fitted count of every candidate: rows have their counts exactly, columns nearly."""
    b, total, slope = np.zeros(len(columns)), np.empty(len(columns)), np.empty(len(columns))
    fitted = np.empty(len(column))
    for _ in range(_SWEEPS):
        total[:] = 0.0
        slope[:] = 0.0
        for i in range(len(rows)):
            own = slice(start[i], start[i + 1])
            a[i] = _row_step(column[own], kind[own], measured[own], learned, b, rows[i], a[i], fitted[own])
            for k in range(start[i], start[i + 1]):
                total[column[k]] += fitted[k]
                slope[column[k]] += _units(learned, kind[k], measured[k], a[i] + b[column[k]] + 1.0) - fitted[k]
        worst = 0.0
        for j in range(len(columns)):
            lacking = columns[j] - total[j]
            worst = max(worst, abs(lacking))
            b[j] += min(max(0.7 * lacking / max(slope[j], 0.1), -_FAR), _FAR)
        if worst < _NEAR:
            break
    return fitted


@kernel
def _row_step(
    column: Ints, kind: Ints, measured: Ints, learned: Posterior, b: Floats, count: int, step: float, fitted: Floats
) -> float:
    """Find the threshold at which a row has its count, by narrowing from nearby; write the fitted counts of its cells.

    Beyond the steps all cells give, or take, alike.
    """
    low, high, stride = step, step, 0.5
    low_total = high_total = _row(column, kind, measured, learned, b, step, fitted)
    most = 3.0 * len(learned.shift)
    while low_total > count and low > -most:
        high, high_total = low, low_total
        low -= stride
        stride *= 3.0
        low_total = _row(column, kind, measured, learned, b, low, fitted)
    while high_total < count and high < most:
        low, low_total = high, high_total
        high += stride
        stride *= 3.0
        high_total = _row(column, kind, measured, learned, b, high, fitted)
    total = low_total
    step = low
    for turn in range(40):
        if abs(total - count) < 1e-6 or high - low < 1e-9 or high_total <= low_total:
            break
        share = 0.5 if turn % 3 == 2 else (count - low_total) / (high_total - low_total)
        step = low + share * (high - low)
        total = _row(column, kind, measured, learned, b, step, fitted)
        if total > count:
            high, high_total = step, total
        else:
            low, low_total = step, total
    total = _row(column, kind, measured, learned, b, step, fitted)
    for k in range(len(fitted)):
        fitted[k] *= count / total if total > 0.0 else 0.0
    if total == 0.0:
        fitted[:] = count / len(fitted)
    return step


@kernel
def _row(column: Ints, kind: Ints, measured: Ints, learned: Posterior, b: Floats, step: float, fitted: Floats) -> float:
    total = 0.0
    for k in range(len(fitted)):
        fitted[k] = _units(learned, kind[k], measured[k], step + b[column[k]])
        total += fitted[k]
    return total


LARGEST = 1 << 56
"""No plan gives a measurement beyond it; one in a folder that was tampered with may be."""
FEWEST = 50
"""With fewer measurements than this, no spread of true counts is learned."""


def lower_error(measurements: Measurements, total: int) -> tuple[NDArray[np.int32], Ints]:
    """Return leaves (by attribute, in spine order) and their counts above zero, from all measurements.

    `total` is the public or the measured total. Equals are treated alike, by chance that comes from the measurements
    themselves: they are public, and the same ones give the same answer.
    """
    spine, laws = measurements.spine, measurements.laws
    whole_number(total, "the total", least=-LARGEST)
    for seen in measurements.levels:
        if seen is not None:
            whole_numbers(seen.value, "the measurements", most=LARGEST)
    tree = measured_tree(measurements, total)
    estimates = from_below(tree)
    seed = _seed(measurements)
    last = max(index for index, level in enumerate(tree) if index == 0 or level.measured.any())
    count = np.array([max(round(float(estimates[0].value[0])), 0)])
    leaves: list[tuple[Ints, Ints]] = []
    for index in range(last + 1):
        level, leaf = tree[index], spans_at(spine, index, tree[index].nodes)
        single = (leaf[1] - leaf[0] == 1).all(axis=0)
        divided = np.zeros(len(level), dtype=bool)
        if index < last:
            divided[tree[index + 1].parent] = True
        if index > 0:
            first = np.searchsorted(level.parent, np.arange(len(count) + 1))
            law, out = laws[index], np.zeros(len(level), np.int64)
            if index == last and law is not None and single.all() and len(level) >= FEWEST:
                _share_last(law, first, level.value, level.measured, count, seed, out)
            else:
                variance = np.where(np.isfinite(estimates[index].variance), estimates[index].variance, 1.0)
                share_by_least_squares(first, estimates[index].value, variance, divided | single, count, seed, out)
            count = out
        done = single & ~divided & (count > 0)
        leaves.append((leaf[0][:, done], count[done]))
    return _in_order(spine, leaves)


def lower_error_under(
    margins: Sequence[MarginTable], measurements: Measurements, released: ReleasedTree
) -> tuple[NDArray[np.int32], Ints]:
    """Return the same if margins are kept: of the descent's counts, those of the last level are shared anew.

    Coarser counts stay as they are, so that a release gives the same ones again. If the last level refines several
    attributes at once, the counts are shared by one attribute after the other, and rows have the counts after all but
    the last. Beside margins of several attributes the last level stays as it is, too.
    """
    spine = measurements.spine
    last = max(index for index, law in enumerate(measurements.laws) if law is not None)
    seen, law = measurements.levels[last - 1], measurements.laws[last]
    level = spine.levels[last - 1]
    kept = [table for table in margins if table.exact]
    several = any(len(table.margin.attributes) > 1 for table in kept)
    if seen is None or law is None or len(seen) < FEWEST or (level.is_merged and several):
        return released.nodes, released.count
    above, fanout = released.at(last - 1), released.fanout(last)
    every = rows_of_last(law, level, above, seen, [_alone(margins, spine, part) for part in level.parts])
    own, first = every.count, np.concatenate([[0], np.cumsum(every.cells)])
    rows = np.flatnonzero(own > 0)
    cells = cells_of_rows(np.diff(first), rows)
    first, value, own = np.concatenate([[0], np.cumsum(np.diff(first)[rows])]), seen.value[cells], own[rows]
    counts = np.zeros(len(seen), np.int64)
    stage = stages_of(spine, level)[-1]
    decided = decided_at(stage, [table.margin for table in kept])
    if decided is None:
        shared = np.zeros(len(cells), np.int64)
        _share_last(law, first, value, np.ones(len(cells), np.bool_), own, _seed(measurements), shared)
    else:
        columns = columns_of(kept, spine, decided, stage.attribute)
        others = tuple(0 if one == stage.attribute else depth for one, depth in enumerate(decided))
        nodes = seen.nodes[:, cells].astype(np.int64)
        group = cells_of(spine.trees, others, stage.depths, nodes)
        node = group * columns.shape[-1] + nodes[stage.attribute]
        shared = share_under_margin(law, first, value, node, columns.ravel(), own)
    counts[cells] = shared
    there = counts > 0
    only = np.flatnonzero(fanout == 1)
    alone = above.nodes[:, only].astype(np.int32)
    level.go_down(alone, np.zeros(len(only), np.int64))
    nodes = np.concatenate([seen.nodes[:, there], alone], axis=1)
    leaves = spans_at(spine, last, nodes)[0]
    return _in_order(spine, [(leaves, np.concatenate([counts[there], above.count[only]]))])


def _alone(margins: Sequence[MarginTable], spine: Spine, part: AttributeStep) -> Ints | None:
    """Return the margin of an attribute alone as far as a level refines it, if it is kept."""
    table = find(margins, spine, depths_alone(len(spine.trees), part.attribute, part.depth + 1))
    return None if table is None else table.count


def _share_last(law: Law, first: Ints, value: Ints, measured: Flags, count: Ints, seed: int, out: Ints) -> None:
    """Share counts among children without further measurements."""
    fanout = np.diff(first)
    average = np.repeat(count / np.maximum(fanout, 1), fanout)
    kind, learned = learn_by_size(law, value, average, measured & (average > 0))
    share_by_probability(first, writable(value), kind, learned, writable(count), seed, out)


def _seed(measurements: Measurements) -> int:
    digest = hashlib.sha256()
    for level in measurements.levels:
        if level is not None:
            digest.update(np.ascontiguousarray(level.value).tobytes())
    return int.from_bytes(digest.digest()[:7], "little")


def _in_order(spine: Spine, leaves: list[tuple[Ints, Ints]]) -> tuple[NDArray[np.int32], Ints]:
    nodes = np.concatenate([part for part, _ in leaves], axis=1).astype(np.int32)
    count = np.concatenate([part for _, part in leaves])
    order = np.lexsort(pack(spine, nodes)[::-1])
    return nodes[:, order], count[order]
