"""`treetop ask`: noisy counts by question. Each is charged before its noise is drawn, and is free when asked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treetop._util.files import IrregularFile, read_at_most
from treetop.cli.progress import Bar, check_interrupt, finish
from treetop.cli.terminal import PATH, expect_head, number, say_json, text_table

if TYPE_CHECKING:
    from treetop.plan.file import PlanFile
    from treetop.publishing.ask import Answers, Asked

_LARGEST = 1 << 24
"""The most bytes of a file of questions."""


@click.command()
@click.argument("plan", type=PATH)
@click.argument("table", required=False)
@click.option("--ledger", type=PATH, required=True, help="Charge the loss to this ledger.")
@click.option("--dataset", help="The data set to charge; a ledger that keeps several must be told.")
@expect_head
@click.option("--where", metavar="NAME=CODE", multiple=True, help="A condition of one question; repeatable.")
@click.option("--question", "questions", metavar="CONDITIONS", multiple=True, help="A whole question; repeatable.")
@click.option("--file", "listed", type=PATH, help="A file with one question a line.")
@click.option("--epsilon", type=number, help="The loss of all that is asked now; the plan's by default.")
@click.option("--delta", type=number, help="With epsilon: Gaussian noise. Without it, the guarantee is pure.")
@click.option("--rho", type=number, help="Instead: zero-concentrated differential privacy.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="How sure the margins are.")
@click.option("--query", help="The query, if TABLE is a database.")
@click.option("--allow-dropped", is_flag=True, help="Go on however many records have unknown codes.")
@click.option("--json", "as_json", is_flag=True, help="The same for machines.")
def command(plan: Path, table: str | None, as_json: bool, **options: Any) -> None:
    """Ask how many records of the private TABLE of PLAN match some codes.

    --where region=Zilina --where hobby=music is one question; names are attributes, or levels of them. Several with
    --question "region=Zilina hobby=music", or a line each in a --file, share one loss. The ledger keeps the answers: a
    question that it has answered at least as accurately is answered the same again, and costs nothing. "consistent" is
    what all its answers about this table come to by now: counts that add up, which move as more is asked.
    """
    from treetop.plan.file import read_plan
    from treetop.privacy import Loss
    from treetop.publishing.ask import ask

    epsilon, delta, rho = (options.pop(name) for name in ("epsilon", "delta", "rho"))
    is_given = epsilon is not None or rho is not None
    if delta is not None and not is_given:
        raise click.UsageError("--delta goes with --epsilon: give both, or neither for the loss of the plan")
    file = read_plan(plan, stand_in=1 if is_given else None)
    loss = None
    if is_given:  # whether a large delta is meant is for the plan to say
        large_delta = file.plan.loss.large_delta and delta is not None
        loss = Loss(epsilon=epsilon, delta=delta, rho=rho, large_delta=large_delta)
    asked = _questions(*(options.pop(name) for name in ("where", "questions", "listed")))
    with Bar(shown=not as_json) as bar:
        outcome = ask(
            file,
            table,
            asked,
            loss=loss,
            progress=bar,
            before_charging=check_interrupt,
            before_recording=finish,
            **options,
        )
    if as_json:
        say_json(summarise(file, outcome, options["confidence"]))
    else:
        click.echo(render(file, outcome, options["confidence"]))


def _questions(where: Sequence[str], questions: Sequence[str], listed: Path | None) -> list[Asked]:
    """Return the questions: conditions of one question, whole questions, and those of a file."""
    found: list[Asked] = [list(where)] if where else []
    found += [*questions, *([] if listed is None else _lines(listed))]
    if not found:
        raise click.UsageError("ask something: --where NAME=CODE, --question CONDITIONS or --file FILE")
    return found


def _lines(listed: Path) -> list[str]:
    try:
        with listed.open("rb") as file:
            text = read_at_most(file, listed, _LARGEST).decode("utf-8")
    except IrregularFile as problem:
        raise click.UsageError(f"{problem}: give a file with one question a line") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{listed}: is not UTF-8 text: give a file with one question a line") from None
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def summarise(file: PlanFile, outcome: Answers, confidence: float) -> dict[str, Any]:
    """Return the answers and their cost, as plain values."""
    charged, fitted = outcome.reservation, outcome.estimates or (None,) * len(outcome.answers)
    return {
        "title": file.plan.title,
        "answers": [
            {
                "where": dict(one.where),
                "count": one.count,
                "lower": one.lower,
                "upper": one.upper,
                "measured": one.measured,
                "margin": one.margin,
                "noise": {**one.law.describe(), "sigma": one.law.standard_deviation},
                "free": one.free,
                "consistent": None if estimate is None else asdict(estimate),
            }
            for one, estimate in zip(outcome.answers, fitted, strict=True)
        ],
        "confidence": confidence,
        "protects": _protected(file),
        "graph": [] if file.graph is None else file.graph.sentences(),
        "ledger": {
            "dataset": outcome.dataset,
            "entry": None if charged is None else charged.number,
            "sha256": None if charged is None else charged.sha256,
            "charged": "0" if charged is None else str(charged.charged),
            "remaining": str(outcome.remaining),
            "head": outcome.head,
            "currency": "epsilon" if outcome.budget.currency == "pure" else "rho",
        },
    }


def render(file: PlanFile, outcome: Answers, confidence: float) -> str:
    """Return the answers for people."""
    sure = f"{100 * confidence:g}%"
    rows = [("question", "count", f"± {sure}", "consistent", sure, "cost")]
    fitted = outcome.estimates or (None,) * len(outcome.answers)
    for one, estimate in zip(outcome.answers, fitted, strict=True):
        now = ("-", "-") if estimate is None else (f"{estimate.count:,}", f"{estimate.lower:,} – {estimate.upper:,}")
        cost = "asked before" if one.free else "charged"
        rows.append((_say(one.where), f"{one.count:,}", f"{one.margin:,}", *now, cost))
    say, charged = outcome.budget.say, outcome.reservation
    cost = "Nothing was charged" if charged is None else f"Charged {say(charged.charged)}"
    return "\n".join(
        [
            text_table(rows, left=(0, 5)),
            "",
            f"{cost} to the data set {outcome.dataset!r}; {outcome.left} is left.",
            f"Ledger fingerprint (keep a copy elsewhere to detect rollback): {outcome.head}",
            _protected(file),
            *([] if file.graph is None else file.graph.sentences()),
        ]
    )


def _protected(file: PlanFile) -> str:
    """Return the protected unit, and the conditions on which the losses of the ledger add up."""
    from treetop.domain.unit import only_if

    when = only_if(file.plan.conditions)
    return file.plan.unit.sentence() + (f" Losses add up with those of the plan's releases {when}." if when else "")


def _say(where: Any) -> str:
    return " ".join(f"{name}={code}" for name, code in where.items()) or "everything"
