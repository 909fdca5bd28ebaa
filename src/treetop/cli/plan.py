"""`treetop plan`: what a plan will cost and how accurate it will be, before any private data is read."""

from __future__ import annotations

import json
import math
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from treetop.plan import Plan
    from treetop.planfile import PlanFile

UNITS = (5, 10, 50)
"""How many protected units one person may stand behind, for the table of what the loss means."""

_COMPARED_AT = Fraction(1, 10**8)
_PEOPLE = ("person", "individual", "household", "family")
_TRAVEL = ("trip", "journey", "commute")


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="How sure margins and bounds are."
)
@click.option("--json", "as_json", is_flag=True, help="The same numbers for machines.")
def command(plan: Path, confidence: float, as_json: bool) -> None:
    """Show accuracy per level, noise and cost of PLAN; reads no private data."""
    from treetop.planfile import read_plan

    file = read_plan(plan)
    if as_json:
        click.echo(json.dumps(summarise(file, confidence), indent=2))
    else:
        click.echo(render(file, confidence))


def summarise(file: PlanFile, confidence: float) -> dict[str, Any]:
    """Return the numbers of a plan as plain values."""
    plan = file.plan
    described = plan.describe()["levels"]
    rows = plan.accuracy(confidence).to_dicts()
    return {
        "title": plan.title,
        "plan": str(file.path),
        "plan_sha256": plan.digest,
        "leaves": plan.spine.leaves,
        "confidence": confidence,
        "levels": [
            {**row, "cost": level["cost"], "law": level["noise"]}
            for row, level in zip(rows, described, strict=True)
        ],
        "unit": {**plan.describe()["unit"], "enforced": plan.unit.enforced, "sentence": plan.unit.sentence()},
        "loss": _loss(plan),
        "meaning": meaning(plan),
        "exact": exact(plan),
    }


def meaning(plan: Plan) -> list[dict[str, Any]]:
    """Return what the loss comes to for one record, for a unit, and for a person behind several units."""
    unit = plan.unit
    rows = []
    if unit.contributions > 1:
        rows.append(_means("one record", 1, None, _one_record(plan), plan))
    records = "1 record" if unit.contributions == 1 else f"up to {unit.contributions} records"
    rows.append(_means(f"one {unit.entity} ({records})", unit.contributions, 1, plan.spent, plan))
    for units in UNITS:
        # Group privacy: k·epsilon when pure, k²·rho otherwise.
        factor = units if plan.loss.definition == "pure" else units**2
        rows.append(
            _means(_several(plan, units), units * unit.contributions, units, factor * plan.spent, plan)
        )
    return rows


def exact(plan: Plan) -> list[str]:
    """Return what a release tells without noise."""
    told = [
        "the hierarchies: their levels, codes and parents are public, and published as they are",
        "the plan itself: the unit, the loss and the noise of every level",
    ]
    if plan.levels[0].law is None:
        told.insert(
            0,
            "the total number of records: neighbours all have the same one, so it is released without noise, "
            f"and whether a {plan.unit.entity} is in the data at all is not hidden",
        )
    return told


def render(file: PlanFile, confidence: float) -> str:
    """Return the plan's accuracy and cost for people."""
    from treetop.accuracy import text_table
    from treetop.privacy.exact import plain

    plan = file.plan
    percent = f"{100 * confidence:g}%"
    rows = [("what it means for", "epsilon", "odds move by at most")]
    rows += [(row["who"], _short(row["epsilon"]), _factor(row["epsilon"])) for row in meaning(plan)]
    pure = plan.loss.definition == "pure"
    chance = "" if pure else f", but for a chance of delta {plain(plan.loss.delta or _COMPARED_AT)}"
    levels = len(plan.spine.levels)
    size = f"{levels} level{'s' * (levels > 1)}, {plan.spine.leaves:,} possible leaves"
    return "\n".join(
        [
            _bold(plan.title or file.path.name),
            f"{size}; no private data was read.",
            "",
            str(plan.accuracy(confidence)),
            "",
            f"± one: a measurement is within this of the truth, with {percent} confidence.",
            "± all: so are, at once, all counts of the level; most are far closer.",
            "",
            _bold("Cost"),
            _cost(plan),
            plan.unit.sentence(),
            "",
            text_table(rows, left=(0,)),
            "",
            f"The last column bounds how far the release can move anyone's odds about them{chance}.",
            "",
            _bold("Exact and unprotected"),
            *(f"- {thing}" for thing in exact(plan)),
        ]
    )


