"""CSV in blocks of whole records, each parsed from memory: Arrow is never given something of Python's to call.

Given a Python file, Arrow reads it in a thread of its own, which may still do so when the interpreter ends: that aborts
the process, after success as after a refusal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import copy
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from treetop.basics.kernel import kernel

_NEWLINE, _RETURN = ord("\n"), ord("\r")
_START, _PLAIN, _QUOTED, _CLOSED = range(4)
_BY_NEWLINE, _BY_RETURN = 1, 2
"""How a line ends: by a line feed, with or without a carriage return before it; or by a carriage return alone."""
MIXED = "mixed line ends"
"""How the message of a file begins in which lines end in both ways."""


class Readable(Protocol):
    """Bytes that are read in order."""

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end only."""


def parse_blocks(
    stream: Readable, read_options: Any, parse_options: Any, convert_options: Any, header: bytes = b""
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of CSV as `pyarrow.csv.open_csv` does, with its options; no record may be longer than a block.

    A file in which some lines end with a carriage return alone and others with a line feed is refused: a stray return
    inside a field would turn one record into several. `header` is what was taken from the file before.
    """
    before = 0
    size, whole = read_options.block_size, copy(read_options)
    whole.block_size = 2 * size
    for block in _blocks(stream, size, parse_options, header):
        try:
            table = arrow_csv.read_csv(pa.BufferReader(block), whole, parse_options, convert_options)
        except pa.ArrowInvalid as problem:
            raise pa.ArrowInvalid(_counted(str(problem), before)) from None
        before += len(table)
        yield from table.to_batches()


def _counted(problem: str, before: int) -> str:
    """Have a message count rows from the beginning of the file."""
    return re.sub(r"Row #(\d+)", lambda row: f"Row #{before + int(row[1])}", problem, count=1)


def _blocks(stream: Readable, size: int, options: Any, header: bytes) -> Iterator[pa.Buffer]:
    pending = b""
    _, kinds = _last_end(header, True, options.quote_char, options.delimiter)
    while True:
        data, ended = _filled(stream, pending, size)
        end, own = _last_end(data, ended, options.quote_char, options.delimiter)
        kinds |= own
        if kinds == _BY_NEWLINE | _BY_RETURN:
            raise pa.ArrowInvalid(MIXED)
        if len(data) - end > size:
            raise pa.ArrowInvalid("straddling: a record is longer than a block")
        end = len(data) if ended else end
        if end:
            # Arrow's own memory: to let go of Python's, it would need the interpreter.
            block = pa.allocate_buffer(end)
            memoryview(block).cast("B")[:] = memoryview(data)[:end]
            yield block
        if ended:
            return
        pending = data[end:]


def _filled(stream: Readable, pending: bytes, wanted: int) -> tuple[bytes, bool]:
    """Return what is left of the last block with a block more, and whether it is the last."""
    parts = [pending]
    while wanted and (part := stream.read(wanted)):
        parts.append(part)
        wanted -= len(part)
    return b"".join(parts), wanted > 0


def _last_end(data: bytes, ended: bool, quote: str | Literal[False], delimiter: str) -> tuple[int, int]:
    """Return where the last whole record ends, 0 if there is none, and how the lines of whole records end."""
    if quote and quote.encode() in data:
        end, kinds = _last_end_beside_quotes(np.frombuffer(data, np.uint8), ended, ord(quote), ord(delimiter))
        return int(end), int(kinds)
    # A return at the very end may be half of a line end, unless nothing follows.
    last = len(data) if ended else len(data) - 1
    end = data.rfind(b"\n") + 1 or data.rfind(b"\r", 0, last) + 1
    returns = data.count(b"\r", 0, last if ended else end)
    alone = bool(returns) and returns > data.count(b"\r\n")
    return end, _BY_NEWLINE * (b"\n" in data) | _BY_RETURN * alone


@kernel
def _last_end_beside_quotes(data: NDArray[np.uint8], ended: bool, quote: int, delimiter: int) -> tuple[int, int]:
    """As Arrow reads: a quote opens only at the start of a field, and two of them in one stand for one."""
    state, end, kinds = _START, 0, 0
    for at in range(len(data)):
        letter = data[at]
        if letter == quote and state != _PLAIN:
            state = _CLOSED if state == _QUOTED else _QUOTED
        elif state != _QUOTED:
            last = at + 1 == len(data)
            alone = letter == _RETURN and (ended if last else data[at + 1] != _NEWLINE)
            if letter == _NEWLINE or alone:
                state, end = _START, at + 1
                kinds |= _BY_RETURN if alone else _BY_NEWLINE
            else:
                state = _START if letter == delimiter else _PLAIN
    return end, kinds
