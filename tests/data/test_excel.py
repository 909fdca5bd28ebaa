"""Sheets of Excel are read as CSV files are: codes as text, nothing guessed, and the total never told exactly."""

from __future__ import annotations

import contextlib
import datetime
import sys
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

import treetop as tt
from treetop import Source, cli
from treetop.counts.reading import read_counts
from treetop.errors import DataError, PlanError
from treetop.io.table import batches, read

SPINE = tt.Spine(["place"], {"place": tt.Hierarchy.flat(["01001", "1002", "c"], level="place")})


def book(path: Path, **sheets: list[list[Any]]) -> Path:
    with xlsxwriter.Workbook(str(path), {"default_date_format": "yyyy-mm-dd"}) as made:
        for name, rows in sheets.items():
            sheet = made.add_worksheet(name)
            for row, cells in enumerate(rows):
                for column, cell in enumerate(cells):
                    if isinstance(cell, str):
                        sheet.write_string(row, column, cell)
                    elif cell is not None:
                        sheet.write(row, column, cell)
    return path


def test_cells_become_text_as_they_would_stand_in_a_csv_file(tmp_path: Path) -> None:
    day = datetime.datetime(2008, 1, 31)
    rows: list[list[Any]] = [
        ["code", "n", "share", "day", "flag"],
        ["01001", 1002, 0.5, day, True],
        ["x", 9465.0, -3, day, False],
    ]
    found = read(Source(book(tmp_path / "t.xlsx", people=rows)))
    assert found.to_pydict() == {
        "code": ["01001", "x"],
        "n": ["1002", "9465"],
        "share": ["0.5", "-3"],
        "day": ["2008-01-31"] * 2,
        "flag": ["true", "false"],
    }


