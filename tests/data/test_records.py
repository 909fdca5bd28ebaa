"""Every line of a file is a record, and every row of a table: none vanishes, whatever is missing in it."""

from __future__ import annotations

import bz2
import gzip
import io
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treetop as tt
from treetop import Graph, GroupList, Source
from treetop.counts.group_reader import GroupColumns, GroupTableReader
from treetop.counts.reading import read_counts
from treetop.errors import DataError, PlanError
from treetop.io import _csv_file as csv_file
from treetop.io import table as tables

PLACE = tt.Hierarchy.flat(["a", "b", "other"], level="place")
SPINE = tt.Spine(["place"], {"place": PLACE})
RECORDS = ["a", None, "b", "a", None]


def lines(records: list[str | None], rest: str = "", end: str = "\n") -> bytes:
    return "".join((record + rest if record else "") + end for record in records).encode()


def database(path: Path, module: Any) -> Path:
    connection = module.connect(str(path))
    connection.execute("create table t (place varchar)")
    connection.executemany("insert into t values (?)", [(record,) for record in RECORDS])
    connection.commit()
    connection.close()
    return path


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


FORMS: dict[str, Callable[[Path], Any]] = {
    "one column": lambda path: written(path, b"place\n" + lines(RECORDS)),
    "one column, quoted": lambda path: written(path, b'"place"\n"a"\n\n"b"\n"a"\n""\n'),
    "two columns": lambda path: written(path, b"place,n\n" + lines(RECORDS, ",1")),
    "two columns, windows": lambda path: written(path, b"n;place\r\n1;a\r\n\r\n1;b\r\n1;a\r\n;\r\n"),
    "no header": lambda path: Source(written(path, lines(RECORDS)), header=False, names=["place"]),
    "blank first": lambda path: Source(written(path, b"\n\na,1\nb,2\na,3\n"), header=False, names=["place", "n"]),
    "gzip": lambda path: written(path, gzip.compress(b"place\na\n") + gzip.compress(b"\nb\na\n\n")),
    "bz2": lambda path: written(path, bz2.compress(b"place\n" + lines(RECORDS))),
    "utf-16": lambda path: Source(written(path, "place\na\n\nb\na\n\n".encode("utf-16")), encoding="utf-16"),
    "fixed width": lambda path: Source(written(path, lines(RECORDS)), fields={"place": 1}),
    "fixed width, padded": lambda path: Source(written(path, b"a\n \nb\na\n     \n"), fields={"place": 1}),
    "parquet": lambda path: (pq.write_table(pa.table({"place": RECORDS}), path), path)[1],
    "sqlite": lambda path: database(path, sqlite3),
    "duckdb": lambda path: database(path, duckdb),
    "in memory": lambda _: pa.table({"place": RECORDS}),
    "dictionary": lambda _: pa.table({"place": pa.array(RECORDS).dictionary_encode(null_encoding="encode")}),
    "stream": lambda _: pa.table({"place": RECORDS}).to_reader(max_chunksize=1),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_record_with_nothing_in_it_is_dealt_with_as_the_plan_says(form: str, tmp_path: Path) -> None:
    def total(unknown: Any) -> int:
        return read_counts(FORMS[form](tmp_path / "table"), SPINE, unknown=unknown).total

    assert total({"place": "other"}) == 5
    (tmp_path / "table").unlink(missing_ok=True)
    assert total("drop") == 3
    (tmp_path / "table").unlink(missing_ok=True)
    row = 1 if form == "blank first" else 2
    with pytest.raises(DataError, match=f"column 'place', row {row}: the code is missing. Everything in that row"):
        total("error")


def test_lines_of_standard_input_are_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"place\na\n\n")))
    assert read_counts("-", SPINE, unknown={"place": "other"}).total == 2


def test_the_newline_at_the_end_is_no_record(tmp_path: Path) -> None:
    for content in (b"place\na\nb", b"place\na\nb\n", b"place\r\na\r\nb\r\n", b"place\ra\rb\r"):
        assert read_counts(written(tmp_path / "t.csv", content), SPINE).total == 2


@given(st.lists(st.sampled_from(["", "a", "bb", "ccc"]), max_size=40), st.sampled_from(["\n", "\r\n", "\r"]),
       st.integers(6, 24))  # fmt: skip
