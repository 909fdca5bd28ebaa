"""How many codes of a private table its hierarchies know, as the table is prepared now. For the steward only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from treetop.domain.hierarchy import Hierarchy
from treetop.sources.batch import as_text
from treetop.sources.source import Source
from treetop.sources.table import batches

SHOWN = 8
"""So many codes that are not known are listed."""


@dataclass(frozen=True)
class Matched:
    """How a column of the private table fits its hierarchy. Private."""

    attribute: str
    """The attribute."""
    column: str
    """Its column."""
    rows: int
    """How many rows there are."""
    known_rows: int
    """How many of them have a code that the hierarchy has."""
    codes: int
    """How many different codes there are."""
    known: int
    """How many of them the hierarchy has."""
    unknown: tuple[tuple[str | None, int], ...]
    """The most frequent of the others, each with its rows; None is a missing value."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**vars(self), "unknown": [list(one) for one in self.unknown]}


def match_codes(source: Source, trees: Mapping[str, Hierarchy], columns: Mapping[str, str]) -> list[Matched]:
    """Compare the columns of a private table, prepared as the source says, with the leaves of their hierarchies."""
    often: dict[str, dict[str | None, int]] = {name: {} for name in trees}
    wanted = list(dict.fromkeys(columns[name] for name in trees))
    for batch in batches(source, wanted):
        for name in trees:
            for pair in pc.value_counts(as_text(batch.rows.column(columns[name]), columns[name])).to_pylist():
                often[name][pair["values"]] = often[name].get(pair["values"], 0) + pair["counts"]
    return [_matched(name, columns[name], trees[name], often[name]) for name in trees]


def _matched(name: str, column: str, tree: Hierarchy, often: Mapping[str | None, int]) -> Matched:
    codes = list(often)
    found = tree.encode(pa.array(codes, pa.string())) >= 0
    known = [code for code, there in zip(codes, found.tolist(), strict=True) if there]
    others = sorted(set(codes) - set(known), key=lambda code: (-often[code], code or ""))
    return Matched(
        name,
        column,
        sum(often.values()),
        sum(often[code] for code in known),
        len(codes),
        len(known),
        tuple((code, often[code]) for code in others[:SHOWN]),
    )
