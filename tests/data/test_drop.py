"""Rows that are dropped by their values: as rows are kept, the other way round, with the same consequences."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop import Source, cli
from treetop.card import in_words
from treetop.counts.reading import read_counts
from treetop.errors import DataError, PlanError, PlanFileError

SPINE = tt.Spine(["place"], {"place": tt.Hierarchy.flat(["a", "b", "c"], level="place")})
ROWS = [("a", "ok"), ("b", "test"), ("c", "void"), ("a", ""), ("x", "test"), ("b", "ok")]
PLAN = """
title = "Kept"
[attributes.place]
values = ["a", "b", "c"]
[unit]
entity = "visit"
contributions = 1
neighbours = "replace"
[loss]
rho = 100
[data]
source = "t.csv"
drop = { status = ["test", "void"] }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("place,status\n" + "".join(f"{place},{status}\n" for place, status in ROWS))
    Path("plan.toml").write_text(PLAN)
    return tmp_path


def test_rows_with_a_value_are_left_out_and_rows_without_one_stay(folder: Path) -> None:
    table = pa.table({"place": [place for place, _ in ROWS], "status": [status or None for _, status in ROWS]})
    pq.write_table(table, "t.parquet")
    pq.write_table(table.set_column(1, "status", table["status"].dictionary_encode()), "coded.parquet")
    for source in ("t.csv", "t.parquet", "coded.parquet"):
        assert read_counts(Source(source, drop={"status": ["test", "void"]}), SPINE).total == 3
        both = Source(source, keep={"place": ["a", "x"]}, drop={"status": "test"})
        assert read_counts(both, SPINE).total == 2


def test_what_is_dropped_may_hold_anything_and_others_are_named_by_their_row(folder: Path) -> None:
    with pytest.raises(DataError, match="row 5: 'x' is not a code in the hierarchy of 'place'"):
        read_counts(Source("t.csv", drop={"status": "void"}), SPINE)


def test_a_plan_that_drops_rows_measures_the_total(folder: Path) -> None:
    plan = tt.read_plan("plan.toml").plan
    assert plan.unit.may_be_missing and not plan.reads_total
    Path("plan.toml").write_text(PLAN.replace('drop = { status = ["test", "void"] }', ""))
    assert tt.read_plan("plan.toml").plan.reads_total
    bare = tt.Plan(SPINE, tt.Unit("visit", neighbours="replace"), tt.Loss(rho=100))
    with pytest.raises(PlanError, match="rows with certain values of status are dropped"):
        tt.make_release(bare, Source("t.csv", drop={"status": ["test", "void"]}), tt.RunOptions(testing_key=bytes(32)))


def test_card_check_plan_and_truth_know_what_was_dropped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tt.publish("plan.toml", options=tt.RunOptions(testing_key=bytes(32)), out="out")
    told = tt.Release.load("out").card["data"]
    assert told["drop"] == {"status": ["test", "void"]}
    dropped = in_words(told["dropped"])
    assert dropped == (
        "Rows with status 'test' or 'void' are no part of the data set. This was decided before the table was read."
    )
    assert all(verdict.verified for verdict in tt.check("out"))
    assert tt.compare_with_truth("out", "t.csv").levels[-1].largest <= 2
    cli.main(["plan", "plan.toml"])
    assert dropped in capsys.readouterr().out
    text = Path("out/plan.toml").read_text()
    assert 'drop = { status = ["test", "void"] }' in text
    Path("out/plan.toml").write_text(text.replace('["test", "void"]', '["test"]'))
    assert any("drop" in finding for verdict in tt.check("out") for finding in verdict.findings)


def test_mistakes_are_refused_when_the_plan_is_read(folder: Path) -> None:
    for new, why in (
        ('drop = "test"', "must be a table of columns and their values, such as drop = "),
        ("drop = { status = 3 }", "a text in quotes"),
        ('drop = { status = "ok" }\nkeep = { status = ["ok", "old"] }', "keep and drop both list the value 'ok'"),
    ):
        Path("plan.toml").write_text(PLAN.replace('drop = { status = ["test", "void"] }', new))
        with pytest.raises((PlanFileError, DataError), match=why):
            tt.read_plan("plan.toml")
    with pytest.raises(DataError, match="there is no column 'state'"):
        read_counts(Source("t.csv", drop={"state": "x"}), SPINE)


def test_inspect_drops_rows_and_drafts_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["inspect", "t.csv", "--drop", "status=test", "--drop", "status=void", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["rows"] == 3
    assert 'drop = { status = ["test", "void"] }' in told["draft"]


def test_a_list_of_51_codes_is_no_sentence(folder: Path) -> None:
    codes = [f"S{number:02}" for number in range(51)]
    listed = ", ".join(f'"{code}"' for code in codes)
    Path("plan.toml").write_text(
        PLAN.replace('drop = { status = ["test", "void"] }', f"keep = {{ place = [{listed}] }}")
    )
    tt.publish("plan.toml", options=tt.RunOptions(testing_key=bytes(32)), out="out")
    told = tt.Release.load("out").card["data"]
    assert told["keep"]["place"] == codes
    assert in_words(told["kept"]).startswith(
        "The data set is the rows with place 'S00', 'S01', 'S02', 'S03', 'S04', 'S05' or one of 45 more; the other"
    )
    assert all(verdict.verified for verdict in tt.check("out"))
