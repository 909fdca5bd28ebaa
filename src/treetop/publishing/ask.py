"""Answer ad-hoc count queries with noise. Each is charged before its noise is drawn; repeated queries are free."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from treetop._util.dtypes import Floats, Ints
from treetop._util.kernel import kernel
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
    law_of,
    measure,
    parse,
    patterns,
    place,
    recalled,
    stored,
)
from treetop.noise import DiscreteGaussian, Law
from treetop.plan.file import PlanFile, read_plan
from treetop.privacy import Loss
from treetop.publishing._charging import Account, reading_of, report_spent_loss

# Answers that add up: all answers of a ledger about one table, fitted together.
# Answers were drawn one by one, so that a region and its towns need not agree. Anyone who has all answers can fit them;
# this module does so from the answers in the ledger alone, so it costs nothing. The answers do not change: an estimate
# stands beside each, and moves with further answers.
#
# An interval of a question is that of its own best measurement, by the exact law of the noise, or that of the linear
# combination of all measurements with the least variance, if it is narrower; the questions decide which, and not the
# noise. A sum of discrete Gaussians with any weights has tails below e^(−t²/2v), v its variance (Canonne, Kamath and
# Steinke 2020), so that such an interval is a little wide. Both hold if questions were not chosen by earlier answers.

# Counts of boxes that were measured one by one, made consistent: least squares over the pieces that they are made of.


_MOST_SWEEPS = 5_000
_NEAR = 1e-4


def fit_boxes(measured: Floats, variance: Floats, pieces: Sequence[int]) -> Ints:
    """Return a count for every box, from measurements of all of them; a piece is the set of its boxes, as bits.

    The real numbers that are not negative and fit best are found piece by piece, until nothing moves; then whole ones
    next to them, of which no single piece could be one more or one less and the counts be nearer.
    """
    inside = [[box for box in range(len(measured)) if piece >> box & 1] for piece in pieces]
    start = np.cumsum([0, *map(len, inside)])
    boxes = np.array([box for own in inside for box in own], np.int64)
    weight = 1 / np.maximum(variance, 1e-12)
    weight /= weight.max()
    number = np.zeros(len(inside))
    fitted = _descend(measured, weight, start, boxes, number, False)
    counts: Ints = _descend(fitted, weight, start, boxes, np.rint(number), True).astype(np.int64)
    return counts


@kernel
def _descend(target: Floats, weight: Floats, start: Ints, boxes: Ints, number: Floats, whole: bool) -> Floats:
    """Move one piece at a time to its best fit, or by one as long as that comes nearer; return the counts of boxes."""
    counts = np.zeros(len(target))
    for piece in range(len(number)):
        for at in range(start[piece], start[piece + 1]):
            counts[boxes[at]] += number[piece]
    for _ in range(_MOST_SWEEPS):
        moved = 0.0
        for piece in range(len(number)):
            slope, curve = 0.0, 0.0
            for at in range(start[piece], start[piece + 1]):
                box = boxes[at]
                slope += weight[box] * (target[box] - counts[box])
                curve += weight[box]
            step = max(slope / curve, -number[piece])
            if whole:
                step = 1.0 if slope > 0 else -1.0
                if 2 * step * slope <= curve * (1 + 1e-9) or number[piece] + step < 0:
                    continue
            number[piece] += step
            for at in range(start[piece], start[piece + 1]):
                counts[boxes[at]] += step
            moved = max(moved, abs(step))
        if moved < _NEAR:
            break
    return counts


MOST_COMBINED = 400
"""Most measurements combined for intervals; beyond, each question has the interval of its own measurement."""


@dataclass(frozen=True)
class QuestionEstimate:
    """The estimate for one question from all answers about a table: public, at no cost."""

    count: int
    """Whole and not negative; counts of questions that add up do. `answers` is how many answers it uses."""
    lower: int
    upper: int
    answers: int


@dataclass(frozen=True)
class _Measured:
    ranges: tuple[tuple[int, int], ...]
    value: int
    law: Law


def estimates(
    spine: Spine, asked: Sequence[Question], kept: Iterable[Mapping[str, Any]], scope: str, confidence: float
) -> list[QuestionEstimate] | None:
    """Fit all kept answers about a table, and return the estimate for each question; the questions are among them.

    `scope` identifies a table and its reader: answers about others are not mixed in. None if the answers cut the domain
    into too many pieces.
    """
    found = [_measured(one) for one in kept if one.get("scope") == scope]
    boxes = {one.ranges: Question({}, one.ranges) for one in found}
    pieces = patterns(spine, tuple(boxes.values())) if boxes else None
    if pieces is None or any(question.ranges not in boxes for question in asked):
        return None
    at = {ranges: index for index, ranges in enumerate(boxes)}
    own = np.array([at[one.ranges] for one in found])
    value = np.array([one.value for one in found], np.float64)
    variance = np.array([one.law.standard_deviation**2 for one in found])
    # A box that was measured twice counts as measured once, with the mean of least variance.
    precision = np.bincount(own, 1 / variance).astype(np.float64)
    mean = np.bincount(own, value / variance) / precision
    listed = sorted(piece for piece in pieces if piece)
    counts = fit_boxes(mean, 1 / precision, listed)
    margins = _intervals(found, own, mean, precision, listed, confidence)
    told = []
    for question in asked:
        index = at[question.ranges]
        middle, margin = margins[index]
        low, high = math.ceil(middle - margin), math.floor(middle + margin)
        told.append(QuestionEstimate(int(counts[index]), max(0, low), max(0, high), len(found)))
    return told


def _intervals(
    found: Sequence[_Measured], own: Ints, mean: Floats, precision: Floats, pieces: Sequence[int],
    confidence: float,
) -> list[tuple[float, float]]:  # fmt: skip
    """Return the middle of each box's interval and how far it reaches."""
    risk = 1 - Fraction(str(confidence))
    best: dict[int, _Measured] = {}
    for index, one in zip(own.tolist(), found, strict=True):
        if index not in best or one.law.standard_deviation < best[index].law.standard_deviation:
            best[index] = one
    told: list[tuple[float, float]] = [(best[index].value, best[index].law.margin(risk)) for index in range(len(mean))]
    if len(mean) > MOST_COMBINED or not all(isinstance(one.law, DiscreteGaussian) for one in found):
        return told
    inside = np.array([[piece >> box & 1 for piece in pieces] for box in range(len(mean))], np.float64)
    root = np.sqrt(precision)
    left, size, _ = np.linalg.svd(root[:, None] * inside, full_matrices=False)
    basis = left[:, size > 1e-9 * size.max()]
    middle = (basis @ (basis.T @ (root * mean))) / root
    reach = np.sqrt((basis**2).sum(axis=1)) / root * math.sqrt(2 * math.log(2 / risk)) * (1 + 1e-9)
    return [
        (float(middle[index]), float(reach[index])) if reach[index] < told[index][1] else told[index]
        for index in range(len(mean))
    ]


