"""The bytes of Arrow text as 64-bit words, for compiled functions.

Indices are unsigned throughout: a signed index may count from the end, and asking whether it does costs more than
everything else that is done here with a byte.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop._util.dtypes import Ints, Words
from treetop._util.kernel import kernel, kernel_in_place

U = np.uint64

_LINE = 8


def buffers(texts: pa.StringArray) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return where each text starts, one longer than there are texts, and the bytes of all of them."""
    _, offsets, data = texts.buffers()
    start = np.zeros(1, np.int32) if offsets is None else np.frombuffer(offsets, np.int32)
    letters = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return start[texts.offset : texts.offset + len(texts) + 1], letters


def aligned(words: int) -> Words:
    """Return room for so many words, which begins where a line of the processor's cache does."""
    room = np.empty(words + _LINE - 1, np.uint64)
    before = -(room.ctypes.data // 8) % _LINE
    return room[before : before + words]


@kernel
def word(data: NDArray[np.uint8], at: np.uint64) -> np.uint64:
    """Return the eight bytes from `at`, the first one lowest: a single load."""
    return (
        U(data[at])
        | U(data[at + U(1)]) << U(8)
        | U(data[at + U(2)]) << U(16)
        | U(data[at + U(3)]) << U(24)
        | U(data[at + U(4)]) << U(32)
        | U(data[at + U(5)]) << U(40)
        | U(data[at + U(6)]) << U(48)
        | U(data[at + U(7)]) << U(56)
    )


@kernel
def short_word(data: NDArray[np.uint8], at: np.uint64, end: np.uint64) -> np.uint64:
    """Return the fewer than eight bytes from `at` to `end`."""
    if end >= U(8):  # one load, and what came before falls out: in two steps, as a shift by 64 has no meaning
        return word(data, end - U(8)) >> U(8) >> (U(56) - (end - at) * U(8))
    found, shift = U(0), U(0)
    while at < end:
        found |= U(data[at]) << shift
        at += U(1)
        shift += U(8)
    return found


# Arrays for compiled functions: copied into one another, and of the kind that a kernel is compiled for already.

T = TypeVar("T", bound=np.generic)


def writable(values: NDArray[T]) -> NDArray[T]:
    """Return the same values, copied where nobody may write to them: a kernel would be compiled anew for such ones."""
    return values if values.flags.writeable else values.copy()


@kernel_in_place
def copy_into(out: Ints, values: Ints) -> None:
    """Write values from the start of an array; `out[:] = values` would take Numba seconds to compile."""
    for i in range(len(values)):
        out[i] = values[i]


# Sorting packed paths in linear passes over the bits in which they differ, from the low end up.

RANGE = 1 << 16
"""About how many paths a range has: half a megabyte."""
MOST_RANGES = 1 << 10

_BITS = 10
"""Of the widths from 8 to 12 the fastest where values move along: so many open places to write to still fit the
processor's first cache."""
_BITS_ALONE = 11
_FEW = 1 << 12
"""Fewer words are sorted by comparing them: to count digits would take longer."""
_MANY = 1 << 20
"""Fewer words are sorted on one core."""
_TOGETHER = 256
_SAMPLED = 16

Values = Ints


def sort_rows(keys: Sequence[Words], values: Values | None = None) -> tuple[list[Words], Values | None]:
    """Return rows in ascending order of keys (the first array is highest), stably; arrays may be overwritten."""
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


def sort_words(words: Words, room: Words | None = None) -> None:
    """Sort words in place. Where there is room for as many, it is used: to take fresh memory costs time as well."""
    other = np.empty_like(words) if room is None else room[: len(words)]
    if len(words) < _FEW:
        words.sort()
    elif len(words) < _MANY:
        other[:] = words
        _sort_alone(other, words)
    else:
        _sort_in_ranges(words, other)


def _sort_in_ranges(words: Words, other: Words) -> None:
    cores = os.cpu_count() or 1
    fences = fences_of([words], min(len(words) // RANGE, MOST_RANGES))
    runs = [words[len(words) * core // cores : len(words) * (core + 1) // cores] for core in range(cores)]
    with ThreadPoolExecutor(cores) as pool:
        found = list(pool.map(partial(find_ranges, fences), runs))
        sizes = np.array([own for _, own in found])
        start = np.concatenate([[0], np.cumsum(sizes.sum(axis=0))])
        place = start[:-1] + np.cumsum(sizes, axis=0) - sizes  # of a range, those of the first run come first
        list(pool.map(lambda run, own, at: move(run, own[0], at, other), runs, found, place))
        list(pool.map(lambda begin, end: _sort_alone(other[begin:end], words[begin:end]), start[:-1], start[1:]))


def _sort_alone(words: Words, out: Words) -> None:
    """Write words to `out` in ascending order; they are overwritten."""
    if not _sort_digits(words, out, np.empty(1 << _BITS_ALONE, np.uint64), U(differing_bits(words))):
        out[:] = words


def fences_of(parts: Sequence[Words], ranges: int) -> Words:
    """Return the least word of each range but the first. There are at least so many ranges, and a power of two."""
    ranges = 1 << ranges.bit_length()
    every = max(sum(map(len, parts)) // (_SAMPLED * ranges), 1)
    sample = np.sort(np.concatenate([part[::every] for part in parts]))
    return sample[np.arange(1, ranges) * len(sample) // ranges]


def find_ranges(fences: Words, words: Words) -> tuple[NDArray[np.uint16], Ints]:
    """Return the range of each word, and how many words each range has."""
    found, sizes = np.empty(len(words), np.uint16), np.zeros(len(fences) + 1, np.int64)
    _find_ranges(words, fences, found, sizes)
    return found, sizes


@kernel
def _find_ranges(words: Words, fences: Words, found: NDArray[np.uint16], sizes: Ints) -> None:
    """Find ranges by halving, a few hundred words together: so no step waits for the one before or is mispredicted."""
    at = np.empty(_TOGETHER, np.uint64)
    for begin in range(0, len(words), _TOGETHER):
        rows = min(_TOGETHER, len(words) - begin)
        for i in range(rows):
            at[i] = U(0)
        step = U((len(fences) + 1) >> 1)
        while step > U(0):
            for i in range(rows):
                above = at[i] + step
                at[i] = above if fences[above - U(1)] <= words[begin + i] else at[i]
            step >>= U(1)
        for i in range(rows):
            found[begin + i] = at[i]
            sizes[at[i]] += 1


@kernel_in_place
def move(words: Words, found: NDArray[np.uint16], place: Ints, out: Words) -> None:
    """Write words out range by range, each from a place on, which goes on with it."""
    for i in range(len(words)):
        at = place[found[i]]
        out[at] = words[i]
        place[found[i]] = at + 1


def differing_bits(words: Words) -> int:
    """Return the bits in which not all words agree; of no words, all of them."""
    return int(np.bitwise_or.reduce(words, initial=0)) ^ int(np.bitwise_and.reduce(words, initial=2**64 - 1))


@kernel_in_place
def _sort_digits(words: Words, other: Words, place: Words, differing: np.uint64) -> bool:
    """Sort words, from one array to the other and back, once for each digit; tell whether they are in the other."""
    moved, low, mask = False, U(0), U(len(place) - 1)
    while low < U(64) and differing >> low:
        while not (differing >> low) & U(1):
            low += U(1)
        source, target = (other, words) if moved else (words, other)
        for digit in range(len(place)):
            place[digit] = U(0)
        for i in range(len(source)):
            place[(source[i] >> low) & mask] += U(1)
        before = U(0)
        for digit in range(len(place)):
            own = place[digit]
            place[digit] = before
            before += own
        for i in range(len(source)):
            own = source[i]
            digit = (own >> low) & mask
            at = place[digit]
            place[digit] = at + U(1)
            target[at] = own
        moved = not moved
        low += U(_BITS_ALONE)
    return moved


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
    """Return the first row that is not below the next, and whether the two are equal; None if every row is."""
    rises = np.zeros(max(len(words[0]) - 1, 0), dtype=bool)
    equal = ~rises
    for word in words:
        rises |= equal & (word[1:] > word[:-1])
        equal &= word[1:] == word[:-1]
    wrong = np.flatnonzero(~rises)
    return (int(wrong[0]), bool(equal[wrong[0]])) if len(wrong) else None


# SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of short texts that nobody without the key can foresee.

State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


@kernel
def siphash(key0: np.uint64, key1: np.uint64, data: NDArray[np.uint8], at: np.uint64, end: np.uint64) -> np.uint64:
    """Return the hash of the bytes from `at` to `end`."""
    length = end - at
    state = _start(key0, key1)
    while at + U(8) <= end:
        state = _absorb(state, word(data, at))
        at += U(8)
    return _finish(_absorb(state, short_word(data, at, end) | (length << U(56))))


@kernel
def siphash_texts(
    key0: np.uint64, key1: np.uint64, start: NDArray[np.int32], letters: NDArray[np.uint8], hashes: Words
) -> None:
    """Write the hash of each text, of which `buffers` tells where it starts."""
    for row in range(len(hashes)):
        hashes[row] = siphash(key0, key1, letters, U(start[row]), U(start[row + 1]))


@kernel
def siphash_word(key0: np.uint64, key1: np.uint64, message: np.uint64) -> np.uint64:
    """Return the hash of eight bytes, given as a word."""
    return _finish(_absorb(_absorb(_start(key0, key1), message), U(8) << U(56)))


@kernel
def _start(key0: np.uint64, key1: np.uint64) -> State:
    return (
        key0 ^ U(0x736F6D6570736575),
        key1 ^ U(0x646F72616E646F6D),
        key0 ^ U(0x6C7967656E657261),
        key1 ^ U(0x7465646279746573),
    )


@kernel
def _rotated(number: np.uint64, bits: int) -> np.uint64:
    return (number << U(bits)) | (number >> U(64 - bits))


@kernel
def _round(state: State) -> State:
    a, b, c, d = state
    a += b
    b = _rotated(b, 13) ^ a
    a = _rotated(a, 32)
    c += d
    d = _rotated(d, 16) ^ c
    a += d
    d = _rotated(d, 21) ^ a
    c += b
    b = _rotated(b, 17) ^ c
    c = _rotated(c, 32)
    return a, b, c, d


@kernel
def _absorb(state: State, message: np.uint64) -> State:
    a, b, c, d = state
    a, b, c, d = _round(_round((a, b, c, d ^ message)))
    return a ^ message, b, c, d


@kernel
def _finish(state: State) -> np.uint64:
    a, b, c, d = state
    a, b, c, d = _round(_round(_round(_round((a, b, c ^ U(0xFF), d)))))
    return a ^ b ^ c ^ d
