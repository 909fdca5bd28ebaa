"""Plans of every kind, and a release folder that tests may damage."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from treetop import Ledger
from treetop.card import RunInfo, describe_release
from treetop.card.composition import reserved_composition
from treetop.ledger import unit_text

PLACE = tt.Hierarchy.from_table(
    pa.table({"region": ["N", "N", "S", "S"], "town": ["n1", "n2", "s1", "s2"]}), levels=["region", "town"]
)
SEX = tt.Hierarchy.flat(["f", "m"])
SPINE = tt.Spine(["place.region", "sex", "place.town"], {"place": PLACE, "sex": SEX})

PLANS: Mapping[str, tt.Plan] = {
    "exact total": tt.Plan(
        SPINE,
        tt.Unit("trip", neighbours="replace"),
        tt.Loss(epsilon=1, delta=1e-8, accounting="zcdp"),
        title="Trips <& co>",
    ),
    "exact accounting": tt.Plan(
        SPINE,
        tt.Unit("trip", neighbours="add-remove"),
        tt.Loss(epsilon=1, delta=1e-8, accounting="exact"),
        split={"total": 1, "place.region": 1, "sex": 2, "place.town": 3},
    ),
    "pure": tt.Plan(SPINE, tt.Unit("person", neighbours="add-remove"), tt.Loss(epsilon=0.5)),
    "rho": tt.Plan(
        SPINE,
        tt.Unit("household", contributions=3, neighbours="replace", per_node={"place.town": 2}),
        tt.Loss(rho=0.1),
        split={"total": 1, "place.region": 2, "sex": 3, "place.town": 1},
        repair="euclidean",
        unknown="drop",
    ),
    "rho and delta": tt.Plan(
        SPINE,
        tt.Unit("person", contributions=2, neighbours="add-remove"),
        tt.Loss(rho=0.1, delta=1e-6),
        order="descending",
        unknown={"place": "s2", "sex": "m"},
    ),
}


def people(rows: int = 400) -> pa.Table:
    rng = np.random.default_rng(5)
    towns, sexes = np.array(["n1", "n2", "s1"]), np.array(["f", "m"])
    return pa.table({"place": towns[rng.integers(0, 3, rows)], "sex": sexes[rng.integers(0, 2, rows)]})


@pytest.fixture(params=list(PLANS))
def plan(request: pytest.FixtureRequest) -> tt.Plan:
    """A plan of each kind."""
    return PLANS[request.param]


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release folder with every level, charged to a ledger after another release."""
    folder = tmp_path_factory.mktemp("pristine")
    plan = PLANS["exact total"]
    ledger = Ledger.create(folder / "ledger", loss=tt.Loss(rho=1))
    ledger.reserve("people", plan.spent / 3, "zcdp", unit_text(plan.unit), "An earlier one", plan.digest).complete(
        "c" * 64
    )
    reservation = ledger.reserve("people", plan.spent, "zcdp", unit_text(plan.unit), plan.title, plan.digest)
    facts = RunInfo(
        description="Who lives where.",
        period="2011",
        columns={"place": "town", "sex": "sex"},
        composition=reserved_composition(ledger, reservation),
    )
    release = replace(tt.make_release(plan, people()), card=describe_release(plan, facts))
    release.save(folder / "out", nodes=True)
    return folder / "out"


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    """A copy of the release folder."""
    return Path(shutil.copytree(pristine, tmp_path / "out"))


Card = dict[str, Any]


@pytest.fixture
def plans() -> dict[str, tt.Plan]:
    """All the plans, by kind."""
    return dict(PLANS)
