"""How a notebook shows a release, or a part of one: its largest counts with their intervals, and its guarantee."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from treetop.release.outside import noted

if TYPE_CHECKING:
    from treetop.release.selection import Selection

MOST = 10
"""So many rows are shown."""


def shown(part: Selection) -> str:
    """Return a page for a notebook: the total, what it is private for, and the counts of the first level that tells."""
    card, where = part.card, ", ".join(part.conditions)
    title = html.escape(": ".join(filter(None, [card["title"] or "Release", where])))
    guarantee = html.escape(card["warning"] or card["guarantee"])
    counted = "".join(f"<br>{html.escape(one)}" for one in card.get("counted", {}).get("sentences", ()))
    head = f"<p><b>{title}</b>: {_total(part)} in {part.leaves:,} leaves{counted}<br>{guarantee}</p>"
    return head + _table(part)


def _total(part: Selection) -> str:
    if part.confidence is None:
        return f"{part.total:,}"
    bounds = part.interval()
    mark = "" if bounds.lower <= part.total <= bounds.upper else ", which it lies outside of"
    return f"{part.total:,} ({part.confidence:.0%} noise interval {bounds.lower:,} – {bounds.upper:,}{mark})"


def _table(part: Selection) -> str:
    """Return the largest counts of the first level that divides what is there; of the last one where none does."""
    found = pa.table({})
    for level in part.spine.levels:
        found = part.by(level.name, names=True)
        if found.num_rows > 1:
            break
    if not found.num_rows:
        return ""
    largest = noted(found.sort_by([("count", "descending")]).slice(0, MOST))
    rows = "".join(_row(one.values(), "td") for one in largest.to_pylist())
    more = found.num_rows - largest.num_rows
    rest = f"<p>and {more:,} more rows</p>" if more else ""
    return f"<table><thead>{_row(largest.column_names, 'th')}</thead><tbody>{rows}</tbody></table>{rest}"


def _row(cells: Iterable[object], tag: str) -> str:
    texts = (f"{cell:,}" if isinstance(cell, int) else html.escape(str(cell)) for cell in cells)
    return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in texts)}</tr>"
