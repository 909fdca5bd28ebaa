"""A top-down descent with any function as its repair: for comparing repairs, not for speed.

It measures as the engine does, with the same noise for the same key while the tree has no subtrees of its own, and
differs from it in the repair only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from treetop._util.distribution import install_extra
from treetop._util.dtypes import Flags, Floats, Ints, Words
from treetop._util.kernel import kernel
from treetop._util.numbers import Number
from treetop.addons.lab.mechanisms.compared import ComparedMechanism, Estimate, NotServed, promise
from treetop.counts.counts import Counts
from treetop.domain.constraints import PublicFacts
from treetop.domain.marginal import Margins
from treetop.engine.engine import Threads
from treetop.errors import TreetopError
from treetop.measure.descent import Descent, descent_of, run_descent
from treetop.measure.level import Frontier, Step
from treetop.measure.measure import add_counts, measure_total, run_key
from treetop.noise import Key, Keystream, NoiseStream
from treetop.noise.gate import bind
from treetop.plan.plan import Plan
from treetop.plan.workload import Measured, Part
from treetop.privacy import Split
from treetop.release.run import run_plan
from treetop.repair import Repair


class LevelRepair(Protocol):
    """A repair of all nodes of one level: a function of measurements, which sees no private data."""

    def __call__(self, x: Ints, first: Ints, count: Ints, ties: Key) -> Ints:
        """Return non-negative integers for the measurements x.

        Those of node i are `x[first[i] : first[i + 1]]`, two or more, and must become a sum of count[i] > 0. `ties` is
        a secret of its own for treating equals alike; it has made no noise.
        """


def descend(descent: Descent, counts: Counts, key: Key, repair: LevelRepair) -> Frontier:
    """Run the descent level by level and return the retained leaves in spine order."""
    total = measure_total(counts, descent.total, key.derive("total"))
    nodes = Frontier.root(descent.attributes, total, len(counts))
    for step in descent.steps:
        nodes = _refine(step, counts, nodes, key.derive("level", step.level.index), repair)
    return nodes


def _refine(step: Step, counts: Counts, above: Frontier, key: Key, repair: LevelRepair) -> Frontier:
    """Measure all public children of the retained nodes, repair them, and keep those above zero."""
    fanout = step.level.fanout(above.nodes)
    bounds = np.concatenate([[0], np.cumsum(fanout)])
    parent = np.repeat(np.arange(len(fanout)), fanout)
    divided = fanout > 1
    # An only child has its parent's count and its parent's leaves: no noise, no loss.
    count, start, stop = above.count[parent], above.start[parent], above.stop[parent]
    if divided.any():
        first = np.concatenate([[0], np.cumsum(fanout[divided])])
        x, starts, stops = _measure(step, counts, above, divided, first, key.derive("noise"))
        slots = divided[parent]
        count[slots] = repair(x, first, above.count[divided], key.derive("ties"))
        start[slots], stop[slots] = starts, stops
    kept = np.flatnonzero(count > 0)
    nodes = above.nodes[:, parent[kept]]
    step.level.go_down(nodes, kept - bounds[parent[kept]])
    return Frontier(nodes, count[kept], start[kept], stop[kept])


def _measure(
    step: Step, counts: Counts, above: Frontier, divided: Flags, first: Ints, key: Key
) -> tuple[Ints, Ints, Ints]:
    """Return true count plus noise of every child of the divided nodes, and which private leaves lie under it.

    All public children are measured, seen in the data or not. One unit moves the counts of the level by at most its
    sensitivity, for which the step's law was made.
    """
    assert isinstance(step.how, Measured)
    x = np.empty(first[-1], np.int64)
    NoiseStream(step.how.law, key).fill_runs(x, step.places.first(above.nodes[:, divided]), np.diff(first))
    start, stop = np.zeros_like(x), np.zeros_like(x)
    _add_all(x, start, stop, first, *step.leaves(counts, above), above.start[divided], above.stop[divided])
    return x, start, stop


@kernel
def _add_all(
    x: Ints,
    start: Ints,
    stop: Ints,
    first: Ints,
    keys: Words,
    shift: int,
    mask: np.uint64,
    before: Ints,
    starts: Ints,
    stops: Ints,
) -> None:
    """Add the true counts of the children of many nodes to their noise, through the engine's own door."""
    for i in range(len(starts)):
        a, b = first[i], first[i + 1]
        add_counts(x[a:b], start[a:b], stop[a:b], 0, keys, shift, mask, before, starts[i], stops[i])


