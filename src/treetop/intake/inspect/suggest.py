"""Which attributes a plan for a table could have, from what its columns look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from treetop.domain.spine import is_sound_level, sound_name
from treetop.intake.inspect.columns import Column, words
from treetop.intake.inspect.lookup import Match
from treetop.intake.inspect.nesting import Codes, determines
from treetop.intake.inspect.prefixes import Prefixes

_ORIGIN = words("origin orig o from home pickup start source residence departure u")
_DESTINATION = words("destination dest d to work dropoff end target workplace arrival v")
_ENDS = _ORIGIN | _DESTINATION
_MOST_ATTRIBUTES = 6
_MOST_VALUES = 1000
_RECURRING = 50
_LISTED = 50


@dataclass(frozen=True)
class Suggestion:
    """An attribute that a plan could have."""

    name: str
    """The name of the attribute."""
    column: str
    """Its column in the private table."""
    match: Match | None = None
    """Where it was found in the hierarchy file."""
    prefixes: Prefixes | None = None
    """How its codes can be cut into levels."""
    chain: tuple[str, ...] = ()
    """The columns of the private table that nest above it, and itself."""
    same_as: str | None = None
    """An earlier attribute with the same hierarchy."""
    many: bool = False
    """Whether it has more values than anybody would list in a plan."""

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of its hierarchy, seen or supposed, coarse to fine; none where it is a plain list of values."""
        if self.match is not None:
            return sound_levels(self.match.levels)
        if self.prefixes is not None:
            return sound_levels(self.prefixes.levels)
        return sound_levels(self.chain or (("group", self.column) if self.many else ()))

    def same_hierarchy(self, other: Suggestion) -> bool:
        """Whether both attributes hold codes of one kind."""
        if self.match or other.match:
            return bool(self.match and other.match and self.match.place == other.match.place)
        if self.prefixes or other.prefixes:
            mine, theirs = self.prefixes, other.prefixes
            return bool(mine and theirs and (mine.length, mine.known) == (theirs.length, theirs.known))
        ends = words(self.column) & _ENDS and words(other.column) & _ENDS
        return bool(ends) and _kinds(self.chain or (self.column,)) == _kinds(other.chain or (other.column,))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"name": self.name, "column": self.column, "same_as": self.same_as}


def suggest_count(columns: Sequence[Column], sample: Mapping[str, Codes]) -> str | None:
    """Return the column of counts: named so, or the only whole number beside codes that never recur."""
    named = [column.name for column in columns if column.kind == "count"]
    if named:
        return named[0]
    numbers = [column for column in columns if column.kind == "code" and column.type == "whole number"]
    keys = [codes for name, codes in sample.items() if name not in {column.name for column in numbers}]
    if len(numbers) != 1 or len(keys) < 2:
        return None
    rows = len(keys[0].number)
    together = np.zeros(rows, np.int64)
    for codes in keys:
        together = np.unique(together * codes.distinct + codes.number, return_inverse=True)[1]
    return numbers[0].name if rows > 1 and len(np.unique(together)) == rows else None


def suggest_attributes(
    columns: Sequence[Column],
    chains: Sequence[tuple[str, ...]],
    matches: Sequence[Match],
    sample: Mapping[str, Codes],
    count: str | None,
) -> tuple[Suggestion, ...]:
    """Return attributes: the two ends of a table of flows; of any other table its columns of codes, within reason.

    Columns that match a lookup come before prefix codes and nesting columns, and those before plain codes.
    """
    matched = _matched([match for match in matches if match.column != count], sample)
    known = {match.column for match in matches}
    told = {name for chain in chains for name in chain[:-1]}
    told |= {name for chain in chains if not known.isdisjoint(chain) for name in chain}
    rest = [column for column in columns if column.kind == "code" and column.name not in {count, *known, *told}]
    structured = _structured(rest, {chain[-1]: chain for chain in chains})
    flat = _flat([column for column in rest if column.name not in {one.column for one in structured}], sample)
    first = matched or structured or flat
    if ends := _two_ends(first):
        return _share(_name(list(ends) if first is flat else first))
    order = [column.name for column in columns]
    found = [*matched, *structured, *flat][:_MOST_ATTRIBUTES]
    return _share(_name(sorted(found, key=lambda one: order.index(one.column))))


