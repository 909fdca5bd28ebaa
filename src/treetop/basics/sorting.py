"""Sorting packed paths: alone by NumPy, and with what belongs to them in linear passes, one for each ten bits.

In passes over the bits that differ, from the low end up, what belongs to a path moves along with it. To fetch it from
all over memory afterwards takes several times longer on tens of millions of paths.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel

_BITS = 10
"""Of the widths from 8 to 12 the fastest: so many open places to write to still fit the processor's first cache."""

_MANY = 1 << 20
"""Fewer words are sorted on one core."""

Words = NDArray[np.uint64]
Values = NDArray[np.int64]


def sort_rows(keys: Sequence[Words], values: Values | None = None) -> tuple[list[Words], Values | None]:
    """Return rows in ascending order: a key of one array a word, the first the highest, and a value that goes with it.

    The sort is stable. The arrays are given away: they may be overwritten.
    """
    if len(keys) == 1 and values is None:
        sort_words(keys[0])
        return [keys[0]], None
    if len(keys) == 1 and values is not None:
        key, values = _sort_word(keys[0], values)
        return [key], values
    order = np.arange(len(keys[0]))
    for word in reversed(keys):
        _, order = _sort_word(word[order], order)
    return [word[order] for word in keys], None if values is None else values[order]


def sort_words(words: Words) -> None:
    """Sort words in place: many on all cores, each of which has those between two quantiles.

    NumPy sorts them with the processor's widest registers, faster than linear passes could.
    """
    cores = (os.cpu_count() or 1) if len(words) >= _MANY else 1
    cuts = [len(words) * core // cores for core in range(cores + 1)]
    if cores == 1:
        words.sort()
        return
    words.partition(cuts[1:-1])
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(lambda start, stop: words[start:stop].sort(), cuts[:-1], cuts[1:]))


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
    for i in range(len(key)):
        digit = np.int64((key[i] >> low) & mask)
        at = place[digit]
        place[digit] = at + 1
        to_key[at] = key[i]
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
