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
    from treetop.plan.group_plan import group_plan
    from treetop.plan.group_unit import GroupUnit
    from treetop.plan.plan import Plan, joint_plan
    from treetop.privacy import Loss, Split, Unit
    from treetop.privacy.relation import register_relation
    from treetop.publishing.ask import ask
    from treetop.publishing.publish import Published, make_release, plan_summary, publish
    from treetop.publishing.releasing import RunOptions
    from treetop.release.count_table import CountTable
    from treetop.release.derived import GroupTables
    from treetop.release.estimates.estimate_table import level_differences
    from treetop.release.release import Release, reestimate
    from treetop.release.selection import Selection
    from treetop.repair import register_repair

_NAMES = {
    "treetop._util.progress_bar": "ProgressBar",
    "treetop.addons.lab.compare": "compare_mechanisms compare_with_truth",
    "treetop.advice": "design loss_for outlook split_for try_out",
    "treetop.advice.first_look": "first_look",
    "treetop.checking.check": "Verdict check",
    "treetop.counts.counts": "Counts",
    "treetop.counts.graph_reader": "Graph",
    "treetop.counts.group_reader": "GroupList GroupSizes",
    "treetop.domain.constraints": "Fact",
    "treetop.domain.hierarchy": "Hierarchy",
    "treetop.domain.spine": "Spine",
    "treetop.domain.unit": "Policies",
    "treetop.engine.engine": "Engine",
    "treetop.errors": "TreetopError",
    "treetop.exporting": "export register_export",
    "treetop.inspection": "inspect_table",
    "treetop.io.source": "Prepare Source register_format",
    "treetop.ledger": "Ledger",
    "treetop.measure.readers": "read_true_counts",
    "treetop.noise": "register_law",
    "treetop.plan.degrees": "degree_plan regional_degree_plan",
    "treetop.plan.file": "PlanFile draft_plan read_plan",
    "treetop.plan.group_unit": "GroupUnit",
    "treetop.plan.group_plan": "group_plan",
    "treetop.plan.plan": "Plan joint_plan",
    "treetop.privacy": "Loss Split Unit",
    "treetop.privacy.relation": "register_relation",
    "treetop.publishing.ask": "ask",
    "treetop.publishing.publish": "Published make_release plan_summary publish",
    "treetop.publishing.releasing": "RunOptions",
    "treetop.release.count_table": "CountTable",
    "treetop.release.derived": "GroupTables",
    "treetop.release.estimates.estimate_table": "level_differences",
    "treetop.release.release": "Release reestimate",
    "treetop.release.selection": "Selection",
    "treetop.repair": "register_repair",
}
"""The public names of each module."""
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "CountTable", "Counts", "Engine", "Fact", "Graph", "GroupList", "GroupSizes", "GroupTables", "GroupUnit",
    "Hierarchy", "Ledger", "Loss", "Plan", "PlanFile", "Policies", "Prepare", "ProgressBar", "Published", "Release",
    "RunOptions", "Selection", "Source", "Spine", "Split", "TreetopError", "Unit", "Verdict", "ask", "check",
    "compare_mechanisms", "compare_with_truth", "degree_plan", "design", "draft_plan", "export", "first_look",
    "group_plan", "inspect_table", "joint_plan", "level_differences", "loss_for", "make_release", "outlook",
    "plan_summary", "publish", "read_plan", "read_true_counts", "reestimate", "regional_degree_plan",
    "register_export", "register_format", "register_law", "register_relation", "register_repair", "split_for",
    "try_out",
]  # fmt: skip


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