def test_counts_and_codes_are_read_from_a_sheet(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", people=[["place", "n"], ["01001", 3], [1002, 4.0], ["c", "5"]])
    counts = read_counts(path, SPINE, count="n")
    assert counts.total == 12
    again = read_counts(Source(path, header=False, names=["a", "b"]), SPINE, {"place": "a"}, unknown="drop")
    assert again.total == 3  # the line of names is a row then


def test_a_blank_row_is_a_record_and_one_at_the_end_is_not_there(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", people=[["place"], ["c"], [None], ["c"], [None]])
    with pytest.raises(DataError, match="row 2: the code is missing. Everything in that row is missing"):
        read_counts(path, SPINE)
    assert read_counts(Source(path, blank_lines="skip"), SPINE).total == 2
    assert read_counts(path, SPINE, unknown="drop").total == 2


def test_the_total_of_a_sheet_is_measured(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", people=[["place"], ["c"]])
    plan = tt.Plan(SPINE, tt.Unit("visit", neighbours="replace"), tt.Loss(rho=1))
    with pytest.raises(PlanError, match="a sheet of Excel ends with its last filled row"):
        tt.make_release(plan, path, tt.RunOptions(testing_key=bytes(32)))
    (tmp_path / "plan.toml").write_text(
        '[attributes.place]\nvalues = ["01001", "1002", "c"]\n[unit]\nentity = "visit"\ncontributions = 1\n'
        'neighbours = "replace"\n[loss]\nrho = 1\n[data]\nsource = "t.xlsx"\n'
    )
    file = tt.read_plan(tmp_path / "plan.toml")
    assert file.plan.unit.may_be_missing and not file.plan.reads_total
    tt.publish(file, options=tt.RunOptions(testing_key=bytes(32)), out=tmp_path / "out")


def test_of_several_sheets_one_is_named(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", people=[["place"], ["c"]], notes=[["place"], ["1002"], ["c"]])
    with pytest.raises(DataError, match="which sheet is the table.*there are 'people', 'notes'"):
        read(path)
    assert read(Source(path, sheet="notes")).num_rows == 2
    with pytest.raises(DataError, match="there is no sheet 'note' .did you mean 'notes'"):
        read(Source(path, sheet="note"))
    (tmp_path / "t.csv").write_text("place\nc\n")
    with pytest.raises(DataError, match="a sheet is of a workbook of Excel, and this is none"):
        read(Source(tmp_path / "t.csv", sheet="notes"))


def test_a_hidden_sheet_is_not_taken_for_the_table(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(str(tmp_path / "t.xlsx")) as made:
        for name in ("people", "old"):
            made.add_worksheet(name).write_column(0, 0, ["place", "c"])
        made.get_worksheet_by_name("old").hide()
    assert read(tmp_path / "t.xlsx").num_rows == 1


def test_numbers_that_excel_has_rounded_are_refused(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", people=[["id", "place"], [12345678901234567, "c"]])
    with pytest.raises(DataError, match="column 'id', row 1: a number of more than 15 digits"):
        read(path)
    assert read(path, ["place"]).num_rows == 1


def test_a_first_row_that_is_no_line_of_names_is_not_taken_for_one(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", people=[["c", 3], ["1002", 4]])
    with pytest.raises(DataError, match="the name of a column is itself a code of its hierarchy"):
        read_counts(path, SPINE, {"place": "c"})
    with pytest.raises(DataError, match="the sheet has 2 columns, but 3 names are given"):
        read(Source(path, header=False, names=["a", "b", "c"]))


@pytest.mark.parametrize("content", [b"PK\x03\x04 and so on", b"\xd0\xcf\x11\xe0\xa1\xb1", b"PK\x03\x04"])
def test_what_is_no_workbook_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.xlsx").write_bytes(content)
    with pytest.raises(DataError, match="is a ZIP or Excel file, but no workbook that can be read"):
        read(tmp_path / "t.xlsx")
    (tmp_path / "u.xlsx").write_text("place\nc\n")
    with pytest.raises(DataError, match="is not a workbook of Excel, whatever its name says"):
        read(tmp_path / "u.xlsx")


def test_a_damaged_workbook_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    whole = book(tmp_path / "t.xlsx", people=[["place"], *[["c"]] * 200]).read_bytes()
    for at in range(30, len(whole), 97):
        (tmp_path / "d.xlsx").write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with contextlib.suppress(DataError):
            read(tmp_path / "d.xlsx")
        (tmp_path / "d.xlsx").write_bytes(whole[:at])
        with pytest.raises(DataError):
            read(tmp_path / "d.xlsx")


def test_an_empty_sheet_and_unnamed_columns(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is empty; a first row with names of columns is expected"):
        read(book(tmp_path / "t.xlsx", people=[]))
    found = read(book(tmp_path / "u.xlsx", people=[["place", None, "n"], ["c", "?", 1]]))
    assert found.column_names == ["place", "column2", "n"]
    empty = read(book(tmp_path / "v.xlsx", people=[["place"]]))
    assert (empty.column_names, empty.num_rows) == (["place"], 0)


def test_rows_come_in_batches_with_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treetop.io.table.ROWS", 4)
    path = book(tmp_path / "t.xlsx", people=[["place"], *[["c"]] * 9, ["zz"]])
    assert [len(batch.rows) for batch in batches(path)] == [4, 4, 2]
    with pytest.raises(DataError, match="row 10: 'zz'"):
        read_counts(path, SPINE)


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = book(tmp_path / "t.xlsx", people=[["place"], ["c"]])
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(DataError, match=r"pip install 'treetop-dp\[excel\]'"):
        read(path)


def test_a_hierarchy_may_be_a_sheet_and_inspect_reads_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["region", "town"], ["N", "n1"], ["N", "n2"], ["S", "s1"]]
    path = book(tmp_path / "places.xlsx", notes=[["about"]], tree=rows)
    found = tt.Hierarchy.from_table(Source(path, sheet="tree"), ["region", "town"])
    assert found.sizes == (2, 3)
    trips = book(tmp_path / "trips.xlsx", one=[["town"], ["n1"], ["s1"], ["n1"]], two=[["x"]])
    cli.main(["inspect", str(trips), "--sheet", "one"])
    told = capsys.readouterr().out
    assert "3 rows, 1 columns" in told and 'sheet = "one"' in told


def test_a_workbook_in_a_folder_of_tables_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("place\nc\n")
    book(tmp_path / "notes.xlsx", people=[["about"], ["x"]])
    assert read(tmp_path).num_rows == 1
