"""What a release will be worth, from public sizes and the number of records."""

from __future__ import annotations

import numpy as np
import pytest

import treetop as tt
from treetop import Counts
from treetop.advice import Report, known_outlook, outlook
from treetop.errors import PlanError
from treetop.noise import Key
from treetop.release.errors import measure_errors
from treetop.release.run import run_plan

PLACES = tt.Hierarchy.from_prefixes(
    [f"{a}{b:02}" for a in "ABCDEF" for b in range(20)], widths=[1], levels=["state", "town"]
)
ENDS = tt.Spine.destination_first(PLACES, PLACES)
TRIP = tt.Unit("trip", neighbours="replace")


def plan(epsilon: float = 1, **options: object) -> tt.Plan:
    return tt.Plan(ENDS, TRIP, tt.Loss(epsilon=epsilon, delta=1e-8), **{"margins": "each", **options})  # type: ignore[arg-type]


def noisy(found: Report) -> list[str]:
    return [row["name"] for row in found.rows if row["mostly_noise"]]


def test_a_table_whose_average_is_below_its_noise_is_mostly_noise() -> None:
    found = outlook(plan(), 100_000)
    assert noisy(found) == ["origin.town"]
    for row in found.rows:
        assert row["average"] == 100_000 / row["nodes"] and row["mostly_noise"] == (row["average"] < row["noise"])
    assert len(found.rows) == 4 + 3 and found.rows[-1]["counts"] == "origin town"
    assert not noisy(outlook(plan(), 10**9)) and outlook(plan(), 10**9)["sentences"] == []


def test_what_to_do_is_told_with_numbers() -> None:
    found = outlook(plan(), 100_000)
    told = "\n".join(found["sentences"])
    assert "Stop at destination.town" in told and "resolve = { fdr = 0.05 }" in told
    most = int(100_000 / found["needed"])
    assert f"no more than {most:,}" in told or f"no more than {most + 1:,}" in told
    assert "resolve" not in "\n".join(outlook(plan(resolve={"fdr": 0.05}), 100_000)["sentences"])
    # With the epsilon that it names, the leaves are no longer mostly noise, and with two thirds of it they are.
    needed = float(told.rpartition("epsilon ")[2].rstrip("."))
    assert not outlook(plan(1.1 * needed), 100_000).rows[3]["mostly_noise"]
    assert outlook(plan(needed / 1.5), 100_000).rows[3]["mostly_noise"]


def test_a_loss_in_rho_is_told_in_rho() -> None:
    lean = tt.Plan(ENDS, TRIP, tt.Loss(rho=0.01), margins="each")
    needed = float("\n".join(outlook(lean, 100_000)["sentences"]).rpartition("rho ")[2].rstrip("."))
    assert not outlook(tt.Plan(ENDS, TRIP, tt.Loss(rho=1.1 * needed), margins="each"), 100_000).rows[3]["mostly_noise"]


def released_error(counts: Counts, epsilon: float) -> float:
    """The mean absolute error of a leaf, in mean counts: 1 is as bad as zeros."""
    tried = plan(epsilon, confidence=None)
    found = run_plan(tried, counts, Key(bytes(32)), {})
    return measure_errors(found, counts)[-1].mean_of_all * ENDS.leaves / counts.total


def test_the_verdict_is_true_of_records_that_are_spread_evenly_and_of_crowded_ones() -> None:
    rng = np.random.default_rng(5)
    even = [rng.integers(0, 120, 20_000) for _ in range(2)]
    crowded = [even[0], even[0]]  # everybody stays where they are
    assert outlook(plan(), 20_000)["verdict"] == "better than zeros if crowded"
    assert released_error(Counts.from_leaves(ENDS, even), 1) > 1.2
    assert released_error(Counts.from_leaves(ENDS, crowded), 1) < 0.6
    assert outlook(plan(0.05), 20_000)["verdict"] == "worse than zeros"
    assert released_error(Counts.from_leaves(ENDS, crowded), 0.05) > 1
    assert outlook(plan(), 3_000_000)["verdict"] == "better than zeros"
    large = [np.repeat(one, 150) for one in even]
    assert released_error(Counts.from_leaves(ENDS, large), 1) < 0.2


def test_the_number_of_units_stands_in_for_that_of_records() -> None:
    assert known_outlook(plan()) is None
    many = tt.Unit("trip", neighbours="replace", population=1_000)
    known = known_outlook(tt.Plan(ENDS, many, tt.Loss(epsilon=1, delta=1e-8), margins="each"))
    assert known is not None and known["total"] == 1_000
    declared = known_outlook(tt.Plan(ENDS, many, tt.Loss(epsilon=1, delta=1e-8), margins="each"), 5_000)
    assert declared is not None and declared["total"] == 5_000


@pytest.mark.parametrize("total", [0, -1, float("nan"), float("inf")])
def test_a_total_that_is_none_is_refused(total: float) -> None:
    with pytest.raises(PlanError, match="about how many records"):
        outlook(plan(), total)
