"""Requests of a browser: the fields of a form, and a file that goes straight to its place in the folder."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import parse_qsl

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from treetop.addons.studio.folder import TABLES, Folder
from treetop.errors import DataError

LARGEST = 1 << 20


class Form:
    """The fields of a form, in order; a field may stand several times."""

    def __init__(self, pairs: list[tuple[str, str]] | None = None) -> None:
        self.pairs = pairs or []

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def __contains__(self, name: str) -> bool:
        return any(own == name for own, _ in self.pairs)

    def get(self, name: str, default: str = "") -> str:
        """Return the last value of a field, without blanks around it."""
        return next((value.strip() for own, value in reversed(self.pairs) if own == name), default)

    def all(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value for own, value in self.pairs if own == name]

    def under(self, prefix: str) -> dict[str, str]:
        """Return the non-empty fields with a prefix, by the rest of their names."""
        found = {own.removeprefix(prefix): value.strip() for own, value in self.pairs if own.startswith(prefix)}
        return {name: value for name, value in found.items() if value}

    def whole(self, name: str, what: str) -> int:
        """Return a whole number, 1 or more."""
        text = self.get(name).replace(",", "").replace(" ", "")
        if not text.isdecimal() or not 0 < int(text) < 10**15:
            raise DataError(f"{what} is {self.get(name)!r}: give a whole number, 1 or more")
        return int(text)


async def read_form(parts: AsyncIterator[bytes]) -> Form:
    """Read a form that is no file."""
    body = b""
    async for part in parts:
        body += part
        if len(body) > LARGEST:
            raise DataError(f"This form is larger than {LARGEST >> 20} MB: shorten what you typed")
    return Form(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20_000))


class Upload:
    """A file on its way into the folder: written as it arrives, and visible only when it is whole."""

    def __init__(self, folder: Folder, content_type: str) -> None:
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data" or b"boundary" not in options:
            raise DataError("This is no upload: choose a file and send it again")
        self.folder = folder
        self.name: str | None = None
        self._draft = folder.path / f".upload-{token_hex(8)}"
        self._header: tuple[bytes, bytes] = (b"", b"")
        self._headers: dict[bytes, bytes] = {}
        self._file: Any = None
        self._whole = False
        self._parser = MultipartParser(
            options[b"boundary"],
            {
                "on_part_begin": self._begin,
                "on_header_field": self._field,
                "on_header_value": self._value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._headers_end,
                "on_part_data": self._data,
                "on_part_end": self._end,
                "on_end": self._all,
            },
        )

    async def save(self, parts: AsyncIterator[bytes]) -> Path:
        """Write the file, and return its path; an existing file is not replaced."""
        try:
            async for part in parts:
                self._parser.write(part)
            self._parser.finalize()
            if not self._whole:  # it ends in the middle, and the parser does not mind
                raise FormParserError
            if self.name is None:
                raise DataError("No file was chosen: choose one, and send it again")
            target = self.folder.new(self.name, DataError)
            try:
                target.touch(0o600, exist_ok=False)  # the place is taken first: nobody else's file is replaced
            except FileExistsError:
                raise DataError(f"{self.name} is in the folder already, and stays: choose it below") from None
            return self._draft.replace(target)
        except FormParserError as problem:
            raise DataError("The upload is not whole: send the file again") from problem
        except OSError as problem:
            raise DataError(f"The file cannot be written: {problem.strerror or problem}") from problem
        finally:
            if self._file is not None:
                self._file.close()
            self._draft.unlink(missing_ok=True)

    def _all(self) -> None:
        self._whole = True

    def _begin(self) -> None:
        self._headers = {}

    def _field(self, data: bytes, start: int, end: int) -> None:
        self._header = (self._header[0] + data[start:end], self._header[1])

    def _value(self, data: bytes, start: int, end: int) -> None:
        self._header = (self._header[0], self._header[1] + data[start:end])

    def _header_end(self) -> None:
        self._headers[self._header[0].lower()] = self._header[1]
        self._header = (b"", b"")

    def _headers_end(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        given = options.get(b"filename", b"").decode("utf-8", "replace")
        if options.get(b"name") != b"file" or not given or self.name is not None:
            return
        name = given.replace("\\", "/").rpartition("/")[2]
        if not name.lower().endswith(TABLES):
            raise DataError(f"{name!r} is no table that can be read: send one that ends in {', '.join(TABLES[:6])}")
        self.folder.new(name, DataError)
        self.name = name
        self._file = open(self._draft, "xb", opener=lambda path, flags: os.open(path, flags, 0o600))  # noqa: SIM115

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None and not self._file.closed:
            self._file.write(data[start:end])

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()


@dataclass(frozen=True)
class Done:
    """The result of a form: the page to go to, and its first message."""

    to: str
    said: str = ""
