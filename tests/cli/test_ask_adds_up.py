"""Zooming adds up: answers of one batch, and later ones, are fitted together; what was answered stays what it was."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treetop as tt
from treetop.cli import main
from treetop.ledger import Ledger
from treetop.measure import questions
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key, Law, NoiseStream
from treetop.publishing.ask import QuestionEstimate, estimates

EXAMPLES = Path(__file__).parents[2] / "examples"
Ask = Callable[..., Any]

PLACES = tt.Hierarchy.from_prefixes(["A1", "A2", "A3", "B1"], widths=[1], levels=["region", "town"])
SPINE = tt.Spine(["place.region", "place.town", "sex"], {"place": PLACES, "sex": tt.Hierarchy.flat(["f", "m"])})


def answered(answers: dict[str, int], law: Law) -> list[dict[str, Any]]:
    return [
        questions.stored(text, "here", questions.parse(text, SPINE), measured, law)
        for text, measured in answers.items()
    ]


def fitted(kept: list[dict[str, Any]], *asked: str, confidence: float = 0.95) -> list[QuestionEstimate]:
    found = estimates(SPINE, [questions.parse(text, SPINE) for text in asked], kept, "here", confidence)
    assert found is not None
    return found


TOWNS = ("place=A1", "place=A2", "place=A3")


def test_a_region_and_its_towns_are_the_whole_numbers_nearest_to_least_squares() -> None:
    kept = answered({"place=A": 100, "place=A1": 60, "place=A2": 30, "place=A3": 22}, DiscreteGaussian(Fraction(9)))
    region, *towns = (one.count for one in fitted(kept, "place=A", *TOWNS))
    assert region == sum(towns) and all(one.answers == 4 for one in fitted(kept, "place=A"))
    # 12 too many are divided among four measurements of the same noise.
    for found, best in zip((region, *towns), (103, 57, 27, 19), strict=True):
        assert abs(found - best) <= 1


def test_nothing_is_negative_and_what_overlaps_fits_too() -> None:
    kept = answered(
        {"place=A": 10, "place=A1": -20, "place=A1 sex=f": 4, "sex=f": 3, "place=B": -5}, DiscreteGaussian(Fraction(4))
    )
    counts = {text: fitted(kept, text)[0].count for text in ("place=A", "place=A1", "place=A1 sex=f", "sex=f")}
    assert min(counts.values()) >= 0 and fitted(kept, "place=B")[0].count == 0
    assert counts["place=A1 sex=f"] <= min(counts["place=A1"], counts["sex=f"])
    assert counts["place=A1"] <= counts["place=A"]


def test_a_more_accurate_answer_weighs_more_and_one_that_was_drawn_twice_counts_twice() -> None:
    loose, sharp = DiscreteGaussian(Fraction(100)), DiscreteGaussian(Fraction(1))
    kept = [*answered({"place=A": 200}, loose), *answered({"place=A": 100}, sharp)]
    (found,) = fitted(kept, "place=A")
    assert found.count == 101 and found.lower <= 100 <= found.upper and found.upper - found.lower <= 5
    twice = [*answered({"place=A": 90}, loose), *answered({"place=A": 110}, loose)]
    (both,) = fitted(twice, "place=A")
    assert both.count == 100 and both.upper - both.lower < 2 * loose.margin(Fraction(1, 20))


def drawn(law: Law, runs: int) -> Any:
    """Noise for four answers, run by run."""
    noise = np.empty((runs, 4), np.int64)
    for run in range(runs):
        NoiseStream(law, Key(run.to_bytes(32, "big"))).fill(noise[run], 0)
    return noise


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(50)), DiscreteLaplace(Fraction(5))])
def test_estimates_are_nearer_than_answers_and_their_intervals_hold(law: Law) -> None:
    truth = np.array([60, 30, 20, 10])  # a region and its towns
    runs, missed, raw, near = 300, 0, 0, 0
    for noise in drawn(law, runs):
        kept = answered(dict(zip(("place=A", *TOWNS), (truth + noise).tolist(), strict=True)), law)
        found = fitted(kept, "place=A", *TOWNS, confidence=0.8)
        missed += sum(not one.lower <= true <= one.upper for one, true in zip(found, truth, strict=True))
        raw += int((np.maximum(truth + noise, 0) - truth).__pow__(2).sum())
        near += int(sum((one.count - true) ** 2 for one, true in zip(found, truth, strict=True)))
    assert near < 0.9 * raw
    # 20 % of 1,200 miss at most, of which 1.2 % is a standard deviation; noise is whole, so that fewer do.
    assert 0.08 < missed / (4 * runs) < 0.2 + 4 * 0.012


def test_answers_about_other_tables_and_those_of_old_ledgers_are_not_mixed_in() -> None:
    law = DiscreteGaussian(Fraction(4))
    kept = answered({"place=A": 100}, law)
    elsewhere = [one | {"scope": "there"} for one in answered({"place=A1": 500}, law)]
    old = [{"question": "x", "measured": 7, **law.describe()}]
    assert fitted([*kept, *elsewhere, *old], "place=A") == fitted(kept, "place=A")
    asked = [questions.parse("place=A", SPINE)]
    assert estimates(SPINE, asked, old, "here", 0.95) is None


def test_too_many_pieces_are_not_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "MOST_PATTERNS", 2)
    kept = answered({"place=A": 10, "sex=f": 3}, DiscreteGaussian(Fraction(4)))
    assert estimates(SPINE, [questions.parse("sex=f", SPINE)], kept, "here", 0.95) is None


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    shutil.copytree(EXAMPLES / "graph", tmp_path, dirs_exist_ok=True)
    Ledger.create(tmp_path / "ledger", loss=tt.Loss(rho=0.1))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Any:
        main(["ask", "users.toml", "--ledger", "ledger", "--json", *arguments])
        return json.loads(capsys.readouterr().out)["answers"]

    return run


def test_a_region_is_the_sum_of_its_towns_in_one_batch_and_when_they_are_asked_later(ask: Ask) -> None:
    (before,) = ask("--rho", "0.01", "--where", "region=Zilina")
    assert before["consistent"]["count"] == before["count"] and before["consistent"]["answers"] == 1
    spine = tt.read_plan("users.toml").plan.spine
    tree = spine.attributes["place"]
    _, start, stop = spine.find("place.region", "Zilina")
    codes = tree.codes[-1].to_pylist()[start:stop]
    assert len(codes) == 11
    towns = ask("--rho", "0.02", *(word for code in codes for word in ("--question", f'town="{code}"')))
    (after,) = ask("--rho", "0.01", "--where", "region=Zilina")
    for name in ("count", "lower", "upper", "measured", "margin"):
        assert after[name] == before[name]  # what was answered stays
    assert after["free"] and after["consistent"]["answers"] == 12
    again = ask("--rho", "0.02", *(word for code in codes for word in ("--question", f'town="{code}"')))
    assert all(one["free"] for one in again)
    assert [one["measured"] for one in again] == [one["measured"] for one in towns]
    assert after["consistent"]["count"] == sum(one["consistent"]["count"] for one in again)
    assert sum(one["consistent"]["count"] for one in towns) == after["consistent"]["count"]
    assert min(one["consistent"]["count"] for one in again) >= 0
    assert Ledger.open("ledger").spent("default") == Fraction("0.03")
