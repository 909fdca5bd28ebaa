"""Group sizes: how many groups of each size every region has, released so that all levels add up."""

from treetop.groups.derived import GroupTables
from treetop.groups.lists import GroupList
from treetop.groups.plan import GroupLevel, GroupPlan, GroupRepair, Public
from treetop.groups.planned import GroupTablePlan
from treetop.groups.read import Rows
from treetop.groups.release import GroupRelease
from treetop.groups.sizes import GroupSizes
from treetop.groups.unit import Event, Form, GroupUnit

__all__ = [
    "Event",
    "Form",
    "GroupLevel",
    "GroupList",
    "GroupPlan",
    "GroupRelease",
    "GroupRepair",
    "GroupSizes",
    "GroupTablePlan",
    "GroupTables",
    "GroupUnit",
    "Public",
    "Rows",
]
