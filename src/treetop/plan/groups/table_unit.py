"""The unit of a table of group sizes: a `GroupUnit` in the place where other plans have their `Unit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from treetop.domain.unit import Neighbours
from treetop.plan.groups.unit import Form, GroupUnit
from treetop.privacy import Sensitivity, Unit

_NEIGHBOURS: Mapping[str, Neighbours] = {"join-leave": "add-remove", "move": "replace", "group": "replace"}


@dataclass(frozen=True, init=False)
class GroupTableUnit(Unit):
    """A unit of group sizes, with what it can move at the levels of a plan."""

    group: GroupUnit
    """What is protected."""
    form: Form
    """What is measured: the number of groups of each size, or of each size and those below."""
    largest: int
    """The largest size that is told apart."""

    def __init__(
        self, group: GroupUnit, form: Form, largest: int, id: str | None = None, population: int | None = None
    ) -> None:
        super().__init__(group.entity, 1, _NEIGHBOURS[group.event], id, population=population)
        object.__setattr__(self, "group", group)
        object.__setattr__(self, "form", form)
        object.__setattr__(self, "largest", largest)

    @property
    def displaces(self) -> bool:
        """No: who stands twice in the table is refused."""
        return False

    @property
    def moves_by_one(self) -> bool:
        """No: what is counted is no record, and a unit may move one count by several."""
        return False

    def sensitivity(self, level: str) -> Sensitivity:
        """How far one unit can move the counts of a level: as far at each of them."""
        return self.group.sensitivity(self.form, self.largest)

    def total_is_exact(self, records_may_be_dropped: bool) -> bool:
        """The total is the number of groups on the public list: the same for all neighbours."""
        return True

    @property
    def extent(self) -> str:
        """How much one unit is."""
        return {"join-leave": "in a group or in none", "move": "in one group", "group": "all that is in it"}[
            self.group.event
        ]

    @property
    def limits(self) -> str:
        """What tells units of one name apart, for a ledger."""
        most = "" if self.group.quantity == 1 else f", at most {self.group.quantity} each"
        return f"of group sizes, {self.group.event}{most}"

    @property
    def exact_total(self) -> str:
        """What a release tells by its total."""
        return (
            "the number of groups: which groups there are, and in which region, is public, so their number is released "
            "without noise, and those of all regions add up to it"
        )

    def sentence(self) -> str:
        """Say in plain English what is protected."""
        return self.group.sentence()
