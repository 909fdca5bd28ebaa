"""Ad-hoc questions: noisy counts of the records that match some codes, for any plan.

One unit has at most m records, so it moves one count by at most m, whether it is added, removed or exchanged: the count
is between 0 and m larger with it than without it. Of k counts, a record moves as many as it matches. Let d be the most
questions that any one leaf of the public domain matches, and s the most in which two leaves differ. By the triangle
inequality m records move the counts by at most m·√d in L2 and m·d in L1 when a unit is added or removed, and by m·√s
and m·s when it is exchanged; d and s are at most k. So k questions about different places cost little more than one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from treetop._util.files import resolved
from treetop._util.system import Progress
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.counts import Counts, go_down
from treetop.counts.graph_reader import GraphTable
from treetop.counts.reading import read_counts
from treetop.counts.tally import Tally
from treetop.domain.conditions import parse_conditions, typed_conditions
from treetop.domain.spine import Spine
from treetop.domain.unit import GuaranteeCondition
from treetop.errors import DataError, LossError, PlanError, QueryError
from treetop.io.database import sqlite_path
from treetop.io.source import Source
from treetop.io.table import Table
from treetop.measure.measure import measuring
from treetop.measure.readers import check_table
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Law
from treetop.noise.gate import Gate, digest
from treetop.plan.plan import Plan
from treetop.plan.workload import Measured, Part, Workload, cells_of
from treetop.privacy import Loss, Sensitivity, Unit
from treetop.privacy.accountant import cost_of, noise_for
from treetop.privacy.composition import Cells

MOST_QUESTIONS = 10_000
MOST_PATTERNS = 1 << 16
"""Maximum number of distinct sets of matching questions; beyond it, the bound assumes that one record matches all."""

Range = tuple[int, int]


@dataclass(frozen=True)
class Question:
    """One count: the records with a leaf in a given range for every attribute."""

    where: Mapping[str, str]
    """Requested codes by attribute."""
    ranges: tuple[Range, ...]
    """For each attribute of the spine, the first leaf and the one after the last."""

    @staticmethod
    def of(spine: Spine, where: Mapping[str, str]) -> Question:
        """Find the codes in the hierarchies; refuse one that is unknown, or that stands at several levels."""
        ranges = [(0, tree.sizes[-1]) for tree in spine.trees]
        for name, code in where.items():
            attribute, start, stop = spine.find(name, code)
            low, high = ranges[attribute]
            ranges[attribute] = max(low, start), min(high, stop)
            if ranges[attribute][0] >= ranges[attribute][1]:
                raise QueryError(f"{name}={code} is not within the other codes that are asked of it: nothing is both")
        return Question(dict(where), tuple(ranges))


def parse(text: str, spine: Spine) -> Question:
    """Parse a typed question: `region=Zilina hobby="live music"`, with quotes around spaces."""
    return from_conditions(typed_conditions(text), spine)


def from_conditions(conditions: Sequence[str], spine: Spine) -> Question:
    """Read conditions ATTRIBUTE=CODE, as `treetop query` does."""
    return Question.of(spine, parse_conditions(conditions, spine))


@dataclass(frozen=True)
class Batch:
    """Questions that are asked at once and share one loss."""

    spine: Spine
    questions: tuple[Question, ...]
    """The questions, without duplicates."""
    unit: Unit
    loss: Loss
    """Loss of all questions together."""
    conditions: tuple[GuaranteeCondition, ...] = ()
    """Conditions of the plan's guarantee. The questions need none, but their losses add up with those of the plan's
    releases only for neighbours that meet these conditions."""

    @classmethod
    def of(cls, plan: Plan, questions: tuple[Question, ...], loss: Loss) -> Self:
        """Return questions with the protected unit of a plan."""
        if plan.pairs is not None:
            raise PlanError(
                "a question is about one cell, and unordered pairs of two places may be several: release the plan, and "
                "query it"
            )
        return cls(plan.spine, questions, plan.unit, loss, plan.conditions)

    def __post_init__(self) -> None:
        if self.loss.accounting == "exact":
            raise LossError('exact accounting is for releases, not for questions: use accounting = "zcdp"')
        self.loss.refuse_large_delta(
            self.unit.population, f"the least number of units ({self.unit.entity}) that is public"
        )
        if not self.questions:
            raise QueryError("there is no question: ask at least one")
        if len(self.questions) > MOST_QUESTIONS:
            raise QueryError(f"there are {len(self.questions):,} questions at once: ask at most {MOST_QUESTIONS:,}")
        if self.law.margin(Fraction(1, 2**80)) >= 2**56:
            raise LossError("the noise would be too wide for 64-bit counts: give a larger loss")

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """Return how far one unit can move the counts."""
        matched = patterns(self.spine, self.questions)
        if matched is None:
            most = len(self.questions)
        elif self.unit.neighbours == "add-remove":
            most = max(pattern.bit_count() for pattern in matched)
        else:
            most = _farthest(matched, len(self.questions))
        m = self.unit.contributions
        return Sensitivity(l1=m * most, l2_squared=m**2 * most)

    @cached_property
    def law(self) -> Law:
        """The noise of each count."""
        return noise_for(self.sensitivity, self.loss)

    @cached_property
    def workload(self) -> Workload:
        """The workload: one table with one cell per question."""
        spent = cost_of(self.sensitivity, self.law)
        return Workload((Part(0, "questions", len(self.questions), Fraction(1), Measured(self.law), spent),))

    @property
    def cells(self) -> Cells | None:
        """Cells that one unit changes by at most 1, with their noise; None if it can change a cell by more."""
        return cells_of(self.unit, self.workload)

    @property
    def spent(self) -> Fraction:
        """The cost: rho, or epsilon for a pure loss."""
        return self.workload.spent


@dataclass(frozen=True)
class Answer:
    """A noisy count (released)."""

    where: Mapping[str, str]
    """Requested codes by attribute."""
    measured: int
    """The count plus noise, as drawn: unbiased, and possibly negative."""
    margin: int
    """Half width of the interval around `measured`, with the stated confidence."""
    confidence: float
    """Confidence of the margin, between 0 and 1."""
    law: Law
    free: bool = False
    """Whether the ledger had this answer, so that it cost nothing."""

    @property
    def count(self) -> int:
        """The measurement, or 0 if it is negative."""
        return max(0, self.measured)

    @property
    def lower(self) -> int:
        """Lower end of the interval."""
        return max(0, self.measured - self.margin)

    @property
    def upper(self) -> int:
        """Upper end of the interval."""
        return max(0, self.measured + self.margin)


class Numbers(list[int]):
    """Counts plus noise, in the order of their questions."""

    def __init__(self, numbers: Iterable[int], private: bool = True) -> None:
        super().__init__(numbers)
        self.private = private
        """False with a testing key: such answers are not private and must not be released."""


def measure(
    batch: Batch,
    plan: Plan,
    table: Table,
    *,
    columns: Mapping[str, str] | None = None,
    count: str | None = None,
    before_measuring: Callable[[], object],
    progress: Progress | None = None,
    allow_dropped: bool = False,
    testing_key: bytes | None = None,
) -> Numbers:
    """Read the private table and return each count plus noise.

    `before_measuring` is called after the table is read, to reserve the loss. Nothing is spent before it, and noise is
    drawn after it. As in a release, `ManyDropped` is raised before it if more than 3 % of the table is unknown, unless
    `allow_dropped`.
    """
    _refuse_other(batch, plan)
    check_table(plan, table)
    _refuse_large_delta(batch, table)
    gate, decided = Gate(testing_key), bytes.fromhex(plan.digest)
    cap = ContributionCap.of(batch.unit, gate.choice("bound", decided))
    tally = Tally()
    counts = read_counts(table, plan.spine, columns, count, plan.unknown, cap, progress, tally)
    tally.settle(batch.unit, allow_dropped)
    asked = digest([question.ranges for question in batch.questions])
    data = counts.digest_under(gate.choice("counts", decided))
    with measuring(batch.workload, gate, before_measuring, "ask", decided, asked, data) as run:
        leaves, number = leaves_of(plan.spine, counts)
        true = np.array([_count(question, leaves, number) for question in batch.questions], np.int64)
        return Numbers(run.noisy(batch.workload.parts[0], true).tolist(), gate.private)


def _refuse_other(batch: Batch, plan: Plan) -> None:
    """Refuse questions for another unit or domain than the plan's."""
    stated = [
        {name: getattr(unit, name) for name in ("id", "id_clean", "contributions", "neighbours", "distinct")}
        for unit in (batch.unit, plan.unit)
    ]
    other = [name for name in stated[0] if stated[0][name] != stated[1][name]]
    if batch.unit.graph != plan.graph:
        other.append("graph")
    if other:
        raise PlanError(
            f"the questions and the plan do not protect the same unit: {', '.join(other)} must agree, or the noise is "
            "made for another. Make the batch with unit=plan.unit"
        )
    if batch.spine.digest != plan.spine.digest:
        raise PlanError("the questions and the plan are about other domains: make the batch with spine=plan.spine")


