"""How often noise intervals hold the truth, level by level: for public tables, or for the steward only.

Of any node that is named before the noise is drawn, the interval will hold the truth with the stated confidence. Among
those that turn out to be released above zero, or not, it may do so less often: the noise decides which are which. So
nodes are told apart here by how they came out.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treetop._util.dtypes import Flags, Ints, Words
from treetop._util.system import Progress
from treetop.advice.public import Prior
from treetop.advice.trials import fitted, public_twin
from treetop.counts.counts import Counts, Digit, layout, pack
from treetop.domain.unit import TOTAL
from treetop.errors import PlanError
from treetop.io.table import Table
from treetop.noise import Key
from treetop.plan.plan import Plan
from treetop.plan.workload import CONFIDENCE
from treetop.release.errors import SIZES, merge, size_label, starts, true_margins
from treetop.release.intervals.nodes import LevelIntervals
from treetop.release.release import Release
from treetop.release.run import run_plan
from treetop.release.tree import spans
from treetop.release.zeros import LevelSums, level_sums

RUNS = 5
"""How often a plan is tried on a public twin."""
GROUPS = ("every", "measured", "positives", "zeros")
"""How nodes are told apart: the fields of `SizeCoverage`."""

_ROOT = Digit(0, 64, 0)
"""A place above all that is told apart."""
_LOWS = np.array([low for low, _ in SIZES])


@dataclass(frozen=True)
class Coverage:
    """Of some nodes, how many intervals hold the true count, and how wide they are."""

    nodes: int
    covered: int
    """How many of them have their true count within their interval."""
    widths: float
    """The sum of upper less lower bound."""

    @property
    def share(self) -> float | None:
        """The share of the intervals that hold the truth; None where there is no node."""
        return self.covered / self.nodes if self.nodes else None

    @property
    def width(self) -> float | None:
        """The mean width of an interval; None where there is no node."""
        return self.widths / self.nodes if self.nodes else None

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(self.nodes + other.nodes, self.covered + other.covered, self.widths + other.widths)


@dataclass(frozen=True)
class SizeCoverage:
    """The coverage of the nodes of one size."""

    size: str
    """The true counts, such as "5–10"."""
    every: Coverage
    """All public nodes with such a count."""
    measured: Coverage
    """Those that were measured themselves: the children of released nodes that have several."""
    positives: Coverage
    """Those that are released above zero."""
    zeros: Coverage
    """The others: at most the upper bound that the deepest released node above them has for what is absent."""

    def __add__(self, other: SizeCoverage) -> SizeCoverage:
        return SizeCoverage(self.size, *(getattr(self, name) + getattr(other, name) for name in GROUPS))


@dataclass(frozen=True)
class LevelCoverage:
    """The coverage of one level."""

    level: int
    name: str
    sizes: tuple[SizeCoverage, ...]

    @property
    def all_sizes(self) -> SizeCoverage:
        """The coverage of the nodes of all sizes together."""
        total, *others = self.sizes
        for other in others:
            total += other
        return SizeCoverage("all", *(getattr(total, name) for name in GROUPS))

    def __add__(self, other: LevelCoverage) -> LevelCoverage:
        sizes = tuple(one + another for one, another in zip(self.sizes, other.sizes, strict=True))
        return LevelCoverage(self.level, self.name, sizes)


def measure_coverage(release: Release, truth: Counts, confidence: float | None = None) -> tuple[LevelCoverage, ...]:
    """Compare the intervals of a release with the true counts of the same spine, at the total and at every level.

    They are taken at the plan's confidence unless another is given. Public nodes that are neither in the truth nor in
    the release are zeros, within any upper bound; they are counted by arithmetic, however many there are.
    """
    intervals = release.intervals if confidence is None else release.intervals_at(confidence)
    spine, sides = release.spine, _Sides.of(release, truth)
    levels = [(TOTAL, 1, _ROOT)]
    levels += [(level.name, level.nodes, digit) for level, digit in zip(spine.levels, layout(spine), strict=True)]
    above = _Above(np.zeros(len(sides.true), np.int64), np.zeros(1, np.bool_), np.zeros(1, np.int64))
    rows = []
    for index, ((name, public, digit), own, sums) in enumerate(
        zip(levels, intervals, level_sums(release, intervals), strict=True)
    ):
        nodes, above = _compare(sides, above, index, digit, own, sums)
        rows.append(LevelCoverage(index, name, _sizes(nodes, public, sums)))
    return tuple(rows)


def measure_margin_coverage(
    release: Release, truth: Counts, confidence: float | None = None
) -> tuple[LevelCoverage, ...]:
    """Compare the intervals of a release's margins with the true counts: every cell of a margin is measured."""
    stated = release.confidence or CONFIDENCE if confidence is None else confidence
    spine, margins = release.spine, [table.margin for table in release.margins]
    every = zip(release.margins, true_margins(spine, margins, truth), strict=True)
    rows = []
    for index, (table, true) in enumerate(every, start=len(spine.levels) + 1):
        lower, upper = table.intervals(stated)
        covered = (lower <= true) & (true <= upper)
        nodes = _Nodes(true, table.count > 0, np.ones(len(true), np.bool_), covered, upper - lower)
        rows.append(LevelCoverage(index, table.margin.part, _every_size(nodes)))
    return tuple(rows)


