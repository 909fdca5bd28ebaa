"""Damaged and odd tables are refused in words, before anything is measured; what can be read is read."""

from __future__ import annotations

import datetime
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop import Source, inspect_table, read_plan
from treetop._util.files import resolved
from treetop.cli import main
from treetop.counts.reading import read_counts
from treetop.domain import branches
from treetop.errors import DataError, HierarchyError, PlanFileError, TreetopError
from treetop.io import table as tables

SPINE = tt.Spine(["place"], {"place": tt.Hierarchy.flat(["a", "b", "é"])})


def raw_text(*codes: bytes) -> pa.StringArray:
    offsets = np.cumsum([0, *map(len, codes)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(codes), pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(codes)))


def dictionary(indices: list[int], values: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), values, safe=False)


LATIN = raw_text(b"a", b"b", b"\xe9", b"a")


def as_parquet(column: pa.Array, path: Path) -> Path:
    pq.write_table(pa.table({"place": column}), path)
    return path


def as_sqlite(path: Path) -> Path:
    with sqlite3.connect(path) as base:
        base.execute("create table trips (place text)")
        base.executemany("insert into trips values (cast(? as text))", [(b"a",), (b"b",), (b"\xe9",)])
    return path


def bad_text(folder: Path) -> Iterator[Any]:
    yield pa.table({"place": LATIN})
    yield as_parquet(LATIN, folder / "plain.parquet")
    yield as_parquet(dictionary([0, 1, 2, 2] * 500, raw_text(b"a", b"b", b"\xe9")), folder / "coded.parquet")
    yield as_sqlite(folder / "trips.sqlite")


def test_text_that_is_not_utf8_is_refused_with_its_place(tmp_path: Path) -> None:
    for table in bad_text(tmp_path):
        with pytest.raises(DataError, match=r"column 'place', row \d+: the value is damaged, or its text is not UTF-8"):
            read_counts(table, SPINE)
        with pytest.raises(HierarchyError, match="is not UTF-8"):
            tt.Hierarchy.from_table(table, ["place"])
        if isinstance(table, Path):
            with pytest.raises(DataError, match="is not UTF-8"):
                inspect_table(table)
    with pytest.raises(DataError, match="column 'place', row 3: "):
        read_counts(tmp_path / "plain.parquet", SPINE)


def test_an_index_outside_of_its_dictionary_is_refused() -> None:
    for wrong in (2, 7, -1):
        column = dictionary([0, 1, 0, wrong], pa.array(["a", "b"]))
        with pytest.raises(DataError, match="row 4: the value is damaged"):
            read_counts(pa.table({"place": column}), SPINE)


def test_a_hierarchy_that_is_not_utf8_is_refused_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    as_parquet(LATIN, Path("places.parquet"))
    Path("trips.csv").write_text("place\na\n")
    Path("plan.toml").write_text(
        '[attributes.place]\nhierarchy = "places.parquet"\nlevels = ["place"]\n[spine]\norder = ["place"]\n'
        '[unit]\nentity = "trip"\ncontributions = 1\nneighbours = "replace"\n[loss]\nepsilon = 1.0\ndelta = 1e-6\n'
    )
    main(["ledger", "create", "ledger", "--epsilon", "2", "--delta", "1e-5"])
    for words in (["plan", "plan.toml"], ["release", "plan.toml", "trips.csv", "--out", "out", "--ledger", "ledger"]):
        with pytest.raises(SystemExit) as left:
            main([*words, "--dataset", "d"] if "--ledger" in words else words)
        assert left.value.code == 2
        assert "is not UTF-8" in capsys.readouterr().err
    main(["ledger", "show", "ledger"])
    assert "Nothing was charged yet" in capsys.readouterr().out
    assert not Path("out").exists()


def test_a_code_that_is_half_a_character_is_refused() -> None:
    with pytest.raises(HierarchyError, match="half of a character"):
        tt.Hierarchy.flat(["a", "\ud800"])


def test_counts_of_two_bytes_are_counts() -> None:
    table = pa.table({"place": ["a", "b"], "n": pa.array(np.array([2, 3], np.float16))})
    assert read_counts(table, SPINE, count="n").total == 5
    with pytest.raises(DataError, match=r"row 2: the count 2\.5 is not a whole number"):
        read_counts(table.set_column(1, "n", pa.array(np.array([2, 2.5], np.float16))), SPINE, count="n")


@pytest.mark.parametrize(
    "times",
    [
        pa.array([2**52], pa.timestamp("s")),
        pa.array([-(2**52)], pa.timestamp("s", "UTC")),
        pa.array([2**62 + 1], pa.timestamp("ms")),
        pa.array([0], pa.timestamp("s", "Nowhere/City")),
        pa.array([2**62], pa.date64()),
        pa.array([3600], pa.timestamp("s")),
        pa.array([2**31 - 1], pa.date32()),
    ],
    ids=lambda times: str(times.type),
)
def test_times_that_no_calendar_has_are_no_codes(tmp_path: Path, times: pa.Array) -> None:
    with pytest.raises(DataError, match="column 'place'"):
        read_counts(pa.table({"place": times}), SPINE)
    pq.write_table(pa.table({"place": times}), tmp_path / "x.parquet")
    assert inspect_table(tmp_path / "x.parquet").rows == 1


