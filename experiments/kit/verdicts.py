"""Verdicts: what a page says of the run that it stands under, in a word, always computed.

Every function that finds one is registered here by name. A test feeds each of them a made-up run that must turn it, and
fails where one has no such run. Of nothing there is no verdict: where no setting was run, that is said instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

_Judge = TypeVar("_Judge", bound=Callable[..., Any])

VERDICTS: dict[str, Callable[..., Any]] = {}
"""All that find a verdict, by study and name."""

WORDS = {True: "Holds", False: "Does not hold", None: "In part"}
NOT_RUN = "Not run"
NOTHING_RUN = "None of the settings that it is about were run, so that nothing can be said of it."


class NothingRunError(Exception):
    """Nothing was run that a verdict could be about."""


def verdict(name: str) -> Callable[[_Judge], _Judge]:
    """Register what finds a verdict, as `study.name`; two of one name are a mistake."""

    def register(judge: _Judge) -> _Judge:
        if name in VERDICTS:
            raise ValueError(f"two verdicts are called {name!r}")
        VERDICTS[name] = judge
        return judge

    return register


@dataclass(frozen=True)
class Tally:
    """In how many of the settings that were run something is so."""

    held: int
    """In how many."""
    all: int
    """Of how many; never of none."""

    def __post_init__(self) -> None:
        if self.all == 0:
            raise NothingRunError

    def __str__(self) -> str:
        return f"all {self.all:,}" if self.is_all else f"{self.held:,} of {self.all:,}"

    @property
    def is_all(self) -> bool:
        """Whether it is so everywhere."""
        return self.held == self.all


def tally(found: Iterable[bool]) -> Tally:
    """Count in how many settings something is so; raises where there are none."""
    every = list(found)
    return Tally(sum(every), len(every))


def standing(*tallies: Tally) -> bool | None:
    """Say whether something holds: everywhere (True), in no setting of any part of it (False), or in part (None)."""
    if all(one.is_all for one in tallies):
        return True
    return None if any(one.held for one in tallies) else False
