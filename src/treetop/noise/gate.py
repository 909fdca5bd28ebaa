"""The gate to noise: every measurement of private data passes here, pays first, and learns whether it is private.

Noise is a function of a key, and who knows the key can take it off again: so a key comes from the operating system, for
one run, and what was made with any other says that it is not private. The key of the noise is bound to all that was
decided and to the data: even a key that is used twice cannot put the same noise on different counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from treetop.errors import PlanError, TreetopError, Unfinished
from treetop.noise import Key

WARNING = "Not private: the noise came from a testing key. Do not publish."
"""The warning on results of a key that somebody knows."""

Charge = Callable[[], object]
"""Charges the loss if a ledger keeps account; if it raises, nothing is measured."""


class Gate:
    """One run's way to noise.

    >>> gate = Gate(bytes(32))
    >>> with gate.charged(lambda: print("charged"), "doctest", b"decisions", b"data") as key:
    ...     print("measured", gate.private)
    charged
    measured False
    """

    def __init__(self, testing_key: bytes | Key | None = None) -> None:
        if isinstance(testing_key, Key):
            testing_key = testing_key.secret
        if testing_key is not None and (type(testing_key), len(testing_key)) != (bytes, 32):
            raise PlanError("a testing key is 32 bytes, as in bytes(32)")
        self.private = testing_key is None
        self._given = testing_key

    @cached_property
    def _secret(self) -> Key:
        """The key of the run, drawn when it is needed first: a table that is refused needs none."""
        return Key.fresh() if self._given is None else Key(self._given)

    @property
    def warning(self) -> str | None:
        """The warning that a result must carry; None if it is private."""
        return None if self.private else WARNING

    def choice(self, purpose: str, *bound: bytes) -> Key:
        """Return a key for a random choice that comes before measuring, such as which records count; not for noise."""
        return bind(self._secret, purpose, *bound)

    @contextmanager
    def charged(self, charge: Charge | None, purpose: str, *bound: bytes) -> Iterator[Key]:
        """Charge the loss and then give the key of the noise: there is no other way to it.

        Any later failure is `Unfinished`, with its cause: the loss stays spent. Only exceptions that end a program,
        such as an interrupt, pass unchanged.
        """
        if charge is not None:
            charge()
        try:
            yield bind(self._secret, purpose, *bound)
        except Exception as problem:
            if charge is None or isinstance(problem, Unfinished):
                raise
            cause: object = problem if isinstance(problem, TreetopError) else f"{type(problem).__name__}: {problem}"
            if isinstance(problem, MemoryError):
                cause = "there is not enough memory for this"
            raise Unfinished(f"{cause} (after the loss was charged, which stays spent)") from problem


def bind(key: Key, purpose: str, *bound: bytes) -> Key:
    """Bind a key to its purpose, to digests of the decisions, and to a digest of the data."""
    return key.derive(purpose, *bound)


def digest(decisions: object) -> bytes:
    """Return a SHA-256 of decisions, as plain values."""
    return hashlib.sha256(json.dumps(decisions, sort_keys=True, default=str).encode()).digest()
