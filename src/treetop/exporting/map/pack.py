"""Whole numbers as short text, in the manner of encoded polylines: five bits a character, the small ones in one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_FIRST = 63  # "?": from here to "~" nothing has a meaning in HTML
_MORE = 32


def pack(numbers: Iterable[int]) -> str:
    """Write numbers of either sign one after the other.

    >>> pack([0, -1, 1, 15, 16, -4000])
    '?@A]_@~xF'
    """
    text = []
    for number in numbers:
        rest = number << 1 if number >= 0 else ~(number << 1)
        while rest >= _MORE:
            text.append(chr((rest & 31 | _MORE) + _FIRST))
            rest >>= 5
        text.append(chr(rest + _FIRST))
    return "".join(text)


def pack_rings(rings: Iterable[Sequence[int]]) -> str:
    """Write rings of arcs: how many, then each as its step from the one before."""
    numbers: list[int] = []
    last = 0
    for ring in rings:
        numbers.append(len(ring))
        for arc in ring:
            numbers.append(arc - last)
            last = arc
    return pack(numbers)
