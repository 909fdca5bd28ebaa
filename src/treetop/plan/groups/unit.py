"""The protected unit of a release of group sizes, and its sensitivity.

The list of groups is public and fixed, with the region of each; their members are private. A group may be empty, so
size 0 is counted like any other, and sizes above the largest are counted there. Without these three rules the number of
groups would differ between neighbours, and so would every cumulative count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from treetop._util.choices import nearest
from treetop._util.numbers import whole
from treetop.domain.unit import Neighbours
from treetop.errors import UnitError
from treetop.privacy import Sensitivity, Unit

Event: TypeAlias = Literal["join-leave", "move", "group"]
Form: TypeAlias = Literal["direct", "cumulative"]

_REFUSED = {
    "group-add-remove": "a group more or less changes the number of groups, which is released exactly, and moves every "
    'cumulative count; put all groups that may exist on the public list, and protect what is in one with "group"',
    "group-move": "the region of a group is public, and with it the number of groups of each region; "
    'protect what is in a group with "group"',
}


@dataclass(frozen=True, init=False)
class GroupUnit:
    """One protected unit of a release of group sizes.

    >>> GroupUnit("person", event="join-leave").sensitivity("cumulative", largest=20)
    Sensitivity(l1=1, l2_squared=1)
    """

    entity: str
    """Singular noun for one unit: "person", or "household" if the whole group is protected."""
    event: Event
    """How neighbours differ. "join-leave": one person is in a group or in none. "move": one person is in another group,
    or another person is. "group": the whole content of one group, so that its size may be any."""
    quantity: int
    """The most that one person adds to the size of a group: 1 if sizes count people."""

    def __init__(self, entity: str | None = None, event: Event | None = None, quantity: int = 1) -> None:
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
        object.__setattr__(self, "entity", entity)
        object.__setattr__(self, "event", event)
        object.__setattr__(self, "quantity", most)

    def sensitivity(self, form: Form, largest: int) -> Sensitivity:
        """Return how far one unit can move the counts of a level, for the sizes 0 … `largest`.

        A group that changes from size a to b > a takes 1 from n_a and adds it to n_b, and takes 1 from each of c_a …
        c_(b − 1). A move changes two groups, by as much in opposite directions: in one region their changes of n can
        fall on one size, 2 there and 1 on either side, and those of c can only cancel.
        """
        groups = 2 if self.event == "move" else 1
        if form == "cumulative":
            reach = groups * (largest if self.event == "group" else min(self.quantity, largest))
            return Sensitivity(l1=reach, l2_squared=reach)
        squared = 6 if self.event == "move" and largest > 1 else 2 * groups
        return Sensitivity(l1=2 * groups, l2_squared=squared)

    def sentence(self) -> str:
        """Describe the protected unit in plain English.

        >>> print(GroupUnit("household", event="group").sentence())
        One household is protected: the loss bounds what the release tells about all that is in any one group. \
Which groups there are, and in which region, is public.
        """
        secret = {
            "join-leave": f"whether any one {self.entity} is in its group",
            "move": f"in which group any one {self.entity} is, if in any",
            "group": "all that is in any one group",
        }[self.event]
        most = "" if self.quantity == 1 else f" Each adds at most {self.quantity} to the size of its group (declared)."
        return (
            f"One {self.entity} is protected: the loss bounds what the release tells about {secret}.{most} "
            "Which groups there are, and in which region, is public."
        )


# The unit of a table of group sizes: a `GroupUnit` in the place where other plans have their `Unit`.

_NEIGHBOURS: Mapping[str, Neighbours] = {"join-leave": "add-remove", "move": "replace", "group": "replace"}


@dataclass(frozen=True, init=False)
class GroupTableUnit(Unit):
    """A unit of group sizes, with its sensitivity at the levels of a plan."""

    group: GroupUnit
    form: Form
    """Measured form: the number of groups of each size, or of each size and those below."""
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
        """False: a person who is twice in the table is refused."""
        return False

    @property
    def moves_by_one(self) -> bool:
        """False: one unit may move a count of groups by several."""
        return False

    def sensitivity(self, level: str) -> Sensitivity:
        """Return how far one unit can move the counts of a level, the same at every level."""
        return self.group.sensitivity(self.form, self.largest)

    def total_is_exact(self, records_may_be_dropped: bool) -> bool:
        """True: the number of groups on the public list is the same for all neighbours."""
        return True

    @property
    def extent(self) -> str:
        """The extent of one unit, in words."""
        return {"join-leave": "in a group or in none", "move": "in one group", "group": "all that is in it"}[
            self.group.event
        ]

    @property
    def limits(self) -> str:
        """Key that distinguishes units of the same name in a ledger."""
        most = "" if self.group.quantity == 1 else f", at most {self.group.quantity} each"
        return f"of group sizes, {self.group.event}{most}"

    @property
    def exact_total(self) -> str:
        """Description of the information in an exact total."""
        return (
            "the number of groups: which groups there are, and in which region, is public, so their number is released "
            "without noise, and those of all regions add up to it"
        )

    def sentence(self) -> str:
        """Describe the protected unit in plain English."""
        return self.group.sentence()
