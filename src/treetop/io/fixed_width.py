"""Reading fixed-width text in batches: each field is cut from its positions, blanks around it are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from treetop.errors import DataError
from treetop.io import _csv_file as csv_file
from treetop.io._csv_file import Utf8, explain_text, open_text, parse_blocks, shares, wrong_encoding
from treetop.io.row_batch import is_kept, require
from treetop.io.source import (
    HEAD,
    Piece,
    Positions,
    ReadRequest,
    Shared,
    Source,
    SourceFormat,
    format_of,
    reads_once,
    say,
)

_NEVER = "\x1f"  # Arrow wants a delimiter: one that no text holds
_END_MARK = "\x1a"
_BLANK = " \t" + _END_MARK
_SNIFFED = 200


def read_fixed(part: ReadRequest) -> Shared:
    """Yield batches of text columns.

    A blank line is a row in which everything is missing, unless `source.blank_lines` passes over it. Any other line
    that ends before a field does is refused, unless `source.keep` or `drop` leaves it out: lines of another record type
    may have fields of their own.
    """
    source, where = part.source, part.where
    assert source.fields is not None and part.stream is not None
    require(part.columns, list(source.fields), where)
    fields = {name: source.fields[name] for name in part.wanted(list(source.fields))}
    before = 0
    try:
        stream, head = open_text(part.stream, where, source.encoding)
        stream.put_back(head)
        parts = shares(_without_mark(_lines(stream)), part, stream, csv_file.BLOCK, pa.array([], pa.string()))
        for lines, done in parts:
            yield _read_lines(lines, fields, source, where, before), done
            before += len(lines)
    except UnicodeError as problem:
        raise wrong_encoding(where, source.encoding) from problem
    except pa.ArrowInvalid as problem:
        raise _explain(str(problem), where, source) from None  # Arrow's own message quotes the line


def refuse_fixed(source: Source) -> None:
    """Refuse fixed-width text that is about to be read as CSV, and explain how to declare it."""
    declared = source.fields is not None or source.delimiter is not None or source.header is not None
    if declared or source.scheme or reads_once(source.location):
        return
    file = source.files()[0]
    lines = _first_lines(file, source)
    pieces = _columns(lines)
    if pieces:
        shown = ", ".join(say([piece]) for piece in pieces[:30])
        raise DataError(
            f"{file}: looks like fixed-width text: no delimiter, and lines of one length ({len(lines[0])} characters). "
            f"Text stands at {shown}. Give the positions of each field: `field=home=8-13` (or home=5-7,9-11 to join "
            "pieces), in a plan file home = [8, 13] under [data.fields]. If it is CSV all the same, name its delimiter"
        )


def _lines(stream: Utf8) -> Iterator[pa.StringArray]:
    batches = parse_blocks(
        stream,
        read_options=arrow_csv.ReadOptions(column_names=["line"], block_size=csv_file.BLOCK, use_threads=False),
        parse_options=arrow_csv.ParseOptions(delimiter=_NEVER, quote_char=False, ignore_empty_lines=False),
        convert_options=arrow_csv.ConvertOptions(column_types={"line": pa.string()}, strings_can_be_null=False),
    )
    for batch in batches:
        yield batch.column(0)


def _without_mark(parts: Iterator[pa.StringArray]) -> Iterator[pa.StringArray]:
    """Leave out a last line that is nothing but the mark with which old systems end a file: it is no line."""
    last: pa.StringArray | None = None
    for lines in parts:
        if last is not None:
            yield last
        last = lines
    if last is not None:
        yield last.slice(0, len(last) - 1) if len(last) and last[-1].as_py() == _END_MARK else last


def _read_lines(lines: pa.StringArray, fields: Positions, source: Source, where: str, before: int) -> pa.RecordBatch:
    ascii_only = bool(pc.all(pc.string_is_ascii(lines)).as_py())
    columns = [_field(lines, pieces, ascii_only) for pieces in fields.values()]
    rows = pa.RecordBatch.from_arrays(columns, list(fields))
    length = pc.utf8_length(lines)
    short = pc.less(length, _end(fields))
    if not pc.any(short).as_py() and min(column.null_count for column in rows.columns) == 0:
        return rows
    blank = pc.equal(pc.utf8_trim(lines, characters=_BLANK), "")
    wrong = pc.and_not(short, blank)
    if source.keep or source.drop:
        asked = (*(source.keep or ()), *(source.drop or ()))
        decides = _end({name: source.fields[name] for name in asked if source.fields and name in source.fields})
        kept = is_kept(rows, source.keep, source.drop)
        wrong = pc.and_(wrong, pc.or_(kept, pc.less(length, decides)))
    line = pc.index(wrong, True).as_py()
    if line >= 0:
        name = max(fields, key=lambda name: _end({name: fields[name]}))
        raise DataError(
            f"{where}, line {before + line + 1}: has {length[line].as_py()} characters, but field {name!r} ends at "
            f"{_end(fields)}: correct the line, or the positions"
        )
    return rows.filter(pc.invert(blank)) if source.blank_lines == "skip" else rows


def _field(lines: pa.StringArray, pieces: Sequence[Piece], ascii_only: bool) -> pa.StringArray:
    if ascii_only:  # five times faster: nothing is counted letter by letter
        letters = lines.cast(pa.binary())
        parts = [pc.binary_slice(letters, first - 1, last).cast(pa.string()) for first, last in pieces]
    else:
        parts = [pc.utf8_slice_codeunits(lines, first - 1, last) for first, last in pieces]
    joined = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "")
    text = pc.utf8_trim(joined, characters=_BLANK)
    empty = pc.equal(text, "")
    return pc.if_else(empty, pa.scalar(None, pa.string()), text) if pc.any(empty).as_py() else text


def _end(fields: Positions) -> int:
    return max((last for pieces in fields.values() for _, last in pieces), default=0)


def _explain(problem: str, where: str, source: Source) -> DataError:
    """Explain an error of Arrow without quoting the line, which is private."""
    row = re.search(r"Row #(\d+)", problem)
    place = f", line {row[1]}" if row else ""
    if (error := explain_text(problem, where, source, place)) is not None:
        return error
    if "Expected 1 columns" in problem:
        return DataError(
            f"{where}{place}: holds the control character U+{ord(_NEVER):04X}, which is no text: correct the line"
        )
    if "straddl" in problem:
        return DataError(f"{where}: a line is longer than {csv_file.BLOCK >> 20} MB: is it fixed-width text?")
    return DataError(f"{where}: cannot be read as fixed-width text: {problem}")


def _first_lines(file: Path, source: Source) -> list[str]:
    try:
        with file.open("rb") as raw:
            if not format_of(raw.peek(HEAD), source).is_text:
                return []
            head = open_text(raw, str(file), source.encoding)[1]
    except (OSError, DataError, UnicodeError):  # whoever reads the table will say so
        return []
    lines = head.decode("utf-8", "replace").splitlines()[: _SNIFFED + 1]
    return [line for line in lines[:_SNIFFED] if line.strip(_BLANK)]


def _columns(lines: Sequence[str]) -> list[Piece]:
    """Return where text stands in lines that have one length and columns of blanks between; else nothing."""
    if len(lines) < 2 or len({len(line) for line in lines}) > 1 or any(mark in lines[0] for mark in ",;\t|"):
        return []
    filled = "".join("x" if any(line[at] != " " for line in lines) else " " for at in range(len(lines[0])))
    pieces = [(match.start() + 1, match.end()) for match in re.finditer("x+", filled)]
    header = not any(letter.isdigit() for letter in lines[0])
    return [] if len(pieces) < 2 and (header or len(filled) < 12) else pieces


FIXED = SourceFormat(
    "fixed-width",
    "fixed-width text",
    read_fixed,
    recognises=lambda head, source: source.fields is not None,
    is_text=True,
)
