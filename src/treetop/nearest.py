"""The nearest of the names that there are: what a message suggests when one is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, choices: Iterable[str]) -> str:
    """Return " (did you mean …?)" for the choice that is closest to `name`, or nothing."""
    found = difflib.get_close_matches(name, list(choices), n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""
