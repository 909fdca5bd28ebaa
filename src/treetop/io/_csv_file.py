"""CSV in blocks of whole records, each parsed from memory: Arrow is never given something of Python's to call.

Given a Python file, Arrow reads it in a thread of its own, which may still do so when the interpreter ends: that aborts
the process, after success as after a refusal.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from treetop._util.kernel import kernel
from treetop.errors import DataError
from treetop.io import header as headers
from treetop.io.row_batch import require
from treetop.io.source import PACKED, ReadRequest, Shared, Source, SourceFormat

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
    inside a field would turn one record into several. `header` are the bytes taken from the file before.
    """
    before = 0
    size, whole = read_options.block_size, copy(read_options)
    whole.block_size = 2 * size
    for block in _blocks(stream, size, parse_options, header):
        try:
            table = arrow_csv.read_csv(pa.BufferReader(block), whole, parse_options, convert_options)
        except pa.ArrowInvalid as problem:
            # The message counts rows from the beginning of the file.
            counted = re.sub(r"Row #(\d+)", lambda row: f"Row #{before + int(row[1])}", str(problem), count=1)  # noqa: B023
            raise pa.ArrowInvalid(counted) from None
        before += len(table)
        yield from table.to_batches()


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
    """Return the rest of the last block joined with the next one, and whether it is the last."""
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


# The bytes of a text file as UTF-8, for Arrow to read: any encoding and compression.

HEAD = 1 << 20

_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_HTML = re.compile(rb"\s*<(!doctype html|html|head|body|table|\?xml)", re.IGNORECASE)
_JSON = re.compile(rb'\s*(\{\s*"|\[\s*\{)')
_FOREIGN = {b"PK\x03\x04": "a ZIP or Excel file", b"\xd0\xcf\x11\xe0": "an old Excel file", b"%PDF": "a PDF"}
"""First bytes of formats that are not text; a workbook is read from a file, but not from standard input."""

_Batch = TypeVar("_Batch")

_ENCODING = '`encoding="{0}"` (encoding = "{0}" in the plan file)'


class Utf8:
    """Bytes in any encoding as UTF-8; bytes that were read can be put back."""

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
        """Return the first bytes, which surely contain a header."""
        head = b""
        while len(head) < HEAD and (more := self.read(HEAD - len(head))):
            head += more
        return head

    def put_back(self, data: bytes) -> None:
        """Have `data` read again."""
        self._pending = data + self._pending


def open_text(file: io.BufferedReader[Any], where: str, encoding: str | None) -> tuple[Utf8, bytes]:
    """Return the text and its beginning without a byte order mark; refuse other formats by name."""
    stream = Utf8(_decompressed(file, where), encoding)
    head = stream.read_head().removeprefix(codecs.BOM_UTF8)
    if b"\0" in head:
        raise DataError(
            f"{where}: is not a text file, or not one in {encoding or 'UTF-8'}: give a CSV or Parquet file, or name "
            f"the encoding: {_ENCODING.format('utf-16')}"
        )
    if _HTML.match(head):
        raise DataError(
            f"{where}: is a web page (HTML or XML), not a table that can be read: open it in a spreadsheet, and save "
            "the table as CSV"
        )
    if _JSON.match(head):
        raise DataError(
            f"{where}: is JSON or GeoJSON, not a table that can be read: give a CSV or Parquet file (for places, one "
            "with columns for the code, the latitude and the longitude)"
        )
    return stream, head


