"""The audits of reading: files that differ in one record give tables that differ in one record, in every form."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import xlsxwriter

import treetop as tt
from treetop import Source
from treetop.errors import DataError, PlanError
from treetop.io.source import as_source

from .audits import audit

PLACE = tt.Hierarchy.flat(["A", "B", "other"], level="place")
SPINE = tt.Spine(["place"], {"place": PLACE})
LOSS = tt.Loss(rho=Fraction(1, 2))
Records = Sequence[str | None]
"""The place of each record; None where it is missing."""


def _lines(records: Records, also: str = "") -> str:
    return "".join(f"{place or ''}{also if place else ''}\n" for place in records)


def _csv(path: Path, records: Records) -> Any:
    path.write_text("place\n" + _lines(records))
    return path


def _csv_of_two_columns(path: Path, records: Records) -> Any:
    path.write_text("place,note\r\n" + _lines(records, ",x").replace("\n", "\r\n"))
    return path


def _csv_without_a_header(path: Path, records: Records) -> Any:
    path.write_text(_lines(records))
    return Source(path, header=False, names=["place"])


def _compressed_csv(path: Path, records: Records) -> Any:
    path.write_bytes(gzip.compress(b"place\n" + _lines(records).encode()))
    return path


def _fixed_width(path: Path, records: Records) -> Any:
    path.write_text(_lines(records))
    return Source(path, fields={"place": 1})


def _parquet(path: Path, records: Records) -> Any:
    pq.write_table(pa.table({"place": pa.array(records, pa.string())}), path)
    return path


def _workbook(path: Path, records: Records) -> Any:
    with xlsxwriter.Workbook(str(path)) as book:
        book.add_worksheet().write_column(0, 0, ["place", *records])
    return path


def _in_memory(_: Path, records: Records) -> Any:
    return pa.table({"place": pa.array(records, pa.string()).dictionary_encode()})


FORMS: tuple[Callable[[Path, Records], Any], ...] = (
    _csv,
    _csv_of_two_columns,
    _csv_without_a_header,
    _compressed_csv,
    _fixed_width,
    _parquet,
    _workbook,
    _in_memory,
)


@audit
def exact_totals_of_neighbouring_files(blank_lines: Any = "record") -> str | None:
    """Empty one record after the other, and compare the totals that are released exactly."""
    plan = tt.Plan(SPINE, tt.Unit("trip", 1, "replace"), LOSS, unknown={"place": "other"})
    records = ["A", "B", "A"]
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMS:
            for row in range(len(records)):
                changed = [None if row == at else place for at, place in enumerate(records)]
                totals = [_total(plan, form(Path(folder, "table"), rows), blank_lines) for rows in (records, changed)]
                if totals[0] != totals[1]:
                    return f"{form.__name__}: {records} has the exact total {totals[0]}, {changed} has {totals[1]}"
    return None


def _total(plan: tt.Plan, table: Any, blank_lines: Any) -> int | None:
    source = as_source(table)
    if source is not None:
        table = replace(source, blank_lines=blank_lines)
    try:
        return tt.make_release(plan, table, tt.RunOptions(testing_key=bytes(32), allow_dropped=True)).total
    except PlanError:  # known before the table is read, and so whatever is in it
        return None


@audit
def the_existence_of_a_release() -> str | None:
    """Take away the only record that is kept, where whether there is one is protected."""
    plan = tt.Plan(SPINE, tt.Unit("trip", 1, "add-remove"), LOSS)
    with tempfile.TemporaryDirectory() as folder:
        for form in (_csv, _compressed_csv, _csv_without_a_header, _fixed_width, _parquet):
            for records in (["B", "A"], ["B"], []):
                table = form(Path(folder, "table"), records)
                source = replace(table if isinstance(table, Source) else Source(table), keep={"place": "A"})
                try:
                    tt.make_release(plan, source, tt.RunOptions(testing_key=bytes(32)))
                except DataError as problem:
                    return f"{form.__name__}: {records} is not released: {problem}"
    return None
