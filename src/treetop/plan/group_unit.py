"""The protected unit of a release of group sizes, and its sensitivity.

The list of groups is public and fixed, with the region of each; their members are private. A group may be empty, so
size 0 is counted like any other, and sizes above the largest are counted there. Without these three rules the number of
groups would differ between neighbours, and so would every cumulative count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from treetop._util.choices import check_choice, nearest
from treetop._util.lazy import set_fields
from treetop._util.numbers import whole
from treetop.domain.unit import Neighbours
from treetop.errors import PlanError, UnitError
from treetop.privacy import Sensitivity, Unit

Event: TypeAlias = Literal["join-leave", "move", "group"]
Form: TypeAlias = Literal["direct", "cumulative"]

_REFUSED = {
    "group-add-remove": "a group more or less changes the number of groups, which is released exactly, and moves every "
    'cumulative count; put all groups that may exist on the public list, and protect what is in one with "group"',
    "group-move": "the region of a group is public, and with it the number of groups of each region; "
    'protect what is in a group with "group"',
}

_NEIGHBOURS: Mapping[str, Neighbours] = {"join-leave": "add-remove", "move": "replace", "group": "replace"}


def group_sensitivity(event: Event, quantity: int, form: Form, largest: int) -> Sensitivity:
    """Return how far one unit can move the counts of a level, for the sizes 0 … `largest`.

    A group that changes from size a to b > a takes 1 from n_a and adds it to n_b, and takes 1 from each of c_a …
    c_(b − 1). A move changes two groups, by as much in opposite directions: in one region their changes of n can
    fall on one size, 2 there and 1 on either side, and those of c can only cancel.

    >>> group_sensitivity("join-leave", 1, "cumulative", largest=20)
    Sensitivity(l1=1, l2_squared=1)
    """
    groups = 2 if event == "move" else 1
    if form == "cumulative":
        reach = groups * (largest if event == "group" else min(quantity, largest))
        return Sensitivity(l1=reach, l2_squared=reach)
    squared = 6 if event == "move" and largest > 1 else 2 * groups
    return Sensitivity(l1=2 * groups, l2_squared=squared)


@dataclass(frozen=True, init=False)
class GroupUnit(Unit):
    """One protected unit of a release of group sizes. A plan adds what its sensitivity depends on: form and largest.

    >>> print(GroupUnit("household", event="group").sentence())
    Protects one household: the loss limits what the release tells about all that is in any one group. \
Which groups there are, and in which region, is public.
    """

    counts: ClassVar[str] = "groups"

    event: Event
    """How neighbours differ. "join-leave": one person is in a group or in none. "move": one person is in another group,
    or another person is. "group": the whole content of one group, so that its size may be any."""
    quantity: int
    """The most that one person adds to the size of a group: 1 if sizes count people."""
    form: Form | None
    """Measured form: the number of groups of each size, or of each size and those below."""
    largest: int | None

    def __init__(
        self,
        entity: str | None = None,
        event: Event | None = None,
        quantity: int = 1,
        *,
        form: Form | None = None,
        largest: int | None = None,
        id: str | None = None,
        population: int | None = None,
    ) -> None:
        if not isinstance(entity, str) or not entity.strip():
            raise UnitError(
                f"The unit's entity is {entity!r}, but what is protected has no default; "
                'name one of them, such as entity="person" or entity="household".'
            )
        if event in _REFUSED:
            raise UnitError(f"The unit's event is {event!r}, which cannot be protected here: {_REFUSED[event]}.")
        if event not in get_args(Event):
            raise UnitError(
                f"The unit's event is {event!r}{nearest(str(event), get_args(Event))}; there is no default for it, so "
                'choose one. "join-leave" hides whether a person is in any group; "move" also hides in which of them; '
                '"group" hides all that is in a group.'
            )
        most = whole(quantity)
        if most is None:
            raise UnitError(f"The unit's quantity is {quantity!r}; give a whole number, 1 or more.")
        if event == "group" and most != 1:
            raise UnitError("A whole group may change by any quantity; leave the unit's quantity out.")
        if form is not None:
            check_choice("form", form, get_args(Form))
        if largest is not None and whole(largest) is None:
            raise PlanError(f"largest is {largest!r}: give the largest size, a whole number, 1 or more")
        super().__init__(entity, 1, _NEIGHBOURS[str(event)], id, population=population)
        set_fields(self, event=event, quantity=most, form=form, largest=largest)

    def in_plan(self, form: Form, largest: int, id: str | None = None, population: int | None = None) -> GroupUnit:
        """Return the unit with what a plan adds to it."""
        return GroupUnit(
            self.entity, self.event, self.quantity, form=form, largest=largest, id=id, population=population
        )

    def sensitivity(self, level: str) -> Sensitivity:
        """Return how far one unit can move the counts of a level, the same at every level."""
        if self.form is None or self.largest is None:
            raise UnitError("how far a unit can move group sizes depends on their plan: ask the unit of a plan")
        return group_sensitivity(self.event, self.quantity, self.form, self.largest)

    @property
    def binding(self) -> dict[str, Any]:
        """Properties that the noise of histograms by region is bound to."""
        return {"entity": self.entity, "event": self.event, "quantity": self.quantity}

    displaces = False  # a person who is twice in the table is refused
    moves_by_one = False

    def total_is_exact(self, records_may_be_dropped: bool) -> bool:
        """True: the number of groups on the public list is the same for all neighbours."""
        return True

    @property
    def extent(self) -> str:
        """The extent of one unit, in words."""
        return {"join-leave": "in a group or in none", "move": "in one group", "group": "all that is in it"}[self.event]

    @property
    def limits(self) -> str:
        """Key that distinguishes units of the same name in a ledger."""
        most = "" if self.quantity == 1 else f", at most {self.quantity} each"
        return f"of group sizes, {self.event}{most}"

    def sentence(self) -> str:
        """Describe the protected unit in plain English."""
        secret = {
            "join-leave": f"whether any one {self.entity} is in its group",
            "move": f"in which group any one {self.entity} is, if in any",
            "group": "all that is in any one group",
        }[self.event]
        most = "" if self.quantity == 1 else f" Each adds at most {self.quantity} to the size of its group (declared)."
        return (
            f"Protects one {self.entity}: the loss limits what the release tells about {secret}.{most} "
            "Which groups there are, and in which region, is public."
        )
