"""A record is a line: a carriage return that might be part of a value never makes records of its own."""

from __future__ import annotations

import bz2
import gzip
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import treetop as tt
from treetop.errors import DataError, HierarchyError
from treetop.io import csv_file
from treetop.io.table import read

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
