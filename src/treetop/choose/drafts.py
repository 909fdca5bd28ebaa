"""The search for a plan: which levels a spine has, in which order, and which margins stand beside it.

From the present spine it goes step by step to the draft with the smallest errors: two neighbouring levels exchanged or
merged into one, a merged one divided again, or one left out. Each draft is judged with its best shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from treetop.choose.cares import Care
from treetop.choose.error_laws import Floats
from treetop.choose.expected import Depths, ErrorModel, Tables, sizes_of
from treetop.choose.known import stated_again
from treetop.choose.shares import best_shares
from treetop.domain.margin import Margins, Stage, exact_tables, margin_at, margins_of
from treetop.domain.spine import TIMES, WIDEST, Spine
from treetop.domain.unit import TOTAL
from treetop.errors import FactError
from treetop.plan.plan import PurePlan

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

    def __init__(self, plan: PurePlan, cares: Sequence[Care], total: float | None) -> None:
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
        self.planned: dict[Draft, PurePlan | None] = {}
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

    def as_plan(self, draft: Draft) -> PurePlan | None:
        """Return a plan that measures the tables of a draft, with even shares; None where it could not keep facts."""
        if draft not in self.planned:
            try:
                self.planned[draft] = self._as_plan(draft)
            except FactError as problem:
                self.planned[draft], self.refused = None, self.refused or str(problem)
        return self.planned[draft]

    def _as_plan(self, draft: Draft) -> PurePlan:
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
