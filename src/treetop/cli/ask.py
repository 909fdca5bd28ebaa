"""`treetop ask`: noisy counts by question. Each is charged before its noise is drawn, and is free when asked again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treetop.cli.charging import expect_head, open_ledger, raise_unfinished, tell_spent
from treetop.cli.interrupts import check_interrupt, finish
from treetop.cli.progress import Bar

if TYPE_CHECKING:
    from fractions import Fraction

    from treetop.ledger import Ledger, Reservation
    from treetop.ledger.budget import Budget, Currency
    from treetop.measure.questions import Answer, Batch, Question
    from treetop.plan.file import PlanFile
    from treetop.privacy import Loss


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise click.BadParameter("give a number, such as 0.1") from None


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@click.argument("table", required=False)
@click.option("--ledger", type=click.Path(path_type=Path), required=True, help="Charge the loss to this ledger.")
@click.option("--dataset", help="The data set to charge; a ledger that keeps several must be told.")
@expect_head
@click.option("--where", metavar="NAME=CODE", multiple=True, help="A condition of one question; repeatable.")
@click.option("--question", "questions", metavar="CONDITIONS", multiple=True, help="A whole question; repeatable.")
@click.option("--file", "listed", type=click.Path(path_type=Path), help="A file with one question a line.")
@click.option("--epsilon", type=_number, help="The loss of all that is asked now; the plan's by default.")
@click.option("--delta", type=_number, help="With epsilon: Gaussian noise. Without it, the guarantee is pure.")
@click.option("--rho", type=_number, help="Instead: zero-concentrated differential privacy.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="How sure the margins are.")
@click.option("--query", help="The query, where TABLE is a database.")
@click.option("--allow-dropped", is_flag=True, help='With unknown = "drop": go on however many records are dropped.')
@click.option("--json", "as_json", is_flag=True, help="The same for machines.")
def command(plan: Path, table: str | None, as_json: bool, **options: Any) -> None:
    """Ask how many records of the private TABLE of PLAN match some codes.

    --where region=Zilina --where hobby=music is one question; names are attributes, or levels of them. Several with
    --question "region=Zilina hobby=music", or a line each in a --file, share one loss. The ledger keeps the answers: a
    question that it has answered at least as accurately is answered the same again, and costs nothing.
    """
    from treetop.plan.file import read_plan

    amounts = {name: options.pop(name) for name in ("epsilon", "delta", "rho")}
    given = _is_given(**amounts)
    file = read_plan(plan, stand_in=1 if given else None)
    loss = _loss(file, **amounts) if given else None
    with Bar(shown=not as_json) as bar:
        outcome = Asking(file, loss, **options)(table, bar)
    if as_json:
        click.echo(json.dumps(summarise(file, outcome, options["confidence"]), indent=2, ensure_ascii=False))
    else:
        click.echo(render(file, outcome, options["confidence"]))


def _is_given(epsilon: Decimal | None, delta: Decimal | None, rho: Decimal | None) -> bool:
    """Whether a loss is given, in place of the plan's."""
    if epsilon is None and rho is None and delta is not None:
        raise click.UsageError("--delta goes with --epsilon: give both, or neither for the loss of the plan")
    return epsilon is not None or rho is not None


def _loss(file: PlanFile, epsilon: Decimal | None, delta: Decimal | None, rho: Decimal | None) -> Loss:
    """Return the loss that is given; whether a large delta is meant is for the plan to say."""
    from treetop.privacy import Loss

    return Loss(epsilon=epsilon, delta=delta, rho=rho, large_delta=file.plan.loss.large_delta and delta is not None)


@dataclass(frozen=True)
class Outcome:
    """What a batch of questions came to."""

    answers: Sequence[Answer]
    """The answers, in the order in which they were asked."""
    reservation: Reservation | None
    """What was charged; None where every question was answered before."""
    dataset: str
    """The data set."""
    remaining: Fraction
    """What is left of its budget."""
    budget: Budget
    """The budget."""
    head: str
    """The head of the ledger, to be noted elsewhere."""


