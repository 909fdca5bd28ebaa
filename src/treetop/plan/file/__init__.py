"""Plan files: reading them, writing a plan as it was run, drafting one, and their schema."""

from treetop.plan.file._reader import family_of, parse_plan, plan_text, read_plan
from treetop.plan.file._stated import PlanFile, named_files
from treetop.plan.file.describe import describe_plan, plan_schema
from treetop.plan.file.draft import draft_plan
from treetop.plan.file.edit import Difference, differences

__all__ = [
    "Difference", "PlanFile", "describe_plan", "differences", "draft_plan", "family_of", "named_files", "parse_plan",
    "plan_schema", "plan_text", "read_plan",
]  # fmt: skip
