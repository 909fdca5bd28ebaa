"""A black-box audit through the command line: files in, release folders out, and somebody with far too many records.

The outsider sees all of every folder: the counts, and how large the files are. Keys are fresh; the two bounds that the
audit takes are wrong with a chance of 2e-8. So few runs find gross faults, which is shown with one.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from treetop.cli import main

from .audits import DEEP
from .events import PROOF_RISK, epsilon_at_least
from .faults import contributions_not_bounded
from .neighbours import TREES

RUNS = 400 if DEEP else 80
EPSILON = 0.2
PLAN = f"""
title = "People"
[attributes.place]
hierarchy = "places.csv"
levels = ["region", "town"]
[spine]
order = ["place.region", "place.town"]
[unit]
entity = "person"
contributions = 2
neighbours = "replace"
id = "person"
[loss]
epsilon = {EPSILON}
"""
TOWNS = TREES["two by two"][0]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan, its hierarchy and two private tables: Ann has 2,000 records, in one region or in the other."""
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "places.csv").write_text("region,town\n" + "".join(f"{town[0]},{town}\n" for town in TOWNS))
    others = "".join(f"{name},{town}\n" for name in ("bob", "cy", "di") for town in ("A1", "B2"))
    for region in "AB":
        ann = "".join(f"ann,{region}{1 + i % 2}\n" for i in range(2_000))
        (tmp_path / f"{region}.csv").write_text(f"person,place\n{others}{ann}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # nothing is lost here if the power fails
    return tmp_path


def looks(table: str) -> NDArray[np.int64]:
    """Release a table many times, and write down what an outsider sees each time."""
    seen = []
    for _ in range(RUNS):
        main(["release", "plan.toml", table, "--out", "out", "--force", "--quiet", "--threads", "1"])
        counts = pq.read_table("out/counts.parquet").to_pylist()
        by_town = {row["place"]: row["count"] for row in counts}
        leaves = [by_town.get(town, 0) for town in TOWNS]
        regions = [leaves[0] + leaves[1], leaves[2] + leaves[3]]
        sizes = [path.stat().st_size for path in sorted(Path("out").rglob("*")) if path.is_file()]
        seen.append([*leaves, *regions, sum(leaves), regions[0] - regions[1], len(counts), *sizes])
    return np.array(seen)


@pytest.mark.fresh_noise(PROOF_RISK)
@pytest.mark.usefixtures("here")
def test_no_event_of_many_commands_tells_where_a_busy_person_was() -> None:
    proven, event = epsilon_at_least(looks("A.csv"), looks("B.csv"), 0.0)
    assert proven <= EPSILON, str(event)


@pytest.mark.usefixtures("here")
def test_the_audit_would_notice_two_thousand_records_of_one_person(monkeypatch: pytest.MonkeyPatch) -> None:
    contributions_not_bounded(monkeypatch)
    unbounded, _ = epsilon_at_least(looks("A.csv"), looks("B.csv"), 0.0)
    assert unbounded > EPSILON
