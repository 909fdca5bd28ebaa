"""Formats of tables: one registration adds another, and what lacks words is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from treetop import Source, register_format
from treetop._util.choices import Choices
from treetop.errors import DataError, TreetopError
from treetop.io import source as sources
from treetop.io import table as tables
from treetop.io.row_batch import require
from treetop.io.source import ReadRequest, Shared, SourceFormat


def read_lines(part: ReadRequest) -> Shared:
    """Read a file with a JSON object a line."""
    assert part.stream is not None
    rows = pa.Table.from_pylist([json.loads(line) for line in part.stream])
    require(part.columns, rows.column_names, part.where)
    for batch in rows.select(part.wanted(rows.column_names)).to_batches():
        yield batch, 1.0


LINES = SourceFormat(
    "JSON lines", "a file of JSON lines", read_lines, lambda head, source: head.startswith(b'{"'), endings=(".jsonl",)
)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FORMATS", Choices("format of tables", *sources.FORMATS.values()))
    register_format(LINES)


@pytest.mark.usefixtures("registered")
def test_a_format_is_added_by_one_registration(tmp_path: Path) -> None:
    file = tmp_path / "trips.jsonl"
    file.write_text('{"home": "a", "work": "b"}\n{"home": "c", "work": "a"}\n')
    assert tables.read(file, ["work"]).to_pydict() == {"work": ["b", "a"]}
    assert tables.read(tmp_path).num_rows == 2
    assert tables.read(Source(file, keep={"home": "c"})).num_rows == 1
    with pytest.raises(DataError, match=r"trips.jsonl: there is no column 'town'; the columns are home, work"):
        tables.read(file, ["town"])
    with pytest.raises(DataError, match="a query is for a database, and this is none"):
        tables.read(Source(file, query="trips"))
    with pytest.raises(DataError, match="fields are positions in fixed-width text, and this is none"):
        tables.read(Source(file, fields={"home": [1, 2]}))


@pytest.mark.usefixtures("registered")
def test_a_name_that_claims_a_registered_format_must_be_true(tmp_path: Path) -> None:
    (tmp_path / "trips.jsonl").write_text("home,work\na,b\n")
    with pytest.raises(DataError, match="is not a file of JSON lines, whatever its name says"):
        tables.read(tmp_path / "trips.jsonl")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="the folder holds no CSV or Parquet or JSON lines file"):
        tables.read(tmp_path / "empty")


@pytest.mark.parametrize(
    ("format", "about"),
    [
        (SourceFormat("XML", " ", read_lines), "has no words"),
        (SourceFormat("MySQL", "a MySQL database", read_lines, schemes=("mysql",)), "words for what they look like"),
        (SourceFormat("CSV", "a CSV file", read_lines), "there is already a format of tables 'CSV'"),
        (SourceFormat("Postgres", "one", read_lines, schemes=("postgres",), url="postgres://db"), "of their own"),
    ],
)
def test_a_format_without_words_or_beside_its_twin_is_refused(format: SourceFormat, about: str) -> None:
    with pytest.raises(TreetopError, match=about):
        register_format(format)
