"""Releases of every table in every variant: errors and coverage of each level of the spine and of each margin."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import treetop as tt
from experiments.kit import cases, runs
from experiments.kit.cases import TRIP, Table
from experiments.kit.runs import Kept
from treetop.addons.lab.mechanisms.compared import paper_loss
from treetop.advice import design
from treetop.advice.coverage import Coverage, measure_coverage
from treetop.counts.counts import Counts, pack
from treetop.domain.marginal import title_of
from treetop.measure.questions import leaves_of
from treetop.noise import Key
from treetop.release.errors import LevelErrors, errors_of
from treetop.release.intervals._sums import box_intervals
from treetop.release.intervals.boxes import Boxes
from treetop.release.margins import find
from treetop.release.release import Release
from treetop.release.run import run_plan

EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-8
CONFIDENCE = 0.95
RUNS = 10
"""How often a table is released in each variant."""
FEW = 2
"""The same for lower-error on large tables at other losses than 1, where a release takes minutes."""
LARGE = ("new-york", "us-counties")
MANY_CODES = 100
"""From so many codes on, totals of an attribute that is refined later are held against the targets."""
DENSE = 0.05
"""A table is dense where at least this share of its public leaves occurs."""

Depths = tuple[int, ...]


@dataclass(frozen=True)
class Variant:
    """A way to release a table."""

    label: str
    accounting: Literal["paper", "zcdp", "exact"] = "exact"
    margins: Literal["none", "each"] = "each"
    prefer: Literal["fewer-invented", "lower-error"] = "fewer-invented"
    advised: bool = False
    """Whether tables, order and shares are those that the designer of plans advises."""

    def plan(self, table: Table, epsilon: float) -> tt.Plan:
        """Return the plan for a table."""
        exact = tt.Loss(epsilon=epsilon, delta=DELTA, accounting="zcdp" if self.accounting == "zcdp" else None)
        loss = paper_loss(epsilon, DELTA) if self.accounting == "paper" else exact
        plan = tt.Plan(table.spine, TRIP, loss, margins=self.margins, prefer=self.prefer)
        if not self.advised:
            return plan
        advice = design(plan, total=table.truth.total)
        assert not advice["skipped"] and isinstance(advice.plan, tt.Plan), "all tables are told by the same depths"
        return advice.plan


PAPER = Variant("InfTDA, paper", "paper", "none")
BEFORE = Variant("0.2.0", "zcdp", "none")
NONE = Variant("none", margins="none")
EACH = Variant("each")
LOWER = Variant("each, lower-error", prefer="lower-error")
ADVISED = Variant("advised, lower-error", prefer="lower-error", advised=True)
VARIANTS = (PAPER, BEFORE, NONE, EACH, LOWER, ADVISED)


@dataclass(frozen=True)
class Row:
    """One level of the spine, or one margin, in one release."""

    depths: Depths
    """How many levels of each attribute are told apart."""
    mean: float
    """The mean absolute error of all its public nodes."""
    largest: float
    """The largest error."""
    invented: float
    """Of the nodes released above zero, the share that is truly empty (FDR)."""
    invented_mass: float
    """The same by count."""
    lost: float
    """Of the nodes truly above zero, the share that is released as zero (FNR)."""
    lost_mass: float
    """The same by count."""
    measured: tuple[int, int, float] = (0, 0, 0.0)
    """Of the nodes that were measured, or summed from such: how many, how many intervals hold, sum of widths."""
    released: tuple[int, int, float] = (0, 0, 0.0)
    """The same of those released above zero."""


Run = tuple[Row, ...]


@dataclass(frozen=True, eq=False)
class Truth:
    """The true counts of a table: as its spine has them, and those of each attribute alone."""

    table: Table

    @cached_property
    def leaves(self) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
        """The leaves that occur, an array an attribute, and their counts."""
        return leaves_of(self.table.spine, self.table.truth)

    @cached_property
    def alone(self) -> list[tuple[tt.Spine, Counts]]:
        """The totals of each attribute, as a table of its own."""
        spine, (leaves, counts) = self.table.spine, self.leaves
        pairs = zip(spine.attributes, spine.trees, strict=True)
        spines = [tt.Spine([f"{name}.{level}" for level in tree.levels], {name: tree}) for name, tree in pairs]
        return [(one, Counts.from_leaves(one, [own], counts)) for one, own in zip(spines, leaves, strict=True)]

    def within(self, spine: tt.Spine) -> Counts:
        """Return the true counts in the order of another spine of the same trees."""
        here = self.table.spine
        if spine.digest == here.digest:
            return self.table.truth
        assert [tree.digest for tree in spine.trees] == [tree.digest for tree in here.trees]
        return Counts.from_leaves(spine, *self.leaves)

    def errors(self, release: Release) -> Iterator[tuple[Depths, LevelErrors]]:
        """Yield the errors of the margins, and then of the levels of this table's spine, whatever the release's is."""
        for at, ((own, truth), nodes) in enumerate(zip(self.alone, release.nodes, strict=True)):
            for level in errors_of(own, pack(own, [nodes]), release.count, truth)[1:]:
                yield tuple(level.level if one == at else 0 for one in range(len(self.alone))), level
        spine = self.table.spine
        for level in errors_of(spine, pack(spine, release.nodes), release.count, self.table.truth)[1:]:
            yield spine.depths(level.level), level

    def coverage(self, release: Release) -> Iterator[tuple[Depths, Coverage, Coverage]]:
        """Yield how intervals of margins and of the release's own levels hold: of measured and of released nodes."""
        for at, (own, truth) in enumerate(self.alone):
            ((leaves,), counts) = leaves_of(own, truth)
            for depth in range(1, len(own.levels) + 1):
                depths = tuple(depth if one == at else 0 for one in range(len(self.alone)))
                ancestor = own.trees[0].ancestors(depth - 1)
                true = np.bincount(ancestor[leaves], counts, own.trees[0].sizes[depth - 1])
                shown = np.bincount(ancestor[release.nodes[at]], minlength=len(true)) > 0
                lower, upper = _of_margin(release, at, depths, np.unique(ancestor, return_index=True)[1])
                held, width = (lower <= true) & (true <= upper), upper - lower
                every, found = (
                    Coverage(int(np.count_nonzero(some)), int(np.count_nonzero(held[some])), float(width[some].sum()))
                    for some in (np.ones(len(true), np.bool_), shown)
                )
                yield depths, every, found
        for level in measure_coverage(release, self.within(release.spine), CONFIDENCE)[1:]:
            yield release.spine.depths(level.level), level.all_sizes.measured, level.all_sizes.positives


