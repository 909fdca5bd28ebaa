"""Intervals with facts: narrower, and they hold no less often, wherever the facts are true."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import treetop as tt

PLACE = tt.Hierarchy.from_prefixes(["AX", "AY", "AZ", "BX", "CX", "CY"], widths=[1], levels=["state", "county"])
SEX = tt.Hierarchy.flat(["f", "m"])
SPINE = tt.Spine(["place.state", "place.county", "sex"], {"place": PLACE, "sex": SEX})
TRUE = {("AX", "f"): 30, ("AX", "m"): 2, ("AY", "f"): 1, ("AZ", "f"): 6, ("BX", "m"): 9, ("CX", "f"): 3, ("CX", "m"): 4}
TABLE = pa.table(
    {
        "place": [place for (place, _), count in TRUE.items() for _ in range(count)],
        "sex": [sex for (_, sex), count in TRUE.items() for _ in range(count)],
    }
)
FACTS: dict[str, dict[str, Any]] = {
    "exact": {"place.state": {"A": 39, "B": 9, "C": 7}},
    "tight bounds": {
        "place.county": tt.Fact(at_least={"AX": 32, "AY": 1, "CX": 7}, at_most={"AZ": 6, "BX": 9, "CY": 0})
    },
    "loose bounds": {"place.county": tt.Fact(at_least={"AX": 20}, at_most={"AZ": 12, "CX": 15})},
    "zeros": {"place.county * sex": tt.Fact(impossible=[("BX", "f"), ("CY", "f"), ("CY", "m"), ("AZ", "m")])},
    "beside": {"sex": tt.Fact(at_most={"m": 15}), "place.state": tt.Fact(at_least={"C": 7})},
    "an invariant": {"place.state": tt.Fact(invariant=True)},
}
RISK = 0.1


def true_count(place: str, sex: str | None = None) -> int:
    return sum(count for (town, own), count in TRUE.items() if town.startswith(place) and sex in (None, own))


ASKED = [
    *({"place.state": code} for code in "ABC"),
    *({"place.county": code} for code in PLACE.codes[-1].to_pylist()),
    *({"place.county": code, "sex": sex} for code in ("AX", "AY", "CY", "BX") for sex in "fm"),
    {"sex": "f"},
    {"sex": "m"},
]


def made(facts: dict[str, Any], neighbours: Any = "replace", **more: Any) -> tt.Plan:
    unit = tt.Unit("person", neighbours=neighbours)
    return tt.Plan(SPINE, unit, tt.Loss(rho=Fraction(1, 5)), facts=facts, confidence=1 - RISK, **more)


@pytest.mark.parametrize("margins", ["none", "each"])
@pytest.mark.parametrize("kind", FACTS)
def test_intervals_with_true_facts_hold_at_least_as_often_as_they_say(kind: str, margins: str) -> None:
    if kind == "beside" and margins == "none":
        return  # which no plan takes
    plan, runs = made(FACTS[kind], margins=margins), 12
    missed = dict.fromkeys(range(len(ASKED)), 0)
    for run in range(runs):
        release = tt.make_release(plan, TABLE, tt.RunOptions(testing_key=run.to_bytes(32, "big")))
        bare = replace(release, facts=None)
        for number, asked in enumerate(ASKED):
            place = asked.get("place.state", asked.get("place.county", ""))
            truth, (lower, upper) = true_count(place, asked.get("sex")), release.interval(**asked)
            missed[number] += not lower <= truth <= upper
            without = bare.interval(**asked)
            if without.lower <= truth <= without.upper:
                assert lower <= truth <= upper, f"{asked}: what facts left out was true"
            assert upper - lower <= without.upper - without.lower
    assert max(missed.values()) <= stats.binom.ppf(1 - 1e-6 / len(ASKED), runs, RISK)


def test_facts_make_some_intervals_narrower_and_none_empty() -> None:
    release = tt.make_release(made(FACTS["tight bounds"], margins="none"), TABLE, tt.RunOptions(testing_key=bytes(32)))
    widths = []
    for asked in ASKED:
        own, without = release.interval(**asked), replace(release, facts=None).interval(**asked)
        assert own.lower <= own.upper
        widths.append((own.upper - own.lower, without.upper - without.lower))
    assert np.array(widths)[:, 0].sum() < 0.9 * np.array(widths)[:, 1].sum()
    assert release.interval(**{"place.county": "CY"}) == (0, 0)
