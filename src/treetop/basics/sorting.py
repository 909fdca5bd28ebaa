"""Sorting packed paths in linear passes: one for each ten bits that differ, from the low end up.

On tens of millions of paths this is several times faster than a comparison sort, and what belongs to a path moves along
with it instead of being fetched from all over memory afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel

_BITS = 10
"""Of the widths from 8 to 12 the fastest: so many open places to write to still fit the processor's first cache."""

Words = NDArray[np.uint64]
Values = NDArray[np.int64]


def sort_rows(keys: Sequence[Words], values: Values | None = None) -> tuple[list[Words], Values | None]:
    """Return rows in ascending order: a key of one array a word, the first the highest, and a value that goes with it.

    The sort is stable. The arrays are given away: they may be overwritten.
    """
    if len(keys) == 1:
        key, moved = _sort_word(keys[0], np.empty(0, np.int64) if values is None else values)
        return [key], None if values is None else moved
    order = np.arange(len(keys[0]))
    for word in reversed(keys):
        _, order = _sort_word(word[order], order)
    return [word[order] for word in keys], None if values is None else values[order]


def differing_bits(words: Words) -> int:
    """Return the bits in which not all words agree; of no words, all of them."""
    return int(np.bitwise_or.reduce(words, initial=0)) ^ int(np.bitwise_and.reduce(words, initial=2**64 - 1))


def _sort_word(key: Words, value: Values) -> tuple[Words, Values]:
    differing = differing_bits(key)
    if len(key) < 2 or not differing:
        return key, value
    other_key, other_value = np.empty_like(key), np.empty_like(value)
    shift = (differing & -differing).bit_length() - 1
    while shift < differing.bit_length():
        _scatter(key, value, other_key, other_value, shift, _BITS)
        key, value, other_key, other_value = other_key, other_value, key, value
        shift += _BITS
    return key, value


@kernel
def _scatter(key: Words, value: Values, to_key: Words, to_value: Values, shift: int, bits: int) -> None:
    """Write the rows out, ordered by some bits of their key and, where those agree, as they were."""
    low, mask = np.uint64(shift), np.uint64((1 << bits) - 1)
    place = np.zeros((1 << bits) + 1, np.int64)
    for i in range(len(key)):
        place[np.int64((key[i] >> low) & mask) + 1] += 1
    for above in range(1, len(place)):
        place[above] += place[above - 1]
    with_value = len(value) > 0
    for i in range(len(key)):
        digit = np.int64((key[i] >> low) & mask)
        at = place[digit]
        place[digit] = at + 1
        to_key[at] = key[i]
        if with_value:
            to_value[at] = value[i]


def first_disorder(words: Sequence[Words]) -> tuple[int, bool] | None:
    """Return the first row that is not below the next, words compared from the first, and whether the two are equal.

    None where every row is below the next.
    """
    rises = np.zeros(max(len(words[0]) - 1, 0), dtype=bool)
    equal = ~rises
    for word in words:
        rises |= equal & (word[1:] > word[:-1])
        equal &= word[1:] == word[:-1]
    wrong = np.flatnonzero(~rises)
    return (int(wrong[0]), bool(equal[wrong[0]])) if len(wrong) else None