@dataclass
class Asking:
    """Questions about one plan, asked at once: looked up, checked, charged, measured, recorded."""

    file: PlanFile
    """The plan."""
    loss: Loss | None
    """What they may cost; the plan's loss when None."""
    ledger: Path
    """The ledger."""
    dataset: str | None
    """The data set to charge."""
    expect_head: str | None
    """A head of the ledger that was noted elsewhere."""
    where: Sequence[str]
    """Conditions of one question."""
    questions: Sequence[str]
    """Whole questions."""
    listed: Path | None
    """A file with questions."""
    confidence: float
    """How sure the margins are."""
    query: str | None
    """The query for a database."""
    allow_dropped: bool = False
    """Whether any number of records with unknown codes may be dropped."""
    reservation: Reservation | None = None
    """What has been charged by now."""

    def __call__(self, table: str | None, bar: Bar) -> Outcome:
        """Answer all questions."""
        from treetop.measure.questions import Batch, answer, recalled

        plan = self.file.plan
        plan.refuse_unless_top_down()  # a question counts records, and other plans bound something else
        location = table or self.file.source
        if location is None:
            raise click.UsageError("name the private TABLE, or give the plan a [data] source")
        source = self.file.table(location, self.query)  # what cannot be read so is refused before a ledger is opened
        asked = self._asked(location)
        book, dataset = open_ledger(self.ledger, self.dataset, self.expect_head)
        kept, loss = book.answers(dataset), self.loss or plan.loss
        law = Batch(plan.spine, tuple(asked.values()), plan.unit, loss).law
        found = {}
        for name, question in asked.items():
            told = recalled(kept, name)
            if told is not None and told[1].standard_deviation <= law.standard_deviation:
                found[name] = answer(question, *told, self.confidence, free=True)
            else:
                answer(question, 0, law, self.confidence)  # a confidence that is none spends nothing
        new = {name: question for name, question in asked.items() if name not in found}
        if new:
            batch = Batch(plan.spine, tuple(new.values()), plan.unit, loss)
            measured = self._measure(batch, list(new), book, dataset, source, bar)
            for (name, question), number in zip(new.items(), measured, strict=True):
                found[name] = answer(question, number, batch.law, self.confidence)
        answers = [found[name] for name in asked]
        return Outcome(answers, self.reservation, dataset, book.remaining(dataset), book.budget, book.head()[1])

    def _asked(self, location: str) -> dict[str, Question]:
        """Return the questions by what makes them the same, each once."""
        from treetop.measure.questions import fingerprint, from_conditions, parse, place

        plan, file = self.file.plan, self.file
        found = [parse(line, plan.spine) for line in (*self.questions, *self._lines())]
        if self.where:
            found.insert(0, from_conditions(self.where, plan.spine))
        if not found:
            raise click.UsageError("ask something: --where NAME=CODE, --question CONDITIONS or --file FILE")
        read: dict[str, Any] = {
            "tables": [place(one) for one in (location, *(() if file.graph is None else file.graph.beside))],
            "query": self.query or file.query,
            "delimiter": file.delimiter,
            "encoding": file.encoding,
            "fields": file.fields and dict(file.fields),
            "count": file.count,
            "keep": file.keep and dict(file.keep),
            "graph": None if file.graph is None else file.graph.describe(),
        }
        # What is as it was before there was a choice is not said, so that earlier answers are found.
        read |= {"header": file.header, "names": file.names} if file.header is False else {}
        read |= {"blank_lines": file.blank_lines} if file.blank_lines != "record" else {}
        return {fingerprint(one, plan, file.columns, read): one for one in found}

    def _lines(self) -> list[str]:
        if self.listed is None:
            return []
        try:
            text = self.listed.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise click.UsageError(f"{self.listed}: is not UTF-8 text: give a file with one question a line") from None
        return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]

    def _measure(self, batch: Batch, names: list[str], book: Ledger, dataset: str, source: Any, bar: Bar) -> list[int]:
        from treetop.ledger import unit_text
        from treetop.measure.questions import measure, stored

        plan = self.file.plan
        currency: Currency = "pure" if batch.loss.definition == "pure" else "zcdp"
        unit = unit_text(plan.unit)
        book.check(dataset, batch.spent, currency, unit)  # before the table is read
        many = "a question" if len(names) == 1 else f"{len(names):,} questions"
        title = f"{many}: {plan.title}" if plan.title else many

        def reserve() -> None:
            check_interrupt()
            self.reservation = book.reserve(dataset, batch.spent, currency, unit, title, plan.digest)

        try:
            measured = measure(
                batch,
                plan,
                source,
                columns=self.file.columns,
                count=self.file.count,
                before_measuring=reserve,
                progress=bar,
                allow_dropped=self.allow_dropped,
            )
            answers = [stored(name, number, batch.law) for name, number in zip(names, measured, strict=True)]
            assert self.reservation is not None
            finish()
            # Recorded before it is told: an answer that was seen can always be had again.
            self.reservation.complete(sha256(json.dumps(answers).encode()).hexdigest(), answers)
        except BaseException as problem:  # whatever it is, also too little memory
            tell_spent(self.reservation, self.ledger)
            raise_unfinished(self.reservation, problem)
            raise
        return measured


def summarise(file: PlanFile, outcome: Outcome, confidence: float) -> dict[str, Any]:
    """Return the answers and what they cost, as plain values."""
    charged = outcome.reservation
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
            }
            for one in outcome.answers
        ],
        "confidence": confidence,
        "protects": file.plan.unit.sentence(),
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


def render(file: PlanFile, outcome: Outcome, confidence: float) -> str:
    """Return the answers for people."""
    from treetop.plan.accuracy import text_table

    rows = [("question", "count", f"± {100 * confidence:g}%", "cost")]
    for one in outcome.answers:
        rows.append((_say(one.where), f"{one.count:,}", f"{one.margin:,}", "asked before" if one.free else "charged"))
    say, charged = outcome.budget.say, outcome.reservation
    cost = "Nothing was charged" if charged is None else f"Charged {say(charged.charged)}"
    return "\n".join(
        [
            text_table(rows, left=(0, 3)),
            "",
            f"{cost} to the data set {outcome.dataset!r}; {say(outcome.remaining, left=True)} is left.",
            f"Ledger head, to be noted elsewhere: {outcome.head}",
            file.plan.unit.sentence(),
            *([] if file.graph is None else file.graph.sentences()),
        ]
    )


def _say(where: Any) -> str:
    return " ".join(f"{name}={code}" for name, code in where.items()) or "everything"
