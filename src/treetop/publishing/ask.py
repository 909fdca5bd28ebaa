"""Answer ad-hoc count queries with noise. Each is charged before its noise is drawn; repeated queries are free."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from treetop._util.system import Progress
from treetop.domain.spine import Spine
from treetop.errors import PlanError, QueryError
from treetop.ledger import Ledger, Reservation
from treetop.ledger.budget import Budget
from treetop.measure.questions import (
    Answer,
    Batch,
    Question,
    answer,
    fingerprint,
    from_conditions,
    measure,
    parse,
    place,
    recalled,
    stored,
)
from treetop.plan.file import PlanFile, read_plan
from treetop.privacy import Loss
from treetop.publishing.charging import Account, reading_of, report_spent_loss
from treetop.release.zoom import QuestionEstimate, estimates

Asked = str | Sequence[str] | Mapping[str, str]
"""A query: typed text (`region=Zilina hobby=music`), a list of such conditions, or codes by attribute name."""


@dataclass(frozen=True)
class Answers:
    """The noisy answers to a batch of questions, with the charge."""

    answers: tuple[Answer, ...]
    estimates: tuple[QuestionEstimate, ...] | None
    """Estimates for the same questions from all answers about this table. They are consistent with each other and
    change when more is asked. None if there are too many answers to fit, or if the ledger is older than version 0.4."""
    reservation: Reservation | None
    """The charge; None if the ledger already had every answer."""
    dataset: str
    remaining: Fraction
    """Budget that is left."""
    budget: Budget
    head: str
    """Fingerprint of the ledger: keep a copy elsewhere to detect rollback."""
    left: str
    """Budget that is left, in words."""


def ask(
    plan: PlanFile | str | Path,
    table: str | None = None,
    questions: Sequence[Asked] = (),
    *,
    ledger: str | Path | Ledger,
    dataset: str | None = None,
    expect_head: str | None = None,
    loss: Loss | None = None,
    confidence: float = 0.95,
    query: str | None = None,
    allow_dropped: bool = False,
    progress: Progress | None = None,
    before_charging: Callable[[], object] | None = None,
    before_recording: Callable[[], object] | None = None,
) -> Answers:
    """Count the records of a plan file's private table that match some codes. All questions share one loss.

    The ledger keeps the answers. A question that it has answered at least as accurately gets the same answer and costs
    nothing. The loss is the plan's, unless `loss` is given. Each answer comes with an estimate from all answers about
    this table in the ledger, so that a region is the sum of its towns.
    """
    file = plan if isinstance(plan, PlanFile) else read_plan(plan)
    if (reader := file.plan.reader).name != "records":  # a question counts records, and this bounds something else
        raise PlanError(reader.not_top_down)
    location = table or file.source
    if location is None:
        raise PlanError("name the private TABLE, or give the plan a [data] source")
    source = file.table(location, query)  # what cannot be read so is refused before a ledger is opened
    asked, scope = _asked(file, location, query, questions)
    account = Account(ledger, dataset, expect_head)
    told = loss or file.plan.loss
    batch = Batch.of(file.plan, tuple(asked.values()), told)
    found, new = _recalled(account, asked, batch, confidence)
    if new:
        batch = Batch.of(file.plan, tuple(new.values()), told)
        reading = reading_of(source, file.columns, file.count, file.plan.spine.attributes)
        account.check(batch, reading)  # before the table is read
        with report_spent_loss(account):
            measured = measure(
                batch,
                file.plan,
                source,
                columns=file.columns,
                count=file.count,
                before_measuring=lambda: _reserve(account, batch, file, before_charging, reading),
                progress=progress,
                allow_dropped=allow_dropped,
            )
            answers = [
                stored(name, scope, question, number, batch.law)
                for (name, question), number in zip(new.items(), measured, strict=True)
            ]
            if before_recording is not None:
                before_recording()
            # Recorded before it is told: an answer that was seen can always be had again.
            account.complete(sha256(json.dumps(answers).encode()).hexdigest(), answers)
        for (name, question), number in zip(new.items(), measured, strict=True):
            found[name] = answer(question, number, batch.law, confidence)
    book = account.ledger
    balance = book.balance(account.dataset)
    kept = book.answers(account.dataset)
    fitted = estimates(file.plan.spine, list(asked.values()), kept, scope, confidence)
    return Answers(
        tuple(found[name] for name in asked),
        None if fitted is None else tuple(fitted),
        account.reservation,
        account.dataset,
        balance.remaining,
        book.budget,
        book.head()[1],
        book.budget.say_left(balance.spending),
    )


def _reserve(
    account: Account,
    batch: Batch,
    file: PlanFile,
    before_charging: Callable[[], object] | None,
    reading: Mapping[str, Any],
) -> None:
    if before_charging is not None:
        before_charging()
    asked = len(batch.questions)
    many = "a question" if asked == 1 else f"{asked:,} questions"
    title = f"{many}: {file.plan.title}" if file.plan.title else many
    account.reserve(batch, title, file.plan.digest, reading)


def _recalled(
    account: Account, asked: Mapping[str, Question], batch: Batch, confidence: float
) -> tuple[dict[str, Answer], dict[str, Question]]:
    """Return the ledger's answers that are accurate enough, and the questions that remain to be asked."""
    kept, law = account.ledger.answers(account.dataset), batch.law
    found, new = {}, {}
    for name, question in asked.items():
        told = recalled(kept, name)
        if told is not None and told[1].standard_deviation <= law.standard_deviation:
            found[name] = answer(question, *told, confidence, free=True)
        else:
            answer(question, 0, law, confidence)  # a confidence that is none spends nothing
            new[name] = question
    return found, new


def _asked(
    file: PlanFile, location: str, query: str | None, questions: Sequence[Asked]
) -> tuple[dict[str, Question], str]:
    """Return the distinct questions by their identity, and the identity of the table."""
    if not questions:
        raise QueryError("there is no question: ask at least one")
    read: dict[str, Any] = {
        "tables": [place(one) for one in (location, *(() if file.graph is None else file.graph.beside))],
        "query": query or file.query,
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
    read |= {"drop": dict(file.drop)} if file.drop else {}
    read |= {name: said for name in ("sheet", "comment") if (said := getattr(file, name))}
    read |= {"people": repr(dict(file.graph.people))} if file.graph is not None and file.graph.people else {}
    read |= {"prepared": list(file.prepared)} if file.prepared else {}
    found = [_question(one, file.plan.spine) for one in questions]
    named = {fingerprint(one, file.plan, file.columns, read): one for one in found}
    return named, fingerprint(None, file.plan, file.columns, read)


def _question(asked: Asked, spine: Spine) -> Question:
    if isinstance(asked, str):
        return parse(asked, spine)
    return Question.of(spine, asked) if isinstance(asked, Mapping) else from_conditions(asked, spine)
