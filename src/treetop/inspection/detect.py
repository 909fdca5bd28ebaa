"""How a table is read, if nobody says: the encoding of a text file, the sheet of a workbook, blanks between fields."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from treetop.io.excel import sheet_sizes
from treetop.io.source import Source, reads_once

_PIECE = 1 << 20
_ELSEWHERE = bytes(set(range(256)) - set(range(0x80, 0xA0)))
"""All bytes but those that are letters and quotes in cp1252 only."""
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def detect(source: Source) -> tuple[Source, list[str]]:
    """Return a source with the options that its files need, and what was found, for the steward."""
    if source.scheme is not None or reads_once(source.location):
        return source, []
    files = source.files()
    notes: list[str] = []
    if source.sheet is None and len(files) == 1 and len(sizes := sheet_sizes(files[0])) > 1:
        sheet = max(sizes, key=lambda name: sizes[name])
        listed = ", ".join(f"{name!r} ({rows:,} rows)" for name, rows in sizes.items())
        notes.append(f"the workbook has several sheets: {listed}. {sheet!r} is read, the longest")
        return replace(source, sheet=sheet), notes
    encodings = {encoding_of(file) for file in files} if source.encoding is None else set()
    if len(encodings) == 1 and (encoding := encodings.pop()) is not None:
        source = replace(source, encoding=encoding)
        notes.append(f"the text is not UTF-8: it is read as {encoding}")
    if source.delimiter is None and source.fields is None and len(files) == 1:
        with suppress(OSError), files[0].open(encoding=source.encoding or "utf-8", errors="replace") as stream:
            lines = [line.strip() for line in stream.read(_PIECE // 16).splitlines()[:50]][:-1]
            widths = {len(line.split(" ")) for line in lines}
            if len(widths) == 1 and widths != {1} and not re.search("[,;\\t|]", "".join(lines)):
                source = replace(source, delimiter=" ")
                notes.append("fields are separated by blanks")
    return source, notes


def encoding_of(file: Path) -> str | None:
    """Return the encoding of a text file; None for UTF-8, and for what is no text."""
    try:
        with file.open("rb") as stream:
            head = stream.read(_PIECE)
            for mark, name in _MARKS.items():
                if head.startswith(mark):
                    return None if name == "utf-8-sig" else name
            if b"\0" in head or head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"PAR1", b"%PDF")):
                return None
            decoder = codecs.getincrementaldecoder("utf-8")()
            try:
                piece = head
                while piece:
                    decoder.decode(piece)
                    piece = stream.read(_PIECE)
                decoder.decode(b"", final=True)
            except UnicodeDecodeError:
                stream.seek(0)
                while piece := stream.read(_PIECE):
                    if piece.translate(None, delete=_ELSEWHERE):
                        return "cp1252"
                return "latin-1"
    except OSError:
        pass
    return None
