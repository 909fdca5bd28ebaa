"""The checks of a card that are arithmetic: the loss from the noise, its conversion, and what adds up with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from typing import Any

from treetop.card.rebuild import rebuild_unit
from treetop.domain.unit import drops
from treetop.ledger.budget import Budget, Spending
from treetop.noise import LAWS, DiscreteGaussian
from treetop.noise.law import described_law
from treetop.privacy import TOTAL, Loss, Unit, epsilon_from_rho, rho_from_epsilon
from treetop.privacy.accountant import cells_moved, cost, exact_delta
from treetop.privacy.composition import Cells, gaussian_rho


def plan_hash(card: dict[str, Any]) -> Iterator[str]:
    """Hash the plan that a card describes."""
    digest = sha256(json.dumps(card["plan"], sort_keys=True).encode()).hexdigest()
    if digest != card["plan_sha256"]:
        yield f"card.json: plan_sha256 is {card['plan_sha256']}, but the plan that it describes has {digest}"


def amounts(card: object, where: str = "") -> Iterator[str]:
    """Compare every exact number with the float that stands beside it."""
    if isinstance(card, list):
        for index, item in enumerate(card):
            yield from amounts(item, f"{where}[{index}]")
    elif isinstance(card, dict):
        if card.keys() == {"exact", "value"} and card["exact"] is not None:
            if float(Fraction(card["exact"])) != card["value"]:
                yield f"card.json: {where} is {card['exact']}, but its value is {card['value']}"
            if str(Fraction(card["exact"])) != card["exact"]:
                yield f"card.json: {where} is {card['exact']}, which is not in its lowest terms"
        for name, item in card.items():
            yield from amounts(item, f"{where}.{name}" if where else str(name))


def _tables(card: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all that may be measured: the levels of the spine, the margins beside it, and what theta is chosen by."""
    return [*card["levels"], *card.get("margins", []), *card.get("choice", [])]


def loss(card: dict[str, Any]) -> Iterator[str]:
    """Recompute what every level and margin costs from its noise and its sensitivity, and sum it up, exactly."""
    unit = rebuild_unit(card)
    total = Fraction(0)
    for level in _tables(card):
        if level["noise"] is None:
            told = unit.total_is_exact(drops(card["plan"]["unknown"])) or unit.total_follows
            # Whether facts decide the total is found where all that the plan gives is computed again.
            if level["name"] == TOTAL and not told and "facts" not in card["plan"]:
                yield "levels.total is not measured, but neighbours may differ in their total"
            continue
        change, noise = unit.sensitivity(level["name"]), level["noise"]
        expected = {"l1": change.l1, "l2_squared": change.l2_squared}
        if level["sensitivity"] != expected:
            yield f"levels.{level['name']}.sensitivity is {level['sensitivity']}, but a unit can move it by {expected}"
        parameter = LAWS[noise["law"]].parameter
        law = described_law({"law": noise["law"], parameter: noise[parameter]["exact"]})
        spent = cost(unit, level["name"], law)
        total += spent
        if spent != Fraction(level["cost"]["exact"]):
            stated = level["cost"]["exact"]
            yield f"levels.{level['name']}.cost is {stated}, but its noise and sensitivity cost {spent}"
    loss = card["loss"]
    name = "rho" if loss["rho"] else "epsilon"
    if loss[name]["exact"] is None or total != Fraction(loss[name]["exact"]):
        yield f"loss.{name} is {loss[name]['exact']}, but the levels together cost {total}"


def conversion(card: dict[str, Any]) -> Iterator[str]:
    """Convert rho to epsilon again or, with exact accounting, the noise of all levels to delta."""
    loss, stated = card["loss"], card["loss"]["epsilon"]
    exact = None if stated["exact"] is None else Fraction(stated["exact"])
    if "accounting" in loss:
        yield from _exact(card, exact)
        return
    if loss["rho"] is None:
        return
    rho = Fraction(loss["rho"]["exact"])
    least = 0.0 if rho == 0 else epsilon_from_rho(rho, Fraction(loss["delta"]["exact"]))
    # A stated epsilon is turned into rho rounded down, so it may be above what its rho needs, by a hair.
    if not least <= stated["value"] <= least * (1 + 1e-9):
        yield f"loss.epsilon is {stated['value']}, but rho {loss['rho']['exact']} gives {least}"


def _exact(card: dict[str, Any], epsilon: Fraction | None) -> Iterator[str]:
    """Compute the delta of the noise of all levels together."""
    loss, unit = card["loss"], rebuild_unit(card)
    if loss["rho"] is not None and Fraction(loss["rho"]["exact"]) == 0:
        return  # nothing is measured, so there is nothing to account for
    if loss["definition"] != "approximate" or epsilon is None or loss["rho"] is None or loss["delta"] is None:
        yield "loss.accounting is exact, but the loss is not stated as epsilon and delta"
        return
    delta = Fraction(loss["delta"]["exact"])
    if Fraction(loss["rho"]["exact"]) <= rho_from_epsilon(epsilon, delta):
        return
    found = exact_delta(epsilon, _cells(card, unit))
    if found > delta:
        stated = loss["delta"]["value"]
        yield f"loss.delta is {stated}, but the noise of all levels has delta {found} at epsilon {epsilon}"


