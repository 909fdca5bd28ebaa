"""Reading CSV in batches of text: any delimiter, encoding and compression, every line a row, and only an empty field
is missing."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv as arrow_csv

from treetop.errors import DataError
from treetop.sources import header as headers
from treetop.sources.batch import require
from treetop.sources.csv_blocks import MIXED, parse_blocks
from treetop.sources.files import PACKED
from treetop.sources.source import Format, Part, Shared, Source
from treetop.sources.text_stream import HEAD, Utf8, mixed_line_ends, open_text, shares, wrong_encoding

BLOCK = 1 << 22
"""How many bytes are parsed at once; no row can be longer."""

_DELIMITERS = ",;\t|"
# With a delimiter that is not the file's, a whole header is one field, and Python's own limit is 128 kB.
csv.field_size_limit(max(csv.field_size_limit(), HEAD))


@dataclass(frozen=True)
class _Header:
    """What the first line says, or the plan in its place."""

    names: list[str]
    delimiter: str
    size: int
    """How many bytes it takes."""


def read_csv(part: Part) -> Shared:
    """Yield batches of text columns."""
    source, where, columns = part.source, part.where, part.columns
    header: _Header | None = None
    try:
        assert part.stream is not None
        stream, head = open_text(part.stream, where, source.encoding)
        header = _read_header(head, where, source)
        _refuse_fixed(columns, header, where, source)
        unvouched = source.header is None
        if unvouched:
            _refuse_row(columns, header, head, where, source.option_prefix)
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


def _refuse_fixed(columns: Sequence[str] | None, header: _Header, where: str, source: Source) -> None:
    """Refuse fixed-width text, of which the first line is one name with blanks in it."""
    missing = next((name for name in columns or () if name not in header.names), None)
    if missing is not None and len(header.names) == 1 and " " in header.names[0]:
        raise DataError(
            f"{where}: there is no column {missing!r}: no {header.delimiter!r} stands between names in the first line. "
            f"Name another delimiter ({source.option('delimiter')} in the plan file)"
            + ("" if source.option_prefix else "; fixed-width text is read by its positions: [data.fields]")
        )


def _read_header(head: bytes, where: str, source: Source) -> _Header:
    # The last line may be cut off in the middle of a letter; a column that is not asked for may hold anything.
    text = head.decode("utf-8", "surrogateescape")
    if source.header is False:
        return _given_header(text, where, source)
    if not head:
        raise DataError(f"{where}: the file is empty; a header line with column names is expected")
    delimiter = source.delimiter or max(_DELIMITERS, key=lambda one: len(_first_record(text, one, where)[0]))
    names, size = _first_record(text, delimiter, where)
    if not names:
        raise DataError(f"{where}: the file has blank lines only; a header line with column names is expected")
    if size == len(head) and _is_cut(head):
        raise DataError(f"{where}: the first line is longer than 1 MB: is it a CSV file with a header line?")
    for name in names:
        name.encode("utf-8")  # a header in another encoding
    return _Header(names, delimiter, size)


def _refuse_row(columns: Sequence[str] | None, header: _Header, head: bytes, where: str, prefix: str) -> None:
    """Refuse names that look like values; rows are looked at only where a column is missing, to say why it is."""
    headers.refuse_look(columns or (), where, prefix)
    if any(name not in header.names for name in columns or ()):
        text = head[header.size :].decode("utf-8", "surrogateescape")
        headers.refuse_row(header.names, headers.first_rows(text, header.delimiter, _is_cut(head)), where, prefix)


def _is_cut(head: bytes) -> bool:
    return len(head) >= HEAD - len(codecs.BOM_UTF8)


def _given_header(text: str, where: str, source: Source) -> _Header:
    """Return the names that the plan gives, or numbers in their place, for a file in which every line is a row."""
    found = {one: len(_first_record(text, one, where)[0]) for one in source.delimiter or _DELIMITERS}
    names = source.names
    fitting = [one for one, fields in found.items() if names is not None and fields == len(names)]
    delimiter = fitting[0] if fitting else max(found, key=lambda one: found[one])
    fields = found[delimiter]
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
    if "invalid UTF8" in problem:
        column = re.search(r"CSV column #(\d+)", problem)
        if column and header:
            place = f", column {header.names[int(column[1])]!r}{place}"
        return wrong_encoding(where, source.encoding, place)
    if fields := re.search(r"Expected (\d+) columns, got (\d+)", problem):
        delimiter = header.delimiter if header else ","
        return DataError(
            f"{where}{place}: has {fields[2]} fields, but the header has {fields[1]}: correct the row, or name the "
            f"delimiter if it is not {delimiter!r}: {source.option('delimiter')} in the plan file"
        )
    if problem == MIXED:
        return mixed_line_ends(where)
    if "straddl" in problem:
        return DataError(f"{where}: a row is longer than {BLOCK >> 20} MB: a quote is probably not closed")
    return DataError(f"{where}: cannot be read as CSV: {problem}")


CSV = Format(
    "CSV",
    "a CSV file",
    read_csv,
    recognises=lambda head, source: True,  # any text that no other format recognises
    endings=(".csv", ".tsv", ".txt", *PACKED),
    is_text=True,
)
