"""Match columns with public hierarchy files, and find columns whose values nest in those of another."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop._util.lazy import FrozenMap
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import DataError, HierarchyError
from treetop.inspection.column_profile import NAMING, Column, describe_columns, words
from treetop.inspection.detect import detect
from treetop.io import table as tables
from treetop.io.row_batch import as_plain, as_text
from treetop.io.source import Source, as_public

SAMPLE = 200_000
"""Pairs of columns are compared on at most this many rows, evenly spread over the table."""

READING = ("delimiter", "encoding", "sheet")
"""Options for reading a hierarchy file."""
_MOST_COLUMNS = 24
_COMPARED = 1000
FINER = 1.5
"""How many times as many values a finer level has at least."""


@dataclass(frozen=True, eq=False)
class Codes:
    """One column as numbers: which of its values each row has."""

    number: NDArray[np.int64]
    """The value of each row; a missing one counts as a value."""
    distinct: int
    blank: bool = False
    """Whether the last of them stands for the missing ones."""
    values: pa.Array | None = None
    """The values, by number; None where they are not needed any more."""
    rows: NDArray[np.int64] | None = None
    """The row of the table that each is from, counted from 0; None where all rows are here."""

    def row(self, at: int) -> int:
        """Return the number of a row as people count them."""
        return (at if self.rows is None else int(self.rows[at])) + 1


@dataclass(frozen=True)
class Clash:
    """A value of a finer column that stands under two values of a coarser one."""

    value: str
    rows: tuple[int, int]
    """Two rows that show it, counted from 1."""
    values: int
    """How many values of the finer column do so."""
    of: int


def sample_codes(table: pa.Table, columns: Sequence[str]) -> dict[str, Codes]:
    """Number the values of some columns on a sample of the rows."""
    rows, chosen = table.num_rows, None
    if rows > SAMPLE:
        chosen = np.linspace(0, rows - 1, SAMPLE).astype(np.int64)
        table = table.select(list(columns)).take(pa.array(chosen))
    return {name: _codes(table.column(name), chosen) for name in list(columns)[:_MOST_COLUMNS]}


def determines(finer: Codes, coarser: Codes) -> bool:
    """Whether every value of the finer column occurs with one value of the coarser only."""
    pairs = len(np.unique(finer.number * max(coarser.distinct, 1) + coarser.number))
    return pairs == finer.distinct


def clash(finer: Codes, coarser: Codes) -> Clash | None:
    """Return the reason why a column does not nest in another: the first value that does not, and how many do not."""
    pairs, first = np.unique(finer.number * max(coarser.distinct, 1) + coarser.number, return_index=True)
    under = pairs // max(coarser.distinct, 1)
    torn = np.flatnonzero(np.bincount(under, minlength=finer.distinct) > 1)
    torn = torn[torn < finer.distinct - 1] if finer.blank else torn
    if not len(torn):
        return None
    shown = [np.sort(first[under == value])[:2] for value in torn.tolist()[:_COMPARED]]
    one = min(range(len(shown)), key=lambda at: int(shown[at][1]))
    value = "" if finer.values is None else str(finer.values[int(torn[one])].as_py())
    rows = (finer.row(int(shown[one][0])), finer.row(int(shown[one][1])))
    return Clash(value, rows, len(torn), finer.distinct - finer.blank)


def find_chains(sample: Mapping[str, Codes], repeats: int = 2) -> tuple[tuple[str, ...], ...]:
    """Return the chains of columns that nest, coarse to fine, longest for each finest column.

    A column whose values hardly recur determines everything by accident, so a value has to stand for
    `repeats` rows on average.
    """
    recurring = {name: codes for name, codes in sample.items() if 2 <= codes.distinct <= len(codes.number) / repeats}
    chains = {name: chain_above(name, recurring) for name in recurring}
    coarser = {name for chain in chains.values() for name in chain[:-1]}
    return tuple(chain for name, chain in chains.items() if len(chain) > 1 and name not in coarser)


def chain_above(finest: str, columns: Mapping[str, Codes]) -> tuple[str, ...]:
    """Return the longest chain of columns that nest above one, coarse to fine; of equals, the first."""
    under = columns[finest]
    above = [
        name
        for name, codes in columns.items()
        if codes.distinct >= 2 and FINER * codes.distinct <= under.distinct and determines(under, codes)
    ]
    best: dict[str, tuple[str, ...]] = {}
    for name in sorted(above, key=lambda name: columns[name].distinct):
        best[name] = (name,)
        for coarser in [other for other in best if other != name]:
            nests = FINER * columns[coarser].distinct <= columns[name].distinct
            if nests and len(best[coarser]) >= len(best[name]) and determines(columns[name], columns[coarser]):
                best[name] = (*best[coarser], name)
    order = list(columns)
    longest = max(best.values(), key=lambda chain: (len(chain), -order.index(chain[-1])), default=())
    return (*longest, finest)


def _codes(column: pa.ChunkedArray, rows: NDArray[np.int64] | None = None) -> Codes:
    encoded = as_plain(column).combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = len(encoded.dictionary)
    number = np.asarray(encoded.indices.fill_null(values).to_numpy(zero_copy_only=False), dtype=np.int64)
    blank = encoded.null_count > 0
    return Codes(number, values + int(blank), blank, encoded.dictionary, rows)


# Matching a private table with a public hierarchy file: which columns hold codes of which of its columns.

_HALF = 0.5
_COVER = 0.05
_ENOUGH = 20
_BY_CHANCE = 1e-6
"""So unlikely must it be that numbers of another kind are all in the file."""
_GENERIC = words("code codes cod codigo id ids key no nr num number numero n c type name column")
"""Words in names of columns that tell nothing about the codes."""
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class HierarchyFile:
    """A public hierarchy file."""

    path: Path
    reading: Mapping[str, Any]
    """Its encoding, delimiter and sheet, as far as they are not the usual ones."""
    columns: Mapping[str, Column]
    codes: Mapping[str, Codes] = field(repr=False)
    ragged: Mapping[str, Hierarchy] = field(default_factory=dict, repr=False)
    """By column that is blank where its branches end early, the tree down to it, with last codes carried down."""

    def levels(self, leaf: str) -> tuple[str, ...]:
        """Return the columns above a leaf column, coarse to fine, and the leaf column."""
        return self.ragged[leaf].levels if leaf in self.ragged else chain_above(leaf, self.codes)

    def known(self, leaf: str) -> pa.Array:
        """Return the codes that a private column may hold if it holds those of a leaf column."""
        return self.ragged[leaf].codes[-1] if leaf in self.ragged else self.columns[leaf].values

    def labels(self, levels: Sequence[str]) -> dict[str, str]:
        """Return the columns with the names of codes, by level; a column names the codes of one level only."""

        def names_codes(name: str, level: str) -> bool:
            named = words(name) & NAMING and words(name) - NAMING <= words(level)
            codes, names = self.codes[level], self.codes[name]
            return bool(name != level and named and names.distinct <= codes.distinct and determines(codes, names))

        label_columns: dict[str, str] = {}
        for level in (level for level in reversed(levels) if level in self.codes):
            label = next((name for name in self.codes if names_codes(name, level)), None)
            if label is not None and label not in (*levels, *label_columns.values()):
                label_columns[level] = label
        return {level: label_columns[level] for level in levels if level in label_columns}

    def coordinates(self) -> tuple[str, str] | None:
        """Return the columns with latitude and longitude."""
        latitude = [name for name in self.columns if words(name) & {"lat", "latitude"}]
        longitude = [name for name in self.columns if words(name) & {"lon", "lng", "long", "longitude"}]
        return (latitude[0], longitude[0]) if latitude and longitude else None


@dataclass(frozen=True)
class Match:
    """A column of the private table that holds codes of a hierarchy file."""

    column: str
    lookup: HierarchyFile
    leaf: str
    levels: tuple[str, ...]
    """The columns of the hierarchy file from coarse to the matching one."""
    codes: int
    matched: int
    """How many of them are in the hierarchy file, as they are."""
    unmatched: tuple[str, ...]
    trimmed: int
    """How many would match without the blanks around them."""
    lost_zeros: int
    """How many of the others would match if leading zeros were put back, blanks taken off where they have any."""
    both: int
    width: int
    pointed: int
    """How many of the others would match without `.0` at their end, which a program has put there."""
    labels: Mapping[str, str]
    """By level, the column of the hierarchy file with names."""
    coordinates: tuple[str, str] | None

    @property
    def place(self) -> tuple[str, str]:
        """The hierarchy file and its column: two private columns with the same hold codes of one kind."""
        return str(self.lookup.path), self.leaf

    @property
    def ragged(self) -> bool:
        """Whether some branches of the tree end early."""
        return any(self.lookup.columns[level].missing for level in self.levels[1:])

    @property
    def fit(self) -> float:
        """The share of the codes that are in the hierarchy file, blanks taken off and leading zeros put back."""
        return (self.matched + self.trimmed + self.lost_zeros) / self.codes

    def sentence(self) -> str:
        """Say how well the column matches."""
        all_of = f"{self.matched:,} of {self.codes:,} codes of {self.column} are in {self.leaf}"
        levels = f" ({' > '.join(self.levels)}{', some branches ending early' * self.ragged})"
        levels = levels if len(self.levels) > 1 else ""
        if not self.unmatched:
            return f"{all_of}{levels}"
        shown = ", ".join(repr(code) for code in self.unmatched)
        more = self.codes - self.matched - len(self.unmatched)
        ending = f" and {more:,} more" if more > 0 else ""
        return f"{all_of}{levels}; not there: {shown}{ending}"

    def hints(self) -> list[str]:
        """Suggest changes that would make more codes match, with their number."""
        notes = []
        for number, how, remedy in (
            (
                self.trimmed,
                "after trimming the blanks around them",
                f"trim = [{json.dumps(self.column, ensure_ascii=False)}]",
            ),
            (
                self.lost_zeros,
                f"after padding to {self.width} digits, with their leading zeros",
                f"pad = {{ {json.dumps(self.column, ensure_ascii=False)} = {self.width} }}",
            ),
            (self.both, "only after trimming as well", f"trim = [{json.dumps(self.column, ensure_ascii=False)}]"),
            (self.pointed, "without the .0 at their end", "write the column as text: a program took it for numbers"),
        ):
            if number:
                codes = f"code of {self.column} matches" if number == 1 else f"codes of {self.column} match"
                notes.append(f"{number:,} {codes} {how}: {remedy}")
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "column": self.column,
            "hierarchy": str(self.lookup.path),
            "hierarchy_column": self.leaf,
            "levels": list(self.levels),
            "ragged": self.ragged,
            "codes": self.codes,
            "matched": self.matched,
            "unmatched_examples": list(self.unmatched),
            "after_trimming": self.trimmed,
            "leading_zeros_lost": self.lost_zeros,
            "width": self.width,
            "without_point": self.pointed,
            "hints": self.hints(),
            "names": dict(self.labels),
        }


def read_lookup(source: Source) -> HierarchyFile:
    """Read a public hierarchy file."""
    try:
        source = detect(source)[0]
        table = tables.read(as_public(source))
    except DataError as problem:
        message = str(problem).replace("`encoding=", "`hierarchy_encoding=")
        raise DataError(f"hierarchy: {message}") from problem
    columns = {column.name: column for column in describe_columns(table)}
    usable = [name for name, column in columns.items() if column.values is not None and column.distinct]
    texts = {name: as_text(table.column(name), name) for name in usable}
    gaps = {name: pc.if_else(pc.equal(text, ""), None, text) for name, text in texts.items()}
    codes = sample_codes(pa.table(gaps), usable)
    reading: dict[str, Any] = {name: value for name in READING if (value := getattr(source, name)) is not None}
    return HierarchyFile(Path(str(source)), reading, columns, codes, _ragged(table, codes))


def _ragged(table: pa.Table, codes: Mapping[str, Codes]) -> dict[str, Hierarchy]:
    """Return the trees down to columns with blanks, where carrying codes down makes trees of them."""
    trees = {}
    for name in (name for name, own in codes.items() if own.blank):
        there = codes[name].number < codes[name].distinct - 1
        present = {}
        for other, own in codes.items():
            values, number = np.unique(own.number[there], return_inverse=True)
            present[other] = Codes(number, len(values))
        levels = chain_above(name, present)
        if len(levels) > 1:
            with suppress(HierarchyError):
                trees[name] = Hierarchy.from_table(table, levels, ragged="repeat")
    return trees


def match_columns(columns: Sequence[Column], lookups: Sequence[HierarchyFile]) -> tuple[Match, ...]:
    """Return, for every column that holds codes of a lookup, where it fits best."""
    best = []
    for column in columns:
        if column.values is not None and len(column.values) and column.kind not in ("count", "number"):
            matches = [match for lookup in lookups for match in _matches(column.name, column.values, lookup)]
            if matches:
                best.append(max(matches, key=lambda match: (match.fit, match.matched)))
    return tuple(best)


def nearest_leaf(column: Column, lookup: HierarchyFile) -> Iterator[tuple[int, int, str, str]]:
    """Yield how many codes of a column are in each column of a file, as far as there are any."""
    if column.values is None or column.kind == "count":
        return
    for leaf in lookup.codes:
        shared = int(pc.sum(pc.is_in(column.values, value_set=lookup.known(leaf))).as_py() or 0)
        if shared:
            yield shared, len(column.values), column.name, leaf


def _matches(name: str, values: pa.Array, lookup: HierarchyFile) -> Iterator[Match]:
    for leaf in lookup.codes:
        known = lookup.known(leaf)
        missing = values.filter(pc.invert(pc.is_in(values, value_set=known)))
        matched = len(values) - len(missing)
        bare = pc.utf8_trim_whitespace(missing)
        rest = bare.filter(pc.invert(pc.is_in(bare, value_set=known)))
        trimmed = len(missing) - len(rest)
        zeros, width = _lost(rest, known)
        if not matched + trimmed and zeros < _ENOUGH:
            zeros = 0
        fitting = matched + trimmed + zeros
        if fitting < max(2, _HALF * len(values)):
            continue
        # Small whole numbers are in every numbering: a few of them prove nothing.
        small = bool(pc.all(pc.match_substring_regex(known, "^[0-9]{1,4}$")).as_py())
        if small and fitting < min(_ENOUGH, _COVER * len(known)):
            continue
        if _may_be_chance(values, known) and not _share_word(name, leaf):
            continue
        padded = bare.filter(pc.and_(pc.not_equal(bare, missing), pc.invert(pc.is_in(bare, value_set=known))))
        yield Match(
            column=name,
            lookup=lookup,
            leaf=leaf,
            levels=lookup.levels(leaf),
            codes=len(values),
            matched=matched,
            unmatched=tuple(sorted(missing.to_pylist())[:_SHOWN]),
            trimmed=trimmed,
            lost_zeros=zeros,
            both=_lost(padded, known)[0] if zeros else 0,
            width=width,
            pointed=_pointed(rest, known, width),
            labels=FrozenMap(lookup.labels(lookup.levels(leaf))),
            coordinates=lookup.coordinates(),
        )


def _may_be_chance(values: pa.Array, known: pa.Array) -> bool:
    """Whether a column shares with a file only small numbers, which every numbering has.

    They prove something if most of the file's codes occur in the column, or if so many numbers from their range would
    hardly be codes of the file by chance (Chernoff's bound of a binomial tail).
    """
    shared_numbers, listed = _numbers(values, "^(0|[1-9][0-9]{0,3})$"), _numbers(known, "^0*[0-9]{1,4}$")
    shared = shared_numbers & listed
    if len(shared_numbers) < _HALF * len(values) or not shared or len(shared) >= _HALF * len(known):
        return False
    low, high = min(shared), max(shared)
    dense = sum(low <= number <= high for number in listed) / (high - low + 1)
    tried = sum(low <= number <= high for number in shared_numbers)
    share = len(shared) / tried
    if share <= dense:
        return True
    missed = 0.0 if len(shared) == tried else (1 - share) * math.log((1 - share) / (1 - dense))
    return math.exp(-tried * (share * math.log(share / dense) + missed)) > _BY_CHANCE


def _numbers(codes: pa.Array, written: str) -> set[int]:
    """Return the codes that are whole numbers, written as a pattern says."""
    bare = pc.utf8_trim_whitespace(codes)
    return {int(code) for code in bare.filter(pc.match_substring_regex(bare, written)).to_pylist()}


def _share_word(column: str, leaf: str) -> bool:
    """Whether the names of two columns have a word in common that is about something, or the beginning of one."""
    mine, theirs = (words(name) - _GENERIC for name in (column, leaf))
    return any(
        one == other or (min(len(one), len(other)) > 2 and (one.startswith(other) or other.startswith(one)))
        for one in mine
        for other in theirs
    )


def _lost(missing: pa.Array, known: pa.Array) -> tuple[int, int]:
    """Count the codes that match when leading zeros are put back, and return how long they are then."""
    widths = pc.unique(pc.utf8_length(known)).to_pylist()
    if len(widths) != 1 or not len(missing):
        return 0, int(max(widths, default=0))
    shorter = missing.filter(pc.less(pc.utf8_length(missing), widths[0]))
    padded = pc.utf8_lpad(shorter, width=widths[0], padding="0")
    return int(pc.sum(pc.is_in(padded, value_set=known)).as_py() or 0), int(widths[0])


def _pointed(missing: pa.Array, known: pa.Array, width: int) -> int:
    """Count the codes that match without `.0`, with their leading zeros where they need them."""
    whole = missing.filter(pc.match_substring_regex(missing, r"^[0-9]+\.0+$"))
    bare = pc.replace_substring_regex(whole, r"\.0+$", "")
    found = pc.or_(
        pc.is_in(bare, value_set=known), pc.is_in(pc.utf8_lpad(bare, width=width, padding="0"), value_set=known)
    )
    return int(pc.sum(found).as_py() or 0)
