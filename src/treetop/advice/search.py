"""The search for a design: which levels a spine has, in which order, which margins, and the best shares of the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from treetop.advice.error_laws import Floats
from treetop.advice.expected import Depths, ErrorModel, Tables, sizes_of
from treetop.counts.constraint_reader import COUNT
from treetop.domain.constraints import COUNTED, INVARIANT, Fact, PublicFacts, TableFact
from treetop.domain.marginal import Margins, Stage, exact_tables, margin_at, margins_of
from treetop.domain.spine import TIMES, WIDEST, Spine
from treetop.domain.unit import TOTAL
from treetop.errors import FactError
from treetop.plan.plan import Plan

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


WORTH = 0.02
"""Least gain for which a spine is changed: a plan that is known is worth something too."""
MOST_SLOTS = 10**8
"""A level is left out, or merged, only if a descent measures no more nodes than this, or than it does now."""

Step: TypeAlias = tuple[tuple[int, int], ...]
"""A level of a spine: the attributes that it refines, each with its depth."""
Steps: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True)
class Candidate:
    """A spine, by its levels from the top, and margins."""

    steps: Steps
    margins: tuple[Depths, ...]

    def levels(self, sizes: Sequence[Sequence[int]]) -> Iterator[Depths]:
        """Yield the tables of the levels that divide a node."""
        depths = [0] * len(sizes)
        for step in self.steps:
            divides = any(sizes[attribute][depth] > sizes[attribute][depths[attribute]] for attribute, depth in step)
            for attribute, depth in step:
                depths[attribute] = depth
            if divides:
                yield tuple(depths)

    def slots(self, sizes: Sequence[Sequence[int]], total: float) -> float:
        """Return how many nodes a descent measures at most: it goes on below no more nodes than there are records."""
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
    """A search for the spine and margins with the smallest weighted mean of log V of the wanted tables."""

    def __init__(
        self, plan: Plan, wanted: Sequence[Depths], weights: Sequence[float], total: float | None = None
    ) -> None:
        self.plan, self.sizes, self.total = plan, sizes_of(plan.spine), total
        self.wanted = tuple(wanted)
        self.weights: Floats = np.array(weights) / np.array(weights).sum()
        self.pure = plan.loss.definition == "pure"
        # The tables of facts must be in the spine, too.
        tables = [*wanted, *(fact.table.depths for fact in plan.public_facts)]
        self.needed = {(attribute, depth) for table in tables for attribute, depth in enumerate(table) if depth}
        self.found: dict[Candidate, tuple[float, Floats]] = {}
        self.facts = stated_again(plan.public_facts)
        self.planned: dict[Candidate, Plan | None] = {}
        self.refused = ""

    def now(self) -> Candidate:
        """Return the plan's own spine and margins."""
        steps = tuple(
            tuple((part.attribute, part.depth + 1) for part in level.parts) for level in self.plan.spine.levels
        )
        return Candidate(steps, tuple(margin.depths for margin in self.plan.margin_tables))

    def tables(self, candidate: Candidate) -> Tables:
        """Return what a candidate measures."""
        total = [(0,) * len(self.sizes)] if self.plan.levels[0].is_measured else []
        return Tables(
            self.sizes,
            (*total, *self._measured(candidate)),
            candidate.margins,
            self.plan.levels[0].is_exact,
            # Even if least squares follow: they cannot recover nodes that the descent has lost.
            top_down=True,
            known=self.plan.known_tables,
            crossing=self.crossing(candidate),
        )

    def crossing(self, candidate: Candidate) -> tuple[Depths, ...]:
        """Return the margins of a candidate that a release would not keep, because they cross others."""
        depths, stages = [0] * len(self.sizes), []
        for attribute, depth in (one for step in candidate.steps for one in step):
            depths[attribute] = depth
            stages.append(Stage(attribute, tuple(depths)))
        kept = exact_tables(stages, [len(own) - 1 for own in self.sizes], candidate.margins)
        return tuple(table for table, is_kept in zip(candidate.margins, kept, strict=True) if not is_kept)

    def _measured(self, candidate: Candidate) -> Iterator[Depths]:
        """Yield the tables of the measured levels, without those that facts determine."""
        planned = self.as_plan(candidate) if self.facts else None
        if planned is None:
            yield from candidate.levels(self.sizes)
            return
        depths = [0] * len(self.sizes)
        for step, part in zip(candidate.steps, planned.levels[1:], strict=True):
            for attribute, depth in step:
                depths[attribute] = depth
            if part.is_measured:
                yield tuple(depths)

    def as_plan(self, candidate: Candidate) -> Plan | None:
        """Return a plan that measures a candidate's tables, with even shares; None if it could not keep the facts."""
        if candidate not in self.planned:
            try:
                self.planned[candidate] = self._as_plan(candidate)
            except FactError as problem:
                self.planned[candidate], self.refused = None, self.refused or str(problem)
        return self.planned[candidate]

    def _as_plan(self, candidate: Candidate) -> Plan:
        spine = self.plan.spine
        splits = [TIMES.join(level_name(spine, *one) for one in step) for step in candidate.steps]
        # The same object if nothing changes, so that its cached values stay valid.
        same = tuple(splits) == tuple(spine.splits)
        other = spine if same else Spine(splits, spine.attributes)
        names = [margin_at(other, table).name for table in moved(candidate.margins, spine, other)]
        facts = self.plan.public_facts if same else self.facts
        return replace(self.plan, spine=other, margins=_stated(other, names), split="uniform", facts=facts)

    def _keeps(self, candidate: Candidate) -> bool:
        """Whether a candidate can keep the facts."""
        return not self.facts or self.as_plan(candidate) is not None

    def solve(self, candidate: Candidate) -> tuple[float, Floats]:
        """Return the weighted mean of log V with the best shares of a candidate, and these."""
        if candidate not in self.found:
            tables = self.tables(candidate)
            model = ErrorModel(tables, self.wanted)
            scale = np.array([1 / self._change(candidate, table) for table in tables.all])
            share = best_shares(model, self.weights, scale, 2 if self.pure else 1)
            self.found[candidate] = model.pulls(scale * share ** (2 if self.pure else 1), self.weights)[0], share
        return self.found[candidate]

    def value(self, candidate: Candidate) -> float:
        """Return the weighted mean of log V with the best shares of a candidate."""
        return self.solve(candidate)[0]

    def _change(self, candidate: Candidate, table: Depths) -> float:
        """Return the squared sensitivity of a table, by its name, since a plan may cap some tables."""
        if not any(table):
            name = TOTAL
        elif table in candidate.margins:
            name = margin_at(self.plan.spine, table).part
        else:  # only a spine that stays as it is has caps
            name = next((part.name for part in self.plan.levels if self.plan.spine.depths(part.index) == table), "")
        change = self.plan.unit.sensitivity(name)
        return float(change.l1**2 if self.pure else change.l2_squared)

    def each(self, candidate: Candidate) -> Candidate:
        """Return a candidate with all margins of one attribute, and those of several that the plan has and would keep.

        Of two that cross, the wanted one is kept.
        """
        several = [table for table in self.now().margins if np.count_nonzero(table) > 1]
        several.sort(key=lambda table: table not in self.wanted)
        used = set(candidate.levels(self.sizes))
        alone = [
            tuple(depth if one == attribute else 0 for one in range(len(self.sizes)))
            for attribute, depth in sorted(one for step in candidate.steps for one in step)
            if self.sizes[attribute][depth] > self._above(candidate, attribute, depth)
        ]
        known = self.plan.public_facts.decides if self.facts else lambda table: False
        open_ = (table for table in (*alone, *several) if table not in used and not known(table))
        every = replace(candidate, margins=tuple(open_))
        crossing = self.crossing(every)
        return replace(candidate, margins=tuple(table for table in every.margins if table not in crossing))

    def _above(self, candidate: Candidate, attribute: int, depth: int) -> int:
        """Return how many nodes the attribute's next coarser level in the candidate has."""
        coarser = [at for step in candidate.steps for one, at in step if one == attribute and at < depth]
        return self.sizes[attribute][max(coarser, default=0)]

    def with_margins(self, candidate: Candidate) -> Candidate:
        """Return a candidate with the margins that are worth their share."""
        best = self.each(candidate)
        for table in best.margins:
            fewer = replace(best, margins=tuple(one for one in best.margins if one != table))
            if table not in self.wanted and self._keeps(fewer) and self.value(fewer) <= self.value(best):
                best = fewer
        return best

    def neighbours(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield candidates that differ in one step, and keep the facts."""
        yield from filter(self._keeps, self._neighbours(candidate))

    def _neighbours(self, candidate: Candidate) -> Iterator[Candidate]:
        for steps in self._other_orders(candidate.steps):
            yield self.each(replace(candidate, steps=steps))
        yield from self._merging(candidate)
        for steps in self._fewer(candidate.steps):
            if self._can_be_measured(replace(candidate, steps=steps)):
                yield self.each(replace(candidate, steps=steps))

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

    def _merging(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield two steps as one; margins of several attributes may cross it, so that it is not for them."""
        if any(np.count_nonzero(table) > 1 for table in self.now().margins):
            return
        steps = candidate.steps
        for at in range(len(steps) - 1):
            if _are_of_others(steps[at], steps[at + 1]):
                merged = replace(candidate, steps=(*steps[:at], steps[at] + steps[at + 1], *steps[at + 2 :]))
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

    def _can_be_measured(self, candidate: Candidate) -> bool:
        """Whether a descent is short enough; it may reach every leaf if the number of records is not known."""
        if any(
            self._widest(candidate.steps[:at], step) > WIDEST
            for at, step in enumerate(candidate.steps)
            if len(step) > 1
        ):
            return False
        if self.total is None:
            return self.plan.spine.leaves <= MOST_SLOTS
        return candidate.slots(self.sizes, self.total) <= max(MOST_SLOTS, self.now().slots(self.sizes, self.total))

    def _widest(self, above: Steps, step: Step) -> int:
        """Return into how many nodes a step divides one at most."""
        widest = 1
        for attribute, depth in step:
            coarser = max((at for other in above for one, at in other if one == attribute), default=0)
            tree = self.plan.spine.trees[attribute]
            inside = tree.ancestors(coarser - 1, depth - 1) if coarser else np.zeros(tree.sizes[depth - 1], np.int64)
            widest *= int(np.bincount(inside).max())
        return widest

    def best(self) -> Candidate:
        """Return the best candidate that steps lead to, or the present spine if they gain too little."""
        now = best = self.each(self.now())
        if not self._keeps(now):
            return self.now()  # as it is the plan keeps its facts, and with more margins it would not
        if not self.plan.unit.per_node and self.plan.graph is None:
            best = self._walk(now, self.neighbours)
            if self.value(best) > self.value(now) + 2 * math.log1p(-WORTH):
                # Fewer levels are better than they are expected to be: each one more loses nodes that were there.
                best = self._walk(now, lambda candidate: filter(self._keeps, self._merging(candidate)))
        return self.with_margins(best)

    def _walk(self, candidate: Candidate, neighbours: Callable[[Candidate], Iterable[Candidate]]) -> Candidate:
        """Return the end of a walk, each step of which goes to the best of all neighbours."""
        best = candidate
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


def stated_again(facts: PublicFacts) -> dict[str, Fact]:
    """Return facts by table as they could have been given for a spine of another order."""
    return {fact.name: _as_given(fact) for fact in facts}


def _as_given(fact: TableFact) -> Fact:
    names = fact.name.split(" * ")
    given: dict[str, pa.Table] = {}
    for kind, (cells, numbers) in fact.stated.items():
        nodes = fact.table.nodes(cells)
        columns = {
            name: fact.table.codes(one).take(pa.array(nodes[one]))
            for name, one in zip(names, fact.table.attributes, strict=True)
        }
        given[kind] = pa.table(columns | ({COUNT: pa.array(numbers)} if kind in COUNTED else {}))
    return Fact(**given, invariant=INVARIANT in fact.kinds, unchecked=fact.unchecked)
