"""Preferences: what a release favours, in one word that decides how it is repaired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from treetop.basics.choices import Choices
from treetop.repair import Order, Repair

Prefer = Literal["fewer-invented", "fewer-lost", "lower-error"]


@dataclass(frozen=True)
class Preference:
    """What to favour."""

    name: Prefer
    """What plans call it."""
    words: str
    """What it favours, and at what price."""
    repair: Repair
    """The repair that it decides."""
    order: Order
    """The order that it decides."""


PREFERENCES: Choices[Preference] = Choices(
    "preference",
    Preference("fewer-invented", "few counts are invented, and more small ones lost", "chebyshev", "ascending"),
    Preference("fewer-lost", "few counts are lost, and more small ones invented", "chebyshev", "descending"),
    Preference(
        "lower-error", "counts are closer to the truth on average, and more are invented", "least-squares", "ascending"
    ),
)


def preference_of(repair: str, order: str) -> Prefer | None:
    """Return what a repair and an order favour, in one word; None where there is no word for it."""
    known = (PREFERENCES[name] for name in PREFERENCES)
    return next((one.name for one in known if (one.repair, one.order) == (repair, order)), None)