def pooled(runs: Sequence[tuple[LevelCoverage, ...]]) -> tuple[LevelCoverage, ...]:
    """Put several releases together, level by level."""
    together, *others = runs
    for other in others:
        together = tuple(one + another for one, another in zip(together, other, strict=True))
    return together


@dataclass(frozen=True, eq=False)
class _Sides:
    """What is released (leaves and remainders) and what is true (leaves), in one spine order."""

    keys: list[Words]
    reach: Ints
    """How far each released entry is refined, by the position of its level; -1 for what is true."""
    true: Ints

    @staticmethod
    def of(release: Release, truth: Counts) -> _Sides:
        spine, left = release.spine, release.left
        keys, reach = pack(spine, release.nodes), np.full(len(release.count), len(spine.levels), np.int64)
        if left is not None and len(left):
            # At its node's first leaf. Below its node it is in none: there it neither releases a node nor adds to one.
            more = pack(spine, spans(spine, left)[0])
            keys = [np.concatenate(pair) for pair in zip(keys, more, strict=True)]
            reach = np.concatenate([reach, left.level.astype(np.int64)])
        merged = merge(keys, reach + 1, truth)
        return _Sides(merged.keys, merged.released.astype(np.int64) - 1, merged.true)


@dataclass(frozen=True, eq=False)
class _Above:
    """What the next level needs to know of this one."""

    node: Ints
    """For every entry, its node."""
    found: Flags
    """For every node, whether it is released."""
    bound: Ints
    """For every node, the upper bound of what is below it and not released; 0 where nothing is released at all."""


@dataclass(frozen=True, eq=False)
class _Nodes:
    """The nodes of one level that are released or truly above zero."""

    true: Ints
    found: Flags
    measured: Flags
    covered: Flags
    width: Ints

    def __getitem__(self, chosen: Flags) -> _Nodes:
        return _Nodes(
            self.true[chosen], self.found[chosen], self.measured[chosen], self.covered[chosen], self.width[chosen]
        )


def _compare(
    sides: _Sides, above: _Above, index: int, digit: Digit, own: LevelIntervals, sums: LevelSums
) -> tuple[_Nodes, _Above]:
    begins = starts(sides.keys, digit)
    first = np.flatnonzero(begins)
    true, found = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    if len(first):
        true, found = np.add.reduceat(sides.true, first), np.logical_or.reduceat(sides.reach >= index, first)
    parent = above.node[first]
    lower, upper = np.zeros(len(first), np.int64), above.bound[parent]
    below = upper.copy()
    # Released nodes stand in spine order on both sides.
    lower[found], upper[found], below[found] = own.lower, own.upper, own.absent
    several = np.full(len(above.found), index == 0 and sums.measured > 0)
    several[above.found] = sums.fanouts > 1
    nodes = _Nodes(true, found, several[parent], (lower <= true) & (true <= upper), upper - lower)
    return nodes[found | (true > 0)], _Above(np.cumsum(begins) - 1, found, below)


def _sizes(nodes: _Nodes, public: int, sums: LevelSums) -> tuple[SizeCoverage, ...]:
    """Tell the nodes of a level apart by size; the zeros that stand in neither table are added to the first."""
    size = np.searchsorted(_LOWS, nodes.true, side="right") - 1
    absent = ~nodes.found
    members = (np.ones(len(size), np.bool_), nodes.measured, nodes.found, absent)
    every, measured, positives, zeros = (list(_by_size(nodes, size, member)) for member in members)
    number = public - len(size)
    others = Coverage(number, number, sums.bounds - float(nodes.width[absent].sum()))
    every[0], zeros[0] = every[0] + others, zeros[0] + others
    number = sums.measured - int(np.count_nonzero(nodes.measured))
    measured[0] += Coverage(
        number, number, sums.measured_bounds - float(nodes.width[absent & nodes.measured].sum()) if number else 0.0
    )
    return _labelled(every, measured, positives, zeros)


