"""`treetop plan`: the cost and the accuracy of a plan, before any private data is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from treetop.cli.progress import Bar
from treetop.cli.terminal import bold, numbers, style

if TYPE_CHECKING:
    from treetop.advice.advise import Advice
    from treetop.advice.refine import Refinement
    from treetop.advice.simulate import Trials
    from treetop.advice.targets import Answer
    from treetop.plan.file import PlanFile
    from treetop.plan.plan import Plan


# `treetop plan` before the loss is known: the options with which it is chosen, and what comes of them.

F = TypeVar("F", bound=Callable[..., Any])

LARGEST = "What the largest size costs"
"""The heading of the advice on the largest size of groups."""

_OPTIONS = (
    click.option("--target", "targets", multiple=True, help='What a level must keep: "state=20", "state mean 8".'),
    click.option("--delta", type=float, help="Delta; the plan's by default."),
    click.option("--pure", is_flag=True, help="A pure epsilon, without delta: Laplace noise."),
    click.option("--epsilon-grid", "epsilons", callback=numbers, help="Errors at several epsilons: 0.1,1,10."),
    click.option("--plot", type=click.Path(path_type=Path), help="Draw the grid to this file."),
    click.option("--twin", metavar="TABLE", help="A public or synthetic table, or a release, to try the plan on."),
    click.option("--twin-source", help="Where the twin is from, in words."),
    click.option("--runs", type=click.IntRange(min=1), default=20, show_default=True, help="Trials on the twin."),
    click.option("--threads", type=click.IntRange(min=1), help="Trials at once; as many as cores by default."),
    click.option("--prior", metavar="TABLE", help="An earlier release, or a public table, to choose the split by."),
    click.option("--prior-source", help="Where the prior is from, in words."),
    click.option("--weight", "weights", multiple=True, metavar="LEVEL=NUMBER", help="With --prior: what errors weigh."),
    click.option("--squared-error", type=float, help="With --prior: find the smallest loss with this total error."),
    click.option(
        "--objective", type=click.Choice(["separate", "consistent"]), help="With --prior: whose errors are least."
    ),
    click.option("--refine", is_flag=True, help="With --prior: also try splits near the best, on its table."),
    click.option("--shares", metavar="TASK", help='With --refine: for sums dealt out by counts, "block in tract".'),
    click.option("--advise", "design", is_flag=True, help="Choose tables, order and shares for what you care about."),
    click.option("--care", multiple=True, help='With --advise: "origin totals", "state pairs", "leaves=3".'),
    click.option("--total", type=float, help="About how many records there are: what would be mostly noise?"),
    click.option("--write", type=click.Path(path_type=Path), help="Write the plan with the answer filled in."),
    click.option("--force", is_flag=True, help="Draw over a plot that is there already."),
)


def options(command: F) -> F:
    """Give a command the options of this module."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def any_given(asked: dict[str, Any]) -> bool:
    """Whether any of the options was given but those that only say how trials are run, or how large the table is."""
    beside = ("runs", "threads", "total")
    return asked["delta"] is not None or any(asked[name] for name in asked if name not in beside)


def run(path: Path, asked: dict[str, Any], confidence: float, as_json: bool) -> None:
    """Answer the questions about a plan, and print the answers."""
    from treetop.advice.advise import advise

    asked["weights"] = dict(map(_weight, asked["weights"]))
    with Bar(shown=not as_json) as bar:
        advice = advise(path, confidence=confidence, progress=bar, **asked)
    click.echo(json.dumps(summarise(advice), indent=2) if as_json else render_advice(advice))


