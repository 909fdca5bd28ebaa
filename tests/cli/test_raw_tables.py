"""Seven raw tables by command line: from the file to a release in at most five commands, with no file edited."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import treetop as tt
from tests.commands import said
from tests.raw_tables import REGIONS, TABLES
from treetop.errors import DataError

MOST = 5
END = ("person", "1", "add-remove", "2", "1e-6")
"""Who is protected, the most records, what stays hidden, epsilon and delta."""
STATES = "Johor, Negeri Sembilan, Perak, Sabah"


class Way(NamedTuple):
    """How a table is inspected, what is answered, and what the release is then asked."""

    options: Sequence[str]
    answers: Sequence[str]
    asked: str
    about: int
    within: int = 60


WAYS = {
    "deaths.csv": Way(
        ("--attribute", "date=year,month", "--attribute", "age=0,18,40,60,80", "--attribute", "male", "--attribute",
         "brand1"),
        ("", "", "", "2020-03", "2021-12", "0 = female, 1 = male", "AZ, Pfizer", "none", "", "3000", *END),
        "male=male", 1500, 100),
    "orders.xlsx": Way(
        (),
        ("Order Date, Segment, State", "year", "", "2020", "2021", "Consumer, Corporate", STATES, "", "2500",
         "customer", "12", "", "add-remove", "4", "1e-6"),
        "Segment=Consumer", 1250, 250),
    "beds.csv": Way(
        ("--hierarchy", "provinces.csv"),
        ("Cód. Provincia, Unidad", "Hospitalización, Críticas", "Ocupadas", "y", "7500", *END),
        "Región=País", 1250, 250),
    "survey.csv": Way(
        (),
        ("q1, q2, q3, q4, q5, q6, q7, q8, q9", *("a, b" if k % 2 else "a, b, c" for k in range(1, 10)), "", "4000",
         *END),
        "q1=a", 2000, 150),
    "trips.csv": Way(("--hierarchy", "towns.csv"), ("", "", "4000", *END), "origin.region=N", 2000, 120),
    "police.csv": Way(
        ("--no-header", "--names", "day,address,district,offence,lat"),
        ("day, district, offence", "month", "", "2006-01", "2006-12", "1,2,3,4,5,6", "BURGLARY, THEFT, FRAUD", "",
         "y", "2000", *END),
        "offence=THEFT", 667, 120),
    "stays.csv": Way(("--hierarchy", "places.csv"), ("", "Fiat, Ford, Seat", "", "4000", *END), "car=Fiat", 1333, 120),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_raw_table_becomes_a_release(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TABLES[name](tmp_path)
    way, plan = WAYS[name], tmp_path / "plan.toml"
    commands = (
        ("inspect", name, *way.options, "--ask"),
        ("plan", "plan.toml"),
        ("release", "plan.toml", "--out", "release", "--quiet"),
        ("check", "release"),
        ("query", "release", way.asked, "--json"),
    )
    assert len(commands) <= MOST
    for command in commands:
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*way.answers, ""])))
        done = said(command, tmp_path)
        assert done.code == 0, (command, done.err, plan.read_text() if plan.exists() else "")
        if command[0] == "plan":
            assert "Verdict" in done.out
    assert abs(done.json()["count"] - way.about) < way.within


def test_columns_that_are_no_categories_are_left_out_with_the_reason(tmp_path: Path) -> None:
    for make in TABLES.values():
        make(tmp_path)
    orders = tt.inspect_table(tmp_path / "orders.xlsx")
    assert orders.source.sheet == "Orders" and any("'Returns' (1 rows)" in note for note in orders.notes)
    assert "identifiers" in orders.left_out["Customer ID"] and "measured" in orders.left_out["Sales"]
    assert [one.column for one in orders.identifiers] == ["Row ID", "Customer ID"]  # Sales and Profit are none
    trips = tt.inspect_table(tmp_path / "trips.csv", tmp_path / "towns.csv")
    assert {one.column for one in trips.attributes} == {"from_town", "to_town"}
    assert "coordinates" in trips.left_out["from_lat"] and trips.count is None
    survey = tt.inspect_table(tmp_path / "survey.csv")
    assert "addresses" in survey.left_out["address"] and "six" in survey.left_out["q9"]
    deaths = tt.inspect_table(tmp_path / "deaths.csv")
    assert [one.column for one in deaths.attributes] == ["date", "age", "state", "male"]
    assert "brands" in deaths.left_out["brand1"]
    stays = tt.inspect_table(tmp_path / "stays.csv", tmp_path / "places.csv")
    assert [one.levels for one in stays.attributes] == [("region", "province"), ()]


def test_a_column_is_chosen_with_its_levels_bands_or_standard(tmp_path: Path) -> None:
    TABLES["deaths.csv"](tmp_path)
    chosen = ("--attribute", "date=year,quarter", "--attribute", "age=0,50", "--attribute", "brand1")
    draft = said(("inspect", "deaths.csv", *chosen), tmp_path).out
    assert 'levels = ["year", "quarter"]' in draft and "\nbands = [0, 50]\n" in draft and '# blank = "none"' in draft
    assert "[attributes.state]" not in draft
    assert "did you mean 'male'?" in said(("inspect", "deaths.csv", "--attribute", "mal"), tmp_path).err


def test_files_that_are_no_tables_and_names_that_stand_twice_are_told_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "page.csv").write_text("<!DOCTYPE html><html><body><table></table></body></html>")
    with pytest.raises(DataError, match="web page.*save the table as CSV"):
        tt.inspect_table(tmp_path / "page.csv")
    (tmp_path / "letter.docx").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(DataError, match="no workbook that can be read.*save it as CSV"):
        tt.inspect_table(tmp_path / "letter.docx")
    (tmp_path / "twice.csv").write_text("id,score,score\n" + "x,1,2\n" * 9)
    said_so = said(("inspect", "twice.csv"), tmp_path).err
    assert "'score'" in said_so and "--no-header" in said_so and "--drop" in said_so
    remedy = ("--no-header", "--names", "id,first,second", "--drop", "id=id")
    assert "9 rows, 3 columns" in said(("inspect", "twice.csv", *remedy), tmp_path).out
    names = "".join(f"{name}\n" for name in ("Z\u00fcrich", "Zu\u0308rich", "Bern") * 20)
    (tmp_path / "towns.csv").write_text(f"town\n{names}")
    assert "1 value spelt twice, in two Unicode forms" in said(("inspect", "towns.csv"), tmp_path).out


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8-sig", "utf-8"])
def test_encodings_are_found(encoding: str, tmp_path: Path) -> None:
    text = "“town”;n\n" if encoding != "latin-1" else "town;n\n"
    (tmp_path / "t.csv").write_text(text + "Cádiz;1\nJaén;2\n" * 30, encoding=encoding)
    found = tt.inspect_table(tmp_path / "t.csv")
    assert "Cádiz" in found.columns[0].samples
    assert found.source.encoding == (None if encoding.startswith("utf-8") else encoding)


def test_all_regions_are_in_the_list_of_provinces() -> None:
    assert sum(map(len, REGIONS.values())) == 6


def test_a_column_whose_codes_are_all_unknown_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    rows = "".join(f"{2000 + n % 40}\n" for n in range(400))
    (tmp_path / "police.csv").write_text(f"offence\n{rows}")
    (tmp_path / "groups.csv").write_text("group\n20\n21\n22\n")
    plan = '[attributes.offence]\nhierarchy = "groups.csv"\nlevels = ["group"]\nunknown = "elsewhere"\n[unit]\n'
    plan += 'entity = "person"\ncontributions = 1\nneighbours = "replace"\n[loss]\nepsilon = 1\ndelta = 1e-6\n'
    (tmp_path / "plan.toml").write_text(f'{plan}[data]\nsource = "police.csv"\n')
    done = said(("release", "plan.toml", "--out", "release"), tmp_path)
    assert done.code != 0 and "nothing was measured or spent" in done.err and not (tmp_path / "release").exists()