def _measured(kept: Mapping[str, Any]) -> _Measured:
    ranges = tuple((int(start), int(stop)) for start, stop in kept["ranges"])
    return _Measured(ranges, int(kept["measured"]), law_of(kept))


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
            read: dict[str, Any] = {"columns": file.columns, "count": file.count, "allow_dropped": allow_dropped}
            charge = partial(_reserve, account, batch, file, before_charging, reading)
            measured = measure(batch, file.plan, source, before_measuring=charge, progress=progress, **read)
            pairs = list(zip(new.items(), measured, strict=True))
            answers = [stored(name, scope, question, number, batch.law) for (name, question), number in pairs]
            if before_recording is not None:
                before_recording()
            # Recorded before it is told: an answer that was seen can always be had again.
            account.complete(sha256(json.dumps(answers).encode()).hexdigest(), answers)
        for (name, question), number in pairs:
            found[name] = answer(question, number, batch.law, confidence)
    book, dataset = account.ledger, account.dataset
    balance = book.balance(dataset)
    fitted = estimates(file.plan.spine, list(asked.values()), book.answers(dataset), scope, confidence)
    both = tuple(found[name] for name in asked), None if fitted is None else tuple(fitted)
    left = book.budget.say_left(balance.spending)
    return Answers(*both, account.reservation, dataset, balance.remaining, book.budget, book.head()[1], left)


def _reserve(
    account: Account, batch: Batch, file: PlanFile, before: Callable[[], object] | None, reading: Mapping[str, Any]
) -> None:
    if before is not None:
        before()
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
