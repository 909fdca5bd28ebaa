"""How accurate a plan will be, level by level, before any private data is read."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from treetop.errors import PlanError

CONFIDENCE = 0.95
"""The confidence of intervals, margins and bounds, unless a plan says otherwise."""


@dataclass(frozen=True)
class LevelAccuracy:
    """What to expect of the counts of one level."""

    level: int
    """The position in the spine; the total is 0."""
    name: str
    """The name of the level."""
    nodes: int
    """How many nodes the public domain has there."""
    share: float
    """The share of the loss that it is given."""
    noise: float
    """The standard deviation of one measurement; 0 where nothing is measured."""
    margin: int
    """One measurement is within this of the truth with the stated confidence."""
    bound: int
    """All counts of the level are, at once, within this of the truth with the stated confidence."""


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of every level. Print it for people; `to_dicts` is for programs."""

    levels: tuple[LevelAccuracy, ...]
    """One row a level, from the total down."""
    confidence: float
    """The probability with which margins and bounds hold."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dictionary a level."""
        return [asdict(level) for level in self.levels]

    def __str__(self) -> str:
        percent = f"{100 * self.confidence:g}%"
        rows = [
            (
                "level",
                "name",
                "public nodes",
                "share",
                "noise (sd)",
                f"± one, {percent}",
                f"± all, {percent}",
            ),
            *(_cells(level) for level in self.levels),
        ]
        return text_table(rows, left=(1,))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{field.name}</th>" for field in fields(LevelAccuracy))
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(level)) + "</tr>"
            for level in self.levels
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: LevelAccuracy) -> tuple[str, ...]:
    start = (str(row.level), row.name, f"{row.nodes:,}")
    if row.share == 0:
        above = ("as above", "-") if row.level else ("exact", "0") if row.bound == 0 else ("as below", "-")
        return (*start, "-", *above, f"{row.bound:,}")
    return (*start, f"{row.share:.1%}", f"{row.noise:,.4g}", f"{row.margin:,}", f"{row.bound:,}")


def text_table(rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> str:
    """Lay out rows of text, the first a header, in columns; those in `left` are aligned to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    return "\n".join([line(rows[0]), "  ".join("─" * width for width in widths), *(line(row) for row in rows[1:])])


def as_confidence(value: object) -> float:
    """Read a confidence: a probability between 0 and 1."""
    try:
        confidence = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        confidence = 0.0
    if not 0 < confidence < 1:
        raise PlanError(f"confidence is {value!r}: give a probability between 0 and 1, such as 0.95")
    return confidence
