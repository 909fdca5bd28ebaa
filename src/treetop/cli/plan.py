"""`treetop plan`: what a plan will cost and how accurate it will be, before any private data is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treetop.cli import choosing
from treetop.cli.choosing import LARGEST, render_meaning, worth
from treetop.cli.terminal import bold, style

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
@click.option("--against", type=click.Path(path_type=Path), help="Only what changed since an earlier plan file.")
@click.option("--json", "as_json", is_flag=True, help="The same numbers for machines.")
@click.option("--schema", is_flag=True, is_eager=True, expose_value=False, callback=_schema, help="The JSON Schema.")
def command(plan: Path, confidence: float, against: Path | None, as_json: bool, **asked: Any) -> None:
    """Show accuracy per level, noise and cost of PLAN; reads no private data.

    With --target, find the smallest loss that is accurate enough; the plan may leave its loss open then. With --advise,
    find which tables to measure, in which order and with which shares.
    """
    from treetop.plan.file import read_plan
    from treetop.publishing.summary import plan_summary

    if against is not None:
        _compare(against, plan, as_json)
        return
    if choosing.any_given(asked):
        choosing.run(plan, asked, confidence, as_json)
        return
    file = read_plan(plan)
    summary = plan_summary(file, confidence, asked["total"])
    click.echo(json.dumps(summary, indent=2) if as_json else render(file, summary))


def _compare(before: Path, after: Path, as_json: bool) -> None:
    """Print the fields that two plan files state differently."""
    from treetop.plan.accuracy import text_table
    from treetop.plan.file import differences, plan_text

    found = differences(plan_text(before), plan_text(after))
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found], indent=2))
    elif found:
        rows = [(one.field, one.before or "-", one.after or "-") for one in found]
        click.echo(text_table([("field", str(before), str(after)), *rows], left=(0, 1, 2)))
    else:
        click.echo("Both say the same.")


def _margins(plan: PurePlan, percent: str) -> Iterator[str]:
    """Say of what margins and bounds speak."""
    if getattr(plan, "keeps_regions", False) or getattr(plan, "edition", 1) > 1:
        what = "people of one degree" if "degree" in plan.spine.attributes else "groups of one size"
        counted = f"one number of {what}, in one region,"
        yield f"± one: the measurements of the level put {counted} within this of the truth, with {percent} confidence."
        return
    yield f"± one: the measurement of one count is within this of the truth, with {percent} confidence."
    if not plan.margin_tables:
        yield "± all: so are, at once, all counts of the level; most are far closer."


def render(file: PlanFile, summary: dict[str, Any]) -> str:
    """Return the plan's accuracy and cost for people."""
    from treetop.basics.exact import plain
    from treetop.card import words
    from treetop.privacy.loss import COMPARED_AT

    plan, confidence = file.plan, summary["confidence"]
    percent = f"{100 * confidence:g}%"
    pure = plan.loss.definition == "pure"
    chance = "" if pure else f", but for a chance of delta {plain(plan.loss.delta or COMPARED_AT)}"
    levels = len(plan.spine.levels)
    size = f"{levels} level{'s' * (levels > 1)}, {plan.spine.leaves:,} possible leaves"
    return "\n".join(
        [
            bold(plan.title or file.path.name),
            f"{size}; no private data was read.",
            *([] if file.keep is None else [words.kept(file.keep)]),
            *([] if file.drop is None else [words.dropped(file.drop)]),
            *(f"{rule[0].upper()}{rule[1:]}." for rule in file.prepared),
            "",
            str(plan.accuracy(confidence)),
            "",
            *_margins(plan, percent),
            "",
            *_facts(summary["facts"]["sentences"]),
            *_worth(plan, summary["outlook"]),
            *_largest(plan, confidence),
            bold("Cost"),
            _cost(plan, summary["loss"]),
            *(style(f"Warning: {warning}", fg="red") for warning in summary["warnings"]),
            plan.unit.sentence(),
            *summary["notes"],
            *(summary["graph"] or []),
            "",
            render_meaning(summary["meaning"]),
            "",
            f"The last column bounds how far the release can move anyone's odds about them{chance}.",
            "",
            bold("Exact and unprotected"),
            *(f"- {thing}" for thing in summary["exact"]),
        ]
    )


def _facts(sentences: list[str]) -> list[str]:
    """Return what is known, and what that does."""
    return [bold("What is known and kept"), *(f"- {sentence}" for sentence in sentences), ""] if sentences else []


def _worth(plan: PurePlan, told: dict[str, Any] | None) -> list[str]:
    """Return what a release would be worth, where the number of records is roughly known."""
    from treetop.choose.outlook import outlook

    return [] if told is None else [bold(worth(told["total"])), str(outlook(plan, told["total"])), ""]


def _largest(plan: PurePlan, confidence: float) -> list[str]:
    """Return what the largest size of a plan for group sizes costs."""
    from treetop.choose.largest import largest_advice
    from treetop.plan.groups.planned import PureGroupTablePlan

    if not isinstance(plan, PureGroupTablePlan):
        return []
    return [bold(LARGEST), str(largest_advice(plan, confidence)), ""]


def _cost(plan: PurePlan, loss: dict[str, Any]) -> str:
    from treetop.basics.exact import plain
    from treetop.privacy.loss import COMPARED_AT

    if loss["rho"] is None:
        return f"Epsilon {plain(plan.spent)}, pure differential privacy; Laplace noise."
    compared = "" if loss["delta_is_stated"] else " (the plan states no delta: this one is for comparison)"
    epsilon = plain(Fraction(repr(loss["epsilon"])))  # as it prints, not as the float nearest to it
    delta = f"{plain(plan.loss.delta or COMPARED_AT)}{compared}"
    if "accounting" in loss:
        by_rho = plain(Fraction(repr(loss["epsilon_by_rho"])))
        return (
            f"Epsilon {epsilon} at delta {delta}, by exact accounting; Gaussian noise. Beside other releases, a ledger "
            f"of epsilon and delta composes the noise of all. Elsewhere it counts as rho {plain(plan.spent)} "
            f"(zero-concentrated), which is epsilon {by_rho}."
        )
    return f"Rho {plain(plan.spent)} (zero-concentrated), which is epsilon {epsilon} at delta {delta}; Gaussian noise."
