"""Plans of every kind, and a release folder that tests may damage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from treetop import Ledger
from treetop.card import RunInfo, describe_release
from treetop.card.meaning import reserved_composition
from treetop.checking.check import _Check as Check
from treetop.ledger import unit_text
from treetop.release.folder import read_domain, read_spine

from ..privacy.audits import DEEP

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


def parts(value: Any) -> list[tuple[Any, Any]]:
    """The parts of a part of a card by name or number: of a list, the first of every shape and the last.

    With TREETOP_AUDIT=deep they are all of them.
    """
    if not isinstance(value, list):
        return list(value.items()) if isinstance(value, dict) else []
    shapes = [_shape(item) for item in value]
    keep = {len(value) - 1, *map(shapes.index, shapes)} if not DEEP else range(len(value))
    return [(at, value[at]) for at in sorted(keep) if value]


def _shape(value: Any) -> object:
    """The names and types of all fields in a value."""
    if isinstance(value, dict):
        return [(name, _shape(item)) for name, item in value.items()]
    return [_shape(item) for item in value] if isinstance(value, list) else type(value)


PUBLIC = ("hierarchies", "names", "places", "facts")
"""How the files begin that hold hierarchies and facts."""


@pytest.fixture
def hierarchies_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the same hierarchies and facts of the same folder once, unless the card names another hash of a file."""
    kept: dict[str, Any] = {}

    def once(read: Callable[[Path, Any], Any], *parts: str) -> Callable[[Path, Any], Any]:
        def read_once(folder: Path, card: Any) -> Any:
            told = {part: card["plan"][part] for part in parts if part in card["plan"]}
            files = [file for file in card["files"] if file["path"].startswith(PUBLIC)]
            asked = json.dumps([read.__name__, str(folder), told, files])
            if asked not in kept:
                kept[asked] = read(folder, card)
            return kept[asked]

        return read_once

    for module in ("treetop.release.folder", "treetop.release.folder._read"):
        monkeypatch.setattr(f"{module}.read_spine", once(read_spine, "attributes", "spine"))
        monkeypatch.setattr(f"{module}.read_domain", once(read_domain, "attributes", "spine", "facts"))


@pytest.fixture
def pages_are_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the page of a card be its hash: pages are made and compared in other tests."""
    monkeypatch.setattr("treetop.checking.check.render", lambda card, digest: digest)


@pytest.fixture
def who_found_something_looks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the check that came last, which mostly is the one that found something, come first the next time.

    All of them look where none finds anything; and the next field is mostly found by the same one.
    """
    in_order = Check.checks
    last = 0

    def reordered(check: Check) -> Iterator[Any]:
        nonlocal last
        every = list(in_order(check))
        first = min(last, len(every) - 1)
        for last in (first, *range(first), *range(first + 1, len(every))):
            yield every[last]

    monkeypatch.setattr(Check, "checks", reordered)


@pytest.fixture
def plans() -> dict[str, tt.Plan]:
    """All the plans, by kind."""
    return dict(PLANS)