def _loss(plan: Plan) -> dict[str, Any]:
    loss = plan.loss
    pure = loss.definition == "pure"
    delta = None if pure else loss.delta or _COMPARED_AT
    return {
        "definition": loss.definition,
        "rho": None if pure else float(plan.spent),
        "epsilon": _epsilon(plan.spent, plan),
        "delta": None if delta is None else float(delta),
        "delta_is_stated": loss.delta is not None,
        "spent": str(plan.spent),
    }


def _cost(plan: Plan) -> str:
    from treetop.privacy.exact import plain

    loss = _loss(plan)
    if loss["rho"] is None:
        return f"Epsilon {plain(plan.spent)}, pure differential privacy; Laplace noise."
    compared = "" if loss["delta_is_stated"] else " (the plan states no delta: this one is for comparison)"
    epsilon = plain(Fraction(repr(loss["epsilon"])))  # as it prints, not as the float nearest to it
    return (
        f"Rho {plain(plan.spent)} (zero-concentrated), which is epsilon {epsilon} at delta "
        f"{plain(plan.loss.delta or _COMPARED_AT)}{compared}; Gaussian noise."
    )


def _one_record(plan: Plan) -> Fraction:
    """What the noise costs one record alone, which moves the counts less than a whole unit."""
    from treetop.privacy import Unit

    record = Unit(plan.unit.entity, contributions=1, neighbours=plan.unit.neighbours)
    spent = Fraction(0)
    for level in plan.levels:
        one, all_ = record.sensitivity(level.name), plan.unit.sensitivity(level.name)
        if plan.loss.definition == "pure":
            spent += level.cost * Fraction(one.l1, all_.l1)
        else:
            spent += level.cost * Fraction(one.l2_squared, all_.l2_squared)
    return spent


def _means(who: str, records: int, units: int | None, amount: Fraction, plan: Plan) -> dict[str, Any]:
    rho = None if plan.loss.definition == "pure" else float(amount)
    return {"who": who, "records": records, "units": units, "rho": rho, "epsilon": _epsilon(amount, plan)}


def _epsilon(amount: Fraction, plan: Plan) -> float:
    from treetop.privacy import epsilon_from_rho

    loss = plan.loss
    if amount == 0 or loss.definition == "pure":
        return float(amount)
    if amount == loss.budget and loss.epsilon is not None:
        return float(loss.epsilon)
    return epsilon_from_rho(amount, loss.delta or _COMPARED_AT)


def _several(plan: Plan, units: int) -> str:
    entity = plan.unit.entity
    if entity in _PEOPLE or plan.unit.enforced:
        return f"{units} {_plural(entity)} together"
    week = " (a week there and back)" if entity in _TRAVEL and units == 10 else ""
    return f"a person with {units} such {_plural(entity)}{week}"


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def _short(epsilon: float) -> str:
    """Write an epsilon with three digits, rounded up: a loss is never understated."""
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(repr(epsilon))):.3g}"


def _factor(epsilon: float) -> str:
    if epsilon > math.log(1e6):
        return "over a million"
    factor = math.exp(epsilon)
    return f"× {math.ceil(factor * 100) / 100:.2f}" if factor < 10 else f"× {math.ceil(factor):,}"


def _bold(text: str) -> str:
    return click.style(text, bold=True)
