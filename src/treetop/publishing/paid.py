"""A run that is paid for: the budget is checked first, and the card states what the ledger held and holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from treetop.basics.deferred import changed
from treetop.card.composition import expected_composition, reserved_composition
from treetop.card.content import composed
from treetop.plan.groups.planned import inner
from treetop.plan.plan import PurePlan
from treetop.publishing.charging import Account, Milestone, nothing, reading_of
from treetop.publishing.releasing import Run, run
from treetop.release.release import Release


@dataclass
class PaidRun:
    """One run of a plan, charged to an account if there is one."""

    plan: PurePlan
    """What is run."""
    how: Run
    """What it is told."""
    account: Account | None = None
    """Who pays."""
    before_charging: Milestone = nothing
    """Called when the table has been read and nothing has been charged."""

    def state(self, **facts: Any) -> None:
        """State more on the card."""
        self.how = replace(self.how, facts=replace(self.how.facts, **facts))

    def check_budget(self, source: Any) -> None:
        """Refuse what the ledger does not allow, before the table is read."""
        if self.account is None:
            return
        self.account.check(self.plan, self._reading(source))
        self.state(composition=expected_composition(self.account.ledger, self.account.dataset, self.plan))

    def __call__(self, source: Any) -> Release:
        """Run the plan; its loss is charged when the table has been read."""
        if self.account is None:
            return run(self.plan, source, self.how)
        reading = self._reading(source)
        release = run(self.plan, source, replace(self.how, charge=lambda: self._reserve(reading)))
        composition = composed(self.how.facts.composition, self.plan)
        card = release.card | {"composition": composition}
        return changed(release, card=card, reservation=self.account.reservation)

    def _reading(self, source: Any) -> dict[str, Any]:
        return reading_of(inner(source), self.how.columns, self.how.facts.count)

    def _reserve(self, reading: dict[str, Any]) -> None:
        assert self.account is not None
        self.before_charging()
        plan = self.plan
        reservation = self.account.reserve(plan, plan.title, plan.digest, reading)
        self.state(composition=reserved_composition(self.account.ledger, reservation))
