"""The lines of a ledger: charged releases, and the balance of each data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import SequenceMatcher
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias
from unicodedata import category, normalize

from treetop.domain.unit import GuaranteeCondition, fingerprint, only_if
from treetop.errors import LedgerError, Refusal, discreet
from treetop.ledger import budget as spending
from treetop.ledger._log import Content, Record
from treetop.ledger.budget import Budget, Spending
from treetop.privacy import Unit
from treetop.privacy.composition import Cells
from treetop.privacy.loss import Currency

State: TypeAlias = Literal["complete", "reserved, outcome unknown"]


@dataclass(frozen=True)
class Entry:
    """One charged release, finished or not."""

    number: int
    """Its position in the file; numbers rise, with gaps."""
    time: str
    dataset: str
    """The data set that was charged, as it was first spelt."""
    title: str
    definition: Currency
    """Definition of the cost: "pure" epsilon, or rho ("zcdp")."""
    cost: Fraction
    """Cost of the release, in its own definition."""
    charged: Fraction
    """The same in the currency of the budget."""
    unit: str
    """The protected unit, as `unit_text` writes it."""
    plan_sha256: str
    completed: str | None
    """When the release folder was in place, UTC; None if that was never recorded."""
    card_sha256: str | None
    cells: Cells | None = None
    """Cells that one unit changes by one, with their noise; None if unknown, so that only the cost is used."""

    @property
    def state(self) -> State:
        """Whether the release is known to be in place. A reserved loss is spent either way."""
        return "complete" if self.completed else "reserved, outcome unknown"


@dataclass(frozen=True)
class Review:
    """A second person's review of a plan."""

    time: str
    reviewer: str
    note: str
    title: str
    plan_sha256: str


@dataclass(frozen=True)
class Balance:
    """The balance of one data set."""

    dataset: str
    limit: Budget
    """All that may be spent on it, as the steward stated it."""
    entries: tuple[Entry, ...]

    @property
    def budget(self) -> Fraction:
        """All that may be spent on it: rho, or epsilon when the ledger is pure."""
        return self.limit.amount

    @property
    def unit(self) -> str | None:
        """The unit of all its releases, as it was first spelt; None before the first."""
        return self.entries[0].unit if self.entries else None

    @property
    def spent(self) -> Fraction:
        """The exact sum of the charges."""
        return sum((entry.charged for entry in self.entries), Fraction(0))

    @property
    def spending(self) -> Spending:
        """The charges, by whether their noise is known."""
        return Spending.of((entry.charged, entry.cells) for entry in self.entries)

    @property
    def epsilon(self) -> float | None:
        """The composition of all releases, as epsilon at the steward's delta; None if no delta was stated."""
        return self.limit.epsilon_of(self.spending)

    @property
    def remaining(self) -> Fraction:
        """The most that one more release may cost: the budget less the spent loss, or more if noise is composed
        exactly."""
        return self.limit.left(self.spending)

    def with_one_more(self, charged: Fraction, cells: Cells | None) -> Spending:
        """The composition of all releases with this one."""
        return Spending.of([*((entry.charged, entry.cells) for entry in self.entries), (charged, cells)])


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Refuse records that no ledger writes."""
    try:
        yield
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as problem:
        raise LedgerError(f"{path}: has a record that no ledger writes ({problem!r}); it was edited") from problem


def _texts(content: Content, *names: str) -> dict[str, Any]:
    if not all(isinstance(content[name], str) for name in names):
        raise TypeError(f"{', '.join(names)} must be texts")
    return {name: content[name] for name in names}


def read_added(records: list[Record], path: Path) -> dict[int, str]:
    """The data sets that were declared after the ledger was made, by the position of the record."""
    with _reading(path):
        every = enumerate(record.content for record in records)
        return {number: _texts(one, "dataset")["dataset"] for number, one in every if one["event"] == "added"}


def read_reviews(records: list[Record], path: Path) -> tuple[Review, ...]:
    """The reviews that the records of this file hold."""
    names = ("time", "reviewer", "note", "title", "plan_sha256")
    with _reading(path):
        contents = [record.content for record in records if record.content["event"] == "reviewed"]
        return tuple(Review(**_texts(content, *names)) for content in contents)


def read_entries(records: list[Record], path: Path) -> tuple[Entry, ...]:
    """The releases that the records of this file speak of, each with its completion."""
    contents = [record.content for record in records]
    with _reading(path):
        done = {content["reservation"]: content for content in contents if content["event"] == "completed"}
        every = enumerate(contents)
        return tuple(_entry(number, one, done.get(number, {})) for number, one in every if one["event"] == "reserved")


def _entry(number: int, reserved: Content, completion: Content) -> Entry:
    stated = _texts(reserved, "time", "dataset", "title", "definition", "unit", "plan_sha256")
    stated |= {name: Fraction(reserved[name]) for name in ("cost", "charged")}
    completed, card = completion.get("time"), completion.get("card_sha256")
    return Entry(number, completed=completed, card_sha256=card, cells=spending.read(reserved), **stated)


# The protected unit in a ledger: losses add up for one unit only, under the same conditions.


class OtherUnit(Refusal):
    """A release that protects another unit than the earlier ones of its data set, or under other conditions."""


def unit_text(
    unit: Unit, conditions: Sequence[GuaranteeCondition] = (), reading: Mapping[str, Any] | None = None
) -> str:
    """Describe the distinctions between units, in the words that a ledger keeps.

    Conditions are told apart by a fingerprint too: of the hierarchies and numbers that they are about, and of how the
    private table is read.

    >>> unit_text(Unit("trip", neighbours="replace"))
    'trip, exactly 1 record (declared), replace'
    """
    text = f"{unit.entity.strip()}, {unit.limits}"
    if not conditions:
        return text
    return f"{text}, {only_if(conditions)} (fingerprint {fingerprint(conditions, reading or {})})"


# The names of data sets and units: which are the same, and which look as if they might be.

_ALIKE = 0.8


def key(name: str) -> str:
    """The distinctive part of a name: not capitals or spaces, lest a variant spelling get a budget of its own."""
    return normalize("NFKC", spelt(name)).casefold()


def spelt(name: str, what: str = "data set") -> str:
    """Return a name as it is kept: with single spaces, and printable."""
    spelling = " ".join(name.split())
    if not spelling or not spelling.isprintable():
        raise LedgerError(f"The {what} is named {name!r}; give it a name of printable characters")
    return spelling


def new(name: str) -> str:
    """Return the name of a data set that a ledger does not know yet, refusing one with a password, kept for good."""
    spelling = spelt(name)
    if discreet(spelling) != spelling:
        raise LedgerError(
            f"The data set is named {spelling!r}, which holds a password, and a ledger keeps and shows its names for "
            "good: give it a plain name, such as 'census 2021'"
        )
    return spelling


def alike(name: str, others: Iterable[str]) -> list[str]:
    """Return the names that are easily taken for this one: they differ in digits, signs, accents, a word or a letter.

    >>> alike("flights-v2", ["Flights", "fights 2001", "schools"])
    ['Flights', 'fights 2001']
    """

    def letters(text: str) -> str:
        return "".join(c for c in normalize("NFKD", key(text)) if category(c).startswith("L")) or key(text)

    def is_alike(one: str, other: str) -> bool:
        if min(len(one), len(other)) >= 3 and (one in other or other in one):
            return True
        matcher = SequenceMatcher(None, one, other, autojunk=False)
        return matcher.real_quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE

    return [other for other in others if is_alike(letters(name), letters(other))]


def listed(names: Iterable[str], most: int = 10) -> str:
    """Write names in a row, not more than a reader wants."""
    every = list(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more
