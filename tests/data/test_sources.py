"""Every kind of source gives the same counts, and its faults are named."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import sqlite3
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop import Source, read_plan
from treetop.counts.reading import read_counts
from treetop.errors import DataError, HierarchyError, PlanError
from treetop.io import _csv_file as csv_file
from treetop.io import table as tables
from treetop.io.source import reads_once

PLACE = tt.Hierarchy.flat(["01001", "01003", "None", "NA", "null", "nan", "è"])
SPINE = tt.Spine.destination_first(origin=PLACE, destination=PLACE)
COLUMNS = {"origin": "home", "destination": "work"}
ROWS = [("01001", "None"), ("01001", "None"), ("NA", "01003"), ("null", "nan"), ("01003", "è")]
TABLE = pa.table({"home": [home for home, _ in ROWS], "work": [work for _, work in ROWS]})
CSV = "home,work\n" + "".join(f"{home},{work}\n" for home, work in ROWS)
EXPECTED = read_counts(TABLE, SPINE, COLUMNS).digest


def counted(table: Any, **options: Any) -> bytes:
    return read_counts(table, SPINE, COLUMNS, **options).digest


def written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def sqlite_file(path: Path) -> Path:
    with sqlite3.connect(path) as database:
        database.execute("create table trips (home text, work text)")
        database.executemany("insert into trips values (?, ?)", ROWS)
    database.close()
    return path


def duckdb_file(path: Path) -> Path:
    with duckdb.connect(str(path)) as database:
        database.execute("create table trips (home varchar, work varchar)")
        database.executemany("insert into trips values (?, ?)", ROWS)
    return path


@pytest.mark.parametrize(
    "content",
    [
        CSV,
        CSV.replace(",", ";"),
        CSV.replace(",", "\t"),
        CSV.replace(",", "|"),
        CSV.replace("\n", "\r\n"),
        CSV.replace("home,work", " home , work"),
        CSV.rstrip("\n"),
        "\n\n" + CSV,
        "\ufeff" + CSV,
        '"home","work"\n' + "".join(f'"{home}","{work}"\n' for home, work in ROWS),
        'home,work,"a, note\nwith ""lines"""\n' + "".join(f'{a},{b},"x,\ny"\n' for a, b in ROWS),
    ],
)
def test_csv_is_read_as_text_whatever_it_looks_like(content: str, tmp_path: Path) -> None:
    assert counted(written(tmp_path / "trips.csv", content)) == EXPECTED


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8", "utf-8-sig"])
def test_csv_may_be_in_any_encoding(encoding: str, tmp_path: Path) -> None:
    file = written(tmp_path / "trips.csv", CSV.encode(encoding))
    assert counted(Source(file, encoding=encoding)) == EXPECTED


