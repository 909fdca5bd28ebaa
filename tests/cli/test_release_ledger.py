"""What `release` and `ask` tell about a ledger, and what of it they refuse: other names, older copies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.commands import refused
from treetop import Ledger, Loss
from treetop.cli import main

Captured = pytest.CaptureFixture[str]
RELEASE = ["release", "plan.toml", "trips.csv", "--ledger", "ledger"]
ASK = ["ask", "plan.toml", "trips.csv", "--ledger", "ledger", "--rho", "0.001", "--where", "town=n1"]


def head() -> str:
    return Ledger.open("ledger").head()[1]


def test_every_release_and_every_question_tells_the_head_of_the_ledger(desk: Path, capsys: Captured) -> None:
    told = "Ledger fingerprint (keep a copy elsewhere to detect rollback): {}"
    main([*RELEASE, "--out", "one"])
    assert told.format(head()) in capsys.readouterr().out
    main([*RELEASE, "--out", "two", "--json"])
    assert json.loads(capsys.readouterr().out)["ledger"]["head"] == head()
    main(ASK)
    assert told.format(head()) in capsys.readouterr().out
    main([*ASK, "--json"])  # asked before: nothing is charged, and the head is told all the same
    report = json.loads(capsys.readouterr().out)["ledger"]
    assert (report["entry"], report["head"]) == (None, head())


def test_a_release_that_fails_after_the_charge_tells_the_head_too(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter", full)
    _, message = refused(*RELEASE, "--out", "out")
    assert f"treetop: ledger head: {head()}\n" in message


@pytest.mark.parametrize("command", [[*RELEASE, "--out", "out"], ASK], ids=["release", "ask"])
def test_an_older_copy_of_the_ledger_is_refused_where_its_head_was_noted(command: list[str], desk: Path) -> None:
    shutil.copy("ledger", "older")
    main([*RELEASE, "--out", "first", "--quiet"])
    noted = head()
    shutil.copy("older", "ledger")
    code, message = refused(*command, "--expect-head", noted)
    assert code == 3
    assert f"has no record {noted}" in message and "an older copy" in message
    assert Ledger.open("ledger").entries() == ()
    assert not (desk / "out").exists()
    main([*command, "--expect-head", head()])


def test_a_copy_that_is_put_back_while_the_table_is_read_is_refused_before_anything_is_measured(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from treetop.counts import reading
    from treetop.publishing import releasing

    shutil.copy("ledger", "older")
    main([*RELEASE, "--out", "first", "--quiet"])
    read = reading.read_encoded

    def while_it_is_put_back(*arguments: Any, **options: Any) -> Any:
        shutil.copy("older", "ledger")
        return read(*arguments, **options)

    monkeypatch.setattr(releasing, "read_encoded", while_it_is_put_back)
    monkeypatch.setattr("treetop.release.run.run_descent", lambda *_, **__: pytest.fail("it was measured"))
    code, message = refused(*RELEASE, "--out", "out", "--expect-head", head())
    assert (code, "an older copy" in message) == (3, True)


def test_expecting_a_head_needs_a_ledger(desk: Path) -> None:
    code, message = refused("release", "plan.toml", "trips.csv", "--out", "out", "--expect-head", "0" * 64)
    assert (code, "give --ledger FILE" in message) == (2, True)


@pytest.mark.parametrize("command", [[*RELEASE, "--out", "out"], ASK], ids=["release", "ask"])
def test_the_same_table_under_another_name_has_no_budget_of_its_own(command: list[str], desk: Path) -> None:
    main([*RELEASE, "--out", "first", "--dataset", "trips", "--quiet"])
    for name in ("trips2", "commuting"):
        code, message = refused(*command, "--dataset", name)
        assert code == 2
        assert f"has no data set {name!r}, and takes these only: trips" in message
        assert ("looks like trips" in message) == (name == "trips2")
    assert len(Ledger.open("ledger").entries()) == 1
    Ledger.open("ledger").add("commuting")
    main([*command, "--dataset", "commuting"])


def test_a_new_name_that_looks_like_a_known_one_is_told_where_any_name_is_taken(desk: Path, capsys: Captured) -> None:
    Ledger.create("open", loss=Loss(rho=1), any_dataset=True)
    call = ["release", "plan.toml", "trips.csv", "--ledger", "open", "--quiet"]
    main([*call, "--out", "one", "--dataset", "trips"])
    main([*call, "--out", "two", "--dataset", "schools"])
    assert capsys.readouterr().err == ""
    main([*call, "--out", "three", "--dataset", "trips-2"])
    assert "'trips-2' is a new data set of open, with a whole budget of its own, and looks like trips" in (
        capsys.readouterr().err
    )
