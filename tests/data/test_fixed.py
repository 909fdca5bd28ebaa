"""Fixed-width text: fields by position, record types, and what is wrong with a line said by its number."""

from __future__ import annotations

import gzip
import traceback
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import treetop as tt
from treetop import Source
from treetop.counts.reading import read_counts
from treetop.errors import DataError
from treetop.io import _csv_file as csv_file
from treetop.io import table as tables
from treetop.io.fixed_width import refuse_fixed

FIELDS = {"record": 1, "home": [[3, 5], [7, 9]], "work": [[11, 13], [15, 17]], "people": [19, 28]}
LINES = [
    "S 001 001 001 002         12",
    "L 001 001 001 002       7.26",
    "L 001 001 001 002       4.74",
    "S 001 002 001 001 0000003.00",
    "S 001 168 002 001          5",
]
PLACE = tt.Hierarchy.from_prefixes(["001001", "001002", "001168", "002001"], widths=[3])
SPINE = tt.Spine.destination_first(origin=PLACE, destination=PLACE)
COLUMNS = {"origin": "home", "destination": "work"}


def written(path: Path, *lines: str, end: str = "\n", encoding: str = "utf-8") -> Path:
    path.write_bytes((end.join(lines) + end).encode(encoding))
    return path


def total(table: Any) -> int:
    return read_counts(table, SPINE, COLUMNS, "people").total


def test_fields_are_cut_joined_and_trimmed(tmp_path: Path) -> None:
    file = written(tmp_path / "flows.txt", *LINES)
    rows = tables.read(Source(file, fields=FIELDS)).to_pylist()
    assert rows[0] == {"record": "S", "home": "001001", "work": "001002", "people": "12"}
    assert rows[4]["home"] == "001168"


def test_one_record_type_is_kept_so_that_no_trip_is_counted_twice(tmp_path: Path) -> None:
    file = written(tmp_path / "flows.txt", *LINES)
    assert total(Source(file, fields=FIELDS, keep={"record": "S"})) == 12 + 3 + 5
    with pytest.raises(DataError, match=r"column 'people', row 2: the count '7.26' is not a whole number"):
        total(Source(file, fields=FIELDS))


@pytest.mark.parametrize("blank", ["", " ", " " * 28, "\t"])
@pytest.mark.parametrize("beside", [[], [""], LINES[1:]])
def test_a_blank_line_is_a_record_whatever_stands_beside_it(tmp_path: Path, beside: list[str], blank: str) -> None:
    file = written(tmp_path / "flows.txt", *LINES[:1], blank, *beside)
    rows = tables.read(Source(file, fields=FIELDS)).to_pylist()
    assert len(rows) == 2 + len(beside)
    assert set(rows[1].values()) == {None}
    skipped = tables.read(Source(file, fields=FIELDS, blank_lines="skip")).to_pylist()
    assert skipped == [row for row in rows if any(row.values())]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\n \n"])
def test_line_ends_do_not_matter_nor_blank_lines_where_other_rows_are_kept(tmp_path: Path, end: str) -> None:
    file = written(tmp_path / "flows.txt", *LINES, end=end)
    assert total(Source(file, fields=FIELDS, keep={"record": "S"})) == 20


def test_the_mark_by_which_old_systems_end_a_file_is_no_line(tmp_path: Path) -> None:
    (tmp_path / "flows.txt").write_text("\n".join([*LINES, "\x1a"]))
    assert len(tables.read(Source(tmp_path / "flows.txt", fields=FIELDS))) == len(LINES)
    (tmp_path / "flows.txt").write_text("\x1a")
    assert len(tables.read(Source(tmp_path / "flows.txt", fields=FIELDS))) == 0