def _matched(matches: Sequence[Match], sample: Mapping[str, Codes]) -> list[Suggestion]:
    """Keep the finest of matching columns that nest, and one where three or more hold codes of one kind."""
    coarser = {
        match.column
        for match in matches
        for finer in matches
        if match.lookup is finer.lookup
        and match.leaf in finer.levels[:-1]
        and _nest(sample, finer.column, match.column)
    }
    finest = [match for match in matches if match.column not in coarser]
    by_leaf: dict[tuple[str, str], list[Match]] = {}
    for match in finest:
        by_leaf.setdefault(match.place, []).append(match)
    kept = [
        match
        for group in by_leaf.values()
        for match in (group if len(group) <= 2 else [max(group, key=lambda one: one.fit)])
    ]
    return [Suggestion(match.column, match.column, match=match) for match in kept]


def _nest(sample: Mapping[str, Codes], finer: str, coarser: str) -> bool:
    return finer in sample and coarser in sample and determines(sample[finer], sample[coarser])


def _structured(rest: Sequence[Column], chains: Mapping[str, tuple[str, ...]]) -> list[Suggestion]:
    return [
        Suggestion(column.name, column.name, prefixes=column.prefixes, chain=chains.get(column.name, ()))
        for column in rest
        if column.prefixes is not None or column.name in chains
    ]


def _flat(rest: Sequence[Column], sample: Mapping[str, Codes]) -> list[Suggestion]:
    """Take the columns whose values are few, or recur."""
    most = {name: max(_MOST_VALUES, len(codes.number) / _RECURRING) for name, codes in sample.items()}
    few = [column for column in rest if column.distinct <= most.get(column.name, _MOST_VALUES)]
    return [Suggestion(column.name, column.name, many=column.distinct > _LISTED) for column in few]


def _two_ends(found: Sequence[Suggestion]) -> tuple[Suggestion, Suggestion] | None:
    """Return two attributes with codes of one kind, if there are any."""
    return next(((one, other) for one, other in combinations(found, 2) if one.same_hierarchy(other)), None)


def _name(found: list[Suggestion]) -> list[Suggestion]:
    """Call two ends of one kind origin and destination, and keep the other names apart."""
    if len(found) == 2 and found[0].same_hierarchy(found[1]):
        first, second = (words(one.column) for one in found)
        swapped = bool(first & _DESTINATION or second & _ORIGIN) and not first & _ORIGIN
        names = ("destination", "origin") if swapped else ("origin", "destination")
        return sorted((replace(one, name=name) for one, name in zip(found, names, strict=True)), key=_origin_first)
    sound: list[str] = []
    for one in found:
        sound.append(sound_name(one.name, sound))
    return [replace(one, name=name) for one, name in zip(found, sound, strict=True)]


def _origin_first(suggestion: Suggestion) -> bool:
    return suggestion.name != "origin"


def _share(found: Sequence[Suggestion]) -> tuple[Suggestion, ...]:
    shared: list[Suggestion] = []
    for one in found:
        twin = next((other for other in shared if other.same_as is None and one.same_hierarchy(other)), None)
        shared.append(one if twin is None else replace(one, same_as=twin.name))
    return tuple(shared)


def sound_levels(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of levels that a plan can have; those that it can have already stay."""
    levels: list[str] = []
    for name in names:
        levels.append(name if is_sound_level(name) and name not in levels else sound_name(name, levels))
    return tuple(levels)


def _kinds(chain: tuple[str, ...]) -> list[frozenset[str]]:
    return [words(name) - _ENDS for name in chain]
