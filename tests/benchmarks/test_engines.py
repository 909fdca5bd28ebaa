"""The benchmark of engines: every command names a plan and a table that are there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import engines, scale


def test_every_command_finds_its_plan_and_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[Path] = []

    def write(folder: Path, largest: int) -> None:
        pq.write_table(pa.table({"home": ["1"], "work": ["2"]}), folder / "block0.parquet")

    def run(folder: Path, command: Sequence[str]) -> tuple[float, float]:
        named.extend(Path(word) for word in command if word.endswith(".toml") or Path(word).name.startswith("table"))
        assert all(path.exists() for path in named)
        return 1.0, 2.0 + len(named)

    monkeypatch.setattr(scale, "write", write)
    monkeypatch.setattr(scale, "table", lambda folder, records: (folder / f"table{records}").mkdir())
    monkeypatch.setattr(engines, "_run", run)
    monkeypatch.setattr(engines, "ctypes", SimpleNamespace(CDLL=lambda _: SimpleNamespace(prctl=lambda *_: 0)))
    monkeypatch.setattr(sys, "argv", ["engines", "10M", "--keep", str(tmp_path)])
    engines.main()
    assert {path.name for path in named} == {"no_margins.toml", "table1", "table10000000"}
