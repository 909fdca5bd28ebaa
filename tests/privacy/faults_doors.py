"""Deliberate faults at the doors: settings that are not compared, a relation untold, noise that nobody pays for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from treetop.noise import Key
from treetop.noise.gate import Gate
from treetop.plan.file import PlanFile
from treetop.plan.plan import Plan
from treetop.privacy.relation import GraphRules, GraphUnit

from .faults import Fault, Patch

dropping: Any = import_module("treetop.counts.graph_reader")
content: Any = import_module("treetop.card.content")
counting: Any = import_module("treetop.checking._counting")
checking: Any = import_module("treetop.checking.check")
facts: Any = import_module("treetop.plan.constraints_kept")
readers: Any = import_module("treetop.measure.readers")
public_files: Any = import_module("treetop.plan.file._stated")


def edges_that_are_dropped_told_exactly(patch: Patch) -> None:
    patch.setattr(GraphRules, "may_drop", None)


def rows_that_are_not_kept_told_exactly(patch: Patch) -> None:
    patch.setattr(dropping, "selected", lambda *_: None)


def rows_that_are_dropped_told_exactly(patch: Patch) -> None:
    original = dropping.selected
    patch.setattr(dropping, "selected", lambda source, *rest: original(replace(source, drop=None), *rest))


def a_sheet_that_is_thought_to_end_where_it_ends(patch: Patch) -> None:
    patch.setattr(dropping, "leaves_out", lambda source: None)


def a_plan_that_is_not_compared_with_its_table(patch: Patch) -> None:
    patch.setattr(readers, "check_rows", lambda plan, table: None)


def a_card_that_does_not_name_its_relation(patch: Patch) -> None:
    describe, of_plan = Plan.describe, content.of_plan

    def without(told: dict[str, Any]) -> dict[str, Any]:
        return {name: entry for name, entry in told.items() if name != "graph"}

    patch.setattr(Plan, "describe", lambda plan: without(describe(plan)))
    patch.setattr(content, "of_plan", lambda plan: without(of_plan(plan)))


def a_relation_that_check_does_not_recompute(patch: Patch) -> None:
    """Compared neither with plan.toml nor with what the plan gives."""
    patch.setattr(counting, "GRAPH", ())
    patch.setattr(checking, "differences", lambda *arguments, **options: iter(()))
    patch.setattr(GraphUnit, "__init__", _copy)


def _copy(unit: Any, stated: Any, graph: Any) -> None:
    for name, entry in {**vars(stated), "graph": graph}.items():
        object.__setattr__(unit, name, entry)


def a_testing_key_that_leaves_no_mark(patch: Patch) -> None:
    original = Gate.__init__

    def start(gate: Gate, testing_key: Any = None) -> None:
        original(gate, testing_key)
        gate.private = True

    patch.setattr(Gate, "__init__", start)


def _charged(patch: Patch, when: Callable[[Any, Iterator[Key]], Iterator[Key]]) -> None:
    original = Gate.charged

    @contextmanager
    def charged(gate: Gate, charge: Any, *bound: Any) -> Iterator[Key]:
        with original(gate, None, *bound) as key:
            yield from when(charge, iter([key]))

    patch.setattr(Gate, "charged", charged)


def noise_that_nobody_is_charged_for(patch: Patch) -> None:
    _charged(patch, lambda charge, keys: keys)


def noise_drawn_before_it_is_charged(patch: Patch) -> None:
    def late(charge: Any, keys: Iterator[Key]) -> Iterator[Key]:
        yield from keys
        charge()

    _charged(patch, late)


def the_private_table_taken_for_a_public_file(patch: Patch) -> None:
    """Only what the plan itself names is compared, not the table that a run is given."""
    patch.setattr(PlanFile, "refuse_private", lambda file, table: None)
    patch.setattr(facts, "same_table", lambda one, other: None)


def public_files_compared_by_their_paths_alone(patch: Patch) -> None:
    def same(one: Any, other: Any) -> str | None:
        return (
            "the path" if Path(str(one)).resolve() == Path(str(getattr(other, "location", other))).resolve() else None
        )

    patch.setattr(public_files, "same_table", same)
    patch.setattr(facts, "same_table", same)


_BY_AUDIT: dict[str, tuple[Callable[[Patch], None], ...]] = {
    "totals": (
        edges_that_are_dropped_told_exactly,
        rows_that_are_not_kept_told_exactly,
        rows_that_are_dropped_told_exactly,
        a_plan_that_is_not_compared_with_its_table,
    ),
    "files": (a_sheet_that_is_thought_to_end_where_it_ends,),
    "relation": (a_card_that_does_not_name_its_relation, a_relation_that_check_does_not_recompute),
    "public files": (the_private_table_taken_for_a_public_file, public_files_compared_by_their_paths_alone),
    "gate": (a_testing_key_that_leaves_no_mark, noise_that_nobody_is_charged_for, noise_drawn_before_it_is_charged),
}
FAULTS_AT_DOORS = [Fault(make, first) for first, makes in _BY_AUDIT.items() for make in makes]
