"""The gate to noise: it charges first, marks what is not private, and says what failed after it was paid."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import treetop as tt
from treetop import GroupUnit
from treetop.errors import Overspent, PlanError, ReleaseError, Unfinished
from treetop.measure import questions
from treetop.noise import Key
from treetop.noise.gate import WARNING, Gate, bind, digest
from treetop.publishing import releasing

SPINE = tt.Spine(["place"], {"place": tt.Hierarchy.flat(["a", "b"])})
PLAN = tt.Plan(SPINE, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1))
TABLE = pa.table({"place": ["a", "b"]})


@pytest.mark.parametrize("key", [b"short", bytes(33), "0" * 32, bytearray(32)])
def test_a_key_of_another_kind_is_refused(key: Any) -> None:
    with pytest.raises(PlanError, match="32 bytes"):
        Gate(key)


def test_only_a_key_that_nobody_knows_is_private() -> None:
    assert Gate().private and Gate().warning is None
    assert not Gate(bytes(32)).private and Gate(Key.fresh()).warning == WARNING


def test_the_key_of_noise_is_bound_to_decisions_and_data() -> None:
    keys = set()
    for decisions in ("one", "other"):
        for data in (b"one", b"other"):
            with Gate(bytes(32)).charged(None, "test", digest(decisions), data) as key:
                keys.add(key.secret)
    assert len(keys) == 4
    assert bind(Key(bytes(32)), "test", digest("one"), b"one").secret in keys


def test_what_is_not_charged_is_not_measured() -> None:
    def overspent() -> None:
        raise Overspent("there is nothing left")

    with pytest.raises(Overspent), Gate().charged(overspent, "test"):
        raise AssertionError("there was a key")


@pytest.mark.parametrize(
    "problem", [ReleaseError("no room"), MemoryError(), IndexError("beyond"), OSError("disk"), ValueError("shape")]
)
def test_what_fails_after_it_was_charged_says_that_the_loss_stays_spent(
    problem: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise problem

    monkeypatch.setattr(releasing, "run_plan", fail)
    spent: list[bool] = []
    with pytest.raises(Unfinished, match="after the loss was charged, which stays spent") as error:
        tt.make_release(PLAN, TABLE, tt.RunOptions(before_measuring=lambda: spent.append(True)))
    assert error.value.__cause__ is problem
    assert spent == [True]
    with pytest.raises(type(problem)):  # nobody was charged
        tt.make_release(PLAN, TABLE)


def test_an_error_that_is_not_unfinished_has_charged_nobody() -> None:
    spent: list[bool] = []
    with pytest.raises(tt.TreetopError) as error:
        tt.make_release(
            PLAN, pa.table({"place": ["a", "x"]}), tt.RunOptions(before_measuring=lambda: spent.append(True))
        )
    assert not isinstance(error.value, Unfinished) and not spent


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), SystemExit(3)])
def test_what_ends_the_program_passes_as_it_is(problem: BaseException) -> None:
    with pytest.raises(type(problem)), Gate().charged(lambda: None, "test"):
        raise problem


def test_group_sizes_that_fail_after_they_were_measured_are_unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise IndexError("beyond")

    monkeypatch.setattr(releasing, "leaves_above_zero", fail)
    unit, regions = GroupUnit("person", event="move"), tt.Hierarchy.flat(["a", "b"])
    plan = tt.group_plan(regions, 3, unit, tt.Loss(rho=1), rows="histogram", number=2)
    table = pa.table({"place": ["a", "b"], "size": [1, 2], "count": [1, 1]})
    spent: list[bool] = []
    with pytest.raises(Unfinished, match="IndexError: beyond"):
        tt.make_release(plan, table, tt.RunOptions(count="count", before_measuring=lambda: spent.append(True)))
    assert spent == [True]


def test_questions_for_another_unit_or_domain_than_the_plan_are_refused_before_they_are_charged() -> None:
    plan = tt.Plan(SPINE, tt.Unit("person", 5, "add-remove", id="who"), tt.Loss(rho=1))
    table = pa.table({"place": ["a"] * 5, "who": ["x"] * 5})
    question = questions.Question.of(SPINE, {"place": "a"})
    other = tt.Spine(["place"], {"place": tt.Hierarchy.flat(["a", "b", "c"])})
    units = {
        "id": tt.Unit("person", 5, "add-remove"),
        "contributions": tt.Unit("person", 1, "add-remove", id="who"),
        "neighbours": tt.Unit("person", 5, "replace", id="who"),
    }
    batches = {name: questions.Batch(SPINE, (question,), unit, tt.Loss(rho=1)) for name, unit in units.items()}
    batches["spine"] = questions.Batch(other, (question,), plan.unit, tt.Loss(rho=1))
    spent: list[str] = []
    for name, batch in batches.items():
        with pytest.raises(PlanError, match=name):
            questions.measure(batch, plan, table, before_measuring=lambda: spent.append("charged"))
    assert not spent