@pytest.mark.parametrize(("suffix", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("csv", gzip.compress)])
def test_csv_may_be_compressed(suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    assert counted(written(tmp_path / f"trips.{suffix}", pack(CSV.encode()))) == EXPECTED


def test_a_delimiter_may_be_stated(tmp_path: Path) -> None:
    file = written(tmp_path / "trips.csv", "home^work^a;b;c;d\n" + "".join(f"{a}^{b}^\n" for a, b in ROWS))
    assert counted(Source(file, delimiter="^")) == EXPECTED


@pytest.mark.parametrize("content", [CSV.encode(), gzip.compress(CSV.encode(), mtime=0)])
def test_standard_input_is_csv(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert counted("-") == EXPECTED


def test_parquet_is_read_with_and_without_dictionaries(tmp_path: Path) -> None:
    kinds: dict[str, dict[str, Any]] = {"coded": {}, "plain": {"use_dictionary": False}, "small": {"row_group_size": 2}}
    for name, options in kinds.items():
        pq.write_table(TABLE, tmp_path / f"{name}.parquet", **options)
        assert counted(tmp_path / f"{name}.parquet") == EXPECTED


def test_files_may_come_as_folders_patterns_and_lists(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    parts = [tmp_path / "a.parquet", tmp_path / "deeper" / "b.parquet", tmp_path / "c.csv"]
    pq.write_table(TABLE[:2], parts[0])
    pq.write_table(TABLE[2:4], parts[1])
    written(parts[2], "work,home\nè,01003\n")
    written(tmp_path / "_SUCCESS.csv", "")
    for table in (tmp_path, str(tmp_path / "**" / "[abc].*"), parts, [str(part) for part in parts], Source(parts)):
        assert counted(table) == EXPECTED


def test_a_hierarchy_may_come_from_any_source(tmp_path: Path) -> None:
    file = written(tmp_path / "places.csv", "code\nè\n01\n".encode("latin-1"))
    assert tt.Hierarchy.from_table(Source(file, encoding="latin-1"), ["code"]).sizes == (2,)
    with pytest.raises(HierarchyError, match="places.csv, column 'code', row 1: the text is not UTF-8"):
        tt.Hierarchy.from_table(file, ["code"])


def test_databases_are_read_by_table_and_by_query(tmp_path: Path) -> None:
    sqlite, duck = sqlite_file(tmp_path / "trips.sqlite"), duckdb_file(tmp_path / "trips.db")
    for location in (sqlite, duck, f"sqlite:///{sqlite}", f"sqlite://{sqlite}"):
        for query in (None, "trips", "select * from trips;", "with t as (select * from trips) select * from t -- all"):
            assert counted(Source(location, query)) == EXPECTED


def test_whole_numbers_and_counts_come_from_databases(tmp_path: Path) -> None:
    for location in (sqlite_file(tmp_path / "trips.sqlite"), duckdb_file(tmp_path / "trips.db")):
        query = "select home, work, count(*) as n from trips group by home, work"
        assert counted(Source(location, query), count="n") == EXPECTED
        with pytest.raises(DataError, match="'1001' is not a code in the hierarchy.*leading zeros were lost"):
            counted(Source(location, "select 1001 as home, work from trips"))


def test_an_empty_source_is_an_empty_table(tmp_path: Path) -> None:
    pq.write_table(TABLE[:0], tmp_path / "none.parquet")
    csvs = [
        written(tmp_path / f"{i}.csv", text) for i, text in enumerate(["home,work", "home,work\n", "\nhome,work\r\n"])
    ]
    database = Source(sqlite_file(tmp_path / "trips.sqlite"), "select * from trips where home = 'x'")
    for table in (TABLE[:0], tmp_path / "none.parquet", *csvs, database):
        assert read_counts(table, SPINE, COLUMNS).total == 0
        assert tables.read(table).num_rows == 0
        assert tables.read(table).column_names == ["home", "work"]


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_the_size_of_batches_does_not_matter(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROWS", rows)
    monkeypatch.setattr(csv_file, "BLOCK", 16 * rows)
    pq.write_table(TABLE, tmp_path / "trips.parquet")
    dictionary = pa.table({name: TABLE[name].dictionary_encode() for name in TABLE.column_names})
    for table in (
        written(tmp_path / "trips.csv", CSV),
        tmp_path / "trips.parquet",
        TABLE,
        dictionary,
        TABLE.to_reader(),
    ):
        assert counted(table) == EXPECTED


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_rows_are_counted_across_batches_and_in_each_file(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "ROWS", rows)
    monkeypatch.setattr(csv_file, "BLOCK", 16 * rows)
    bad = written(tmp_path / "b.csv", CSV + "?,NA\n")
    with pytest.raises(DataError, match=r"b.csv, column 'home', row 6: '\?' is not"):
        counted([written(tmp_path / "a.csv", CSV), bad])
    with pytest.raises(DataError, match="the table, column 'n', row 4: the count -1 is negative"):
        counted(TABLE.append_column("n", pa.array([1, 1, 1, -1, 1])), count="n")
    with pytest.raises(DataError, match="more than 2\\^53"):
        counted(TABLE.append_column("n", pa.array([2**52] * 5)), count="n")


def test_progress_is_told_and_ends_at_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROWS", 1 << 13)
    monkeypatch.setattr(csv_file, "BLOCK", 1 << 15)
    large = pa.concat_tables([TABLE] * (1 << 13))
    pq.write_table(large, tmp_path / "more.parquet")
    csv = written(tmp_path / "trips.csv", "home,work\n" + CSV.partition("\n")[2] * (1 << 13))
    for table in (csv, tmp_path / "more.parquet", large, tmp_path):
        told: list[tuple[str, float]] = []
        read_counts(table, SPINE, COLUMNS, progress=lambda stage, share: told.append((stage, share)))  # noqa: B023
        shares = [share for _, share in told]
        assert {stage for stage, _ in told} == {"reading"}
        assert shares == sorted(shares)
        assert shares[-1] == 1
        assert len(set(shares)) > 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("home,work\n01001,Ada,Rossi\n", "row 1: has 3 fields"),
        ('home,work\n"Ada Rossi\n', "row 1: has 1 fields"),
        ("home,work\n01001,Ada R\xf2ssi\n", "column 'work', row 1: the text is not UTF-8"),
        ("01001,Ada Rossi\n01001,01003\n", "the first line looks like a row of data: field 1 stands among the values"),
        ("Ada Rossi 01001\n", "no column 'work': no ',' stands between names in the first line"),
    ],
)
def test_a_fault_is_named_without_the_row_that_has_it(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message) as fault:
        counted(written(tmp_path / "x.csv", content.encode("latin-1")))
    assert "Ada" not in "".join(traceback.format_exception(fault.value))


def test_a_reader_that_stops_early_leaves_nothing_open(tmp_path: Path) -> None:
    rows = tables.batches(written(tmp_path / "trips.csv", CSV + CSV.partition("\n")[2] * 1000))
    next(rows)
    rows.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "", "x.csv: the file is empty"),
        ("x.csv", "\n\n", "blank lines only"),
        ("x.csv", "home,work\n01001\n", "x.csv, row 1: has 1 fields, but the header has 2"),
        ("x.csv", CSV + "a,b,c\n", "x.csv, row 6: has 3 fields, but the header has 2"),
        ("x.csv", CSV.encode("latin-1"), "x.csv, column 'work', row 5: the text is not UTF-8.*encoding = \"latin-1\""),
        ("x.csv", "h\xe8me,work\n".encode("latin-1"), "x.csv: the text is not UTF-8"),
        ("x.csv", CSV.encode("utf-16"), 'encoding = "utf-16"'),
        ("x.csv", "hme,work\n", r"no column 'home' \(did you mean 'hme'\?\); the columns are hme, work"),
        ("x.csv", "home,home,work\n1,2,3\n", "two columns are called 'home'"),
        ("x.csv", b"PK\x03\x04 and so on", "is a ZIP or Excel file"),
        ("x.csv", "home,work\n01001,,\n", "row 1: has 3 fields"),
        ("x.csv", 'home,work\n"' + "a\n" * (3 << 20), "a quote is probably not closed"),
        ("x.csv", "a" * (1 << 20) + "\n", "longer than 1 MB|field larger"),
        ("x.csv.gz", CSV, "is not a gzip file"),
        ("x.csv.gz", gzip.compress(CSV.encode(), mtime=0)[:-9], "gzip file is broken"),
        ("x.csv.gz", gzip.compress(CSV.encode(), mtime=0)[:20] + b"??????" + bytes(20), "gzip file is broken"),
        ("x.parquet", CSV, "is not a Parquet file"),
        ("x.parquet", "PAR1 and then nothing", "x.parquet: cannot be read"),
        ("x.duckdb", b"12345678DUCK" + bytes(99), "x.duckdb: cannot be opened"),
        ("x.sqlite", b"SQLite format 3\0" + bytes(99), "x.sqlite: cannot be"),
    ],
)
def test_a_file_that_is_not_a_table_is_named_with_its_fault(
    name: str, content: bytes | str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        counted(written(tmp_path / name, content))


def test_wrong_encodings_and_delimiters_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "x.csv", CSV)
    with pytest.raises(DataError, match="x.csv: the text is not ascii"):
        counted(Source(file, encoding="ascii"))
    for encoding in ("klingon", "base64", "a\0b"):
        with pytest.raises(DataError, match="is not an encoding"):
            Source(file, encoding=encoding)
    for delimiter in ("", ";;", "\n"):
        with pytest.raises(DataError, match="give one character"):
            Source(file, delimiter=delimiter)


