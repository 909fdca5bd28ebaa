"""Attributes that a plan for a table could have, judged by its columns."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations, permutations
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.choices import nearest
from treetop._util.lazy import FrozenMap
from treetop.counts.encode import cleaned, without_zeros
from treetop.domain.coding import UNITS
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import is_sound_level, sound_name
from treetop.domain.standard_hierarchies import STANDARDS
from treetop.domain.unit import IdClean
from treetop.errors import DataError
from treetop.inspection.column_profile import NAMING, Column, Prefixes, words
from treetop.inspection.lookup import FINER, Clash, Codes, HierarchyFile, Match, clash, determines
from treetop.io.row_batch import as_text
from treetop.io.source import Source
from treetop.io.table import batches

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
    column: str
    match: Match | None = None
    prefixes: Prefixes | None = None
    chain: tuple[str, ...] = ()
    """The columns of the private table that nest above it, and itself."""
    same_as: str | None = None
    """An earlier attribute with the same hierarchy."""
    many: bool = False
    """Whether it has more values than anybody would list in a plan."""
    proposed: Mapping[str, Any] = FrozenMap({})
    """Fields that would make codes of its column, if no file does."""
    is_stated: bool = False
    """Whether the steward named its levels, bands or standard; otherwise they are a proposal."""
    has_blanks: bool = False
    """Whether so many rows are blank that a blank may be a category."""

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of its hierarchy, seen or supposed, coarse to fine; none where it is a plain list of values."""
        if self.match is not None:
            return sound_levels(self.match.levels)
        if self.prefixes is not None:
            return sound_levels(self.prefixes.levels)
        if self.proposed:
            standard, bands = STANDARDS.get(self.proposed.get("standard", "")), self.proposed.get("bands")
            usual = bands if isinstance(bands, Mapping) else () if standard is None else standard.usual
            return tuple(self.proposed.get("levels", usual))
        return sound_levels(self.chain or (("group", self.column) if self.many else ()))

    def same_hierarchy(self, other: Suggestion) -> bool:
        """Whether both attributes hold codes of one kind."""
        if self.match or other.match:
            return bool(self.match and other.match and self.match.place == other.match.place)
        if self.prefixes or other.prefixes:
            mine, theirs = self.prefixes, other.prefixes
            return bool(mine and theirs and (mine.length, mine.known) == (theirs.length, theirs.known))
        if self.proposed or other.proposed:
            return False
        ends = words(self.column) & _ENDS and words(other.column) & _ENDS
        return bool(ends) and _kinds(self.chain or (self.column,)) == _kinds(other.chain or (other.column,))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "name": self.name, "column": self.column, "same_as": self.same_as, "proposed": dict(self.proposed),
        }  # fmt: skip


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
    determined = {name for chain in chains for name in chain[:-1]}
    determined |= {name for chain in chains if not known.isdisjoint(chain) for name in chain}
    rest = [column for column in columns if not column.reason and column.name not in {count, *known, *determined}]
    chain_of = {chain[-1]: chain for chain in chains}
    structured = [
        Suggestion(column.name, column.name, prefixes=column.prefixes, chain=chain_of.get(column.name, ()))
        for column in rest
        if column.kind == "code" and (column.prefixes is not None or column.name in chain_of)
    ]
    taken = {one.column for one in structured}
    ruled = [
        Suggestion(column.name, column.name, proposed=column.proposed)
        for rule in _MOST
        for column in [one for one in rest if one.name not in taken and rule in one.proposed][: _MOST[rule]]
    ]
    taken |= {one.column for one in ruled}
    most = {name: max(_MOST_VALUES, len(codes.number) / _RECURRING) for name, codes in sample.items()}
    few = [column for column in rest if column.kind == "code" and column.name not in taken]
    few = [column for column in few if column.distinct <= most.get(column.name, _MOST_VALUES)]
    flat = [
        Suggestion(column.name, column.name, many=column.distinct > _LISTED, proposed=column.proposed)
        for column in sorted(few, key=lambda one: one.distinct > _LISTED)
    ]
    first = matched or structured or flat
    ends = next(((one, other) for one, other in combinations(first, 2) if one.same_hierarchy(other)), None)
    if ends is not None:
        return _share(_name(list(ends) if first is flat else first))
    return _share(_name([*matched, *ruled, *structured, *flat][:_MOST_ATTRIBUTES]))