# What mechanisms that measure every level share: a plan, which divides the loss and sets the noise of each level.


@dataclass(frozen=True, eq=False)
class OfPlan(ComparedMechanism):
    """A mechanism whose levels and cost are those of a plan."""

    split: Literal["uniform"] | Mapping[str, Number] | Split = "uniform"
    plan: Plan = field(init=False, repr=False)

    @property
    def levels(self) -> tuple[Part, ...]:
        """The total and every level of the spine, with noise and cost."""
        return self.plan.levels

    @property
    def spent(self) -> Fraction:
        """Cost of a run: rho, or epsilon for a pure loss."""
        return self.plan.spent


@dataclass(frozen=True, eq=False)
class Planned(OfPlan):
    """A mechanism whose noise and cost are those of a plan.

    At level l, one unit moves the counts by at most Δ_l (`Unit.sensitivity`), under the unit's own neighbours; each
    level pays its share of the loss, and the total pays as well if neighbours can differ in it.
    """

    plan_repair: ClassVar[Repair] = "chebyshev"
    """The plan's repair; mechanisms with a repair of their own do not use it."""
    bounded: ClassVar[bool] = False
    """Whether the plan's bounds hold: they are for whole, consistent releases from the top down, and no others."""
    records_may_be_dropped: bool = False
    """Whether records with unknown codes may have been dropped; then the total is not public."""

    def __post_init__(self) -> None:
        unknown: Literal["drop", "error"] = "drop" if self.records_may_be_dropped else "error"
        # All mechanisms get the same noise for the same loss; exact accounting is asked for.
        loss = self.loss.kept_by("zcdp") if getattr(self.loss, "accounting", "") is None else self.loss
        plan = Plan(
            self.spine,
            self.unit,
            loss,
            self.split,
            repair=self.plan_repair,
            unknown=unknown,
            margins=self.beside,
            facts=self.known,
        )
        object.__setattr__(self, "plan", plan)
        descent_of(plan)  # now, before data is read: a noise that cannot be drawn is refused here

    @property
    def beside(self) -> Margins:
        """Which tables are measured beside the spine."""
        return "none"

    @property
    def known(self) -> PublicFacts | Mapping[str, Any]:
        """The public facts to keep: most mechanisms keep none."""
        return {}

    @property
    def definition(self) -> str:
        """The privacy that a run gives, in one sentence."""
        return promise(self.unit, self.plan.kept_loss.sentence())


@dataclass(frozen=True, eq=False)
class OwnRepair(Planned):
    """A mechanism that measures as the engine does and repairs whole levels by a function of its own."""

    bounded: ClassVar[bool] = True
    level_repair: ClassVar[LevelRepair]

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Descend once, on one thread."""
        bound = bind(key, self.name, bytes.fromhex(self.plan.digest), counts.digest)
        leaves = descend(descent_of(self.plan), counts, bound, self.level_repair)
        return Estimate.from_nodes(self.spine, leaves.nodes, leaves.count)


# InfTDA: the engine itself, top down with the Chebyshev repair; and with its other ways to make counts.


@dataclass(frozen=True, eq=False)
class InfTDA(Planned):
    """Measure, repair by least largest change, drop zeros, descend (Boninsegna and Silvestri 2025, Algorithm 1).

    Measuring is the engine's (`topdown.measure`). With the same key its result is that of `Plan.release`.
    """

    name: ClassVar[str] = "inftda"
    about: ClassVar[str] = "Top down, each node repaired by the least largest change; compiled."
    bounded: ClassVar[bool] = True

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Descend once."""
        leaves = run_descent(descent_of(self.plan), counts, self._bound(counts, key), Threads(threads)).leaves
        return Estimate.from_nodes(self.spine, leaves.nodes, leaves.count)

    def _bound(self, counts: Counts, key: Key) -> Key:
        """Bind a key to plan and data, as `Plan.release` does."""
        return run_key(key, self.plan.digest, counts)


