"""Which counts of a release carry no noise, by its card and by what was public."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from treetop.card.meaning import PUBLIC
from treetop.domain.fact import INVARIANT
from treetop.release.selection import Selection


def is_exact(level: Mapping[str, Any]) -> bool:
    """Whether a level of a card carries no noise. One that is not measured may still follow from noisy ones."""
    return not level["measured"] and (level.get("exact") is True or level.get("bound") == 0)


def told_exactly(card: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a card says is told without noise, apart from hierarchies and plan."""
    yield from (one for one in card.get("exact", ()) if one not in PUBLIC)


def invariants(card: Mapping[str, Any]) -> list[str]:
    """Return the tables whose true counts are published as they are."""
    return [fact["table"] for fact in card.get("facts", ()) if INVARIANT in fact["states"]]


def compared(card: Mapping[str, Any]) -> list[str]:
    """Return the tables that the private table had to agree with."""
    return [
        fact["table"]
        for fact in card.get("facts", ())
        if INVARIANT not in fact["states"] and not fact.get("unchecked", False)
    ]


def carries_no_noise(release: Selection, depths: Sequence[int]) -> bool:
    """Whether the counts of a table, given by how many levels of every attribute it tells apart, carry no noise."""
    if not any(depths):
        return is_exact(release.card["levels"][0])
    whole = release.whole
    if whole.facts is not None and whole.facts.decides(tuple(depths)):
        return True
    return whole.public is not None and not depths[0]  # of groups and people by region, the number is public
