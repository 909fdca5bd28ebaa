"""Plan files: reading them, writing a plan as it was run, and drafting one."""

from treetop.planfile.describe import describe_plan
from treetop.planfile.draft import draft_plan
from treetop.planfile.reader import PlanFile, read_plan

__all__ = ["PlanFile", "describe_plan", "draft_plan", "read_plan"]
