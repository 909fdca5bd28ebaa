"""CSV in blocks: the rows that Arrow's own reader gives, and a process that ends as it should while reading."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest

from tests.processes import Server
from treetop.io.csv_file import parse_blocks

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
from treetop.io import csv_file, table
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
