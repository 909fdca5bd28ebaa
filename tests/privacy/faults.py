"""Deliberate faults, each put into the real code: what a slip of the hand, or one of the papers, would do.

Kernels that are compiled into others are reached by running the one that calls them as Python.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from treetop import Counts, Loss, Unit
from treetop.counts import contribution_cap as bounds
from treetop.domain.spine_level import PlaceNumbering
from treetop.domain.unit import TOTAL
from treetop.measure.level import Descended, Frontier
from treetop.measure.measure import LevelEvidence
from treetop.noise import LAWS, DiscreteGaussian, DiscreteLaplace, Key, Law, NoiseStream, sampler
from treetop.privacy import Sensitivity

from .engine import tasks

batches: Any = import_module("treetop.measure._batch")
blocks: Any = import_module("treetop.measure.blocks")
levels: Any = import_module("treetop.measure.level")
margins: Any = import_module("treetop.measure.margin_tables")
measuring: Any = import_module("treetop.measure.measure")
plans: Any = import_module("treetop.plan.workload")
losses: Any = import_module("treetop.privacy.loss")
runs: Any = import_module("treetop.release.run")
exact: Any = import_module("treetop.privacy.accountant")
Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Fault:
    """One thing done wrong."""

    make: Callable[[Patch], None]
    first: str = ""
    """How the names of the audits begin that look for it before the others do: only to be quick."""

    def __str__(self) -> str:
        return self.make.__name__.replace("_", " ")


def narrowed(law: Law, factor: Fraction) -> Law:
    if isinstance(law, DiscreteGaussian):
        return DiscreteGaussian(law.variance * factor**2)
    assert isinstance(law, DiscreteLaplace)
    return DiscreteLaplace(law.scale * factor)


def _narrow_noise(patch: Patch, factor: Fraction) -> None:
    for module in (levels, measuring, blocks, margins):
        patch.setattr(module, "NoiseStream", lambda law, key: NoiseStream(narrowed(law, factor), key))


def noise_of_half_the_scale(patch: Patch) -> None:
    _narrow_noise(patch, Fraction(1, 2))


def noise_three_percent_too_small(patch: Patch) -> None:
    _narrow_noise(patch, Fraction(97, 100))


def a_margin_that_nobody_pays_for(patch: Patch) -> None:
    """The levels are given all of the loss, and the margins are measured beside them."""
    shares, cost = plans.table_shares, plans.cost

    def to_levels(split: Any, names: list[str], beside: list[str]) -> Any:
        return shares("uniform", names, []) | {name: Fraction(3, 10) for name in beside}

    patch.setattr(plans, "table_shares", to_levels)
    patch.setattr(plans, "cost", lambda unit, name, law: 0 if name.startswith("margin") else cost(unit, name, law))


def noise_of_margins_too_narrow(patch: Patch) -> None:
    patch.setattr(margins, "NoiseStream", lambda law, key: NoiseStream(narrowed(law, Fraction(1, 2)), key))


def a_margin_of_an_attribute_taken_for_one_cell(patch: Patch) -> None:
    """That a replaced record moves two cells of a margin is forgotten."""

    def one_cell(unit: Unit, level: str, right: Sensitivity) -> Sensitivity:
        return Sensitivity(1, 1) if level.startswith("margin") else right

    _sensitivity(patch, one_cell)


def the_true_counts_of_a_margin_kept(patch: Patch) -> None:
    original = margins.measure_margins

    def leaking(tables: Any, counts: Counts, total: int, key: Key, *facts: Any) -> Any:
        kept = original(tables, counts, total, key, *facts)
        true = dict(zip((table.depths for table in tables.tables), margins._true_tables(tables, counts), strict=True))
        return replace(kept, counts=margins.consistent(tables.trees, tables.tables, true, total).counts)

    patch.setattr(import_module("treetop.measure.descent"), "measure_margins", leaking)


def a_sampler_three_percent_too_narrow(patch: Patch) -> None:
    original = sampler.sampler
    patch.setattr(sampler, "sampler", lambda law: original(narrowed(law, Fraction(97, 100))))


def _sensitivity(patch: Patch, change: Callable[[Unit, str, Sensitivity], Sensitivity]) -> None:
    original = Unit.sensitivity
    patch.setattr(Unit, "sensitivity", lambda unit, level: change(unit, level, original(unit, level)))


def m_records_taken_for_records_in_distinct_cells(patch: Patch) -> None:
    def root_of_2m(unit: Unit, level: str, right: Sensitivity) -> Sensitivity:
        return right if level == TOTAL else Sensitivity(right.l1, right.l2_squared // unit.contributions)

    _sensitivity(patch, root_of_2m)


def replacing_taken_for_removing(patch: Patch) -> None:
    def one_side(unit: Unit, level: str, right: Sensitivity) -> Sensitivity:
        if level == TOTAL or unit.neighbours == "add-remove":
            return right
        return Sensitivity(right.l1 // 2, right.l2_squared // 2)

    _sensitivity(patch, one_side)


def a_total_that_changes_by_one_record(patch: Patch) -> None:
    _sensitivity(patch, lambda _, level, right: Sensitivity(1, 1) if level == TOTAL else right)


def euclidean_distance_for_laplace_noise(patch: Patch) -> None:
    _sensitivity(patch, lambda _, __, right: Sensitivity(math.isqrt(right.l2_squared), right.l2_squared))


def one_level_left_out_of_the_composition(patch: Patch) -> None:
    shares, cost = plans.shares, plans.cost

    def too_large(split: Any, names: Any) -> tuple[Fraction, ...]:
        part = shares(split, names[1:]) if len(names) > 1 else shares(split, names)
        return (part[0], *part) if len(names) > 1 else part

    def free_at_the_top(unit: Unit, level: str, law: Any) -> Fraction:
        return Fraction(0) if level in (TOTAL, "place.digits1") else cost(unit, level, law)

    patch.setattr(plans, "shares", too_large)
    patch.setattr(plans, "cost", free_at_the_top)


def epsilon_turned_into_rho_without_delta(patch: Patch) -> None:
    patch.setattr(losses, "rho_from_epsilon", lambda epsilon, delta: Fraction(epsilon) ** 2 / 2)


def discrete_noise_accounted_for_as_continuous(patch: Patch) -> None:
    def of_continuous_noise(epsilon: Fraction, delta: Fraction, *_: Any) -> Fraction:
        known = exact.rho_from_epsilon(epsilon, delta)
        return Fraction(exact._continuous(float(epsilon), math.log(delta), float(known))[0])

    patch.setattr(exact, "exact_rho", of_continuous_noise)


def pure_epsilon_given_to_every_level_in_full(patch: Patch) -> None:
    noise, cost = plans.level_noise, plans.cost

    def in_full(unit: Unit, loss: Loss, level: str, share: Fraction) -> Law:
        law: Law = noise(unit, loss, level, 1 if loss.definition == "pure" else share)
        return law

    patch.setattr(plans, "level_noise", in_full)
    patch.setattr(plans, "cost", lambda unit, level, law: cost(unit, level, law) / 100)


def _exact_total(patch: Patch, exact: Callable[[Unit, bool], bool]) -> None:
    def total_is_exact(unit: Unit, records_may_be_dropped: bool) -> bool:
        return exact(unit, records_may_be_dropped)

    patch.setattr(Unit, "total_is_exact", total_is_exact)


def a_registered_law_that_understates_its_cost(patch: Patch) -> None:
    for law in LAWS.values():
        costing, cost = law.costing, law.cost
        patch.setattr(law, "costing", classmethod(lambda _, l1, l2, spent, costing=costing: costing(l1, l2, 2 * spent)))
        patch.setattr(law, "cost", lambda own, l1, l2, cost=cost: cost(own, l1, l2) / 2)


def the_exact_total_of_units_with_many_records(patch: Patch) -> None:
    _exact_total(patch, lambda unit, dropped: unit.neighbours == "replace" and not dropped)


def the_exact_total_of_records_that_may_be_dropped(patch: Patch) -> None:
    _exact_total(patch, lambda unit, _: unit.neighbours == "replace" and unit.contributions == 1)


def the_exact_total_when_units_come_and_go(patch: Patch) -> None:
    _exact_total(patch, lambda *_: True)


def _derivation(patch: Patch, forget: Callable[[str], bool]) -> None:
    original = Key.derive

    def derive(key: Key, purpose: str, *parts: int | bytes) -> Key:
        return original(key, purpose, *(() if forget(purpose) else parts))

    patch.setattr(Key, "derive", derive)


def noise_reused_between_levels(patch: Patch) -> None:
    _derivation(patch, lambda purpose: purpose == "level")


def noise_reused_between_cousins(patch: Patch) -> None:
    original = PlaceNumbering.first
    patch.setattr(PlaceNumbering, "first", lambda places, nodes: original(replace(places, beside=()), nodes))


def the_key_reused_for_another_table(patch: Patch) -> None:
    patch.setattr(Counts, "digest_under", lambda *_: bytes(32))


def noise_reused_between_batches(patch: Patch) -> None:
    original = NoiseStream.fill_runs

    def from_the_start(stream: NoiseStream, out: Any, place: Any, size: Any) -> None:
        original(stream, out, place - place[:, :1], size)

    patch.setattr(NoiseStream, "fill_runs", from_the_start)


def _before_refining(patch: Patch, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what the kernel of a batch is given, by the names of its arguments."""
    original = levels.refine_batch
    names = inspect.signature(original.py_func).parameters

    def refine(*arguments: Any) -> Any:
        given = dict(zip(names, arguments, strict=True))
        change(given)
        return original(*given.values())

    patch.setattr(levels, "refine_batch", refine)


