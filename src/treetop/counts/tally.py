"""Rows that were left out or look wrong while a private table was read: for the steward's terminal, never in a release.

How many records have unknown codes is private. So only the steward sees it, before anything is spent, and nothing of it
is written to a folder. Whether a release is refused for it depends on private data as well.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.choices import with_article
from treetop._util.dtypes import Flags, Ints
from treetop.counts.codebook import Codebook
from treetop.domain.unit import Unit, Unknown
from treetop.errors import ManyDropped

MOST_UNKNOWN = 0.03
"""Up to this share of the rows, and of the records, is dropped or counted under a leaf without being asked again."""

_SHOWN = 5
_MOST_CODES = 20_000
_LOG = logging.getLogger(__name__)

Weights = Ints


@dataclass(eq=False, repr=False)
class UnknownCodes:
    """The unknown codes of one column."""

    column: str
    often: dict[str, int] = field(default_factory=dict)
    """How many records each code has; of very many codes, the commonest."""
    records: int = 0
    trimmed: int = 0
    """How many of them have a code that is known without the blanks around it."""
    padded: int = 0
    """How many of the others have one that is known with its leading zeros."""
    stripped: int = 0
    """How many of the others have one that is known without them."""

    def add(self, codes: pa.StringArray, weights: Weights | None, book: Codebook, width: int) -> None:
        """Add the unknown codes of some rows; known ones have at most `width` characters."""
        weights = np.ones(len(codes), np.int64) if weights is None else weights
        encoded = pc.fill_null(codes, "").dictionary_encode()
        weight = np.bincount(encoded.indices.to_numpy(), weights, len(encoded.dictionary)).astype(np.int64)
        self.records += int(weight.sum())
        trim = pc.utf8_trim_whitespace(encoded.dictionary)
        bare = book.find(trim) >= 0
        blank = pc.equal(trim, "").to_numpy(zero_copy_only=False)
        zeros = ~bare & ~blank & (book.find(pc.utf8_lpad(trim, width=width, padding="0")) >= 0)
        self.trimmed += int(weight[bare].sum())
        self.padded += int(weight[zeros].sum())
        short = pc.utf8_ltrim(trim, characters="0")
        short = pc.if_else(pc.equal(short, ""), "0", short)
        self.stripped += int(weight[~bare & ~blank & ~zeros & (book.find(short) >= 0)].sum())
        for at in np.argsort(-weight)[:_MOST_CODES].tolist():
            code = encoded.dictionary[at].as_py()
            self.often[code] = self.often.get(code, 0) + int(weight[at])
        if len(self.often) > 2 * _MOST_CODES:
            self.often = dict(self.commonest(_MOST_CODES))

    def join(self, other: UnknownCodes) -> None:
        """Add the unknown codes of other rows."""
        for name in ("records", "trimmed", "padded", "stripped"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for code, number in other.often.items():
            self.often[code] = self.often.get(code, 0) + number
        self.often = dict(self.commonest(_MOST_CODES))

    def commonest(self, number: int) -> list[tuple[str, int]]:
        """Return the commonest codes with their records."""
        return sorted(self.often.items(), key=lambda pair: (-pair[1], pair[0]))[:number]

    def sentences(self) -> Iterator[str]:
        """List the codes and suggest a change that would make them known."""
        listed = ", ".join(
            f"{code[:40]!r} ({number:,})" if code else f"missing ({number:,})"
            for code, number in self.commonest(_SHOWN)
        )
        more = len(self.often) - _SHOWN
        yield f"Unknown in column {self.column!r}: {listed}{f' and {more:,} more codes' if more > 0 else ''}."
        column = f"column {self.column!r}"
        for number, remedy in (
            (self.padded, f"with their leading zeros: read {column} as text, or put the zeros back."),
            (self.stripped, f"without their leading zeros: write the codes of {column} in one way."),
            (self.trimmed, f"without the blanks around them: trim {column}."),
        ):
            if number:
                yield f"{number:,} of these {self.records:,} would be known {remedy}"


@dataclass(eq=False, repr=False)
class LeftOut:
    """Edges that were left out before edges were counted."""

    rows: int = 0
    unknown: int = 0
    """How many of them had an id that no node has."""
    codes: dict[str, UnknownCodes] = field(default_factory=dict)
    self_loops: int = 0
    repeated: int = 0

    def sentences(self, dropped: str = "were dropped") -> Iterator[str]:
        """Describe the edges that were left out; empty if there were none."""
        if self.unknown:
            share = self.unknown / self.rows
            yield (
                f"{self.unknown:,} of {self.rows:,} edges {dropped} ({share:.1%}), because an id is not in the node "
                "table."
            )
            for told in self.codes.values():
                yield from told.sentences()
        if self.self_loops:
            yield f"{self.self_loops:,} of {self.rows:,} edges {dropped}, because they go from a node to itself."
        if self.repeated:
            yield f"{self.repeated:,} of {self.rows:,} edges {dropped}, because they repeat another one."


@dataclass(eq=False, repr=False)
class Tally:
    """Remarks for the steward on a table that was read."""

    compares: bool = False
    """Whether all records are to be compared with those of another table."""
    every: bytes | None = None
    """A digest of all records, also of those beyond a limit of contributions, where they are to be compared."""
    unknown: Unknown = "error"
    rows: int = 0
    records: int = 0
    unknown_rows: int = 0
    """How many rows had an unknown code, or no id."""
    unknown_records: int = 0
    dropped: int = 0
    """How many records were dropped because of a code or an id that is unknown. Self-loops and repeated edges are not
    among them: where they are dropped, the graph is stated to have none."""
    codes: dict[str, UnknownCodes] = field(default_factory=dict)
    units: int | None = None
    """How many ids there were; None where there is no id."""
    unit_rows: int = 0
    left: LeftOut | None = None
    """Edges left out earlier; None if the table is not an edge table."""
    offered: int = 0
    """Records of units with an id, before their number was limited."""
    counted: int | None = None
    """How many of them are counted; None where there is no limit that is enforced."""

    @property
    def lost(self) -> int:
        """How many records are missing because of a code or an id that is unknown, here or in the edge table."""
        return self.dropped if self.left is None else self.dropped + self.left.unknown

    @property
    def share(self) -> float:
        """The share of the rows that had an unknown code, or of the records where that is larger."""
        return max(self.unknown_rows / max(self.rows, 1), self.unknown_records / max(self.records, 1))

    def add(self, known: Flags, weights: Weights | None) -> None:
        """Add rows: which of them are known, and how many records each stands for (1 when None)."""
        number, left = len(known), int(np.count_nonzero(~known))
        self.rows += number
        self.unknown_rows += left
        self.records += number if weights is None else int(weights.sum())
        self.unknown_records += left if weights is None else int(weights[~known].sum())

    def join(self, other: Tally) -> None:
        """Add the tally of other rows of the same table."""
        for name in ("rows", "records", "unknown_rows", "unknown_records", "dropped", "offered"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for column, codes in other.codes.items():
            self.codes.setdefault(column, UnknownCodes(column)).join(codes)

    def sentences(self, would: bool = False) -> list[str]:
        """Describe the treatment of unknown codes; empty if there were none."""
        dropped = "would be dropped" if would else "were dropped"
        left = [] if self.left is None else list(self.left.sentences(dropped))
        if not self.unknown_rows:
            return left
        if isinstance(self.unknown, Mapping):
            leaves = ", ".join(f"{name} {code!r}" for name, code in self.unknown.items() if code != "drop")
            own = f"{'would ' if would else ''}count under the leaf for unknown codes ({leaves})"
            gone = " and ".join(name for name, code in self.unknown.items() if code == "drop")
            became = own if not gone else f"{own}, or {dropped} for that of {gone}" if leaves else dropped
        else:
            became = dropped
        rows = f"{self.unknown_rows:,} of {self.rows:,} rows {became}"
        counted = f", which stand for {self.unknown_records:,} of {self.records:,} records"
        first = f"{rows}{'' if self.records == self.rows else counted} ({self.share:.1%})."
        return [*left, first, *(line for told in self.codes.values() for line in told.sentences())]

    def settle(self, unit: Unit, allow_dropped: bool) -> None:
        """Tell the steward; refuse instead if more is unknown than is likely to be meant."""
        unknown = 0.0 if self.unknown == "error" else self.share
        if self.left is not None:  # edges have no counts: a row is a record
            unknown = max(unknown, self.lost / max(self.left.rows, 1))
        if not allow_dropped and unknown > MOST_UNKNOWN:
            raise ManyDropped(
                "\n  ".join(
                    [
                        f"more than {MOST_UNKNOWN:.0%} of the table has unknown codes; nothing was measured or spent:",
                        *self.sentences(would=True),
                        "Correct the table, or what it is read against; if this is as it should be, allow it "
                        "(`allow_dropped=True`). All this is private.",
                    ]
                )
            )
        self.tell(unit)

    def tell(self, unit: Unit) -> None:
        """Tell the steward by the log, which the command line shows on the terminal."""
        lines = self.sentences()
        if self.counted is not None and self.counted < self.offered:
            noun, beyond = "records" if self.left is None else "edges", self.offered - self.counted
            why = f"beyond the limit of {unit.contributions:,} per {unit.entity}"
            why += f", or in the same leaf as another of the same {unit.entity}" if unit.distinct else ""
            share = say_share(beyond, self.offered)
            lines.append(f"{beyond:,} of {self.offered:,} {noun} were {why} ({share}): they are not counted.")
        if self.units is not None and self.units >= max(self.unit_rows, 2):
            lines.append(
                f"No id in column {unit.id!r} stands in more than one row: each row is then "
                f"{with_article(unit.entity)} of its own. If one {unit.entity} can have several rows, this is not the "
                "column that tells, and they are protected row by row only."
            )
        tell_steward(lines)


def tell_projected(edges: int, kept: int, largest: int) -> None:
    """Tell the steward by the log how many edges were left out so that nobody has more than the largest degree."""
    if kept < edges:
        share = say_share(edges - kept, edges)
        tell_steward(
            [f"{edges - kept:,} of {edges:,} edges were beyond the largest degree {largest:,} ({share}): left out."]
        )


def say_share(part: int, whole: int) -> str:
    """Write a share in percent, to one decimal below ten percent.

    >>> say_share(3035, 9994), say_share(1, 300)
    ('30 %', '0.3 %')
    """
    share = 100 * part / whole
    return f"{share:.0f} %" if share >= 10 else f"{share:.1f} %" if share >= 0.05 else "less than 0.1 %"


def tell_steward(lines: list[str]) -> None:
    """Tell the steward by the log, and nobody else."""
    for line in lines:
        _LOG.warning("%s", line)
    if lines:
        _LOG.warning("this is about the private table, and for the steward only")
