"""Codes that a spreadsheet would compute: every CSV guards them, and what is guarded can be read back."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop import export
from treetop.cli import main
from treetop.exporting.sheet import guard, guard_rows

CODES = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "'=1+1", "'s-Hertogenbosch", "plain", "a=b", "''-", "'"]
SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n")


@pytest.fixture
def release() -> tt.Release:
    places = tt.Hierarchy.flat(CODES, level="town")
    plan = tt.Plan(
        spine=tt.Spine.origin_first(origin=places, destination=places),
        unit=tt.Unit("trip", contributions=1, neighbours="replace"),
        loss=tt.Loss(epsilon=50.0, delta=1e-6),
    )
    rows = pa.table({"origin": CODES, "destination": CODES[::-1], "n": [1000] * len(CODES)})
    return tt.make_release(plan, rows, tt.RunOptions(count="n", testing_key=b"1" * 32))


def unguard(text: str) -> str:
    """Take off the apostrophe that guards a text, as a reader would."""
    return text[1:] if text.startswith("'") and guard(text[1:]) == text else text


def cells(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("to", ["od", "csv", "skmob", "qgis", "records"])
def test_no_text_of_a_csv_begins_like_a_formula_and_all_can_be_read_back(
    to: str, release: tt.Release, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    done = export(release, to, out)
    assert done.guarded == 8
    rows = cells(out)[1:]
    assert not any(cell.startswith(SIGNS) for row in rows for cell in row[:2])
    assert {unguard(cell) for row in rows for cell in row[:2]} == set(CODES)
    raw = tmp_path / "raw.csv"
    assert export(release, to, raw, as_is=True).guarded == 0
    assert [[*map(unguard, row[:2]), *row[2:]] for row in rows] == cells(raw)[1:]


def test_flowmap_guards_the_same_code_alike_in_both_files(release: tt.Release, tmp_path: Path) -> None:
    with (tmp_path / "places.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["code", "name", "lat", "lon"], *([code, f"={code}", -1, 2] for code in CODES)])
    export(release, "flowmap", tmp_path / "out", coordinates=tmp_path / "places.csv", code="code")
    ids = {row[0] for row in cells(tmp_path / "out" / "locations.csv")[1:]}
    assert ids == set(map(guard, CODES))
    assert {row[0] for row in cells(tmp_path / "out" / "flows.csv")[1:]} <= ids
    assert all(row[1].startswith("'=") and row[2] == "-1" for row in cells(tmp_path / "out" / "locations.csv")[1:])


def test_the_name_of_an_attribute_is_guarded_too(tmp_path: Path) -> None:
    plan = tt.Plan(
        spine=tt.Spine(["=x"], {"=x": tt.Hierarchy.flat(["a", "b"])}),
        unit=tt.Unit("trip", contributions=1, neighbours="replace"),
        loss=tt.Loss(epsilon=50.0, delta=1e-6),
    )
    release = tt.make_release(plan, pa.table({"=x": ["a", "b"]}), tt.RunOptions(testing_key=b"1" * 32))
    export(release, "qgis", tmp_path / "out.csv")
    assert cells(tmp_path / "out.csv")[0] == ["'=x", "count", "lower", "upper"]


def test_parquet_holds_codes_as_they_are(release: tt.Release, tmp_path: Path) -> None:
    assert export(release, "records", tmp_path / "out.parquet").guarded == 0
    assert set(pq.read_table(tmp_path / "out.parquet")["origin"].to_pylist()) == set(CODES)


def test_the_rule_is_reversible_for_any_text() -> None:
    rng = random.Random(7)
    texts = ["".join(rng.choices("'=+-@\t\r\nab, ＝é", k=rng.randrange(6))) for _ in range(3000)]
    guarded = [guard(text) for text in texts]
    assert [unguard(text) for text in guarded] == texts
    assert not any(text.startswith(SIGNS) for text in guarded)
    rows = pa.RecordBatch.from_arrays([pa.array([*texts, None])], ["x"])
    assert guard_rows(rows)["x"].to_pylist() == [*guarded, None]


def test_the_command_says_what_was_guarded(
    release: tt.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    release.save("rel")
    main(["export", "rel", "--to", "od", "--out", "a.csv"])
    assert "8 codes of the hierarchies may be taken for formulas" in capsys.readouterr().out
    main(["export", "rel", "--to", "od", "--out", "b.csv", "--as-is", "--json"])
    assert json.loads(capsys.readouterr().out)["guarded"] == 0