def noise_reused_between_siblings(patch: Patch) -> None:
    def one_draw_a_node(given: dict[str, Any]) -> None:
        slot, noise, first = given["only"], given["value"], given["first"]
        for at in given["node"]:
            fanout = int(first[at + 1] - first[at])
            if fanout > 1:
                noise[slot : slot + fanout] = noise[slot]
                slot += fanout

    _before_refining(patch, one_draw_a_node)


def the_true_count_of_the_parent_used_in_a_repair(patch: Patch) -> None:
    def the_true_count(given: dict[str, Any]) -> None:
        true = given["before"][given["stops"]] - given["before"][given["starts"]]
        given["released"] = np.where(true > 0, true, given["released"])

    _before_refining(patch, the_true_count)


def ties_broken_by_the_words_that_made_the_noise(patch: Patch) -> None:
    def ties_from_noise(given: dict[str, Any]) -> None:
        given["ties"] = np.full(len(given["node"]), np.abs(given["value"][given["only"] :][:64]).sum())

    _before_refining(patch, ties_from_noise)


def only_children_that_are_present_measured(patch: Patch) -> None:
    absent = np.int64(-(2**60))
    add, look, solve = batches.add_counts, batches.look, batches.solve_further

    def add_present(noise: NDArray[np.int64], *rest: Any) -> int:
        true = np.zeros_like(noise)
        add(true, *rest)
        after = int(add(noise, *rest))
        noise[true == 0] = absent if true.any() else noise[true == 0]
        return after

    def look_at_present(state: NDArray[np.int64], x: NDArray[np.int64]) -> int:
        present = np.flatnonzero(x > absent)
        own = look(state, x[present])
        return int(present[own]) if own >= 0 else -1

    patch.setattr(batches, "add_counts", add_present)
    patch.setattr(batches, "look", look_at_present)
    patch.setattr(batches, "solve_further", lambda state, scratch, x: solve(state, scratch, x[x > absent]))
    patch.setattr(levels, "refine_batch", batches.refine_batch.py_func)


