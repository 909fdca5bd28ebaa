"""Deliberate faults in what is released beside the tree: histograms, group sizes, graphs and single questions."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from treetop import Counts, GroupSizes, Unit
from treetop.counts.contribution_cap import CappedRecords
from treetop.counts.encode import EncodedRows, Encoder
from treetop.errors import DataError
from treetop.measure.questions import Batch
from treetop.noise import NoiseStream
from treetop.plan.degree_unit import DegreeUnit
from treetop.plan.group_plan import GroupSizeReader
from treetop.plan.group_unit import Event, Form
from treetop.privacy import Sensitivity

from .faults import Fault, Patch, narrowed

csv_files: Any = import_module("treetop.io._csv_file")
fixed: Any = import_module("treetop.io.fixed_width")
tables: Any = import_module("treetop.io.table")
flat: Any = import_module("treetop.addons.lab.mechanisms.compared")
stability: Any = import_module("treetop.addons.lab.mechanisms.baselines")
workloads: Any = import_module("treetop.measure.measure")
degrees: Any = import_module("treetop.measure.vectors")
readers: Any = import_module("treetop.measure.readers")
degree_units: Any = import_module("treetop.plan.degree_unit")
group_units: Any = import_module("treetop.plan.group_unit")
graphs: Any = import_module("treetop.counts.graph_reader")
questions: Any = import_module("treetop.measure.questions")
margins: Any = import_module("treetop.domain.marginal")
meanings: Any = import_module("treetop.card.meaning")


def a_record_more_taken_for_one_that_displaces_none(patch: Patch) -> None:
    """The card's row then divides epsilon by m, as that of version 0.2.0 did."""
    patch.setattr(Unit, "piece_sensitivities", lambda unit, level: (Sensitivity(1, 1),))


def a_record_that_displaces_another_taken_for_the_one_of_its_unit(patch: Patch) -> None:
    """With one record each, the row is then that of the unit, of which one cell of a level moves."""
    right = meanings._piece

    def wrong(plan: Any) -> Any:
        return plan.spent if plan.unit.contributions == 1 else right(plan)

    patch.setattr(meanings, "_piece", wrong)


def an_edge_of_a_list_taken_for_a_record_of_a_table(patch: Patch) -> None:
    """One edge moves a person from one degree to another, which changes two counts."""
    patch.setattr(DegreeUnit, "piece_sensitivities", lambda unit, level: (Sensitivity(1, 1),))


def an_edge_of_a_list_that_displaces_none(patch: Patch) -> None:
    """One more edge of a list that is cut takes the place of another, and two people change their degrees."""
    right = degree_units.listed_edge_sensitivities
    patch.setattr(degree_units, "listed_edge_sensitivities", lambda *of: right(*of)[:1])


def an_edge_of_a_list_counted_at_its_other_end_only(patch: Patch) -> None:
    """Of all edges, the list's own person has one more as well."""
    right = degree_units.listed_edge_sensitivities
    patch.setattr(degree_units, "listed_edge_sensitivities", lambda degree, form: right("in", form))


def _encoding(patch: Patch, change: Callable[..., Any]) -> None:
    original = Encoder.rows
    patch.setattr(Encoder, "rows", lambda encoder, batch, tally: change(original, encoder, batch, tally))


def an_edge_counted_from_each_of_its_ends(patch: Patch) -> None:
    """As half-edges would be: it then moves two cells of every level, or one by two."""

    def twice(original: Any, encoder: Any, batch: Any, tally: Any) -> EncodedRows:
        here = original(encoder, batch, tally)
        return here if encoder.pairs is None else EncodedRows([np.tile(key, 2) for key in here.keys], None, None)

    _encoding(patch, twice)


def edges_turned_by_how_many_there_are(patch: Patch) -> None:
    """The order of two ends must follow from these ends alone: one edge more would turn all others."""

    def by_number(original: Any, encoder: Any, batch: Any, tally: Any) -> EncodedRows:
        other = copy(encoder)
        other.pairs = encoder.pairs if encoder.pairs is None or len(batch.rows) % 2 else encoder.pairs[::-1]
        encoded: EncodedRows = original(other, batch, tally)
        return encoded

    _encoding(patch, by_number)


def an_edge_that_replaces_another_taken_for_one_more(patch: Patch) -> None:
    """It leaves one unordered cell and enters another."""
    right = Unit.sensitivity
    one_edge = Sensitivity(1, 1)
    patch.setattr(Unit, "sensitivity", lambda unit, level: one_edge if unit.contributions == 1 else right(unit, level))


def _halve_noise(patch: Patch, module: Any) -> None:
    patch.setattr(module, "NoiseStream", lambda law, key: NoiseStream(narrowed(law, Fraction(1, 2)), key))


