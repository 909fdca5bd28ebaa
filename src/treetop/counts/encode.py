"""Encode rows as leaves of the domain, with whole counts; every faulty value is named with its row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.choices import nearest, with_article
from treetop._util.dtypes import Ints, Words
from treetop._util.kernel import kernel
from treetop.counts.codebook import Codebook
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.counts import KEPT_LEAVES, packed_paths
from treetop.counts.tally import Tally, UnknownCodes
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import LARGEST_TOTAL, Spine
from treetop.domain.unit import IdClean, Unknown
from treetop.errors import DataError
from treetop.io.header import is_unvouched, refuse_code
from treetop.io.row_batch import RowBatch, as_plain, as_text, first_missing, say_listed


class Weighing:
    """Reads the count column batch by batch, or another of whole numbers; `what` one of them is, messages say."""

    def __init__(self, name: str, what: str = "count") -> None:
        self._name = name
        self._what = what
        self.total = 0
        """The sum of what was read so far."""

    def read(self, batch: RowBatch) -> Ints:
        """Return how many records each row stands for."""
        name = self._name
        column = as_plain(batch.rows.column(name))
        if column.null_count:
            _refuse_first(pc.is_null(column), batch, name, f"the {self._what} is missing")
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            column = self._digits(column.cast(pa.string()), batch)
        elif pa.types.is_floating(kind):
            whole = pc.and_(pc.is_finite(column), pc.equal(column, pc.floor(column)))
            _refuse_first(pc.invert(whole), batch, name, f"the {self._what} {{}} is not a whole number")
            large = pc.greater(pc.abs(column), float(LARGEST_TOTAL))
            _refuse_first(large, batch, name, f"the {self._what} {{}} is too large")
        elif not (pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)):
            raise DataError(f"{batch.where}, column {name!r} holds {kind}, not {self._what}s")
        try:
            weights = np.asarray((column if pa.types.is_int64(kind) else column.cast(pa.int64())).to_numpy(), np.int64)
        except pa.ArrowInvalid as problem:
            raise DataError(
                f"{batch.where}, column {name!r} holds a {self._what} that is fractional or too large: {problem}"
            ) from problem
        if weights.min(initial=0) < 0:
            _refuse_first(pa.array(weights < 0), batch, name, f"the {self._what} {{}} is negative")
        # In floating point first: there the sum cannot wrap around.
        near = int(weights.sum(dtype=np.float64))
        self.total += near if near > 2 * LARGEST_TOTAL else int(weights.sum())
        if self.total > LARGEST_TOTAL:
            raise DataError(
                f"the {self._what}s add up to more than 2^53: check that the column {name!r} holds {self._what}s"
            )
        return weights

    def _digits(self, column: pa.StringArray, batch: RowBatch) -> pa.StringArray:
        column = pc.utf8_trim_whitespace(column)
        wrong = pc.invert(pc.match_substring_regex(column, r"^[+-]?[0-9]+(\.0*|,0{1,2})?$"))
        _refuse_first(wrong, batch, self._name, f"the {self._what} {{}} is not a whole number")
        large = pc.match_substring_regex(column, r"[1-9][0-9]{18}")
        _refuse_first(large, batch, self._name, f"the {self._what} {{}} is too large")
        if pc.any(pc.match_substring_regex(column, r"[+.,]")).as_py():
            return pc.replace_substring_regex(column, r"^\+|[.,]0*$", "")
        return column


class UnknownCode(NamedTuple):
    """The first unknown code of a batch, and how many more there are, in words."""

    row: int
    code: str | None
    more: str


def first_unknown(codes: pa.StringArray, numbers: Ints, what: str = "codes") -> UnknownCode | None:
    """Return the first code without a number (-1), for a message; None if all are known."""
    unknown = np.flatnonzero(numbers < 0)
    if not len(unknown):
        return None
    others = len(codes.take(pa.array(unknown)).unique()) - 1
    more = f" (nor are {others:,} more {what} after it)" if others else ""
    if others == 1:
        more = f" (nor is 1 more {what.removesuffix('s')} after it)"
    return UnknownCode(int(unknown[0]), codes[int(unknown[0])].as_py(), more)


def _refuse_first(bad: Any, batch: RowBatch, name: str, why: str) -> None:
    row = pc.index(bad, True).as_py()
    if row >= 0:
        value = batch.rows.column(name)[row].as_py()
        hint = f".{batch.hint(row)}".rstrip(".") if value is None else ""
        raise DataError(f"{batch.place(name, row)}: {why.format(repr(value))}{hint}")


# The spelling of ids: what is done to each before it tells one unit from another.


def cleaned(ids: pa.StringArray, ways: Collection[IdClean]) -> pa.StringArray:
    """Return ids without blanks at the ends, differences of Unicode form, or case; the order of the ways does not
    matter.

    >>> cleaned(pa.array(["Ann ", "ann", "STRASSE", "straße"]), ["trim", "casefold"]).to_pylist()
    ['ann', 'ann', 'strasse', 'strasse']
    """
    if not ways or not len(ids):
        return ids
    encoded = ids.dictionary_encode()
    different: Any = encoded.dictionary
    if "trim" in ways:
        different = pc.utf8_trim_whitespace(different)
    if "nfc" in ways:
        different = pc.utf8_normalize(different, form="NFC")
    if "casefold" in ways:
        if pc.all(pc.string_is_ascii(different)).as_py() is not False:
            different = pc.ascii_lower(different)
        else:
            folded = [None if text is None else text.casefold() for text in different.to_pylist()]
            different = pa.array(folded, pa.string())
        if "nfc" in ways:  # folding may leave a letter and its accent apart
            different = pc.utf8_normalize(different, form="NFC")
    return different.take(encoded.indices)


def without_zeros(ids: pa.StringArray) -> pa.StringArray:
    """Return ids without leading zeros; one of zeros alone keeps the last."""
    return pc.replace_substring_regex(ids, r"^0+(.)", r"\1")


# Encoding rows of a private table: codes become packed paths, unknown codes are dealt with as the plan says.

_REMEDY = 'Correct the table or the hierarchy; or set unknown to "drop", or to the leaf that such rows count under'


_REFUSED, _DROPPED = -2, -3
_TREATED = {"error": _REFUSED, "drop": _DROPPED}
"""What happens to unknown codes that count under no leaf."""


_COMPARED = 20_000
"""So many known codes are compared with one that is unknown."""


class EncodedRows(NamedTuple):
    """Some rows of a private table, encoded."""

    keys: list[Words]
    weights: Ints | None
    """How many records each stands for; 1 when None."""
    ids: pa.StringArray | None


class Encoder:
    """Turns batches of rows into packed paths: the plan's reading options, and nothing that was read."""

    def __init__(
        self,
        spine: Spine,
        columns: Mapping[str, str] | None = None,
        count: str | None = None,
        unknown: Unknown = "error",
        cap: ContributionCap | None = None,
        pairs: tuple[int, int] | None = None,
    ) -> None:
        self.unknown, self.cap, self.pairs = unknown, cap, pairs
        """`pairs` are two attributes with one hierarchy, of which the earlier leaf is counted as the first."""
        self.attributes = _attributes(spine, columns or {}, unknown)
        self._weighing = None if count is None else Weighing(count)
        self.paths = list(zip(*(attribute.parts for attribute in self.attributes), strict=True))
        """Per word and attribute, each leaf's summand in the path."""
        self.words = len(self.paths)
        named = [*(attribute.column for attribute in self.attributes), count, None if cap is None else cap.id]
        self.wanted = [name for name in dict.fromkeys(named) if name is not None]

    def rows(self, batch: RowBatch, tally: Tally) -> EncodedRows:
        """Encode the rows of a batch; the tally counts unknown codes."""
        attributes, unknown = self.attributes, self.unknown
        for attribute in attributes if batch.first == 0 and is_unvouched(batch.rows.schema) else ():
            refuse_code(attribute.column, attribute.tree.codes, batch.where)
        leaves = [attribute.leaves(batch) for attribute in attributes]
        weights = None if self._weighing is None else self._weighing.read(batch)
        ids = None
        if self.cap is not None:
            ids = cleaned(as_text(batch.rows.column(self.cap.id), self.cap.id), self.cap.clean)
            row = first_missing(ids)
            if row is not None and unknown != "drop":  # a row without an id cannot be bounded
                raise DataError(
                    f"{batch.place(self.cap.id, row)}: the id is missing.{batch.hint(row)} Correct the table, or set "
                    'unknown = "drop"'
                )
        if unknown != "error":
            known = np.logical_and.reduce([leaf >= 0 for leaf in leaves])
            left = [
                leaf >= 0 for attribute, leaf in zip(attributes, leaves, strict=True) if attribute.other == _DROPPED
            ]
            if ids is not None:
                left.append(pc.fill_null(pc.not_equal(ids, ""), False).to_numpy(zero_copy_only=False))
                known &= left[-1]
            tally.add(known, weights)
            for attribute, leaf in zip(attributes, leaves, strict=True):
                attribute.tell(tally, batch, leaf, weights)
            leaves = [
                np.where(leaf < 0, attribute.other, leaf) if attribute.other >= 0 else leaf
                for attribute, leaf in zip(attributes, leaves, strict=True)
            ]
            kept = np.logical_and.reduce(left) if left else known
            if left and not kept.all():
                tally.dropped += int(np.count_nonzero(~kept) if weights is None else weights[~kept].sum())
                leaves = [leaf[kept] for leaf in leaves]
                weights = None if weights is None else weights[kept]
                ids = None if ids is None else ids.filter(pa.array(kept))
        if self.pairs is not None:
            first, last = self.pairs
            one, other = leaves[first], leaves[last]
            turned = attributes[first].place(one) > attributes[last].place(other)
            leaves[first], leaves[last] = np.where(turned, other, one), np.where(turned, one, other)
        if self.cap is not None:
            tally.offered += len(leaves[0]) if weights is None else int(weights.sum())
        keys = [np.zeros(len(leaves[0]), np.uint64) for _ in self.paths]
        for key, parts in zip(keys, self.paths, strict=True):
            for part, leaf in zip(parts, leaves, strict=True):
                if part is not None:
                    _add_to_paths(part, leaf, key)
        return EncodedRows(keys, weights, ids)


