"""A uniform real in [0, 1), known by its first word: further bits are drawn when a comparison needs them."""

from __future__ import annotations

from collections.abc import Iterator

from treetop.noise.balls import Enclosure, precision

WORD_BITS = 64
_GUARD_BITS = 32


class Uniform:
    """The real U = 0.word…, whose later bits are the words of `more`."""

    def __init__(self, word: int, more: Iterator[int]) -> None:
        self._prefix = word
        self._bits = WORD_BITS
        self._more = more

    def below(self, number: Enclosure) -> bool:
        """Whether U < number; what was drawn for one comparison also holds in the next."""
        while True:
            with precision(self._bits + _GUARD_BITS):
                scaled = number(self._bits + _GUARD_BITS) * 2**self._bits
                if scaled >= self._prefix + 1:
                    return True
                if scaled <= self._prefix:
                    return False
            self._prefix = (self._prefix << WORD_BITS) | next(self._more)
            self._bits += WORD_BITS
