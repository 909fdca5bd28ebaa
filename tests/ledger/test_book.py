"""What the ledger charges, refuses and reports."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import inf
from pathlib import Path
from time import thread_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treetop import Ledger, Loss, Unit
from treetop._util.numbers import plain
from treetop.errors import LedgerError, LossError, Overspent, Refusal, TreetopError
from treetop.ledger import OldCopy, OtherUnit, unit_text
from treetop.ledger._log import _append
from treetop.ledger.budget import Budget, plain_down
from treetop.privacy import rho_from_epsilon

PLAN = "a" * 64
UNIT = "trip, exactly 1 record (declared), replace"
CARD = "b" * 64


def make(folder: Path, loss: Loss | None = None, datasets: tuple[str, ...] = (), any_dataset: bool = False) -> Ledger:
    return Ledger.create(folder / "spent.ledger", loss=loss or Loss(rho=1), datasets=datasets, any_dataset=any_dataset)


def test_a_new_ledger_has_spent_nothing_and_opens_again(tmp_path: Path) -> None:
    made = make(tmp_path, Loss(epsilon=1, delta=1e-8))
    opened = Ledger.open(tmp_path / "spent.ledger")
    assert opened == made
    assert opened.budget.amount == rho_from_epsilon(1, 1e-8) == opened.remaining("trips")
    assert opened.spent("trips") == 0
    assert opened.entries() == ()
    assert opened.balances() == ()


def test_thirds_add_up_exactly_and_one_part_in_ten_to_the_ninety_too_much_is_refused(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    with pytest.raises(Overspent):
        ledger.reserve("trips", 1 + Fraction(1, 10**90), "zcdp", UNIT, "Commuting", PLAN)
    for _ in range(3):
        ledger.reserve("trips", Fraction(1, 3), "zcdp", UNIT, "Commuting", PLAN)
    assert ledger.spent("trips") == 1 and ledger.remaining("trips") == 0
    with pytest.raises(Overspent, match="Nothing can be released"):
        ledger.reserve("trips", Fraction(1, 10**90), "zcdp", UNIT, "Commuting", PLAN)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.fractions(Fraction(1, 1000), 1, max_denominator=1000), min_size=1, max_size=8))
def test_a_release_is_accepted_if_and_only_if_the_exact_sum_fits(
    tmp_path_factory: pytest.TempPathFactory, costs: list[Fraction]
) -> None:
    ledger = make(tmp_path_factory.mktemp("exact"))
    spent = Fraction(0)
    for cost in costs:
        if spent + cost <= 1:
            ledger.reserve("trips", cost, "zcdp", UNIT, "Commuting", PLAN)
            spent += cost
        else:
            with pytest.raises(Overspent):
                ledger.reserve("trips", cost, "zcdp", UNIT, "Commuting", PLAN)
        assert (ledger.spent("trips"), ledger.remaining("trips")) == (spent, 1 - spent)


def test_the_refusal_says_what_was_spent_asked_and_left_in_rho_and_epsilon(tmp_path: Path) -> None:
    ledger = make(tmp_path, Loss(epsilon=1, delta=1e-8))
    ledger.reserve("trips", Fraction(1, 100), "zcdp", UNIT, "Commuting", PLAN)
    with pytest.raises(Overspent) as refused:
        ledger.reserve("trips", Fraction(1, 50), "zcdp", UNIT, "Commuting again", PLAN)
    message = str(refused.value)
    number = r"rho ([\d.]+) \(epsilon ([\d.]+) at delta 1e-08\)"
    found = re.search(f"spent {number}, asked {number}, remaining {number}, of a budget of {number}", message)
    assert found is not None
    rho = [Fraction(text) for text in found.groups()[::2]]
    epsilon = [Fraction(text) for text in found.groups()[1::2]]
    assert rho[:2] == [Fraction(1, 100), Fraction(1, 50)]
    assert epsilon[3] == 1
    remaining = rho_from_epsilon(1, 1e-8) - Fraction(1, 100)
    assert remaining - Fraction(1, 10**6) < rho[2] <= remaining
    assert "'trips'" in message
    assert len(ledger.entries()) == 1


def test_the_loss_that_the_refusal_names_as_remaining_is_accepted(tmp_path: Path) -> None:
    ledger = make(tmp_path, Loss(epsilon=1, delta=1e-8))
    ledger.reserve("trips", Fraction(1, 117), "zcdp", UNIT, "Commuting", PLAN)
    with pytest.raises(Overspent) as refused:
        ledger.reserve("trips", Fraction(1), "zcdp", UNIT, "Commuting", PLAN)
    found = re.search(r"remaining rho [\d.]+ \(epsilon ([\d.]+) ", str(refused.value))
    assert found is not None
    ledger.reserve("trips", rho_from_epsilon(Fraction(found[1]), 1e-8), "zcdp", UNIT, "Commuting", PLAN)


def test_a_pure_release_costs_half_its_epsilon_squared_in_rho(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    assert ledger.reserve("trips", Fraction(1, 3), "pure", UNIT, "Commuting", PLAN).charged == Fraction(1, 18)
    (entry,) = ledger.entries()
    assert (entry.cost, entry.definition, entry.charged) == (Fraction(1, 3), "pure", Fraction(1, 18))
    assert ledger.spent("trips") == Fraction(1, 18)


def test_a_pure_ledger_adds_epsilon_and_refuses_gaussian_noise_with_the_reason(tmp_path: Path) -> None:
    ledger = make(tmp_path, Loss(epsilon=1))
    ledger.reserve("trips", Fraction(3, 4), "pure", UNIT, "Commuting", PLAN)
    with pytest.raises(Refusal, match="Gaussian noise has no pure epsilon"):
        ledger.reserve("trips", Fraction(1, 10**9), "zcdp", UNIT, "Commuting", PLAN)
    with pytest.raises(Overspent, match=r"spent epsilon 0\.75, asked epsilon 0\.5, remaining epsilon 0\.25"):
        ledger.reserve("trips", Fraction(1, 2), "pure", UNIT, "Commuting", PLAN)
    assert ledger.spent("trips") == Fraction(3, 4)


@pytest.mark.parametrize("how", [{"any_dataset": True}, {"datasets": ("trips", "census")}], ids=["any", "declared"])
def test_each_data_set_has_the_whole_budget_to_itself(tmp_path: Path, how: dict[str, Any]) -> None:
    ledger = make(tmp_path, **how)
    ledger.reserve("trips", Fraction(1), "zcdp", UNIT, "Commuting", PLAN)
    ledger.reserve("census", Fraction(1, 4), "zcdp", UNIT, "People", PLAN)
    assert [(one.dataset, one.spent) for one in ledger.balances()] == [("trips", 1), ("census", Fraction(1, 4))]
    assert [entry.title for entry in ledger.entries("census")] == ["People"]
    assert [entry.title for entry in ledger.entries()] == ["Commuting", "People"]


@pytest.mark.parametrize("spelling", ["TRIPS 2011", "  Trips   2011 ", "trips 2011", "trips ２０１１"])
def test_another_spelling_of_a_name_is_the_same_data_set(tmp_path: Path, spelling: str) -> None:
    ledger = make(tmp_path)
    for part, new in ((Fraction(2, 3), True), (Fraction(1, 3), False)):
        assert ledger.reserve("Trips 2011", part, "zcdp", UNIT, "Commuting", PLAN).new == new
    with pytest.raises(Overspent, match="'Trips 2011'"):
        ledger.reserve(spelling, Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN)
    assert ledger.balances(spelling) == ledger.balances()
    assert ledger.balances("Trips 2012") == ()


def test_a_ledger_made_for_named_data_sets_takes_no_other(tmp_path: Path) -> None:
    ledger = make(tmp_path, datasets=("Trips", "census", "trips"))
    assert ledger.datasets == ("Trips", "census")
    assert ledger.reserve("trips", Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN).dataset == "Trips"
    with pytest.raises(LedgerError, match=r"only: Trips, census \('trip' looks like Trips\); name one of them"):
        ledger.reserve("trip", Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN)
    assert [(one.dataset, one.spent) for one in ledger.balances()] == [("Trips", Fraction(1, 2)), ("census", 0)]


def test_a_reservation_completes_alone_and_once_and_stays_spent_until_then_and_afterwards(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    reservations = [ledger.reserve("trips", Fraction(1, 9), "zcdp", UNIT, f"Release {n}", PLAN) for n in range(3)]
    unknown = ("reserved, outcome unknown", None, None)
    assert [(one.state, one.completed, one.card_sha256) for one in ledger.entries()] == [unknown] * 3
    reservations[1].complete(CARD)
    first, entry, third = Ledger.open(ledger.path).entries()
    assert (entry.state, entry.card_sha256, entry.plan_sha256) == ("complete", CARD, PLAN)
    assert first.state == third.state == unknown[0]
    assert ledger.spent("trips") == Fraction(1, 3)
    with pytest.raises(LedgerError, match="complete already"):
        reservations[1].complete(CARD)


def test_a_reservation_does_not_complete_in_another_ledger_put_in_its_place(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    reservation = ledger.reserve("trips", Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN)
    ledger.path.unlink()
    other = make(tmp_path)
    with pytest.raises(LedgerError, match="exchanged for another"):
        reservation.complete(CARD)
    other.reserve("trips", Fraction(1, 3), "zcdp", UNIT, "Commuting", PLAN)
    with pytest.raises(LedgerError, match="exchanged for another"):
        reservation.complete(CARD)


def test_times_are_utc_and_those_of_the_clock(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    ledger.reserve("trips", Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN).complete(CARD)
    (entry,) = ledger.entries()
    for text in (ledger.created, entry.time, entry.completed):
        assert text is not None
        assert text.endswith("Z")
        assert abs(datetime.now(UTC) - datetime.fromisoformat(text)) < timedelta(minutes=1)


@pytest.mark.parametrize("title", ["", "Pendolarità, città ②", "it's; DROP TABLE log", "a\nb\x00c\ud800"])
def test_any_title_comes_back_as_it_was(tmp_path: Path, title: str) -> None:
    ledger = make(tmp_path)
    ledger.reserve("trips", Fraction(1, 2), "zcdp", UNIT, title, PLAN)
    assert ledger.entries()[0].title == title


DIGESTS = ("", "a" * 63, "A" * 64, f"{'a' * 64}\n")
WRONG: list[tuple[dict[str, Any], type[TreetopError], str]] = [
    *(({"dataset": name}, LedgerError, "printable") for name in ("", "  ", "tr\x1bips", "\ud800")),
    *(({"unit": name}, LedgerError, "The unit is named .* printable") for name in ("", " ", "tr\x1bip")),
    *(({"cost": cost}, LossError, "greater than zero") for cost in (Fraction(0), Fraction(-1, 2))),
    ({"cost": Fraction(10**250, 10**250 + 1)}, LedgerError, "200 digits"),
    ({"definition": "approximate"}, LedgerError, 'write "pure" or "zcdp"'),
    *(({"plan_sha256": digest}, LedgerError, "of the plan") for digest in DIGESTS),
]


@pytest.mark.parametrize(("wrong", "error", "about"), WRONG, ids=[repr(wrong)[:40] for wrong, *_ in WRONG])
def test_a_reservation_that_makes_no_sense_is_refused(
    tmp_path: Path, wrong: dict[str, Any], error: type[TreetopError], about: str
) -> None:
    ledger = make(tmp_path)
    right = {"dataset": "trips", "cost": Fraction(1, 2), "definition": "zcdp", "unit": UNIT, "title": "Commuting"}
    with pytest.raises(error, match=about):
        ledger.reserve(**{**right, "plan_sha256": PLAN, **wrong})
    assert ledger.entries() == ()


@pytest.mark.parametrize("digest", DIGESTS)
def test_a_reservation_completes_only_with_a_sha256(tmp_path: Path, digest: str) -> None:
    reservation = make(tmp_path).reserve("trips", Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN)
    with pytest.raises(LedgerError, match="of the card"):
        reservation.complete(digest)


def test_a_cost_too_large_to_convert_is_refused_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(Overspent, match=r"asked rho 5e\+199, remaining rho 1"):
        make(tmp_path, Loss(rho=1, delta=1e-8)).reserve("trips", Fraction(10**100), "pure", UNIT, "All", PLAN)


OTHERS = [
    unit_text(Unit("trip", contributions=2, neighbours="replace")),
    unit_text(Unit("trip", neighbours="add-remove")),
    unit_text(Unit("person", neighbours="replace")),
    unit_text(Unit("trip", neighbours="replace", id="trip_id")),
]


@pytest.mark.parametrize("unit", OTHERS)
def test_a_release_that_protects_another_unit_is_refused_with_the_next_step(tmp_path: Path, unit: str) -> None:
    ledger = make(tmp_path)
    ledger.reserve("trips", Fraction(1, 9), "zcdp", UNIT, "Commuting", PLAN)
    with pytest.raises(OtherUnit) as refused:
        ledger.reserve("Trips", Fraction(1, 9), "zcdp", unit, "Commuting", PLAN)
    assert isinstance(refused.value, Refusal)
    message = str(refused.value)
    for words in (f"protect {UNIT!r}, this one {unit!r}", "do not add", "under another name", "pays both"):
        assert words in message
    assert ledger.spent("trips") == Fraction(1, 9)
    ledger.add("trips of people")
    ledger.reserve("trips of people", Fraction(1, 9), "zcdp", unit, "Commuting", PLAN)
    assert [balance.unit for balance in Ledger.open(ledger.path).balances()] == [UNIT, unit]


def test_the_unit_is_what_tells_units_apart() -> None:
    assert unit_text(Unit("trip", neighbours="replace")) == UNIT
    assert OTHERS[0] == "trip, at most 2 records (declared), replace"
    assert unit_text(Unit("trip", neighbours="replace", id="trip_id")) != UNIT
    ids = Unit("trip", 2, "replace", id="trip_id", id_clean=["trim", "casefold"])
    told = "trip, at most 2 records (enforced; blanks at the ends and case do not tell ids apart), replace"
    assert unit_text(ids) == told != unit_text(Unit("trip", 2, "replace", id="trip_id"))
    assert unit_text(Unit("trip", neighbours="replace", may_be_missing=True)) != UNIT  # no record at all is no exchange


def test_another_spelling_of_a_unit_is_the_same_unit(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    for entity in ("Trip", " trip ", "ｔｒｉｐ"):
        unit = unit_text(Unit(entity, neighbours="replace"))
        ledger.reserve("trips", Fraction(1, 9), "zcdp", unit, "Commuting", PLAN)
    assert ledger.balances()[0].unit == "Trip, exactly 1 record (declared), replace"


def test_releases_of_one_data_set_with_different_units_were_not_written_by_a_ledger(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    ledger.reserve("trips", Fraction(1, 9), "zcdp", UNIT, "Commuting", PLAN)
    ledger.log.append(lambda records: records[-1].content | {"unit": OTHERS[0]})
    with pytest.raises(LedgerError, match="'trips' protect different units; it was edited"):
        Ledger.open(ledger.path)


def test_a_check_refuses_what_a_reservation_would_and_reserves_nothing(tmp_path: Path) -> None:
    ledger = make(tmp_path, datasets=("trips", "census"))
    ledger.reserve("trips", Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN)
    before = ledger.path.read_bytes()
    ledger.check("trips", Fraction(1, 2), "zcdp", UNIT)
    ledger.check("census", Fraction(1), "zcdp", OTHERS[0])
    calls: list[tuple[str, Fraction, str]] = [
        ("trips", Fraction(51, 100), UNIT),
        ("trips", Fraction(1, 9), OTHERS[0]),
        ("towns", Fraction(1, 9), UNIT),
        ("trips", Fraction(0), UNIT),
        ("trips", Fraction(1, 9), ""),
    ]
    for dataset, cost, unit in calls:
        with pytest.raises(TreetopError) as checked:
            ledger.check(dataset, cost, "zcdp", unit)
        with pytest.raises(TreetopError) as reserved:
            ledger.reserve(dataset, cost, "zcdp", unit, "Commuting", PLAN)
        assert (type(checked.value), str(checked.value)) == (type(reserved.value), str(reserved.value))
    assert ledger.path.read_bytes() == before


@given(st.fractions(0, 10**6))
def test_what_is_left_is_never_written_larger_nor_what_is_spent_smaller(amount: Fraction) -> None:
    assert Fraction(plain_down(amount)) <= amount <= Fraction(plain(amount))


def test_a_ledger_in_rho_without_delta_speaks_of_rho_only() -> None:
    assert Budget.of(Loss(rho=0.5)).say(Fraction(1, 4)) == "rho 0.25"
    assert Budget.of(Loss(rho=0.5)).epsilon(Fraction(1, 4)) is None


def test_who_names_no_data_set_gets_no_fresh_budget_beside_the_named_ones(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    assert ledger.dataset_named(None) == "default"
    ledger.reserve("default", Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN)
    assert ledger.dataset_named(None) == "default"
    (tmp_path / "other").mkdir()
    named = make(tmp_path / "other")
    named.reserve("trips", Fraction(1), "zcdp", UNIT, "Commuting", PLAN)
    with pytest.raises(LedgerError, match="keeps the data sets trips: say which one this is about \\(`dataset`\\)"):
        named.dataset_named(None)
    assert named.dataset_named("census") == "census"


def test_a_new_ledger_is_for_the_first_data_set_that_is_charged(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    ledger.check("census", Fraction(1, 2), "zcdp", UNIT)  # to ask is not to charge
    ledger.reserve("trips", Fraction(1), "zcdp", UNIT, "Commuting", PLAN)
    for another in ("trips2", "TRIPS-2011", "census", "default"):
        with pytest.raises(LedgerError, match=r"has no data set .* takes these only: trips"):
            ledger.check(another, Fraction(1, 2), "zcdp", UNIT)
        with pytest.raises(LedgerError, match="treetop ledger add"):
            Ledger.open(ledger.path).reserve(another, Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN)
    assert [(one.dataset, one.spent) for one in ledger.balances()] == [("trips", Fraction(1))]


def test_a_data_set_is_added_by_declaring_it(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    ledger.reserve("trips", Fraction(1), "zcdp", UNIT, "Commuting", PLAN)
    head = ledger.add("  census   2011 ")
    assert Ledger.open(ledger.path).head() == (3, head)
    ledger.reserve("Census 2011", Fraction(1, 2), "zcdp", UNIT, "People", PLAN)
    assert [(one.dataset, one.spent) for one in ledger.balances()] == [("trips", 1), ("census 2011", Fraction(1, 2))]
    with pytest.raises(LedgerError, match="has the data set 'census 2011' already"):
        ledger.add("CENSUS 2011")
    with pytest.raises(LedgerError, match="takes these only: trips, census 2011"):
        ledger.spent("schools")


def test_a_ledger_takes_named_data_sets_or_any_but_not_both(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="not both"):
        make(tmp_path, datasets=("trips",), any_dataset=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Flights2", ["flights"]),
        ("flights_final", ["flights"]),
        ("fligths", ["flights"]),
        ("fl\u00efghts", ["flights"]),
        ("schools", []),
        ("flights", []),
        ("x", []),
    ],
)
def test_names_that_look_like_a_known_one_are_found(tmp_path: Path, name: str, near: list[str]) -> None:
    ledger = make(tmp_path, datasets=("flights", "census of 2011"))
    assert ledger.alike(name) == near


def test_an_older_copy_put_back_is_refused_by_the_head_that_was_noted_elsewhere(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    ledger.reserve("trips", Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN)
    before, old = ledger.path.read_bytes(), ledger.head()[1]
    noted = ledger.reserve("trips", Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN).complete(CARD)
    watched = Ledger.open(ledger.path, head=noted)
    assert watched.head() == (4, noted)
    ledger.path.write_bytes(before)
    assert Ledger.open(ledger.path).remaining("trips") == Fraction(1, 2)  # by itself, a copy looks like any ledger
    assert Ledger.open(ledger.path, head=old).head() == (2, old)
    calls: list[Callable[[], object]] = [
        lambda: Ledger.open(ledger.path, head=noted),
        lambda: watched.check("trips", Fraction(1, 9), "zcdp", UNIT),
        lambda: watched.reserve("trips", Fraction(1, 9), "zcdp", UNIT, "Commuting", PLAN),
    ]
    for call in calls:
        with pytest.raises(OldCopy, match=f"has no record {noted}"):
            call()
    assert issubclass(OldCopy, Refusal)
    assert ledger.path.read_bytes() == before


def test_a_ledger_that_has_grown_since_its_head_was_noted_is_accepted(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    heads = [ledger.head()[1]]
    for _ in range(3):
        reservation = ledger.reserve("trips", Fraction(1, 9), "zcdp", UNIT, "Commuting", PLAN)
        assert ledger.head()[1] == reservation.sha256
        heads += [reservation.sha256, reservation.complete(CARD)]
        assert ledger.head() == (len(heads), heads[-1])
    for head in heads:
        assert Ledger.open(ledger.path, head=head).spent("trips") == Fraction(1, 3)
    with pytest.raises(LedgerError, match="64 hexadecimal"):
        Ledger.open(ledger.path, head="abc")


def test_thousands_of_data_sets_take_time_in_proportion(tmp_path: Path) -> None:
    def seconds(number: int) -> float:
        (tmp_path / str(number)).mkdir()
        names = tuple(f"region {n:05}" for n in range(number))
        ledger = make(tmp_path / str(number), datasets=names)
        with ledger.log._transaction("IMMEDIATE") as connection:
            records = ledger.log._records(connection)
            for name in names:
                entry = {"event": "reserved", "time": "", "dataset": name, "title": "", "definition": "zcdp",
                         "cost": "1/9", "charged": "1/9", "unit": UNIT, "plan_sha256": PLAN}  # fmt: skip
                records.append(_append(connection, records, entry))
        best = inf
        for _ in range(3):
            started = thread_time()
            ledger.reserve(names[-1], Fraction(1, 9), "zcdp", UNIT, "Commuting", PLAN)
            best = min(best, thread_time() - started)
        return best

    few, many = seconds(600), seconds(6000)
    assert many < 30 * few  # in proportion it is 10; each with each, it was 100


@pytest.mark.parametrize("name", ["postgresql://ann:hunter2@db/census", "host=db password=hunter2"])
def test_a_name_with_a_password_is_refused_and_a_url_without_one_is_not(tmp_path: Path, name: str) -> None:
    with pytest.raises(LedgerError, match="holds a password"):
        Ledger.create(tmp_path / "ledger", loss=Loss(rho=1), datasets=(name,))
    assert not (tmp_path / "ledger").exists()
    ledger = Ledger.create(tmp_path / "ledger", loss=Loss(rho=1), datasets=("census", "postgresql://db/census"))
    with pytest.raises(LedgerError, match="holds a password") as told:
        ledger.add(name)
    assert "hunter2" not in str(told.value)
    free = Ledger.create(tmp_path / "free", loss=Loss(rho=1), any_dataset=True)
    with pytest.raises(LedgerError, match="holds a password"):
        free.reserve(name, Fraction(1, 9), "zcdp", "person", "A title", "a" * 64)
    assert b"hunter2" not in (tmp_path / "ledger").read_bytes() + (tmp_path / "free").read_bytes()
