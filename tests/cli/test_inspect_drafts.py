"""What `inspect` drafts: names that `plan` takes, no active line that one record decides, and no search of a disk."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.commands import said
from treetop.errors import DataError

QUESTIONS = ("entity", "contributions", "neighbours", "epsilon", "delta", "values")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def inspected(*words: object) -> str:
    ran = said(["inspect", *words, "--out", "plan.toml"])
    assert ran.code == 0, ran.err
    text = Path("plan.toml").read_text()
    Path("plan.toml").unlink()
    return text


def answered(text: str, *more: str) -> Path:
    """Remove the # before the fields of a draft that are open."""
    for field in (*QUESTIONS, *more):
        text = text.replace(f"\n# {field} = ", f"\n{field} = ")
    Path("answered.toml").write_text(text)
    return Path("answered.toml")


@pytest.mark.parametrize(
    ("row", "rule"),
    [("0100 ,1", "trim"), ("200,1", "pad"), (' 0100 ,"1,234"', "thousands")],
    ids=["a blank at its end", "a lost zero", "a thousands separator"],
)
def test_one_record_changes_no_active_line_of_a_draft(row: str, rule: str, here: Path) -> None:
    codes = [f"{number:04d}" for number in range(100, 1000, 50)] + ["0200"]
    Path("places.csv").write_text("region,town\n" + "".join(f"{code[:2]},{code}\n" for code in sorted(set(codes))))
    rows = "home,n\n" + "".join(f"{code},1\n" for code in codes * 3)
    drafts = []
    for text in (rows, f"{rows}{row}\n"):
        Path("people.csv").write_text(text)
        drafts.append(inspected("people.csv", "--hierarchy", "places.csv", "--count", "n"))
    assert tomllib.loads(drafts[0]) == tomllib.loads(drafts[1])
    assert f"\n# {rule} = " in drafts[1] and "One record may be the reason" in drafts[1]
    assert getattr(tt.read_plan(answered(drafts[1], rule)), rule)


@pytest.mark.parametrize("name", ["Cód. CCAA", " Provincia", "a*b", "value", "total"])
def test_the_levels_of_a_file_are_drafted_under_names_that_a_plan_takes(name: str, here: Path) -> None:
    towns = {"region": ["A", "A", "B"], name: ["A1", "A2", "B1"]}
    pq.write_table(pa.table(towns), "places.parquet")
    Path("people.csv").write_text("home,sex\n" + "A1,f\nA2,m\nB1,f\n" * 20)
    plan = tt.read_plan(answered(inspected("people.csv", "--hierarchy", "places.parquet"))).plan
    assert plan.spine.attributes["home"].levels == ("region", name.strip().replace("*", "_"))


def test_attributes_are_drafted_under_names_that_a_plan_takes(here: Path) -> None:
    names = ["a.b", "a_b", "A_B", "value", "Count_code", "c*d", "e>f"]
    rows = {name: ["x", "y", "z"] * 20 for name in names[:6]}
    pq.write_table(pa.table(rows), "people.parquet")
    draft = inspected("people.parquet")
    drafted = tomllib.loads(draft)["attributes"]
    assert [own["column"] for own in drafted.values()] == names[:6]
    file = tt.read_plan(answered(draft))
    assert list(file.plan.spine.attributes) == ["a.b", "a_b", "A_B_2", "value_code", "Count_code", "c_d"]


def test_columns_that_nest_are_drafted_under_names_that_a_plan_takes(here: Path) -> None:
    rows = [(f"R{n // 20}", f"R{n // 20}D{n // 4 % 5}", f"T{n}") for n in range(60)] * 5
    text = "".join(",".join(row) + "\n" for row in rows)
    Path("people.csv").write_text(f"Reg. Code,dist.,town.code\n{text}")
    draft = inspected("people.csv")
    levels = next(line for line in draft.splitlines() if line.startswith("# levels = "))
    assert tomllib.loads(levels.removeprefix("# "))["levels"] == ["Reg. Code", "dist.", "town.code"]


def test_a_whole_disk_is_no_table(here: Path) -> None:
    ran = said(["inspect", "/"])
    assert ran.code != 0 and "is a whole disk, not a table: name a file" in ran.err


def test_a_folder_with_very_many_files_is_no_table(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treetop.io.source._MOST_ENTRIES", 50)
    for number in range(60):
        Path("many", str(number)).mkdir(parents=True)
    with pytest.raises(DataError, match="holds more than 50 files and folders: name a file"):
        tt.inspect_table("many")


def test_a_hidden_folder_is_not_searched(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treetop.io.source._MOST_ENTRIES", 50)
    for number in range(60):
        Path("few", ".hidden", str(number)).mkdir(parents=True)
    Path("few", "part.csv").write_text("home\na\nb\n")
    assert tt.inspect_table("few").rows == 2


def test_the_table_is_not_its_own_hierarchy_under_another_name(here: Path) -> None:
    Path("people.csv").write_text("home\na\nb\n")
    Path("places.csv").hardlink_to("people.csv")
    with pytest.raises(DataError, match="its own hierarchy"):
        tt.inspect_table("people.csv", "places.csv")
