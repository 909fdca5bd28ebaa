"""Reading CSV in batches of text: any delimiter, encoding and compression, and only an empty field is missing."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import pyarrow as pa
import pyarrow.csv as arrow_csv

from treetop.data import table as tables
from treetop.data.source import Source
from treetop.errors import DataError

BLOCK = 1 << 22
"""How many bytes are parsed at once; no row can be longer."""

_HEAD = 1 << 20
_DELIMITERS = ",;\t|"
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_FOREIGN = {b"PK\x03\x04": "a ZIP or Excel file", b"\xd0\xcf\x11\xe0": "an old Excel file", b"%PDF": "a PDF"}


@dataclass(frozen=True)
class _Header:
    """What the first line says."""

    names: list[str]
    delimiter: str
    size: int
    """How many bytes it takes."""


class _Utf8:
    """Bytes in any encoding as UTF-8, for Arrow to read; what was read can be put back."""

    closed = False

    def __init__(self, read: Callable[[int], bytes], encoding: str | None) -> None:
        self._read = read
        utf8 = encoding is None or codecs.lookup(encoding).name == "utf-8"
        self._decoder = None if utf8 else codecs.getincrementaldecoder(encoding or "")()
        self._pending = b""
        self.given = 0
        """How many bytes were read."""

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end only."""
        while not self._pending:
            raw = self._read(size)
            self._pending = raw
            if self._decoder is not None:
                self._pending = self._decoder.decode(raw, final=not raw).encode("utf-8", "replace")
            if not raw:
                break
        taken, self._pending = self._pending[:size], self._pending[size:]
        self.given += len(taken)
        return taken

    def read_head(self) -> bytes:
        """Return what the header is surely in."""
        head = b""
        while len(head) < _HEAD and (more := self.read(_HEAD - len(head))):
            head += more
        return head

    def put_back(self, data: bytes) -> None:
        """Have `data` read again."""
        self.given -= len(data)
        self._pending = data + self._pending

    def close(self) -> None:
        """Leave the file to whoever opened it."""


def read_csv(
    file: IO[bytes], where: str, columns: Sequence[str] | None, source: Source, size: int | None
) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Yield batches of text columns, with the share of the file's `size` bytes that is read (0 when None)."""
    header: _Header | None = None
    try:
        stream = _Utf8(_decompressed(file, where), source.encoding)
        head = stream.read_head()
        header = _read_header(head, where, source)
        tables.require(columns, header.names, where)
        stream.put_back(head[header.size :])
        empty = True
        for number, batch in enumerate(_open(stream, header, columns), start=1):
            empty = False
            # Arrow reads some blocks ahead of the one that it hands out.
            yield batch, file.tell() / size * min(number * BLOCK / stream.given, 1.0) if size else 0.0
        if empty:
            wanted = header.names if columns is None else list(columns)
            yield pa.RecordBatch.from_arrays([pa.array([], pa.string())] * len(wanted), wanted), 1.0
    except UnicodeError as problem:
        raise _wrong_encoding(where, source.encoding) from problem
    except pa.ArrowInvalid as problem:
        raise _explain(str(problem), where, source, header) from problem


def _decompressed(file: IO[bytes], where: str) -> Callable[[int], bytes]:
    magic = _peek(file, 4)
    for signature, what in _FOREIGN.items():
        if magic.startswith(signature):
            raise DataError(f"{where}: is {what}, not a table that can be read: save it as CSV or Parquet")
    codec = next((name for signature, name in _COMPRESSED.items() if magic.startswith(signature)), None)
    claimed = next((name for suffix, name in _SUFFIXES.items() if where.endswith(suffix)), None)
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


def _peek(file: IO[bytes], size: int) -> bytes:
    assert isinstance(file, io.BufferedReader)
    return file.peek(size)[:size]


def _read_header(head: bytes, where: str, source: Source) -> _Header:
    if not head:
        raise DataError(f"{where}: the file is empty; a header line with column names is expected")
    if b"\0" in head:
        raise DataError(
            f"{where}: is not a text file, or not one in {source.encoding or 'UTF-8'}: give a CSV or Parquet file, "
            'or name the encoding, such as encoding="utf-16"'
        )
    bom = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
    # The last line may be cut off in the middle of a letter; a column that is not asked for may hold anything.
    text = head[bom:].decode("utf-8", "surrogateescape")
    delimiter = source.delimiter or max(_DELIMITERS, key=lambda one: len(_first_record(text, one, where)[0]))
    names, size = _first_record(text, delimiter, where)
    if not names:
        raise DataError(f"{where}: the file has blank lines only; a header line with column names is expected")
    if bom + size == _HEAD:
        raise DataError(f"{where}: the first line is longer than 1 MB: is it a CSV file with a header line?")
    for name in names:
        name.encode("utf-8")  # a header in another encoding
    return _Header(names, delimiter, bom + size)


def _first_record(text: str, delimiter: str, where: str) -> tuple[list[str], int]:
    """Return the fields of the first line that is not blank, and how many bytes it ends at."""
    lines = io.StringIO(text, newline="")
    size = 0

    def counted() -> Iterator[str]:
        nonlocal size
        for line in lines:
            size += len(line.encode("utf-8", "surrogateescape"))
            yield line

    try:
        for fields in csv.reader(counted(), delimiter=delimiter):
            if fields:
                return [field.strip() for field in fields], size
    except csv.Error as problem:
        raise DataError(f"{where}: the header line cannot be understood: {problem}") from problem
    return [], size


def _open(stream: _Utf8, header: _Header, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    first = stream.read(BLOCK)
    if not first:
        return
    stream.put_back(first)
    yield from arrow_csv.open_csv(
        pa.PythonFile(stream, mode="r"),
        # One thread: only then does Arrow say in which row a fault is. It is as fast, a block at a time.
        read_options=arrow_csv.ReadOptions(column_names=header.names, block_size=BLOCK, use_threads=False),
        parse_options=arrow_csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True),
        # Only an empty field is missing: a municipality is really called "None".
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(header.names, pa.string()),
            include_columns=list(columns or ()),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )


def _wrong_encoding(where: str, encoding: str | None, place: str = "") -> DataError:
    return DataError(
        f"{where}{place}: the text is not {encoding or 'UTF-8'}: name the file's encoding, such as "
        'encoding="latin-1" or "cp1252"'
    )


def _explain(problem: str, where: str, source: Source, header: _Header | None) -> DataError:
    row = re.search(r"Row #(\d+)", problem)
    place = f", row {row[1]}" if row else ""
    if "invalid UTF8" in problem:
        column = re.search(r"CSV column #(\d+)", problem)
        if column and header:
            place = f", column {header.names[int(column[1])]!r}{place}"
        return _wrong_encoding(where, source.encoding, place)
    if fields := re.search(r"Expected (\d+) columns, got (\d+)", problem):
        return DataError(
            f"{where}{place}: has {fields[2]} fields, but the header has {fields[1]}: correct the row, or name the "
            "delimiter if it is not " + repr(header.delimiter if header else ",")
        )
    if "straddl" in problem:
        return DataError(f"{where}: a row is longer than {BLOCK >> 20} MB: a quote is probably not closed")
    return DataError(f"{where}: cannot be read as CSV: {problem}")
