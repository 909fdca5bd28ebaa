"""Public facts and private counts: what a run reads exactly because the plan says so, and what it may not contradict.

An invariant is told as it is: the neighbours that are protected have the same. All other facts are public already, and
here the private counts are compared with them before anything is charged: whether they agree is then told, by the
release or by its refusal, and the plan can choose to leave that open.
"""

from __future__ import annotations

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


def leaf_nodes(spine: Spine, counts: Counts) -> Ints:
    """Return the leaves that are there, by attribute (row): private."""
    nodes = np.zeros((len(spine.trees), len(counts)), np.int64)
    for level in spine.levels:
        go_down(spine, level.index, counts, nodes)
    return nodes


def with_invariants(facts: PublicFacts, counts: Counts) -> PublicFacts:
    """Return the facts with the private table's own counts of what the plan publishes as it is."""
    if not facts.invariants:
        return facts
    nodes, number = leaf_nodes(facts.spine, counts), np.diff(counts.before)
    tables = [Cells(facts.spine, depths) for depths in facts.invariants]
    every = {one.depths: one.counted(np.arange(one.number), nodes, facts.spine.finest, number) for one in tables}
    return facts.with_exact(every)


def possible_counts(facts: PublicFacts, counts: Counts) -> Counts:
    """Return the counts of leaves that are possible: others, which a plan may choose not to refuse, count nowhere."""
    if not facts.possible.rules:
        return counts
    spine = facts.spine
    there = facts.possible.allows(spine.finest, leaf_nodes(spine, counts))
    if there.all():
        return counts
    return counts.only(there)


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
    nodes, number = leaf_nodes(facts.spine, counts), np.diff(counts.before)
    for fact in checked:
        if (found := _impossible(fact, nodes, number) or _beyond(fact, nodes, number)) is not None:
            return fact, found
    return None


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


def _impossible(fact: TableFact, nodes: Ints, number: Ints) -> str | None:
    if fact.rule is None:
        return None
    finest = fact.table.spine.finest
    wrong = np.flatnonzero(~fact.rule.allows(finest, nodes))
    if len(wrong) == 0:
        return None
    cells = np.unique(fact.table.numbers(nodes[:, wrong], finest))
    return f"{int(number[wrong].sum()):,} records are in cells that are impossible, such as {_named(fact, cells)}"


def _beyond(fact: TableFact, nodes: Ints, number: Ints) -> str | None:
    """Say which counts are not within the bounds of a fact."""
    if fact.boxes is None:
        return None
    count = fact.table.counted(fact.boxes.cells, nodes, fact.table.spine.finest, number)
    wrong = np.flatnonzero((count < fact.boxes.lower) | (count > fact.boxes.upper))
    if len(wrong) == 0:
        return None
    first = int(wrong[0])
    low, high, own = fact.boxes.lower[first], fact.boxes.upper[first], count[first]
    told = f"{low:,}" if low == high else f"at least {low:,}" if own < low else f"at most {high:,}"
    more = f", and so for {len(wrong) - 1:,} more" if len(wrong) > 1 else ""
    return f"{fact.table.words(int(fact.boxes.cells[first]))} has {own:,} records where the fact says {told}{more}"


def _named(fact: TableFact, cells: Ints) -> str:
    return "; ".join(fact.table.words(int(cell)) for cell in cells[:_SHOWN])
