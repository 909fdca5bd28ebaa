"""What a plan may prefer, and how sure its intervals are: the choices that it shares with its fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from treetop.errors import PlanError
from treetop.repair import Order, Repair

CONFIDENCE = 0.95
"""The confidence of intervals, margins and bounds, unless a plan says otherwise."""

Prefer = Literal["fewer-invented", "fewer-lost", "lower-error"]
PREFERENCES: Mapping[Prefer, tuple[Repair, Order]] = {
    "fewer-invented": ("chebyshev", "ascending"),
    "fewer-lost": ("chebyshev", "descending"),
    "lower-error": ("least-squares", "ascending"),
}
"""What each preference stands for."""


def as_confidence(value: object) -> float:
    """Read a confidence: a probability between 0 and 1."""
    try:
        confidence = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        confidence = 0.0
    if not 0 < confidence < 1:
        raise PlanError(f"confidence is {value!r}: give a probability between 0 and 1, such as 0.95")
    return confidence
