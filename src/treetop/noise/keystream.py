"""Keys and keystreams: every random word of a run, found by its position under one secret."""

from __future__ import annotations

import hashlib
import secrets
import sys
from dataclasses import dataclass, field
from operator import index
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

KEY_BYTES = 32
_ZEROS = memoryview(bytes(1 << 20))


@dataclass(frozen=True)
class Key:
    """A secret from which noise is derived; whoever holds it can take the noise away again.

    >>> Key(bytes(32))
    Key()
    """

    secret: bytes = field(repr=False)
    """The 32 secret bytes."""

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


class Words(Protocol):
    """A sequence of uniform 64-bit words, read from any position."""

    def fill(self, out: NDArray[np.uint64], word: int) -> None:
        """Write the words [word, word + len(out))."""


class Keystream:
    """The AES-256-CTR keystream of a key, as little-endian 64-bit words; for one thread at a time."""

    def __init__(self, key: Key) -> None:
        self._algorithm = algorithms.AES256(key.secret)
        self._encryptor: CipherContext | None = None
        self._next = 0

    def fill(self, out: NDArray[np.uint64], word: int) -> None:
        """Write the words [word, word + len(out)); going on where the last call ended costs no new cipher."""
        if not out.size:
            return
        encryptor = self._encryptor
        if encryptor is None or word != self._next:
            encryptor = self._encryptor = self._seek(word)
        view = out.data.cast("B")
        for start in range(0, len(view), len(_ZEROS)):
            piece = view[start : start + len(_ZEROS)]
            encryptor.update_into(_ZEROS[: len(piece)], piece)
        if sys.byteorder == "big":
            out.byteswap(inplace=True)
        self._next = word + out.size

    def _seek(self, word: int) -> CipherContext:
        block, odd = divmod(word, 2)
        encryptor = Cipher(self._algorithm, modes.CTR(block.to_bytes(16, "big"))).encryptor()
        if odd:
            encryptor.update(bytes(8))
        return encryptor
