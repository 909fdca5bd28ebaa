"""Public facts and private counts: what a run reads exactly because the plan says so, and what it may not contradict.

An invariant is told as it is: the neighbours that are protected have the same. All other facts are public already, and
here the private counts are compared with them before anything is charged: whether they agree is then told, by the
release or by its refusal, and the plan can choose to leave that open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from treetop.domain.cells import Cells
from treetop.domain.fact import INVARIANT
from treetop.domain.facts import PublicFacts, TableFact
from treetop.domain.spine import Spine
from treetop.errors import FactError
from treetop.intake.counts import Counts, go_down

Ints = NDArray[np.int64]

_SHOWN = 3
PIECE = 1 << 20
"""So many leaves are compared at a time."""


def leaf_nodes(spine: Spine, counts: Counts) -> Ints:
    """Return the leaves that are there, by attribute (row): private."""
    nodes = np.zeros((len(spine.trees), len(counts)), np.int64)
    for level in spine.levels:
        go_down(spine, level.index, counts, nodes)
    return nodes


def _pieces(spine: Spine, counts: Counts) -> Iterator[tuple[Ints, Ints]]:
    """Yield the leaves that are there and their counts, some at a time: private, and there may be more than fit."""
    for begin in range(0, len(counts), PIECE):
        piece = counts.part(begin, min(begin + PIECE, len(counts)))
        yield leaf_nodes(spine, piece), np.diff(piece.before)


def with_invariants(facts: PublicFacts, counts: Counts) -> PublicFacts:
    """Return the facts with the private table's own counts of what the plan publishes as it is."""
    if not facts.invariants:
        return facts
    tables = [Cells(facts.spine, depths) for depths in facts.invariants]
    every = {one.depths: np.zeros(one.number, np.int64) for one in tables}
    for nodes, number in _pieces(facts.spine, counts):
        for one in tables:
            every[one.depths] += one.counted(np.arange(one.number), nodes, facts.spine.finest, number)
    return facts.with_exact(every)


def possible_counts(facts: PublicFacts, counts: Counts) -> Counts:
    """Return the counts of leaves that are possible: others, which a plan may choose not to refuse, count nowhere."""
    if not facts.possible.rules:
        return counts
    spine = facts.spine
    pieces = (facts.possible.allows(spine.finest, nodes) for nodes, _ in _pieces(spine, counts))
    there = np.concatenate([np.empty(0, np.bool_), *pieces])
    return counts if there.all() else counts.only(there)


def refuse_contradiction(facts: PublicFacts, counts: Counts) -> None:
    """Refuse private counts that contradict a public fact, unless the plan leaves that open; nothing is spent yet."""
    _refuse_other_invariants(facts, counts)
    if (found := contradiction(facts, counts)) is not None:
        fact, why = found
        raise FactError(
            f"the private table contradicts {fact.words}: {why}. Nothing was measured or charged; but who learns of "
            "this refusal learns that they disagree. Correct the fact or the table, or write unchecked = true with the "
            "fact: it is then kept whatever the table says"
        )


def contradiction(facts: PublicFacts, counts: Counts) -> tuple[TableFact, str] | None:
    """Return the first fact that counts contradict, and how; None where they agree with all that are compared."""
    checked = [fact for fact in facts if not fact.unchecked and INVARIANT not in fact.kinds]
    if not checked:
        return None
    compared = [_Compared.with_nothing(fact) for fact in checked]
    for nodes, number in _pieces(facts.spine, counts):
        for one in compared:
            one.add(nodes, number)
    return next(((one.fact, why) for one in compared if (why := one.impossible() or one.beyond()) is not None), None)


def _refuse_other_invariants(facts: PublicFacts, counts: Counts) -> None:
    """Refuse counts that are to be published as they are where they contradict a fact, also one that is not compared:
    a release cannot keep both. All neighbours that are protected have these counts, so this tells of nobody else."""
    try:
        if facts.invariants:
            with_invariants(facts, counts).check()
    except FactError as problem:
        raise FactError(
            f"the private table's own counts, which the plan publishes as they are, contradict what is public: "
            f"{problem}. Nothing was measured or charged"
        ) from problem


@dataclass
class _Compared:
    """A fact, and what the leaves so far have in the cells that it is about: private."""

    fact: TableFact
    count: Ints
    """By cell with bounds."""
    records: int = 0
    """In cells that are impossible."""
    cells: list[int] = field(default_factory=list)
    """The first of these."""

    @staticmethod
    def with_nothing(fact: TableFact) -> _Compared:
        return _Compared(fact, np.zeros(0 if fact.boxes is None else len(fact.boxes.cells), np.int64))

    def add(self, nodes: Ints, number: Ints) -> None:
        """Take in some leaves."""
        fact, finest = self.fact, self.fact.table.spine.finest
        if fact.rule is not None:
            wrong = np.flatnonzero(~fact.rule.allows(finest, nodes))
            cells = np.unique(fact.table.numbers(nodes[:, wrong], finest)).tolist()
            self.records += int(number[wrong].sum())
            self.cells = sorted({*self.cells, *cells})[:_SHOWN]
        if fact.boxes is not None:
            self.count += fact.table.counted(fact.boxes.cells, nodes, finest, number)

    def impossible(self) -> str | None:
        """Say how many records are where there can be none."""
        if not self.cells:
            return None
        return f"{self.records:,} records are in cells that are impossible, such as {_named(self.fact, self.cells)}"

    def beyond(self) -> str | None:
        """Say which counts are not within the bounds of a fact."""
        boxes, count = self.fact.boxes, self.count
        if boxes is None:
            return None
        wrong = np.flatnonzero((count < boxes.lower) | (count > boxes.upper))
        if len(wrong) == 0:
            return None
        first = int(wrong[0])
        low, high, own = boxes.lower[first], boxes.upper[first], count[first]
        told = f"{low:,}" if low == high else f"at least {low:,}" if own < low else f"at most {high:,}"
        more = f", and so for {len(wrong) - 1:,} more" if len(wrong) > 1 else ""
        return f"{self.fact.table.words(int(boxes.cells[first]))} has {own:,} records where the fact says {told}{more}"


def _named(fact: TableFact, cells: Sequence[int]) -> str:
    return "; ".join(fact.table.words(int(cell)) for cell in cells)
