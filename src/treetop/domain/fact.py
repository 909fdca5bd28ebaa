"""A fact: something public that a release must keep, as a plan states it: a count, a bound, an impossible cell."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from treetop.errors import FactError

SAME = "same"
"""The rule that only equal codes go together."""
COUNTED = ("exact", "at_least", "at_most")
"""What is a number of every cell that is listed."""
LISTED = ("possible", "impossible")
"""What is a list of cells."""
INVARIANT = "invariant"
"""What the private table itself says, told as it is."""


@dataclass(frozen=True, eq=False)
class Fact:
    """What is known of one table, which a plan names as it names margins: "place.state", "age.band * status".

    Numbers and lists are public: a path, a table, or in Python a mapping from codes to counts, or a list of codes. Of
    several attributes, codes are tuples.

    >>> Fact(exact={"A": 120, "B": 80}).kinds, Fact(at_least={"A": 3}, possible=["A", "B"]).kinds
    (('exact',), ('at_least', 'possible'))
    """

    exact: Any = None
    """The counts of all cells: instead of measuring, these are released."""
    at_least: Any = None
    """The least that some cells have."""
    at_most: Any = None
    """The most that some cells have."""
    possible: Any = None
    """The cells that there can be, and no others; or "same": those whose codes are equal."""
    impossible: Any = None
    """Cells that there cannot be."""
    invariant: bool = False
    """The private table's own counts, published exactly: they are not protected."""
    unchecked: bool = False
    """Whether the private table is not compared with it before anything is spent; it is kept all the same."""
    sha256: str | None = None
    """Refuses other contents; the plan of a release has it."""

    def __post_init__(self) -> None:
        for name in ("invariant", "unchecked"):
            if not isinstance(getattr(self, name), bool):
                raise FactError(f"{name} is {getattr(self, name)!r}: it is true or false")
        kinds = self.kinds
        if not kinds:
            raise FactError(f"says nothing: give one of {', '.join((*COUNTED, *LISTED))}, or invariant = true")
        if len(kinds) > 1 and (alone := [kind for kind in kinds if kind in ("exact", "invariant")]):
            other = next(kind for kind in kinds if kind != alone[0])
            raise FactError(f"{alone[0]} says all about its table, and {other} stands beside it: keep one of them")
        if "possible" in kinds and "impossible" in kinds:
            raise FactError("possible and impossible both list the cells there can be: keep one of them")
        if self.unchecked and self.invariant:
            raise FactError("an invariant is what the private table has: leave unchecked out")

    @property
    def kinds(self) -> tuple[str, ...]:
        """What it states."""
        stated = tuple(kind for kind in (*COUNTED, *LISTED) if getattr(self, kind) is not None)
        return (*stated, INVARIANT) if self.invariant else stated

    @staticmethod
    def of(stated: Any) -> Fact:
        """Return what a plan states of a table: a fact, or the table's exact counts themselves."""
        if isinstance(stated, Fact):
            return stated
        if stated is None or isinstance(stated, bool):
            raise FactError(f"is {stated!r}: give a file of counts, or a treetop.Fact")
        return Fact(exact=stated)


KEYS = tuple(field.name for field in fields(Fact))
"""What a plan file can say of a table."""
