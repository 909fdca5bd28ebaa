"""What commands have in common: how some options are read, and how a table or a remark is told."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from treetop.errors import ReleaseError
from treetop.errors.showing import printable

if TYPE_CHECKING:
    import pyarrow as pa


def numbers(_: click.Context, __: click.Parameter, text: str | None) -> tuple[float, ...]:
    """Read an option that lists positive numbers; none where it was not given."""
    if text is None:
        return ()
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < number < float("inf") for number in found):
        raise click.BadParameter(f"{text!r}: give positive numbers with commas between them, such as 0.1,1,10")
    return tuple(dict.fromkeys(found))


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
        help="Refuse a ledger that lacks this head, which was noted elsewhere: an older copy of it.",
    )
    return option(command)


def tell(message: str) -> None:
    """Say something on standard error."""
    click.echo(f"treetop: {message}", err=True)


def say_json(value: Any) -> None:
    """Print plain values for machines, with letters of all languages as they are."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def say_warning(card: dict[str, Any]) -> None:
    """Say what a card warns of, if it does."""
    if warning := card.get("warning"):
        tell(warning)


def render_rows(table: pa.Table, numbers: str, total: str, rows: int, for_terminal: bool) -> str:
    """Return a table for people, numbers from a column on: plain, or with a rule and a total on a terminal."""
    from treetop.plan.accuracy import text_table

    names = table.column_names
    codes = names.index(numbers)
    columns = [[printable(code) for code in table.column(i).to_pylist()] for i in range(codes)]
    columns += [[_number(value, for_terminal) for value in table[name].to_pylist()] for name in names[codes:]]
    text = text_table([names, *zip(*columns, strict=True)], left=range(codes))
    if not for_terminal:
        return without_rule(text)
    left = f"; {rows - table.num_rows:,} smaller not shown" if rows > table.num_rows else ""
    return f"{text}\n\n{total}{rows:,} row{'s' * (rows != 1)}{left}"


def _number(value: float | str, for_terminal: bool) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}" if for_terminal else str(value)
    return f"{value:.2f}"


def without_rule(text: str) -> str:
    """Return a table without the line below its header, as other programs have it."""
    header, _, *lines = text.split("\n")
    return "\n".join([header, *lines])


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
    """End quietly when the reader has read enough, as `head` does; say so when nothing can be written."""
    try:
        yield
        sys.stdout.flush()
    except OSError as problem:
        # What is left in the buffer would be written again, and fail again, at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(problem, BrokenPipeError):
            raise ReleaseError(f"standard output: cannot be written: {problem.strerror or problem}") from problem
