"""What a workbook says of its numbers: guarantee, margins, and how to read what is small, or not listed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treetop.exporting.exactness import is_exact, told_exactly
from treetop.exporting.levels import Depths, trees_of
from treetop.release.selection import Selection

Row = tuple[object, ...]
"""One line: a heading alone, or cells."""

_COUNT = (
    "A released count: a whole number with noise in it, made to add up. It is not the number in the private table{but}."
)
_BUT = ", apart from what is told without noise (below)"
_OUTSIDE = (
    "Marks a count outside its own range: counts were moved so that everything adds up, ranges were not. Believe the "
    "range."
)
_ZEROS = (
    "A combination that is not listed is a released zero. That is no proof that there is nobody: noise may have hidden "
    "a small true count, and may have made a small count of nothing. Counts that are smaller than the margin of their "
    "level say little, one by one; sums of many do."
)
_NO_ZEROS = (
    "This release names only what its measurements show to be there. A combination that is not listed is not a zero: "
    "it may have a part of what is unresolved at coarser levels. At the leaves, {unresolved:,} of {total:,} are."
)
_SUMS = "Add counts, not bounds: the bounds of a sum are narrower than the sums of bounds."
_MORE = "The release's own card (card.html) states the method, every caveat, and what was spent before."


def readme(release: Selection, depths: Depths) -> list[Row]:
    """Return the lines of the sheet."""
    return [*_what(release, depths), *_private(release.card), *_reading(release), *_margins(release.card)]


def _what(release: Selection, depths: Depths) -> Iterator[Row]:
    card, trees = release.card, trees_of(release)
    yield (str(card.get("title") or "Release"),)
    if card.get("description"):
        yield "", card["description"]
    levels = {name: tree.levels[depths[name]] for name, tree in trees.items()}
    told = (name if level in (name, "value") else f"{name} by {level}" for name, level in levels.items())
    yield "What is counted", f"{card['counted']['what']} by {', '.join(told)}" if "counted" in card else ", ".join(told)
    yield from (("", sentence) for sentence in card.get("counted", {}).get("sentences", ()))
    if release.conditions:
        yield "Only what matches", ", ".join(release.conditions)
    if (period := card.get("data", {}).get("period")) is not None:
        yield "Period", period


def _private(card: dict[str, Any]) -> Iterator[Row]:
    yield ("Privacy",)
    told = {
        "Warning": "warning",
        "Guarantee": "guarantee",
        "What it protects": "protects",
        "Release": "id",
        "Day": "time",
    }
    yield from ((title, card[name]) for title, name in told.items() if card.get(name))
    yield "More", _MORE


def _reading(release: Selection) -> Iterator[Row]:
    yield ("How to read the numbers",)
    exact = list(told_exactly(release.card))
    yield "count", _COUNT.format(but=_BUT if exact else "")
    yield from (("Told without noise", one) for one in exact)
    said = release.card.get("accuracy", {})
    if release.confidence is not None:
        yield "lower, upper", f"At {100 * release.confidence:g} % confidence. {said.get('interval', '')}".strip()
        yield "outside", _OUTSIDE
    if release.whole.left is None:
        yield "Zeros", _ZEROS
    else:
        yield "What is not listed", _NO_ZEROS.format(unresolved=release.unresolved_total, total=release.total)
    yield "Adding up", _SUMS


def _margins(card: dict[str, Any]) -> Iterator[Row]:
    levels = [*card.get("levels", ()), *card.get("margins", ())]
    if not levels:
        return
    yield (f"Margins at {100 * float(card['accuracy']['confidence']):g} % confidence",)
    yield "", card["accuracy"].get("margin", "")
    yield "Level", "Public nodes", "± one count"
    for level in levels:
        margin = f"± {level['margin']:,}" if level["margin"] is not None else "exact" if is_exact(level) else "follows"
        yield level.get("counts", level["name"]), f"{level['nodes']:,}", margin
