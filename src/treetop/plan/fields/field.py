"""A field of a plan is declared once; reader, writer, digest, schema, reference and draft follow from that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from treetop.plan.fields.kinds import Kind

if TYPE_CHECKING:
    from treetop.plan.file.graph import GraphFile
    from treetop.plan.file.planfile import PlanFile, Said
    from treetop.plan.plan import PurePlan

SPINE, GROUPS, DEGREES = "spine", "groups", "degrees"
"""The families of plans: counts along a spine, of tables and graphs; group sizes; and degrees."""
FAMILIES = (SPINE, GROUPS, DEGREES)

Values = Mapping[str, Any]
"""What was read: by section, and in each by name."""


@dataclass(frozen=True, eq=False)
class Ran:
    """A plan that is written down, with what is said about its data."""

    plan: PurePlan
    said: Said | None
    file: PlanFile | None


@dataclass(frozen=True, eq=False)
class Field:
    """One field of a plan file, and all that is known about it."""

    section: str
    """Its section; empty at the top of the file, and in capitals where a name is the plan's own."""
    name: str
    """Its name there."""
    kind: Kind
    """What it may hold."""
    help: str
    """What it means, in a sentence for the reference."""
    _: KW_ONLY
    default: Any = None
    """What it is when it is left out."""
    since: str = "0.1"
    """The version that brought it."""
    families: tuple[str, ...] = (SPINE,)
    """The families of plans that have it."""
    question: str = ""
    """What is asked where it is left open, here and in drafts."""
    asked: Callable[[Values], bool] | None = None
    """Whether it must be answered, given all that was read; None where it has a default, or may be left out."""
    sketch: str = ""
    """What a draft proposes, commented out, with what follows it on the line; empty where it says nothing."""
    at: str = ""
    """Where its value is once the plan is made, a path from `Ran`, or of a graph from `GraphFile`; it is an argument
    of what lies before the last dot."""
    take: Callable[[Ran], Any] | None = None
    """How it is written down where that is not what stands at its place."""
    place: int | None = 0
    """Where it is written among the fields of its section, which is else as they are declared; None: it never is."""
    digest: str = ""
    """Where the plan's own description, of which its digest is made, has it; empty where it decides nothing."""
    settled: str = ""
    """Where the plan has what became of it, where to leave it out is to leave it open; otherwise as `at`."""
    unsaid: Any = None
    """What became of it where the description does not say, as that of old plans does not."""
    always: bool = False
    """Whether it is described and written where it is the default as well. Of what came later it is not, so that old
    plans keep their digest."""

    def __post_init__(self) -> None:
        if not self.help or (self.asked is not None and not self.question):
            raise ValueError(f"[{self.section}] {self.name} has no words: declare it with its help and question")

    def value(self, start: Ran | GraphFile) -> Any:
        """Return what is written down."""
        return self.take(start) if self.take is not None and isinstance(start, Ran) else follow(start, self.at)


def follow(start: object, path: str) -> Any:
    """Return what stands at a path, through attributes and mappings; None where something on the way is not there."""
    value: Any = start
    for name in path.split(".") if path else ():
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
        if value is None:
            return None
    return value if path else None
