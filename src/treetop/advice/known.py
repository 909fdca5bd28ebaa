"""Public facts where a plan is tried on a public table, or in another order.

A twin is of another year, or made up: its totals are not those that are public of the private table. In a trial exact
facts therefore have the twin's own numbers, so that its errors are those of the noise. Bounds and impossible cells stay
as they are, and a twin that contradicts them is refused: it is no twin of a table that keeps them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from treetop.counts.constraint_reader import COUNT, fact_of
from treetop.counts.counts import Counts
from treetop.domain.constraints import COUNTED, INVARIANT, Fact, PublicFacts, TableFact
from treetop.domain.spine_level import Ints
from treetop.errors import FactError
from treetop.measure.bounded import contradiction, leaf_nodes
from treetop.plan.plan import Plan

EXACT = "exact"
TOLD = (
    "In the trials, facts that are exact counts have those of the twin: its errors are then those of the noise, and "
    "not of another year."
)
"""What is to be said where a twin has other counts than public facts say."""


def fitted(plan: Plan, twin: Counts) -> Plan:
    """Return a plan with which a public table can be tried; refuse a table that contradicts bounds or zeros."""
    facts = plan.public_facts
    if not facts:
        return plan
    others = PublicFacts(facts.spine, tuple(fact for fact in facts if EXACT not in fact.kinds))
    if (found := contradiction(others, twin)) is not None:
        fact, why = found
        raise FactError(
            f"the twin contradicts {fact.words}: {why}. A trial on it would say nothing of this plan: give a twin that "
            "keeps the facts, or leave that fact out of a copy of the plan"
        )
    own = _with_counts(facts, twin)
    return plan if own is facts else replace(plan, facts=own)


def differs(plan: Plan, twin: Counts) -> bool:
    """Whether a twin has other counts than exact facts say."""
    facts = plan.public_facts
    return bool(facts) and _with_counts(facts, twin) is not facts


def _with_counts(facts: PublicFacts, twin: Counts) -> PublicFacts:
    """Return facts whose exact counts are those of a public table; the same ones where they are anyway."""
    told = [fact for fact in facts if EXACT in fact.kinds]
    if not told:
        return facts
    nodes, number = leaf_nodes(facts.spine, twin), np.diff(twin.before)
    finest = facts.spine.finest
    moved = {fact.name: fact.table.counted(fact.stated[EXACT][0], nodes, finest, number) for fact in told}
    if all(np.array_equal(moved[fact.name], fact.stated[EXACT][1]) for fact in told):
        return facts
    return PublicFacts(facts.spine, tuple(_told(fact, moved.get(fact.name)) for fact in facts))


def _told(fact: TableFact, count: Ints | None) -> TableFact:
    if count is None:
        return fact
    stated = {EXACT: (fact.stated[EXACT][0], count)}
    return fact_of(fact.table, fact.kinds, stated, unchecked=fact.unchecked, places=fact.places)


def stated_again(facts: PublicFacts) -> dict[str, Fact]:
    """Return facts by table, for a spine of another order, as they could have been given."""
    return {fact.name: _as_given(fact) for fact in facts}


def _as_given(fact: TableFact) -> Fact:
    names = fact.name.split(" * ")
    given: dict[str, pa.Table] = {}
    for kind, (cells, numbers) in fact.stated.items():
        nodes = fact.table.nodes(cells)
        columns = {
            name: fact.table.codes(one).take(pa.array(nodes[one]))
            for name, one in zip(names, fact.table.attributes, strict=True)
        }
        given[kind] = pa.table(columns | ({COUNT: pa.array(numbers)} if kind in COUNTED else {}))
    return Fact(**given, invariant=INVARIANT in fact.kinds, unchecked=fact.unchecked)