def test_it_may_be_compressed_and_come_in_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "BLOCK", 64)
    file = tmp_path / "flows.txt.gz"
    file.write_bytes(gzip.compress("\n".join(LINES * 50).encode()))
    assert total(Source(file, fields=FIELDS, keep={"record": "S"})) == 50 * 20


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_progress_follows_the_lines_that_are_read_and_ends_at_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setattr(csv_file, "BLOCK", 1 << 12)
    file = written(tmp_path / "flows.txt", *[f"{line} è" for line in LINES] * 1000, encoding=encoding)
    done = [batch.done for batch in tables.batches(Source(file, encoding=encoding, fields=FIELDS))]
    assert done == sorted(done)
    assert done[0] < 0.1
    assert done[-1] == 1
    assert max(after - before for before, after in pairwise(done)) < 0.1


def test_positions_are_of_letters_and_not_of_bytes(tmp_path: Path) -> None:
    fields = {"name": [1, 6], "code": [7, 8]}
    for encoding in ("utf-8", "latin-1"):
        file = written(tmp_path / "towns.txt", "Agliè 01", "Torino02", encoding=encoding)
        rows = tables.read(Source(file, encoding=encoding, fields=fields)).to_pylist()
        assert rows == [{"name": "Agliè", "code": "01"}, {"name": "Torino", "code": "02"}]


def test_a_line_that_is_too_short_is_named_by_its_number(tmp_path: Path) -> None:
    file = written(tmp_path / "flows.txt", *LINES, "", "S 001 001 001 002        1", *LINES)
    with pytest.raises(
        DataError, match=r"flows.txt, line 7: has 26 characters, but field 'people' ends at 28: correct the line"
    ):
        total(Source(file, fields=FIELDS, keep={"record": "S"}))


def test_lines_of_another_record_type_may_be_shorter(tmp_path: Path) -> None:
    file = written(tmp_path / "flows.txt", "H 2011", *LINES)
    assert total(Source(file, fields=FIELDS, keep={"record": "S"})) == 20
    with pytest.raises(DataError, match="line 1: has 6 characters"):
        total(Source(file, fields=FIELDS))


def test_a_line_that_ends_before_its_record_type_is_not_passed_over(tmp_path: Path) -> None:
    fields = {"home": [1, 6], "record": 8, "people": [10, 12]}
    file = written(tmp_path / "flows.txt", "001001 S  4", "001001")
    with pytest.raises(DataError, match="line 1: has 11 characters"):
        tables.read(Source(file, fields=fields, keep={"record": "S"}))
    file = written(tmp_path / "flows.txt", "001001 S   4", "001001")
    with pytest.raises(DataError, match="line 2: has 6 characters"):
        tables.read(Source(file, fields=fields, keep={"record": "S"}))


def test_faults_are_named_with_the_row_of_the_file(tmp_path: Path) -> None:
    file = written(tmp_path / "flows.txt", *LINES, "S 001 003 001 002         12")
    with pytest.raises(DataError, match="flows.txt, column 'home', row 6: '001003' is not a .* code"):
        total(Source(file, fields=FIELDS, keep={"record": "S"}))
    file = written(tmp_path / "flows.txt", *LINES, "S 001 001 001 002           ")
    with pytest.raises(DataError, match="column 'people', row 6: the count is missing"):
        total(Source(file, fields=FIELDS, keep={"record": "S"}))


