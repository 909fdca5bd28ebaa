"""Treetop: hierarchical counts under differential privacy.

The names below are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treetop.advice.advise import advise
    from treetop.advice.first_look import first_look
    from treetop.checking.check import Verdict, check
    from treetop.counts.counts import Counts
    from treetop.counts.graph_reader import Graph
    from treetop.counts.group_reader import GroupList, GroupSizes
    from treetop.domain.constraints import Fact
    from treetop.domain.hierarchy import Hierarchy
    from treetop.domain.spine import Spine
    from treetop.domain.unit import Policies
    from treetop.engine.engine import Engine
    from treetop.errors import TreetopError
    from treetop.exporting import export, register_export
    from treetop.inspection import inspect_table
    from treetop.io.source import Prepare, Source, register_format
    from treetop.lab.compare import compare_mechanisms, compare_with_truth
    from treetop.ledger import Ledger
    from treetop.noise import register_law
    from treetop.plan.file import draft_plan
    from treetop.plan.groups.unit import GroupUnit
    from treetop.privacy import Loss, Split, Unit
    from treetop.privacy.relation import register_relation
    from treetop.publishing.ask import ask
    from treetop.publishing.plans import DegreePlan, GroupTablePlan, Plan, PlanFile, RegionalPlan, read_plan
    from treetop.publishing.publish import Published, publish
    from treetop.publishing.summary import plan_summary
    from treetop.release.derived import GroupTables
    from treetop.release.estimates.table import level_differences
    from treetop.release.release import Release, reestimate
    from treetop.release.selection import Selection
    from treetop.repair import register_repair

_HOME = {
    "Counts": "treetop.counts.counts",
    "DegreePlan": "treetop.publishing.plans",
    "Engine": "treetop.engine.engine",
    "Fact": "treetop.domain.constraints",
    "Graph": "treetop.counts.graph_reader",
    "GroupList": "treetop.counts.group_reader",
    "GroupSizes": "treetop.counts.group_reader",
    "GroupTablePlan": "treetop.publishing.plans",
    "GroupTables": "treetop.release.derived",
    "GroupUnit": "treetop.plan.groups.unit",
    "Hierarchy": "treetop.domain.hierarchy",
    "Ledger": "treetop.ledger",
    "Loss": "treetop.privacy",
    "Plan": "treetop.publishing.plans",
    "PlanFile": "treetop.publishing.plans",
    "Policies": "treetop.domain.unit",
    "Prepare": "treetop.io.source",
    "Published": "treetop.publishing.publish",
    "RegionalPlan": "treetop.publishing.plans",
    "Release": "treetop.release.release",
    "Selection": "treetop.release.selection",
    "Source": "treetop.io.source",
    "Spine": "treetop.domain.spine",
    "Split": "treetop.privacy",
    "TreetopError": "treetop.errors",
    "Unit": "treetop.privacy",
    "Verdict": "treetop.checking.check",
    "advise": "treetop.advice.advise",
    "ask": "treetop.publishing.ask",
    "check": "treetop.checking.check",
    "compare_mechanisms": "treetop.lab.compare",
    "compare_with_truth": "treetop.lab.compare",
    "draft_plan": "treetop.plan.file",
    "export": "treetop.exporting",
    "first_look": "treetop.advice.first_look",
    "inspect_table": "treetop.inspection",
    "level_differences": "treetop.release.estimates.table",
    "plan_summary": "treetop.publishing.summary",
    "publish": "treetop.publishing.publish",
    "read_plan": "treetop.publishing.plans",
    "register_export": "treetop.exporting",
    "register_format": "treetop.io.source",
    "register_law": "treetop.noise",
    "register_relation": "treetop.privacy.relation",
    "register_repair": "treetop.repair",
    "reestimate": "treetop.release.release",
}

__all__ = [
    "Counts",
    "DegreePlan",
    "Engine",
    "Fact",
    "Graph",
    "GroupList",
    "GroupSizes",
    "GroupTablePlan",
    "GroupTables",
    "GroupUnit",
    "Hierarchy",
    "Ledger",
    "Loss",
    "Plan",
    "PlanFile",
    "Policies",
    "Prepare",
    "Published",
    "RegionalPlan",
    "Release",
    "Selection",
    "Source",
    "Spine",
    "Split",
    "TreetopError",
    "Unit",
    "Verdict",
    "advise",
    "ask",
    "check",
    "compare_mechanisms",
    "compare_with_truth",
    "draft_plan",
    "export",
    "first_look",
    "inspect_table",
    "level_differences",
    "plan_summary",
    "publish",
    "read_plan",
    "reestimate",
    "register_export",
    "register_format",
    "register_law",
    "register_relation",
    "register_repair",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from treetop._util.distribution import VERSION

        return VERSION
    if name not in _HOME:
        raise AttributeError(f"module 'treetop' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
