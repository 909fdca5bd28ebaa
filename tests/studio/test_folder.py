"""Nothing outside the folder is read, whatever a plan names, and odd things in it do not stop the studio."""

from __future__ import annotations

import builtins
import io
import os
import shutil
import sqlite3
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests import everyday
from tests.studio.visitor import Visitor, visiting

STEPS = ("table", "columns", "protected", "accuracy", "review", "release")
EXAMPLES = Path(__file__).parents[2] / "examples"
SECRET = "SECRET"
HOUSEHOLDS, GRAPH = ("households", "plan.toml"), ("graph", "friendships.toml")
USERS, PUPILS = ("graph", "users.toml"), ("pupils", "plan.toml")
CASES: dict[str, tuple[tuple[str, str], str, str]] = {
    "attributes.NAME.hierarchy": (PUPILS, "places.csv", 'hierarchy = "OUT"'),
    "facts.TABLE": (PUPILS, "enrolment.csv", '"place.region" = "OUT"'),
    "facts.TABLE.exact": (PUPILS, "enrolment.csv", '"place.region" = { exact = "OUT" }'),
    "facts.TABLE.at_most": (PUPILS, "seats.csv", '"place.town" = { at_most = "OUT" }'),
    "facts.TABLE.at_least": (PUPILS, "seats.csv", '"place.town" = { at_least = "OUT", unchecked = true }'),
    "facts.TABLE.impossible": (PUPILS, "too_young.csv", '"grade * track" = { impossible = "OUT" }'),
    "facts.TABLE.possible": (PUPILS, "too_young.csv", '"grade * track" = { possible = "OUT" }'),
    "data.source": (PUPILS, "pupils.csv", 'source = "OUT"'),
    "data.replace": (PUPILS, "too_young.csv", '[data]\nreplace = { town = "OUT" }'),
    "groups.list": (HOUSEHOLDS, "dwellings.csv", 'list = "OUT"'),
    "graph.nodes": (GRAPH, "nodes.csv", 'nodes = "OUT"'),
    "graph.edges": (GRAPH, "edges.csv", 'edges = "OUT"'),
    "graph.clean.COLUMN.vocabulary": (USERS, "hobbies.csv", 'vocabulary = "OUT"'),
}
"""By field that names a file: an example, one of its files, and the line of its plan that names it."""
CONTROLS = {
    "attributes.NAME.hierarchy": "in step 2 (Columns), by “A public file”",
    "data.source": "in step 1 (Table), by “Take another table”",
    "data.replace": "in step 1 (Table)",
}
"""By field, the control that changes it."""


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All files that are opened from now on."""
    found: list[str] = []
    plain = io.open

    def spying(file: Any, *arguments: Any, **options: Any) -> Any:
        found.append(str(file))
        return plain(file, *arguments, **options)

    monkeypatch.setattr(io, "open", spying)
    monkeypatch.setattr(builtins, "open", spying)
    return found


def outside(tmp_path: Path, case: str, way: str) -> None:
    """Make a copy of an example, in `folder`, whose plan names one of its files in `outside`."""
    (example, plan), file, line = CASES[case]
    folder = shutil.copytree(EXAMPLES / example, tmp_path / "folder")
    (tmp_path / "outside").mkdir()
    (folder / file).rename(tmp_path / "outside" / f"{SECRET}.csv")
    named = {"above": f"../outside/{SECRET}.csv", "absolute": str(tmp_path / "outside" / f"{SECRET}.csv")}
    if way == "link":
        (folder / "linked.csv").symlink_to(tmp_path / "outside" / f"{SECRET}.csv")
    if way == "pattern":
        (folder / "linked").symlink_to(tmp_path / "outside")
    name = named.get(way) or {"link": "linked.csv", "pattern": "link*/*.csv"}[way]
    text = (folder / plan).read_text()
    key = line.partition("=")[0] if not line.startswith("[data]") else "[data]"
    kept = [one for one in text.splitlines() if not one.startswith(key)]
    old = next(one for one in text.splitlines() if one.startswith(key))
    at = text.splitlines().index(old)
    kept.insert(at, line.replace("OUT", name))
    (folder / plan).write_text("\n".join(kept) + "\n")


@pytest.mark.parametrize("way", ["above", "absolute", "link", "pattern"])
@pytest.mark.parametrize("case", CASES)
def test_no_page_reads_a_file_that_a_plan_names_outside_the_folder(
    case: str, way: str, tmp_path: Path, read: list[str]
) -> None:
    outside(tmp_path, case, way)
    folder, plan = tmp_path / "folder", CASES[case][0][1]
    version = sha256((folder / plan).read_bytes()).hexdigest()
    with visiting(folder, plan) as visitor:
        pages = {step: visitor.see(step) for step in STEPS}
        released = visitor.post("release", do="release", out="r", charge="no", seen=version)
    for page in (pages["review"], pages["release"], released):
        assert page.status == 422
        assert "is not below" in page.plain and "Copy it into the folder, and change the plan in " in page.plain
        assert CONTROLS.get(case, "in an editor") in page.plain
    assert {page.status for page in pages.values()} <= {200, 422} and not (folder / "r").exists()
    assert str(folder / plan) in read
    assert not [name for name in read if SECRET in name or "linked" in name]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("sqlite:///../outside/trips.db", "is not below"),
        ("SQLite:///{out}/trips.db", "is not below"),
        ("postgresql://ann@db/census", "is not a file"),
        ("-", "is not a file"),
        ("pipe.csv", "a pipe or a device"),
    ],
)
def test_a_database_is_a_file_of_the_folder_or_refused(
    source: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    out.mkdir()
    everyday.write(folder, everyday.plan_file(data=f'source = "{source.format(out=out)}"\nquery = "trips"\n'))
    os.mkfifo(folder / "pipe.csv")
    with sqlite3.connect(out / "trips.db") as database:
        database.execute("create table trips (home text, work text)")
        database.execute("insert into trips values ('n1', 's1')")
    monkeypatch.chdir(folder)
    with visiting(folder) as visitor:
        for step in STEPS:
            page = visitor.see(step)
            assert page.status in (200, 422) and (said in page.plain or step == "protected"), (step, page.plain)
        assert "by “Take another table”" in visitor.see("review").plain


def test_a_database_of_the_folder_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everyday.write(tmp_path, everyday.plan_file(data='source = "sqlite:///trips.db"\nquery = "trips"\n'))
    rows = [line.split(",") for line in (tmp_path / "trips.csv").read_text().splitlines()[1:]]
    with sqlite3.connect(tmp_path / "trips.db") as database:
        database.execute("create table trips (home text, work text)")
        database.executemany("insert into trips values (?, ?)", rows)
    monkeypatch.chdir(tmp_path)
    with visiting(tmp_path) as visitor:
        assert "Everything stays" in visitor.see("review").plain
        visitor.send("release", do="release", out="release", charge="no")
        assert "Released" in visitor.wait().plain


def test_files_of_a_release_that_lead_out_are_not_shown(own: Visitor, tmp_path_factory: pytest.TempPathFactory) -> None:
    own.send("release", do="release", out="release", charge="no")
    own.wait()
    away = tmp_path_factory.mktemp("away")
    card = own.folder / "release" / "card.json"
    card.rename(away / "card.json")
    card.symlink_to(away / "card.json")
    page = own.see("explore?release=release")
    assert page.status == 422 and "is not below" in page.plain


def test_links_that_go_in_a_ring_stop_nothing(tmp_path: Path) -> None:
    everyday.write(tmp_path, everyday.plan_file(data='source = "trips.csv"\n'))
    for name in ("ring", "ring.csv", "ring.toml", "ring.ledger"):
        (tmp_path / name).symlink_to(tmp_path / name)
    (tmp_path / "one.csv").symlink_to(tmp_path / "other.csv")
    (tmp_path / "other.csv").symlink_to(tmp_path / "one.csv")
    with visiting(tmp_path) as visitor:
        for step in (*STEPS, "explore", "publish"):
            page = visitor.see(step)
            assert page.status == 200 and "ring." not in page.plain, step
        (tmp_path / "later").symlink_to(tmp_path / "later")
        assert visitor.see("table").status == 200
        page = visitor.send("table", do="choose", table="one.csv", plan="other.toml")
        assert page.status == 422 and "is not below" in page.plain
        path = tmp_path / "plan.toml"
        path.write_text(path.read_text().replace("places.csv", "ring.csv"))
        assert visitor.see("review").status == 422
        assert visitor.ask("GET", f"{visitor.shelf or visitor.room}/card/ring").status in (403, 404)
