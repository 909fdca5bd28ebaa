"""The protected unit in a ledger: losses add up for one unit only, under the same conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treetop.domain.guarantee import GuaranteeCondition, fingerprint, only_if
from treetop.errors import Refusal
from treetop.privacy import Unit


class OtherUnit(Refusal):
    """A release that protects another unit than the earlier ones of its data set, or under other conditions."""


def unit_text(
    unit: Unit, conditions: Sequence[GuaranteeCondition] = (), reading: Mapping[str, Any] | None = None
) -> str:
    """Say what tells units apart, in the words that a ledger keeps.

    Conditions are told apart by a fingerprint too: of the hierarchies and numbers that they are about, and of how the
    private table is read.

    >>> unit_text(Unit("trip", neighbours="replace"))
    'trip, exactly 1 record (declared), replace'
    """
    text = f"{unit.entity.strip()}, {unit.limits}"
    if not conditions:
        return text
    return f"{text}, {only_if(conditions)} (fingerprint {fingerprint(conditions, reading or {})})"