@dataclass(frozen=True, eq=False)
class WithMargins(InfTDA):
    """The engine with margins beside the spine: the release of a plan that keeps margins."""

    name: ClassVar[str] = "margins"
    about: ClassVar[str] = "Top down as inftda, with tables of attributes alone measured and kept as well; compiled."
    bounded: ClassVar[bool] = False
    margins: Margins = "each"

    @property
    def beside(self) -> Margins:
        """Which tables are measured beside the spine."""
        return self.margins


@dataclass(frozen=True, eq=False)
class WithFacts(WithMargins):
    """The engine with public facts, and margins: the release of a plan that has facts."""

    name: ClassVar[str] = "facts"
    about: ClassVar[str] = "Top down as margins, with the public facts of the plan kept if it has any; compiled."
    facts: PublicFacts | None = None

    @property
    def known(self) -> PublicFacts | Mapping[str, Any]:
        """The public facts to keep; without any the result is that of `margins`."""
        return self.facts or {}


@dataclass(frozen=True, eq=False)
class EuclideanTDA(InfTDA):
    """The engine with the Euclidean repair: the nearest non-negative integers with the parent's sum."""

    name: ClassVar[str] = "tda-l2-exact"
    about: ClassVar[str] = "Top down, each node repaired to the nearest integers in squared distance; compiled."
    plan_repair: ClassVar[Repair] = "euclidean"