def children_named_by_their_true_counts(patch: Patch) -> None:
    original, draw = tasks.count_high, levels._Measuring.draw

    def in_silence(measuring: Any, children: Any, start: int, stop: int) -> int:
        only: int = draw(measuring, children, start, stop)
        children.value[only:] = 0
        return only

    def without_noise(task: Any, tests: int) -> Any:
        with pytest.MonkeyPatch.context() as silence:
            silence.setattr(levels._Measuring, "draw", in_silence)
            return original(task, tests)

    patch.setattr(tasks, "count_high", without_noise)


def only_children_named_by_their_true_counts(patch: Patch) -> None:
    original = levels._Measuring.__init__

    def begin(measuring: Any, step: Any, counts: Counts, above: Frontier, *rest: Any) -> None:
        original(measuring, step, counts, above, *rest)
        measuring.denied |= (measuring.slots == 0) & (above.start == above.stop)

    patch.setattr(levels._Measuring, "__init__", begin)


def the_true_total_kept_beside_the_release(patch: Patch) -> None:
    original = runs.run_descent

    def run_descent(descent: Any, counts: Counts, *rest: Any, **options: Any) -> Any:
        measured = original(descent, counts, *rest, **options)
        if measured.evidence is None:
            return measured
        return replace(measured, evidence=replace(measured.evidence, total=counts.total))

    patch.setattr(runs, "run_descent", run_descent)


def the_true_counts_kept_for_intervals(patch: Patch) -> None:
    original = tasks.refine

    def refine(step: Any, counts: Counts, *rest: Any) -> Descended:
        below: Descended = original(step, counts, *rest)
        kept = below.frontier
        if not below.levels or not len(kept.start):
            return below
        true = counts.before[kept.stop] - counts.before[kept.start]
        seen = LevelEvidence.join(below.levels[0])
        return replace(below, levels=((replace(seen, measured=true),),))

    patch.setattr(tasks, "refine", refine)