def _every_size(nodes: _Nodes) -> tuple[SizeCoverage, ...]:
    """Tell nodes apart by size where all public ones are there."""
    size = np.searchsorted(_LOWS, nodes.true, side="right") - 1
    members = (np.ones(len(size), np.bool_), nodes.measured, nodes.found, ~nodes.found)
    return _labelled(*(list(_by_size(nodes, size, member)) for member in members))


def _labelled(*groups: Sequence[Coverage]) -> tuple[SizeCoverage, ...]:
    labels = [size_label(low, high) for low, high in SIZES]
    return tuple(SizeCoverage(label, *parts) for label, *parts in zip(labels, *groups, strict=True))


def _by_size(nodes: _Nodes, size: Ints, member: Flags) -> Iterator[Coverage]:
    of = size[member]
    number = np.bincount(of, minlength=len(SIZES))
    covered = np.bincount(of[nodes.covered[member]], minlength=len(SIZES))
    widths = np.bincount(of, nodes.width[member], minlength=len(SIZES))
    for nodes_of, covered_of, widths_of in zip(number.tolist(), covered.tolist(), widths.tolist(), strict=True):
        yield Coverage(nodes_of, covered_of, widths_of)


@dataclass(frozen=True)
class TwinCoverage:
    """How often intervals held the truth when a plan was tried on a public twin."""

    nominal: float
    """The confidence of the intervals."""
    runs: int
    levels: tuple[LevelCoverage, ...]
    """What all of them gave together, level by level."""
    margins: tuple[LevelCoverage, ...] = ()
    """The same of every margin."""

    def to_dict(self) -> dict[str, Any]:
        """Return what a card states: of the nodes that were measured, how many were covered, over all runs."""
        measured = [(row, row.all_sizes.measured) for row in self.levels + self.margins]
        twin = [
            {"level": row.level, "name": row.name, "covered": found.covered, "nodes": found.nodes}
            for row, found in measured
            if found.nodes
        ]
        return {"nominal": self.nominal, "twin": twin, "runs": self.runs}


def twin_coverage(
    plan: Plan,
    twin: Table | Prior,
    columns: Mapping[str, str] | None = None,
    count: str | None = None,
    runs: int = RUNS,
    progress: Progress | None = None,
    private: Counts | None = None,
) -> TwinCoverage:
    """Release a public twin by the plan, several times, and see how often intervals hold its counts.

    The twin is a public table, read as the private one would be, or a `Prior` with one. It must not be the private
    table: the noise comes from keys that anybody can compute. Where the counts of that are at hand, by `plan.counts`,
    give them as `private`: a twin with the same records is refused.
    """
    plan.refuse_unless_top_down()
    if plan.confidence is None:
        raise PlanError("the plan has intervals off, so there is no coverage to measure: give it a confidence")
    if runs < 1:
        raise PlanError(f"the number of trials is {runs}: give 1 or more")
    if not isinstance(twin, Prior):
        twin = Prior.from_public_table(
            twin, plan.spine, source="a public twin", columns=columns, count=count, unknown=plan.unknown
        )
    twin.fits(plan.spine)
    counts = public_twin(twin, private)
    secret = Key(hashlib.blake2b(b"coverage on a twin", digest_size=32).digest())
    confidence, found, beside = float(plan.confidence), [], []
    own = fitted(plan, counts)
    for run in range(runs):
        release = release_on_trial(own, counts, secret.derive("trial", bytes.fromhex(plan.digest), run))
        found.append(measure_coverage(release, counts, confidence))
        beside.append(measure_margin_coverage(release, counts, confidence))
        if progress is not None:
            progress("trials", (run + 1) / runs)
    return TwinCoverage(confidence, runs, pooled(found), pooled(beside))


def release_on_trial(plan: Plan, counts: Counts, key: Key) -> Release:
    """Run a plan on public counts with a key of the caller's; the result has no card, and is not for release."""
    return run_plan(plan, counts, key, {}, threads=os.cpu_count() or 1)
