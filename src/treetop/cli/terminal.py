"""The one way out for text: nothing that a title, a code or a file name holds can drive a terminal.

Only `style` makes colours, and only here is what it makes told from what was read somewhere.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from treetop.errors.showing import discreet, visible

_MARK = f"\x1b<{secrets.token_hex(8)}"  # nothing that is read can hold it: it is made anew in each process
_STYLED = re.compile(rf"{re.escape(_MARK)}([0-9;]*)>")


class Safe:
    """A text stream that writes only what may be shown. Its bytes, for other programs, are as they were."""

    def __init__(self, stream: Any) -> None:
        self.rich_proxied_file = stream  # where `rich` draws its bars
        self.styled = stream.isatty() and "NO_COLOR" not in os.environ

    def write(self, text: str) -> int:
        """Write a text."""
        pieces = _STYLED.split(text)  # in turn: text, the numbers of a style, text, …
        for number, piece in enumerate(pieces):
            pieces[number] = f"\x1b[{piece}m" if number % 2 else said(piece)
        self.rich_proxied_file.write("".join(pieces))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def make_printable(stream: Any) -> None:
    """Let a stream take every character: UTF-8 in files and pipes, and a question mark where a terminal lacks a sign.

    On Windows what is piped is of another encoding, which has no signs for lines and ticks.
    """
    if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
        if stream.isatty():
            stream.reconfigure(errors="replace")
        else:
            stream.reconfigure(encoding="utf-8")


def said(text: str) -> str:
    """Return a text that may be shown: what was given in the wrong place may be a URL with a password."""
    return visible(discreet(text))


@contextmanager
def shown_safely() -> Iterator[None]:
    """Let all text of a command out through `Safe`."""
    before = sys.stdout, sys.stderr
    for stream in before:
        make_printable(stream)
    sys.stdout, sys.stderr = Safe(sys.stdout), Safe(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def style(text: str, **look: Any) -> str:
    """Return text with a look, as `click.style` does; plain where standard output is no terminal."""
    if not getattr(sys.stdout, "styled", False):
        return text
    start, end = click.style("\0", **look).split("\0")
    return f"{_marked(start)}{text}{_marked(end)}"


def bold(text: str) -> str:
    """Return text that stands out."""
    return style(text, bold=True)


def _marked(sequences: str) -> str:
    return re.sub(r"\x1b\[([0-9;]*)m", lambda found: f"{_MARK}{found[1]}>", sequences)


def raw(stream: Any) -> Any:
    """Return the stream itself, for a progress bar, which moves the cursor."""
    return stream.rich_proxied_file if isinstance(stream, Safe) else stream