def test_lines_are_records_wherever_a_block_ends(
    tmp_path_factory: pytest.TempPathFactory, records: list[str], end: str, block: int
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "t"
    path.write_bytes(("x" + end + "".join(record + end for record in records)).encode())
    expected = [record or None for record in records]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_file, "BLOCK", block)
        assert tables.read(Source(path, header=True))["x"].to_pylist() == expected
        found = tables.read(Source(path, fields={"x": 1}))["x"].to_pylist()
    assert found == ["x", *(record[:1] or None for record in records)]


def test_lines_that_the_plan_says_are_nothing_are_passed_over(tmp_path: Path) -> None:
    for form in ("one column", "two columns", "no header", "gzip", "fixed width, padded"):
        given_table = FORMS[form](tmp_path / "table")
        source = given_table if isinstance(given_table, Source) else Source(given_table)
        skipped = replace(source, blank_lines="skip")
        assert read_counts(skipped, SPINE).total == 3
    with pytest.raises(DataError, match='blank_lines is \'no\': choose "record" or "skip"'):
        Source("t.csv", blank_lines="no")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("neighbours", "contributions", "unknown", "taken"),
    [
        ("replace", 1, "error", False),
        ("replace", 1, {"place": "other"}, False),
        ("replace", 1, "drop", True),
        ("replace", 2, "error", True),
        ("add-remove", 1, "error", True),
    ],
)
def test_an_exact_total_takes_no_table_of_which_lines_are_skipped(
    neighbours: Any, contributions: int, unknown: Any, taken: bool, tmp_path: Path
) -> None:
    plan = tt.Plan(SPINE, tt.Unit("trip", contributions, neighbours), tt.Loss(rho=1), unknown=unknown)
    source = Source(written(tmp_path / "t.csv", b"place\na\n\n"), blank_lines="skip")
    if taken:
        tt.make_release(plan, source, tt.RunOptions(testing_key=bytes(32)))
    else:
        with pytest.raises(PlanError, match="neighbours may differ in it: blank lines are skipped"):
            tt.make_release(plan, source, tt.RunOptions(testing_key=bytes(32)))


def test_a_missing_count_is_named_with_the_empty_line(tmp_path: Path) -> None:
    file = written(tmp_path / "t.csv", b"place,n\na,2\n\n")
    with pytest.raises(DataError, match="column 'n', row 2: the count is missing. Everything in that row.*delete it"):
        read_counts(file, SPINE, count="n", unknown="drop")
    with pytest.raises(DataError, match="column 'place', row 2: the code is missing"):
        read_counts(file, SPINE, count="n")
    with pytest.raises(DataError, match="column 'n', row 2: the count is missing$"):
        read_counts(written(tmp_path / "t.csv", b"place,n\na,2\na,\n"), SPINE, count="n")


def test_an_empty_line_of_a_graph_is_a_row(tmp_path: Path) -> None:
    nodes = written(tmp_path / "nodes.csv", b"id,place\n1,a\n2,b\n")
    edges = written(tmp_path / "edges.csv", b"source,target\n1,2\n\n2,1\n")
    with pytest.raises(DataError, match="edges.csv, column 'source', row 2: the id is missing"):
        pa.table(Graph(nodes, edges, "edge").table())
    written(nodes, b"id,place\n1,a\n\n2,b\n")
    with pytest.raises(DataError, match="node table, column 'id', row 2: the id is missing"):
        pa.table(Graph(nodes, edges, "edge").table())


def test_an_empty_line_of_people_in_groups_is_a_row(tmp_path: Path) -> None:
    listed = GroupList.read(written(tmp_path / "list.csv", b"group,region\nh1,a\n\nh2,b\n\n"), PLACE)
    assert listed.number == 2  # the list is public: its blank lines are nothing
    people = written(tmp_path / "people.csv", b"group\nh1\n\nh1\n")
    reader = GroupTableReader(PLACE, 5, "people", GroupColumns(group="group"), 2, listed, 1)
    with pytest.raises(DataError, match="people.csv, column 'group', row 2: the id is missing"):
        reader.read(people)


def test_blank_lines_of_a_hierarchy_are_nothing(tmp_path: Path) -> None:
    file = written(tmp_path / "places.csv", b"\ncode\na\n\nb\n\n\n")
    assert tt.Hierarchy.from_table(file, ["code"]).codes[-1].to_pylist() == ["a", "b"]


def test_a_line_with_the_mark_of_old_systems_is_a_row_where_it_is_not_the_last(tmp_path: Path) -> None:
    file = written(tmp_path / "t.txt", b"a\n\x1a\nb\n\x1a")
    assert tables.read(Source(file, fields={"place": 1}))["place"].to_pylist() == ["a", None, "b"]
