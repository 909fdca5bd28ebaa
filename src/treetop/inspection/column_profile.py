"""Describe the columns of a table: codes, counts, identifiers, dates, numbers, and codes with coarser prefixes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.lazy import FrozenMap
from treetop.domain.standard_hierarchies import STANDARDS, make_standard
from treetop.io.row_batch import as_plain, as_text

# Census codes of the United States: 2 digits for the state, 5 for the county, and so on.
_FIPS = {2: "state", 5: "county", 11: "tract", 12: "block_group", 15: "block"}
_FIPS_STATES = frozenset(range(1, 57)) - {3, 7, 14, 43, 52} | {60, 66, 69, 72, 74, 78}
# Municipality codes of Italy: 3 digits for the province, 3 within it.
_ISTAT = {3: "province", 6: "municipality"}
_ISTAT_PROVINCES = frozenset(range(1, 112))

_SHORTEST = 4
_LONGEST_PREFIX = 20
_MANY = 30


@dataclass(frozen=True)
class Prefixes:
    """How codes of one length are cut into levels."""

    length: int
    widths: tuple[int, ...]
    """The lengths of the prefixes, coarse to fine, without the whole code."""
    levels: tuple[str, ...]
    """Names of the levels, the whole code's last."""
    known: str = ""

    def sentence(self) -> str:
        """Say how the codes are cut."""
        cuts = " > ".join(
            f"{name} ({width})" for name, width in zip(self.levels, (*self.widths, self.length), strict=True)
        )
        return f"{cuts} digits" + (f", {self.known}" if self.known else "; check where the cuts belong")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "length": self.length,
            "widths": list(self.widths),
            "levels": list(self.levels),
            "scheme": self.known or None,
        }


def find_prefixes(values: pa.Array, repeats: bool) -> Prefixes | None:
    """Return how codes can be cut into levels, if they can; `repeats` says that they recur in the table.

    >>> find_prefixes(pa.array(["36001000100", "36001000200", "36003000100"]), repeats=True).levels
    ('county', 'tract')
    """
    lengths = pc.unique(pc.utf8_length(values)).to_pylist()
    if len(lengths) != 1 or not 3 <= lengths[0] <= _LONGEST_PREFIX or not _digits(values):
        return None
    length = int(lengths[0])
    groups = {
        width: int(pc.count_distinct(pc.utf8_slice_codeunits(values, 0, width)).as_py()) for width in range(1, length)
    }
    for known, names, coarsest in (("FIPS codes", _FIPS, _FIPS_STATES), ("ISTAT codes", _ISTAT, _ISTAT_PROVINCES)):
        first = min(names)
        starts = pc.unique(pc.utf8_slice_codeunits(values, 0, first)).to_pylist()
        if length > first and length in names and all(int(start) in coarsest for start in starts):
            widths = tuple(width for width in names if width < length and groups[width] > 1)
            if widths:
                return Prefixes(length, widths, tuple(names[width] for width in (*widths, length)), known)
    if not repeats or len(values) < _MANY or length < _SHORTEST:
        return None
    # Cut where digits branch less than the ones before: there a new field begins.
    counts = [1, *groups.values(), len(values)]
    branching = [counts[width] / counts[width - 1] for width in range(1, len(counts))]
    useful = [width for width in groups if 2 <= groups[width] <= len(values) / 3]
    found = [width for width in useful if branching[width] < 0.8 * branching[width - 1]]
    widths = tuple(found[:3] or useful[:1])
    return Prefixes(length, widths, tuple(f"digits{width}" for width in (*widths, length))) if widths else None


def lost_zeros(values: pa.Array) -> str:
    """Return a warning where codes look as if their leading zeros were lost."""
    if not _digits(values) or len(values) < _MANY:
        return ""
    lengths = sorted(pc.unique(pc.utf8_length(values)).to_pylist())
    if len(lengths) == 2 and lengths[1] == lengths[0] + 1 and lengths[1] in {*_FIPS, *_ISTAT} - {2, 3}:
        return f"lengths {lengths[0]} and {lengths[1]}: leading zeros may be lost; read the column as text"
    return ""


def _digits(values: pa.Array) -> bool:
    return len(values) > 0 and bool(pc.all(pc.match_substring_regex(values, "^[0-9]+$")).as_py())


