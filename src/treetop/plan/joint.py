"""Plans with a joint fit: several attributes with few values each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from treetop._util.numbers import Number
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.marginal import Margins
from treetop.domain.spine import Spine
from treetop.domain.unit import Unknown
from treetop.plan.mechanism import JointMechanism
from treetop.plan.plan import Plan
from treetop.plan.workload import CONFIDENCE
from treetop.privacy import Loss, Split, Unit


def joint_plan(
    attributes: Mapping[str, Hierarchy],
    unit: Unit,
    loss: Loss,
    *,
    margins: Margins = "pairs",
    split: Literal["uniform"] | Mapping[str, Number] | Split = "uniform",
    unknown: Unknown = "error",
    title: str = "",
    confidence: Number | None = CONFIDENCE,
) -> Plan:
    """Return a plan that measures tables of a few attributes, and fits one table of all attributes to them.

    It suits several attributes with few values each. By default `margins` are the tables of every attribute alone and
    of every two; all are measured with equal shares of the loss unless `split` says otherwise.
    """
    return Plan(
        Spine.bottom_up(attributes),
        unit,
        loss,
        split=split,
        unknown=unknown,
        title=title,
        confidence=confidence,
        margins=margins,
        mechanism=JointMechanism(),
    )
