"""A claim of the paper, what became of it, and how numbers are written about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, and what became of it."""

    title: str
    """What the paper says, in a few words."""
    holds: bool | None
    """Whether it holds here in every case; None where it cannot be put as yes or no."""
    verdict: str
    """What was measured, in a sentence or two."""
    table: list[str]
    """The numbers, as the lines of a Markdown table."""


def cases(held: int, all_: int) -> str:
    """Say in how many cases something holds."""
    return f"In all {all_} cases." if held == all_ else f"In {held} of {all_} cases."


def times(ratios: Sequence[float]) -> str:
    """Say between which factors some ratios lie."""
    return f"{min(ratios):.1f} to {max(ratios):.1f} times"


def number(value: float) -> str:
    """Write a number for people."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows)]
