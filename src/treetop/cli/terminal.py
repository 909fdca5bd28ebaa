"""The only output for text: no title, code or file name can send control sequences to a terminal.

Only `style` makes colours, and only this module separates its output from text that was read from elsewhere.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treetop.errors import ReleaseError, discreet, printable, translate_arguments, visible

if TYPE_CHECKING:
    import pyarrow as pa


_MARK = f"\x1b<{secrets.token_hex(8)}"  # nothing that is read can hold it: it is made anew in each process
_STYLED = re.compile(rf"{re.escape(_MARK)}([0-9;]*)>")


class Safe:
    """A text stream that writes printable text only. Its bytes, for other programs, are unchanged."""

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
    """Let a stream take every character: UTF-8 in files and pipes, a question mark for signs a terminal lacks.

    On Windows, pipes have another encoding, without signs for lines and ticks.
    """
    if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
        if stream.isatty():
            stream.reconfigure(errors="replace")
        else:
            stream.reconfigure(encoding="utf-8")


def said(text: str) -> str:
    """Return a text that may be shown: an argument in the wrong place may be a URL with a password."""
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
    """Return text with a look, as `click.style` does; plain if standard output is no terminal."""
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


# What commands have in common: how some options are read, and how a table or a remark is told.

PATH = click.Path(path_type=Path)


def numbers(_: click.Context, __: click.Parameter, text: str | None) -> tuple[float, ...]:
    """Read an option that lists positive numbers; none if it was not given."""
    if text is None:
        return ()
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < number < float("inf") for number in found):
        raise click.BadParameter(f"{text!r}: give positive numbers with commas between them, such as 0.1,1,10")
    return tuple(dict.fromkeys(found))


def pairs(flag: str, example: str, given: Sequence[str]) -> list[tuple[str, str]]:
    """Read an option that is written NAME=VALUE."""
    found = [text.partition("=") for text in given]
    for text, (name, _, value) in zip(given, found, strict=True):
        if not name.strip() or not value:
            raise click.UsageError(f"{flag} is {text!r}: write it as in {flag} {example}")
    return [(name.strip(), value) for name, _, value in found]


# The digits of an exponent are limited because 1e999999999 would be written out in full.
_NUMBER = re.compile(
    r"(?:[0-9]{1,99}\.?[0-9]{0,99}|\.[0-9]{1,99})(?:[eE][-+]?[0-9]{1,3})?|[0-9]{1,99}/0*[1-9][0-9]{0,98}"
)


def number(text: str) -> Fraction:
    """Read a number as it is written: 0.1, 1e-8 or 1/3, with no float in between."""
    if not _NUMBER.fullmatch(text):
        raise click.BadParameter(f"{text!r} is not a positive number; write one such as 0.5, 1e-8 or 1/3")
    return Fraction(text)


def _hash(text: str) -> str:
    if not re.fullmatch("[0-9a-fA-F]{64}", text):
        raise click.BadParameter("give the 64 hexadecimal digits that `treetop ledger show FILE --head` printed")
    return text.lower()


def expect_head(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option with which an older copy of a ledger is noticed."""
    option = click.option(
        "--expect-head",
        type=_hash,
        metavar="HASH",
        help="Refuse a ledger that lacks this fingerprint, such as an older copy of it.",
    )
    return option(command)


def in_flags(text: str, command: click.Command) -> str:
    """Replace the names of arguments in a text by the flags of a command, if it has them."""
    options = _options(command)

    def flag(name: str, value: str | None) -> str | None:
        option = options.get(name)
        if option is None:
            return None
        if option.is_flag or value is None:
            return (option.secondary_opts if value == "False" else option.opts)[0]
        return " ".join([option.opts[0], value.strip('"')])

    return translate_arguments(text, flag)


def _options(command: click.Command) -> dict[str, click.Option]:
    """Return options by the name of their argument and that of their flag, of a group those of all its commands."""
    if isinstance(command, click.Group):
        return {name: option for one in command.commands.values() for name, option in _options(one).items()}
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    by_flag = {option.opts[0].removeprefix("--").replace("-", "_"): option for option in options}
    return {str(option.name): option for option in options} | by_flag


def tell(message: str) -> None:
    """Say something on standard error."""
    context = click.get_current_context(silent=True)
    message = message if context is None else in_flags(message, context.command)
    click.echo(f"treetop: {message}", err=True)


def say_json(value: Any) -> None:
    """Print plain values for machines, with letters of all languages as they are."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def say_warning(card: dict[str, Any]) -> None:
    """Print the warning of a card, if it has one."""
    from treetop.card import render

    if warning := card.get("warning"):
        tell(render(warning))


def text_table(rows: Sequence[Sequence[str]], left: Sequence[int] = (), rule: bool = True) -> str:
    """Lay out rows of text in columns, with a rule below the header or, as other programs have it, without."""
    from treetop.plan import workload

    header, below, *lines = workload.text_table(rows, left).split("\n")
    return "\n".join([header, *([below] if rule else []), *lines])


def render_rows(table: pa.Table, numbers: str, total: str, rows: int, for_terminal: bool) -> str:
    """Return a table for people, numbers from a column on: plain, or with a rule and a total on a terminal."""
    names = table.column_names
    codes = names.index(numbers)
    columns = [[printable(code) for code in table.column(i).to_pylist()] for i in range(codes)]
    columns += [[_shown(value, for_terminal) for value in table[name].to_pylist()] for name in names[codes:]]
    text = text_table([names, *zip(*columns, strict=True)], range(codes), rule=for_terminal)
    if not for_terminal:
        return text
    left = f"; {rows - table.num_rows:,} smaller not shown" if rows > table.num_rows else ""
    return f"{text}\n\n{total}{rows:,} row{'s' * (rows != 1)}{left}"


def _shown(value: float | str, for_terminal: bool) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}" if for_terminal else str(value)
    return f"{value:.2f}"


def print_csv(table: pa.Table) -> None:
    """Write a table as comma-separated values."""
    from treetop.exporting.sheet import csv_header, write_csv

    shown = sys.stdout.isatty()
    out = io.BytesIO() if shown else sys.stdout.buffer
    out.write(csv_header(table.column_names))
    write_csv(table.schema, table.to_batches(), out)
    if shown:  # codes may hold what drives a terminal
        sys.stdout.write(out.getvalue().decode())  # type: ignore[union-attr]


@contextmanager
def standard_output() -> Iterator[None]:
    """End quietly when the reader has read enough, as `head` does; report it if nothing can be written."""
    try:
        yield
        sys.stdout.flush()
    except OSError as problem:
        # What is left in the buffer would be written again, and fail again, at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(problem, BrokenPipeError):
            raise ReleaseError(f"standard output: cannot be written: {problem.strerror or problem}") from problem
