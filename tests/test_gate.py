"""The gate to noise: it charges first, marks what is not private, and says what failed after it was paid."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import treetop as tt
from treetop import run
from treetop.errors import Overspent, PlanError, ReleaseError, Unfinished
from treetop.gate import WARNING, Gate, bind, digest
from treetop.noise import Key

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


@pytest.mark.parametrize("problem", [ReleaseError("no room"), MemoryError()])
def test_what_fails_after_it_was_charged_says_that_the_loss_stays_spent(
    problem: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise problem

    monkeypatch.setattr(run, "run_plan", fail)
    spent: list[bool] = []
    with pytest.raises(Unfinished, match="after the loss was charged, which stays spent"):
        PLAN.release(TABLE, before_measuring=lambda: spent.append(True))
    assert spent == [True]
    with pytest.raises(type(problem)):  # nobody was charged
        PLAN.release(TABLE)


def test_an_error_that_is_not_unfinished_has_charged_nobody() -> None:
    spent: list[bool] = []
    with pytest.raises(tt.TreetopError) as error:
        PLAN.release(pa.table({"place": ["a", "x"]}), before_measuring=lambda: spent.append(True))
    assert not isinstance(error.value, Unfinished) and not spent
