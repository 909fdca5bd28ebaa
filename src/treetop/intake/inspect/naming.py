"""Columns that name the codes of another column: one to one with it, so that they tell nothing more."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import pyarrow.compute as pc

from treetop.intake.inspect.columns import NAMING, Column, words
from treetop.intake.inspect.lookup import Match
from treetop.intake.inspect.nesting import Codes, determines

_CERTAIN = 20


def find_names(columns: Sequence[Column], sample: Mapping[str, Codes], matches: Sequence[Match]) -> dict[str, str]:
    """Return the columns that are names, each with the column whose codes it names."""
    leaf = {match.column: match for match in matches}
    names: dict[str, str] = {}
    listed = sorted((column for column in columns if column.name in sample), key=lambda one: _unlike_codes(one, leaf))
    for code, other in combinations(listed, 2):
        if code.name in names or other.name in names or not _one_to_one(sample[code.name], sample[other.name]):
            continue
        if _is_one_kind(code, other, leaf):
            continue
        if _is_no_accident(sample[code.name]) or _is_in_one_lookup(leaf.get(code.name), leaf.get(other.name)):
            names[other.name] = code.name
    return names


def _unlike_codes(column: Column, leaf: Mapping[str, Match]) -> tuple[bool, bool, bool, float]:
    """Say what speaks against codes: the lookup does not know them; the column's name; values of several lengths."""
    lengths = pc.utf8_length(column.values)
    uneven = pc.min(lengths) != pc.max(lengths)
    return column.name not in leaf, bool(words(column.name) & NAMING), uneven, pc.mean(lengths).as_py()


def _one_to_one(one: Codes, other: Codes) -> bool:
    return one.distinct == other.distinct and determines(one, other)


def _is_one_kind(one: Column, other: Column, leaf: Mapping[str, Match]) -> bool:
    """Whether both hold the same codes, as two ends do."""
    if one.name in leaf and other.name in leaf and leaf[one.name].place == leaf[other.name].place:
        return True
    return bool(pc.any(pc.is_in(other.values, value_set=one.values)).as_py())


def _is_no_accident(codes: Codes) -> bool:
    """Whether unrelated columns would hardly go together so: each row of a value after the first is one more chance."""
    return (len(codes.number) - codes.distinct) * math.log2(codes.distinct) >= _CERTAIN


def _is_in_one_lookup(one: Match | None, other: Match | None) -> bool:
    """Whether two columns are of one lookup, where they are one to one as well."""
    if one is None or other is None or one.lookup is not other.lookup:
        return False
    return _one_to_one(one.lookup.codes[one.leaf], one.lookup.codes[other.leaf])
