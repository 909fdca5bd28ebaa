"""A forger edits a table of a release folder and puts all hashes right: whatever the edit, `check` finds it.

Each kind of folder, each table, each column. The exceptions are listed here, each with its reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.forging import card_of
from treetop.checking.check import check_folder
from treetop.release.folder import file_sha256

from . import folders

Edit = tuple[str, pa.Table]


def put(table: pa.Table, name: str, row: int, value: object) -> pa.Table:
    """A table with one other value."""
    column = table[name].to_pylist()
    column[row] = value
    return table.set_column(table.column_names.index(name), name, pa.array(column, table[name].type))


def another(values: list[Any], row: int) -> object:
    """A value as little different from one of a column as possible: for a text, another one of the column."""
    value = next((one for one in values if one is not None), None) if values[row] is None else values[row]
    if isinstance(value, str):
        return next((one for one in values if one not in (value, None)), value + "x")
    return None if value is None else value + 1


OTHER_TYPES = {pa.int64(): pa.float64(), pa.int32(): pa.int64(), pa.float64(): pa.float32(), pa.string(): pa.binary()}


def edits_of_columns(table: pa.Table) -> Iterator[Edit]:
    names = table.column_names
    for at, name in enumerate(names):
        values = table[name].to_pylist()
        for row in sorted({0, len(values) - 1}) if values else ():
            if (other := another(values, row)) is not None:
                yield f"{name} changed", put(table, name, row, other)
        if None not in values[:1]:
            yield f"{name} left out", put(table, name, 0, None)
        yield f"column {name} dropped", table.drop_columns(name)
        yield (
            f"column {name} of another type",
            table.set_column(at, name, table[name].cast(OTHER_TYPES[table[name].type])),
        )
        yield (
            f"column {name} renamed",
            table.rename_columns([f"{one}_" if one == name else one for one in table.column_names]),
        )
    names = table.column_names
    yield "a column more", table.append_column("extra", pa.array([1] * len(table)))
    if len(names) > 1:
        yield "columns in another order", table.select([*names[1:], names[0]])


def edits_of_rows(table: pa.Table) -> Iterator[Edit]:
    size = len(table)
    if size == 0:
        return
    yield "no rows", table.slice(0, 0)
    for at in sorted({0, size - 1}):
        others = [row for row in range(size) if row != at]
        yield "a row dropped", table.take(pa.array(others, pa.int64()))
        yield "a row repeated", table.take([*range(at + 1), *range(at, size)])
    if size > 1 and table.slice(0, 1) != table.slice(1, 1):
        yield "rows in another order", table.take([1, 0, *range(2, size)])
        yield "rows in another order", table.take(list(range(size))[::-1])
    if "count" in table.column_names and size > 1:
        step = np.zeros(size, np.int64)
        step[0], step[-1] = 1, -1
        at = table.column_names.index("count")
        yield "count moved", table.set_column(at, "count", pc.add(table["count"], pa.array(step)))


def forge(folder: Path, name: str, table: pa.Table) -> None:
    """Put another table in the place of one, and put right all hashes."""
    pq.write_table(table, folder / name, compression="zstd", store_schema=False)
    card = card_of(folder)
    for file in card["files"]:
        if file["path"] == name:
            path = folder / name
            file |= {"rows": len(table), "bytes": path.stat().st_size, "sha256": file_sha256(path)}
    (folder / "card.json").write_text(json.dumps(card), encoding="utf-8")
    (folder / "card.html").write_text(file_sha256(folder / "card.json"), encoding="utf-8")


def tables(folder: Path) -> list[str]:
    """The tables of a folder; of those in parts the first and the last."""
    card = card_of(folder)
    names = [file["path"] for file in card["files"] if file["path"].endswith(".parquet")]
    parts = [name for name in names if "/part-" in name]
    last = max((name.partition("/part-")[2] for name in parts), default="")
    between = {name for name in parts if not name.endswith(("-00000.parquet", last))}
    return [name for name in names if name not in between]


def passed(folder: Path, of: str = "") -> set[tuple[str, str]]:
    """The edits that no check finds, by the kind of table; of tables whose names begin so."""
    found = set()
    for name in tables(folder):
        if not name.startswith(of):
            continue
        before = {one: (folder / one).read_bytes() for one in ("card.json", "card.html", name)}
        table = pq.read_table(folder / name)
        for what, edited in (*edits_of_columns(table), *edits_of_rows(table)):
            try:
                forge(folder, name, edited)
                if not any(verdict.findings for verdict in check_folder(folder)):
                    found.add((re.sub("/.*", "", name), what))
            finally:
                for one, content in before.items():
                    (folder / one).write_bytes(content)
    return found


ONLY_OF_CELLS, OF_CELLS = ("measurements.parquet", "value changed"), ("groups", "degrees by place")
MADE_UP = "names and coordinates are public, and stand nowhere else; no count depends on them"
UNPROVABLE: Mapping[tuple[str, str], str] = {
    ("hierarchies", "rows in another order"): "the same tree",
    ("names", "name changed"): MADE_UP,
    ("names", "a row dropped"): MADE_UP,
    ("places", "name changed"): MADE_UP,
    ("places", "latitude changed"): MADE_UP,
    ("places", "longitude changed"): MADE_UP,
    ("places", "a row dropped"): MADE_UP,
    ("places", "column name dropped"): MADE_UP,
    ("places", "columns in another order"): MADE_UP,
    ("places", "rows in another order"): MADE_UP,
    ONLY_OF_CELLS: "of group sizes, and of a cell that is not released: it stands once",
    ("counts.parquet", "count moved"): (
        "from one leaf to another, where no sum of them is written: the way from measurements to counts breaks ties by "
        "the key, and is not computed again"
    ),
}
"""The edits that pass, each with the reason."""


LONG = pytest.mark.long
SHORT = (
    *("exact total", "margins", "facts", "unresolved", "lower error", "parts", "parts, facts", "places", "groups"),
    *("degrees", "degrees by place"),
)
"""The kinds that are edited in every run; the others are left to `make test-long`."""


@pytest.mark.usefixtures("hierarchies_are_read_once", "pages_are_hashes", "who_found_something_looks_first")
@pytest.mark.parametrize("kind", [one if one in SHORT else pytest.param(one, marks=LONG) for one in folders.KINDS])
def test_no_edit_of_a_table_passes(kind: str, tmp_path: Path) -> None:
    allowed = UNPROVABLE.keys() - (set() if kind in OF_CELLS else {ONLY_OF_CELLS})
    assert sorted(passed(folders.make(kind, tmp_path / "out")) - allowed) == []


FAULTS: Mapping[str, tuple[str, str, object]] = {
    "evidence is not compared": ("_shard_checks.evidence_findings", "evidence", lambda *told, **named: iter(())),
    "tables are not compared": ("_counting.compared", "measurements", lambda *told: iter(())),
    "levels without measurements pass": ("_counting._missing", "measurements", lambda *told: iter(())),
}
"""Checks that are left out on purpose, with the table of which some edit then passes."""


@pytest.mark.usefixtures("hierarchies_are_read_once", "pages_are_hashes", "who_found_something_looks_first")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_check_that_is_left_out_is_noticed(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, table, nothing = FAULTS[fault]
    monkeypatch.setattr(f"treetop.checking.{name}", nothing)
    assert passed(folders.make("exact total", tmp_path / "out"), table) - UNPROVABLE.keys()


def test_a_table_that_no_such_folder_has_is_found(tmp_path: Path) -> None:
    folder = folders.make("no intervals", tmp_path / "out")
    card = card_of(folder)
    for name in ("evidence.parquet", "measurements.parquet", "margins.parquet", f"names/{'0' * 64}.parquet"):
        forged = {**card, "files": [*card["files"], {**card["files"][0], "path": name}]}
        (folder / "card.json").write_text(json.dumps(forged), encoding="utf-8")
        (folder / name).write_bytes((folder / "counts.parquet").read_bytes())
        said = [finding for verdict in check_folder(folder) for finding in verdict.findings]
        assert f"card.json lists {name}, which is not in a folder like this" in said
        (folder / name).unlink()


EDITED = ("counts/part", "evidence", "top", "parts", "measurements")


@pytest.mark.parametrize("of", EDITED)
def test_malformed_parts_are_refused_in_one_way(of: str, tmp_path: Path) -> None:
    """What is asked of a folder with such tables is answered, or refused with an error of Treetop."""
    folder = folders.make("parts", tmp_path / "out")
    refused = 0
    for name in tables(folder):
        if not name.startswith(of):
            continue
        table, content = pq.read_table(folder / name), (folder / name).read_bytes()
        for _, edited in (*edits_of_columns(table), *edits_of_rows(table)):
            forge(folder, name, edited)
            try:
                release = tt.Release.load(folder)
                release.table()
                release.estimates()
            except tt.TreetopError:
                refused += 1
        (folder / name).write_bytes(content)
    assert refused
