"""Where the fields of fixed-width text stand: characters counted from 1, first and last included."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeGuard

from treetop.basics.frozen import FrozenMap
from treetop.errors import DataError

Piece = tuple[int, int]
"""The first and the last character of a piece of a field."""
Positions = Mapping[str, tuple[Piece, ...]]
"""The pieces of each field, in the order in which they are joined."""

_LONGEST = 1_000_000
_EXPECTED = (
    "give the first and the last character, [8, 13]; one character, 1; or pieces to be joined, [[5, 7], [9, 11]]"
)


def as_positions(fields: Mapping[str, Any]) -> Positions:
    """Return the pieces of each field, refusing positions that cannot be meant.

    A field may lie inside another (a province inside a municipality's code). Two that overlap in part, or that are the
    same, are a miscount.

    >>> as_positions({"record": 1, "home": [[5, 7], [9, 11]]})
    {'record': ((1, 1),), 'home': ((5, 7), (9, 11))}
    """
    if not fields:
        raise DataError("fields: none is given; name each field with its positions, such as home = [8, 13]")
    pieces = {str(name): _pieces(str(name), given) for name, given in fields.items()}
    for name, own in pieces.items():
        for one, other in combinations(own, 2):
            if _meet(one, other):
                raise DataError(f"field {name!r} takes characters twice: {say((one, other))} overlap")
    for (name, own), (other_name, others) in combinations(pieces.items(), 2):
        if own == others:
            raise DataError(
                f"fields {name!r} and {other_name!r} both stand at {say(own)}: correct one, or leave it out"
            )
        for one in own:
            for other in others:
                if _meet(one, other) and not (_inside(one, other) or _inside(other, one)):
                    raise DataError(
                        f"fields {name!r} at {say((one,))} and {other_name!r} at {say((other,))} overlap: check the "
                        "positions against the description of the file"
                    )
    return FrozenMap(pieces)


def parse(text: str) -> list[list[int]]:
    """Read positions as a command line gives them.

    >>> parse("5-7,9-11"), parse("1")
    ([[5, 7], [9, 11]], [[1, 1]])
    """
    found = []
    for piece in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,7})\s*(?:-\s*([0-9]{1,7})\s*)?", piece)
        if match is None:
            raise DataError(f"{text!r} is no position: write 8-13, or 5-7,9-11 for pieces to be joined")
        found.append([int(match[1]), int(match[2] or match[1])])
    return found


def say(pieces: Iterable[Piece]) -> str:
    """Write positions as a command line gives them.

    >>> say([(1, 1), (5, 7)])
    '1,5-7'
    """
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in pieces)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def _pieces(name: str, given: Any) -> tuple[Piece, ...]:
    if is_whole(given):
        given = [given, given]
    if not _is_list(given) or not given:
        raise DataError(f"field {name!r} is {given!r}: {_EXPECTED}")
    listed = [given] if all(is_whole(one) for one in given) else given
    return tuple(_piece(name, one) for one in listed)


def _piece(name: str, given: Any) -> Piece:
    if not _is_list(given) or len(given) != 2 or not all(is_whole(one) for one in given):
        raise DataError(f"field {name!r} has {given!r}: {_EXPECTED}")
    first, last = given
    if not 1 <= first <= last <= _LONGEST:
        raise DataError(
            f"field {name!r} goes from character {first} to {last}: count from 1, and give the first before the last"
        )
    return first, last


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _meet(one: Piece, other: Piece) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _inside(one: Piece, other: Piece) -> bool:
    return other[0] <= one[0] and one[1] <= other[1]