def _refuse_large_delta(batch: Batch, table: Table) -> None:
    """Refuse a large delta if the number of units is public by itself.

    A release may also use its exact total, which it publishes. Questions do not publish the total, and a refusal would
    reveal it.
    """
    if isinstance(table, GraphTable):
        batch.loss.refuse_large_delta(table.public_units, f"the number of units ({batch.unit.entity}), which is public")


def answer(question: Question, measured: int, law: Law, confidence: float = 0.95, free: bool = False) -> Answer:
    """Return a measurement with its margin: the exact quantile of its noise."""
    if not 0 < confidence < 1:
        raise QueryError(f"confidence is {confidence}: give a probability between 0 and 1")
    return Answer(question.where, measured, law.margin(1 - Fraction(str(confidence))), confidence, law, free)


def stored(fingerprint: str, scope: str, question: Question, measured: int, law: Law) -> dict[str, Any]:
    """Return a ledger entry of a measurement, with its question and scope."""
    return {
        "question": fingerprint,
        "scope": scope,
        "ranges": [list(ends) for ends in question.ranges],
        "measured": measured,
        **law.describe(),
    }


def recalled(kept: Iterable[Mapping[str, Any]], fingerprint: str) -> tuple[int, Law] | None:
    """Return the most accurate measurement of a question in a ledger, with its noise; None if there is none."""
    found = [(int(one["measured"]), law_of(one)) for one in kept if one["question"] == fingerprint]
    return min(found, key=lambda one: one[1].standard_deviation, default=None)


