"""`treetop ledger create` and `treetop ledger show`."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from treetop import Ledger
from treetop.cli.ledger import command
from treetop.errors import LedgerError, LossError, TreetopError
from treetop.ledger import OldCopy
from treetop.privacy import rho_from_epsilon

PLAN = "a" * 64
UNIT = "trip, exactly 1 record (declared), replace"


def treetop_ledger(*arguments: object) -> Result:
    """Run the command as `main` does: Treetop's own errors are left for it to report."""
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if isinstance(result.exception, TreetopError):
        raise result.exception
    return result


def test_create_with_epsilon_and_delta_keeps_a_rho(tmp_path: Path) -> None:
    result = treetop_ledger("create", tmp_path / "l", "--epsilon", "1", "--delta", "1e-8")
    assert result.exit_code == 0
    assert "the data set that is charged first, and no other" in result.output
    assert "epsilon 1 at delta 1e-08" in result.output
    assert Ledger.open(tmp_path / "l").budget.amount == rho_from_epsilon(1, 1e-8)


@pytest.mark.parametrize(
    ("options", "definition", "budget"),
    [
        (["--rho", "1/3"], "zcdp", Fraction(1, 3)),
        (["--rho", "1."], "zcdp", Fraction(1)),
        (["--rho", ".1"], "zcdp", Fraction(1, 10)),
        (["--epsilon", "1.5e-1"], "pure", Fraction(3, 20)),
    ],
)
def test_numbers_are_taken_exactly_as_they_are_written(
    tmp_path: Path, options: list[str], definition: str, budget: Fraction
) -> None:
    report = json.loads(treetop_ledger("create", tmp_path / "l", *options, "--json").output)
    assert (report["definition"], Fraction(report["budget"]["exact"])) == (definition, budget)
    assert Ledger.open(tmp_path / "l").budget.amount == budget


@pytest.mark.parametrize("number", ["one", "nan", "-1", "", "1e9999", "1/0", ".", "0x1", "9" * 1000, "١"])
def test_a_number_that_is_none_is_a_mistake_in_the_call(tmp_path: Path, number: str) -> None:
    result = treetop_ledger("create", tmp_path / "l", "--rho", number)
    assert result.exit_code == 2
    assert "--rho" in result.output
    assert not (tmp_path / "l").exists()


@pytest.mark.parametrize(
    "options",
    [[], ["--delta", "1e-8"], ["--epsilon", "1", "--rho", "1"], ["--rho", "0"], ["--epsilon", "1", "--delta", "1"]],
)
def test_a_budget_that_is_none_creates_no_file(tmp_path: Path, options: list[str]) -> None:
    with pytest.raises(LossError):
        treetop_ledger("create", tmp_path / "l", *options)
    assert list(tmp_path.iterdir()) == []


def test_show_lists_each_data_set_then_each_release(tmp_path: Path) -> None:
    treetop_ledger("create", tmp_path / "l", "--epsilon", "1", "--delta", "1e-8", "--any-dataset")
    ledger = Ledger.open(tmp_path / "l")
    ledger.reserve("trips", Fraction(1, 100), "zcdp", UNIT, "Commuting 2011", PLAN).complete("b" * 64)
    ledger.reserve("census", Fraction(1, 10), "pure", UNIT, "[bold]People\x1b[2J", PLAN)
    result = treetop_ledger("show", tmp_path / "l")
    assert result.exit_code == 0
    cells = [" ".join(row.split()) for row in result.output.splitlines()]
    assert "data set rho epsilon at delta 1e-08" in cells
    start = cells.index("trips budget 0.0172054 1")
    assert cells[start + 1].startswith("spent 0.01 0.7")
    assert cells[start + 2].startswith("remaining 0.00720531 0.6")
    assert "census budget 0.0172054 1" in cells
    *_, commuting, people, blank, head = cells
    assert (blank, head) == ("", f"Ledger fingerprint (keep a copy elsewhere to detect rollback): {ledger.head()[1]}")
    assert f"All releases of trips protect: {UNIT}" in cells and f"All releases of census protect: {UNIT}" in cells
    assert commuting.endswith("Z trips rho 0.01 complete Commuting 2011")
    state = "reserved, outcome unknown"
    assert people.endswith(f"Z census rho 0.005 (pure epsilon 0.1) {state} [bold]People\ufffd[2J")


def test_show_of_one_data_set_leaves_the_others_out(tmp_path: Path) -> None:
    treetop_ledger("create", tmp_path / "l", "--epsilon", "2", "--dataset", "trips", "--dataset", "census")
    ledger = Ledger.open(tmp_path / "l")
    ledger.reserve("trips", Fraction(1, 2), "pure", UNIT, "Commuting", PLAN)
    ledger.reserve("census", Fraction(1, 3), "pure", UNIT, "People", PLAN)
    result = treetop_ledger("show", tmp_path / "l", "--dataset", "TRIPS")
    assert "Commuting" in result.output
    assert "rho" not in result.output
    assert "census  " not in result.output
    assert "People" not in result.output