def invented_children_taken_out_again(patch: Patch) -> None:
    original = tasks.refine

    def without_inventions(step: Any, counts: Counts, *rest: Any) -> Descended:
        below: Descended = original(step, counts, *rest)
        kept = below.frontier
        real = kept.start < kept.stop if len(kept.start) else np.ones(len(kept), bool)
        ranges = (array[real] if len(array) else array for array in (kept.start, kept.stop))
        return replace(below, frontier=Frontier(kept.nodes[:, real], kept.count[real], *ranges))

    patch.setattr(tasks, "refine", without_inventions)


def leaves_looked_for_among_those_of_a_task(patch: Patch) -> None:
    """A level tells the next one where its leaves are in its own task, and not in the whole table."""
    patch.setattr(import_module("treetop.measure._task"), "_among_all", lambda parts, tasks: iter(parts))


def contributions_not_bounded(patch: Patch) -> None:
    def keep_all(*given: Any) -> int:
        *_, weight, _, kept = given
        kept[:] = weight
        return 0  # how many units there are is only told to the steward

    patch.setattr(bounds, "_keep_some", keep_all)


def contributions_bounded_in_each_cell_only(patch: Patch) -> None:
    original = bounds._keep_some

    def keep_some_of_each_cell(
        order: Any, shift: Any, high: Any, low: Any, letters: NDArray[np.uint8], *rest: Any
    ) -> int:
        cell = letters.view(np.uint64)  # paths of one word
        return original(order, shift, high, low ^ cell, letters, *rest)

    patch.setattr(bounds, "_keep_some", keep_some_of_each_cell)


def distinct_records_counted_as_often_as_they_stand(patch: Patch) -> None:
    patch.setattr(bounds, "_first_of_each", lambda high, *_: np.arange(len(high)))


def distinct_records_taken_to_be_in_distinct_nodes_of_every_level(patch: Patch) -> None:
    """What the paper's sensitivity does above the leaves."""
    original = Unit.sensitivity

    def sensitivity(unit: Unit, level: str) -> Sensitivity:
        if level == TOTAL or not unit.distinct:
            return original(unit, level)
        most = unit.rule.units * unit.contributions
        return Sensitivity(most, most)

    patch.setattr(Unit, "sensitivity", sensitivity)


_BY_AUDIT: dict[str, tuple[Callable[[Patch], None], ...]] = {
    "measurements": (
        noise_of_half_the_scale,
        noise_three_percent_too_small,
        m_records_taken_for_records_in_distinct_cells,
        replacing_taken_for_removing,
        a_total_that_changes_by_one_record,
        euclidean_distance_for_laplace_noise,
        one_level_left_out_of_the_composition,
        epsilon_turned_into_rho_without_delta,
        discrete_noise_accounted_for_as_continuous,
        pure_epsilon_given_to_every_level_in_full,
        a_registered_law_that_understates_its_cost,
        the_exact_total_of_units_with_many_records,
        the_exact_total_of_records_that_may_be_dropped,
        the_exact_total_when_units_come_and_go,
    ),
    "measurements, margins": (
        a_margin_that_nobody_pays_for,
        noise_of_margins_too_narrow,
        a_margin_of_an_attribute_taken_for_one_cell,
    ),
    "same measurements, margins": (the_true_counts_of_a_margin_kept,),
    "spread": (a_sampler_three_percent_too_narrow,),
    "words": (noise_reused_between_levels, noise_reused_between_cousins, noise_reused_between_batches),
    "leaves": (leaves_looked_for_among_those_of_a_task,),
    "other table": (the_key_reused_for_another_table,),
    "releases": (
        noise_reused_between_siblings,
        the_true_count_of_the_parent_used_in_a_repair,
        ties_broken_by_the_words_that_made_the_noise,
        only_children_that_are_present_measured,
        invented_children_taken_out_again,
    ),
    "same measurements": (
        children_named_by_their_true_counts,
        only_children_named_by_their_true_counts,
        the_true_total_kept_beside_the_release,
        the_true_counts_kept_for_intervals,
    ),
    "bounding": (contributions_not_bounded, contributions_bounded_in_each_cell_only),
    "bounding, distinct": (
        distinct_records_counted_as_often_as_they_stand,
        distinct_records_taken_to_be_in_distinct_nodes_of_every_level,
    ),
}
FAULTS = [Fault(make, first) for first, makes in _BY_AUDIT.items() for make in makes]

FAULT = "fault"
"""The property under which a test reports its fault and the audits that found it, as far as they have been tried."""