_MOST = FrozenMap({"standard": 2, "dates": 1, "bands": 2})
"""How many columns of a rule a draft has at most; the most useful rules first."""


def chosen_attributes(
    chosen: Mapping[str, Sequence[str]],
    columns: Sequence[Column],
    chains: Sequence[tuple[str, ...]],
    matches: Sequence[Match],
) -> tuple[Suggestion, ...]:
    """Return the attributes that the steward chose by column, with their levels, bands or standard, if any."""
    by_name = {column.name: column for column in columns}
    suggestions = []
    for name, wanted in chosen.items():
        if name not in by_name:
            raise DataError(f"there is no column {name!r}{nearest(name, by_name)}; there are {', '.join(by_name)}")
        column = by_name[name]
        if wanted:
            suggestions.append(_stated(column, tuple(wanted), matches))
            continue
        match = next((match for match in matches if match.column == name), None)
        chain = next((chain[: chain.index(name) + 1] for chain in chains if name in chain[1:]), ())
        many = column.distinct > _LISTED and not column.proposed
        rule = FrozenMap({}) if match or column.prefixes else column.proposed
        suggestions.append(Suggestion(name, name, match, column.prefixes, chain, None, many, rule))
    return _share(_name(suggestions))


def _stated(column: Column, wanted: tuple[str, ...], matches: Sequence[Match]) -> Suggestion:
    """Return an attribute with levels of dates or of a file, bands, or a standard, as they were typed."""
    name = column.name
    if wanted[0] in STANDARDS:
        levels = {"levels": list(wanted[1:])} if wanted[1:] else {}
        return Suggestion(name, name, proposed=FrozenMap({"standard": wanted[0], **levels}), is_stated=True)
    if all(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", one) for one in wanted):
        edges = [int(one) if float(one).is_integer() else Decimal(one) for one in wanted]
        return Suggestion(name, name, proposed=FrozenMap({"bands": edges}), is_stated=True)
    if "dates" in column.proposed and set(wanted) <= set(UNITS):
        return Suggestion(name, name, proposed=FrozenMap({**column.proposed, "levels": list(wanted)}))
    match = next((match for match in matches if match.column == name), None)
    if match is None:
        return Suggestion(name, name, chain=wanted, many=True)
    known = match.lookup.columns
    if missing := next((one for one in wanted if one not in known), None):
        raise DataError(f"{match.lookup.path}: there is no column {missing!r}{nearest(missing, known)}")
    return Suggestion(name, name, replace(match, levels=wanted, leaf=wanted[-1]))


def why_left_out(
    columns: Sequence[Column], attributes: Sequence[Suggestion], explained: Collection[str]
) -> dict[str, str]:
    """Say by column why it is no attribute; `explained` are columns with another use."""
    used = {one.column for one in attributes} | set(explained)
    beyond = "beyond the six most useful ones" if len(attributes) >= _MOST_ATTRIBUTES else "not chosen"

    def why(column: Column) -> str:
        if column.reason or not column.proposed:
            many = f"more than {_MOST_VALUES:,} values, and no public list"
            return column.reason or (many if column.distinct > _MOST_VALUES else beyond)
        rule = next(iter(column.proposed))
        beside = rule in _MOST and any(rule in one.proposed for one in attributes)
        return f"beside another column with {rule}" if beside else beyond

    return {column.name: why(column) for column in columns if column.name not in used}


def _matched(matches: Sequence[Match], sample: Mapping[str, Codes]) -> list[Suggestion]:
    """Keep the finest of matching columns that nest, and one where three or more hold codes of one kind."""
    coarser = {
        match.column
        for match in matches
        for finer in matches
        if match.lookup is finer.lookup
        and match.leaf in finer.levels[:-1]
        and {finer.column, match.column} <= sample.keys()
        and determines(sample[finer.column], sample[match.column])
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


def _name(suggestions: list[Suggestion]) -> list[Suggestion]:
    """Call two ends of one kind origin and destination, and keep the other names apart."""
    if len(suggestions) == 2 and suggestions[0].same_hierarchy(suggestions[1]):
        first, second = (words(suggestion.column) for suggestion in suggestions)
        swapped = bool(first & _DESTINATION or second & _ORIGIN) and not first & _ORIGIN
        names = ("destination", "origin") if swapped else ("origin", "destination")
        ends = [replace(suggestion, name=name) for suggestion, name in zip(suggestions, names, strict=True)]
        return ends[::-1] if swapped else ends
    sound: list[str] = []
    for suggestion in suggestions:
        sound.append(sound_name(suggestion.name, sound))
    return [replace(suggestion, name=name) for suggestion, name in zip(suggestions, sound, strict=True)]


def _share(suggestions: Sequence[Suggestion]) -> tuple[Suggestion, ...]:
    shared: list[Suggestion] = []
    for suggestion in suggestions:
        twin = next((other for other in shared if other.same_as is None and suggestion.same_hierarchy(other)), None)
        shared.append(suggestion if twin is None else replace(suggestion, same_as=twin.name))
    return tuple(shared)


def sound_levels(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of levels that a plan can have; those that it can have already stay."""
    levels: list[str] = []
    for name in names:
        levels.append(name if is_sound_level(name) and name not in levels else sound_name(name, levels))
    return tuple(levels)


def _kinds(chain: tuple[str, ...]) -> list[frozenset[str]]:
    return [words(name) - _ENDS for name in chain]


# Why a column was taken for a level, or was not: of a public file, and of the private table itself.

_NEARLY = 0.05
"""Up to this share of the values of a column may stand under two of another, for it to be worth a word."""


@dataclass(frozen=True)
class Reason:
    """The verdict on one column."""

    column: str
    level: bool
    why: str

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
        coarser_codes = [lookup.codes[other.column] for other in others]
        if not any(
            _one_to_one(lookup.codes[name], codes) for codes in coarser_codes
        ):  # the names of what was told already
            others += [one for one in [_left_out(name, lookup, levels)] if one is not None]
    return [*taken, *others]


def _one_to_one(one: Codes, other: Codes) -> bool:
    return one.distinct == other.distinct and determines(one, other)


def _left_out(name: str, lookup: HierarchyFile, levels: Sequence[str]) -> Reason | None:
    """Say why a column is no level; nothing where it has one value, is finer than all, or divides as another does."""
    finest, own = levels[-1], lookup.codes[name]
    under = lookup.codes[finest]
    same = next((level for level in levels if _one_to_one(own, lookup.codes[level])), None)
    if same is not None:
        named = f"names = {{ {same} = {json.dumps(name)} }}"
        return Reason(name, False, f"{name} goes with {same} one to one, and may be its names: {named}")
    if own.distinct < 2 or (own.distinct > under.distinct and not determines(under, own)):
        return None
    if (contradiction := clash(under, own)) is not None:
        return Reason(name, False, f"{name} is no level: {_torn(finest, name, contradiction)}")
    if FINER * own.distinct > under.distinct:
        few = f"it has {own.distinct:,} values for {under.distinct:,} of {finest}, and puts hardly any together"
        return Reason(name, False, f"{name} is no level: {few}")
    for level in levels[:-1]:
        fine, coarse = (name, level) if own.distinct > lookup.codes[level].distinct else (level, name)
        if (contradiction := clash(lookup.codes[fine], lookup.codes[coarse])) is not None:
            return Reason(name, False, f"{name} is no level beside {level}: {_torn(fine, coarse, contradiction)}")
    return None


def nearly_nested(sample: Mapping[str, Codes]) -> list[str]:
    """Say which columns of a table would nest in another, but for a few values."""
    notes = []
    useful = {name: codes for name, codes in sample.items() if 2 <= codes.distinct <= len(codes.number) / 2}
    for fine, coarse in permutations(useful, 2):
        if FINER * useful[coarse].distinct > useful[fine].distinct:
            continue
        contradiction = clash(useful[fine], useful[coarse])
        if contradiction is not None and contradiction.values <= _NEARLY * contradiction.of:
            notes.append(f"{fine} is no level below {coarse}: {_torn(fine, coarse, contradiction)}")
    return notes


def _torn(fine: str, coarse: str, torn: Clash) -> str:
    many = f"; {torn.values:,} of {torn.of:,} do so" if torn.values > 1 else ""
    shown = torn.value if len(torn.value) <= 40 else f"{torn.value[:39]}…"
    return f"{fine} {shown!r} stands under two of {coarse}, in rows {torn.rows[0]:,} and {torn.rows[1]:,}{many}"


# Columns that name the codes of another column: one to one with it, so that they tell nothing more.

_CERTAIN = 20


def find_names(columns: Sequence[Column], sample: Mapping[str, Codes], matches: Sequence[Match]) -> dict[str, str]:
    """Return the columns of names, each with the column of the codes that it names."""
    leaf = {match.column: match for match in matches}
    names: dict[str, str] = {}
    listed = sorted((column for column in columns if column.name in sample), key=lambda one: _unlike_codes(one, leaf))
    for code, other in combinations(listed, 2):
        codes, mine, theirs = sample[code.name], leaf.get(code.name), leaf.get(other.name)
        if code.name in names or other.name in names or not _one_to_one(codes, sample[other.name]):
            continue
        if mine and theirs and mine.place == theirs.place:  # two ends hold the same codes
            continue
        if pc.any(pc.is_in(other.values, value_set=code.values)).as_py():
            continue
        # Unrelated columns would hardly go together so: each row of a value after the first is one more chance.
        no_accident = (len(codes.number) - codes.distinct) * math.log2(codes.distinct) >= _CERTAIN
        if no_accident or (mine and theirs and _one_to_one_in_lookup(mine, theirs)):
            names[other.name] = code.name
    return names


def _unlike_codes(column: Column, leaf: Mapping[str, Match]) -> tuple[bool, bool, bool, float]:
    """Give the reasons against codes: the lookup does not know them; the column's name; values of several lengths."""
    lengths = pc.utf8_length(column.values)
    uneven = pc.min(lengths) != pc.max(lengths)
    return column.name not in leaf, bool(words(column.name) & NAMING), uneven, pc.mean(lengths).as_py()


def _one_to_one_in_lookup(one: Match, other: Match) -> bool:
    codes = one.lookup.codes
    return one.lookup is other.lookup and _one_to_one(codes[one.leaf], codes[other.leaf])


# Columns that could tell who is protected: how often their values repeat, and which differ in spelling only.

_MANY = 20
_OFTEN = 0.01
WAYS: tuple[IdClean, ...] = get_args(IdClean)


@dataclass(frozen=True)
class Identifier:
    """A column of ids, each perhaps one person, household or device."""

    column: str
    ids: int
    repeated: int
    """How many of them stand in more than one row."""
    most: int
    named: bool
    """Whether the column looks like ids; otherwise it only has very many values."""
    clean: tuple[IdClean, ...]
    """Cleaning steps that make values equal if they differ in spelling only."""
    spellings: int
    """How many values are then another one."""
    zeros: int
    """How many are another one but for leading zeros."""

    @property
    def repeats(self) -> bool:
        """Whether any value stands in more than one row."""
        return self.most > 1

    def sentences(self) -> Iterator[str]:
        """Report how often values repeat, and ids that seem to be spelt in several ways."""
        if self.repeats:
            yield (
                f"{self.column} repeats: {self.ids:,} values, {self.repeated:,} of them in several rows, one in "
                f"{self.most:,}. If one of them is who is protected, it is the id of the unit"
            )
        else:
            yield (
                f"WARNING: {self.column} never repeats: as the id of the unit it would make each row one of its own, "
                "and limit nothing. Who is protected if one of them has several rows?"
            )
        if self.clean:
            listed = ", ".join(f'"{way}"' for way in self.clean)
            yield (
                f"WARNING: {self.spellings:,} of the {self.ids:,} values of {self.column} are another one but for the "
                f"spelling (blanks, Unicode form or case), and would be units of their own: id_clean = [{listed}] "
                "under [unit] makes them one"
            )
        if self.zeros:
            yield (
                f"{self.zeros:,} of the {self.ids:,} values of {self.column} are another one but for leading zeros, as "
                '"7" and "07": they are different ids; if they are one, correct the table'
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "column": self.column,
            "ids": self.ids,
            "repeated": self.repeated,
            "most_rows": self.most,
            "id_clean": list(self.clean),
            "other_spellings": self.spellings,
            "other_zeros": self.zeros,
        }


def find_identifiers(table: pa.Table, columns: Sequence[Column], used: Collection[str]) -> tuple[Identifier, ...]:
    """Return the columns that look like ids, and others with very many values, that are not used otherwise."""
    identifiers = []
    for column in columns:
        has_many = column.kind == "code" and not (column.reason or column.proposed)
        has_many = has_many and column.distinct >= max(_MANY, _OFTEN * table.num_rows)
        if column.values is None or column.name in used or not (column.kind == "id" or has_many):
            continue
        often = pc.value_counts(pc.drop_null(table.column(column.name))).field("counts")
        clean = _needed(column.values)
        identifiers.append(
            Identifier(
                column=column.name,
                ids=column.distinct,
                repeated=int(pc.sum(pc.greater(often, 1)).as_py() or 0),
                most=int(pc.max(often).as_py() or 0),
                named=column.kind == "id",
                clean=clean,
                spellings=_alike(column.values, cleaned(column.values, clean)),
                zeros=_alike(column.values, without_zeros(column.values)),
            )
        )
    return tuple(identifiers)


def _needed(values: pa.Array) -> tuple[IdClean, ...]:
    """Return the fewest ways that make as many values one as all of them do."""
    needed, together = WAYS, _alike(values, cleaned(values, WAYS))
    for way in WAYS:
        fewer = tuple(step for step in needed if step != way)
        if _alike(values, cleaned(values, fewer)) == together:
            needed = fewer
    return needed


def _alike(values: pa.Array, changed: pa.Array) -> int:
    """Count the values that become another one."""
    return len(values) - int(pc.count_distinct(changed).as_py())


# How many codes of a private table its hierarchies know, as the table is prepared now. For the steward only.

SHOWN = 8


@dataclass(frozen=True)
class Matched:
    """How a column of the private table fits its hierarchy. Private."""

    attribute: str
    column: str
    rows: int
    known_rows: int
    """How many of them have a code that the hierarchy has."""
    codes: int
    known: int
    unknown: tuple[tuple[str | None, int], ...]
    """The most frequent of the others, each with its rows; None is a missing value."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**vars(self), "unknown": [list(pair) for pair in self.unknown]}


def match_codes(
    source: Source,
    trees: Mapping[str, Hierarchy],
    columns: Mapping[str, str],
    progress: Callable[[float], None] | None = None,
) -> list[Matched]:
    """Compare the columns of a private table, prepared as the source says, with the leaves of their hierarchies."""
    often: dict[str, dict[str | None, int]] = {name: {} for name in trees}
    wanted = list(dict.fromkeys(columns[name] for name in trees))
    for batch in batches(source, wanted):
        for name, tree in trees.items():
            column, coding = batch.rows.column(columns[name]), tree.coding
            text = as_text(column, columns[name]) if coding is None else coding.text(column, columns[name])
            for pair in pc.value_counts(text).to_pylist():
                often[name][pair["values"]] = often[name].get(pair["values"], 0) + pair["counts"]
        if progress is not None:
            progress(batch.done)
    matched = []
    for name, tree in trees.items():
        rows = often[name]
        texts = pa.array(list(rows), pa.string())
        found = tree.encode(texts if tree.coding is None else tree.coding.codes(texts)) >= 0
        known = {code for code, there in zip(rows, found.tolist(), strict=True) if there}
        others = sorted(rows.keys() - known, key=lambda code: (-rows[code], code or ""))
        unknown = tuple((code, rows[code]) for code in others[:SHOWN])
        known_rows = sum(rows[code] for code in known)
        matched.append(Matched(name, columns[name], sum(rows.values()), known_rows, len(rows), len(known), unknown))
    return matched