@dataclass(frozen=True, eq=False)
class LowerError(InfTDA):
    """The engine, and then every count again from all measurements: `prefer = "lower-error"`."""

    name: ClassVar[str] = "lower-error"
    about: ClassVar[str] = "Top down as inftda, then every count estimated again from all measurements; compiled."
    plan_repair: ClassVar[Repair] = "least-squares"
    bounded: ClassVar[bool] = False

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Descend once, keep all measurements, and estimate."""
        release = run_plan(self.plan, counts, self._bound(counts, key), {}, threads=threads)
        return Estimate.from_nodes(self.spine, release.nodes, release.count)


# TDA with Euclidean repair as the paper has it: project on the simplex, round, and take the excess from small values.


def project_and_round(x: Ints, first: Ints, count: Ints, ties: Key) -> Ints:
    """Repair all nodes of a level at once, in whole numbers throughout.

    The projection of x is max(x − θ, 0) with θ = (Σ of the k largest − c)/k; k is the largest number for which the k-th
    largest exceeds its θ (Held, Wolfe and Crowder 1974). It is rounded half up.
    """
    fanout = np.diff(first)
    node = np.repeat(np.arange(len(count)), fanout)
    tie = np.empty(len(x), np.uint64)
    Keystream(ties).fill(tie, 0)
    order = np.lexsort((tie, -x, node))  # largest first within each node, equals in random order
    value, rank = x[order], np.arange(len(x)) - np.repeat(first[:-1], fanout)
    running = np.cumsum(value)
    before = np.repeat(running[first[:-1]] - value[first[:-1]], fanout)
    excess = running - before - count[node]  # of the largest so far over the count
    above = value > excess // (rank + 1)
    k = np.add.reduceat(above, first[:-1], dtype=np.int64)
    whole, part = np.divmod(excess[first[:-1] + k - 1], k)  # θ = whole + part/k
    lowered = whole + (2 * part > k)
    repaired: Ints = np.maximum(value - np.repeat(lowered, fanout), 0)
    missing = count - np.add.reduceat(repaired, first[:-1])
    positive = np.add.reduceat(repaired > 0, first[:-1], dtype=np.int64)
    repaired += rank < np.repeat(np.maximum(missing, 0), fanout)
    too_much = np.repeat(np.minimum(missing, 0), fanout)
    last = np.repeat(positive, fanout)
    repaired -= (rank >= last + too_much) & (rank < last)
    result: Ints = np.empty_like(repaired)
    result[order] = repaired
    return result


@dataclass(frozen=True, eq=False)
class TDAl2(OwnRepair):
    """Top down, each node projected on the simplex and rounded (InfTDA, section 5, where it is called TDA ℓ₂)."""

    name: ClassVar[str] = "tda-l2"
    about: ClassVar[str] = "Top down, each node projected in squared distance and rounded, small values lowered first."
    plan_repair: ClassVar[Repair] = "euclidean"
    level_repair: ClassVar[LevelRepair] = staticmethod(project_and_round)


# TDA with Chebyshev repair by a solver: one mixed integer program a node, which takes whatever optimum is found.


def solve_each(x: Ints, first: Ints, count: Ints, ties: Key) -> Ints:
    """Repair node after node; a solver has no use for tie words."""
    parts = np.split(x, first[1:-1])
    return np.concatenate([solve(part, int(c)) for part, c in zip(parts, count, strict=True)])


@dataclass(frozen=True, eq=False)
class TDAlinf(OwnRepair):
    """Top down, each node repaired by an integer program (InfTDA, section 5, where it is called TDA ℓ∞).

    The paper used GLPK; this is HiGHS. Neither solver chooses the optimum with few invented entries.
    """

    name: ClassVar[str] = "tda-linf"
    about: ClassVar[str] = "Top down, each node repaired by the least largest change, by a general solver."
    level_repair: ClassVar[LevelRepair] = staticmethod(solve_each)

    def __post_init__(self) -> None:
        super().__post_init__()
        _solver()  # now, before data is read


def solve(x: Ints, count: int) -> Ints:
    """Return non-negative integers with sum `count` whose largest change from x is least.

    In terms of the change z = y − x: minimise α subject to −α ≤ z ≤ α, z ≥ −x and Σz = c − Σx (InfTDA, section 4.2).
    """
    milp, _ = _solver()
    goal, whole, matrix, low, high = _program(len(x))
    change = np.array([count - int(x.sum())], np.float64)
    found = milp(
        goal,
        integrality=whole,
        bounds=(np.append(-x, 0).astype(np.float64), np.inf),
        constraints=(matrix, np.append(low, change), np.append(high, change)),
        options={"mip_rel_gap": 0},
    )
    if found.x is None:
        raise TreetopError(f"the solver found nothing for a node of {len(x)} children: {found.message}")
    y: Ints = x + np.rint(found.x[:-1]).astype(np.int64)
    if y.min() < 0 or int(y.sum()) != count:
        raise TreetopError(f"the solver left its constraints on a node of {len(x)} children: its counts are too large")
    return y


@lru_cache(maxsize=4096)
def _program(size: int) -> tuple[Floats, Floats, Any, Floats, Floats]:
    """Return the common part of programs with `size` children: goal, integrality, constraints and their bounds.

    The variables are the changes z and, last, α; the rows are z − α ≤ 0, z + α ≥ 0, and the sum; each node adds the
    bounds of its sum.
    """
    _, sparse = _solver()
    eye, one = sparse.eye_array(size), np.ones((size, 1))
    rows = [[eye, -one], [eye, one], [one.T, np.zeros((1, 1))]]
    goal = np.append(np.zeros(size), 1.0)
    low = np.append(np.full(size, -np.inf), np.zeros(size))
    high = np.append(np.zeros(size), np.full(size, np.inf))
    return goal, 1 - goal, sparse.csc_array(sparse.block_array(rows)), low, high


def _solver() -> tuple[Any, Any]:
    """Return SciPy's solver of integer programs and its sparse matrices, which are an extra."""
    try:
        from scipy import sparse
        from scipy.optimize import milp
    except ImportError:
        raise NotServed(
            f"tda-linf needs scipy, which is not installed: {install_extra('compare')}, or leave tda-linf out"
        ) from None
    return milp, sparse
