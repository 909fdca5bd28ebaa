"""CSV in blocks: the rows that Arrow's own reader gives, and a process that ends as it should while reading."""

from __future__ import annotations

import bz2
import gzip
import io
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest

import treetop as tt
from tests.processes import Server
from treetop.errors import DataError, HierarchyError
from treetop.io import _csv_file as csv_file
from treetop.io._csv_file import parse_blocks
from treetop.io.table import read

_CLOSED = ("", "a", "bc", '"d"', '"e,f"', '"g""h"', '"i\nj"', '"k\r\nl"', '5" pipe', '"m"n', "'", '""', "x" * 40)
_FIELDS = (*_CLOSED, '"""')


def _options(size: int, **parsing: Any) -> dict[str, Any]:
    return {
        "read_options": arrow_csv.ReadOptions(column_names=["a", "b"], block_size=size, use_threads=False),
        "parse_options": arrow_csv.ParseOptions(newlines_in_values=True, **parsing),
        "convert_options": arrow_csv.ConvertOptions(
            column_types={"a": pa.string(), "b": pa.string()}, strings_can_be_null=True, null_values=[""]
        ),
    }


def _rows(text: str, size: int, **parsing: Any) -> Any:
    try:
        batches = parse_blocks(io.BytesIO(text.encode()), **_options(size, **parsing))
        return [row for batch in batches for row in batch.to_pylist()]
    except pa.ArrowInvalid:
        return "refused"


def _rows_of_arrow(text: str, **parsing: Any) -> Any:
    data = pa.array([text.encode()]).buffers()[2]
    try:
        return arrow_csv.read_csv(pa.BufferReader(data), **_options(1 << 16, **parsing)).to_pylist()
    except pa.ArrowInvalid:
        return "refused"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("empty", [True, False])
def test_blocks_hold_the_rows_that_arrow_reads_whatever_is_quoted(end: str, empty: bool) -> None:
    rng, agreed = random.Random(f"{end}{empty}"), 0
    for _ in range(100):
        fields = _FIELDS if rng.random() < 0.3 else _CLOSED
        lines = [",".join(rng.choices(fields, k=2)) for _ in range(rng.randrange(1, 30))]
        lines = ["" if rng.random() < 0.1 else line for line in lines]
        text = end.join(["a,b", *lines]) + rng.choice(["", end])
        whole = _rows_of_arrow(text, ignore_empty_lines=empty)
        # A quote that is never closed turns what was quoted, with other line ends in it, into lines.
        mixed = [whole, "refused"] if fields is _FIELDS and end == "\r" else [whole]
        assert _rows(text, 4000, ignore_empty_lines=empty) in mixed
        small = _rows(text, 120, ignore_empty_lines=empty)
        assert small in (whole, "refused")  # a quote that is never closed makes a record longer than a block
        agreed += small == whole
    assert agreed > 70


def test_a_fault_is_named_by_its_row_in_the_file() -> None:
    text = "1,2\n" * 1000 + "3\n"
    with pytest.raises(pa.ArrowInvalid, match="Row #1001: Expected 2 columns, got 1"):
        list(parse_blocks(io.BytesIO(text.encode()), **_options(256)))


def test_a_record_that_is_longer_than_a_block_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="straddl"):
        list(parse_blocks(io.BytesIO(b'1,"' + b"x\n" * 1000), **_options(256)))


_LEAVING = """
import sys, threading, time
from treetop.io import _csv_file as csv_file, table
from treetop.errors import DataError

csv_file.BLOCK = csv_file.HEAD = 1 << 12
read = csv_file.Utf8.read

def slowly(self, size):
    if threading.current_thread() is not threading.main_thread():
        time.sleep(0.02)
    return read(self, size)

csv_file.Utf8.read = slowly
rows = table.batches(sys.argv[1])
try:
    next(rows), next(rows)
except DataError:
    sys.exit(2)
if sys.argv[2] == "interrupted":
    raise KeyboardInterrupt
sys.exit(0)
"""


