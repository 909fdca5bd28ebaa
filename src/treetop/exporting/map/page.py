"""The page of a map: one HTML file with everything in it, which loads nothing and runs only its own script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treetop.exporting import html

_STATED = ("title", "private", "warning", "guarantee", "protects", "data", "time", "id")


def render(card: Mapping[str, Any], content: Mapping[str, Any], credit: str | None) -> str:
    """Return the page; whatever comes from the release is text in it, never markup."""
    stated = {key: card.get(key) for key in _STATED}
    values = {"card": stated, "credit": credit, "content": content, "kind": content["kind"]}
    return html.render("treetop.exporting.map", values)