def a_threshold_one_too_low(patch: Patch) -> None:
    original = stability.tight_threshold
    patch.setattr(stability, "tight_threshold", lambda *arguments: original(*arguments) - 1)


def a_threshold_that_must_be_exceeded_and_is_only_reached(patch: Patch) -> None:
    """P(c + Z > t) is kept below delta, and c + Z ≥ t is published."""
    original = stability._survival

    def above(law: Any, threshold: int, *rest: Any) -> Any:
        return original(law, threshold + 1, *rest)

    patch.setattr(stability, "_survival", above)


def a_threshold_for_one_record_where_units_have_several(patch: Patch) -> None:
    original = stability.tight_threshold
    patch.setattr(stability, "tight_threshold", lambda law, delta, *_: original(law, delta))


def noise_of_half_the_scale_on_a_histogram(patch: Patch) -> None:
    _halve_noise(patch, flat)


def a_histogram_that_tells_how_many_leaves_were_dropped(patch: Patch) -> None:
    original = stability.measure_present

    def with_the_rest(counts: Counts, law: Any, least: int, *rest: Any) -> Any:
        keys, published = original(counts, law, least, *rest)
        return keys, published + len(counts) - len(published)

    patch.setattr(stability, "measure_present", with_the_rest)


def _sizes_of(patch: Patch, event: Event, wrong: Callable[[Form, Sensitivity], Sensitivity]) -> None:
    original = group_units.group_sensitivity

    def sensitivity(given: Event, quantity: int, form: Form, largest: int) -> Sensitivity:
        right: Sensitivity = original(given, quantity, form, largest)
        return wrong(form, right) if given == event else right

    patch.setattr(group_units, "group_sensitivity", sensitivity)


def a_person_who_joins_a_group_counted_at_one_size(patch: Patch) -> None:
    _sizes_of(patch, "join-leave", lambda form, right: Sensitivity(1, 1) if form == "direct" else right)


def a_person_of_quantity_two_counted_as_one(patch: Patch) -> None:
    _sizes_of(patch, "join-leave", lambda form, right: Sensitivity(1, 1) if form == "cumulative" else right)


