"""Plan files: reading them, writing a plan as it was run, and drafting one."""

from treetop.plan.file.describe import describe_plan
from treetop.plan.file.draft import draft_plan
from treetop.plan.file.reader import PlanFile, read_plan

__all__ = ["PlanFile", "describe_plan", "draft_plan", "read_plan"]