def test_an_empty_file_is_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "flows.txt").write_bytes(b"")
    (rows,) = tables.batches(Source(tmp_path / "flows.txt", fields=FIELDS))
    assert (rows.rows.num_rows, rows.rows.schema.names, rows.done) == (0, list(FIELDS), 1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("S 001 777 001 002 \x1f       12", "line 6: holds the control character U+001F"),
        ("S 001 777 001 002  \xe8       12", "line 6: the text is not UTF-8"),
        ("S 001 777 001 002", "line 6: has 17 characters"),
    ],
)
def test_a_fault_is_named_by_its_line_and_never_by_what_the_line_holds(tmp_path: Path, line: str, message: str) -> None:
    file = written(tmp_path / "flows.txt", *LINES, line, encoding="latin-1")
    with pytest.raises(DataError) as fault:
        tables.read(Source(file, fields=FIELDS))
    assert f"{file}, {message}" in str(fault.value)
    assert "777" not in "".join(traceback.format_exception(fault.value))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "none is given"),
        ({"home": 0}, "count from 1"),
        ({"home": [5, 3]}, "from character 5 to 3: count from 1, and give the first before the last"),
        ({"home": "3-5"}, "field 'home' is '3-5': give the first and the last character"),
        ({"home": [1, 2, 3]}, "give the first and the last character"),
        ({"home": []}, "give the first and the last character"),
        ({"home": True}, "give the first and the last character"),
        ({"home": [[1, 3], [3, 5]]}, "field 'home' takes characters twice: 1-3,3-5 overlap"),
        ({"home": [1, 6], "work": [6, 11]}, "fields 'home' at 1-6 and 'work' at 6-11 overlap"),
        ({"home": [1, 6], "work": [1, 6]}, "fields 'home' and 'work' both stand at 1-6"),
    ],
)
def test_positions_that_cannot_be_meant_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Source("flows.txt", fields=fields)


def test_a_field_may_lie_inside_another(tmp_path: Path) -> None:
    file = written(tmp_path / "flows.txt", *LINES)
    source = Source(file, fields={**FIELDS, "province": [3, 5]}, keep={"record": ["S"], "province": ["001"]})
    assert total(source) == 20


def test_fields_that_are_not_there_are_named(tmp_path: Path) -> None:
    file = written(tmp_path / "flows.txt", *LINES)
    with pytest.raises(DataError, match=r"no column 'hme' \(did you mean 'home'\?\); the columns are record, home"):
        tables.read(Source(file, fields=FIELDS), ["hme"])


def test_fields_are_for_text_only(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"home": ["1"]}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match="fields are positions in fixed-width text, and this is none"):
        tables.read(Source(tmp_path / "x.parquet", fields=FIELDS))
    with pytest.raises(DataError, match="has no delimiter"):
        Source("x.txt", fields=FIELDS, delimiter=";")


def test_a_file_that_looks_fixed_is_told_with_its_positions(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"looks like fixed-width text.*Text stands at 1, 3-5, 7-9, 11-13, 15-17, 19-28"
    ):
        refuse_fixed(Source(written(tmp_path / "flows.txt", *LINES)))
    for lines in (["home,work", "001,002 01"], ["code", "0101", "0102"], ["a town", "Torino"], ["home"]):
        refuse_fixed(Source(written(tmp_path / "table.csv", *lines)))


def test_reading_it_as_csv_says_what_to_declare(tmp_path: Path) -> None:
    file = written(tmp_path / "flows.txt", *LINES)
    with pytest.raises(
        DataError, match=r"no column 'work'.*fixed-width text is read by its positions: \[data.fields\]"
    ) as fault:
        total(file)
    assert "001" not in str(fault.value).removeprefix(str(file))


LETTERS = st.text(st.sampled_from("09 aèß€\U0001f600"), min_size=16, max_size=20)
PIECE = st.tuples(st.integers(1, 12), st.integers(1, 12)).map(sorted)


@given(st.lists(LETTERS.filter(str.strip), max_size=8), PIECE, st.sampled_from(["utf-8", "utf-16"]))
def test_any_letters_are_cut_as_python_cuts_them(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], piece: list[int], encoding: str
) -> None:
    file = tmp_path_factory.mktemp("fixed") / "x.txt"
    file.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
    first, last = piece
    rows = tables.read(Source(file, encoding=encoding, fields={"a": [first, last], "b": [[15, 16], [13, 14]]}))
    assert rows["a"].to_pylist() == [line[first - 1 : last].strip() or None for line in lines]
    assert rows["b"].to_pylist() == [(line[14:16] + line[12:14]).strip() or None for line in lines]
