"""Groups that are selected by what is private: their number would be exact, and one person may change it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import treetop as tt
from treetop import GroupList, GroupUnit, Source
from treetop.errors import PlanError

PLACES = tt.Hierarchy.flat(["east", "west"])
HOMES = "home,place,persons,status\nh1,east,1,occupied\nh2,east,3,occupied\nh3,west,0,vacant\nh4,west,2,occupied\n"
LISTED = GroupList.read(
    pa.table({"group": ["h1", "h2", "h3", "h4"], "region": ["east", "east", "west", "west"]}), PLACES
)
COLUMNS = {"size": "persons"}
PLAN = """
[attributes.place]
values = ["east", "west"]

[unit]
entity = "person"

[groups]
rows = "groups"
event = "{event}"
largest = 5
number = 3
public = "regions"
size = "persons"

[data]
{data}

[loss]
epsilon = 1
"""


@pytest.fixture
def homes(tmp_path: Path) -> Path:
    path = tmp_path / "homes.csv"
    path.write_text(HOMES, encoding="utf-8")
    with sqlite3.connect(tmp_path / "homes.db") as database:
        database.execute("create table homes (home, place, persons integer, status)")
        rows = [line.split(",") for line in HOMES.splitlines()[1:]]
        database.executemany("insert into homes values (?, ?, ?, ?)", rows)
    return path


def plan(event: Any = "join-leave", **more: Any) -> tt.Plan:
    stated = {"rows": "groups", "number": None if "listed" in more else 3, **more}
    return tt.group_plan(PLACES, 5, GroupUnit("person", event), tt.Loss(epsilon=1), **stated)


@pytest.mark.parametrize("public", ["total", "regions"])
@pytest.mark.parametrize("event", ["join-leave", "move", "group"])
@pytest.mark.parametrize("selected", [{"keep": {"status": "occupied"}}, {"drop": {"status": "vacant"}}])
def test_without_a_list_no_group_is_selected(homes: Path, selected: Any, event: str, public: str) -> None:
    ledger = tt.Ledger.create(homes.with_name("ledger"), loss=tt.Loss(epsilon=1))
    with pytest.raises(PlanError, match="number of groups is released without noise.*one person may change.*list"):
        tt.make_release(
            plan(event, public=public), Source(homes, **selected), tt.RunOptions(columns=COLUMNS, ledger=ledger)
        )
    assert not ledger.entries()


def test_nor_by_a_query_or_a_view(homes: Path) -> None:
    database = f"sqlite:///{homes.with_name('homes.db')}"
    for source in (Source(database, query="select * from homes where persons > 0"), Source(database)):
        with pytest.raises(PlanError, match="number of groups is released without noise"):
            tt.make_release(plan(), source, tt.RunOptions(columns=COLUMNS, testing_key=bytes(32)))


@pytest.mark.parametrize("event", ["join-leave", "group"])
@pytest.mark.parametrize("line", ['keep = { status = "occupied" }', 'drop = { status = "vacant" }'])
def test_a_plan_file_is_refused_when_it_is_read(tmp_path: Path, line: str, event: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.format(data=line, event=event), encoding="utf-8")
    with pytest.raises(PlanError, match=r"plan.toml: \[data\] .*number of groups is released without noise"):
        tt.read_plan(path)
    path.write_text(PLAN.format(data="", event=event), encoding="utf-8")
    assert tt.read_plan(path).plan.conditions


def test_on_a_list_a_group_that_is_left_out_is_empty(homes: Path) -> None:
    source, columns = Source(homes, keep={"status": "occupied"}), {**COLUMNS, "group": "home"}
    release = tt.make_release(
        plan("group", listed=LISTED), source, tt.RunOptions(columns=columns, testing_key=bytes(32))
    )
    assert release.total == 4
    # One person is hidden by the noise of one step: a whole group that vanishes may be more.
    with pytest.raises(PlanError, match="size by more than the noise hides"):
        tt.make_release(plan(listed=LISTED), source, tt.RunOptions(columns=columns, testing_key=bytes(32)))


def test_people_may_be_selected(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("group,status\nh1,here\nh2,here\nh2,gone\n", encoding="utf-8")
    made = plan(rows="people", listed=LISTED)
    assert tt.make_release(made, Source(path, keep={"status": "here"}), tt.RunOptions(testing_key=bytes(32))).total == 4
