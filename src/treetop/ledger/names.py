"""The names of data sets and units: which are the same, and which look as if they might be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from unicodedata import category, normalize

from treetop.errors import LedgerError
from treetop.errors.showing import discreet

_ALIKE = 0.8


def key(name: str) -> str:
    """What tells names apart: not capitals or spaces, lest a variant spelling get a budget of its own."""
    return normalize("NFKC", spelt(name)).casefold()


def spelt(name: str, what: str = "data set") -> str:
    """Return a name as it is kept: with single spaces, and printable."""
    found = " ".join(name.split())
    if not found or not found.isprintable():
        raise LedgerError(f"The {what} is named {name!r}; give it a name of printable characters")
    return found


def new(name: str) -> str:
    """Return the name of a data set that a ledger does not know yet, refusing one with a password, kept for good."""
    found = spelt(name)
    if discreet(found) != found:
        raise LedgerError(
            f"The data set is named {found!r}, which holds a password, and a ledger keeps and shows its names for "
            "good: give it a plain name, such as 'census 2021'"
        )
    return found


def alike(name: str, others: Iterable[str]) -> list[str]:
    """Return the names that are easily taken for this one: they differ in digits, signs, accents, a word or a letter.

    >>> alike("flights-v2", ["Flights", "fights 2001", "schools"])
    ['Flights', 'fights 2001']
    """
    letters = _letters(name)
    return [other for other in others if _are_alike(letters, _letters(other))]


def listed(names: Iterable[str], most: int = 10) -> str:
    """Write names in a row, not more than a reader wants."""
    every = list(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def _letters(name: str) -> str:
    return "".join(c for c in normalize("NFKD", key(name)) if category(c).startswith("L")) or key(name)


def _are_alike(one: str, other: str) -> bool:
    if min(len(one), len(other)) >= 3 and (one in other or other in one):
        return True
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.real_quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE
