"""What a steward cares about, as people write it: `origin totals`, `state pairs`, `leaves=3`."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop._util.choices import nearest
from treetop._util.system import Progress
from treetop.advice.expected import Depths, ErrorModel, Floats, Tables, expected_errors, sizes_of
from treetop.advice.known import fitted, stated_again
from treetop.advice.prior import Prior
from treetop.advice.simulate import public_twin
from treetop.counts.counts import Counts
from treetop.domain.marginal import Margins, Stage, exact_tables, margin_at, margins_of, table_named
from treetop.domain.spine import TIMES, WIDEST, Spine
from treetop.domain.unit import TOTAL
from treetop.errors import FactError, PlanError, SpineError
from treetop.measure.descent import descent_of
from treetop.measure.questions import leaves_of
from treetop.noise import Key
from treetop.plan.plan import Plan
from treetop.plan.workload import text_table
from treetop.release.run import run_plan

PAIRS = 3.0
"""What all pairs together weigh beside all totals when nothing is said."""
FINER = 2.0
"""What the pairs of one level weigh beside coarser ones then: their counts are smaller, and errors matter more."""
_HOW = "write 'totals', 'pairs', 'leaves', 'origin totals', 'state pairs' or a table, 'place.state * sex'"


@dataclass(frozen=True)
class Care:
    """A table, and how much its errors matter."""

    table: Depths
    """Which one."""
    weight: float
    """A design makes the sum of weight times logarithm of the error smallest."""


def read_cares(spine: Spine, asked: Sequence[str] = ()) -> list[Care]:
    """Return the tables that are cared for, each once, with its weight: what is named twice weighs both.

    >>> from treetop.domain.hierarchy import Hierarchy
    >>> ends = Hierarchy.from_prefixes(["AX", "AY", "BX"], widths=[1], levels=["state", "county"])
    >>> spine = Spine.origin_first(ends, ends)
    >>> [(care.table, care.weight) for care in read_cares(spine, ["state pairs", "leaves=3", "origin totals"])]
    [((1, 1), 1.0), ((2, 2), 3.0), ((1, 0), 1.0), ((2, 0), 1.0)]
    >>> [care.table for care in read_cares(spine)]
    [(1, 0), (2, 0), (0, 1), (0, 2), (1, 1), (2, 2)]
    """
    if not asked:
        return _everything(spine)
    weights: dict[Depths, float] = {}
    for text in asked:
        what, weight = _weighted(text)
        for table in dict.fromkeys(_tables(spine, what, text)):
            weights[table] = weights.get(table, 0.0) + weight
    return [Care(table, weight) for table, weight in weights.items()]


def _everything(spine: Spine) -> list[Care]:
    """Return every attribute alone at all its levels, and all together at equal ones: the finer, the heavier.

    The best share of a table is about its weight in all of them, so that totals get a fourth of the loss.
    """
    pairs = _equal(spine)
    totals = [one for of in spine.attributes for one in _alone(spine, of) if one not in pairs]
    weights = dict.fromkeys(totals, 1 / max(len(totals), 1))
    whole = sum(FINER**at for at in range(len(pairs)))
    weights |= {table: PAIRS * FINER**at / whole for at, table in enumerate(pairs)}
    return [Care(table, weight) for table, weight in weights.items()]


def _weighted(text: str) -> tuple[str, float]:
    what, equals, number = text.rpartition("=")
    if not equals:
        return text.strip(), 1.0
    try:
        weight = float(number)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight > 0):
        raise PlanError(f"--care {text!r}: the weight is {number.strip()!r}: write a positive number, as in leaves=3")
    return what.strip(), weight


def _tables(spine: Spine, what: str, text: str) -> list[Depths]:
    *name, kind = what.split(" ")
    about = " ".join(name).strip()
    if kind == "totals":
        return _totals(spine, about, text) if about else [one for of in spine.attributes for one in _alone(spine, of)]
    if kind == "pairs":
        return [_pair(spine, about, text)] if about else _equal(spine)
    if what == "leaves":
        return _equal(spine)[-1:]
    try:
        return [table_named(spine, what)]
    except SpineError as problem:
        raise PlanError(f"--care {str(problem).removeprefix('margins: ')}; {_HOW}") from problem


def _alone(spine: Spine, attribute: str, level: str | None = None) -> list[Depths]:
    """Return the tables of one attribute, at all its levels or at one."""
    own = list(spine.attributes).index(attribute)
    return [
        tuple(depth if one == own else 0 for one in range(len(spine.trees)))
        for depth, name in enumerate(spine.trees[own].levels, start=1)
        if level in (None, name)
    ]


def _totals(spine: Spine, about: str, text: str) -> list[Depths]:
    """Return the tables of an attribute, of `attribute.level`, or of every attribute with a level of that name."""
    attribute, _, level = about.partition(".")
    if attribute in spine.attributes:
        found = _alone(spine, attribute, level or None)
    else:
        found = [one for of in spine.attributes for one in _alone(spine, of, about)]
    if not found:
        known = [*spine.attributes, *dict.fromkeys(name for tree in spine.trees for name in tree.levels)]
        raise PlanError(
            f"--care {text!r}: there is no attribute or level {about!r}{nearest(about, known)}; there are "
            f"{', '.join(known)}"
        )
    return found


def _pair(spine: Spine, about: str, text: str) -> Depths:
    """Return the table of all attributes that have a level of that name, at that level."""
    found = tuple(tree.levels.index(about) + 1 if about in tree.levels else 0 for tree in spine.trees)
    if sum(depth > 0 for depth in found) < 2:
        shared = [
            name for name in spine.trees[0].levels if any(name in tree.levels for tree in spine.trees[1:])
        ]  # fmt: skip
        raise PlanError(
            f"--care {text!r}: {about!r} is not a level of two attributes{nearest(about, shared)}; name the table, as "
            "in 'place.state * sex'"
        )
    return found


def _equal(spine: Spine) -> list[Depths]:
    """Return the tables of all attributes, each as fine as the others or as it gets; the last are the leaves."""
    deepest = max(len(tree.levels) for tree in spine.trees)
    return [tuple(min(depth, len(tree.levels)) for tree in spine.trees) for depth in range(1, deepest + 1)]


# The best shares of the loss for some tables, where errors of some are cared for.

LEAST_SHARE = 0.01
"""What every table gets that is measured at all: a level must be measured for the descent to go on below it."""
_STEPS = 1000
_CLOSE = 1e-9


def best_shares(model: ErrorModel, cares: Floats, scale: Floats, power: int = 1, least: float = LEAST_SHARE) -> Floats:
    """Return the shares of the measured tables, none below `least`, with the smallest Σ cares·log V.

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
        new, pull = model.pulls(scale * share**power, cares)
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