def law_of(kept: Mapping[str, Any]) -> Law:
    """Return the noise of a measurement in a ledger."""
    if "scale" in kept:
        return DiscreteLaplace(Fraction(kept["scale"]))
    return DiscreteGaussian(Fraction(kept["variance"]))


def _count(question: Question, leaves: Sequence[NDArray[np.int64]], number: NDArray[np.int64]) -> int:
    matching = np.ones(len(number), bool)
    for (start, stop), leaf in zip(question.ranges, leaves, strict=True):
        matching &= (leaf >= start) & (leaf < stop)
    return int(number[matching].sum())


def leaves_of(spine: Spine, counts: Counts) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Return for each attribute the leaf of every non-empty cell, and the cells' counts. Private."""
    nodes = [np.zeros(len(counts), np.int64) for _ in spine.trees]
    for level in spine.levels:
        go_down(spine, level.index, counts, nodes)
    return nodes, np.diff(counts.before)


def patterns(spine: Spine, questions: Sequence[Question]) -> set[int] | None:
    """Return the sets of questions that a leaf can match, as bits, with the empty one; None if there are too many."""
    found = {(1 << len(questions)) - 1}
    for attribute in range(len(spine.trees)):
        cuts = sorted({end for question in questions for end in question.ranges[attribute]} | {0})
        masks = {
            sum(1 << i for i, question in enumerate(questions) if _covers(question.ranges[attribute], piece))
            for piece in pairwise([*cuts, spine.trees[attribute].sizes[-1]])
            if piece[0] < piece[1]
        }
        if len(found) * len(masks) > MOST_PATTERNS:
            return None
        found = {pattern & mask for pattern in found for mask in masks}
    # Nobody has to have a record, or as many as another.
    return found | {0}


def _covers(outer: Range, inner: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _farthest(patterns: Iterable[int], questions: int) -> int:
    """Return the most questions in which two leaves differ, or an upper bound if there are many sets."""
    listed = sorted(patterns, key=int.bit_count, reverse=True)
    if len(listed) > 2_000:
        return min(questions, sum(pattern.bit_count() for pattern in listed[:2]))
    best = 0
    for i, one in enumerate(listed):
        if 2 * one.bit_count() <= best:
            break
        best = max(best, *((one ^ other).bit_count() for other in listed[i:]))
    return best


def place(location: str) -> str:
    """Return a table's location, the same from every folder: an absolute path, or a database without its password."""
    source = Source(location)
    if location == "-" or source.scheme not in (None, "sqlite"):
        return str(source)
    try:
        return str(resolved(sqlite_path(location) if source.scheme else location))
    except (OSError, RuntimeError, ValueError) as problem:  # a path that cannot be
        raise DataError(f"{location!r}: cannot be read: {problem}") from problem


def fingerprint(question: Question | None, plan: Plan, columns: Mapping[str, str], read: Mapping[str, Any]) -> str:
    """Return a fingerprint of a question: its domain, unit, ranges, and the table's location and read options.

    Without a question, it is the fingerprint that all questions about the table share. The plan's title, loss and
    declared total are not included.
    """
    told = plan.describe()
    same = {name: told[name] for name in ("attributes", "unit", "unknown")}
    for name in ("may_be_missing", "population"):  # how the total of a release is told, and what is known of it
        same["unit"].pop(name, None)
    ranges = None if question is None else dict(zip(plan.spine.attributes, question.ranges, strict=True))
    parts = {**same, "columns": dict(columns), "read": dict(read), "ranges": ranges}
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
