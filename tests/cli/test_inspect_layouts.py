"""`inspect` recognises lists of households, people in households, and edges, and drafts plans that `plan` takes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import treetop as tt
from tests.commands import said

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answered(*words: object, more: tuple[str, ...] = ()) -> tt.PlanFile:
    """Draft a plan, remove the # before its open fields, and read it."""
    assert (ran := said(["inspect", *words, "--out", "draft.toml"])).code == 0, ran.err
    text = Path("draft.toml").read_text()
    for field in ("entity", "neighbours", "epsilon", "largest", "event", "number", "relation", *more):
        text = text.replace(f"\n# {field} = ", f"\n{field} = ")
    Path("draft.toml").write_text(text)
    return tt.read_plan("draft.toml")


def test_edges_with_a_node_list_become_flows_between_places(here: Path) -> None:
    shutil.copytree(EXAMPLES / "graph", here, dirs_exist_ok=True)
    file = answered("edges.csv", "--nodes", "nodes.csv", "--hierarchy", "places.csv")
    assert (file.plan.reader.name, list(file.plan.spine.attributes)) == ("records", ["origin", "destination"])
    assert file.columns == {"origin": "source.town", "destination": "target.town"}
    assert "edge" in file.plan.unit.sentence() or file.plan.unit.entity == "friendship"


def test_edges_alone_become_degrees(here: Path) -> None:
    rows = (EXAMPLES / "graph" / "edges.csv").read_text().splitlines()[1:]
    Path("net.txt").write_text("# from to\n" + "\n".join(row.replace(",", " ") for row in rows))
    options = ("--comment", "#", "--delimiter", " ", "--no-header", "--names", "source,target")
    file = answered("net.txt", *options, more=("nodes",))
    assert file.plan.reader.name == "degrees"
    assert (file.comment, file.delimiter, file.header, file.names) == ("#", " ", False, ("source", "target"))


def test_the_wrong_people_are_refused(here: Path) -> None:
    shutil.copytree(EXAMPLES / "graph", here, dirs_exist_ok=True)
    ran = said(["inspect", "edges.csv", "--nodes", "places.csv"])
    assert ran.code and "no two columns hold ids of places.csv" in ran.err


def test_people_with_a_household_become_group_sizes(here: Path) -> None:
    shutil.copytree(EXAMPLES / "households", here, dirs_exist_ok=True)
    assert said(["inspect", "people.csv", "--out", "draft.toml"]).code == 0
    text = Path("draft.toml").read_text()
    assert 'rows = "people"' in text and 'group = "dwelling"' in text and 'id = "person"' in text


def test_households_with_their_size_become_group_sizes(here: Path) -> None:
    Path("places.csv").write_text("region,town\nA,A1\nA,A2\nB,B1\n")
    towns = ("A1", "A2", "B1")
    rows = (f"h{number},{towns[number % 3]},{number % 5}" for number in range(120))
    Path("homes.csv").write_text("\n".join(["household_id,town,household_size", *rows]))
    file = answered("homes.csv", "--hierarchy", "places.csv")
    assert (file.plan.reader.name, file.plan.largest) == ("groups", 8)


def test_people_with_several_attributes_stay_records(here: Path) -> None:
    rows = (f"p{number},h{number // 3},{'mf'[number % 2]},{number % 7}" for number in range(300))
    Path("people.csv").write_text("\n".join(["person,household,sex,status", *rows]))
    assert said(["inspect", "people.csv", "--out", "draft.toml"]).code == 0
    assert "[groups]" not in Path("draft.toml").read_text()