# What one column of a table looks like: codes, counts, ids, dates or other numbers.

Kind = Literal["code", "count", "id", "date", "number", "constant", "empty", "other"]


def words(name: str) -> frozenset[str]:
    """Return the words of a column's name.

    >>> sorted(words("homeTract_id"))
    ['home', 'id', 'tract']
    """
    return frozenset(re.findall(r"[a-z]+|[0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))


_COUNT_WORDS = words(
    "count counts n num number flow flows trips commuters flights pop population households people persons "
    "freq frequency total weight volume records journeys travellers travelers employees jobs"
)
_ID_WORDS = words(
    "person user device imei phone customer patient respondent household passenger rider card subscriber "
    "employee visitor uuid guid "
    "pessoa persona persone personne individuo utente usuario usager cliente client paciente paziente tessera tarjeta"
)
NAMING = words("name names label labels title description descr nome nombre nom denominazione descrizione")
_AGES = words("age ages eta alter edad idade")
_BANDED = _AGES | words("income salary wage hours minutes distance duration")
_DATE_WORDS = words("date day month year time datetime timestamp period week quarter hour")
_CODE_WORDS = words("code codes cod codigo id nr no num tract zip postal plz district beat region")
_PLACED = words("lat latitude lon lng long longitude easting northing coord coordinate coordinates")
_ADDRESS = words("address addr adresse street strasse calle direccion indirizzo rue endereco email mail url")
_BRANDS = words("brand brands marca marke product produkt producto model vendor manufacturer item sku")
_DIAGNOSES = words("icd icd10 diagnosis diagnose diagnosi diagnostico diag dx cause causa morbidity")
_FORMATS = (
    "yyyy-mm-dd", "dd/mm/yyyy", "mm/dd/yyyy", "dd.mm.yyyy", "dd-mm-yyyy", "mm-dd-yyyy", "yyyy/mm/dd", "yyyymmdd",
    "yyyy-mm", "mm/yyyy", "dd/mm/yy", "mm/dd/yy", "dd.mm.yy", "yyyy",
)  # fmt: skip
"""How dates may be written; of two that fit equally well, the first."""
_PARTS = {"yyyy": "(19|20)[0-9]{2}", "yy": "[0-9]{2}", "mm": "(0?[1-9]|1[0-2])", "dd": "(0?[1-9]|[12][0-9]|3[01])"}
_WHOLE = "^(0|[1-9][0-9]{0,17})$"
_DECIMAL = r"^\s*[+-]?[0-9]+([.,][0-9]+)?\s*$"
_WORDY = 25
"""Average length of free text."""
_NEARLY_ALL = 0.95
_SHOWN = 3
_FIRST = 1000
_LONGEST = 20
_GROUPED = r"^[0-9]{1,3}(MARK[0-9]{3})*([.,]0*)?$"
_FEW_ROWS = 50
_MANY_NUMBERS = 20
_FEW_CODES = 3
_LONG_LIST = 1000


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a private table."""

    name: str
    type: str
    distinct: int
    missing: int
    kind: Kind
    prefixes: Prefixes | None = None
    note: str = ""
    values: pa.Array | None = field(default=None, repr=False)
    """The different values, as text; None where they are not codes."""
    samples: tuple[str, ...] = ()
    """Some of its values, for the steward only; none of identifiers."""
    thousands: str | None = None
    """The thousands separator of its numbers, if one is recognised."""
    proposed: Mapping[str, Any] = FrozenMap({})
    """Fields of an attribute that would make codes of it; none of its values is in them."""
    reason: str = ""
    """Why it is no useful attribute; empty if it may be one."""

    @property
    def is_padded(self) -> bool:
        """Whether some of its texts have blanks at their ends."""
        return self.kind == "code" and self.values is not None and _share(self.values, r"^\s|\s$") > 0

    @property
    def largest(self) -> int | None:
        """The largest of its values where they are whole numbers."""
        if self.kind != "count" or self.values is None or not len(self.values):
            return None
        digits = pc.replace_substring_regex(self.values, r"[.,]0*$", "")
        digits = digits if self.thousands is None else pc.replace_substring(digits, self.thousands, "")
        return int(pc.max(digits.cast(pa.int64())).as_py())

    def looks_like(self) -> str:
        """Describe the column in a few words."""
        if self.kind == "code" and self.prefixes is not None:
            return f"prefix codes: {self.prefixes.sentence()}"
        if (rule := next(iter(self.proposed), None)) is not None:
            standard = STANDARDS.get(self.proposed.get("standard", ""))
            written = self.proposed.get("dates", {}).get("format", "yyyy-mm-dd")
            return {
                "standard": "" if standard is None else standard.words,
                "dates": f"dates, {written}",
                "bands": "numbers, to be counted in bands",
                "labels": "codes without names",
            }[rule]
        return {
            "code": "codes",
            "count": "counts",
            "id": "identifiers (nearly all distinct, or named so)",
            "date": "dates or times",
            "number": "numbers",
            "constant": "one value only",
            "empty": "empty",
            "other": "not codes",
        }[self.kind]

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain values."""
        return {
            "name": self.name,
            "type": self.type,
            "distinct": self.distinct,
            "missing": self.missing,
            "looks_like": self.kind,
            "prefixes": None if self.prefixes is None else self.prefixes.to_dict(),
            "note": self.note,
            "samples": list(self.samples),
            "thousands": self.thousands,
            "proposed": dict(self.proposed),
            "reason": self.reason,
        }


def describe_columns(table: pa.Table, count: str | None = None) -> tuple[Column, ...]:
    """Describe every column of a table; `count` is known to hold counts."""
    described = (_describe(name, table.column(name), name == count) for name in table.column_names)
    return tuple(
        replace(
            column,
            samples=_samples(column, table.column(column.name)),
            reason=_reason(column, table.num_rows),
            proposed=_proposed(column),
        )
        for column in described
    )


def _samples(column: Column, given: pa.ChunkedArray) -> tuple[str, ...]:
    """Return some values as they stand in the table; those of identifiers tell of somebody."""
    if column.kind in ("id", "other", "empty"):
        return ()
    values = column.values if column.values is not None else pc.unique(as_plain(given.slice(0, _FIRST)).drop_null())
    try:
        texts = [str(value) for value in values.slice(0, _SHOWN).to_pylist()]
    except (pa.ArrowException, OverflowError, ValueError, LookupError):  # no calendar has the time, or the zone
        return ()
    return tuple(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in texts)


def _describe(name: str, given: pa.ChunkedArray, is_count: bool) -> Column:
    column = as_plain(given)
    kind = column.type
    numbers = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    if not (numbers or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return _without_codes(name, column, is_count)
    values = as_text(pa.chunked_array([pc.unique(column)]), name).combine_chunks()
    seen = values.filter(pc.fill_null(pc.not_equal(values, ""), False))
    missing = column.null_count + (0 if numbers else pc.sum(pc.equal(column, "")).as_py() or 0)
    present = len(column) - missing
    plain = "whole number" if pa.types.is_integer(kind) else "true or false" if pa.types.is_boolean(kind) else "text"
    whole = plain == "whole number" or _all(seen, _WHOLE)
    thousands = None if whole else _thousands(seen)
    base = Column(name, plain, len(seen), missing, "code", values=seen, thousands=thousands)
    if is_count:
        return replace(base, kind="count")
    if thousands is not None or (not whole and _all(seen, r"^[0-9]{1,17}(\.0*|,0{1,2})$")):
        mark = json.dumps(thousands, ensure_ascii=False)
        written = f"{thousands!r} between thousands: thousands = {{ {json.dumps(name)} = {mark} }}" if thousands else ""
        return replace(base, kind="count" if words(name) & _COUNT_WORDS and not missing else "number", note=written)
    if not len(seen):
        return replace(base, kind="empty")
    if date_format(name, seen) or (whole and words(name) & _DATE_WORDS and len(seen) <= 400):
        return replace(base, kind="date", note=_either_way(seen))
    if not whole and plain == "text" and _share(seen, _DECIMAL) >= _NEARLY_ALL and _share(seen, "[.,][0-9]*[1-9]") > 0:
        commas = _share(seen, r"^[^.]*,[^.]*$") > 0
        return replace(base, kind="number", note="numbers with decimal commas" if commas else "")
    if whole and not missing and words(name) & _COUNT_WORDS and not pc.any(pc.starts_with(seen, "-")).as_py():
        return replace(base, kind="count")
    prefixes = find_prefixes(pc.unique(pc.utf8_trim_whitespace(seen)), repeats=present >= 2 * len(seen))
    note = "" if prefixes is not None else lost_zeros(seen)
    if prefixes is not None and prefixes.known:
        return replace(base, prefixes=prefixes)
    named_so = bool(words(name) & _ID_WORDS) and len(seen) > 0.01 * present
    if present >= _FEW_ROWS and (named_so or len(seen) >= _NEARLY_ALL * present):
        return replace(base, kind="id")
    if len(seen) == 1:
        return replace(base, kind="constant")
    return replace(base, prefixes=prefixes, note=note or _twins(seen))


def date_format(name: str, values: pa.Array) -> str | None:
    """Return how dates are written, if nearly all values are dates; four digits need the name of a year.

    >>> date_format("day", pa.array(["1/1/06 0:00", "1/31/06 23:59"]))
    'mm/dd/yy'
    """
    years = bool(words(name) & _DATE_WORDS) or "ano" in words(name)
    fitting = {one: _share(values, _dated(one)) for one in _FORMATS if one != "yyyy" or years}
    best = max(fitting, key=lambda one: fitting[one])
    return best if fitting[best] >= _NEARLY_ALL else None


def _dated(written: str) -> str:
    parts = [_PARTS.get(part, re.escape(part)) for part in re.split("(yyyy|yy|mm|dd)", written)]
    together = "".join(parts).replace("0?", "0") if written == "yyyymmdd" else "".join(parts)
    return rf"^\s*{together}([T ,].*)?\s*$"


def _either_way(values: pa.Array) -> str:
    """Warn of dates whose day and month cannot be told apart."""
    both = any(
        _share(values, _dated(one)) == _share(values, _dated(other)) == 1
        for one, other in (("dd/mm/yyyy", "mm/dd/yyyy"), ("dd-mm-yyyy", "mm-dd-yyyy"), ("dd/mm/yy", "mm/dd/yy"))
    )
    return "no date tells whether the day or the month comes first: check the format" if both else ""


def _twins(values: pa.Array) -> str:
    """Warn of values that differ only in the Unicode form of their letters."""
    twins = len(values) - pc.count_distinct(pc.utf8_normalize(values, form="NFC")).as_py()
    return (
        f"{twins:,} value{'s' * (twins != 1)} spelt twice, in two Unicode forms that look the same (NFC, NFD): "
        "replace, a public file of two columns, makes one code of them"
        if twins
        else ""
    )


def _proposed(column: Column) -> Mapping[str, Any]:
    """Return fields of an attribute that would make codes of a column, without any of its values."""
    values, own = column.values, words(column.name)
    if column.kind == "date":
        written = "yyyy-mm-dd" if values is None else date_format(column.name, values)
        if written is None:  # a part of a date, such as the month alone: its values are listed
            return FrozenMap({})
        levels = ["year"] if "mm" not in written else ["year", "month"]
        given = {} if written == "yyyy-mm-dd" else {"format": written}
        return FrozenMap({"dates": {"first": "2020-01-01", "last": "2021-12-31", **given}, "levels": levels})
    numbers = column.kind == "number" or (column.kind == "code" and _share(values, _DECIMAL) >= _NEARLY_ALL)
    if numbers and own & _BANDED and column.distinct > _MANY_NUMBERS:
        return FrozenMap({"bands": [0, 18, 40, 60, 80] if own & _AGES else [0, 10, 100, 1000]})
    if column.kind != "code" or values is None:
        return FrozenMap({})
    if (standard := _standard(own, values)) is not None:
        return FrozenMap({"standard": standard})
    if column.distinct <= 10 and _share(values, "^[0-9]$") == 1:
        return FrozenMap({"labels": {"0": "no", "1": "yes"}})
    return FrozenMap({})


def _standard(own: frozenset[str], values: pa.Array) -> str | None:
    """Return the standard hierarchy that nearly all values are codes of."""
    few = len(values) < _FEW_CODES
    if not few and _share(values, "^[A-Z]{2}$") + _share(values, "^[A-Z]{3}$") >= _NEARLY_ALL:
        return "countries" if _known("countries", values) else None
    if own & _DIAGNOSES and _share(values, r"^[A-Za-z][0-9][0-9A-Za-z](\.?[0-9A-Za-z]{1,4})?$") >= _NEARLY_ALL:
        return "icd-10-cm" if _known("icd-10-cm", values) else None
    if "nuts" in own and _share(values, "^[A-Z]{2}[0-9A-Z]{0,3}$") >= _NEARLY_ALL:
        return "nuts"
    return "eu-grid" if _share(values, r"^(CRS3035RES1000m|1km)N[0-9]+E|^1kmE[0-9]+N") >= _NEARLY_ALL else None


def _known(standard: str, values: pa.Array) -> bool:
    codes = make_standard(standard, STANDARDS[standard].levels, None).rule.codes(values)
    return bool(len(codes) - codes.null_count >= _NEARLY_ALL * len(values))


def _reason(column: Column, rows: int) -> str:
    """Say why a column is no useful attribute: it tells one from another, or is measured, and has no categories."""
    own, values = words(column.name), column.values
    if column.kind in ("id", "empty", "constant", "other"):
        return column.looks_like()
    if own & _PLACED:
        return "coordinates: publish the region that they lie in"
    if own & _ADDRESS:
        return "addresses: publish the region that they lie in"
    if 2 * column.missing > rows:
        return f"blank in {column.missing / rows:.0%} of the rows"
    if own & _BRANDS:
        return "brands and products are rarely what readers ask for"
    if column.kind == "date" or column.kind == "count":
        return ""
    if column.kind == "number" and not own & _BANDED:
        return "a measured number: with bands, it counts in bands"
    if values is None or column.prefixes is not None:
        return ""
    if column.distinct > _MANY_NUMBERS and pc.mean(pc.utf8_length(values)).as_py() > _WORDY:
        return "free text"
    if column.distinct > _MANY_NUMBERS and not own & (_CODE_WORDS | _BANDED) and _share(values, _WHOLE) >= _NEARLY_ALL:
        lengths = pc.min_max(pc.utf8_length(values)).as_py()
        # Codes are numbered more densely, and from 1.
        thin = 10 ** (lengths["max"] - 1) > 3 * column.distinct or column.distinct > _LONG_LIST
        thin = thin or pc.index(values, "0").as_py() >= 0
        return (
            "a measured number: with bands, it counts in bands" if lengths["max"] > lengths["min"] + 1 and thin else ""
        )
    return ""


def _thousands(values: pa.Array) -> str | None:
    """Return the thousands separator, if all values are whole numbers written with one."""
    for mark in (",", ".", "'", " ", "\u00a0", "\u202f", "’"):
        between = re.escape(mark)
        grouped = _all(values, _GROUPED.replace("MARK", between))
        if grouped and pc.any(pc.match_substring_regex(values, f"{between}[0-9]{{3}}")).as_py():
            return mark
    return None


def _without_codes(name: str, column: pa.ChunkedArray, is_count: bool) -> Column:
    """Describe a column without codes: dates, fractions, nested values."""
    kind, missing, distinct = column.type, column.null_count, 0
    with suppress(pa.ArrowNotImplementedError):  # nested values
        distinct = int(pc.count_distinct(column).as_py())
    if pa.types.is_temporal(kind):
        return Column(name, "date or time", distinct, missing, "date")
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        whole = bool(pc.all(pc.equal(column, pc.floor(column))).as_py())
        if is_count or (whole and not missing and words(name) & _COUNT_WORDS):
            return Column(name, "number", distinct, missing, "count")
        note = "whole numbers stored as fractions: if these are codes, read them as text" if whole else ""
        return Column(name, "number", distinct, missing, "number", note=note)
    return Column(name, str(kind), distinct, missing, "other", note="to use it as an attribute, read it as text")


def _all(values: pa.Array, pattern: str) -> bool:
    return _share(values, pattern) == 1


def _share(values: pa.Array, pattern: str) -> float:
    """Return which share of the values matches a pattern."""
    return pc.mean(pc.match_substring_regex(values, pattern)).as_py() or 0.0