def test_inspect_describes_every_type_of_column(tmp_path: Path) -> None:
    day = datetime.date(2008, 1, 31)
    columns = {
        "view": pa.array(["a", "b", None], pa.string_view()),
        "coded": pa.array(["a", "b", None]).dictionary_encode(),
        "large": pa.array(["a", "b", ""], pa.large_string()),
        "half": pa.array(np.array([1, 2, 3], np.float16)),
        "half_n": pa.array(np.array([1.5, 2, 3], np.float16)),
        "bytes": pa.array([b"\xff", b"", None]),
        "decimal": pa.array([1, 2, None], pa.decimal128(20, 2)),
        "list": pa.array([[1], [], None]),
        "struct": pa.array([{"x": 1}, None, {"x": 2}]),
        "day": pa.array([day, None, day]),
        "time": pa.array([1, 2, 3], pa.time64("us")),
        "length": pa.array([1, 2, 3], pa.duration("s")),
        "flag": pa.array([True, None, False]),
        "nothing": pa.nulls(3),
    }
    file = tmp_path / "x.parquet"
    pq.write_table(pa.table(columns), file)
    assert [column.name for column in inspect_table(file).columns] == list(columns)
    assert read_counts(pa.table({"place": pa.array(["a", "b"], pa.string_view())}), SPINE).total == 2


def test_a_ring_of_links_is_no_such_file(tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    ring.symlink_to(ring)
    assert resolved(ring).name == "ring"
    (tmp_path / "x.csv").write_text("place\na\n")
    with pytest.raises(DataError, match="no such file"):
        inspect_table(tmp_path / "x.csv", ring)
    with pytest.raises(TreetopError):
        read_plan(ring)


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 5000])
def test_a_path_that_cannot_be_is_no_file(path: str) -> None:
    for attempt in (tables.read, inspect_table, read_plan):
        with pytest.raises(TreetopError):
            attempt(path)
    with pytest.raises(TreetopError):
        tables.read(Source([path]))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there are no device files here")
def test_a_plan_at_a_device_without_end_is_refused() -> None:
    with pytest.raises(PlanFileError, match="is no plan file"):
        read_plan("/dev/zero")


def test_a_header_of_half_a_megabyte_is_read(tmp_path: Path) -> None:
    names = [f"column_{number:07d}" for number in range(30_000)]
    for delimiter in ",;":
        (tmp_path / "x.csv").write_text(f"{delimiter.join(names)}\n{delimiter.join('1' * len(names))}\n")
        assert tables.read(tmp_path / "x.csv", [names[-1]]).to_pylist() == [{names[-1]: "1"}]


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is not kept everywhere")
def test_too_little_memory_is_said_at_once() -> None:
    command = f"ulimit -v 780000; exec {sys.executable} -m treetop demo"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "there is not enough memory: this process may use 761 MB" in done.stderr


def test_without_a_thread_to_read_ahead_a_table_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    (tmp_path / "x.csv").write_text("place\na\nb\n")
    assert tables.read(tmp_path / "x.csv")["place"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("top", [True, False], ids=["chain", "ring"])
def test_parents_of_great_depth_are_followed_in_linear_time(top: bool) -> None:
    """Ten times the codes take about ten times as long; a quadratic step would take a hundred."""

    def seconds(size: int) -> float:
        parents: list[str | None] = [f"n{(number + 1) % size}" for number in range(size)]
        parents[-1] = None if top else parents[-1]
        table = pa.table({"child": [f"n{number}" for number in range(size)], "parent": parents})
        started = time.process_time()
        if top:
            assert len(branches.paths(table["child"].combine_chunks(), table["parent"].combine_chunks())) == size
        else:
            with pytest.raises(HierarchyError, match="parents go in a circle: n0 → n1 → .* → …; a tree needs a top"):
                tt.Hierarchy.from_parents(table)
        return time.process_time() - started

    seconds(100)
    small, large = (4_000, 40_000) if top else (20_000, 200_000)
    assert seconds(large) < 25 * max(seconds(small), 0.02)


def test_a_tree_that_is_deep_and_wide_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treetop.domain.branches._MOST_CELLS", 100)
    comb = [(f"n{n}", f"n{n - 1}" if n else None) for n in range(20)] + [(f"l{n}", f"n{n}") for n in range(20)]
    table = pa.table({"child": [child for child, _ in comb], "parent": [parent for _, parent in comb]})
    with pytest.raises(HierarchyError, match="21 levels deep and has 20 leaves: .* 420 codes"):
        tt.Hierarchy.from_parents(table, ragged="repeat")
