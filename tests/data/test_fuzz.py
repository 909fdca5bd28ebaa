"""Damaged files of every kind: whatever a byte is turned into, a table is read or refused in words."""

from __future__ import annotations

import io
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop import inspect_table, read_plan
from treetop.counts.reading import read_counts
from treetop.errors import TreetopError

CODES = ["a", "b", "cc", "é", "=1"]
SPINE = tt.Spine(["place"], {"place": tt.Hierarchy.flat(CODES)})
PLAN = """title = "Trips, 2011"
description = "x"

[attributes.place]
column = "place"
hierarchy = "places.csv"
levels = ["region", "place"]
ragged = "repeat"

[attributes.sex]
values = ["f", "m"]

[spine]
order = ["place.region", "sex", "place.place"]

[unit]
entity = "trip"
contributions = 2
neighbours = "add-remove"
id = "person"

[loss]
epsilon = 1.0
delta = 1e-8
split = { total = 1, "place.region" = 1, "sex" = 2, "place.place" = 3.5 }

[repair]
order = "ascending"

[data]
source = "trips.csv"
count = "n"
unknown = "drop"
keep = { year = ["2008", "2009"] }
"""
PIECES = (
    b"", b"\0", b"\xff", b'"', b"'", b",", b"\n", b"\r", b"[", b"]", b"{", b"}", b"=", b"-", b"1e999", b"nan", b"[[",
    b"?", b"\xef\xbb\xbf", b"9" * 40, b"0x", b"true", b"[]", b"{}", b"\\u0000", b"a" * 5000, b"1979-05-27", b"inf",
    b'""', b"#",
)  # fmt: skip


def _table() -> pa.Table:
    rng = random.Random(1)
    rows = 300
    return pa.table(
        {
            "place": pa.array(rng.choices([*CODES, None], k=rows)).dictionary_encode(),
            "plain": rng.choices(CODES, k=rows),
            "n": pa.array(rng.choices([0, 1, 5, 10**9], k=rows)),
            "half": pa.array(rng.choices([1.0, 2.5], k=rows), pa.float32()),
            "day": pa.array(rng.choices([0, 86400], k=rows), pa.timestamp("s", "UTC")),
            "list": pa.array(rng.choices([[1], []], k=rows)),
        }
    )


def parquet(folder: Path) -> bytes:
    target = io.BytesIO()
    pq.write_table(_table(), target, row_group_size=100)
    return target.getvalue()


def csv(folder: Path) -> bytes:
    rows = _table().select(["place", "plain", "n"]).to_pylist()
    lines = ["place,plain,n", *(f'{row["place"] or ""},"{row["plain"]}",{row["n"]}' for row in rows)]
    return "\n".join([*lines, ""]).encode()


def sqlite(folder: Path) -> bytes:
    file = folder / "made.sqlite"
    file.unlink(missing_ok=True)
    with sqlite3.connect(file) as base:
        base.execute("create table trips (place text, plain text, n integer)")
        rows = _table().select(["place", "plain", "n"]).to_pylist()
        base.executemany("insert into trips values (:place, :plain, :n)", rows)
    base.close()
    return file.read_bytes()


def duck(folder: Path) -> bytes:
    file = folder / "made.duckdb"
    file.unlink(missing_ok=True)
    with duckdb.connect(str(file)) as base:
        base.execute("create table trips as select 'a' as place, 'b' as plain, 1 as n from range(50)")
    return file.read_bytes()


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Return data with a few bytes changed, cut out, put twice or replaced."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        at, kind = rng.randrange(len(changed) + 1), rng.randrange(6)
        end = min(at + rng.choice((1, 1, 2, 8, 100)), len(changed))
        if kind == 0 and changed:
            changed[at % len(changed)] ^= 1 << rng.randrange(8)
        elif kind == 1 and changed:
            changed[at % len(changed)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 2:
            del changed[at:end]
        elif kind == 3:
            changed[at:at] = rng.choice(PIECES)
        elif kind == 4:
            changed[at:at] = changed[at:end] * rng.choice((1, 2, 50))
        else:
            changed[at:end] = bytes(end - at)
    return bytes(changed[: rng.randrange(len(changed) + 1)] if rng.random() < 0.05 else changed)


def read_every_way(file: Path) -> None:
    """Read a file as each command would; only errors of Treetop's own may come out."""
    ways: list[Callable[[], Any]] = [
        lambda: read_counts(file, SPINE, unknown="drop"),
        lambda: read_counts(file, SPINE, {"place": "plain"}, count="n"),
        lambda: read_counts(file, SPINE, {"place": "day"}, count="half"),
        lambda: inspect_table(file),
        lambda: tt.Hierarchy.from_table(file, ["place", "plain"], ragged="repeat"),
        lambda: tt.Hierarchy.from_parents(file, "plain", "place"),
    ]
    for way in ways:
        try:
            way()
        except TreetopError:
            continue


MAKERS = {"parquet": parquet, "csv": csv, "sqlite": sqlite, "duckdb": duck}


def fuzz_tables(kind: str, folder: Path, seeds: range) -> None:
    whole = MAKERS[kind](folder)
    for seed in seeds:
        (folder / f"x.{kind}").write_bytes(damaged(random.Random(f"{kind}{seed}"), whole))
        read_every_way(folder / f"x.{kind}")


def fuzz_plans(folder: Path, seeds: range) -> None:
    (folder / "places.csv").write_text("region,place\nN,a\nN,b\nS,cc\nS,é\n", encoding="utf-8")
    for seed in seeds:
        (folder / "plan.toml").write_bytes(damaged(random.Random(f"plan{seed}"), PLAN.encode()))
        try:
            read_plan(folder / "plan.toml")
        except TreetopError:
            continue


@pytest.mark.parametrize("kind", ["parquet", "csv", "sqlite", "duckdb"])
def test_a_damaged_table_is_read_or_refused(kind: str, tmp_path: Path) -> None:
    fuzz_tables(kind, tmp_path, range(10 if kind == "duckdb" else 25))


@pytest.mark.parametrize("seed", [2983, 21021], ids=["a count of levels", "a time zone"])
def test_a_damaged_description_of_a_column_is_refused_too(tmp_path: Path, seed: int) -> None:
    fuzz_tables("parquet", tmp_path, range(seed, seed + 1))  # Arrow ends the process where the first is looked at


def test_a_damaged_plan_is_read_or_refused(tmp_path: Path) -> None:
    fuzz_plans(tmp_path, range(200))


def test_what_is_damaged_here_can_be_read_whole(tmp_path: Path) -> None:
    for kind, make in MAKERS.items():
        (tmp_path / f"x.{kind}").write_bytes(make(tmp_path))
        assert read_counts(tmp_path / f"x.{kind}", SPINE, {"place": "plain"}).total >= 50
    (tmp_path / "places.csv").write_text("region,place\nN,a\nN,b\nS,cc\nS,é\n", encoding="utf-8")
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    assert read_plan(tmp_path / "plan.toml").count == "n"