def _of_margin(
    release: Release, attribute: int, depths: Depths, leaf: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bounds of every cell of a margin: its own measurement's, or else those of a sum."""
    if (table := find(release.margins, release.spine, depths)) is not None:
        return table.intervals(CONFIDENCE)
    inside = np.zeros((len(depths), len(leaf)), np.int64)
    inside[attribute] = leaf
    return box_intervals(release.measured, Boxes(release.spine, depths, inside), CONFIDENCE)


@dataclass(frozen=True, eq=False)
class Study:
    """All runs of one table."""

    table: Table
    found: Mapping[tuple[float, Variant], tuple[Run, ...]] = field(repr=False)
    """By epsilon and variant, every run: rows in the order of `depths`."""

    @property
    def title(self) -> str:
        """A name for people."""
        return self.table.title

    @cached_property
    def depths(self) -> list[Depths]:
        """The margins, and then the levels of the spine that are none."""
        return [row.depths for row in next(iter(self.found.values()))[0]]

    @property
    def leaves(self) -> Depths:
        """The finest level."""
        return self.depths[-1]

    @property
    def middle(self) -> Depths:
        """The level that is half way down the spine."""
        return self.table.spine.depths(len(self.table.spine.levels) // 2)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The losses."""
        return tuple(dict.fromkeys(epsilon for epsilon, _ in self.found))

    @property
    def first(self) -> int:
        """The attribute that the spine refines first."""
        return int(np.argmax(self.table.spine.depths(1)))

    @property
    def second(self) -> int:
        """Of the others, the one with most codes."""
        sizes = [tree.sizes[-1] for tree in self.table.spine.trees]
        return max((one for one in range(len(sizes)) if one != self.first), key=sizes.__getitem__)

    def margins(self, attribute: int) -> list[Depths]:
        """Return the margins of an attribute, the finest last."""
        return [one for one in self.depths if one[attribute] == sum(one) > 0]

    def codes(self, depths: Depths) -> int:
        """Return how many public nodes there are."""
        pairs = zip(self.table.spine.trees, depths, strict=True)
        return math.prod(tree.sizes[depth - 1] for tree, depth in pairs if depth)

    def name(self, depths: Depths) -> str:
        """Return what is counted."""
        return title_of(self.table.spine, depths)

    @property
    def density(self) -> float:
        """The share of the public leaves that occur."""
        return len(self.table.truth) / self.table.spine.leaves

    def values(self, epsilon: float, variant: Variant, depths: Depths, metric: str = "mean") -> NDArray[np.float64]:
        """Return a metric of `Row`, run by run."""
        at = self.depths.index(depths)
        return np.array([getattr(run[at], metric) for run in self.found[epsilon, variant]])

    def mean(self, epsilon: float, variant: Variant, depths: Depths, metric: str = "mean") -> float:
        """Return its mean over all runs; no number where there was none."""
        values = self.values(epsilon, variant, depths, metric)
        return float(values.mean()) if len(values) else math.nan

    def coverage(self, epsilon: float, variant: Variant, depths: Depths, whose: str = "measured") -> Coverage:
        """Return the coverage of measured or of released nodes, over all runs."""
        nodes, covered, widths = self.values(epsilon, variant, depths, whose).reshape(-1, 3).sum(axis=0)
        return Coverage(int(nodes), int(covered), float(widths))


def tables(data: Path | None, quick: bool = False) -> Iterator[Table]:
    """Yield the tables; `quick`, a made-up one."""
    if quick:
        yield cases.made_up("random-sparse")
        return
    if data is not None:
        readers = (cases.new_york, cases.slovenia, cases.sardinia, cases.flights, cases.commuters_in_counties)
        yield from (read(data) for read in (*readers, cases.hawaii))
    yield cases.patients()
    yield from map(cases.made_up, cases.MADE_UP)


def study(
    table: Table,
    number: int | None = None,
    kept: Kept | None = None,
    epsilons: Sequence[float] = EPSILONS,
    variants: Sequence[Variant] = VARIANTS,
) -> Study:
    """Run every variant at every epsilon, so many times; with 0, take those that are kept, and run nothing.

    The runs of one number have one key: all variants see the same random words, which takes some of the chance from
    ratios. A run is known by what its plan measures, so that runs of a plan that has changed are not taken for its.
    """
    keep, truth = kept or Kept(), Truth(table)
    found = {}
    for epsilon in epsilons:
        for variant in variants:
            plan = variant.plan(table, epsilon)
            keys = [f"{table.name} {epsilon:g} {run}" for run in range(number or _runs(table, epsilon, variant))]
            named = {f"{key} {variant.label} {_mark(plan)}": key for key in keys}
            found[epsilon, variant] = tuple(
                keep.run(Run, name, partial(_run, truth, plan, key))
                for name, key in named.items()
                if number != 0 or name in keep.found
            )
    return Study(table, found)


def _runs(table: Table, epsilon: float, variant: Variant) -> int:
    return FEW if table.name in LARGE and variant.prefer == "lower-error" and epsilon != 1 else RUNS


def _mark(plan: tt.Plan) -> str:
    shares = [(part.name, str(part.share)) for part in plan.workload]
    return hashlib.sha256(f"{plan.digest} {shares}".encode()).hexdigest()[:12]


def _run(truth: Truth, plan: tt.Plan, name: str) -> Run:
    release = run_plan(plan, truth.within(plan.spine), Key(runs.key("margins", name)), {})
    covered = {depths: (measured, shown) for depths, measured, shown in truth.coverage(release)}
    rows = {}
    for depths, one in truth.errors(release):
        both = covered.get(depths, (Coverage(0, 0, 0.0),) * 2)
        measured, shown = ((each.nodes, each.covered, each.widths) for each in both)
        rows[depths] = Row(
            depths,
            one.mean_of_all,
            one.largest,
            one.false_discoveries,
            one.false_mass,
            one.false_negatives,
            one.lost_mass,
            measured,
            shown,
        )
    return tuple(rows.values())
