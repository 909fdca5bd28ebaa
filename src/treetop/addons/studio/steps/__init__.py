"""The steps of the studio: each shows a page, and handles its form."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Done:
    """The result of a form."""

    to: str
    said: str = ""
    """Its first message."""