def _cells(card: dict[str, Any], unit: Unit) -> Cells:
    """What one unit moves by one, with the noise on it."""
    return tuple(
        (Fraction(level["noise"]["variance"]["exact"]), cells_moved(unit, level["name"]))
        for level in _tables(card)
        if level["noise"] is not None
    )


def coverage(card: dict[str, Any]) -> Iterator[str]:
    """See that a trial on a public twin is about the levels and margins of the plan."""
    names = [table["name"] for table in _tables(card)]
    tried = card["accuracy"].get("coverage", {}).get("twin", ())
    if any(later["level"] <= earlier["level"] for earlier, later in pairwise(tried)):
        yield "accuracy.coverage.twin: a level stands twice, or out of order"
    for one in tried:
        if names[one["level"] : one["level"] + 1] != [one["name"]]:
            yield f"accuracy.coverage.twin: level {one['level']} is not {one['name']}"
        if one["covered"] > one["nodes"]:
            yield f"accuracy.coverage.twin: {one['covered']} intervals of {one['nodes']} held at {one['name']}"


def composition(card: dict[str, Any]) -> Iterator[str]:
    """Add up what the ledger's entries cost."""
    told = card["composition"]
    if not told["ledger"]:
        return
    earlier = sum((Fraction(entry["charged"]["exact"]) for entry in told["earlier"]), Fraction(0))
    before, charged, after, budget = (
        Fraction(told[name]["exact"]) for name in ("spent_before", "charged", "spent_after", "budget")
    )
    if earlier != before:
        yield f"composition.spent_before is {before}, but the earlier releases sum to {earlier}"
    if before + charged != after:
        yield f"composition.spent_after is {after}, but {before} and {charged} make {before + charged}"
    if "together" in told:
        yield from _together(card, told)
    elif after > budget:
        yield f"composition.spent_after is {after}, more than the budget {budget}"
    loss = card["loss"]
    own = Fraction((loss["rho"] or loss["epsilon"])["exact"])
    expected = own**2 / 2 if loss["rho"] is None and told["currency"] == "rho" else own
    if charged != expected:
        yield f"composition.charged is {charged}, but this release costs {expected}"
    yield from _entries(told)


def _together(card: dict[str, Any], told: dict[str, Any]) -> Iterator[str]:
    """Compose what is known of the noise of all releases again, and compare it with the budget."""
    stated, unit = told["together"], rebuild_unit(card)
    gaussian = card["loss"]["definition"] != "pure" and all(
        level["noise"] is None or level["noise"]["law"] == DiscreteGaussian.name for level in _tables(card)
    )
    cells = _cells(card, unit) if gaussian and unit.moves_by_one else None
    own = None if cells is None else gaussian_rho(cells)
    releases = [(Fraction(told["charged"]["exact"]), own)]
    for entry in told["earlier"]:
        known = Fraction(entry["gaussian"]["exact"]) if "gaussian" in entry else None
        releases.append((Fraction(entry["charged"]["exact"]), known))
    spent = Spending(
        charged=sum((charged for charged, _ in releases), Fraction(0)),
        gaussian=sum((known for _, known in releases if known is not None), Fraction(0)),
        other=sum((charged for charged, known in releases if known is None), Fraction(0)),
        alone=cells if len(releases) == 1 else None,
    )
    for name in ("gaussian", "other"):
        sum_of = getattr(spent, name)
        if Fraction(stated[name]["exact"]) != sum_of:
            yield f"composition.together.{name} is {stated[name]['exact']}, but the releases sum to {sum_of}"
    epsilon, delta = (Fraction(stated[name]["exact"]) for name in ("budget", "delta"))
    budget = Budget(Loss(epsilon=epsilon, delta=delta), Fraction(told["budget"]["exact"]))
    if budget.amount > rho_from_epsilon(epsilon, delta):
        yield f"composition.budget is {budget.amount}, more than epsilon {epsilon} at delta {delta} allows"
    if not budget.covers(spent):
        yield f"composition: all releases together come to more than epsilon {epsilon} at delta {delta}"
    found = budget.epsilon_of(spent)
    if found is None or not found <= stated["epsilon"] <= found * (1 + 1e-9):
        yield f"composition.together.epsilon is {stated['epsilon']}, but the releases come to {found}"


def _entries(told: dict[str, Any]) -> Iterator[str]:
    """See that the earlier entries could be those of a ledger."""
    numbers = [0, *(entry["number"] for entry in told["earlier"]), told["reservation"]["number"]]
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        yield f"composition: the entries are numbered {numbers[1:]}, which do not rise"
    for entry in told["earlier"]:
        if (entry["state"] == "complete") != (entry["card_sha256"] is not None):
            yield f"composition.earlier: entry {entry['number']} is {entry['state']}, which does not fit its card"
