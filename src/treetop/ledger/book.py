"""What has been spent: a budget for each data set, and reservations that are never given back."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from secrets import token_hex
from typing import Any
from unicodedata import normalize

from treetop.errors import LedgerError, Overspent
from treetop.ledger.budget import Budget, Currency
from treetop.ledger.entry import Balance, Entry, read_entries
from treetop.ledger.log import Content, Log, Record
from treetop.ledger.unit import OtherUnit
from treetop.privacy.loss import Loss

DEFAULT_DATASET = "default"
"""The data set that is charged when none is named."""
TIMEOUT = 30.0


@dataclass(frozen=True)
class Reservation:
    """A loss that is spent: it is on disk, and the measuring may begin."""

    number: int
    """The position of its entry."""
    dataset: str
    """The data set that it was charged to."""
    charged: Fraction
    """What it took from the budget."""
    new: bool
    """Whether the ledger had nothing on this data set before: a misspelt name looks like that."""
    sha256: str
    """The hash that vouches for this entry and every one before it; noted elsewhere, it shows a rollback."""
    log: Log
    """The file that holds it."""

    def complete(self, card_sha256: str, answers: Sequence[Content] = ()) -> None:
        """Record that the release folder is in place, under the SHA-256 of its card; or the answers to questions.

        One record does both, so that a question is answered for good or not at all.
        """
        digest = _digest(card_sha256, "card")

        def decide(records: list[Record]) -> Content:
            found = records[self.number].sha256 if self.number < len(records) else None
            if found != self.sha256:
                raise LedgerError(
                    f"{self.log.path}: no longer holds reservation {self.number}; the file was exchanged for "
                    "another. The release is spent all the same: put the right file back"
                )
            if any(link.content.get("reservation") == self.number for link in records):
                raise LedgerError(f"{self.log.path}: reservation {self.number} is complete already")
            return {
                "event": "completed",
                "time": _now(),
                "reservation": self.number,
                "card_sha256": digest,
                **({"answers": list(answers)} if answers else {}),
            }

        self.log.append(decide)


@dataclass(frozen=True)
class Ledger:
    """The record of what was spent on data sets: each, by its name, has the whole budget to itself."""

    log: Log
    """The file."""
    created: str
    """When it was made, UTC."""
    budget: Budget
    """What may be spent on each data set."""
    datasets: tuple[str, ...]
    """The only data sets that it takes; when empty, a data set begins with its first release."""

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        loss: Loss,
        datasets: tuple[str, ...] = (),
        timeout: float = TIMEOUT,
    ) -> Ledger:
        """Make a ledger with this budget for each data set; the budget is never changed."""
        names: dict[str, str] = {}
        for name in datasets:
            names.setdefault(_key(name), _spelt(name))
        first = {
            "event": "created",
            "time": _now(),
            **{field: _text(getattr(loss, field)) for field in ("epsilon", "delta", "rho")},
            "budget": _text(loss.budget),
            "datasets": list(names.values()),
        }
        return cls._of(Log.create(Path(path).absolute(), first, timeout))

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, timeout: float = TIMEOUT) -> Ledger:
        """Open a ledger and check all of it; wait at most `timeout` seconds while another process writes."""
        return cls._of(Log(Path(path).absolute(), timeout))

    @classmethod
    def _of(cls, log: Log) -> Ledger:
        records = log.read()
        try:
            first = records[0].content
            stated: dict[str, Any] = {
                field: Fraction(first[field]) for field in ("epsilon", "delta", "rho") if first[field]
            }
            budget = Budget(Loss(**stated), Fraction(first["budget"]))
            ledger = cls(log, first["time"], budget, tuple(first["datasets"]))
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as problem:
            raise LedgerError(f"{log.path}: does not begin as a ledger does ({problem!r})") from problem
        ledger._balances(records)
        return ledger

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self.log.path

    def dataset_named(self, name: str | None) -> str:
        """Return the data set of a name; without one, the default, unless the ledger knows others to choose from."""
        if name is not None:
            return name
        known = [balance.dataset for balance in self.balances()] or list(self.datasets)
        if known and DEFAULT_DATASET not in known:
            raise LedgerError(
                f"{self.path}: keeps the data sets {', '.join(known)}: say with --dataset which one this is about, "
                "so that it is not charged to a fresh budget"
            )
        return DEFAULT_DATASET

    def check(self, dataset: str, cost: Fraction, definition: Currency, unit: str) -> None:
        """Refuse what `reserve` would refuse now, and reserve nothing; another process may still be first."""
        charged, unit = self.budget.charge(cost, definition), _spelt(unit, "unit")
        self._refuse(self._find(self.log.read(), dataset), charged, unit)

    def reserve(
        self, dataset: str, cost: Fraction, definition: Currency, unit: str, title: str, plan_sha256: str
    ) -> Reservation:
        """Charge a release, durably, before its first measurement; `unit` is what it protects, by `unit_text`.

        Raises `Overspent` if the budget is too small, and `OtherUnit` if the earlier releases protect another unit.
        """
        charged, unit = self.budget.charge(cost, definition), _spelt(unit, "unit")
        content: Content = {
            "event": "reserved",
            "time": "",
            "dataset": "",
            "title": title,
            "definition": definition,
            "cost": _text(cost),
            "charged": _text(charged),
            "unit": unit,
            "plan_sha256": _digest(plan_sha256, "plan"),
        }
        new = False

        def decide(records: list[Record]) -> Content:
            nonlocal new
            balance = self._find(records, dataset)
            self._refuse(balance, charged, unit)
            new = not balance.entries
            # The hash of this record is published, and its time is not: without a salt, the one tells the other.
            return content | {"time": _now(), "dataset": balance.dataset, "salt": token_hex(16)}

        number, record = self.log.append(decide)
        return Reservation(number, record.content["dataset"], charged, new, record.sha256, self.log)

    def entries(self, dataset: str | None = None) -> tuple[Entry, ...]:
        """The releases that were charged, to one data set or to all, oldest first."""
        if dataset is not None:
            return self._find(self.log.read(), dataset).entries
        return read_entries(self.log.read(), self.path)

    def balances(self, dataset: str | None = None) -> tuple[Balance, ...]:
        """Every data set that the ledger knows, or the one of this name if it knows it, as of one moment."""
        known = self._balances(self.log.read())
        if dataset is None:
            return tuple(known.values())
        return tuple(balance for key, balance in known.items() if key == _key(dataset))

    def answers(self, dataset: str) -> tuple[Content, ...]:
        """The answers to questions about a data set that were recorded, oldest first; to give them again is free."""
        records = self.log.read()
        own = {entry.number for entry in self._find(records, dataset).entries}
        done = (record.content for record in records if record.content.get("reservation") in own)
        return tuple(answer for content in done for answer in content.get("answers", ()))

    def spent(self, dataset: str) -> Fraction:
        """What was spent on a data set: rho, or epsilon when the ledger is pure."""
        return self._find(self.log.read(), dataset).spent

    def remaining(self, dataset: str) -> Fraction:
        """What may still be spent on a data set; all of the budget if it was never charged."""
        return self._find(self.log.read(), dataset).remaining

    def _find(self, records: list[Record], dataset: str) -> Balance:
        balances = self._balances(records)
        balance = balances.get(_key(dataset))
        if balance is None and self.datasets:
            raise LedgerError(
                f"{self.path}: has no data set {dataset!r}, and was made for these only: "
                f"{', '.join(self.datasets)}; name one of them"
            )
        return balance or Balance(_spelt(dataset), self.budget.amount, ())

    def _balances(self, records: list[Record]) -> dict[str, Balance]:
        entries = read_entries(records, self.path)
        names = {_key(name): name for name in self.datasets}
        for entry in entries:
            names.setdefault(_key(entry.dataset), entry.dataset)
        balances = {}
        for key, name in names.items():
            own = tuple(entry for entry in entries if _key(entry.dataset) == key)
            balances[key] = Balance(name, self.budget.amount, own)
            if balances[key].remaining < 0:
                raise LedgerError(f"{self.path}: more is spent on {name!r} than its budget; it was edited")
            if len({_key(entry.unit) for entry in own}) > 1:
                raise LedgerError(f"{self.path}: the releases of {name!r} protect different units; it was edited")
        return balances

    def _refuse(self, balance: Balance, charged: Fraction, unit: str) -> None:
        if balance.unit is not None and _key(balance.unit) != _key(unit):
            raise OtherUnit(
                f"The ledger {self.path} adds up the losses of one unit for each data set, and losses for different "
                f"units do not add: the earlier releases of {balance.dataset!r} protect {balance.unit!r}, this one "
                f"{unit!r}. Charge it to a data set of its own, under another name, and remember that the person "
                "behind both pays both"
            )
        if charged > balance.remaining:
            raise Overspent(self._refusal(balance, charged))

    def _refusal(self, balance: Balance, asked: Fraction) -> str:
        say, remaining = self.budget.say, balance.remaining
        advice = "Give the plan a loss of at most what remains" if remaining else "Nothing can be released"
        return (
            f"The ledger {self.path} does not cover this release of the data set {balance.dataset!r}: "
            f"spent {say(balance.spent)}, asked {say(asked)}, remaining {say(remaining, left=True)}, "
            f"of a budget of {say(self.budget.amount)}. {advice}; what was spent never comes back"
        )


def _key(name: str) -> str:
    """What tells names apart: not capitals or spaces, lest a variant spelling get a budget of its own."""
    return normalize("NFKC", _spelt(name)).casefold()


def _spelt(name: str, what: str = "data set") -> str:
    spelt = " ".join(name.split())
    if not spelt or not spelt.isprintable():
        raise LedgerError(f"The {what} is named {name!r}; give it a name of printable characters")
    return spelt


def _digest(text: str, what: str) -> str:
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise LedgerError(f"The SHA-256 of the {what} is {text!r}; give its 64 hexadecimal digits")
    return text


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
