"""A keyed hash of a set of rows, without order: whoever has a part of them hashes that, and the sums of parts add up.

A row's hash is a pseudorandom function of it (AES in a chain, over rows of one length), and that of a set is the sum
of its rows'. Whatever two sets of rows there are, chosen without the key: that they have the same sum has a chance of
about 2^-128.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from treetop.noise.keystream import Key

Words = NDArray[np.uint64]

_ROWS = 1 << 13  # so that what is hashed at a time stays in a core's own cache


def sum_of_hashes(key: Key, words: Sequence[Words], before: NDArray[np.int64]) -> Words:
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
