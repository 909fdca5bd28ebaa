"""Deliberate faults in what is done with public facts and invariants."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from treetop import Counts, Unit
from treetop._util.numbers import NO_BOUND
from treetop.domain.constraints import PublicFacts, TableFact
from treetop.measure.margin_tables import Table
from treetop.noise import DiscreteGaussian
from treetop.plan.workload import Measured
from treetop.privacy import Sensitivity

from .faults import Fault, Patch

checks: Any = import_module("treetop.plan.constraints_kept")
descents: Any = import_module("treetop.measure.descent")
levels: Any = import_module("treetop.measure.level")
known: Any = import_module("treetop.measure.facts")
engines: Any = import_module("treetop.measure.descent")


def an_invariant_allowed_where_units_come_and_go(patch: Patch) -> None:
    patch.setattr(checks, "_check_invariants", lambda *_: None)


def compared_bounds_that_meet_allowed_where_units_come_and_go(patch: Patch) -> None:
    """Only facts that are called exact are refused."""

    def exact_only(check: Any, unit: Unit) -> None:
        for fact in check.facts:
            if "exact" in fact.kinds and not fact.unchecked:
                checks._refuse_fixed(fact.words, "", unit)

    patch.setattr(checks.FactCheck, "_refuse_compared", exact_only)


def an_exact_fact_read_from_the_private_table(patch: Patch) -> None:
    def own_counts(descent: Any, counts: Counts) -> Any:
        if descent.facts is None:
            return descent
        facts = PublicFacts(descent.facts.spine, tuple(map(_of(descent.facts, counts), descent.facts.facts)))
        steps = (step if step.facts is None else replace(step, facts=facts) for step in descent.steps)
        return replace(descent, facts=facts, steps=tuple(steps))

    patch.setattr(descents.Descent, "with_invariants", own_counts)


def _of(facts: PublicFacts, counts: Counts) -> Callable[[TableFact], TableFact]:
    """Give exact facts, and invariants, the private table's own counts."""
    nodes, number = known.leaf_nodes(facts.spine, counts), np.diff(counts.before)

    def told(fact: TableFact) -> TableFact:
        own = {"exact", "invariant"} & set(fact.kinds)
        every = np.arange(fact.table.number)
        return fact.told(fact.table.counted(every, nodes, facts.spine.finest, number)) if own else fact

    return told


def impossible_records_counted_with_their_siblings(patch: Patch) -> None:
    def moved(facts: PublicFacts, counts: Counts) -> Counts:
        kept: Counts = known.possible_counts(facts, counts)
        number, lost = np.diff(kept.before), counts.total - kept.total
        if lost == 0 or len(number) == 0:
            return kept
        number[0] += lost
        return Counts(kept.keys, np.concatenate([[0], np.cumsum(number)]))

    patch.setattr(descents, "possible_counts", moved)


def a_bound_by_the_true_counts(patch: Patch) -> None:
    """Children with a bound get no more than there is in truth under their parents."""
    original = levels.refine_batch_bounded
    names = inspect.signature(original.py_func).parameters

    def refine(*arguments: Any) -> Any:
        given = dict(zip(names, arguments, strict=True))
        true = given["before"][given["stops"]] - given["before"][given["starts"]]
        first, node = given["first"], given["node"]
        fanout = first[node + 1] - first[node]
        most = np.repeat(true, np.where(fanout > 1, fanout, 0))
        tighter = np.maximum(np.minimum(given["upper"], most), given["lower"])
        given["upper"] = np.where(given["upper"] < NO_BOUND, tighter, NO_BOUND)
        return original(*given.values())

    patch.setattr(levels, "refine_batch_bounded", refine)


def a_total_read_from_the_private_table_where_facts_state_it(patch: Patch) -> None:
    original = descents.measure_total
    patch.setattr(descents, "measure_total", lambda counts, how, key, *_: original(counts, how, key))


def a_margin_that_facts_decide_measured_and_not_paid_for(patch: Patch) -> None:
    original = engines._margins

    def with_more(plan: Any, *rest: Any) -> Any:
        margins, under = original(plan, *rest)
        listed = {table.depths for table in margins.tables}
        decided = [plan.spine.depths(part.index) for part in plan.levels[1:] if part.is_exact]
        more = [
            Table(depths, Measured(DiscreteGaussian(Fraction(1))), 999) for depths in decided if depths not in listed
        ]
        return replace(margins, tables=(*margins.tables, *more)), under

    patch.setattr(engines, "_margins", with_more)
    engines.descent_of.cache_clear()


def a_replacement_below_an_invariant_taken_for_one_cell(patch: Patch) -> None:
    """As if a record that stays in its state moved one count below it."""
    original = Unit.sensitivity

    def halved(unit: Unit, level: str) -> Sensitivity:
        right = original(unit, level)
        below = level in ("place.digits2", "origin.digits2") and unit.neighbours == "replace"
        return Sensitivity(right.l1 // 2, right.l2_squared // 2) if below else right

    patch.setattr(Unit, "sensitivity", halved)


def nodes_named_where_there_are_private_records(patch: Patch) -> None:
    """What a bound names is named only if somebody is there."""
    original = levels.refine_batch_bounded
    names = inspect.signature(original.py_func).parameters

    def refine(*arguments: Any) -> Any:
        given = dict(zip(names, arguments, strict=True))
        if (given["starts"] == given["stops"]).any():
            given["denied"] = given["denied"] | (given["starts"] == given["stops"])
        return original(*given.values())

    patch.setattr(levels, "refine_batch_bounded", refine)


def an_invariant_of_other_counts_than_its_neighbours_have(patch: Patch) -> None:
    """The invariant is read one level finer than is told, and its cells are taken for bounds."""
    original = known.with_invariants

    def finer(facts: PublicFacts, counts: Counts) -> PublicFacts:
        found: PublicFacts = original(facts, counts)
        if not facts.invariants:
            return found
        nodes, number = known.leaf_nodes(facts.spine, counts), np.diff(counts.before)
        depths = facts.spine.depths(len(facts.spine.levels))
        leaf = replace(facts.facts[0], table=type(facts.facts[0].table)(facts.spine, depths))
        told = leaf.told(leaf.table.counted(np.arange(leaf.table.number), nodes, depths, number))
        return PublicFacts(facts.spine, (*found.facts, told))

    patch.setattr(descents, "with_invariants", finer)


_BY_AUDIT: dict[str, tuple[Callable[[Patch], None], ...]] = {
    "facts, add-remove": (an_invariant_allowed_where_units_come_and_go,),
    "facts, neighbours": (compared_bounds_that_meet_allowed_where_units_come_and_go,),
    "facts, exact": (an_exact_fact_read_from_the_private_table,),
    "facts, same measurements zeros": (impossible_records_counted_with_their_siblings,),
    "facts, same measurements bounds": (a_bound_by_the_true_counts,),
    "facts, same measurements kept": (
        nodes_named_where_there_are_private_records,
        a_total_read_from_the_private_table_where_facts_state_it,
    ),
    "words": (a_margin_that_facts_decide_measured_and_not_paid_for,),
    "facts, measurements": (
        a_replacement_below_an_invariant_taken_for_one_cell,
        an_invariant_of_other_counts_than_its_neighbours_have,
    ),
}
FAULTS_OF_FACTS = [Fault(make, first) for first, makes in _BY_AUDIT.items() for make in makes]