def test_places_without_a_table_are_refused(tmp_path: Path) -> None:
    for location, message in {
        str(tmp_path / "none.csv"): "none.csv: no such file",
        str(tmp_path / "*.csv"): "no file matches",
        str(tmp_path): "holds no CSV or Parquet file",
        "select * from trips": "a query goes beside its database",
        "a\0b": "cannot be read|no such file",
        "mysql://host/db": "cannot read from mysql://",
        f"sqlite:///{tmp_path}/none.db": "no such file",
    }.items():
        with pytest.raises(DataError, match=message):
            counted(location)
    with pytest.raises(DataError, match="the list of files is empty"):
        counted([])
    with pytest.raises(DataError, match="a query is for a database"):
        counted(Source(written(tmp_path / "x.csv", CSV), "trips"))


def test_what_a_database_refuses_is_told(tmp_path: Path) -> None:
    for file in (sqlite_file(tmp_path / "trips.sqlite"), duckdb_file(tmp_path / "trips.db")):
        for query, message in {
            "trps": r"there is no table 'trps' \(did you mean 'trips'\?\)",
            "select nope from trips": "the query failed: .*nope",
            "nonsense indeed": "the query failed",
            "delete from trips": "the query failed",
            " ": "the query is blank",
            "select home as hme, work from trips": "no column 'home' \\(did you mean 'hme'",
        }.items():
            with pytest.raises(DataError, match=message):
                counted(Source(file, query))
    sqlite3.connect(tmp_path / "trips.sqlite").execute("create table other (x)").connection.close()
    with pytest.raises(DataError, match="give a query, or the name of a table; the tables are other, trips"):
        counted(tmp_path / "trips.sqlite")


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module, file in (
        ("adbc_driver_sqlite.dbapi", sqlite_file(tmp_path / "trips.sqlite")),
        ("duckdb", duckdb_file(tmp_path / "trips.duckdb")),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(DataError, match=r"needs a package .*: pip install 'treetop-dp\[sql\]'"):
            counted(file)


def test_files_with_different_types_cannot_be_one_table(tmp_path: Path) -> None:
    pq.write_table(pa.table({"home": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"home": ["1"]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match="do not have the same columns"):
        tables.read(tmp_path)


@pytest.mark.parametrize("copy", ["trips.csv.gz", "trips.parquet", "trips.txt", "link.csv"])
@pytest.mark.parametrize("how", ["folder", "pattern", "list"])
def test_a_file_beside_its_own_copy_is_refused(copy: str, how: str, tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text("home\na\n")
    (tmp_path / "other.csv").write_text("home\nb\n")
    sources: dict[str, Any] = {
        "folder": tmp_path,
        "pattern": str(tmp_path / "*"),
        "list": [tmp_path / "trips.csv", tmp_path / copy],
    }
    if copy == "link.csv":
        (tmp_path / copy).symlink_to("trips.csv")
    else:
        (tmp_path / copy).write_bytes(gzip.compress(b"home\na\n") if copy.endswith(".gz") else b"home\na\n")
    with pytest.raises(DataError, match="look like the same rows, and would be read twice"):
        Source(sources[how]).files()
    (tmp_path / copy).unlink()
    assert len(Source(sources["folder"]).files()) == 2


def test_a_file_that_is_listed_twice_is_refused_and_one_name_in_two_folders_is_not(tmp_path: Path) -> None:
    for year in ("2001", "2002"):
        (tmp_path / year).mkdir()
        (tmp_path / year / "trips.csv").write_text("home\na\n")
    assert len(Source(tmp_path).files()) == 2
    with pytest.raises(DataError, match="read twice"):
        Source([tmp_path / "2001" / "trips.csv", tmp_path / "2001"]).files()


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_view_is_no_whole_table(kind: str, tmp_path: Path) -> None:
    """Neighbours may differ in how many rows it shows, so its total is never told exactly."""
    file = tmp_path / f"trips.{kind}"
    statements = [
        "create table raw (home varchar, work varchar, year integer)",
        "insert into raw values ('01001', 'NA', 2008), ('01001', 'NA', 2009)",
        "create view trips as select home, work from raw where year = 2008",
    ]
    if kind == "sqlite":
        with sqlite3.connect(file) as database:
            _ = [database.execute(statement) for statement in statements]
        database.close()
    else:
        with duckdb.connect(str(file)) as base:
            _ = [base.execute(statement) for statement in statements]
    exact = tt.Plan(SPINE, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1))
    measured = tt.Plan(SPINE, tt.Unit("trip", neighbours="replace", may_be_missing=True), tt.Loss(rho=1))
    for query in ("trips", "select home, work from trips", None):
        for place in (file, f"sqlite:///{file}")[: 2 if kind == "sqlite" else 1]:
            with pytest.raises(PlanError, match="may leave rows out|a view that leaves rows out"):
                tt.make_release(exact, Source(place, query), tt.RunOptions(columns=COLUMNS))
    assert tt.read_true_counts(measured, Source(file, "trips"), COLUMNS).total == 1


def test_a_plan_knows_a_database_by_its_file(tmp_path: Path) -> None:
    text = "".join(
        f'[attributes.{end}]\nhierarchy = "places.csv"\nlevels = ["place"]\ncolumn = "{column}"\n'
        for end, column in COLUMNS.items()
    )
    text += '[spine]\norder = "destination-first"\n[unit]\nentity = "trip"\ncontributions = 1\n'
    text += 'neighbours = "replace"\n[loss]\nrho = 1\n[data]\nsource = "trips.db"\n'
    written(tmp_path / "places.csv", "place\n01001\n01003\n")
    file = written(tmp_path / "plan.toml", text)
    assert not read_plan(file).plan.unit.may_be_missing
    sqlite_file(tmp_path / "trips.db")
    assert read_plan(file).plan.unit.may_be_missing


@pytest.mark.parametrize(("suffix", "codec"), [(".bz2", "bz2"), (".zst", "zstd"), (".gz", "gzip")])
def test_a_folder_is_read_with_its_packed_files(suffix: str, codec: str, tmp_path: Path) -> None:
    first, *rest = CSV.splitlines(keepends=True)
    written(tmp_path / "a.csv", first + "".join(rest[:2]))
    with pa.CompressedOutputStream(str(tmp_path / f"b.csv{suffix}"), codec) as out:
        out.write((first + "".join(rest[2:])).encode())
    assert counted(tmp_path) == EXPECTED


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_what_is_read_once_is_known(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    file = written(tmp_path / "t.csv", CSV)
    assert reads_once(tmp_path / "pipe") and reads_once([file, tmp_path / "pipe"]) and reads_once("-")
    assert not (reads_once(file) or reads_once(tmp_path) or reads_once(None) or reads_once(str(tmp_path / "*.csv")))


@pytest.mark.parametrize("kind", ["parquet", "sqlite"])
def test_names_are_not_given_to_what_has_its_own(kind: str, tmp_path: Path) -> None:
    file = tmp_path / f"t.{kind}"
    if kind == "parquet":
        pq.write_table(TABLE, file)
    else:
        sqlite_file(file)
    with pytest.raises(DataError, match="header and names are for CSV files, and this is none: leave them out"):
        counted(Source(file, header=False, names=["home", "work"]))
    assert counted(Source(file, header=True)) == EXPECTED  # its names are names, as is said
