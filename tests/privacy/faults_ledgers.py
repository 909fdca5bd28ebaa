"""Deliberate faults in how a ledger composes releases by their noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from importlib import import_module
from typing import Any

from treetop import Unit
from treetop.ledger import unit_text
from treetop.ledger.budget import Spending
from treetop.plan.plan import Plan
from treetop.privacy.composition import Cells
from treetop.privacy.relation import GraphRules

from .faults import Fault, Patch

spendings: Any = import_module("treetop.ledger.budget")
budgets: Any = import_module("treetop.ledger.budget")
charging: Any = import_module("treetop.publishing._charging")
compositions: Any = import_module("treetop.privacy.composition")
of: Callable[[Iterable[tuple[Fraction, Cells | None]]], Spending] = Spending.of


def _compose(patch: Patch, releases: Callable[[list[Any]], list[Any]]) -> None:
    patch.setattr(Spending, "of", lambda given: of(releases(list(given))))


def a_release_left_out_of_the_composition(patch: Patch) -> None:
    _compose(patch, lambda given: given[1:] if len(given) > 1 else given)


def an_entry_that_forgets_how_many_cells_move(patch: Patch) -> None:
    """A record that is exchanged moves two cells of a level, and one is written down; that the cost says otherwise is
    overlooked."""
    whole = Plan.cells.fget  # type: ignore[attr-defined]
    patch.setattr(Plan, "cells", property(lambda plan: tuple((v, (n + 1) // 2) for v, n in whole(plan))))
    patch.setattr(spendings, "_cost", lambda *_: True)
    patch.setattr(Spending, "of", lambda given: _without_rho(list(given)))


def _without_rho(given: list[Any]) -> Spending:
    return of([(spendings.rho_of(cells) if cells else charged, cells) for charged, cells in given])


def releases_of_which_only_rho_is_known_left_out(patch: Patch) -> None:
    _compose(patch, lambda given: [one for one in given if one[1] is not None] or given)


def epsilons_of_releases_added_at_the_same_delta_as_if_they_were_one(patch: Patch) -> None:
    """The room of a budget is then measured against the largest release alone."""

    def largest(given: list[Any]) -> list[Any]:
        return [max(given, key=lambda one: one[0])] if given else given

    _compose(patch, largest)


def rho_taken_for_that_of_a_larger_budget(patch: Patch) -> None:
    room = compositions.gaussian_room
    patch.setattr(budgets, "gaussian_room", lambda epsilon, delta, rho: room(epsilon * Fraction(11, 10), delta, rho))


def a_unit_that_forgets_what_neighbours_agree_on(patch: Patch) -> None:
    """Releases with and without invariants are then added up as if they protected the same."""
    patch.setattr(charging, "unit_text", lambda unit, *_: unit_text(unit))


def conditions_told_apart_by_how_many_they_are(patch: Patch) -> None:
    """Releases with other invariants are then added up as if theirs were the same."""
    patch.setattr(charging, "unit_text", lambda unit, conditions, _: f"{unit_text(unit)}, {len(conditions)} conditions")


def an_exact_total_that_is_no_condition(patch: Patch) -> None:
    """Whoever may have no record is then said to be protected beside an exact total."""
    right = Unit.limits.fget  # type: ignore[attr-defined]
    patch.setattr(Unit, "limits", property(lambda unit: right(unit).replace("exactly", "at most")))


def edges_of_either_direction_taken_for_one_unit(patch: Patch) -> None:
    patch.setattr(GraphRules, "edges", "edges")


_FAULTS = (
    a_release_left_out_of_the_composition,
    an_entry_that_forgets_how_many_cells_move,
    releases_of_which_only_rho_is_known_left_out,
    epsilons_of_releases_added_at_the_same_delta_as_if_they_were_one,
    rho_taken_for_that_of_a_larger_budget,
    a_unit_that_forgets_what_neighbours_agree_on,
    conditions_told_apart_by_how_many_they_are,
    an_exact_total_that_is_no_condition,
    edges_of_either_direction_taken_for_one_unit,
)
FAULTS_OF_LEDGERS = [Fault(make, "ledger") for make in _FAULTS]