# The search for a plan: which levels a spine has, in which order, and which margins stand beside it.

WORTH = 0.02
"""A spine is changed only where errors get so much smaller: a plan that is known is worth something too."""
MOST_SLOTS = 10**8
"""A level is left out, or merged, only where a descent measures no more nodes than this, or than it does now."""

Step: TypeAlias = tuple[tuple[int, int], ...]
"""A level of a spine: the attributes that it refines, each with how many of its levels are refined then."""
Steps: TypeAlias = tuple[Step, ...]
"""The levels of a spine, from the top."""


@dataclass(frozen=True)
class Draft:
    """A spine with margins, on its way to a plan."""

    steps: Steps
    """The levels of the spine."""
    margins: tuple[Depths, ...]
    """The margins."""

    def levels(self, sizes: Sequence[Sequence[int]]) -> Iterator[Depths]:
        """Yield the tables of the levels that divide something."""
        depths = [0] * len(sizes)
        for step in self.steps:
            divides = any(sizes[attribute][depth] > sizes[attribute][depths[attribute]] for attribute, depth in step)
            for attribute, depth in step:
                depths[attribute] = depth
            if divides:
                yield tuple(depths)

    def slots(self, sizes: Sequence[Sequence[int]], total: float) -> float:
        """Return how many nodes a descent measures at most: no more nodes go on than there are records."""
        depths, nodes, slots = [0] * len(sizes), 1, 0.0
        for step in self.steps:
            children = 1.0
            for attribute, depth in step:
                children *= sizes[attribute][depth] / sizes[attribute][depths[attribute]]
                depths[attribute] = depth
            slots += min(nodes, total) * children
            nodes = math.prod(own[at] for own, at in zip(sizes, depths, strict=True))
        return slots


