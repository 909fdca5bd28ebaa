"""Group sizes: how many groups of each size every region has, released so that all levels add up."""

from treetop.groups.plan import GroupLevel, GroupPlan, GroupRepair, Public
from treetop.groups.release import GroupRelease
from treetop.groups.sizes import GroupSizes
from treetop.groups.unit import Event, Form, GroupUnit

__all__ = [
    "Event",
    "Form",
    "GroupLevel",
    "GroupPlan",
    "GroupRelease",
    "GroupRepair",
    "GroupSizes",
    "GroupUnit",
    "Public",
]
