"""The order of the spine, kept in step with the attributes of a plan when these change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from treetop.domain.spine import BELOW, TIMES
from treetop.plan.file.edit import Changes

SPINE = ("spine",)
_ENDS = {"origin", "destination"}
_ANY = "bottom-up"
_FLAT = "value"
"""The level of a plain list of values."""


def spine_changes(values: Mapping[str, Any], anew: bool = False) -> Changes:
    """Return the fields that must change so that the spine fits the attributes.

    Args:
        values: The plan file's values, with the attributes as they are to be.
        anew: Whether to leave the order that is stated aside.
    """
    attributes, spine = values.get("attributes", {}), values.get("spine", {})
    if len(attributes) < 2:
        return {(SPINE, name): None for name in ("order", "margins") if name in spine}
    order = None if anew else spine.get("order")
    if isinstance(order, str) and (order == _ANY or set(attributes) == _ENDS):
        return {}
    changes: dict[tuple[tuple[str, ...], str], Any] = {}
    names = list(attributes)
    if order == "destination-first" and set(names) >= _ENDS:  # which stays the more accurate one
        first, second = sorted((names.index("origin"), names.index("destination")))
        names[first], names[second] = "destination", "origin"
    levels = {name: level_names(name, attributes) for name in names}
    wanted = _kept(order, levels) if isinstance(order, list) else default_order(levels)
    if wanted != order:
        changes[SPINE, "order"] = wanted
    if isinstance(margins := spine.get("margins"), list):
        left = [one for one in margins if all(_is_level(token, levels) for token in _tokens(one))]
        if left != margins:
            changes[SPINE, "margins"] = left or "none"
    return changes


def level_names(name: str, attributes: Mapping[str, Any]) -> list[str] | None:
    """Return the levels of an attribute, coarse to fine; None if its list of codes is still open."""
    own = attributes[name]
    if (twin := own.get("same_as")) in attributes and twin != name:
        return level_names(twin, {**attributes, name: {}})
    if "levels" in own and ("hierarchy" in own or "values" in own):
        return list(own["levels"])
    return [_FLAT] if "values" in own else None


def default_order(levels: Mapping[str, Sequence[str] | None]) -> list[str]:
    """Return all levels, coarse ones of all attributes before fine ones, as a draft has them."""
    deep = zip_longest(*(_splits(name, own) for name, own in levels.items()))
    return [split for splits in deep for split in splits if split is not None]


def _splits(name: str, levels: Sequence[str] | None) -> list[str]:
    return [name] if levels is None or list(levels) == [_FLAT] else [f"{name}.{level}" for level in levels]


def _kept(order: list[str], levels: Mapping[str, Sequence[str] | None]) -> list[str]:
    """Return an order with the steps of attributes that have other levels now replaced, and those of others as is."""
    stale = [name for name in levels if not _fits(name, order, levels[name])]
    kept: list[str] = []
    for step in order:
        chains = [chain for chain in _chains(step) if chain.partition(".")[0].strip() in levels]
        left = [chain for chain in chains if chain.partition(".")[0].strip() not in stale]
        if left:
            kept.append(TIMES.join(left) if len(left) < len(_chains(step)) else step)
        for name in stale:
            if any(chain.partition(".")[0].strip() == name for chain in chains):
                placed = sum(split in kept for split in _splits(name, levels[name]))
                kept += _splits(name, levels[name])[placed : placed + 1]
    for name in stale:
        kept += [split for split in _splits(name, levels[name]) if split not in kept]
    return kept


def _fits(name: str, order: list[str], levels: Sequence[str] | None) -> bool:
    """Whether the levels of an attribute that an order has are some of its own, from coarse to fine."""
    tokens = [token for step in order for token in _tokens(step)]
    stated = [token.partition(".")[2] for token in tokens if token.partition(".")[0] == name]
    if levels is None:
        return bool(stated)
    if stated == [""]:
        return len(levels) == 1
    rest = iter(levels)
    return bool(stated) and all(level in rest for level in stated)


def _is_level(token: str, levels: Mapping[str, Sequence[str] | None]) -> bool:
    """Whether a margin names an attribute, or one of its levels, that there is."""
    name, _, level = token.partition(".")
    if name not in levels:
        return False
    known = levels[name]
    return known is None or not level or level in known


def _chains(step: str) -> list[str]:
    return [chain.strip() for chain in step.split(TIMES.strip())]


def _tokens(step: str) -> list[str]:
    return [token.strip() for chain in _chains(step) for token in chain.split(BELOW.strip())]
