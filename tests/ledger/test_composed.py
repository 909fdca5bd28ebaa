"""A budget of epsilon and delta composes releases by their noise, where it is known, and never less than by rho."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

import treetop as tt
from treetop import Ledger, Loss, Unit
from treetop.errors import LedgerError, Overspent
from treetop.ledger import unit_text
from treetop.ledger._log import Content
from treetop.ledger.budget import Spending
from treetop.measure.questions import Batch, parse
from treetop.plan.workload import cells_of
from treetop.privacy import epsilon_from_rho, rho_from_epsilon
from treetop.privacy.accountant import cells_moved, exact_delta
from treetop.privacy.composition import Cells, gaussian_room, rho_of

PLAN = "a" * 64
TRIP = Unit("trip", neighbours="replace")
UNIT = unit_text(TRIP)
STATED = Loss(epsilon=1, delta=1e-8)
BUDGET = rho_from_epsilon(1, 1e-8)
PLACE = tt.Hierarchy.from_prefixes(["A1", "A2", "B1", "B2"], widths=[1], levels=["state", "town"])
SPINE = tt.Spine(["place.state", "place.town"], {"place": PLACE})


def make(folder: Path, loss: Loss = STATED) -> Ledger:
    return Ledger.create(folder / "spent.ledger", loss=loss, datasets=("trips",))


def cells(rho: Fraction, number: int = 12) -> Cells:
    return ((number / (2 * rho), number),)


def charge(ledger: Ledger, rho: Fraction, known: bool = True) -> None:
    ledger.reserve("trips", rho, "zcdp", UNIT, "Trips", PLAN, cells(rho) if known else None)


def test_a_plan_by_exact_accounting_spends_a_ledger_of_its_own_epsilon(tmp_path: Path) -> None:
    ledger, plan = make(tmp_path), tt.Plan(SPINE, TRIP, STATED)
    assert plan.spent > BUDGET
    ledger.check("trips", plan.spent, "zcdp", UNIT, plan.cells)
    ledger.reserve("trips", plan.spent, "zcdp", UNIT, "Trips", plan.digest, plan.cells)
    (balance,) = Ledger.open(ledger.path).balances()
    assert balance.epsilon == 1 and balance.remaining < BUDGET / 1000
    with pytest.raises(Overspent, match=r"spent rho 0\.0192\d* \(epsilon 1 at delta 1e-08\)"):
        charge(ledger, BUDGET / 100)


@pytest.mark.parametrize("weights", [(1, 1, 1), (7, 2, 1), (1, 5, 3)])
@pytest.mark.parametrize("epsilon", ["0.13", "0.69", "2.5", "8"])
def test_a_ledger_of_its_own_epsilon_takes_any_plan_by_exact_accounting(
    tmp_path: Path, epsilon: str, weights: tuple[int, ...]
) -> None:
    loss = Loss(epsilon=Fraction(epsilon), delta=1e-7)
    split = dict(zip(("total", "place.state", "place.town"), weights, strict=True))
    plan = tt.Plan(SPINE, Unit("trip", neighbours="add-remove"), loss, split=split)
    ledger = make(tmp_path, loss)
    ledger.reserve("trips", plan.spent, "zcdp", unit_text(plan.unit), "Trips", plan.digest, plan.cells)
    (balance,) = ledger.balances()
    assert balance.epsilon is not None and balance.epsilon <= float(epsilon)


def test_several_releases_fit_that_do_not_by_rho(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    each = BUDGET * Fraction(111, 100) / 4
    for _ in range(4):
        charge(ledger, each)
    (balance,) = ledger.balances()
    assert balance.spent == 4 * each > BUDGET
    assert balance.epsilon is not None and 0.99 < balance.epsilon <= 1 < epsilon_from_rho(4 * each, 1e-8)
    # All of it is within the budget by exact accounting, and with a hundredth more it would not be.
    together = [pair for entry in balance.entries for pair in entry.cells or ()]
    assert exact_delta(1, together) <= 1e-8
    assert exact_delta(1, [*together, *cells(BUDGET / 100)]) > 1e-8
    with pytest.raises(Overspent):
        charge(ledger, BUDGET / 100)


def test_what_is_said_to_remain_can_be_spent_and_no_tenth_of_a_percent_is_lost(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    charge(ledger, BUDGET / 2)
    charge(ledger, ledger.remaining("trips"))
    (balance,) = ledger.balances()
    assert balance.spent > BUDGET * Fraction(111, 100)
    charge(ledger, ledger.remaining("trips"))  # what the first took less than it might have
    assert ledger.remaining("trips") < BUDGET / 1000


def test_noise_that_is_not_known_counts_at_its_rho_beside_noise_that_is(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    charge(ledger, BUDGET / 2, known=False)
    charge(ledger, BUDGET * Fraction(58, 100))
    (balance,) = ledger.balances()
    assert balance.spent > BUDGET
    assert balance.spending.other == BUDGET / 2
    assert balance.epsilon is not None and balance.epsilon <= 1
    with pytest.raises(Overspent):
        charge(ledger, BUDGET * Fraction(2, 100))
    with pytest.raises(Overspent):
        charge(ledger, BUDGET / 50, known=False)


def test_nothing_fits_beside_too_much_rho_of_unknown_noise(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    with pytest.raises(Overspent):
        charge(ledger, BUDGET * Fraction(1001, 1000), known=False)
    charge(ledger, BUDGET, known=False)
    with pytest.raises(Overspent):
        charge(ledger, BUDGET / 10)


@pytest.mark.parametrize("loss", [Loss(rho=BUDGET), Loss(rho=BUDGET, delta=1e-8)], ids=["rho", "rho and delta"])
def test_a_budget_of_rho_adds_up_rho(tmp_path: Path, loss: Loss) -> None:
    ledger = make(tmp_path, loss)
    charge(ledger, BUDGET)
    assert ledger.remaining("trips") == 0
    with pytest.raises(Overspent):
        charge(ledger, BUDGET / 10**6)


def test_a_budget_of_pure_epsilon_takes_no_gaussian_noise(tmp_path: Path) -> None:
    with pytest.raises(Overspent, match="Gaussian noise has no pure epsilon"):
        charge(make(tmp_path, Loss(epsilon=1)), BUDGET / 10)


def test_entries_whose_noise_is_not_known_count_at_their_rho(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    charge(ledger, Fraction(1, 100), known=False)
    (before,) = ledger.balances()
    assert [entry.cells for entry in before.entries] == [None]
    assert before.spending.gaussian == 0 and before.spending.other == before.spent
    assert before.remaining == before.budget - before.spent
    # A release whose noise is known may cost more than rho leaves beside them, and one of which it is not may not.
    more = before.remaining * Fraction(115, 100)
    with pytest.raises(Overspent):
        charge(ledger, more, known=False)
    charge(ledger, more)
    (after,) = ledger.balances()
    assert after.epsilon is not None and after.epsilon <= 1 < epsilon_from_rho(after.spent, 1e-8)


def test_the_cells_are_those_that_the_unit_moves_in_every_measured_table() -> None:
    ends = tt.Spine.destination_first(origin=PLACE, destination=PLACE)
    for unit in (TRIP, Unit("trip", neighbours="add-remove")):
        plan = tt.Plan(ends, unit, STATED, margins="each")
        assert len(plan.workload.measured) > len(plan.levels)
        measured = plan.workload.measured
        moved = [(law.variance, cells_moved(unit, part.name)) for part, law in measured]  # type: ignore[attr-defined]
        assert plan.cells == tuple(moved)
        assert rho_of(plan.cells or ()) == plan.spent > BUDGET
        assert exact_delta(1, plan.cells or ()) <= 1e-8


def test_questions_move_as_many_cells_as_one_unit_can_change_answers() -> None:
    asked = tuple(parse(text, SPINE) for text in ("place=A1", "place=A2", "place.state=B", "place.state=A"))
    batch = Batch(SPINE, asked, TRIP, Loss(rho=Fraction(1, 100)))
    # A trip from A1 to B leaves "A1" and "A", and enters "B".
    assert batch.cells == ((batch.law.variance, 3),)  # type: ignore[attr-defined]
    assert rho_of(batch.cells) == batch.spent
    several = Batch(SPINE, asked, Unit("person", 2, "replace"), Loss(rho=Fraction(1, 100)))
    assert several.cells is None


def test_a_plan_whose_noise_does_not_say_it_all_has_no_cells() -> None:
    person = Unit("person", 3, "replace")
    for plan in (tt.Plan(SPINE, person, STATED), tt.Plan(SPINE, TRIP, Loss(epsilon=1))):
        assert plan.cells is None
        assert cells_of(plan.unit, plan.workload) is None


@pytest.mark.parametrize(
    "wrong",
    [((Fraction(300), 11),), ((Fraction(301), 12),), (), ((Fraction(300), 12), (Fraction(-300), 0))],
    ids=["a cell forgotten", "other noise", "none", "no cells"],
)
def test_cells_that_do_not_cost_what_is_charged_are_refused(tmp_path: Path, wrong: Cells) -> None:
    ledger = make(tmp_path, Loss(rho=1))
    with pytest.raises(LedgerError, match="do not cost what the release costs"):
        ledger.reserve("trips", Fraction(12, 600), "zcdp", UNIT, "Trips", PLAN, wrong)
    with pytest.raises(LedgerError, match="do not cost what the release costs"):
        ledger.reserve("trips", Fraction(12, 600), "pure", UNIT, "Trips", PLAN, ((Fraction(300), 12),))
    assert not ledger.entries()


def test_a_record_whose_cells_were_edited_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = make(tmp_path)

    def forged(given: Cells | None) -> Content:
        return {} if given is None else {"cells": [[str(variance * 2), number] for variance, number in given]}

    monkeypatch.setattr("treetop.ledger.budget.written", forged)
    charge(ledger, BUDGET / 2)
    with pytest.raises(LedgerError, match="its noise does not cost what it was charged"):
        Ledger.open(ledger.path)


def test_releases_that_are_charged_at_once_do_not_overspend(tmp_path: Path) -> None:
    ledger = make(tmp_path)

    def attempt(_: int) -> bool:
        try:
            charge(ledger, BUDGET * Fraction(111, 100) / 4)
        except Overspent:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(attempt, range(8)))
    assert sum(taken) == 4
    (balance,) = Ledger.open(ledger.path).balances()
    assert balance.spending.gaussian <= gaussian_room(Fraction(1), Fraction(1, 10**8), Fraction(0))


def test_many_releases_are_added_up_in_short_numbers() -> None:
    spent = Spending.of((Fraction(1, 1000 + i), cells(Fraction(1, 1000 + i), 2)) for i in range(500))
    assert len(str(spent.gaussian)) < 60
    assert spent.gaussian > sum(Fraction(1, 1000 + i) for i in range(500))