def shares(
    batches: Iterable[_Batch], part: ReadRequest, stream: Utf8, block: int, none: _Batch
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


def explain_text(problem: str, where: str, source: Source, place: str) -> DataError | None:
    """Explain an error of Arrow about encoding or lines without its message, which quotes the line; None for others."""
    if "invalid UTF8" in problem:
        return wrong_encoding(where, source.encoding, place)
    if problem == MIXED:
        return DataError(
            f"{where}: some lines end with a carriage return alone (\\r) and others with a line feed (\\n), so that a "
            "return inside a field would begin a record: end all lines in the same way, and put fields that hold a "
            "return in quotes"
        )
    return None


def wrong_encoding(where: str, encoding: str | None, place: str = "") -> DataError:
    """Return the error for text that is in another encoding."""
    return DataError(
        f"{where}{place}: the text is not {encoding or 'UTF-8'}: name the file's encoding, often latin-1 or cp1252: "
        f"{_ENCODING.format('latin-1')}"
    )


def _decompressed(file: io.BufferedReader[Any], where: str) -> Callable[[int], bytes]:
    magic = file.peek(4)[:4]
    for signature, kind in _FOREIGN.items():
        if magic.startswith(signature):
            raise DataError(f"{where}: is {kind}, not a table that can be read: save it as CSV or Parquet")
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


# Reading CSV in batches of text: any delimiter, encoding and compression, every line a row, and only an empty field is
# missing.

BLOCK = 1 << 22
"""How many bytes are parsed at once; no row can be longer."""

_DELIMITERS = ",;\t|"
# With a delimiter that is not the file's, a whole header is one field, and Python's own limit is 128 kB.
csv.field_size_limit(max(csv.field_size_limit(), HEAD))


@dataclass(frozen=True)
class _Header:
    """The names from the first line, or from the plan."""

    names: list[str]
    delimiter: str
    size: int


def read_csv(part: ReadRequest) -> Shared:
    """Yield batches of text columns."""
    source, where, columns = part.source, part.where, part.columns
    header: _Header | None = None
    try:
        assert part.stream is not None
        stream, head = open_text(part.stream, where, source.encoding)
        while source.comment is not None and head.startswith(source.comment.encode()):
            end = re.search(rb"\r\n?|\n", head)
            if end is None and _is_cut(head):
                raise DataError(f"{where}: a line that begins with {source.comment!r} is longer than 1 MB: delete it")
            stream.put_back(b"" if end is None else head[end.end() :])
            head = stream.read_head()
        header = _read_header(head, where, source)
        missing = next((name for name in columns or () if name not in header.names), None)
        if missing is not None and len(header.names) == 1 and " " in header.names[0]:
            raise DataError(
                f"{where}: there is no column {missing!r}: no {header.delimiter!r} stands between names in the first "
                f"line. Name another delimiter ({source.option('delimiter')} in the plan file)"
                + ("" if source.option_prefix else "; fixed-width text is read by its positions: [data.fields]")
            )
        unvouched = source.header is None
        if unvouched:
            headers.refuse_look(columns or (), where, source.option_prefix)
        if unvouched and missing is not None:  # rows are looked at only to say why a column is missing
            text = head[header.size :].decode("utf-8", "surrogateescape")
            rows = headers.first_rows(text, header.delimiter, _is_cut(head))
            headers.refuse_row(header.names, rows, where, source.option_prefix)
        require(columns, header.names, where)
        stream.put_back(head[header.size :])
        parsed = _parsed(stream, header, head[: header.size], columns, skip=source.blank_lines == "skip")
        wanted = part.wanted(header.names)
        none = pa.RecordBatch.from_arrays([pa.array([], pa.string())] * len(wanted), wanted)
        for batch, done in shares(parsed, part, stream, BLOCK, none):
            yield headers.as_unvouched(batch) if unvouched else batch, done
    except UnicodeError as problem:
        raise wrong_encoding(where, source.encoding) from problem
    except pa.ArrowInvalid as problem:
        raise _explain(str(problem), where, source, header) from None  # Arrow's own message quotes the line


def _read_header(head: bytes, where: str, source: Source) -> _Header:
    # The last line may be cut off in the middle of a letter; a column that is not asked for may hold anything.
    text = head.decode("utf-8", "surrogateescape")
    if source.header is False:
        return _given_header(text, where, source)
    if not head:
        raise DataError(f"{where}: the file is empty; a header line with column names is expected")
    delimiter = source.delimiter or max(_DELIMITERS, key=lambda sign: len(_first_record(text, sign, where)[0]))
    names, size = _first_record(text, delimiter, where)
    if not names:
        raise DataError(f"{where}: the file has blank lines only; a header line with column names is expected")
    if size == len(head) and _is_cut(head):
        raise DataError(f"{where}: the first line is longer than 1 MB: is it a CSV file with a header line?")
    for name in names:
        name.encode("utf-8")  # a header in another encoding
    return _Header(names, delimiter, size)


def _is_cut(head: bytes) -> bool:
    return len(head) >= HEAD - len(codecs.BOM_UTF8)


def _given_header(text: str, where: str, source: Source) -> _Header:
    """Return the names that the plan gives, or numbers in their place, for a file in which every line is a row."""
    field_counts = {sign: len(_first_record(text, sign, where)[0]) for sign in source.delimiter or _DELIMITERS}
    names = source.names
    fitting = [sign for sign, fields in field_counts.items() if names is not None and fields == len(names)]
    delimiter = fitting[0] if fitting else max(field_counts, key=lambda sign: field_counts[sign])
    fields = field_counts[delimiter]
    if names is None:
        if not fields:
            raise DataError(f"{where}: there is no row that shows how many columns there are: give their names")
        names = [f"column{number}" for number in range(1, fields + 1)]
    elif fields and not fitting:
        raise DataError(
            f"{where}: the first row has {fields} fields, but {len(names)} names are given: name all columns in order, "
            f"or the delimiter if it is not {delimiter!r}: {source.option('delimiter')} in the plan file"
        )
    return _Header(list(names), delimiter, 0)


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


def _parsed(
    stream: Utf8, header: _Header, first: bytes, columns: Sequence[str] | None, skip: bool
) -> Iterator[pa.RecordBatch]:
    return parse_blocks(
        stream,
        # One thread: only then does Arrow say in which row a fault is. It is as fast, a block at a time.
        read_options=arrow_csv.ReadOptions(column_names=header.names, block_size=BLOCK, use_threads=False),
        # An empty line is a row in which everything is missing, whatever the number of columns: passed over, a record
        # would vanish by being emptied, and with it one from an exact total.
        parse_options=arrow_csv.ParseOptions(
            delimiter=header.delimiter, newlines_in_values=True, ignore_empty_lines=skip
        ),
        # Only an empty field is missing: a municipality is really called "None".
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(header.names, pa.string()),
            include_columns=list(columns or ()),
            null_values=[""],
            strings_can_be_null=True,
        ),
        header=first,
    )


def _explain(problem: str, where: str, source: Source, header: _Header | None) -> DataError:
    row = re.search(r"Row #(\d+)", problem)
    place = f", row {row[1]}" if row else ""
    column = re.search(r"CSV column #(\d+)", problem)
    of_column = f", column {header.names[int(column[1])]!r}" if column and header else ""
    if (error := explain_text(problem, where, source, f"{of_column}{place}")) is not None:
        return error
    if fields := re.search(r"Expected (\d+) columns, got (\d+)", problem):
        delimiter = header.delimiter if header else ","
        return DataError(
            f"{where}{place}: has {fields[2]} fields, but the header has {fields[1]}: correct the row, or name the "
            f"delimiter if it is not {delimiter!r}: {source.option('delimiter')} in the plan file"
        )
    if "straddl" in problem:
        return DataError(f"{where}: a row is longer than {BLOCK >> 20} MB: a quote is probably not closed")
    return DataError(f"{where}: cannot be read as CSV: {problem}")


CSV = SourceFormat(
    "CSV",
    "a CSV file",
    read_csv,
    recognises=lambda head, source: True,  # any text that no other format recognises
    endings=(".csv", ".tsv", ".txt", *PACKED),
    is_text=True,
)
