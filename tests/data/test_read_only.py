"""A query can only read: one statement, in a database that is opened so that nothing can be written or reached."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import duckdb
import pytest

from treetop import Source, inspect_table
from treetop.cli import main
from treetop.errors import DataError
from treetop.io import table as tables


@pytest.fixture(params=["duckdb", "sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"trips.{request.param}"
    with duckdb.connect(str(path)) if request.param == "duckdb" else sqlite3.connect(path) as base:
        base.execute("create table trips (home text)")
        base.execute("insert into trips values ('a'), ('b')")
        base.commit()
    return path


WRITING = [
    "copy trips to '{out}'",
    "select home from trips; copy trips to '{out}'",
    "select 1 as home) as t; copy (select 1) to '{out}'; select * from (select 1 as home",
    "select 1 as home) as t; attach '{out}' as other; select * from (select 1 as home",
    "select 1 as home) as t; install httpfs; select * from (select 1 as home",
    "attach '{out}' as other",
    "vacuum into '{out}'",
    "insert into trips values ('c')",
    "insert into trips values ('c') returning home",
    "with more as (insert into trips values ('c') returning home) select * from more",
    "select 1 as home) as t; drop table trips; select * from (select 1 as home",
    "install httpfs",
    "load httpfs",
    "select load_extension('x') as home",
    "pragma user_version = 7",
    "set memory_limit = '1GB'",
    "select ';' as home; select 1",
    "select 1 as home -- )\n) as t; drop table trips; select * from (select ')' as home",
]


@pytest.mark.parametrize("query", WRITING)
def test_a_query_that_would_write_is_refused_and_writes_nothing(database: Path, tmp_path: Path, query: str) -> None:
    before, out = database.read_bytes(), tmp_path / "written"
    source = Source(database, query.format(out=out))
    with pytest.raises(DataError, match="the query failed"):
        tables.read(source, ["home"])
    with pytest.raises(DataError):
        inspect_table(source)
    assert sorted(path.name for path in tmp_path.iterdir()) == [database.name]
    assert database.read_bytes() == before


@pytest.mark.parametrize(
    "query",
    ["select * from read_csv('{file}')", "select * from '{file}'", "select content as home from read_text('{file}')"],
)
def test_a_query_of_duckdb_reaches_no_other_file(tmp_path: Path, query: str) -> None:
    duckdb.connect(str(tmp_path / "trips.duckdb")).execute("create table trips as select 'a' as home").close()
    (tmp_path / "secret.csv").write_text("home\nx\n")
    with pytest.raises(DataError, match="the query failed"):
        tables.read(Source(tmp_path / "trips.duckdb", query.format(file=tmp_path / "secret.csv")))


def test_a_query_of_duckdb_reaches_no_variable_of_python(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "trips.duckdb")).execute("create table trips as select 'a' as home").close()
    with pytest.raises(DataError, match="the query failed"):
        tables.read(Source(tmp_path / "trips.duckdb", "select * from database"))


@pytest.mark.parametrize(
    "query",
    [
        "trips",
        "select home from trips;",
        "with a as (select home from trips) select * from a",
        "select home from trips where home = 'a' union all select home from trips where home <> 'a'",
        "select replace(home, ';', ')') as home from trips -- both; all)",
        "select home /* ; ) */ from trips where home <> ');'",
        'select home as "home" from trips as ";)"',
    ],
)
def test_one_statement_that_reads_is_read(database: Path, query: str) -> None:
    assert sorted(tables.read(Source(database, query), ["home"])["home"].to_pylist()) == ["a", "b"]


def test_inspect_says_so_on_the_command_line(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "written"
    with pytest.raises(SystemExit) as left:
        main(["inspect", str(database), "--query", f"select home from trips; copy trips to '{out}'"])
    assert left.value.code == 2
    assert "give one select" in capsys.readouterr().err
    assert not out.exists()


def test_a_volatile_function_of_postgresql_inserts_nothing(server: str) -> None:
    from adbc_driver_postgresql import dbapi  # type: ignore[import-untyped]

    schema = "volatile_functions"
    with dbapi.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"create schema {schema}")
        cursor.execute(f"create table {schema}.trips (home text)")
        cursor.execute(
            f"create function {schema}.leave() returns text as $$ insert into {schema}.trips values ('x') "
            "returning home $$ language sql volatile"
        )
        cursor.execute(f"create sequence {schema}.steps")
    for query, problem in {
        f"select {schema}.leave() as home": "read-only transaction",
        f"select nextval('{schema}.steps')::text as home": "read-only transaction",
        f"select set_config('transaction_read_only', 'off', false), {schema}.leave() as home": "read-write mode",
        f"select 'a' as home) as t; insert into {schema}.trips values ('x'); select * from (select 'a' as home": "",
        f"select 'a' as home; insert into {schema}.trips values ('x')": "multiple commands",
        f"with more as (insert into {schema}.trips values ('x') returning home) select * from more": "",
    }.items():
        with pytest.raises(DataError, match=f"the query failed: .*{problem}"):
            tables.read(Source(server, query))
    assert tables.read(Source(server, f"{schema}.trips")).num_rows == 0
    with dbapi.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"drop schema {schema} cascade")
