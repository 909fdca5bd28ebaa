"""Keys and keystreams: every random word of a run, found by its position under one secret."""

from __future__ import annotations

import hashlib
import secrets
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from treetop._util.arrays import U
from treetop._util.dtypes import Ints, Words
from treetop._util.kernel import kernel

KEY_BYTES = 32
_ZEROS = memoryview(bytes(1 << 20))
_BLOCK = 16
_SWAPS = sys.byteorder == "little"


@dataclass(frozen=True)
class Key:
    """A secret from which noise is derived; its holder can remove the noise again.

    >>> Key(bytes(32))
    Key()
    """

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != KEY_BYTES:
            raise ValueError(f"a key is {KEY_BYTES} bytes, not {len(self.secret)}; take Key.fresh()")

    @classmethod
    def fresh(cls) -> Key:
        """A new key from the operating system."""
        return cls(secrets.token_bytes(KEY_BYTES))

    def derive(self, purpose: str, *parts: int | bytes) -> Key:
        """The subkey for one purpose and place: keyed BLAKE2b, a pseudorandom function (RFC 7693)."""
        message = _tagged(b"s", purpose.encode()) + b"".join(map(_encoded, parts))
        digest = hashlib.blake2b(message, digest_size=KEY_BYTES, key=self.secret, person=b"treetop")
        return Key(digest.digest())


def _encoded(part: int | bytes) -> bytes:
    if isinstance(part, bytes):
        return _tagged(b"b", part)
    number = index(part)
    return _tagged(b"i", number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True))


def _tagged(tag: bytes, content: bytes) -> bytes:
    # Type and length come first, so that no two lists of parts share an encoding.
    return tag + len(content).to_bytes(8, "little") + content


class WordSource(Protocol):
    """A sequence of uniform 64-bit words, read from any position."""

    def fill(self, out: Words, word: int) -> None:
        """Write the words [word, word + len(out))."""

    def fill_runs(self, out: Words, place: Words, size: Ints, width: int) -> None:
        """Write the words of runs of slots, with so many words a slot: where each begins, and how many it has."""

    def blocks(self, place: Words, size: Ints, width: int) -> Words:
        """Return the pairs of words that these are in, each from an even position on, one run after the other."""


class Keystream:
    """The AES-256-CTR keystream of a key, as little-endian 64-bit words; for one thread at a time."""

    def __init__(self, key: Key) -> None:
        self._algorithm = algorithms.AES256(key.secret)
        self._encryptor: CipherContext | None = None
        self._next = 0
        self._counting: CipherContext | None = None
        self._blocks = np.empty(2, np.uint64)

    def fill(self, out: Words, word: int) -> None:
        """Write the words [word, word + len(out)); going on where the last call ended costs no new cipher."""
        if not out.size:
            return
        encryptor = self._encryptor
        if encryptor is None or word != self._next:
            block, odd = divmod(word, 2)
            encryptor = Cipher(self._algorithm, modes.CTR(block.to_bytes(_BLOCK, "big"))).encryptor()
            if odd:
                encryptor.update(bytes(8))
            self._encryptor = encryptor
        view = out.data.cast("B")
        for start in range(0, len(view), len(_ZEROS)):
            piece = view[start : start + len(_ZEROS)]
            encryptor.update_into(_ZEROS[: len(piece)], piece)
        if sys.byteorder == "big":
            out.byteswap(inplace=True)
        self._next = word + out.size

    def fill_runs(self, out: Words, place: Words, size: Ints, width: int) -> None:
        """Write the words of runs of slots, with so many words a slot: where each begins, and how many it has.

        A place is a number of two words: the second, times the width, counts words of the stream, and the first is the
        high half of the counter. With a first word of 0 they are the words that `fill` writes.
        """
        _take_words(self.blocks(place, size, width), place[1], size, width, out)

    def blocks(self, place: Words, size: Ints, width: int) -> Words:
        """Return the blocks of the cipher that the words of runs are in, one run after the other, until the next call.

        A block has two words: where the first word of a run is odd, it is the second of its block.
        """
        high, low = place
        blocks = _number_of_blocks(low, size, width)
        if blocks == 0:
            return self._blocks[:0]
        if len(self._blocks) < 2 * blocks + 2:
            self._blocks = np.empty(2 * blocks + 2, np.uint64)  # the cipher asks for room for one block more
        words = self._blocks[: 2 * blocks + 2]
        counters = words[: 2 * blocks]  # they are encrypted where they stand
        _write_counters(high, low, size, width, counters)
        if self._counting is None:
            self._counting = Cipher(self._algorithm, modes.ECB()).encryptor()
        self._counting.update_into(counters.data.cast("B"), words.data.cast("B"))
        if not _SWAPS:
            words.byteswap(inplace=True)
        return counters


