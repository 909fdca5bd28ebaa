"""The nearest of the names that there are: what a message suggests when one is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, choices: Iterable[str]) -> str:
    """Return " (did you mean …?)" for the choice that is closest to `name`, or nothing.

    The case of letters does not matter, a beginning is near to the whole, and so is the last part of a dotted name.

    >>> nearest("Prov", ["region", "province"]), nearest("prov", ["origin.region", "origin.province"])
    (" (did you mean 'province'?)", " (did you mean 'origin.province'?)")
    >>> nearest("xyz", ["region", "province"])
    ''
    """
    listed = list(choices)
    found = _closest(name.casefold(), {one.casefold(): one for one in reversed(listed)})
    if found is None:
        found = _closest(name.casefold(), {one.casefold().rpartition(".")[2]: one for one in reversed(listed)})
    return "" if found is None else f" (did you mean {found!r}?)"


def _closest(name: str, choices: dict[str, str]) -> str | None:
    close = difflib.get_close_matches(name, choices, n=1)
    begun = [one for one in choices if len(name) > 1 and one.startswith(name)]
    if close or not begun:
        return choices[close[0]] if close else None
    return choices[min(begun, key=len)]
