"""`treetop plan`: what a plan will cost and how accurate it will be, before any private data is read."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treetop.cli import choosing
from treetop.cli.terminal import style

if TYPE_CHECKING:
    from treetop.plan.file import PlanFile
    from treetop.plan.plan import PurePlan


def _schema(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from treetop.plan.file import plan_schema

        click.echo(json.dumps(plan_schema(), indent=2))
        context.exit()


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--confidence", type=float, default=0.95, show_default=True, help="How sure margins and bounds are.")
@choosing.options
@click.option("--json", "as_json", is_flag=True, help="The same numbers for machines.")
@click.option("--schema", is_flag=True, is_eager=True, expose_value=False, callback=_schema, help="The JSON Schema.")
def command(plan: Path, confidence: float, as_json: bool, **asked: Any) -> None:
    """Show accuracy per level, noise and cost of PLAN; reads no private data.

    With --target, find the smallest loss that is accurate enough; the plan may leave its loss open then.
    """
    from treetop.plan.file import read_plan

    if choosing.any_given(asked):
        choosing.run(plan, asked, confidence, as_json)
        return
    file = read_plan(plan)
    if as_json:
        click.echo(json.dumps(summarise(file, confidence), indent=2))
    else:
        click.echo(render(file, confidence))


def summarise(file: PlanFile, confidence: float) -> dict[str, Any]:
    """Return the numbers of a plan as plain values."""
    from treetop.card.content import words_of
    from treetop.card.meaning import exact, loss_summary, meaning
    from treetop.card.words import reckless

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
            {**row, "cost": level["cost"], "law": level["noise"]} for row, level in zip(rows, described, strict=True)
        ],
        "unit": {**plan.describe()["unit"], "enforced": plan.unit.enforced, "sentence": plan.unit.sentence()},
        "loss": loss_summary(plan),
        "warnings": reckless(plan),
        "meaning": meaning(plan),
        "exact": exact(plan),
        "keep": file.keep and {column: list(values) for column, values in file.keep.items()},
        "graph": None if file.graph is None else file.graph.sentences(),
        "notes": words_of(plan).notes(plan),
    }


def render(file: PlanFile, confidence: float) -> str:
    """Return the plan's accuracy and cost for people."""
    from treetop.basics.exact import plain
    from treetop.card import words
    from treetop.card.content import words_of
    from treetop.card.meaning import exact, meaning, say_epsilon, say_odds
    from treetop.plan.accuracy import text_table
    from treetop.privacy.loss import COMPARED_AT

    plan = file.plan
    percent = f"{100 * confidence:g}%"
    rows = [("what it means for", "epsilon", "odds move by at most")]
    rows += [(row["who"], say_epsilon(row["epsilon"]), say_odds(row["epsilon"])) for row in meaning(plan)]
    pure = plan.loss.definition == "pure"
    chance = "" if pure else f", but for a chance of delta {plain(plan.loss.delta or COMPARED_AT)}"
    levels = len(plan.spine.levels)
    size = f"{levels} level{'s' * (levels > 1)}, {plan.spine.leaves:,} possible leaves"
    return "\n".join(
        [
            _bold(plan.title or file.path.name),
            f"{size}; no private data was read.",
            *([] if file.keep is None else [words.kept(file.keep)]),
            "",
            str(plan.accuracy(confidence)),
            "",
            f"± one: a measurement is within this of the truth, with {percent} confidence.",
            "± all: so are, at once, all counts of the level; most are far closer.",
            "",
            _bold("Cost"),
            _cost(plan),
            *(style(f"Warning: {warning}", fg="red") for warning in words.reckless(plan)),
            plan.unit.sentence(),
            *words_of(plan).notes(plan),
            *([] if file.graph is None else file.graph.sentences()),
            "",
            text_table(rows, left=(0,)),
            "",
            f"The last column bounds how far the release can move anyone's odds about them{chance}.",
            "",
            _bold("Exact and unprotected"),
            *(f"- {thing}" for thing in exact(plan)),
        ]
    )


def _cost(plan: PurePlan) -> str:
    from treetop.basics.exact import plain
    from treetop.card.meaning import loss_summary
    from treetop.privacy.loss import COMPARED_AT

    loss = loss_summary(plan)
    if loss["rho"] is None:
        return f"Epsilon {plain(plan.spent)}, pure differential privacy; Laplace noise."
    compared = "" if loss["delta_is_stated"] else " (the plan states no delta: this one is for comparison)"
    epsilon = plain(Fraction(repr(loss["epsilon"])))  # as it prints, not as the float nearest to it
    delta = f"{plain(plan.loss.delta or COMPARED_AT)}{compared}"
    rho = f"rho {plain(plan.spent)} (zero-concentrated), which is epsilon {epsilon}"
    if "accounting" in loss:
        alone = plain(Fraction(repr(loss["epsilon_alone"])))
        return (
            f"Epsilon {alone} at delta {delta} for this release alone, by exact accounting. Beside others it counts as "
            f"{rho}; Gaussian noise."
        )
    return f"R{rho[1:]} at delta {delta}; Gaussian noise."


def _bold(text: str) -> str:
    return style(text, bold=True)