@pytest.mark.parametrize(("how", "codes"), [("refused", {2}), ("early", {0}), ("interrupted", {-2, 130})])
def test_a_process_that_leaves_while_csv_is_read_ends_as_it_means_to(
    tmp_path: Path, how: str, codes: set[int], processes: Server
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("a,b\n" + ("1,2,3\n" if how == "refused" else "") + "12,34\n" * 20_000)
    done = processes.run(_LEAVING, file, how, folder=tmp_path)
    assert done.returncode in codes
    assert "terminate called" not in done.stderr
    assert "Exception ignored" not in done.stderr


# A record is a line: a carriage return that might be part of a value never makes records of its own.

KEY = bytes(range(32))
SPINE = tt.Spine(["home"], {"home": tt.Hierarchy.flat(["a", "b", "c"])})
MIXED = "some lines end with a carriage return alone"

STRAY = {
    "inside a value": b"home,n\na,1\n\r\r\r\ra,1\nb,1\n",
    "at the end of the file": b"home,n\na,1\nb,1\n\r",
    "beside carriage returns with line feeds": b"home,n\r\na,1\r\nb\r,1\r\n",
    "in the first line": b"home,n\ra,1\nb,1\n",
    "below the first line": b"home,n\na,1\rb,1\r",
    "beside quotes": b'"home","n"\n"a",1\n\r"b",1\n',
    "behind quotes": b'home,n\n"a",1\r"b",1\n',
    "of old and new line ends together": b"home,n\r\na,1\rb,1\nc,1\r\n",
}
SOUND = {
    "carriage returns": (b"home,n\ra,1\rb,1\r", 2),
    "carriage returns, the last one missing": (b"home,n\ra,1\rb,1", 2),
    "line feeds": (b"home,n\na,1\nb,1\n", 2),
    "both together": (b"home,n\r\na,1\r\nb,1\r\n", 2),
    "line feeds with and without": (b"home,n\r\na,1\nb,1\r\n", 2),
    "carriage returns in quotes": (b'home,n\na,"x\ry"\nb,"\r\r"\n', 2),
    "line feeds in quotes": (b'home,n\ra,"x\ny"\rb,1\r', 2),
}


def released(table: Any, **options: Any) -> tt.Release:
    unit = tt.Unit("person", neighbours="replace")
    return tt.make_release(tt.Plan(SPINE, unit, tt.Loss(epsilon=1)), table, tt.RunOptions(testing_key=KEY, **options))


@pytest.mark.parametrize(
    ("where", "engine"),
    [*((where, "local") for where in STRAY), ("inside a value", "processes"), ("in the first line", "processes")],
)
def test_a_stray_carriage_return_is_refused_before_anything_is_spent(where: str, engine: str, tmp_path: Path) -> None:
    file, charged = tmp_path / "people.csv", []
    file.write_bytes(STRAY[where])
    with pytest.raises(DataError, match=MIXED):
        released(file, engine=tt.Engine(engine, workers=1), before_measuring=lambda: charged.append(True))
    assert charged == []


@pytest.mark.parametrize("where", SOUND)
def test_one_kind_of_line_ends_is_read(where: str, tmp_path: Path) -> None:
    text, rows = SOUND[where]
    (tmp_path / "people.csv").write_bytes(text)
    assert released(tmp_path / "people.csv").total == rows


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_a_stray_carriage_return_is_found_in_a_packed_file(
    ending: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    file = tmp_path / f"people.csv{ending}"
    file.write_bytes(pack(STRAY["inside a value"]))
    with pytest.raises(DataError, match=MIXED):
        released(file)


def test_a_stray_carriage_return_is_found_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(STRAY["inside a value"].decode(), "utf-16", newline="")
    with pytest.raises(DataError, match=MIXED):
        released(tt.Source(tmp_path / "people.csv", encoding="utf-16"))


def test_a_stray_carriage_return_is_found_in_standard_input() -> None:
    program = "from treetop.io.table import read; read('-')"
    ran = subprocess.run(
        [sys.executable, "-c", program], input=STRAY["inside a value"], capture_output=True, check=False
    )
    assert ran.returncode != 0 and MIXED in ran.stderr.decode()


def test_a_stray_carriage_return_is_found_in_fixed_width_text(tmp_path: Path) -> None:
    (tmp_path / "people.txt").write_bytes(b"a 1\nb 1\n\rc 1\n")
    with pytest.raises(DataError, match=MIXED):
        released(tt.Source(tmp_path / "people.txt", fields={"home": [1, 1]}))


def test_a_stray_carriage_return_is_found_in_a_hierarchy(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_bytes(b"region,town\nA,A1\rA,A2\n")
    with pytest.raises((HierarchyError, DataError), match=MIXED):
        tt.Hierarchy.from_table(tmp_path / "places.csv", ["region", "town"])


def test_stray_carriage_returns_are_found_wherever_blocks_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_file, "BLOCK", 64)
    rng, file = random.Random(1), tmp_path / "people.csv"
    for end in ("\n", "\r\n", "\r"):
        for quoted in (False, True):
            for _ in range(15):
                lines = [f'"{rng.choice("abc")}",x' if quoted else f"{rng.choice('abc')},x" for _ in range(60)]
                text = "home,n" + end + end.join(lines) + end
                file.write_bytes(text.encode())
                assert len(read(file)) == 60
                at = rng.randrange(len(lines))
                lines[at] = ("\r" if end != "\r" else "\n") + lines[at]
                file.write_bytes(("home,n" + end + end.join(lines) + end).encode())
                with pytest.raises(DataError, match=MIXED):
                    read(file)