def _weight(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        return name.strip(), float(number)
    except ValueError:
        raise click.UsageError(f"--weight {text!r}: write LEVEL=NUMBER, as in state=2") from None


def summarise(advice: Advice) -> dict[str, Any]:
    """Return the advice as plain values."""
    from treetop.advice.fill_in import design_toml, loss_toml
    from treetop.card.meaning import meaning

    told = None
    if advice.design is not None:
        told = design_toml(advice.plan, advice.file.text)
    elif advice.answer is not None or advice.forecast is not None:
        told = loss_toml(advice.plan)
    return {
        "title": advice.plan.title,
        "plan": str(advice.file.path),
        "targets": [str(target) for target in advice.targets],
        "squared_error": advice.squared_error,
        "refined": None if advice.refined is None else _refined(advice.refined),
        "answer": None if advice.answer is None else {**advice.answer.to_dict(), "meaning": meaning(advice.plan)},
        "forecast": None if advice.forecast is None else advice.forecast.to_dict(),
        "design": None if advice.design is None else advice.design.to_dict(),
        "outlook": None if advice.outlook is None else advice.outlook.to_dict(),
        "largest": None if advice.largest is None else advice.largest.to_dict(),
        "toml": told,
        "confidence": advice.confidence,
        "grid": [asdict(row) for row in advice.grid],
        "grid_delta": float(advice.grid_delta) if advice.grid and advice.grid_delta is not None else None,
        "trials": None if advice.trials is None else _trials(advice.trials),
        "grid_trials": [{"epsilon": epsilon, **_trials(trials)} for epsilon, trials in advice.grid_trials.items()],
        "theta": None if advice.theta is None else advice.theta.to_dict(),
        "notes": list(advice.notes),
        "files": [str(file) for file in advice.files],
    }


def _refined(tried: Refinement) -> dict[str, Any]:
    told = asdict(tried)
    return {**told, **{name: {key: float(one) for key, one in told[name].items()} for name in ("split", "found")}}


def _trials(trials: Trials) -> dict[str, Any]:
    return {"twin": trials.twin, "runs": trials.runs, "levels": trials.to_dicts()}


def render_advice(advice: Advice) -> str:
    """Return the advice as text."""
    from treetop._util.numbers import plain
    from treetop.advice.fill_in import design_toml, loss_toml
    from treetop.advice.grid import render_grid

    percent = f"{100 * advice.confidence:g}%"
    parts = [f"{bold(advice.plan.title or advice.file.path.name)}\n{_read(advice)}"]
    if advice.answer is not None:
        parts.append(_render_answer(advice, advice.answer))
    if advice.forecast is not None:
        parts += [f"{bold('The best split for the prior')}\n{advice.forecast}"]
    if advice.refined is not None:
        parts += [f"{bold('Splits near it, tried on the prior')}\n{advice.refined}"]
    if advice.answer is not None or advice.forecast is not None:
        parts += [f"{bold('For the plan file, in place of its [loss]')}\n\n{loss_toml(advice.plan)}"]
    if advice.design is not None:
        parts += [f"{bold('What to measure')}\n{advice.design}"]
        parts += [f"{bold('For the plan file, in place of its own')}\n\n{design_toml(advice.plan, advice.file.text)}"]
    if advice.outlook is not None:
        parts.append(f"{bold(worth(advice.outlook.total))}\n{advice.outlook}")
    if advice.trials is not None:
        parts.append(f"{bold(f'Trials at {_say(advice.plan)}')}\n{advice.trials}")
    if advice.largest is not None:
        parts.append(f"{bold(LARGEST)}\n{advice.largest}")
    if advice.grid:
        at = "pure" if advice.grid_delta is None else f"delta {plain(advice.grid_delta)}"
        title = f"One measurement is within ± this, {percent} of the time ({at})"
        parts.append(f"{bold(title)}\n{render_grid(advice.grid)}")
    if advice.grid_trials:
        first = next(iter(advice.grid_trials.values()))
        title = f"Released counts within ± this, {percent} of them: {first.runs} trials each on {first.twin}"
        parts.append(f"{bold(title)}\n{_render_trials(advice.grid_trials)}")
    if advice.theta is not None:
        parts.append(f"{bold('Which largest degree')}\n{advice.theta}")
    if advice.notes:
        parts.append("\n".join(advice.notes))
    if not advice.guarded and _is_public(advice):
        parts.append(
            "The plan names no private table, so nothing could be compared with it: be sure that this one is public."
        )
    parts += [f"Wrote {file}." for file in advice.files]
    return "\n\n".join(parts)


def _read(advice: Advice) -> str:
    """Return the sentence on how the private table was used."""
    if advice.guarded and _is_public(advice):
        return "Of private data, only this was asked: whether the public table is the private one."
    return "No private data was read."


def _is_public(advice: Advice) -> bool:
    """Whether a public table was read."""
    tried = advice.design is not None and advice.design.twin is not None
    tried = tried or advice.theta is not None
    return tried or advice.forecast is not None or advice.trials is not None or bool(advice.grid_trials)


def worth(total: float) -> str:
    """Return the heading of the outlook."""
    return f"What to expect of about {total:,.0f} records"


def _render_answer(advice: Advice, answer: Answer) -> str:
    from treetop.card.meaning import meaning

    return "\n".join(
        [
            bold("Targets"),
            *(f"- {target}" for target in _targets(advice)),
            "",
            bold(f"The smallest loss that meets them: {_say(advice.plan)}"),
            str(answer),
            "",
            render_meaning(meaning(advice.plan)),
        ]
    )


def _targets(advice: Advice) -> list[str]:
    """Return the targets of the answer."""
    if advice.squared_error is not None:
        return [f"a total squared error of {advice.squared_error:,g}, expected of the prior"]
    return [str(target) for target in advice.targets]


def render_meaning(rows: Sequence[dict[str, Any]]) -> str:
    """Return the meaning of a loss for each party, as text."""
    from treetop.card.meaning import say_epsilon, say_odds
    from treetop.plan.workload import text_table

    table = [("what it means for", "epsilon", "odds move by at most")]
    table += [(row["who"], say_epsilon(row["epsilon"]), say_odds(row["epsilon"])) for row in rows]
    return text_table(table, left=(0,))


def _say(plan: Plan) -> str:
    from treetop._util.numbers import plain

    loss = plan.loss
    if loss.epsilon is None:
        return f"rho {plain(loss.budget)}"
    return f"epsilon {plain(loss.epsilon)}" + (", pure" if loss.delta is None else f" at delta {plain(loss.delta)}")


def _render_trials(trials: Mapping[float, Trials]) -> str:
    from treetop.plan.workload import text_table

    head = ("level", "name", "public nodes", *(f"epsilon {epsilon:g}" for epsilon in trials))
    levels = zip(*(one.rows for one in trials.values()), strict=True)
    body = [
        (str(rows[0].level), rows[0].name, f"{rows[0].nodes:,}", *(f"{row.margin:,}" for row in rows))
        for rows in levels
    ]
    return text_table([head, *body], left=(1,))


def _schema(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from treetop.plan.file import plan_schema

        click.echo(json.dumps(plan_schema(), indent=2))
        context.exit()


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--confidence", type=float, default=0.95, show_default=True, help="How sure margins and bounds are.")
@options
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
    if any_given(asked):
        run(plan, asked, confidence, as_json)
        return
    file = read_plan(plan)
    summary = plan_summary(file, confidence, asked["total"])
    click.echo(json.dumps(summary, indent=2) if as_json else render(file, summary))


def _compare(before: Path, after: Path, as_json: bool) -> None:
    """Print the fields that two plan files state differently."""
    from treetop.plan.file import differences, plan_text
    from treetop.plan.workload import text_table

    found = differences(plan_text(before), plan_text(after))
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found], indent=2))
    elif found:
        rows = [(one.field, one.before or "-", one.after or "-") for one in found]
        click.echo(text_table([("field", str(before), str(after)), *rows], left=(0, 1, 2)))
    else:
        click.echo("Both say the same.")


