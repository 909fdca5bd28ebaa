"""The audit of ledgers: plans are charged until none fits, and what all of them show together is computed.

Charging goes through the code that releases use. What is measured is taken from the plans' own noise, and the law of
what a reader learns from all releases by an accountant of its own.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import treetop as tt
from treetop import Ledger
from treetop.errors import Overspent
from treetop.ledger import unit_text
from treetop.noise import DiscreteGaussian
from treetop.publishing.charging import Account

from .accountant import Losses, coin, gaussian, together
from .audits import Audit, audit

DELTA = Fraction(1, 10**5)
PLACE = tt.Hierarchy.from_prefixes(["A1", "A2", "B1"], widths=[1], levels=["state", "town"])
SPINE = tt.Spine(["place.state", "place.town"], {"place": PLACE})
MOST = 12
"""More releases than fit into any of these budgets."""


def _plans(neighbours: str) -> Iterator[tt.Plan]:
    """Plans whose losses are stated in every way."""
    unit = tt.Unit("trip", neighbours=neighbours)  # type: ignore[arg-type]
    return cycle(
        [
            tt.Plan(SPINE, unit, tt.Loss(epsilon=Fraction(3, 5), delta=DELTA)),
            tt.Plan(SPINE, unit, tt.Loss(rho=Fraction(1, 200))),
            tt.Plan(SPINE, unit, tt.Loss(epsilon=Fraction(1, 2), delta=DELTA, accounting="zcdp"), split={
                name: weight for name, weight in (("total", 1), ("place.state", 1), ("place.town", 3))
                if name != "total" or neighbours == "add-remove"
            }),
        ]
    )  # fmt: skip


def _shown(plan: tt.Plan, step: float) -> Iterator[Losses]:
    """What a release shows at least of two tables that are as different as the unit allows: one record, elsewhere."""
    ends = 2 if plan.unit.neighbours == "replace" else 1
    for part, law in plan.workload.measured:
        assert isinstance(law, DiscreteGaussian)
        yield gaussian(law.variance, step, up=False).times(1 if part.name == "total" else ends)


@audit
def releases_of_one_ledger(neighbours: str, epsilon: Fraction, flip: Fraction | None = None) -> str | None:
    """Charge releases until none fits; one of pure epsilon may have come before, of which only the cost is known."""
    loss = tt.Loss(epsilon=epsilon, delta=DELTA)
    unit = tt.Unit("trip", neighbours=neighbours)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder, "ledger"), loss=loss, datasets=("trips",))
        if flip is not None:
            ledger.reserve("trips", flip, "pure", unit_text(unit), "A coin", "c" * 64)
        charged = []
        for plan in islice(_plans(neighbours), MOST):
            account = Account(Ledger.open(ledger.path), "trips")
            try:
                account.check(plan)
                account.reserve(plan, "Trips", plan.digest)
            except Overspent:
                break
            charged.append(plan)
    step = math.sqrt(2 * float(sum(plan.spent for plan in charged))) / 400
    shown = [one for plan in charged for one in _shown(plan, step)]
    if flip is not None:
        shown.append(coin(float(flip), step, up=False))
    found = together(shown).delta(float(epsilon))
    if found > DELTA:
        return f"{len(charged)} releases have delta {found:.3g} at epsilon {epsilon}, not {float(DELTA):.3g}"
    return None


def ledger_audits() -> dict[str, Audit]:
    """A ledger for each relation, and one that holds what only rho is known of."""
    return {
        "ledger": partial(releases_of_one_ledger, "replace", Fraction(1)),
        "ledger, add-remove": partial(releases_of_one_ledger, "add-remove", Fraction(3, 2)),
        "ledger, beside rho": partial(releases_of_one_ledger, "replace", Fraction(1), Fraction(1, 5)),
    }
