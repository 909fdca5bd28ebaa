"""What happens to edges that are not proper ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from treetop.errors import PlanError

Policy: TypeAlias = Literal["error", "drop", "keep"]

_CHOICES = {"self_loops": ("error", "drop"), "repeated": ("error", "drop", "keep"), "unknown": ("error", "drop")}
_DROPPED = {"self_loops": "self-loops", "repeated": "repeated edges", "unknown": "edges to unknown nodes"}


@dataclass(frozen=True)
class Policies:
    """What happens to edges that are not proper ones."""

    self_loops: Policy = "error"
    """Edges from a node to itself: refused or dropped."""
    repeated: Policy = "error"
    """Further edges between the same two ends, in either direction where edges have none: refused, dropped or kept."""
    unknown: Policy = "error"
    """Edges to ids that the node table does not have: refused or dropped."""

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if (given := getattr(self, name)) not in choices:
                raise PlanError(f"{name} is {given!r}: choose one of {', '.join(choices)}")

    @property
    def drop(self) -> bool:
        """Whether an edge of the file may be no part of the graph."""
        return "drop" in (self.self_loops, self.repeated, self.unknown)

    @property
    def dropped(self) -> str:
        """What is dropped, in words."""
        return " and ".join(words for name, words in _DROPPED.items() if getattr(self, name) == "drop")

    def describe(self) -> dict[str, str]:
        """Return them as plain values."""
        return {name: getattr(self, name) for name in _CHOICES}
