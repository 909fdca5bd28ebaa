"""The search for a design: which levels a spine has, in which order, which margins, and the best shares of the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from treetop._util.dtypes import Floats
from treetop.advice.expected import Depths, ErrorModel, Tables, best_shares, sizes_of
from treetop.counts.constraint_reader import COUNT
from treetop.domain.constraints import COUNTED, INVARIANT, Fact, PublicFacts
from treetop.domain.marginal import Stage, depths_alone, exact_tables, margin_at, margins_of
from treetop.domain.spine import TIMES, WIDEST, Spine
from treetop.domain.unit import TOTAL
from treetop.errors import FactError
from treetop.plan.plan import Plan

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

    def after(self, attributes: int) -> Iterator[tuple[Step, Depths, Depths]]:
        """Yield each step with the table of the level above and its own."""
        depths = (0,) * attributes
        for step in self.steps:
            finer = dict(step)
            above, depths = depths, tuple(finer.get(attribute, depth) for attribute, depth in enumerate(depths))
            yield step, above, depths

    def levels(self, sizes: Sequence[Sequence[int]]) -> Iterator[Depths]:
        """Yield the tables of the levels that divide a node."""
        for step, above, depths in self.after(len(sizes)):
            if any(sizes[attribute][depth] > sizes[attribute][above[attribute]] for attribute, depth in step):
                yield depths

    def slots(self, sizes: Sequence[Sequence[int]], total: float) -> float:
        """Return how many nodes a descent measures at most: it goes on below no more nodes than there are records."""
        slots = 0.0
        for step, above, _ in self.after(len(sizes)):
            children = 1.0
            for attribute, depth in step:
                children *= sizes[attribute][depth] / sizes[attribute][above[attribute]]
            slots += min(math.prod(own[at] for own, at in zip(sizes, above, strict=True)), total) * children
        return slots


class Search:
    """A search for the spine and margins with the smallest weighted mean of log V of the wanted tables."""

    def __init__(
        self, plan: Plan, wanted: Sequence[Depths], weights: Sequence[float], total: float | None = None
    ) -> None:
        self.plan, self.sizes, self.total = plan, sizes_of(plan.spine), total
        self.wanted = tuple(wanted)
        self.weights: Floats = np.array(weights) / np.array(weights).sum()
        # Laplace noise: precision grows with the square of a share.
        self.power = 2 if plan.loss.definition == "pure" else 1
        # The tables of facts must be in the spine, too.
        tables = [*wanted, *(fact.table.depths for fact in plan.public_facts)]
        self.needed = {(attribute, depth) for table in tables for attribute, depth in enumerate(table) if depth}
        self.facts = _as_given(plan.public_facts)
        self.refused = ""
        self.solve = cache(self._solve)
        self.as_plan = cache(self._as_plan)

    def now(self) -> Candidate:
        """Return the plan's own spine and margins."""
        steps = (tuple((part.attribute, part.depth + 1) for part in level.parts) for level in self.plan.spine.levels)
        return Candidate(tuple(steps), tuple(margin.depths for margin in self.plan.margin_tables))

    def best(self) -> Candidate:
        """Return the best candidate that steps lead to, or the present spine if they gain too little."""
        now = best = self.with_each_margin(self.now())
        if not self._keeps(now):
            return self.now()  # as it is the plan keeps its facts, and with more margins it would not
        if not self.plan.unit.per_node and self.plan.graph is None:
            best = self._walk(now, self.neighbours)
            if self.value(best) > self.value(now) + 2 * math.log1p(-WORTH):
                # Fewer levels are better than they are expected to be: each one more loses nodes that were there.
                best = self._walk(now, self._merging)
        every = best = self.with_each_margin(best)
        for table in every.margins:  # those stay that are worth their share
            fewer = replace(best, margins=tuple(one for one in best.margins if one != table))
            if table not in self.wanted and self._keeps(fewer) and self.value(fewer) <= self.value(best):
                best = fewer
        return best

    def _walk(self, best: Candidate, neighbours: Callable[[Candidate], Iterable[Candidate]]) -> Candidate:
        """Return the end of a walk, each step of which goes to the best of all neighbours that keep the facts."""
        while True:
            better = min(filter(self._keeps, neighbours(best)), key=self.value, default=best)
            if self.value(better) >= self.value(best) - 1e-4:
                return best
            best = better

    # What a candidate is worth.

    def value(self, candidate: Candidate) -> float:
        """Return the weighted mean of log V with the best shares of a candidate."""
        return self.solve(candidate)[0]

    def _solve(self, candidate: Candidate) -> tuple[float, Floats]:
        """Return the weighted mean of log V with the best shares of a candidate, and these."""
        tables = self.tables(candidate)
        model = ErrorModel(tables, self.wanted)
        scale = np.array([1 / self._change(candidate, table) for table in tables.all])
        share = best_shares(model, self.weights, scale, self.power)
        return model.pulls(scale * share**self.power, self.weights)[0], share

    def tables(self, candidate: Candidate) -> Tables:
        """Return what a candidate measures."""
        total = [(0,) * len(self.sizes)] if self.plan.levels[0].is_measured else []
        levels: Iterable[Depths] = candidate.levels(self.sizes)
        if self.facts and (planned := self.as_plan(candidate)) is not None:  # without those that facts determine
            parts = zip(candidate.after(len(self.sizes)), planned.levels[1:], strict=True)
            levels = (depths for (_, _, depths), part in parts if part.is_measured)
        return Tables(
            self.sizes,
            (*total, *levels),
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

    def _change(self, candidate: Candidate, table: Depths) -> float:
        """Return the squared sensitivity of a table, by its name, since a plan may cap some tables."""
        if not any(table):
            name = TOTAL
        elif table in candidate.margins:
            name = margin_at(self.plan.spine, table).part
        else:  # only a spine that stays as it is has caps
            name = next((part.name for part in self.plan.levels if self.plan.spine.depths(part.index) == table), "")
        change = self.plan.unit.sensitivity(name)
        return float(change.l1**2 if self.power == 2 else change.l2_squared)

    def _as_plan(self, candidate: Candidate) -> Plan | None:
        """Return a plan that measures a candidate's tables, with even shares; None if it could not keep the facts."""
        spine = self.plan.spine
        splits = [TIMES.join(level_name(spine, *one) for one in step) for step in candidate.steps]
        # The same object if nothing changes, so that its cached values stay valid.
        same = tuple(splits) == tuple(spine.splits)
        try:
            other = spine if same else Spine(splits, spine.attributes)
            names = [margin_at(other, table).name for table in moved(candidate.margins, spine, other)]
            is_each = set(names) == {margin.name for margin in margins_of(other, "each")}
            margins = "none" if not names else "each" if is_each else names
            facts = self.plan.public_facts if same else self.facts
            return replace(self.plan, spine=other, margins=margins, split="uniform", facts=facts)
        except FactError as problem:
            self.refused = self.refused or str(problem)
            return None

    def _keeps(self, candidate: Candidate) -> bool:
        """Whether a candidate can keep the facts."""
        return not self.facts or self.as_plan(candidate) is not None

    # Which candidates there are.

    def with_each_margin(self, candidate: Candidate) -> Candidate:
        """Return a candidate with all margins of one attribute, and those of several that the plan has and would keep.

        Of two that cross, the wanted one is kept.
        """
        several = [table for table in self.now().margins if np.count_nonzero(table) > 1]
        several.sort(key=lambda table: table not in self.wanted)
        used = set(candidate.levels(self.sizes))
        refined = sorted(one for step in candidate.steps for one in step)
        alone = [
            depths_alone(len(self.sizes), attribute, depth)
            for attribute, depth in refined
            if self.sizes[attribute][depth] > self.sizes[attribute][_coarser(candidate.steps, attribute, depth)]
        ]
        known = self.plan.public_facts.decides if self.facts else lambda table: False
        tables = tuple(table for table in (*alone, *several) if table not in used and not known(table))
        crossing = self.crossing(replace(candidate, margins=tables))
        return replace(candidate, margins=tuple(table for table in tables if table not in crossing))

    def neighbours(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield candidates that differ in one step."""
        for steps in self._other_orders(candidate.steps):
            yield self.with_each_margin(replace(candidate, steps=steps))
        yield from self._merging(candidate)
        for at, step in enumerate(candidate.steps):  # an attribute's level left out, one that no table needs
            for own in step:
                finer = any(one == own[0] and depth > own[1] for other in candidate.steps for one, depth in other)
                if own not in self.needed and finer:
                    left = tuple(one for one in step if one != own)
                    steps = (*candidate.steps[:at], *([left] if left else []), *candidate.steps[at + 1 :])
                    if self._can_be_measured(replace(candidate, steps=steps)):
                        yield self.with_each_margin(replace(candidate, steps=steps))

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
                    yield self.with_each_margin(merged)

    def _can_be_measured(self, candidate: Candidate) -> bool:
        """Whether a descent is short enough; it may reach every leaf if the number of records is not known."""
        for at, step in enumerate(candidate.steps):
            if len(step) > 1:
                widest = 1  # the most nodes into which the step divides one
                for attribute, depth in step:
                    tree, coarser = self.plan.spine.trees[attribute], _coarser(candidate.steps[:at], attribute)
                    inside = tree.ancestors(coarser - 1, depth - 1) if coarser else np.zeros(tree.sizes[depth - 1], int)
                    widest *= int(np.bincount(inside).max())
                if widest > WIDEST:
                    return False
        if self.total is None:
            return self.plan.spine.leaves <= MOST_SLOTS
        return candidate.slots(self.sizes, self.total) <= max(MOST_SLOTS, self.now().slots(self.sizes, self.total))


def _coarser(steps: Steps, attribute: int, depth: float = math.inf) -> int:
    """Return the finest depth of an attribute in some steps, above a depth."""
    return max((at for step in steps for one, at in step if one == attribute and at < depth), default=0)


def _are_of_others(one: Step, other: Step) -> bool:
    """Whether two steps refine no attribute both."""
    return not {attribute for attribute, _ in one} & {attribute for attribute, _ in other}


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


def _as_given(facts: PublicFacts) -> dict[str, Fact]:
    """Return facts by table as they could have been given for a spine of another order."""
    found = {}
    for fact in facts:
        given: dict[str, pa.Table] = {}
        for kind, (cells, numbers) in fact.stated.items():
            nodes = fact.table.nodes(cells)
            columns = {
                name: fact.table.codes(one).take(pa.array(nodes[one]))
                for name, one in zip(fact.name.split(TIMES), fact.table.attributes, strict=True)
            }
            given[kind] = pa.table(columns | ({COUNT: pa.array(numbers)} if kind in COUNTED else {}))
        found[fact.name] = Fact(**given, invariant=INVARIANT in fact.kinds, unchecked=fact.unchecked)
    return found
