"""Every kind of source, through the installed command, as a person would: inspect, plan, release, check, query.

What reads the source is a process of its own; the first kind, and what stands in a pipe, is read by the command as it
is installed. What reads the plan or the release is the same for all kinds: the installed command asks once.
"""

from __future__ import annotations

import gzip
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.commands import said
from tests.processes import Server

TREETOP = Path(sys.executable).with_name("treetop")
KEY = "11" * 32
ROWS = [("01001", "None"), ("01003", "01001"), ("02001", "02001"), ("None", "01001")] * 25

ANSWERS = """
[unit]
entity = "trip"
contributions = 1
neighbours = "replace"
may_be_missing = true

[loss]
epsilon = 5.0
delta = 1e-6
"""


def treetop(*words: object, folder: Path, given: bytes | None = None) -> str:
    run = subprocess.run([TREETOP, *map(str, words)], cwd=folder, input=given, capture_output=True, check=False)
    assert run.returncode == 0, (words, run.stdout.decode(), run.stderr.decode())
    return run.stdout.decode()


def here(*words: object, folder: Path) -> str:
    """Run a command that the source makes no difference to."""
    done = said(words, folder)
    assert done.code == 0, (words, done)
    return done.out


def csv(delimiter: str = ",", encoding: str = "utf-8", note: str = "x") -> bytes:
    lines = [delimiter.join(["home", "work", "note"]), *(delimiter.join([*row, note]) for row in ROWS)]
    return "\n".join([*lines, ""]).encode(encoding)


def tables(folder: Path, kind: str, server: Any) -> tuple[str, list[str]]:
    """Write the same trips as one kind of source; return its name and the options to inspect it with."""
    columns = {"home": [home for home, _ in ROWS], "work": [work for _, work in ROWS]}
    query = ["--query", "select home, work from trips"]
    if kind == "csv":
        (folder / "trips.csv").write_bytes(csv())
        return "trips.csv", []
    if kind == "csv.gz":
        (folder / "trips.csv.gz").write_bytes(gzip.compress(csv()))
        return "trips.csv.gz", []
    if kind == "latin-1":
        (folder / "trips.csv").write_bytes(csv(";", "latin-1", "perché"))
        return "trips.csv", ["--delimiter", ";", "--encoding", "latin-1"]
    if kind == "parquet":
        pq.write_table(pa.table(columns), folder / "trips.parquet")
        return "trips.parquet", []
    if kind == "glob":
        for part in range(2):
            pq.write_table(pa.table(columns).slice(part * 50, 50), folder / f"part-{part}.parquet")
        return "part-*.parquet", []
    if kind == "duckdb":
        with duckdb.connect(str(folder / "trips.duckdb")) as base:
            base.execute("create table trips (home varchar, work varchar)")
            base.executemany("insert into trips values (?, ?)", ROWS)
        return "trips.duckdb", query
    if kind == "sqlite":
        with closing(sqlite3.connect(folder / "trips.sqlite")) as lite, lite:
            lite.execute("create table trips (home text, work text)")
            lite.executemany("insert into trips values (?, ?)", ROWS)
        return f"sqlite:///{folder / 'trips.sqlite'}", query
    return _postgresql(server), query


def _postgresql(server: str) -> str:
    from adbc_driver_postgresql import dbapi  # type: ignore[import-untyped]

    values = ", ".join(f"('{home}', '{work}')" for home, work in ROWS)
    with dbapi.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("create database journeys")  # other tests count on the tables of the first one
    url = f"{server.removesuffix('/postgres')}/journeys"
    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("create table trips (home text, work text)")
        cursor.execute(f"insert into trips values {values}")
    return url


def answered(draft: str) -> str:
    """Answer the open questions of a draft, leaving the rest as it was drafted."""
    # The same title everywhere: it is part of the plan, and the noise of a testing key depends on the plan.
    head, _, _ = re.sub("^title = .*$", 'title = "Trips"', draft, flags=re.MULTILINE).partition("\n[unit]")
    _, _, data = draft.partition("\n[data]")
    return f"{head}\n{ANSWERS}\n[data]{data}"


def released(folder: Path, kind: str, server: Any, processes: Server) -> bytes:
    """Go all the way for one kind of source and return the bytes of its counts."""

    def forked(*words: object, folder: Path, given: bytes | None) -> str:
        done = processes.run("from treetop.cli import main; main()", *words, folder=folder)
        assert done.returncode == 0, (words, done)
        return done.stdout

    alone: Any = treetop if kind in ("csv", "-") else forked
    (folder / "places.csv").write_text("state,county\n01,01001\n01,01003\n02,02001\nNone,None\n", encoding="utf-8")
    table, options = ("-", []) if kind == "-" else tables(folder, kind, server)
    given = csv() if kind == "-" else None
    alone("inspect", table, *options, "--hierarchy", "places.csv", "--out", "plan.toml", folder=folder, given=given)
    plan = answered((folder / "plan.toml").read_text(encoding="utf-8"))
    if kind == "postgresql":
        assert "hunter2" not in plan
        plan = plan.replace(":***@", ":hunter2@")
    (folder / "plan.toml").write_text(plan, encoding="utf-8")
    assert "no private data was read" in here("plan", "plan.toml", folder=folder)
    named = [] if "\nsource = " in plan else [table]
    alone("release", "plan.toml", *named, "--out", "out", "--testing-key", KEY, folder=folder, given=given)
    assert "All checks passed: out matches its card." in here("check", "out", folder=folder)
    assert int(here("query", "out", "origin=None", folder=folder)) >= 0
    return (folder / "out" / "counts.parquet").read_bytes()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, processes: Server) -> bytes:
    folder = tmp_path_factory.mktemp("csv")
    counts = released(folder, "csv", None, processes)
    assert abs(int(treetop("query", "out", folder=folder)) - 100) < 20  # of a database, the total is always measured
    return counts


@pytest.mark.parametrize("kind", ["csv.gz", "latin-1", "parquet", "glob", "duckdb", "sqlite", "postgresql", "-"])
def test_every_kind_of_source_gives_the_same_release(
    kind: str, expected: bytes, tmp_path: Path, processes: Server, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue("server") if kind == "postgresql" else None
    assert released(tmp_path, kind, server, processes) == expected
