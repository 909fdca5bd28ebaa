"""Why a column was taken for a level, or was not: of a public file, and of the private table itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from treetop.intake.inspect.lookup import Lookup, Match
from treetop.intake.inspect.nesting import FINER, Clash, Codes, clash, determines

_NEARLY = 0.05
"""Up to this share of the values of a column may stand under two of another, for it to be worth a word."""


@dataclass(frozen=True)
class Reason:
    """What became of one column."""

    column: str
    """The column."""
    level: bool
    """Whether it was taken for a level."""
    why: str
    """Why, or why not, in a sentence."""

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {"column": self.column, "level": self.level, "why": self.why}


def reasons_of(match: Match) -> list[Reason]:
    """Say of every column of a hierarchy file why it is a level of a match, or is none."""
    lookup, levels = match.lookup, match.levels
    finest = levels[-1]
    taken = [
        Reason(level, True, f"{level} is a level: every {finest} stands under one {level}") for level in levels[:-1]
    ]
    passed = {*levels, *match.labels.values(), *(match.coordinates or ())}
    others: list[Reason] = []
    for name in (name for name in lookup.codes if name not in passed):
        said = [lookup.codes[one.column] for one in others]
        if not any(_one_to_one(lookup.codes[name], codes) for codes in said):  # the names of what was told already
            others += [one for one in [_left_out(name, lookup, levels)] if one is not None]
    return [*taken, *others]


def _one_to_one(one: Codes, other: Codes) -> bool:
    return one.distinct == other.distinct and determines(one, other)


def _left_out(name: str, lookup: Lookup, levels: Sequence[str]) -> Reason | None:
    """Say why a column is no level; nothing where it has one value, is finer than all, or divides as another does."""
    finest, own = levels[-1], lookup.codes[name]
    under = lookup.codes[finest]
    same = next((level for level in levels if _one_to_one(own, lookup.codes[level])), None)
    if same is not None:
        named = f"names = {{ {same} = {json.dumps(name)} }}"
        return Reason(name, False, f"{name} goes with {same} one to one, and may be its names: {named}")
    if own.distinct < 2 or (own.distinct > under.distinct and not determines(under, own)):
        return None
    if (found := clash(under, own)) is not None:
        return Reason(name, False, f"{name} is no level: {_torn(finest, name, found)}")
    if FINER * own.distinct > under.distinct:
        few = f"it has {own.distinct:,} values for {under.distinct:,} of {finest}, and puts hardly any together"
        return Reason(name, False, f"{name} is no level: {few}")
    for level in levels[:-1]:
        fine, coarse = (name, level) if own.distinct > lookup.codes[level].distinct else (level, name)
        if (found := clash(lookup.codes[fine], lookup.codes[coarse])) is not None:
            return Reason(name, False, f"{name} is no level beside {level}: {_torn(fine, coarse, found)}")
    return None


def nearly_nested(sample: Mapping[str, Codes]) -> list[str]:
    """Say which columns of a table would nest in another, but for a few values."""
    told = []
    useful = {name: codes for name, codes in sample.items() if 2 <= codes.distinct <= len(codes.number) / 2}
    for fine, coarse in permutations(useful, 2):
        if FINER * useful[coarse].distinct > useful[fine].distinct:
            continue
        found = clash(useful[fine], useful[coarse])
        if found is not None and found.values <= _NEARLY * found.of:
            told.append(f"{fine} is no level below {coarse}: {_torn(fine, coarse, found)}")
    return told


def _torn(fine: str, coarse: str, found: Clash) -> str:
    many = f"; {found.values:,} of {found.of:,} do so" if found.values > 1 else ""
    shown = found.value if len(found.value) <= 40 else f"{found.value[:39]}…"
    return f"{fine} {shown!r} stands under two of {coarse}, in rows {found.rows[0]:,} and {found.rows[1]:,}{many}"
