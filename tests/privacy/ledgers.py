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
from itertools import cycle, islice, permutations, product
from pathlib import Path

import treetop as tt
from treetop import Ledger
from treetop.errors import Overspent
from treetop.ledger import OtherUnit, unit_text
from treetop.noise import DiscreteGaussian
from treetop.privacy.relation import GraphRules, GraphUnit, unit_of
from treetop.publishing._charging import Account

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


AREAS = tt.Hierarchy.from_prefixes(["A11", "A12", "A21", "B11"], widths=[1, 2], levels=["state", "county", "town"])
COUNTED = tt.Spine(["place.state", "place.county", "place.town"], {"place": AREAS})
PURE = tt.Loss(epsilon=1)
Towns = tuple[int, ...]
"""How many records there are in each of the four towns."""


def _exact(plan: tt.Plan, towns: Towns) -> list[Towns]:
    """The counts that a release tells without noise: of the levels that the plan measures none of."""
    tables: list[Towns] = [(sum(towns),)]
    for depth, nodes in enumerate(AREAS.sizes):
        above = AREAS.ancestors(depth)
        tables.append(tuple(sum(n for n, at in zip(towns, above, strict=True) if at == node) for node in range(nodes)))
    return [table for level, table in zip(plan.levels, tables, strict=True) if level.is_exact]


def _tables(unit: tt.Unit) -> Iterator[tuple[Towns, Towns]]:
    """Small tables, and what one record can make of each: it is elsewhere or, where it may be missing, nowhere."""
    for towns in product(range(1, 3), repeat=4):
        for one, other in product(range(4), (*range(4), None)):
            if other is not None or unit.may_be_missing:
                yield towns, tuple(n - (town == one) + (town == other) for town, n in enumerate(towns))


def _charged(ledger: Ledger, plans: list[tt.Plan]) -> list[tt.Plan]:
    """Charge plans to one data set, and return those that the ledger has taken."""
    taken = []
    for plan in plans:
        account = Account(Ledger.open(ledger.path), "data")
        try:
            account.check(plan)
            account.reserve(plan, "A release", plan.digest)
        except OtherUnit:
            continue
        taken.append(plan)
    return taken


@audit
def what_neighbours_of_one_ledger_agree_on(*plans: tt.Plan) -> str | None:
    """Charge plans to one data set, and look at neighbours that one of them has: none may tell them apart for certain.

    A ledger that has added losses up says that all of them together bound what is told of these neighbours.
    """
    for order in permutations(plans):
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger.create(Path(folder, "ledger"), loss=tt.Loss(epsilon=100), datasets=("data",))
            taken = _charged(ledger, list(order))
        for own in taken:
            for one, other in _tables(own.unit):
                if _exact(own, one) != _exact(own, other):
                    continue  # no neighbours by the card of this release
                if any(_exact(plan, one) != _exact(plan, other) for plan in taken):
                    return f"{one} and {other} are neighbours by one card, and another release tells them apart"
    return None


@audit
def friendships_of_one_ledger() -> str | None:
    """Charge directed and undirected edges: two people who list each other are two edges, or one."""
    towns = tt.Spine.origin_first(origin=PLACE, destination=PLACE)
    plans: list[tt.Plan] = [
        tt.Plan(towns, GraphUnit(unit_of("edge", "add-remove"), GraphRules("edge", directed)), PURE, margins="none")
        for directed in (True, False)
    ]
    degrees: list[tt.Plan] = [
        tt.degree_plan("edge", "add-remove", PURE, 3, directed=directed) for directed in (True, False)
    ]
    for given in (plans, plans[::-1], degrees, [plans[0], degrees[1]]):
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger.create(Path(folder, "ledger"), loss=tt.Loss(epsilon=100), datasets=("data",))
            taken = _charged(ledger, given)
            told = ledger.spent("data")
        if not all(plan.graph is not None and plan.graph.directed for plan in taken):
            # One friendship is an edge of the undirected graph, and both of its rows in the directed one.
            shown = sum(plan.spent * (2 if plan.graph is not None and plan.graph.directed else 1) for plan in taken)
            if shown > told:
                return f"a mutual friendship shows {shown}, and the ledger says {told}"
    return None


def condition_audits() -> dict[str, Audit]:
    """Releases of one data set that neighbours must agree on different things for."""
    trip, missing = (tt.Unit("trip", neighbours="replace", may_be_missing=may) for may in (False, True))
    plain = tt.Plan(COUNTED, trip, PURE, margins="none")
    states, counties = (
        tt.Plan(COUNTED, trip, PURE, margins="none", facts={f"place.{level}": tt.Fact(invariant=True)})
        for level in ("state", "county")
    )
    return {
        "ledger, invariants": partial(what_neighbours_of_one_ledger_agree_on, states, plain),
        "ledger, other invariants": partial(what_neighbours_of_one_ledger_agree_on, states, counties),
        "ledger, exact totals": partial(
            what_neighbours_of_one_ledger_agree_on, plain, tt.Plan(COUNTED, missing, PURE, margins="none")
        ),
        "ledger, directions": friendships_of_one_ledger,
    }


def ledger_audits() -> dict[str, Audit]:
    """A ledger for each relation, one that holds what only rho is known of, and those of other conditions."""
    return condition_audits() | {
        "ledger": partial(releases_of_one_ledger, "replace", Fraction(1)),
        "ledger, add-remove": partial(releases_of_one_ledger, "add-remove", Fraction(3, 2)),
        "ledger, beside rho": partial(releases_of_one_ledger, "replace", Fraction(1), Fraction(1, 5)),
    }
