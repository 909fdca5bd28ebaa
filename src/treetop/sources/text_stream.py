"""The bytes of a text file as UTF-8, for Arrow to read: any encoding and compression."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import pyarrow as pa

from treetop.errors import DataError
from treetop.sources.files import PACKED
from treetop.sources.source import Part

HEAD = 1 << 20
"""How many bytes are looked at before the rest is read."""

_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_JSON = re.compile(rb'\s*(\{\s*"|\[\s*\{)')
_FOREIGN = {b"PK\x03\x04": "a ZIP or Excel file", b"\xd0\xcf\x11\xe0": "an old Excel file", b"%PDF": "a PDF"}
"""What is no text; a workbook is read from a file, but not from standard input."""

_Batch = TypeVar("_Batch")

_ENCODING = 'encoding = "{0}" in the plan file, or --encoding {0} where a command takes it'


class Utf8:
    """Bytes in any encoding as UTF-8; what was read can be put back."""

    def __init__(self, read: Callable[[int], bytes], encoding: str | None) -> None:
        self._read = read
        utf8 = encoding is None or codecs.lookup(encoding).name == "utf-8"
        self._decoder = None if utf8 else codecs.getincrementaldecoder(encoding or "")()
        self._pending = b""
        self.decoded = 0
        """How many bytes of UTF-8 the file has given so far, read or still to be read."""

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end only."""
        while not self._pending:
            raw = self._read(size)
            self._pending = raw
            if self._decoder is not None:
                self._pending = self._decoder.decode(raw, final=not raw).encode("utf-8", "replace")
            self.decoded += len(self._pending)
            if not raw:
                break
        taken, self._pending = self._pending[:size], self._pending[size:]
        return taken

    def read_head(self) -> bytes:
        """Return what a header is surely in."""
        head = b""
        while len(head) < HEAD and (more := self.read(HEAD - len(head))):
            head += more
        return head

    def put_back(self, data: bytes) -> None:
        """Have `data` read again."""
        self._pending = data + self._pending


def open_text(file: io.BufferedReader[Any], where: str, encoding: str | None) -> tuple[Utf8, bytes]:
    """Return the text and its beginning, without a byte order mark; what is no text is refused by what it is."""
    stream = Utf8(_decompressed(file, where), encoding)
    head = stream.read_head().removeprefix(codecs.BOM_UTF8)
    if b"\0" in head:
        raise DataError(
            f"{where}: is not a text file, or not one in {encoding or 'UTF-8'}: give a CSV or Parquet file, or name "
            f"the encoding: {_ENCODING.format('utf-16')}"
        )
    if _JSON.match(head):
        raise DataError(
            f"{where}: is JSON or GeoJSON, not a table that can be read: give a CSV or Parquet file (for places, one "
            "with columns for the code, the latitude and the longitude)"
        )
    return stream, head


def shares(
    batches: Iterable[_Batch], part: Part, stream: Utf8, block: int, none: _Batch
) -> Iterator[tuple[_Batch, float]]:
    """Give every batch, or `none` where there is none, with the share of the file that is read with it."""
    size = 0 if part.path is None else part.path.stat().st_size
    assert part.stream is not None
    done, number = 0.0, 0
    for number, batch in enumerate(batches, start=1):
        if size:
            # The file is read ahead of the block that is handed out: never go back.
            done = max(done, part.stream.tell() / size * min(number * block / stream.decoded, 1.0))
        yield batch, done
    if not number:
        yield none, 1.0


def wrong_encoding(where: str, encoding: str | None, place: str = "") -> DataError:
    """Return the error for text that is in another encoding."""
    return DataError(
        f"{where}{place}: the text is not {encoding or 'UTF-8'}: name the file's encoding, often latin-1 or cp1252: "
        f"{_ENCODING.format('latin-1')}"
    )


def mixed_line_ends(where: str) -> DataError:
    """Return the error for text of which it is not certain where its records end."""
    return DataError(
        f"{where}: some lines end with a carriage return alone (\\r) and others with a line feed (\\n), so that a "
        "return inside a field would begin a record: end all lines in the same way, and put fields that hold a return "
        "in quotes"
    )


def _decompressed(file: io.BufferedReader[Any], where: str) -> Callable[[int], bytes]:
    magic = file.peek(4)[:4]
    for signature, what in _FOREIGN.items():
        if magic.startswith(signature):
            raise DataError(f"{where}: is {what}, not a table that can be read: save it as CSV or Parquet")
    codec = next((name for signature, name in _COMPRESSED.items() if magic.startswith(signature)), None)
    claimed = next((name for suffix, name in PACKED.items() if where.endswith(suffix)), None)
    if claimed and codec != claimed and magic:
        raise DataError(f"{where}: is not a {claimed} file, whatever its name says: give it its true name")
    if codec is None:
        return file.read
    stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), codec)

    def read(size: int) -> bytes:
        try:
            return bytes(stream.read(size))
        except (OSError, pa.ArrowException) as problem:
            raise DataError(f"{where}: the {codec} file is broken ({problem}): copy or download it again") from problem

    return read