def a_person_who_moves_taken_for_one_who_leaves(patch: Patch) -> None:
    _sizes_of(patch, "move", lambda _, right: Sensitivity(right.l1 // 2, right.l2_squared // 2))


def a_move_between_groups_of_equal_size_forgotten(patch: Patch) -> None:
    _sizes_of(patch, "move", lambda form, right: Sensitivity(4, 4) if form == "direct" else right)


def a_whole_group_taken_for_one_person(patch: Patch) -> None:
    _sizes_of(patch, "group", lambda form, right: Sensitivity(1, 1) if form == "cumulative" else right)


def empty_groups_left_out(patch: Patch) -> None:
    original = GroupSizes.__post_init__

    def without_empty(table: GroupSizes) -> None:
        original(table)
        table.number[:, 0] = 0

    patch.setattr(GroupSizes, "__post_init__", without_empty)


def groups_selected_by_what_is_private(patch: Patch) -> None:
    """The number of occupied dwellings of a region is then told exactly."""
    patch.setattr(GroupSizeReader, "_refuse_selected", lambda reader, plan, reason: None)


def noise_of_half_the_scale_on_group_sizes(patch: Patch) -> None:
    _halve_noise(patch, workloads)


def the_key_reused_for_other_group_sizes(patch: Patch) -> None:
    patch.setattr(GroupSizes, "digest", property(lambda _: bytes(32)))


def the_key_reused_for_another_graph(patch: Patch) -> None:
    same = SimpleNamespace(digest=lambda: bytes(32))
    patch.setattr(degrees, "hashlib", SimpleNamespace(sha256=lambda _: same))


def _of_entity(patch: Patch, entity: str, wrong: Callable[[Sensitivity], Sensitivity]) -> None:
    original = Unit.sensitivity

    def sensitivity(unit: Unit, level: str) -> Sensitivity:
        right = original(unit, level)
        return wrong(right) if unit.entity == entity else right

    patch.setattr(Unit, "sensitivity", sensitivity)


def a_friend_list_taken_for_edges_between_distinct_groups(patch: Patch) -> None:
    _of_entity(patch, "friend list", lambda right: Sensitivity(right.l1, right.l1))


def a_person_protected_as_one_friendship(patch: Patch) -> None:
    _of_entity(patch, "person", lambda _: Sensitivity(1, 1))


def the_edges_that_others_have_to_a_person_forgotten(patch: Patch) -> None:
    original = graphs.GraphUnit

    def out_edges_only(unit: Unit, facts: Any) -> Unit:
        made: Unit = original(unit, facts)
        if facts.relation == "node":
            object.__setattr__(made, "contributions", made.contributions - 1)
        return made

    patch.setattr(graphs, "GraphUnit", out_edges_only)


def _degrees_of(patch: Patch, relation: str, wrong: Sensitivity) -> None:
    original = degree_units.degree_sensitivity

    def sensitivity(given: Any, *rest: Any) -> Sensitivity:
        right: Sensitivity = original(given, *rest)
        return wrong if given == relation else right

    patch.setattr(degree_units, "degree_sensitivity", sensitivity)


def a_friendship_counted_at_one_end(patch: Patch) -> None:
    _degrees_of(patch, "edge", Sensitivity(1, 1))


def a_friend_list_that_changes_one_cumulative_count(patch: Patch) -> None:
    _degrees_of(patch, "user-out", Sensitivity(1, 1))


def a_person_who_changes_the_degrees_of_nobody_else(patch: Patch) -> None:
    _degrees_of(patch, "node", Sensitivity(1, 1))


def degrees_of_graphs_that_are_not_projected(patch: Patch) -> None:
    patch.setattr(readers, "projected_degrees", lambda nodes, edges, *_: edges.degrees(len(nodes)))


def a_person_who_takes_nobody_else_to_theta(patch: Patch) -> None:
    patch.setattr(degree_units, "reaching_sensitivity", lambda *_: Sensitivity(1, 1))


def people_who_have_theta_edges_counted_before_edges_are_left_out(patch: Patch) -> None:
    """A person is a neighbour of any number of others."""
    original = readers.projections

    def unprojected(nodes: Any, edges: Any, thetas: Any, *rest: Any) -> Any:
        for theta, kept in zip(thetas, original(nodes, edges, thetas, *rest), strict=True):
            own = edges.degrees(len(nodes))
            yield np.where((own == theta) | (kept == theta), np.where(own == theta, theta, 0), kept)

    patch.setattr(readers, "projections", unprojected)


def a_theta_chosen_by_the_true_numbers(patch: Patch) -> None:
    patch.setattr(degrees, "_chosen", lambda plan, run, reaching: plan.mechanism.settled(plan, reaching))


def the_noise_of_the_smallest_candidate_whatever_was_chosen(patch: Patch) -> None:
    original = degree_units.degree_sensitivity

    def sensitivity(relation: Any, degree: Any, form: Any, neighbours: Any, largest: int, *rest: Any) -> Sensitivity:
        right: Sensitivity = original(relation, degree, form, neighbours, 1 if relation == "node" else largest, *rest)
        return right

    patch.setattr(degree_units, "degree_sensitivity", sensitivity)


def noise_of_half_the_scale_on_degrees(patch: Patch) -> None:
    _halve_noise(patch, workloads)


def the_number_of_people_taken_as_public(patch: Patch) -> None:
    patch.setattr(degree_units.DegreeUnit, "total_is_exact", lambda *_: True)


def _questions(patch: Patch, sensitivity: Callable[[Batch], Sensitivity]) -> None:
    wrong = cached_property(sensitivity)
    wrong.__set_name__(Batch, "sensitivity")
    patch.setattr(Batch, "sensitivity", wrong)


def questions_taken_as_if_they_did_not_overlap(patch: Patch) -> None:
    def apart(batch: Batch) -> Sensitivity:
        sides = 2 if batch.unit.neighbours == "replace" and len(batch.questions) > 1 else 1
        m = batch.unit.contributions
        return Sensitivity(m * sides, m**2 * sides)

    _questions(patch, apart)


def an_exchanged_record_taken_for_a_removed_one_in_questions(patch: Patch) -> None:
    patch.setattr(questions, "_farthest", lambda patterns, _: max(pattern.bit_count() for pattern in patterns))


def questions_to_units_with_several_records_taken_for_one(patch: Patch) -> None:
    original = Batch.__dict__["sensitivity"].func

    def of_one(batch: Batch) -> Sensitivity:
        right, m = original(batch), batch.unit.contributions
        return Sensitivity(right.l1 // m, right.l2_squared // m**2)

    _questions(patch, of_one)


def noise_of_half_the_scale_on_answers(patch: Patch) -> None:
    _halve_noise(patch, workloads)


def one_draw_of_noise_for_all_questions(patch: Patch) -> None:
    class OneDraw(NoiseStream):
        def fill(self, out: Any, slot: int) -> None:
            for at in range(len(out)):
                super().fill(out[at : at + 1], 0)

    patch.setattr(workloads, "NoiseStream", OneDraw)


def a_twin_compared_by_its_file_only(patch: Patch) -> None:
    for module in ("public", "trials"):
        named = import_module(f"treetop.advice.{module}")
        patch.setattr(named, "refuse_same_records", lambda *_: None)


def a_twin_compared_after_its_contributions_were_bounded(patch: Patch) -> None:
    def only_kept(bounder: CappedRecords) -> Any:
        another = copy(bounder)
        another._batches = list(bounder._batches)
        return another.kept()

    patch.setattr(CappedRecords, "all", only_kept)


def an_empty_line_that_is_no_record(patch: Patch) -> None:
    original = csv_files.arrow_csv.ParseOptions

    def kindly(**options: Any) -> Any:
        return original(**{**options, "ignore_empty_lines": True})

    patch.setattr(csv_files, "arrow_csv", SimpleNamespace(**{**vars(csv_files.arrow_csv), "ParseOptions": kindly}))


def a_blank_line_of_fixed_width_that_is_no_record(patch: Patch) -> None:
    original = fixed._read_lines

    def without_blank(lines: Any, *rest: Any) -> Any:
        rows = original(lines, *rest)
        return rows.filter(rows.column(0).is_valid())

    patch.setattr(fixed, "_read_lines", without_blank)


def lines_skipped_on_the_way_to_an_exact_total(patch: Patch) -> None:
    patch.setattr(readers, "check_rows", lambda *_: None)


def a_table_without_kept_rows_refused(patch: Patch) -> None:
    original = tables._only_kept

    def some_kept(parts: Any, source: Any, columns: Any) -> Any:
        found = 0
        for batch in original(parts, source, columns):
            found += len(batch.rows)
            yield batch
        if not found:
            raise DataError("no row is kept")

    patch.setattr(tables, "_only_kept", some_kept)


def a_margin_called_kept_that_agrees_with_no_other(patch: Patch) -> None:
    patch.setattr(margins, "fit_to", lambda *_: True)


_BY_AUDIT: dict[str, tuple[Callable[[Patch], None], ...]] = {
    "histogram": (
        a_threshold_one_too_low,
        a_threshold_that_must_be_exceeded_and_is_only_reached,
        a_threshold_for_one_record_where_units_have_several,
        noise_of_half_the_scale_on_a_histogram,
        a_histogram_that_tells_how_many_leaves_were_dropped,
    ),
    "groups": (
        a_person_who_joins_a_group_counted_at_one_size,
        a_person_of_quantity_two_counted_as_one,
        a_person_who_moves_taken_for_one_who_leaves,
        a_move_between_groups_of_equal_size_forgotten,
        a_whole_group_taken_for_one_person,
        empty_groups_left_out,
        groups_selected_by_what_is_private,
        noise_of_half_the_scale_on_group_sizes,
    ),
    "edges": (
        a_friend_list_taken_for_edges_between_distinct_groups,
        a_person_protected_as_one_friendship,
        the_edges_that_others_have_to_a_person_forgotten,
    ),
    "degrees": (
        a_friendship_counted_at_one_end,
        a_friend_list_that_changes_one_cumulative_count,
        a_person_who_changes_the_degrees_of_nobody_else,
        degrees_of_graphs_that_are_not_projected,
        the_number_of_people_taken_as_public,
        noise_of_half_the_scale_on_degrees,
    ),
    "theta": (
        a_person_who_takes_nobody_else_to_theta,
        people_who_have_theta_edges_counted_before_edges_are_left_out,
        a_theta_chosen_by_the_true_numbers,
        the_noise_of_the_smallest_candidate_whatever_was_chosen,
    ),
    "answers": (
        questions_taken_as_if_they_did_not_overlap,
        an_exchanged_record_taken_for_a_removed_one_in_questions,
        questions_to_units_with_several_records_taken_for_one,
        noise_of_half_the_scale_on_answers,
    ),
    "one record": (
        a_record_more_taken_for_one_that_displaces_none,
        a_record_that_displaces_another_taken_for_the_one_of_its_unit,
    ),
    "one edge": (
        an_edge_of_a_list_taken_for_a_record_of_a_table,
        an_edge_of_a_list_that_displaces_none,
        an_edge_of_a_list_counted_at_its_other_end_only,
    ),
    "pairs": (
        an_edge_counted_from_each_of_its_ends,
        edges_turned_by_how_many_there_are,
        an_edge_that_replaces_another_taken_for_one_more,
    ),
    "twins": (a_twin_compared_by_its_file_only, a_twin_compared_after_its_contributions_were_bounded),
    "files": (
        an_empty_line_that_is_no_record,
        a_blank_line_of_fixed_width_that_is_no_record,
        lines_skipped_on_the_way_to_an_exact_total,
    ),
    "existence": (a_table_without_kept_rows_refused,),
    "other data": (
        the_key_reused_for_other_group_sizes,
        the_key_reused_for_another_graph,
        one_draw_of_noise_for_all_questions,
    ),
    "kept": (a_margin_called_kept_that_agrees_with_no_other,),
}
FAULTS_BESIDE = [Fault(make, first) for first, makes in _BY_AUDIT.items() for make in makes]
