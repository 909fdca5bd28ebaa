"""Tables in Markdown, and how numbers are written in them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def lines(head: Sequence[str], rows: Iterable[Sequence[str]], sides: str = "lr") -> list[str]:
    """Return the lines of a table: for each column `l` or `r`, the side where it is; the last one is for all others."""
    rule = "".join(f"{'---' if side == 'l' else '---:'}|" for side in sides.ljust(len(head), sides[-1]))
    written = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return [written[0], f"|{rule}", *written[1:]]


def table(head: Sequence[str], rows: Iterable[Sequence[str]], sides: str = "l") -> str:
    """Return a table, to the left unless said otherwise."""
    return "\n".join(lines(head, rows, sides))


def number(value: float) -> str:
    """Return a number to three digits, or whole; a dash where there is none."""
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value == 0 or value >= 99.95 else f"{value:#.3g}"


def percent(share: float) -> str:
    """Return a share to three digits; a dash where there is none."""
    if math.isnan(share):
        return "–"
    return "<0.001%" if 0 < 100 * share < 0.001 else f"{number(100 * share)}%"