@dataclass(frozen=True, eq=False)
class _Attribute:
    """How the codes of one attribute become parts of packed paths."""

    name: str
    column: str
    tree: Hierarchy
    book: Codebook
    other: int
    """The leaf that unknown codes count under; or what else happens to them."""
    parts: Sequence[Words | None]
    """Per word, each leaf's summand in the path."""
    places: Ints | None = None
    """The place of each leaf among those of the spine, where it skips levels or stops above; None if it does not."""

    def place(self, leaves: Ints) -> Ints:
        """Return the places of known leaves among those of the spine."""
        return leaves if self.places is None else self.places[leaves]

    def leaves(self, batch: RowBatch) -> Ints:
        """Return the leaf number of every row; -1 for an unknown code, unless that is refused."""
        column, coding = batch.rows.column(self.column), self.tree.coding
        if coding is not None:
            encoded = coding.text(column, self.column).dictionary_encode("encode")
            leaves = self.book.find_coded(encoded.indices, coding.codes(encoded.dictionary))
        elif pa.types.is_dictionary(column.type):
            leaves = self.book.find_coded(column.indices, as_text(column.dictionary, self.column))
        else:
            leaves = self.book.find(as_text(column, self.column))
        if self.other == _REFUSED and len(leaves) and leaves.min() < 0:
            raise self._refusal(batch, leaves)
        return leaves

    def tell(self, tally: Tally, batch: RowBatch, leaves: Ints, weights: Ints | None) -> None:
        """Tell which codes are unknown, and how many records have them."""
        unknown = np.flatnonzero(leaves < 0)
        if len(unknown):
            codes = self._text(batch.rows.column(self.column).take(pa.array(unknown)))
            told = tally.codes.setdefault(self.column, UnknownCodes(self.column))
            told.add(codes, None if weights is None else weights[unknown], self.book, self._width)

    def _text(self, column: Any) -> pa.StringArray:
        coding = self.tree.coding
        return as_text(column, self.column) if coding is None else coding.text(column, self.column)

    @cached_property
    def _width(self) -> int:
        return int(pc.max(pc.utf8_length(self.tree.codes[-1])).as_py())

    def _refusal(self, batch: RowBatch, leaves: Ints) -> DataError:
        unknown = first_unknown(self._text(batch.rows.column(self.column)), leaves)
        assert unknown is not None
        place, code = batch.place(self.column, unknown.row), unknown.code
        if not code:
            return DataError(f"{place}: the code is missing.{batch.hint(unknown.row)} {_REMEDY}")
        bare, hint = code.strip(), ""
        padded = bare.zfill(self._width)
        trimmed, zeros = self.book.find(pa.array([bare, padded])) >= 0
        rule = None if self.tree.coding is None else self.tree.coding.rule
        if rule is not None:
            hint = f". {rule.hint(code)}"
        elif trimmed:
            hint = f". The hierarchy has {bare!r}: trim the column"
        elif zeros and bare:
            hint = f". The hierarchy has {padded!r}: leading zeros were lost, read the column as text"
        known = self.tree.codes[-1].slice(0, _COMPARED).to_pylist()
        hint = hint or nearest(code, known) or f". It has {say_listed(self.tree.codes[-1].to_pylist())}"
        level = self.tree.levels[-1]
        what = "a" if level in ("value", self.name) else with_article(level)
        return DataError(
            f"{place}: {code!r} is not {what} code in the hierarchy of {self.name!r}{unknown.more}{hint}. {_REMEDY}"
        )


