"""Refusals that depend on the private table: each is one message, before anything is spent."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from treetop import Ledger
from treetop.cli import main

Captured = pytest.CaptureFixture[str]
GRAPH = Path(__file__).parents[2] / "examples" / "graph"
COUNTED = ('[data]\ncount = "n"\n', b"home,n\nn1,4\n")
BY_ID = ("[data]\n", b"home,id\nn1,ann\n")

TABLES = {
    "a line with too many fields": ("", b"home\nn1\n", b"n1,s1,s2\n", "trips.csv"),
    "text in another encoding": ("", b"home\nn1\n", b"n\xe8\n", "UTF-8"),
    "a code that is unknown": ("", b"home\nn1\n", b"x9\n", "'x9'"),
    "a code that is missing": ("", b"home,other\nn1,1\n", b",1\n", "the code is missing"),
    "an id that is missing": (*BY_ID, b"n1,\n", "the id is missing"),
    "a count that is negative": (*COUNTED, b"n1,-4\n", "-4"),
    "a count that is not whole": (*COUNTED, b"n1,1.5\n", "1.5"),
    "counts that are too large to add up": (*COUNTED, b"n1,9007199254740992\n", "2^53"),
}


@pytest.mark.parametrize(("section", "table", "row", "message"), TABLES.values(), ids=TABLES)
def test_what_is_refused_because_of_the_table_spends_nothing(
    section: str, table: bytes, row: bytes, message: str, desk: Path, capsys: Captured
) -> None:
    plan = (desk / "plan.toml").read_text()
    if b"id" in table:
        plan = plan.replace('neighbours = "replace"', 'neighbours = "add-remove"\nid = "id"')
    (desk / "plan.toml").write_text(plan + section)
    (desk / "trips.csv").write_bytes(table + row)
    call = ["release", "plan.toml", "trips.csv", "--ledger", "ledger", "--out", "out", "--quiet"]
    with pytest.raises(SystemExit) as leaving:
        main(call)
    told = capsys.readouterr().err
    assert (leaving.value.code, message in told, "Traceback" in told) == (2, True, False), told
    assert Ledger.open("ledger").entries() == ()
    assert not (desk / "out").exists()
    (desk / "trips.csv").write_bytes(table)  # without that one row there is a release
    main(call)


@pytest.mark.parametrize(
    ("edge", "message"),
    [("0,0", "from a node to itself"), ("0,1", "more than once"), ("0,nobody", "'nobody'")],
    ids=["a self-loop", "an edge that is there already", "an unknown end"],
)
def test_what_is_refused_because_of_the_edges_spends_nothing(
    edge: str, message: str, desk: Path, capsys: Captured
) -> None:
    shutil.copytree(GRAPH, desk / "graph")
    with (desk / "graph" / "edges.csv").open("a") as file:
        file.write(f"{edge}\n")
    with pytest.raises(SystemExit) as leaving:
        main(["release", "graph/friendships.toml", "--ledger", "ledger", "--out", "out", "--quiet"])
    told = capsys.readouterr().err
    assert (leaving.value.code, message in told) == (2, True), told
    assert Ledger.open("ledger").entries() == ()


UNKNOWN = pytest.mark.parametrize("unknown", ['"drop"', '"elsewhere"', '{ place = "s3" }'])


@UNKNOWN
def test_where_unknown_codes_are_allowed_they_stop_nothing(unknown: str, desk: Path) -> None:
    (desk / "plan.toml").write_text((desk / "plan.toml").read_text() + f"[data]\nunknown = {unknown}\n")
    call = ["release", "plan.toml", "trips.csv", "--ledger", "ledger", "--quiet"]
    (desk / "trips.csv").write_text("home,other\n" + "n1,1\n" * 97 + "x9,1\n,1\n")
    main([*call, "--out", "few"])
    (desk / "trips.csv").write_text("home,other\nx9,1\n,1\n")
    main([*call, "--out", "all", "--allow-dropped"])
    assert [entry.state for entry in Ledger.open("ledger").entries()] == ["complete", "complete"]


@UNKNOWN
@pytest.mark.parametrize("command", ["release", "ask"])
def test_many_unknown_codes_spend_nothing(unknown: str, command: str, desk: Path, capsys: Captured) -> None:
    (desk / "plan.toml").write_text((desk / "plan.toml").read_text() + f"[data]\nunknown = {unknown}\n")
    (desk / "trips.csv").write_text("home,other\n" + "n1,1\n" * 90 + "x9,1\n" * 10)
    more = ["--out", "out"] if command == "release" else ["--where", "place=n1"]
    with pytest.raises(SystemExit):
        main([command, "plan.toml", "trips.csv", "--ledger", "ledger", *more])
    told = capsys.readouterr().err
    assert "more than 3% of the table has unknown codes; nothing was measured or spent" in told
    assert "10 of 100 rows would" in told and "'x9' (10)" in told and "--allow-dropped" in told
    assert Ledger.open("ledger").entries() == () and not (desk / "out").exists()


@UNKNOWN
def test_a_missing_id_stops_a_release_unless_it_is_dropped(unknown: str, desk: Path, capsys: Captured) -> None:
    plan = (desk / "plan.toml").read_text().replace('neighbours = "replace"', 'neighbours = "add-remove"\nid = "id"')
    (desk / "plan.toml").write_text(f"{plan}[data]\nunknown = {unknown}\n")
    (desk / "trips.csv").write_text("home,id\n" + "n1,ann\n" * 99 + "n1,\n")
    call = ["release", "plan.toml", "trips.csv", "--ledger", "ledger", "--out", "out", "--quiet", "--allow-dropped"]
    if unknown == '"drop"':
        main(call)
        return
    with pytest.raises(SystemExit):
        main(call)
    assert "the id is missing" in capsys.readouterr().err and Ledger.open("ledger").entries() == ()
