"""The steps of the studio: each shows a page, and does what its form says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Done:
    """What a form has come to."""

    to: str
    """The page to go to."""
    said: str = ""
    """What it says first."""
