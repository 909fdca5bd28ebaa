"""What commands that charge a ledger have in common: the option of its head, and what is told beside a result."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click


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