class Search:
    """The search for a plan's best draft."""

    def __init__(self, plan: Plan, cares: Sequence[Care], total: float | None) -> None:
        self.plan, self.sizes, self.total = plan, sizes_of(plan.spine), total
        self.wanted = tuple(care.table for care in cares)
        weights = np.array([care.weight for care in cares])
        self.cares: Floats = weights / weights.sum()
        self.pure = plan.loss.definition == "pure"
        self.needed = {(attribute, depth) for care in cares for attribute, depth in enumerate(care.table) if depth}
        self.found: dict[Draft, tuple[float, Floats]] = {}
        # What facts are about must be in the spine, too.
        tables = [fact.table.depths for fact in plan.public_facts]
        self.needed |= {(attribute, depth) for table in tables for attribute, depth in enumerate(table) if depth}
        self.facts = stated_again(plan.public_facts)
        self.planned: dict[Draft, Plan | None] = {}
        self.refused = ""

    def now(self) -> Draft:
        """Return the plan as it is."""
        steps = tuple(
            tuple((part.attribute, part.depth + 1) for part in level.parts) for level in self.plan.spine.levels
        )
        return Draft(steps, tuple(margin.depths for margin in self.plan.margin_tables))

    def tables(self, draft: Draft) -> Tables:
        """Return what a draft measures."""
        total = [(0,) * len(self.sizes)] if self.plan.levels[0].is_measured else []
        return Tables(
            self.sizes,
            (*total, *self._measured(draft)),
            draft.margins,
            self.plan.levels[0].is_exact,
            # Also where least squares follow: what the descent has lost they cannot find again.
            top_down=True,
            known=self.plan.known_tables,
            crossing=self.crossing(draft),
        )

    def crossing(self, draft: Draft) -> tuple[Depths, ...]:
        """Return the margins of a draft that a release would not keep, because they cross others."""
        depths, stages = [0] * len(self.sizes), []
        for attribute, depth in (one for step in draft.steps for one in step):
            depths[attribute] = depth
            stages.append(Stage(attribute, tuple(depths)))
        kept = exact_tables(stages, [len(own) - 1 for own in self.sizes], draft.margins)
        return tuple(table for table, is_kept in zip(draft.margins, kept, strict=True) if not is_kept)

    def _measured(self, draft: Draft) -> Iterator[Depths]:
        """Yield the tables of the levels that are measured: with facts, those that these leave open."""
        planned = self.as_plan(draft) if self.facts else None
        if planned is None:
            yield from draft.levels(self.sizes)
            return
        depths = [0] * len(self.sizes)
        for step, part in zip(draft.steps, planned.levels[1:], strict=True):
            for attribute, depth in step:
                depths[attribute] = depth
            if part.is_measured:
                yield tuple(depths)

    def as_plan(self, draft: Draft) -> Plan | None:
        """Return a plan that measures the tables of a draft, with even shares; None where it could not keep facts."""
        if draft not in self.planned:
            try:
                self.planned[draft] = self._as_plan(draft)
            except FactError as problem:
                self.planned[draft], self.refused = None, self.refused or str(problem)
        return self.planned[draft]

    def _as_plan(self, draft: Draft) -> Plan:
        spine = self.plan.spine
        splits = [TIMES.join(level_name(spine, *one) for one in step) for step in draft.steps]
        # The same object where nothing changes: what was made of it stays valid.
        same = tuple(splits) == tuple(spine.splits)
        other = spine if same else Spine(splits, spine.attributes)
        names = [margin_at(other, table).name for table in moved(draft.margins, spine, other)]
        facts = self.plan.public_facts if same else self.facts
        return replace(self.plan, spine=other, margins=_stated(other, names), split="uniform", facts=facts)

    def _keeps(self, draft: Draft) -> bool:
        """Whether a draft can keep the facts."""
        return not self.facts or self.as_plan(draft) is not None

    def solve(self, draft: Draft) -> tuple[float, Floats]:
        """Return the weighted mean of log V with the best shares of a draft, and these."""
        if draft not in self.found:
            tables = self.tables(draft)
            model = ErrorModel(tables, self.wanted)
            scale = np.array([1 / self._change(draft, table) for table in tables.all])
            share = best_shares(model, self.cares, scale, 2 if self.pure else 1)
            self.found[draft] = model.pulls(scale * share ** (2 if self.pure else 1), self.cares)[0], share
        return self.found[draft]

    def value(self, draft: Draft) -> float:
        """Return the weighted mean of log V with the best shares of a draft."""
        return self.solve(draft)[0]

    def _change(self, draft: Draft, table: Depths) -> float:
        """Return the square of how far one unit moves a table: by name, since a plan may cap some tables."""
        if not any(table):
            name = TOTAL
        elif table in draft.margins:
            name = margin_at(self.plan.spine, table).part
        else:  # only a spine that stays as it is has caps
            name = next((part.name for part in self.plan.levels if self.plan.spine.depths(part.index) == table), "")
        change = self.plan.unit.sensitivity(name)
        return float(change.l1**2 if self.pure else change.l2_squared)

    def each(self, draft: Draft) -> Draft:
        """Return a draft with all margins of one attribute, and those of several that the plan has and would keep.

        Of two that cross, the one that is cared for is kept.
        """
        several = [table for table in self.now().margins if np.count_nonzero(table) > 1]
        several.sort(key=lambda table: table not in self.wanted)
        used = set(draft.levels(self.sizes))
        alone = [
            tuple(depth if one == attribute else 0 for one in range(len(self.sizes)))
            for attribute, depth in sorted(one for step in draft.steps for one in step)
            if self.sizes[attribute][depth] > self._above(draft, attribute, depth)
        ]
        known = self.plan.public_facts.decides if self.facts else lambda table: False
        open_ = (table for table in (*alone, *several) if table not in used and not known(table))
        every = replace(draft, margins=tuple(open_))
        crossing = self.crossing(every)
        return replace(draft, margins=tuple(table for table in every.margins if table not in crossing))

    def _above(self, draft: Draft, attribute: int, depth: int) -> int:
        """Return how many nodes the attribute's level above has, of those that the draft refines."""
        coarser = [at for step in draft.steps for one, at in step if one == attribute and at < depth]
        return self.sizes[attribute][max(coarser, default=0)]

    def with_margins(self, draft: Draft) -> Draft:
        """Return a draft with the margins that are worth their share."""
        best = self.each(draft)
        for table in best.margins:
            fewer = replace(best, margins=tuple(one for one in best.margins if one != table))
            if table not in self.wanted and self._keeps(fewer) and self.value(fewer) <= self.value(best):
                best = fewer
        return best

    def neighbours(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts that differ in one step, and keep the facts."""
        yield from filter(self._keeps, self._neighbours(draft))

    def _neighbours(self, draft: Draft) -> Iterator[Draft]:
        for steps in self._other_orders(draft.steps):
            yield self.each(replace(draft, steps=steps))
        yield from self._merging(draft)
        for steps in self._fewer(draft.steps):
            if self._can_be_measured(replace(draft, steps=steps)):
                yield self.each(replace(draft, steps=steps))

    def _other_orders(self, steps: Steps) -> Iterator[Steps]:
        """Yield two steps exchanged, or a merged one as two."""
        for at in range(len(steps) - 1):
            if _are_of_others(steps[at], steps[at + 1]):
                yield *steps[:at], steps[at + 1], steps[at], *steps[at + 2 :]
        for at, step in enumerate(steps):
            for own in step if len(step) > 1 else ():
                rest = tuple(one for one in step if one != own)
                yield *steps[:at], (own,), rest, *steps[at + 1 :]
                yield *steps[:at], rest, (own,), *steps[at + 1 :]

    def _merging(self, draft: Draft) -> Iterator[Draft]:
        """Yield two steps as one; margins of several attributes may cross it, so that it is not for them."""
        if any(np.count_nonzero(table) > 1 for table in self.now().margins):
            return
        steps = draft.steps
        for at in range(len(steps) - 1):
            if _are_of_others(steps[at], steps[at + 1]):
                merged = replace(draft, steps=(*steps[:at], steps[at] + steps[at + 1], *steps[at + 2 :]))
                if self._can_be_measured(merged):
                    yield self.each(merged)

    def _fewer(self, steps: Steps) -> Iterator[Steps]:
        """Yield an attribute's level left out, one that no table needs."""
        for at, step in enumerate(steps):
            for own in step:
                finer = any(one == own[0] and depth > own[1] for other in steps for one, depth in other)
                if own not in self.needed and finer:
                    left = tuple(one for one in step if one != own)
                    yield *steps[:at], *([left] if left else []), *steps[at + 1 :]

    def _can_be_measured(self, draft: Draft) -> bool:
        """Whether a descent can go down a draft: where nobody knows how many records there are, to every leaf."""
        if any(self._widest(draft.steps[:at], step) > WIDEST for at, step in enumerate(draft.steps) if len(step) > 1):
            return False
        if self.total is None:
            return self.plan.spine.leaves <= MOST_SLOTS
        return draft.slots(self.sizes, self.total) <= max(MOST_SLOTS, self.now().slots(self.sizes, self.total))

    def _widest(self, above: Steps, step: Step) -> int:
        """Return into how many nodes a step divides one at most."""
        widest = 1
        for attribute, depth in step:
            coarser = max((at for other in above for one, at in other if one == attribute), default=0)
            tree = self.plan.spine.trees[attribute]
            inside = tree.ancestors(coarser - 1, depth - 1) if coarser else np.zeros(tree.sizes[depth - 1], np.int64)
            widest *= int(np.bincount(inside).max())
        return widest

    def best(self) -> Draft:
        """Return the best draft that steps lead to, or the present spine where they gain too little."""
        now = best = self.each(self.now())
        if not self._keeps(now):
            return self.now()  # as it is the plan keeps its facts, and with more margins it would not
        if not self.plan.unit.per_node and self.plan.graph is None:
            best = self._walk(now, self.neighbours)
            if self.value(best) > self.value(now) + 2 * math.log1p(-WORTH):
                # Fewer levels are better than they are expected to be: each one more loses nodes that were there.
                best = self._walk(now, lambda draft: filter(self._keeps, self._merging(draft)))
        return self.with_margins(best)

    def _walk(self, draft: Draft, neighbours: Callable[[Draft], Iterable[Draft]]) -> Draft:
        """Return where steps lead to, each to the best of all neighbours."""
        best = draft
        while (better := min(neighbours(best), key=self.value, default=best)) != best:
            if self.value(better) >= self.value(best) - 1e-4:
                break
            best = better
        return best


def level_name(spine: Spine, attribute: int, depth: int) -> str:
    """Return a level of an attribute as a spine lists it."""
    return f"{list(spine.attributes)[attribute]}.{spine.trees[attribute].levels[depth - 1]}"


def moved(tables: Sequence[Depths], spine: Spine, other: Spine) -> list[Depths]:
    """Return tables of one spine by the depths of another, which may leave out levels that they do not need."""
    depth_in = [
        {0: 0} | {tree.levels.index(name) + 1: at for at, name in enumerate(own.levels, start=1)}
        for tree, own in zip(spine.trees, other.trees, strict=True)
    ]
    return [tuple(by[depth] for by, depth in zip(depth_in, table, strict=True)) for table in tables]


def _stated(spine: Spine, names: Sequence[str]) -> Margins:
    """Return margins as a plan states them."""
    if not names:
        return "none"
    each = {margin.name for margin in margins_of(spine, "each")}
    return "each" if set(names) == each else list(names)


def _are_of_others(one: Step, other: Step) -> bool:
    """Whether two steps refine no attribute both."""
    return not {attribute for attribute, _ in one} & {attribute for attribute, _ in other}


# Errors of any table in trials on a public twin: of levels and margins, and of what is only summed from them.

Ints = NDArray[np.int64]

_FEW = 1 << 20
"""So many cells are counted as they are numbered."""


def table_errors(
    plan: Plan,
    prior: Prior,
    tables: Sequence[Depths],
    *,
    runs: int = 20,
    threads: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[float]:
    """Release a public twin many times, and return the mean absolute error of every table, over all public nodes.

    The twin may have been read with another order of the same attributes.
    """
    public_twin(prior)
    if runs < 1:
        raise PlanError(f"the number of trials is {runs}: give 1 or more")
    spine = plan.spine
    leaf, true = moved_leaves(prior, spine)
    twin = Counts.from_leaves(spine, leaf, true)
    plan = fitted(plan, twin)
    descent_of(plan)  # made once, not by every thread
    secret = Key(hashlib.blake2b(f"trial {seed}".encode(), digest_size=32).digest())

    def run(number: int) -> list[float]:
        found = run_plan(plan, twin, secret.derive("trial", number), {})
        released = [np.asarray(own, np.int64) for own in found.nodes]
        leaves = [np.concatenate(pair) for pair in zip(leaf, released, strict=True)]
        error = np.concatenate([-true, found.count])
        return [mean_error(spine, leaves, error, table) for table in tables]

    tried = []
    with ThreadPoolExecutor(max_workers=max(threads or os.cpu_count() or 1, 1)) as pool:
        for done, errors in enumerate(pool.map(run, range(runs)), start=1):
            tried.append(errors)
            if progress is not None:
                progress("trials", done / runs)
    means: list[float] = np.mean(tried, axis=0).tolist()
    return means


def moved_leaves(prior: Prior, spine: Spine) -> tuple[list[Ints], Ints]:
    """Return the leaves of a twin by the numbers that they have in a spine, and their counts."""
    leaves, count = leaves_of(prior.spine, public_twin(prior))
    if list(prior.spine.attributes) != list(spine.attributes):
        raise PlanError("the twin is about other attributes than the plan")
    moved = []
    for own, there, here in zip(leaves, prior.spine.trees, spine.trees, strict=True):
        place = pc.index_in(there.codes[-1], value_set=here.codes[-1])
        if place.null_count or len(there.codes[-1]) != len(here.codes[-1]):
            raise PlanError("the twin is about other leaves than the plan")
        moved.append(np.asarray(place.cast(pa.int64()))[own])
    return moved, count


def mean_error(spine: Spine, leaves: Sequence[Ints], error: Ints, table: Depths) -> float:
    """Return the mean absolute error of a table's cells, of errors by leaf; a leaf may stand there twice."""
    nodes = math.prod(tree.sizes[depth - 1] for tree, depth in zip(spine.trees, table, strict=True) if depth)
    return float(np.abs(cell_sums(spine, leaves, error, table)).sum()) / nodes


def cell_sums(spine: Spine, leaves: Sequence[Ints], value: Ints, table: Depths) -> NDArray[np.float64]:
    """Return what values of leaves add up to in the cells of a table: at least in those that have any."""
    cell, cells = np.zeros(len(value), np.int64), 1
    for tree, depth, own in zip(spine.trees, table, leaves, strict=True):
        if depth:
            cell = cell * tree.sizes[depth - 1] + tree.ancestors(depth - 1)[own]
            cells *= tree.sizes[depth - 1]
            if cells > 4 * len(cell) + _FEW:  # most are empty, and all may be more than 64 bits can tell
                found, cell = np.unique(cell, return_inverse=True)
                cell, cells = cell.reshape(-1), len(found)
    sums: NDArray[np.float64] = np.asarray(np.bincount(cell, value), np.float64)
    return sums


# A designer of plans: which tables to measure, in which order, with which shares, from public sizes alone.


@dataclass(frozen=True)
class DesignRow:
    """One table that is cared for, in the plan as it is and as advised."""

    title: str
    """What it counts."""
    nodes: int
    """How many cells the public domain has."""
    weight: float
    """How much its errors matter."""
    error_before: float
    """The mean absolute error to expect of it now, where counts are not small."""
    error: float
    """The same with the advice."""
    tried_before: float | None = None
    """The mean absolute error of all its cells in trials on a public twin, now."""
    tried: float | None = None
    """The same with the advice."""


@dataclass(frozen=True, eq=False)
class Design:
    """Which tables to measure, and with which shares; print it for people."""

    plan: Plan
    """The plan as advised."""
    before: Plan
    """The plan as it is."""
    rows: tuple[DesignRow, ...]
    """The tables that are cared for."""
    skipped: tuple[str, ...]
    """The levels that are left out."""
    cares: tuple[Care, ...]
    """The same tables, by depths of the plan's spine as it is."""
    twin: str | None = None
    """What both plans were tried on."""
    refused: str = ""
    """Why other spines, or the first of them, were left out: they could not keep the facts."""
    crossing: tuple[str, ...] = ()
    """The plan's margins that the advice leaves out because they cross others and would not be kept."""

    @property
    def reordered(self) -> bool:
        """Whether the order of the spine is another."""
        return tuple(self.plan.spine.splits) != tuple(self.before.spine.splits)

    @property
    def gain(self) -> float:
        """By which factor errors get smaller: the weighted geometric mean."""
        weight = sum(row.weight for row in self.rows)
        gains = (row.weight * math.log(row.error_before / row.error) for row in self.rows if row.error > 0)
        return math.exp(math.fsum(gains) / weight)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for programs."""
        measured = {part.name: float(part.share) for part in self.plan.workload if part.is_measured}
        margins = self.plan.margins
        return {
            "spine": list(self.plan.spine.splits),
            "margins": margins if isinstance(margins, str) else list(margins),
            "split": measured,
            "skipped": list(self.skipped),
            "refused": self.refused or None,
            "crossing": list(self.crossing),
            "gain": self.gain,
            "twin": self.twin,
            "tables": [
                {
                    "counts": row.title,
                    "nodes": row.nodes,
                    "weight": row.weight,
                    "error_before": row.error_before,
                    "error": row.error,
                    "tried_before": row.tried_before,
                    "tried": row.tried,
                }
                for row in self.rows
            ],
        }

    def __str__(self) -> str:
        head = ["counts", "public nodes", "weight", "error now", "advised", "better by"]
        rows = [
            (
                row.title,
                f"{row.nodes:,}",
                f"{row.weight:.3g}",
                *_compared(row.error_before, row.error),
                *(() if row.tried is None or row.tried_before is None else _compared(row.tried_before, row.tried)),
            )
            for row in self.rows
        ]
        note = (
            "Errors are mean absolute ones, to expect where counts are not small: those of small counts are smaller. "
            f"By weight, they get better by × {self.gain:.2f}."
        )
        if self.twin is not None:
            head += ["twin: now", "advised", "better by"]
            note += f" Those of the twin ({self.twin}) are of released counts, over all public nodes."
        shares = [("measured", "share now", "advised"), *self._shares()]
        tables = [text_table([head, *rows], left=(0,)), note, text_table(shares, left=(0,))]
        return "\n\n".join([*tables, *self.notes()])

    def _shares(self) -> list[tuple[str, str, str]]:
        now, new = (
            {part.name: f"{float(part.share):.1%}" for part in plan.workload if part.is_measured}
            for plan in (self.before, self.plan)
        )
        return [(name, now.get(name, "-"), new.get(name, "-")) for name in dict.fromkeys((*new, *now))]

    def notes(self) -> list[str]:
        """Say what else changes."""
        said = []
        if self.reordered:
            merged = any(level.is_merged for level in self.plan.spine.levels)
            what = " Levels that are joined by * are refined at once." if merged else ""
            said.append(f"The spine is another: {' > '.join(level.name for level in self.plan.spine.levels)}.{what}")
        if self.skipped:
            said.append(
                f"Left out, since no table that you care for needs them: {', '.join(self.skipped)}. They are not "
                "released, and cannot be asked for; name them with --care to keep them."
            )
        if self.crossing:
            said.append(
                f"Margins left out, since they cross others and would not be kept: {', '.join(self.crossing)}. "
                "Released counts would not add up to them, however well they are measured."
            )
        if self.refused:
            said.append(
                f"Other spines were left out, since they cannot keep the facts. The first of them: {self.refused}."
            )
        return said


def _compared(before: float, after: float) -> tuple[str, str, str]:
    return f"{before:,.4g}", f"{after:,.4g}", f"× {before / after:.2f}" if after > 0 else "-"


def design(plan: Plan, care: Sequence[str] = (), total: float | None = None) -> Design:
    """Choose tables, order and shares for what is cared for, such as "origin totals", "state pairs", "leaves=3".

    Only public sizes decide, and `total`, a rough number of records, where a descent could become too long.
    """
    plan.refuse_unless_top_down()
    if plan.spine.goes_past:
        raise PlanError(
            "the plan is bottom-up, or goes past levels, which decides what is measured: list its levels in [spine] "
            "order to have them advised on"
        )
    if not any(part.is_measured for part in plan.workload):
        raise PlanError("the plan measures nothing: there is nothing to design")
    cares = _possible(plan, read_cares(plan.spine, care))
    designing = Search(plan, cares, total)
    draft = designing.best()
    advised = _as_plan(designing, draft)
    wanted = [care.table for care in cares]
    now, new = expected_errors(plan, wanted), expected_errors(advised, moved(wanted, plan.spine, advised.spine))
    rows = tuple(
        DesignRow(one.title, one.nodes, care.weight, one.error, other.error)
        for care, one, other in zip(cares, now, new, strict=True)
    )
    kept = {one for step in draft.steps for one in step}
    parts = (part for level in plan.spine.levels for part in level.parts)
    gone = [(part.attribute, part.depth + 1) for part in parts if (part.attribute, part.depth + 1) not in kept]
    skipped = [level_name(plan.spine, *one) for one in gone]
    crossing = tuple(
        margin.name
        for margin in plan.margin_tables
        if margin.depths in designing.crossing(replace(draft, margins=(*draft.margins, margin.depths)))
        and margin.depths not in draft.margins
    )
    return Design(advised, plan, rows, tuple(skipped), tuple(cares), refused=designing.refused, crossing=crossing)


def with_trials(
    design: Design, prior: Prior, *, runs: int = 20, threads: int | None = None, progress: Progress | None = None
) -> Design:
    """Try both plans on a public twin, under the same noise as far as they measure the same."""
    wanted = [care.table for care in design.cares]
    plans = (design.before, wanted), (design.plan, moved(wanted, design.before.spine, design.plan.spine))
    now, new = (
        table_errors(plan, prior, tables, runs=runs, threads=threads, progress=progress) for plan, tables in plans
    )
    rows = tuple(
        replace(row, tried_before=before, tried=after) for row, before, after in zip(design.rows, now, new, strict=True)
    )
    return replace(design, rows=rows, twin=f"{prior.kind}: {prior.source}")


def _possible(plan: Plan, cares: Sequence[Care]) -> list[Care]:
    """Leave out tables without error, such as a level with one node under an exact total."""
    found = expected_errors(plan, [care.table for care in cares])
    kept = [care for care, one in zip(cares, found, strict=True) if one.variance > 0]
    if not kept:
        raise PlanError("every table that you care for is known without noise: name others with --care")
    return kept


def _as_plan(designing: Search, draft: Draft) -> Plan:
    """Return a plan that measures the tables of a draft with the best shares."""
    plan = designing.as_plan(draft)
    assert plan is not None, "a search keeps to drafts that keep the facts"
    measured = [part.name for part in plan.workload if part.is_measured]
    return replace(plan, split=dict(zip(measured, _written(designing.solve(draft)[1]), strict=True)))


def _written(shares: Floats) -> list[Fraction]:
    """Return shares in whole tenths of a percent: nobody can tell more."""
    return [Fraction(Decimal(f"{max(share, LEAST_SHARE):.3f}")) for share in shares]
