"""A plan in the engine's terms."""

from __future__ import annotations

from functools import lru_cache

from treetop.errors import PlanError
from treetop.measure.descent import Descent
from treetop.measure.level import Step
from treetop.noise.sampler import sampler
from treetop.plan.plan import PurePlan
from treetop.plan.resolution import EDITION, Resolution
from treetop.read.counts import layout
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
            digit,
            planned.how,
            REPAIRS[plan.repair],
            ORDERS[plan.order],
            last=level.index == leaf,
            resolution=resolve,
        )
        for level, digit, planned in zip(plan.spine.levels, layout(plan.spine), below, strict=True)
    )
    return Descent(len(plan.spine.attributes), total.how, tuple(steps))
