"""A plan in the engine's terms."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from treetop.measure.descent import Descent
from treetop.measure.level import Step
from treetop.measure.margins import AttributeMargins
from treetop.noise.sampler import sampler
from treetop.plan.plan import PurePlan
from treetop.plan.resolution import Resolution
from treetop.plan.workload import PassThrough
from treetop.read.counts import layout
from treetop.repair import ORDERS, REPAIRS


@lru_cache(maxsize=32)
def descent_of(plan: PurePlan) -> Descent:
    """Return what a descent does for a plan; a noise that cannot be drawn is refused here, before data is read."""
    plan.refuse_unless_top_down()
    for _, law in plan.workload.measured:
        sampler(law)
    total, *below = plan.levels
    leaf = len(plan.spine.levels)
    steps = (
        Step(
            level,
            digit,
            planned.how,
            REPAIRS[plan.repair],
            ORDERS[plan.order],
            last=level.index == leaf,
            resolution=plan.resolve if isinstance(plan.resolve, Resolution) else None,
        )
        for level, digit, planned in zip(plan.spine.levels, layout(plan.spine), below, strict=True)
    )
    return Descent(len(plan.spine.attributes), total.how, tuple(steps), _margins(plan))


def _margins(plan: PurePlan) -> tuple[AttributeMargins, ...]:
    """Return, for every attribute with a table of its own, all its tables down to the finest."""
    spine, digits = plan.spine, layout(plan.spine)
    tables = {margin.depths: part for margin, part in zip(plan.margin_tables, plan.margin_parts, strict=True)}
    alone = {margin.attributes[0] for margin in plan.margin_tables if len(margin.attributes) == 1}
    # Levels of the spine at which nothing else is refined yet are tables of an attribute alone as well.
    tables |= {
        spine.depths(part.index): part for part in plan.levels if np.count_nonzero(spine.depths(part.index)) == 1
    }
    found = []
    for attribute in sorted(alone):
        at = [
            tuple(depth if one == attribute else 0 for one in range(len(spine.trees)))
            for depth in range(1, len(spine.trees[attribute].levels) + 1)
        ]
        deepest = max(index for index, depths in enumerate(at) if depths in tables)
        parts = [tables.get(depths) for depths in at[: deepest + 1]]
        own = [digit for level, digit in zip(spine.levels, digits, strict=True) if level.attribute == attribute]
        found.append(
            AttributeMargins(
                attribute,
                spine.trees[attribute],
                tuple(own[: deepest + 1]),
                tuple(PassThrough() if part is None else part.how for part in parts),
                tuple(None if part is None else part.index for part in parts),
            )
        )
    return tuple(found)
