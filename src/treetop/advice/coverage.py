"""How often noise intervals hold the truth, level by level: for public tables, or for the steward only.

Of any node that is named before the noise is drawn, the interval will hold the truth with the stated confidence. Among
those that turn out to be released above zero, or not, it may do so less often: the noise decides which are which. So
nodes are told apart here by how they came out.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple

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
from treetop.release.release import Release
from treetop.release.run import run_plan
from treetop.release.tree import spans
from treetop.release.zeros import level_sums

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


NOBODY = Coverage(0, 0, 0.0)


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
        return replace(reduce(add, self.sizes), size="all")

    def __add__(self, other: LevelCoverage) -> LevelCoverage:
        sizes = tuple(one + another for one, another in zip(self.sizes, other.sizes, strict=True))
        return LevelCoverage(self.level, self.name, sizes)


def measure_coverage(release: Release, truth: Counts, confidence: float | None = None) -> tuple[LevelCoverage, ...]:
    """Compare the intervals of a release with the true counts of the same spine, at the total and at every level.

    They are taken at the plan's confidence unless another is given. Public nodes that are neither in the truth nor in
    the release are zeros, within any upper bound; they are counted by arithmetic, however many there are.
    """
    intervals = release.intervals if confidence is None else release.intervals_at(confidence)
    spine, (keys, reach, truly) = release.spine, _joined(release, truth)
    levels = [(TOTAL, 1, _ROOT)]
    levels += [(level.name, level.nodes, digit) for level, digit in zip(spine.levels, layout(spine), strict=True)]
    # Of the level above: the node of every entry; of every node, whether it is released, and the upper bound of what is
    # below it and not released (0 if nothing is released at all).
    node, known, bound = np.zeros(len(truly), np.int64), np.zeros(1, np.bool_), np.zeros(1, np.int64)
    rows = []
    for index, ((name, public, digit), own, sums) in enumerate(
        zip(levels, intervals, level_sums(release, intervals), strict=True)
    ):
        begins = starts(keys, digit)
        first = np.flatnonzero(begins)
        true, found = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        if len(first):
            true, found = np.add.reduceat(truly, first), np.logical_or.reduceat(reach >= index, first)
        parent = node[first]
        lower, upper = np.zeros(len(first), np.int64), bound[parent]
        below = upper.copy()
        # Released nodes stand in spine order on both sides.
        lower[found], upper[found], below[found] = own.lower, own.upper, own.absent
        several = np.full(len(known), index == 0 and sums.measured > 0)
        several[known] = sums.fanouts > 1
        some = found | (true > 0)
        covered, width = (lower <= true) & (true <= upper), upper - lower
        nodes = _Nodes(true[some], found[some], several[parent][some], covered[some], width[some])
        absent, zeros = public - len(nodes.true), ~nodes.found
        unmeasured = sums.measured - int(np.count_nonzero(nodes.measured))
        widths = sums.measured_bounds - float(nodes.width[zeros & nodes.measured].sum()) if unmeasured else 0.0
        sizes = _sizes(
            nodes,
            Coverage(absent, absent, sums.bounds - float(nodes.width[zeros].sum())),
            Coverage(unmeasured, unmeasured, widths),
        )
        rows.append(LevelCoverage(index, name, sizes))
        node, known, bound = np.cumsum(begins) - 1, found, below
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
        rows.append(LevelCoverage(index, table.margin.part, _sizes(nodes, NOBODY, NOBODY)))
    return tuple(rows)


def pooled(runs: Sequence[tuple[LevelCoverage, ...]]) -> tuple[LevelCoverage, ...]:
    """Put several releases together, level by level."""
    return tuple(reduce(add, level) for level in zip(*runs, strict=True))


def _joined(release: Release, truth: Counts) -> tuple[list[Words], Ints, Ints]:
    """Return what is released (leaves and remainders) and what is true (leaves), in one spine order.

    Of each entry: its keys; how far it is released, by the position of its level (-1 if it is not); its true count.
    """
    spine, left = release.spine, release.left
    keys, reach = pack(spine, release.nodes), np.full(len(release.count), len(spine.levels), np.int64)
    if left is not None and len(left):
        # At its node's first leaf. Below its node it is in none: there it neither releases a node nor adds to one.
        more = pack(spine, spans(spine, left)[0])
        keys = [np.concatenate(pair) for pair in zip(keys, more, strict=True)]
        reach = np.concatenate([reach, left.level.astype(np.int64)])
    merged = merge(keys, reach + 1, truth)
    return merged.keys, merged.released.astype(np.int64) - 1, merged.true


class _Nodes(NamedTuple):
    """The nodes of one level that are released or truly above zero."""

    true: Ints
    found: Flags
    measured: Flags
    covered: Flags
    width: Ints


def _sizes(nodes: _Nodes, absent: Coverage, unmeasured: Coverage) -> tuple[SizeCoverage, ...]:
    """Tell nodes apart by size; zeros that stand in neither table, and those of them that are measured, are added."""
    size = np.searchsorted(_LOWS, nodes.true, side="right") - 1
    members = (np.ones(len(size), np.bool_), nodes.measured, nodes.found, ~nodes.found)
    groups = []
    for member, more in zip(members, (absent, unmeasured, NOBODY, absent), strict=True):
        number = np.bincount(size[member], minlength=len(SIZES)).tolist()
        covered = np.bincount(size[member & nodes.covered], minlength=len(SIZES)).tolist()
        widths = np.bincount(size[member], nodes.width[member], len(SIZES)).tolist()
        cells = [Coverage(*cell) for cell in zip(number, covered, widths, strict=True)]
        groups.append([cells[0] + more, *cells[1:]])
    return tuple(
        SizeCoverage(size_label(low, high), *cells) for (low, high), *cells in zip(SIZES, *groups, strict=True)
    )


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
