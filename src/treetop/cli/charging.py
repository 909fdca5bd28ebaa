"""What every command that charges a ledger does the same way: open it, name the data set, and tell its head."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treetop.errors import TreetopError, Unfinished

if TYPE_CHECKING:
    from treetop.ledger import Ledger, Reservation


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


def open_ledger(path: Path, dataset: str | None, head: str | None) -> tuple[Ledger, str]:
    """Open a ledger to charge it, and find the data set; what looks wrong with either is told before it is charged."""
    from treetop.ledger import Ledger
    from treetop.ledger.names import listed

    ledger = Ledger.open(path, head=head)
    name = ledger.dataset_named(dataset)
    near = ledger.alike(name) if ledger.any_dataset else []
    if near:
        tell(
            f"{name!r} is a new data set of {path}, with a whole budget of its own, and looks like {listed(near)}: the "
            "same data under two names pays only half of what it costs"
        )
    warn_of_network(ledger)
    return ledger, name


def warn_of_network(ledger: Ledger) -> None:
    """Say that a network disk may let two machines spend at once."""
    from treetop.ledger import network_disk

    if (kind := network_disk(ledger.path)) is not None:
        tell(
            f"{ledger.path} is on a network disk ({kind}): locks may not hold there, and two machines may spend the "
            "same budget. Keep a ledger on a local disk, and charge it from one machine"
        )


def tell_spent(reservation: Reservation | None, path: Path | None) -> None:
    """Say that a release which failed was paid for all the same, and what to note."""
    if reservation is not None:
        tell(f"the loss stays spent: entry {reservation.number} of {path}")
        tell(f"ledger head: {reservation.sha256}")


def raise_unfinished(reservation: Reservation | None, problem: BaseException) -> None:
    """Turn an error that came after its loss was charged into one that says so by its kind."""
    if reservation is not None and isinstance(problem, TreetopError) and not isinstance(problem, Unfinished):
        raise Unfinished(str(problem)) from problem


def tell(message: str) -> None:
    """Say something on standard error."""
    click.echo(f"treetop: {message}", err=True)
