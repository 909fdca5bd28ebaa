"""A keyed hash of a set of rows, without order: whoever has a part of them hashes that, and the sums of parts add up.

A row's hash is a pseudorandom function of it (AES in a chain, over rows of one length), and that of a set is the sum
of its rows'. Whatever two sets of rows there are, chosen without the key: that they have the same sum has a chance of
about 2^-128.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from treetop.noise.keystream import Key

Words = NDArray[np.uint64]

_ROWS = 1 << 13  # so that what is hashed at a time stays in a core's own cache


def sum_of_hashes(key: Key, columns: Sequence[Words]) -> Words:
    """Return the sum of the hashes of rows, which are given as one array of words a column.

    >>> key, rows = Key(bytes(32)), [np.arange(5, dtype=np.uint64), np.ones(5, np.uint64)]
    >>> parts = (sum_of_hashes(key, [column[part] for column in rows]) for part in (slice(3, 5), slice(0, 3)))
    >>> digest_of(parts) == digest_of([sum_of_hashes(key, rows)])
    True
    """
    cipher = Cipher(algorithms.AES256(key.derive("hashes", len(columns)).secret), modes.ECB()).encryptor()
    total = np.zeros(2, np.uint64)
    for start in range(0, len(columns[0]), _ROWS):
        rows = [column[start : start + _ROWS] for column in columns]
        blocks = np.zeros((len(rows[0]), 2), np.uint64)
        room = np.empty((len(rows[0]) + 1, 2), np.uint64)  # the cipher asks for room for one block more
        for first in range(0, len(rows), 2):
            for word, column in enumerate(rows[first : first + 2]):
                blocks[:, word] ^= column
            cipher.update_into(blocks.astype("<u8", copy=False).data.cast("B"), room.data.cast("B"))
            blocks = room[:-1].astype(np.uint64) if first + 2 < len(rows) else room[:-1]
        total += blocks.view("<u8").sum(axis=0, dtype=np.uint64)
    return total


def digest_of(parts: Iterable[Words]) -> bytes:
    """Return the digest of all rows whose parts have these sums of hashes."""
    total = np.zeros(2, np.uint64)
    for part in parts:
        total += part
    return hashlib.blake2b(total.astype("<u8").tobytes(), digest_size=32).digest()