def test_show_of_a_data_set_that_was_never_charged_names_those_that_were(tmp_path: Path) -> None:
    treetop_ledger("create", tmp_path / "l", "--rho", "1")
    with pytest.raises(LedgerError, match="'trip'; it has: none yet"):
        treetop_ledger("show", tmp_path / "l", "--dataset", "trip")
    Ledger.open(tmp_path / "l").reserve("trips", Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN)
    with pytest.raises(LedgerError, match="'trip'; it has: trips"):
        treetop_ledger("show", tmp_path / "l", "--dataset", "trip")


def test_show_of_a_new_ledger_says_that_nothing_was_charged(tmp_path: Path) -> None:
    treetop_ledger("create", tmp_path / "l", "--rho", "1", "--dataset", "trips")
    output = treetop_ledger("show", tmp_path / "l").output
    assert "Nothing was charged yet." in output
    assert "(trips; no others)" in output


def test_show_as_json_has_the_exact_amounts(tmp_path: Path) -> None:
    treetop_ledger("create", tmp_path / "l", "--rho", "1", "--delta", "1e-8")
    Ledger.open(tmp_path / "l").reserve("trips", Fraction(1, 3), "zcdp", UNIT, "Città", PLAN)
    report = json.loads(treetop_ledger("show", tmp_path / "l", "--json").output)
    (dataset,), (entry,) = report["datasets"], report["entries"]
    assert (dataset["dataset"], dataset["spent"]["exact"], dataset["remaining"]["exact"]) == ("trips", "1/3", "2/3")
    assert 0 < dataset["spent"]["epsilon"] < dataset["budget"]["epsilon"]
    assert (entry["title"], entry["cost"], entry["state"]) == ("Città", "1/3", "reserved, outcome unknown")
    assert (entry["plan_sha256"], entry["card_sha256"]) == (PLAN, None)
    assert dataset["unit"] == entry["unit"] == UNIT


def test_show_without_a_ledger_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="treetop ledger create"):
        treetop_ledger("show", tmp_path / "absent")


def test_a_data_set_is_declared_with_add(tmp_path: Path) -> None:
    treetop_ledger("create", tmp_path / "l", "--rho", "1", "--dataset", "trips")
    result = treetop_ledger("add", tmp_path / "l", "Trips 2")
    assert "now takes trips, Trips 2." in result.output
    assert "the data set 'Trips 2' looks like trips, and each has a whole budget" in result.output
    report = json.loads(treetop_ledger("add", tmp_path / "l", "census", "--json").output)
    assert (report["only"], report["any_dataset"]) == (["trips", "Trips 2", "census"], False)
    with pytest.raises(LedgerError, match="already"):
        treetop_ledger("add", tmp_path / "l", "CENSUS")
    assert "(trips, Trips 2, census; no others)" in treetop_ledger("show", tmp_path / "l").output


def test_names_that_look_alike_are_told_when_a_ledger_is_made(tmp_path: Path) -> None:
    names = ("--dataset", "flights", "--dataset", "flights-copy", "--dataset", "schools")
    output = treetop_ledger("create", tmp_path / "l", "--rho", "1", *names).output
    assert output.count("looks like") == 1
    assert "'flights-copy' looks like flights" in output


def test_the_head_is_shown_alone_and_expected(tmp_path: Path) -> None:
    made = treetop_ledger("create", tmp_path / "l", "--rho", "1")
    head = Ledger.open(tmp_path / "l").head()[1]
    assert f"Ledger fingerprint (keep a copy elsewhere to detect rollback): {head}" in made.output
    assert treetop_ledger("show", tmp_path / "l", "--head").output == f"{head}\n"
    told = json.loads(treetop_ledger("show", tmp_path / "l", "--head", "--json").output)
    assert told == {"records": 1, "head": head}
    assert json.loads(treetop_ledger("show", tmp_path / "l", "--json").output)["head"] == head
    assert treetop_ledger("show", tmp_path / "l", "--expect-head", head.upper()).exit_code == 0
    with pytest.raises(OldCopy, match="an older copy"):
        treetop_ledger("show", tmp_path / "l", "--head", "--expect-head", "0" * 64)
    with pytest.raises(OldCopy, match="an older copy"):
        treetop_ledger("add", tmp_path / "l", "trips", "--expect-head", "0" * 64)
    refused = treetop_ledger("show", tmp_path / "l", "--expect-head", "short")
    assert (refused.exit_code, "64 hexadecimal digits" in refused.output) == (2, True)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_ledger_on_a_network_disk_is_told(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "far away").mkdir()
    mounts = tmp_path / "mounts"
    far = str(tmp_path / "far away").replace(" ", "\\040")
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/x {far} {kind} rw 0 0\n")
    monkeypatch.setattr("treetop.ledger._book.MOUNTS", mounts)
    told = treetop_ledger("create", tmp_path / "far away" / "l", "--rho", "1").output
    assert f"is on a network disk ({kind}): locks may not hold there" in told
    assert "network disk" not in treetop_ledger("create", tmp_path / "l", "--rho", "1").output
