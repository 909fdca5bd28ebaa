"""How accurate a plan will be, level by level, before any private data is read."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from treetop.errors import PlanError

CONFIDENCE = 0.95
"""The confidence of intervals, margins and bounds, unless a plan says otherwise."""


@dataclass(frozen=True)
class LevelAccuracy:
    """What to expect of the counts of one level."""

    level: int
    """The position in the spine; the total is 0, and margins come after the leaves."""
    name: str
    """The name of the level, or of the margin."""
    nodes: int
    """How many nodes the public domain has there."""
    share: float
    """The share of the loss that it is given."""
    noise: float
    """The standard deviation of one measurement; 0 where nothing is measured."""
    margin: int
    """"± one": one count is within this of the truth with the stated confidence, by the measurements of its level."""
    bound: int | None
    """All counts of the level are, at once, within this of the truth with the stated confidence; None where margins are
    kept, since for counts that agree with two tables at once no such bound is proved."""
    title: str = ""
    """What is counted, in words."""
    exact: bool = False
    """Whether its counts are told without noise: all neighbours have the same, or facts decide them."""


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of every level and margin. Print it for people; `to_dicts` is for programs."""

    levels: tuple[LevelAccuracy, ...]
    """One row per level, from the total down."""
    confidence: float
    """The probability with which margins and bounds hold."""
    margins: tuple[LevelAccuracy, ...] = ()
    """One row per table beside the spine."""

    @property
    def rows(self) -> tuple[LevelAccuracy, ...]:
        """All tables: the levels, then the margins."""
        return self.levels + self.margins

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dictionary a level, and then one a margin."""
        return [asdict(row) for row in self.rows]

    def __str__(self) -> str:
        percent = f"{100 * self.confidence:g}%"
        head = (
            "level",
            "name",
            "counts",
            "public nodes",
            "share",
            "noise (sd)",
            f"± one, {percent}",
            f"± all, {percent}",
        )
        cells = [(str(row.level), *_cells(row)) for row in self.levels]
        cells += [(str(row.level), *_cells(row)) for row in self.margins]
        # What says nothing is left out: words where names say as much, and bounds where there is none.
        told = [any(" × " in row.title for row in self.levels), any(row.bound for row in self.levels)]
        shown = [index for index in range(len(head)) if (index != 2 or told[0]) and (index != 7 or told[1])]
        return text_table([[row[index] for index in shown] for row in (head, *cells)], left=(1, 2) if told[0] else (1,))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in (str(row.level), *_cells(row))) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_COLUMNS = ("level", "name", "counts", "nodes", "share", "noise", "margin", "bound")


def _cells(row: LevelAccuracy) -> tuple[str, ...]:
    start = (row.name, row.title, f"{row.nodes:,}")
    bound = "-" if row.bound is None else f"{row.bound:,}"
    if row.share == 0:
        above = ("exact", "0") if row.exact else ("as above", "-") if row.level else ("as below", "-")
        return (*start, "-", *above, bound)
    return (*start, f"{row.share:.1%}", f"{row.noise:,.4g}", f"{row.margin:,}", bound)


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
