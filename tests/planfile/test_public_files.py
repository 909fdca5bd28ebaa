"""No public file of a plan is the private table, wherever that is named and however the path is written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop.errors import FactError, PlanFileError

PLAN = """
[attributes.place]
hierarchy = "places.csv"
levels = ["town"]
[unit]
entity = "person"
contributions = 1
neighbours = "replace"
[loss]
epsilon = 1.0
delta = 1e-6
[data]
count = "count"
"""
NAMED = {
    "hierarchy": PLAN.replace("places.csv", "people.csv"),
    "facts exact": f'{PLAN}[facts]\n"place.town" = "people.csv"\n',
    "facts at_most": f'{PLAN}[facts]\n"place.town" = {{ at_most = "people.csv", unchecked = true }}\n',
    "facts possible": f'{PLAN}[facts]\n"place.town" = {{ possible = "people.csv" }}\n',
    "replace": f'{PLAN}replace = {{ place = "people.csv" }}\n',
}
ITSELF = "is the private table itself"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "places.csv").write_text("town\nA1\nA2\nB1\n")
    (tmp_path / "people.csv").write_text("town,count\nA1,4\nA2,0\nB1,3\n")
    tt.Ledger.create(tmp_path / "ledger", loss=tt.Loss(epsilon=9, delta=1e-5), datasets=("people",))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(text: str) -> str:
    Path("plan.toml").write_text(text.replace("[attributes.place]", '[attributes.place]\ncolumn = "town"'))
    return "plan.toml"


def publish(plan: str, table: Any) -> None:
    tt.publish(plan, table, "out", tt.RunOptions(ledger="ledger", dataset="people"))


def ask(plan: str, table: Any) -> None:
    tt.ask(plan, table, ["place=A1"], ledger="ledger", dataset="people")


RUNS: dict[str, Callable[[str, Any], None]] = {"publish": publish, "ask": ask}


def refused(run: str, plan: str, table: Any, error: type[Exception] = PlanFileError) -> str:
    with pytest.raises(error, match=ITSELF) as caught:
        RUNS[run](plan, table)
    assert not Path("out").exists() and not tt.Ledger.open("ledger").entries("people")
    return str(caught.value)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("what", NAMED)
def test_the_private_table_that_is_named_where_the_plan_runs_is_no_public_file(what: str, run: str, here: Path) -> None:
    message = refused(run, written(NAMED[what]), "people.csv")
    assert message.startswith("plan.toml: [") and "name the private table instead" in message


def test_the_same_plan_with_public_files_is_published_and_charged(here: Path) -> None:
    Path("public.csv").write_text("town,count\nA1,5\nA2,0\nB1,5\n")
    publish(written(NAMED["facts at_most"].replace("people.csv", "public.csv")), "people.csv")
    assert Path("out").exists() and len(tt.Ledger.open("ledger").entries("people")) == 1


COPIES: dict[str, Callable[[Path], object]] = {
    "link": lambda path: path.symlink_to("people.csv"),
    "hard link": lambda path: os.link("people.csv", path),
    "copy": lambda path: shutil.copy("people.csv", path),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("copy", COPIES)
def test_another_name_of_the_private_table_is_no_public_file(copy: str, run: str, here: Path) -> None:
    COPIES[copy](Path("public.csv"))
    refused(run, written(NAMED["facts exact"].replace("people.csv", "public.csv")), "people.csv")


SPELLINGS: dict[str, Callable[[Path], Any]] = {
    "a way round": lambda folder: f"../{folder.name}/./people.csv",
    "absolute": lambda folder: str(folder / "people.csv"),
    "a pattern": lambda folder: "peopl?.csv",
    "a path": lambda folder: folder / "people.csv",
    "a source": lambda folder: tt.Source("people.csv"),
    "a list": lambda folder: ["people.csv"],
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_private_table_is_found_however_its_path_is_written(spelling: str, here: Path) -> None:
    refused("publish", written(NAMED["facts exact"]), SPELLINGS[spelling](here))


def test_the_private_table_is_found_in_a_folder(here: Path) -> None:
    Path("parts").mkdir()
    shutil.move("people.csv", "parts/people.csv")
    refused("publish", written(NAMED["facts exact"].replace("people.csv", "parts/people.csv")), "parts")


@pytest.mark.parametrize("table", ["sqlite:///people.db", "people.db", "linked.db"])
def test_the_private_table_is_found_in_a_database(table: str, here: Path) -> None:
    with sqlite3.connect("people.db") as database:
        database.execute("create table people (town text, count integer)")
        database.executemany("insert into people values (?, ?)", [("A1", 4), ("A2", 0), ("B1", 3)])
    os.link("people.db", "linked.db")
    plan = written(
        NAMED["facts exact"].replace("people.csv", "people.db").replace("[unit]", "[unit]\nmay_be_missing = true")
    )
    refused("publish", plan, table)


def test_the_private_table_that_is_redirected_to_standard_input_is_no_public_file(here: Path) -> None:
    plan = written(NAMED["facts exact"])
    with Path("people.csv").open("rb") as stdin:
        command = [sys.executable, "-m", "treetop", "release", plan, "-", "--out", "out"]
        ran = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=False)
    assert ran.returncode != 0 and ITSELF in ran.stderr and not Path("out").exists()


def test_a_truth_that_is_a_public_file_is_refused(here: Path) -> None:
    plan = written(PLAN)
    publish(plan, "people.csv")
    with pytest.raises(PlanFileError, match=ITSELF):
        tt.compare_with_truth("out", "places.csv", plan=plan)


def test_facts_in_python_are_not_read_from_the_private_table(here: Path) -> None:
    spine = tt.Spine(["place"], {"place": tt.Hierarchy.flat(["A1", "B1"])})
    unit, loss = tt.Unit("person", neighbours="replace"), tt.Loss(epsilon=1, delta=1e-6)
    pq.write_table(pa.table({"place": ["A1", "B1"], "count": [4, 3]}), "people.parquet")
    os.link("people.parquet", "public.parquet")
    for source in ("people.parquet", Path("public.parquet"), tt.Source("people.parquet")):
        plan = tt.Plan(spine, unit, loss, facts={"place": tt.Fact(exact=source)})
        with pytest.raises(FactError, match=ITSELF):
            tt.make_release(plan, "people.parquet", tt.RunOptions(count="count"))


GROUPS = """
[groups]
rows = "groups"
event = "join-leave"
largest = 3
list = "homes.csv"
list_group = "home"
group = "home"
size = "size"
[attributes.place]
values = ["a", "b"]
[unit]
entity = "person"
[loss]
epsilon = 1
"""


def test_the_private_table_of_groups_is_no_list_of_groups(here: Path) -> None:
    Path("homes.csv").write_text("home,place,size\n1,a,2\n2,b,1\n")
    Path("plan.toml").write_text(GROUPS)
    assert "[groups] list" in refused("publish", "plan.toml", "homes.csv")


GRAPH = """
[graph]
nodes = "nodes.csv"
relation = "edge"
[graph.clean.job]
vocabulary = "words.csv"
[attributes.origin]
column = "source.job"
values = ["a", "b", "other", "missing"]
[attributes.destination]
column = "target.job"
same_as = "origin"
[spine]
order = "origin-first"
[unit]
contributions = 1
neighbours = "add-remove"
[loss]
rho = 1
"""


def test_the_edges_and_nodes_of_a_graph_are_no_public_files(here: Path) -> None:
    Path("nodes.csv").write_text("id,job\n1,a\n2,b\n")
    Path("edges.csv").write_text("source,target,keyword,code\n1,2,a,a\n")
    Path("words.csv").write_text("keyword,code\na,a\nb,b\n")
    Path("plan.toml").write_text(GRAPH)
    publish("plan.toml", "edges.csv")
    shutil.rmtree("out")
    tt.Ledger.create("other", loss=tt.Loss(epsilon=9, delta=1e-5), datasets=("people",))
    for text in (GRAPH.replace("words.csv", "edges.csv"), GRAPH.replace("words.csv", "nodes.csv")):
        Path("plan.toml").write_text(text)
        with pytest.raises(PlanFileError, match=rf"graph\.clean\.job\] vocabulary {ITSELF}"):
            tt.publish("plan.toml", "edges.csv", "out", tt.RunOptions(ledger="other", dataset="people"))
    assert not Path("out").exists() and not tt.Ledger.open("other").entries("people")