@kernel
def _add_to_paths(part: Words, leaf: Ints, key: Words) -> None:
    """Add each leaf's summand to a word of the paths; all leaves are known."""
    for row in range(len(key)):
        key[row] |= part[np.uint64(leaf[row])]


def _attributes(spine: Spine, columns: Mapping[str, str], unknown: Unknown) -> list[_Attribute]:
    for attribute in columns:
        if attribute not in spine.attributes:
            raise DataError(
                f"columns: there is no attribute {attribute!r}{nearest(attribute, spine.attributes)}; "
                f"the attributes are {', '.join(spine.attributes)}"
            )
    books: dict[int, Codebook] = {}
    attributes = []
    paths = packed_paths(spine)
    for index, (name, tree) in enumerate(spine.attributes.items()):
        if id(tree) not in books:
            books[id(tree)] = _kept_book(tree) if tree.sizes[-1] <= KEPT_LEAVES else Codebook(tree.codes[-1])
        code = unknown.get(name, "error") if isinstance(unknown, Mapping) else unknown
        other = _TREATED[code] if code in _TREATED else int(tree.encode(pa.array([code]))[0])
        if other == -1:
            raise DataError(
                f"unknown codes of {name!r} go to {code!r}, which is not a leaf of its hierarchy: "
                f'name one, as in unknown={{"{name}": "other"}}, and add it to the hierarchy'
            )
        parts = [word[index] for word in paths]
        used, leaf = spine.trees[index], None
        if used is not tree:  # the spine may skip levels of the hierarchy as given, or stop at a coarser one
            depth = tree.depth(used.levels[-1])
            leaf = used.encode(tree.codes[depth])[tree.ancestors(depth)]
            parts = [None if part is None else part[leaf] for part in parts]
        attributes.append(_Attribute(name, columns.get(name, name), tree, books[id(tree)], other, parts, leaf))
    return attributes


@lru_cache(maxsize=4)
def _kept_book(tree: Hierarchy) -> Codebook:
    """Return the codebook of a small hierarchy, which is public: runs share it."""
    return Codebook(tree.codes[-1])
