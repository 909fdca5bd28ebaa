"""The loss spent on data sets: a budget for each data set, and reservations that are never given back.

A name is all that a ledger knows of a data set, so that one table under two names would have two budgets. A ledger
therefore takes only the names that the steward declares; one that is made without any is for the first that is charged.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from secrets import token_hex
from shlex import quote
from typing import Any

from treetop._util.files import resolved
from treetop.errors import LedgerError, Overspent
from treetop.ledger import budget as spending
from treetop.ledger._log import Content, Log, Record
from treetop.ledger.budget import Budget, Spending
from treetop.ledger.entry import (
    Balance,
    Entry,
    OtherUnit,
    Review,
    alike,
    key,
    listed,
    read_added,
    read_entries,
    read_reviews,
    spelt,
)
from treetop.ledger.entry import new as new_name
from treetop.privacy.composition import Cells
from treetop.privacy.loss import Currency, Loss

DEFAULT_DATASET = "default"
TIMEOUT = 30.0


@dataclass(frozen=True)
class Reservation:
    """A loss that is spent: it is on disk, and the measuring may begin."""

    number: int
    dataset: str
    charged: Fraction
    new: bool
    """Whether the ledger had nothing on this data set before: a misspelt name looks like that."""
    sha256: str
    """The hash that vouches for this entry and every one before it; noted elsewhere, it shows a rollback."""
    log: Log

    @property
    def is_complete(self) -> bool:
        """Whether a folder, or answers, are recorded for it."""
        return any(link.content.get("reservation") == self.number for link in self.log.read())

    def complete(self, card_sha256: str, answers: Sequence[Content] = ()) -> str:
        """Record that the release folder is in place, under the SHA-256 of its card; or the answers to questions.

        One record does both, so that a question is answered for good or not at all. Returns the new head.
        """
        digest = _digest(card_sha256, "card")

        def decide(records: list[Record]) -> Content:
            recorded = records[self.number].sha256 if self.number < len(records) else None
            if recorded != self.sha256:
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

        return self.log.append(decide)[1].sha256


@dataclass(frozen=True)
class Ledger:
    """The record of the loss spent on data sets: each, by its name, has the whole budget to itself."""

    log: Log
    created: str
    budget: Budget
    datasets: tuple[str, ...]
    """The data sets that it was made for; others may have been added since."""
    any_dataset: bool
    """Whether any new name is a data set, with a whole budget; otherwise only the first that is charged, or added."""

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        loss: Loss,
        datasets: tuple[str, ...] = (),
        any_dataset: bool = False,
        timeout: float = TIMEOUT,
    ) -> Ledger:
        """Make a ledger with this budget for each data set; the budget is never changed.

        It takes the data sets that are named, the first that is charged if none is, or with `any_dataset` all names.
        """
        if datasets and any_dataset:
            raise LedgerError(
                "A ledger takes the data sets that are named, or any: give names or any_dataset, not both"
            )
        names: dict[str, str] = {}
        for name in datasets:
            names.setdefault(key(name), new_name(name))
        first = {
            "event": "created",
            "time": _now(),
            **{field: _text(getattr(loss, field)) for field in ("epsilon", "delta", "rho")},
            "budget": _text(loss.budget),
            "datasets": list(names.values()),
            "any_dataset": any_dataset,
        }
        return cls._of(Log.create(Path(path).absolute(), first, timeout))

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, head: str | None = None, timeout: float = TIMEOUT) -> Ledger:
        """Open a ledger and check all of it; wait at most `timeout` seconds while another process writes.

        `head` is a hash that it once ended with, noted elsewhere: a ledger that lacks it is an older copy, and refused
        with `OldCopy`, now and whenever it is read or written through this one.
        """
        return cls._of(Log(Path(path).absolute(), timeout, head if head is None else _digest(head, "ledger's head")))

    @classmethod
    def _of(cls, log: Log) -> Ledger:
        records = log.read()
        try:
            first = records[0].content
            stated: dict[str, Any] = {
                field: Fraction(first[field]) for field in ("epsilon", "delta", "rho") if first[field]
            }
            budget = Budget(Loss(**stated), Fraction(first["budget"]))
            datasets = tuple(first["datasets"])
            ledger = cls(log, first["time"], budget, datasets, bool(first["any_dataset"]))
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
        known = [balance.dataset for balance in self.balances()]
        if known and DEFAULT_DATASET not in known:
            raise LedgerError(
                f"{self.path}: keeps the data sets {listed(known)}: say which one this is about (`dataset`), "
                "so that it is not charged to a fresh budget"
            )
        return DEFAULT_DATASET

    def check(self, dataset: str, cost: Fraction, definition: Currency, unit: str, cells: Cells | None = None) -> None:
        """Refuse a charge that `reserve` would refuse now, and reserve nothing; another process may still be first."""
        charged, unit = self.budget.charge(cost, definition), spelt(unit, "unit")
        self._refuse(self._find(self.log.read(), dataset), charged, unit, spending.checked(cells, cost, definition))

    def reserve(
        self,
        dataset: str,
        cost: Fraction,
        definition: Currency,
        unit: str,
        title: str,
        plan_sha256: str,
        cells: Cells | None = None,
    ) -> Reservation:
        """Charge a release, durably, before its first measurement; `unit` is its protected unit, by `unit_text`.

        `cells` are those that one unit moves by one, with their discrete Gaussian noise: a budget of epsilon and delta
        composes them by their noise, and other releases by their cost.

        Raises `Overspent` if the budget is too small, and `OtherUnit` if the earlier releases protect another unit.
        """
        charged, unit = self.budget.charge(cost, definition), spelt(unit, "unit")
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
            **spending.written(spending.checked(cells, cost, definition)),
        }
        new = False

        def decide(records: list[Record]) -> Content:
            nonlocal new
            balance = self._find(records, dataset)
            self._refuse(balance, charged, unit, cells)
            new = not balance.entries
            # The hash of this record is published, and its time is not: without a salt, the one tells the other.
            return content | {"time": _now(), "dataset": balance.dataset, "salt": token_hex(16)}

        number, record = self.log.append(decide)
        return Reservation(number, record.content["dataset"], charged, new, record.sha256, self.log)

    def add(self, dataset: str) -> str:
        """Declare another data set, with a whole budget of its own, for good; return the new head."""

        def decide(records: list[Record]) -> Content:
            known = self._balances(records).get(key(dataset))
            if known is not None:
                raise LedgerError(f"{self.path}: has the data set {known.dataset!r} already")
            return {"event": "added", "time": _now(), "dataset": new_name(dataset)}

        return self.log.append(decide)[1].sha256

    def review(self, plan_sha256: str, reviewer: str, note: str = "", title: str = "") -> str:
        """Record a second person's review of a plan, by its digest, with their note; return the new head.

        It spends nothing. Programs of before there were reviews pass over the record.
        """
        name = " ".join(reviewer.split())
        if not name:
            raise LedgerError("who has reviewed the plan? Give a name")
        content: Content = {
            "event": "reviewed",
            "time": _now(),
            "reviewer": name,
            "note": note.strip(),
            "title": title,
            "plan_sha256": _digest(plan_sha256, "plan"),
        }
        return self.log.append(lambda _: content)[1].sha256

    def reviews(self, plan_sha256: str | None = None) -> tuple[Review, ...]:
        """Reviews of a plan, by its digest, or of all plans, oldest first."""
        found = read_reviews(self.log.read(), self.path)
        return tuple(one for one in found if plan_sha256 in (None, one.plan_sha256))

    def head(self) -> tuple[int, str]:
        """How many records there are, and the hash that vouches for all; noted elsewhere, it shows a rollback."""
        records = self.log.read()
        return len(records), records[-1].sha256

    def alike(self, dataset: str) -> list[str]:
        """The data sets with names that are easily taken for this one, if the ledger does not know it yet."""
        known = self._balances(self.log.read())
        return [] if key(dataset) in known else alike(dataset, (balance.dataset for balance in known.values()))

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
        balance = known.get(key(dataset))
        return () if balance is None else (balance,)

    def balance(self, dataset: str) -> Balance:
        """The amount left for one data set; all of the budget if it was never charged."""
        return self._find(self.log.read(), dataset)

    def answers(self, dataset: str) -> tuple[Content, ...]:
        """The answers to questions about a data set that were recorded, oldest first; to give them again is free."""
        records = self.log.read()
        numbers = {entry.number for entry in self._find(records, dataset).entries}
        done = (record.content for record in records if record.content.get("reservation") in numbers)
        return tuple(answer for content in done for answer in content.get("answers", ()))

    def spent(self, dataset: str) -> Fraction:
        """The loss spent on a data set: rho, or epsilon when the ledger is pure."""
        return self.balance(dataset).spent

    def remaining(self, dataset: str) -> Fraction:
        """The amount left for a data set; all of the budget if it was never charged."""
        return self.balance(dataset).remaining

    def _find(self, records: list[Record], dataset: str) -> Balance:
        balances = self._balances(records)
        balance = balances.get(key(dataset))
        if balance is None and balances and not self.any_dataset:
            known = [one.dataset for one in balances.values()]
            near = alike(dataset, known)
            raise LedgerError(
                f"{self.path}: has no data set {dataset!r}, and takes these only: {listed(known)}"
                f"{f' ({dataset!r} looks like {listed(near)})' if near else ''}; name one of them. Data about others, "
                f"with a budget of their own, are declared with `treetop ledger add {quote(str(self.path))} "
                f"{quote(spelt(dataset))}`"
            )
        return balance or Balance(new_name(dataset), self.budget, ())

    def _balances(self, records: list[Record]) -> dict[str, Balance]:
        """Return every data set by its key: one pass over the records, however many data sets there are."""
        entries = read_entries(records, self.path)
        named = read_added(records, self.path) | {entry.number: entry.dataset for entry in entries}
        names: dict[str, str] = {}
        for name in (*self.datasets, *(named[number] for number in sorted(named))):
            names.setdefault(key(name), name)  # as it was first spelt
        entries_of: dict[str, list[Entry]] = {name: [] for name in names}
        for entry in entries:
            entries_of[key(entry.dataset)].append(entry)
        balances = {name: Balance(names[name], self.budget, tuple(found)) for name, found in entries_of.items()}
        for balance in balances.values():
            if not self.budget.covers(balance.spending):
                raise LedgerError(f"{self.path}: more is spent on {balance.dataset!r} than its budget; it was edited")
            if len({key(entry.unit) for entry in balance.entries}) > 1:
                raise LedgerError(
                    f"{self.path}: the releases of {balance.dataset!r} protect different units; it was edited"
                )
        return balances

    def _refuse(self, balance: Balance, charged: Fraction, unit: str, cells: Cells | None) -> None:
        if balance.unit is not None and key(balance.unit) != key(unit):
            raise OtherUnit(
                f"The ledger {self.path} adds up the losses of one unit for each data set, and losses for different "
                f"units, or under different conditions, do not add: the earlier releases of {balance.dataset!r} "
                f"protect {balance.unit!r}, this one {unit!r}. Plan for the same unit under the same conditions "
                "(limit, neighbours, invariants, compared facts, direction of edges, and how the table is read), or "
                "charge it to a data set of its own, under another name (`treetop ledger add` declares it), and "
                "remember that the person behind both pays both"
            )
        if not self.budget.covers(balance.with_one_more(charged, cells)):
            budget, spent, asked = self.budget, balance.spending, Spending.of([(charged, cells)])
            advice = "Give the plan a loss of at most what remains" if balance.remaining else "Nothing can be released"
            raise Overspent(
                f"The ledger {self.path} does not cover this release of the data set {balance.dataset!r}: "
                f"spent {budget.say_spent(spent)}, asked {budget.say_spent(asked)}, remaining "
                f"{budget.say_left(spent)}, of a budget of {budget.say(budget.amount)}. {advice}; what was spent never "
                "comes back"
            )


def _digest(text: str, what: str) -> str:
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise LedgerError(f"The SHA-256 of the {what} is {text!r}; give its 64 hexadecimal digits")
    return text


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


# The disk that a ledger is on: one over a network may not keep two machines from writing at once.

MOUNTS = Path("/proc/self/mounts")

_NETWORK = re.compile(r"(nfs\d?|cifs|smb\w*|afs|ncpfs|9p|fuse\.(sshfs|s3fs|rclone|gcsfuse|glusterfs|davfs\w*))")


_log = logging.getLogger("treetop")


def network_disk(path: Path) -> str | None:
    """Return the kind of network file system that holds a file; None for a local disk, or where nothing tells."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        place = resolved(path)
    except OSError:
        return None
    longest, kind = -1, ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) <= 2:
            continue
        mount = Path(re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), fields[1]))
        if place.is_relative_to(mount) and len(mount.parts) >= longest:
            longest, kind = len(mount.parts), fields[2]  # a later line hides an earlier one at the same place
    return kind if _NETWORK.fullmatch(kind) else None


def warn_of_network(path: Path) -> None:
    """Say that a network disk may let two machines spend at once."""
    if (kind := network_disk(path)) is not None:
        _log.warning(
            "%s is on a network disk (%s): locks may not hold there, and two machines may spend the same budget. Keep "
            "a ledger on a local disk, and charge it from one machine",
            path,
            kind,
        )
