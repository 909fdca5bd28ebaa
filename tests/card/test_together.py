"""A card of a release beside others states what all come to by their noise, and the check composes it again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import treetop as tt
from tests.forging import card_of, findings
from treetop import Ledger
from treetop.card import render
from treetop.card.meaning import statement

from .conftest import SPINE, people
from .test_checking import forge, set_to

HALF = tt.Plan(
    SPINE, tt.Unit("trip", neighbours="replace"), tt.Loss(epsilon=0.69, delta=1e-8), title="Half", margins="each"
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases of epsilon 0.69 each, charged to a ledger of epsilon 1 by their noise."""
    folder = tmp_path_factory.mktemp("together")
    Ledger.create(folder / "ledger", loss=tt.Loss(epsilon=1, delta=1e-8), datasets=("people",))
    for name in ("first", "second"):
        release = tt.make_release(HALF, people(), tt.RunOptions(ledger=folder / "ledger", dataset="people"))
        release.save(folder / name)
    return folder


def test_two_releases_come_to_less_than_their_rho_does(folders: Path) -> None:
    told = card_of(folders / "second")["composition"]
    assert Fraction(told["spent_after"]["exact"]) == 2 * HALF.spent > Fraction(told["budget"]["exact"])
    assert told["together"]["budget"]["exact"] == "1" and 0.99 < told["together"]["epsilon"] <= 1
    assert "epsilon 0.99" in (text := render(told["sentence"])) and "of a budget of 1 at delta 1e-08" in text
    assert told["sentence"] == statement(told, HALF)
    for name in ("first", "second"):
        assert findings(folders / name) == []


def test_a_release_with_narrow_noise_that_fits_alone_is_verified(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", loss=tt.Loss(epsilon=9, delta=1e-7))
    unit = tt.Unit("trip", neighbours="add-remove")
    split = {"total": 7, "place.region": 1, "sex": 1, "place.town": 1}
    plan = tt.Plan(SPINE, unit, tt.Loss(epsilon=9, delta=1e-7), split=split)
    assert min(variance for variance, _ in plan.cells or ()) < 1 and plan.spent > ledger.budget.amount
    tt.make_release(plan, people(), tt.RunOptions(ledger=ledger, dataset="people")).save(tmp_path / "out")
    assert card_of(tmp_path / "out")["composition"]["together"]["epsilon"] == 9
    assert findings(tmp_path / "out") == []


FORGED = [
    (set_to("composition", "together", "epsilon", 0.5), "composition.together.epsilon is 0.5, but the releases come"),
    (set_to("composition", "together", "gaussian", {"exact": "1/1000", "value": 0.001}), "but the releases sum to"),
    (set_to("composition", "together", "other", {"exact": "1/1000", "value": 0.001}), "but the releases sum to 0"),
    (set_to("composition", "together", "budget", {"exact": "1/2", "value": 0.5}), "come to more than epsilon 1/2"),
    (set_to("composition", "together", "delta", {"exact": "1/10", "value": 0.1}), "the releases come to"),
    (set_to("composition", "together", "delta", {"exact": "1/10000000000", "value": 1e-10}), "come to more than"),
    (set_to("composition", "earlier", 0, "gaussian", {"exact": "1/9", "value": 1 / 9}), "but the releases sum to"),
    (
        set_to("composition", "budget", {"exact": "1/5", "value": 0.2}),
        "more than epsilon 1 at delta 1/100000000 allows",
    ),
]


@pytest.mark.parametrize(("change", "message"), FORGED, ids=[str(i) for i in range(len(FORGED))])
def test_a_forged_sum_is_named(change: Callable[[Any], None], message: str, folders: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders / "second", tmp_path / "out"))
    forge(folder, change)
    found = findings(folder)
    assert any(message in finding for finding in found), found
