"""A table without rows is a table like any other: it is released, checked and queried, in every form.

Whether there is a record at all is what `add-remove` hides: an error where there is none would tell.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop.cli import main

PLAN = """
title = "Trips"
[attributes.place]
hierarchy = "places.csv"
levels = ["region", "town"]
[unit]
entity = "trip"
contributions = 1
neighbours = "add-remove"
[loss]
epsilon = 1
delta = 1e-6
[data]
"""
NONE = pa.table({"place": pa.array([], pa.string())})


def run(*arguments: str) -> int:
    try:
        main(list(arguments))
    except SystemExit as leaving:
        return int(leaving.code or 0)
    return 0


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a hierarchy; we are in it."""
    (tmp_path / "places.csv").write_text("region,town\nA,A1\nA,A2\nB,B1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def in_folder(path: Path) -> str:
    path.mkdir()
    for name in ("a.csv", "b.csv"):
        (path / name).write_text("place\n")
    pq.write_table(NONE, path / "c.parquet")
    return ""


def kept(path: Path, text: str = "place,year\nA1,2007\nB1,2009\n") -> str:
    path.write_text(text)
    return 'keep = { year = "2008" }\n'


def parquet(path: Path) -> str:
    pq.write_table(NONE, path)
    return ""


def without_header(path: Path) -> str:
    path.write_text("")
    return 'header = false\nnames = ["place"]\n'


def fixed_width(path: Path) -> str:
    path.write_text("A1 2007\nB1 2009\n")
    return 'keep = { year = "2008" }\nfields = { place = [1, 2], year = [4, 7] }\n'


def header_only(path: Path) -> str:
    path.write_text("place\n")
    return ""


@pytest.mark.parametrize("make", [in_folder, kept, parquet, without_header, fixed_width, header_only])
def test_a_table_without_rows_is_released_checked_and_queried(
    make: Callable[[Path], str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = make(here / "table")
    (here / "plan.toml").write_text(PLAN + data)
    assert run("release", "plan.toml", "table", "--out", "out", "--testing-key", "07" * 32) == 0
    told = capsys.readouterr()
    assert "there are no rows" in told.err
    assert "no rows" not in "".join(file.read_text() for file in here.glob("out/*.*") if file.suffix != ".parquet")
    assert run("check", "out", "--truth", "table", "--plan", "plan.toml") == 0
    assert run("query", "out", "place=A") == 0
    assert run("query", "out", "--by", "place.town") == 0


def test_where_a_value_is_misspelt_the_steward_is_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "plan.toml").write_text(PLAN + kept(here / "table"))
    run("release", "plan.toml", "table", "--out", "out", "--testing-key", "07" * 32)
    assert "no rows with year '2008', so every true count is 0: check the spelling" in capsys.readouterr().err


def test_a_release_of_nothing_may_have_a_total_above_nothing(here: Path) -> None:
    """With noise, a table without rows cannot be told from one with a few."""
    (here / "plan.toml").write_text(PLAN + kept(here / "table"))
    totals = set()
    for key in range(8):
        run("release", "plan.toml", "table", "--out", f"out{key}", "--testing-key", f"{key:02x}" * 32)
        totals.add(tt.Release.load(f"out{key}").total)
    assert len(totals) > 1


GROUPS = """
title = "Sizes"
[attributes.place]
hierarchy = "places.csv"
levels = ["region", "town"]
[groups]
rows = "people"
group = "home"
largest = 4
event = "join-leave"
list = "homes.csv"
list_group = "home"
list_region = "town"
[unit]
entity = "person"
[loss]
epsilon = 1
[data]
"""
GRAPH = """
title = "Friends"
[attributes.here]
column = "source.town"
hierarchy = "places.csv"
levels = ["region", "town"]
[attributes.there]
column = "target.town"
same_as = "here"
[spine]
order = ["here.region", "there.region", "here.town", "there.town"]
[graph]
nodes = "nodes.csv"
edges = "table"
relation = "edge"
[unit]
neighbours = "add-remove"
[loss]
epsilon = 1
"""


@pytest.mark.parametrize("data", ["", 'keep = { year = "2008" }\n'])
def test_groups_with_nobody_in_them_are_released_and_checked(data: str, here: Path) -> None:
    (here / "homes.csv").write_text("home,town\nh1,A1\nh2,B1\n")
    (here / "table").write_text("home,year\n" if not data else "home,year\nh1,2007\n")
    (here / "plan.toml").write_text(GROUPS + data)
    assert run("release", "plan.toml", "table", "--out", "out", "--testing-key", "07" * 32) == 0
    assert run("check", "out", "--truth", "table", "--plan", "plan.toml") == 0


@pytest.mark.parametrize("nodes", ["id,town\n1,A1\n2,B1\n", "id,town\n"])
def test_a_graph_without_edges_or_nodes_is_released_and_checked(nodes: str, here: Path) -> None:
    (here / "nodes.csv").write_text(nodes)
    (here / "table").write_text("source,target\n")
    (here / "plan.toml").write_text(GRAPH)
    assert run("release", "plan.toml", "table", "--out", "out", "--testing-key", "07" * 32) == 0
    assert run("check", "out") == 0
    (here / "people.toml").write_text(
        GRAPH.replace('edges = "table"\nrelation = "edge"', 'counts = "nodes"')
        .replace("source.town", "town")
        .replace('[attributes.there]\ncolumn = "target.town"\nsame_as = "here"\n', "")
        .replace(
            'order = ["here.region", "there.region", "here.town", "there.town"]', 'order = ["here.region", "here.town"]'
        )
        .replace("[unit]", '[unit]\nentity = "person"\ncontributions = 1')
    )
    assert run("release", "people.toml", "--out", "people", "--testing-key", "07" * 32) == 0
    assert run("check", "people") == 0
