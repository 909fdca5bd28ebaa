"""Charge a ledger: check before reading data, charge before drawing noise, complete when the run is done."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from treetop._util.lazy import changed
from treetop._util.system import held_signals
from treetop.card import RunInfo
from treetop.card.meaning import composed, expected_composition, reserved_composition
from treetop.counts.graph_reader import rules_of
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import PlanError, TreetopError, Unfinished
from treetop.io.source import as_source
from treetop.io.table import Table
from treetop.ledger import Ledger, Reservation, unit_text, warn_of_network
from treetop.ledger.entry import listed
from treetop.measure.questions import Batch
from treetop.plan.group_plan import inner
from treetop.plan.plan import Plan
from treetop.publishing.releasing import Run, RunOptions, measure_release
from treetop.release.release import Release

_log = logging.getLogger("treetop")


Charged: TypeAlias = Plan | Batch
"""What is charged to a ledger: a plan, or a batch of questions."""


def reading_of(
    table: Table,
    columns: Mapping[str, str] | None = None,
    count: str | None = None,
    attributes: Mapping[str, Hierarchy] | None = None,
) -> dict[str, Any]:
    """Return how a private table becomes records, as plain values. Conditions on its counts refer to these records.

    Reads nothing. The table's location is not included: a ledger identifies the table by the name of the data set.
    """
    source, rules = as_source(getattr(table, "counted", table)), rules_of(table)
    return {
        "columns": dict(columns or {}),
        "count": count,
        "keep": None if rules.keep is None else {name: list(values) for name, values in rules.keep.items()},
        "drop": None if rules.drop is None else {name: list(values) for name, values in rules.drop.items()},
        "query": None if source is None else source.query,
        "prepare": None if source is None or source.prepare is None else repr(source.prepare),
        "coded": {name: repr(tree.coding) for name, tree in (attributes or {}).items() if tree.coding is not None},
    }


class Account:
    """A data set of a ledger, and the charge of one run."""

    def __init__(self, ledger: str | Path | Ledger, dataset: str | None = None, expect_head: str | None = None) -> None:
        """Open the account; report problems with the ledger or the name before anything is charged."""
        self.name = str(ledger.path if isinstance(ledger, Ledger) else ledger)
        if isinstance(ledger, Ledger) and expect_head is None:
            self.ledger = ledger
        else:
            self.ledger = Ledger.open(self.name, head=expect_head)
        self.dataset = self.ledger.dataset_named(dataset)
        self.reservation: Reservation | None = None
        """The charge; None before the loss is charged."""
        near = self.ledger.alike(self.dataset) if self.ledger.any_dataset else []
        if near:
            _log.warning(
                "%r is a new data set of %s, with a whole budget of its own, and looks like %s: the same data under "
                "two names pays only half of what it costs",
                self.dataset,
                self.name,
                listed(near),
            )
        warn_of_network(self.ledger.path)

    @staticmethod
    def of_run(options: RunOptions) -> Account | None:
        """Return the account that the options name; None without a ledger."""
        if options.ledger is None:
            for name in ("dataset", "expect_head"):
                if getattr(options, name) is not None:
                    raise PlanError(f"{name} is about a ledger: give the ledger as well")
            return None
        if options.testing_key is not None:
            raise PlanError("a release with a testing key protects nobody and is not charged: leave the ledger out")
        return Account(options.ledger, options.dataset, options.expect_head)

    def check(self, asked: Charged, reading: Mapping[str, Any] | None = None) -> None:
        """Refuse a charge that exceeds the budget; charge nothing. `reading` comes from `reading_of`."""
        unit = unit_text(asked.unit, asked.conditions, reading)
        self.ledger.check(self.dataset, asked.spent, asked.loss.currency, unit, asked.cells)

    def reserve(self, asked: Charged, title: str, digest: str, reading: Mapping[str, Any] | None = None) -> Reservation:
        """Charge the loss. From here on it is spent, even if the run fails.

        Ctrl-C is deferred until the charge is recorded here, so that a charge in the ledger is always reported.
        """
        unit = unit_text(asked.unit, asked.conditions, reading)
        with held_signals():
            self.reservation = self.ledger.reserve(
                self.dataset, asked.spent, asked.loss.currency, unit, title, digest, asked.cells
            )
        return self.reservation

    def complete(self, sha256: str, answers: Sequence[Any] = ()) -> str | None:
        """Record that the run is done, and return the ledger's fingerprint (keep a copy elsewhere)."""
        return None if self.reservation is None else self.reservation.complete(sha256, answers)


@contextmanager
def report_spent_loss(account: Account | None) -> Iterator[None]:
    """If the block fails after its loss was charged, log that the loss stays spent, and raise `Unfinished`."""
    try:
        yield
    except BaseException as problem:  # whatever it is, also too little memory
        charged = None if account is None else account.reservation
        if account is None or charged is None:
            raise
        _log.warning("the loss stays spent: entry %s of %s", charged.number, account.name)
        _log.warning("ledger head: %s", charged.sha256)
        if isinstance(problem, TreetopError) and not isinstance(problem, Unfinished):
            raise Unfinished(str(problem)) from problem
        raise


@dataclass
class ChargedRun:
    """One run of a plan, charged to an account if there is one. The card states the ledger's balance."""

    plan: Plan
    options: RunOptions
    facts: RunInfo
    """Card fields that the plan does not contain."""
    account: Account | None = None

    def state(self, **facts: Any) -> None:
        """Add fields to the card."""
        self.facts = replace(self.facts, **facts)

    def check_budget(self, source: Any) -> None:
        """Refuse a run that the ledger does not allow, before the table is read."""
        if self.account is None:
            return
        self.account.check(self.plan, self._reading(source))
        self.state(composition=expected_composition(self.account.ledger, self.account.dataset, self.plan))

    def __call__(self, source: Any) -> Release:
        """Run the plan; its loss is charged when the table has been read."""
        if self.account is None:
            return measure_release(self.plan, source, Run(self.options, self.facts, self.options.before_measuring))
        reading = self._reading(source)
        run = Run(self.options, self.facts, lambda: self._reserve(reading))
        release = measure_release(self.plan, source, run)
        card = release.card | {"composition": composed(self.facts.composition, self.plan)}
        return changed(release, card=card, reservation=self.account.reservation)

    def _reading(self, source: Any) -> dict[str, Any]:
        return reading_of(inner(source), self.facts.columns, self.facts.count, self.plan.spine.attributes)

    def _reserve(self, reading: dict[str, Any]) -> None:
        assert self.account is not None
        if self.options.before_measuring is not None:
            self.options.before_measuring()
        plan = self.plan
        reservation = self.account.reserve(plan, plan.title, plan.digest, reading)
        self.state(composition=reserved_composition(self.account.ledger, reservation))
