"""A plan in the engine's terms."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from treetop.domain.cells import Depths
from treetop.domain.margin import decided_at, exact_margins, margin_at, stages_of
from treetop.domain.narrowed import NarrowLevel
from treetop.domain.places import Places
from treetop.errors import PlanError
from treetop.intake.counts import Digit, ranks_of
from treetop.measure.descent import Descent
from treetop.measure.level import Step
from treetop.measure.margins import Margins, Table, Under
from treetop.noise.sampler import sampler
from treetop.plan.facts import exact_beside, is_limited, limited_levels
from treetop.plan.plan import PurePlan
from treetop.plan.resolution import EDITION, Resolution
from treetop.plan.workload import Measured
from treetop.repair import ORDERS, REPAIRS


@lru_cache(maxsize=32)
def descent_of(plan: PurePlan) -> Descent:
    """Return what a descent does for a plan; a noise that cannot be drawn is refused here, before data is read."""
    plan.refuse_unless_top_down()
    resolve = plan.resolve if isinstance(plan.resolve, Resolution) else None
    if resolve is not None and resolve.edition != EDITION:
        raise PlanError("this plan comes from the card of an earlier version, whose way to name children is no more")
    for _, law in plan.workload.measured:
        sampler(law)
    total, *below = plan.levels
    leaf = len(plan.spine.levels)
    steps = (
        Step(
            level,
            digits,
            Places.of_level(level, plan.spine.sizes(level.index - 1)),
            planned.how,
            REPAIRS[plan.repair],
            ORDERS[plan.order],
            last=level.index == leaf,
            resolution=resolve,
            facts=plan.public_facts if _has_bounds(plan, level.index) else None,
        )
        for level, digits, planned in zip(plan.spine.levels, ranks_of(plan.spine), below, strict=True)
    )
    facts, beside = plan.public_facts, exact_beside(plan.spine, plan.public_facts)
    margins, under = _margins(plan, beside) if plan.margin_tables or beside else (None, ())
    return Descent(len(plan.spine.attributes), total.how, tuple(steps), margins, under, facts or None)


def _has_bounds(plan: PurePlan, index: int) -> bool:
    """Whether facts bound the nodes of a level, or say what they have."""
    facts, depths = plan.public_facts, plan.spine.depths(index)
    return bool(facts) and (facts.says_something(depths) or facts.decides(depths))


def _margins(plan: PurePlan, beside: tuple[Depths, ...]) -> tuple[Margins, tuple[tuple[Under | None, ...], ...]]:
    """Return the tables that are known before the descent, and which of them each level agrees with."""
    spine, digits = plan.spine, ranks_of(plan.spine)
    limited = {level.index for level in limited_levels(spine, plan.public_facts)}
    exact = exact_margins(spine, plan.margin_tables)
    about = zip(plan.margin_tables, plan.margin_parts, exact, strict=True)
    tables = [Table(margin.depths, Measured(part.law), part.index, kept) for margin, part, kept in about]
    known = [margin_at(spine, depths) for depths in beside]
    told = {attribute for margin in (*plan.margin_tables, *known) for attribute in margin.attributes}
    # Levels at which nothing else is refined yet are tables of an attribute alone as well, and measured once.
    for part in plan.levels[1:]:
        depths = spine.depths(part.index)
        (*_, attribute) = (one for one, depth in enumerate(depths) if depth)
        if np.count_nonzero(depths) == 1 and attribute in told and isinstance(part.how, Measured):
            tables.append(Table(depths, part.how, part.index))
    own: list[list[Digit]] = [[] for _ in spine.trees]
    for level, ranks in zip(spine.levels, digits, strict=True):
        for refined, digit in zip(level.parts, ranks, strict=True):
            own[refined.attribute].append(digit)
    parts = {table.part for table in tables}
    agreed = [margin for margin, kept in zip(plan.margin_tables, exact, strict=True) if kept]
    agreed += [margin_at(spine, table.depths) for table in tables if table.part < len(plan.levels)] + known
    under = []
    for level in spine.levels:
        stages = []
        for stage in stages_of(spine, level):
            decided = decided_at(stage, agreed)
            own_depth = stage.depths[stage.attribute]
            nearly = [table for table in tables if not table.exact and table.depths[stage.attribute] >= own_depth]
            near = tuple((tuple(map(min, table.depths, stage.depths)), table.how) for table in nearly)
            limits = isinstance(level, NarrowLevel) or is_limited(spine, plan.public_facts, level)
            after = level.index in limited and not limits
            under_one = Under(decided or (), stage.depths, level.index in parts, limits, after, near)
            stages.append(None if decided is None else under_one)
        under.append(tuple(stages))
    return Margins(spine.trees, tuple(map(tuple, own)), tuple(tables), beside), tuple(under)
