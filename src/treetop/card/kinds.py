"""The statements of each kind of plan, by kind."""

from __future__ import annotations

from collections.abc import Mapping

from treetop.card.distributions import DEGREES, GROUP_SIZES
from treetop.card.statements import Statements
from treetop.plan.graphs.degrees import DegreeCounts
from treetop.plan.groups.planned import GroupTablePlan
from treetop.plan.plan import Plan

KINDS: Mapping[str, Statements] = {"groups": GROUP_SIZES, "degrees": DEGREES, "top-down": Statements()}
"""What each kind of plan states; all but the last are named as their part of a described plan."""


def kind_of(plan: Plan) -> str:
    """Return the kind of a plan."""
    if isinstance(plan, GroupTablePlan):
        return "groups"
    return "degrees" if isinstance(plan, DegreeCounts) else "top-down"


def statements_of(plan: Plan) -> Statements:
    """Return what this kind of plan states."""
    return KINDS[kind_of(plan)]