def _margins(plan: Plan, percent: str) -> Iterator[str]:
    """Yield the sentences on margins and bounds."""
    if "groups" in plan.describe() or getattr(plan, "keeps_regions", False):
        what = "people of one degree" if "degree" in plan.spine.attributes else "groups of one size"
        counted = f"one number of {what}, in one region,"
        yield f"± one: the measurements of the level put {counted} within this of the truth, with {percent} confidence."
        return
    yield f"± one: the measurement of one count is within this of the truth, with {percent} confidence."
    if not plan.margin_tables:
        yield "± all: so are, at once, all counts of the level; most are far closer."


def render(file: PlanFile, summary: dict[str, Any]) -> str:
    """Return the plan's accuracy and cost for people."""
    from treetop._util.numbers import plain
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
    """Return the public facts, and their effect."""
    return [bold("What is known and kept"), *(f"- {sentence}" for sentence in sentences), ""] if sentences else []


def _worth(plan: Plan, told: dict[str, Any] | None) -> list[str]:
    """Return the outlook on a release, if the number of records is roughly known."""
    from treetop.advice.outlook import outlook

    return [] if told is None else [bold(worth(told["total"])), str(outlook(plan, told["total"])), ""]


def _largest(plan: Plan, confidence: float) -> list[str]:
    """Return the cost of the largest size of a plan for group sizes."""
    from treetop.advice.largest import largest_advice
    from treetop.plan.groups.planned import GroupTablePlan

    if not isinstance(plan, GroupTablePlan):
        return []
    return [bold(LARGEST), str(largest_advice(plan, confidence)), ""]


def _cost(plan: Plan, loss: dict[str, Any]) -> str:
    from treetop._util.numbers import plain
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