# Numbers without sign: what cannot be negative is not looked up from the end, and loops over it run several at a time.


@kernel
def _number_of_blocks(low: Words, size: Ints, width: int) -> int:
    """Return how many blocks of the cipher, of two words each, runs of slots are in."""
    blocks = 0
    for i in range(len(size)):
        if size[i] > 0:
            odd = np.int64(low[i] & U(1)) * (width & 1)
            blocks += (odd + size[i] * width + 1) >> 1
    return blocks


@kernel
def _write_counters(high: Words, low: Words, size: Ints, width: int, out: Words) -> None:
    """Write the counters of all blocks, as numbers of 128 bits with the highest byte first."""
    at = U(0)
    for i in range(len(size)):
        if size[i] > 0:
            first, above = low[i] * U(width), _highest_first(high[i])
            begin, last = first >> U(1), (first + U(size[i] * width - 1)) >> U(1)
            for k in range(last - begin + U(1)):
                out[at + U(2) * U(k)] = above
                out[at + U(2) * U(k) + U(1)] = _highest_first(begin + U(k))
            at += U(2) * (last - begin + U(1))


@kernel
def _take_words(words: Words, low: Words, size: Ints, width: int, out: Words) -> None:
    """Write the words of runs of slots, of the blocks that they are in."""
    at, to = U(0), U(0)
    for i in range(len(size)):
        if size[i] > 0:
            odd, number = (low[i] & U(1)) * U(width & 1), U(size[i] * width)
            for k in range(number):
                out[to + U(k)] = words[at + odd + U(k)]
            to += number
            at += U(2) * ((odd + number + U(1)) >> U(1))


@kernel
def _highest_first(number: np.uint64) -> np.uint64:
    """Return a word with its bytes in big-endian order in memory."""
    if _SWAPS:
        low, second, fourth = U(0x00FF00FF00FF00FF), U(0x0000FFFF0000FFFF), U(32)
        number = ((number >> U(8)) & low) | ((number & low) << U(8))
        number = ((number >> U(16)) & second) | ((number & second) << U(16))
        number = (number >> fourth) | (number << fourth)
    return number


# A keyed hash of a set of rows, without order: whoever has a part of them hashes that, and the sums of parts add up.
#
# A row's hash is a pseudorandom function of it (AES in a chain, over rows of one length), and that of a set is the sum
# of its rows'. Whatever two sets of rows there are, chosen without the key: that they have the same sum has a chance of
# about 2^-128.


_ROWS = 1 << 13  # so that what is hashed at a time stays in a core's own cache


def sum_of_hashes(key: Key, words: Sequence[Words], before: Ints) -> Words:
    """Return the sum of the hashes of rows: of some words, given as arrays, and of the step between two numbers.

    >>> key, words, before = Key(bytes(32)), np.arange(5, dtype=np.uint64), np.arange(0, 12, 2)
    >>> parts = (sum_of_hashes(key, [words[a:b]], before[a : b + 1]) for a, b in ((3, 5), (0, 3)))
    >>> digest_of(parts) == digest_of([sum_of_hashes(key, [words], before)])
    True
    """
    cipher = Cipher(algorithms.AES256(key.derive("hashes", len(words)).secret), modes.ECB()).encryptor()
    total = np.zeros(2, np.uint64)
    blocks, room = np.empty((_ROWS, 2), "<u8"), np.empty((_ROWS + 1, 2), "<u8")
    for start in range(0, len(before) - 1, _ROWS):
        step = np.diff(before[start : start + _ROWS + 1]).view(np.uint64)
        chain = _chained(cipher, [*(word[start : start + _ROWS] for word in words), step], blocks, room)
        total += np.array([chain[:, word].sum(dtype=np.uint64) for word in range(2)])
    return total


def _chained(cipher: CipherContext, columns: Sequence[Words], blocks: Words, room: Words) -> Words:
    """Return rows encrypted block by block, each with two more words of the row: in memory that is used again."""
    rows = len(columns[0])
    blocks, chain = blocks[:rows], room[:rows]
    chain[:] = 0
    for first in range(0, len(columns), 2):
        blocks[:] = chain
        for word, column in enumerate(columns[first : first + 2]):
            blocks[:, word] ^= column
        # The cipher asks for room for one block more.
        cipher.update_into(blocks.data.cast("B"), room[: rows + 1].data.cast("B"))
    return chain


def digest_of(parts: Iterable[Words]) -> bytes:
    """Return the digest of all rows from the sums of hashes of their parts."""
    total = np.zeros(2, np.uint64)
    for part in parts:
        total += part
    return hashlib.blake2b(total.astype("<u8").tobytes(), digest_size=32).digest()
