"""What one record more or less can show where the limit of records is enforced: every small table, every outcome.

A unit of up to m + 1 records lives in four towns of two regions, alone: whoever else is there moves no difference. Of
the records beyond m, each choice of m is as likely as any other, so that what is measured has a law that is a mixture.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

import treetop as tt
from treetop.card.meaning import meaning
from treetop.noise import Law

from .audits import Audit, audit
from .divergence import TOLERANCE, masses

TOWNS = ("A1", "A2", "B1", "B2")
PLACES = tt.Hierarchy.from_prefixes(TOWNS, widths=[1], levels=["region", "town"])
SPINE = tt.Spine(["place.region", "place.town"], {"place": PLACES})
WEIGHTS = {"total": 1, "place.region": 9, "place.town": 10}
Records = tuple[int, ...]


def plan_for(loss: tt.Loss, most: int) -> tt.Plan:
    """A plan in which the total has little of the loss, so that what moves two cells of a level costs most."""
    return tt.Plan(SPINE, tt.Unit("person", most, "add-remove", id="who"), loss, split=WEIGHTS)


def stated(plan: tt.Plan) -> dict[str, float | None]:
    """What the card says of one record."""
    return next(row for row in meaning(plan) if row["units"] is None)


def laws_of(plan: tt.Plan) -> list[Law]:
    """The noise of the seven cells: the total, two regions, four towns."""
    laws = [level.law for level in plan.levels for _ in range(level.nodes)]
    assert len(laws) == 7
    return laws


def cells(records: Records) -> Records:
    towns = [records.count(town) for town in range(4)]
    return (len(records), towns[0] + towns[1], towns[2] + towns[3], *towns)


def kept(records: Records, most: int) -> dict[Records, Fraction]:
    """The law of the cells that are counted, over the choice of the records that are kept."""
    choices = list(combinations(records, min(most, len(records))))
    law: dict[Records, Fraction] = {}
    for choice in choices:
        law[cells(choice)] = law.get(cells(choice), Fraction(0)) + Fraction(1, len(choices))
    return law


def pairs(most: int) -> Iterator[tuple[dict[Records, Fraction], dict[Records, Fraction]]]:
    """The laws of the cells without and with one record more, for every unit and every record."""
    for size in range(most + 1):
        for records in combinations_with_replacement(range(4), size):
            for more in range(4):
                yield kept(records, most), kept((*records, more), most)


def supremum(plan: tt.Plan) -> float:
    """The largest log ratio of the probabilities of any measurements, with Laplace noise.

    Between the least and the largest count of a cell every value is tried; beyond them, ratios stay as they are.
    """
    most = plan.unit.contributions
    rates = np.array([float(law.rate) for law in laws_of(plan)])
    outcomes = np.array(list(product(range(most + 1), repeat=7)))
    worst = 0.0
    seen = {}
    for laws in pairs(most):
        logs = []
        for law in laws:
            key = tuple(sorted(law.items()))
            if key not in seen:
                terms = [math.log(p) - np.abs(outcomes - np.array(at)) @ rates for at, p in law.items()]
                seen[key] = np.logaddexp.reduce(terms, axis=0)
            logs.append(seen[key])
        worst = max(worst, float(np.abs(logs[1] - logs[0]).max()))
    return worst


def two_laws(plan: tt.Plan) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The laws of all that is measured of a full unit in one town, without and with a record in another region.

    Only the regions and the two towns differ; the four cells are independent of the others.
    """
    most = plan.unit.contributions
    laws = [laws_of(plan)[cell] for cell in (1, 2, 3, 5)]

    def joint(counts: tuple[int, ...]) -> NDArray[np.float64]:
        parts = []
        for law, count in zip(laws, counts, strict=True):
            reach = law.margin(Fraction(1, 2**40)) + most + 1
            around = masses(law, reach + most + 1)
            start = most + 1 - count
            parts.append(around[start : start + 2 * reach + 1])
        joined: NDArray[np.float64] = np.einsum("a,b,c,d->abcd", *parts).ravel()
        return joined

    alone = joint((most, 0, most, 0))
    displaced = joint((most - 1, 1, most - 1, 1))
    share = most / (most + 1)
    return alone, (1 - share) * alone + share * displaced


def largest_rho(plan: tt.Plan) -> float:
    """The largest Rényi divergence over its order, of many orders and both directions."""
    one, other = two_laws(plan)
    worst = 0.0
    for here, there in ((one, other), (other, one)):
        for order in (1.01, 1.5, 2, 3, 5, 8, 16, 32, 64):
            logs = order * np.log(here) + (1 - order) * np.log(there)
            worst = max(worst, float(np.logaddexp.reduce(logs)) / (order - 1) / order)
    return worst


def delta_at(plan: tt.Plan, epsilon: float) -> float:
    """The delta of one record at an epsilon, in the worse direction."""
    one, other = two_laws(plan)
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((one, other), (other, one)))


@audit
def the_loss_of_one_record(loss: tt.Loss, most: int) -> str | None:
    """Compare what the card says of one record with what it can show at most."""
    plan = plan_for(loss, most)
    row = stated(plan)
    if loss.definition == "pure":
        found, told = supremum(plan), row["epsilon"]
    elif loss.accounting == "exact":
        assert row["epsilon"] is not None and loss.delta is not None
        found, told = delta_at(plan, row["epsilon"]), float(loss.delta)
    else:
        found, told = largest_rho(plan), row["rho"]
    assert told is not None
    if found > told * (1 + TOLERANCE):
        return f"one record shows {found:.4g}, and the card says {told:.4g}"
    return None


CASES = (
    (tt.Loss(epsilon=6), 3),
    (tt.Loss(epsilon=3), 2),
    (tt.Loss(epsilon=1), 1),
    (tt.Loss(rho=3), 2),
    (tt.Loss(rho=1), 1),
    (tt.Loss(epsilon=2, delta=Fraction(1, 50), accounting="exact"), 1),
)


def record_audits() -> dict[str, Audit]:
    """The audits of the card's row about one record."""
    return {
        f"one record, {most} kept, {loss.definition}{', exact' * (loss.accounting == 'exact')}": partial(
            the_loss_of_one_record, loss, most
        )
        for loss, most in CASES
    }
