"""Treetop: hierarchical counts under differential privacy.

The names below are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treetop._util.progress_bar import ProgressBar
    from treetop.addons.lab.compare import compare_mechanisms, compare_with_truth
    from treetop.advice import design, loss_for, outlook, split_for, try_out
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
    from treetop.ledger import Ledger
    from treetop.measure.readers import read_true_counts
    from treetop.noise import register_law
    from treetop.plan.degrees import degree_plan, regional_degree_plan
    from treetop.plan.file import PlanFile, draft_plan, read_plan
    from treetop.plan.group_unit import GroupUnit
    from treetop.plan.groups import group_plan
    from treetop.plan.joint import joint_plan
    from treetop.plan.plan import Plan
    from treetop.privacy import Loss, Split, Unit
    from treetop.privacy.relation import register_relation
    from treetop.publishing.ask import ask
    from treetop.publishing.publish import Published, make_release, plan_summary, publish
    from treetop.publishing.releasing import RunOptions
    from treetop.release.count_table import CountTable
    from treetop.release.derived import GroupTables
    from treetop.release.estimates.table import level_differences
    from treetop.release.release import Release, reestimate
    from treetop.release.selection import Selection
    from treetop.repair import register_repair

_HOME = {
    "CountTable": "treetop.release.count_table",
    "Counts": "treetop.counts.counts",
    "Engine": "treetop.engine.engine",
    "Fact": "treetop.domain.constraints",
    "Graph": "treetop.counts.graph_reader",
    "GroupList": "treetop.counts.group_reader",
    "GroupSizes": "treetop.counts.group_reader",
    "GroupTables": "treetop.release.derived",
    "GroupUnit": "treetop.plan.group_unit",
    "Hierarchy": "treetop.domain.hierarchy",
    "Ledger": "treetop.ledger",
    "Loss": "treetop.privacy",
    "Plan": "treetop.plan.plan",
    "PlanFile": "treetop.plan.file",
    "Policies": "treetop.domain.unit",
    "Prepare": "treetop.io.source",
    "ProgressBar": "treetop._util.progress_bar",
    "Published": "treetop.publishing.publish",
    "Release": "treetop.release.release",
    "RunOptions": "treetop.publishing.releasing",
    "Selection": "treetop.release.selection",
    "Source": "treetop.io.source",
    "Spine": "treetop.domain.spine",
    "Split": "treetop.privacy",
    "TreetopError": "treetop.errors",
    "Unit": "treetop.privacy",
    "Verdict": "treetop.checking.check",
    "ask": "treetop.publishing.ask",
    "check": "treetop.checking.check",
    "compare_mechanisms": "treetop.addons.lab.compare",
    "compare_with_truth": "treetop.addons.lab.compare",
    "degree_plan": "treetop.plan.degrees",
    "design": "treetop.advice",
    "draft_plan": "treetop.plan.file",
    "export": "treetop.exporting",
    "first_look": "treetop.advice.first_look",
    "group_plan": "treetop.plan.groups",
    "inspect_table": "treetop.inspection",
    "joint_plan": "treetop.plan.joint",
    "loss_for": "treetop.advice",
    "level_differences": "treetop.release.estimates.table",
    "make_release": "treetop.publishing.publish",
    "outlook": "treetop.advice",
    "plan_summary": "treetop.publishing.publish",
    "publish": "treetop.publishing.publish",
    "read_plan": "treetop.plan.file",
    "regional_degree_plan": "treetop.plan.degrees",
    "read_true_counts": "treetop.measure.readers",
    "register_export": "treetop.exporting",
    "register_format": "treetop.io.source",
    "register_law": "treetop.noise",
    "register_relation": "treetop.privacy.relation",
    "register_repair": "treetop.repair",
    "reestimate": "treetop.release.release",
    "split_for": "treetop.advice",
    "try_out": "treetop.advice",
}

__all__ = [
    "CountTable",
    "Counts",
    "Engine",
    "Fact",
    "Graph",
    "GroupList",
    "GroupSizes",
    "GroupTables",
    "GroupUnit",
    "Hierarchy",
    "Ledger",
    "Loss",
    "Plan",
    "PlanFile",
    "Policies",
    "Prepare",
    "ProgressBar",
    "Published",
    "Release",
    "RunOptions",
    "Selection",
    "Source",
    "Spine",
    "Split",
    "TreetopError",
    "Unit",
    "Verdict",
    "ask",
    "check",
    "compare_mechanisms",
    "compare_with_truth",
    "degree_plan",
    "design",
    "draft_plan",
    "export",
    "first_look",
    "group_plan",
    "inspect_table",
    "joint_plan",
    "level_differences",
    "loss_for",
    "make_release",
    "outlook",
    "plan_summary",
    "publish",
    "read_plan",
    "read_true_counts",
    "reestimate",
    "regional_degree_plan",
    "register_export",
    "register_format",
    "register_law",
    "register_relation",
    "register_repair",
    "split_for",
    "try_out",
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
