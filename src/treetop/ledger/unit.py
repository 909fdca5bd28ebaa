"""The protected unit in a ledger: losses add up for one unit only."""

from __future__ import annotations

from treetop.errors import Refusal
from treetop.privacy import Unit


class OtherUnit(Refusal):
    """A release that protects another unit than the earlier ones of its data set."""


def unit_text(unit: Unit) -> str:
    """Say what tells units apart, in the words that a ledger keeps.

    >>> unit_text(Unit("trip", neighbours="replace"))
    'trip, at most 1 record, replace'
    """
    return f"{unit.entity.strip()}, {unit.limits}"
