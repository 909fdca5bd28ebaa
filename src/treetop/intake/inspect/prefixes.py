"""Prefix codes: digits of one length whose first digits are the codes of coarser levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# Census codes of the United States: 2 digits for the state, 5 for the county, and so on.
_FIPS = {2: "state", 5: "county", 11: "tract", 12: "block_group", 15: "block"}
_FIPS_STATES = frozenset(range(1, 57)) - {3, 7, 14, 43, 52} | {60, 66, 69, 72, 74, 78}
# Municipality codes of Italy: 3 digits for the province, 3 within it.
_ISTAT = {3: "province", 6: "municipality"}
_ISTAT_PROVINCES = frozenset(range(1, 112))

_SHORTEST = 4
_LONGEST = 20
_MANY = 30


@dataclass(frozen=True)
class Prefixes:
    """How codes of one length are cut into levels."""

    length: int
    """The length of the codes."""
    widths: tuple[int, ...]
    """The lengths of the prefixes, coarse to fine, without the whole code."""
    levels: tuple[str, ...]
    """Names of the levels, the whole code's last."""
    known: str = ""
    """The coding scheme, where it was recognised."""

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
    length = _one_length(values)
    if length is None or not 3 <= length <= _LONGEST:
        return None
    groups = {
        width: int(pc.count_distinct(pc.utf8_slice_codeunits(values, 0, width)).as_py()) for width in range(1, length)
    }
    for known, names, coarsest in (
        ("FIPS codes", _FIPS, _FIPS_STATES),
        ("ISTAT codes", _ISTAT, _ISTAT_PROVINCES),
    ):
        first = min(names)
        if length > first and length in names and _starts_with(values, first, coarsest):
            widths = tuple(width for width in names if width < length and groups[width] > 1)
            if widths:
                return Prefixes(length, widths, tuple(names[width] for width in (*widths, length)), known)
    if not repeats or len(values) < _MANY or length < _SHORTEST:
        return None
    widths = _cuts(groups, len(values))
    return Prefixes(length, widths, tuple(f"digits{width}" for width in (*widths, length))) if widths else None


def lost_zeros(values: pa.Array) -> str:
    """Return a warning where codes look as if their leading zeros were lost."""
    if not _digits(values) or len(values) < _MANY:
        return ""
    lengths = sorted(pc.unique(pc.utf8_length(values)).to_pylist())
    if len(lengths) == 2 and lengths[1] == lengths[0] + 1 and lengths[1] in {*_FIPS, *_ISTAT} - {2, 3}:
        return f"lengths {lengths[0]} and {lengths[1]}: leading zeros may be lost; read the column as text"
    return ""


def _one_length(values: pa.Array) -> int | None:
    lengths = pc.unique(pc.utf8_length(values)).to_pylist()
    return int(lengths[0]) if len(lengths) == 1 and _digits(values) else None


def _digits(values: pa.Array) -> bool:
    return len(values) > 0 and bool(pc.all(pc.match_substring_regex(values, "^[0-9]+$")).as_py())


def _starts_with(values: pa.Array, width: int, known: frozenset[int]) -> bool:
    starts = pc.unique(pc.utf8_slice_codeunits(values, 0, width)).to_pylist()
    return all(int(start) in known for start in starts)


def _cuts(groups: dict[int, int], distinct: int) -> tuple[int, ...]:
    """Cut where digits branch less than the ones before: there a new field begins."""
    counts = [1, *groups.values(), distinct]
    branching = [counts[width] / counts[width - 1] for width in range(1, len(counts))]
    found = [
        width
        for width in groups
        if 2 <= groups[width] <= distinct / 3 and branching[width] < 0.8 * branching[width - 1]
    ]
    if not found:
        found = [width for width in groups if 2 <= groups[width] <= distinct / 3][:1]
    return tuple(found[:3])
