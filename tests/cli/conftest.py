"""A steward's folder for the tests of commands that spend."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from treetop import Ledger, Loss

PLAN = """
title = "Trips"
[attributes.place]
column = "home"
hierarchy = "places.csv"
levels = ["region", "town"]
[unit]
entity = "trip"
contributions = 1
neighbours = "replace"
[loss]
rho = 0.01
delta = 1e-8
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a plan, its hierarchy, a private table and a ledger for a hundred releases; we are in it."""
    rng = random.Random(1)
    towns = ["n1", "n2", "s1", "s2", "s3"]
    (tmp_path / "places.csv").write_text("region,town\n" + "".join(f"{town[0].upper()},{town}\n" for town in towns))
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "trips.csv").write_text("home\n" + "".join(f"{rng.choice(towns)}\n" for _ in range(300)))
    Ledger.create(tmp_path / "ledger", loss=Loss(rho=1, delta=1e-8))
    monkeypatch.chdir(tmp_path)
    return tmp_path
