"""Shares of a fixed sum: the errors of money that is dealt out by released counts, and splits that are tried for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from treetop.advice._splits import Shares, ShareWeight, refine_split, share_errors, squared_share_error
from treetop.advice.public import Prior
from treetop.errors import PlanError

PERSON = tt.Unit("person", neighbours="add-remove")
AREAS = 40


@pytest.fixture(scope="module")
def spine() -> tt.Spine:
    codes = [f"{area:02}{block}" for area in range(AREAS) for block in range(5)]
    places = tt.Hierarchy.from_prefixes(codes, widths=[2], levels=["area", "block"])
    return tt.Spine(["place.area", "place.block"], {"place": places})


@pytest.fixture(scope="module")
def prior(spine: tt.Spine) -> Prior:
    """Every area has one block with nearly all people, so that the errors of areas do not matter to shares."""
    codes = spine.trees[0].codes[-1].to_pylist()
    table = pa.table({"place": codes, "count": [400 if code.endswith("0") else 4 for code in codes]})
    return Prior.from_public_table(table, spine, source="published", count="count")


def test_shares_are_of_what_is_inside_an_area_or_of_all(spine: tt.Spine) -> None:
    twin = tt.Counts.from_leaves(spine, [np.array([0, 1, 5, 7])], np.array([30, 10, 5, 5]))
    nodes, count = [np.array([0, 2, 12], np.int32)], np.array([10, 10, 99])
    # The first area is 3/4 and 1/4, released 1/2, 0 and 1/2; the second is released empty; the third has no shares.
    assert squared_share_error(spine, twin, nodes, count, 1, 2) == pytest.approx(1 / 16 + 1 / 16 + 1 / 4 + 2 / 4)
    # In all, areas have 40/50 and 10/50, released 20/119 and 0, and 99/119 where there is nothing.
    expected = (20 / 119 - 0.8) ** 2 + 0.2**2 + (99 / 119) ** 2
    assert squared_share_error(spine, twin, nodes, count, 0, 1) == pytest.approx(expected)
    assert squared_share_error(spine, twin, [np.array([0, 1, 5, 7], np.int32)], np.array([3, 1, 8, 8]), 1, 2) == 0


@pytest.mark.parametrize(
    ("weight", "of"), [("linear", lambda p: p), ("log", lambda p: np.log(1 + p)), ("quadratic", lambda p: p**2)]
)
def test_a_sum_is_dealt_out_by_what_shares_weigh(
    spine: tt.Spine, weight: ShareWeight, of: Callable[[float], float]
) -> None:
    twin = tt.Counts.from_leaves(spine, [np.array([0, 1])], np.array([30, 10]))
    nodes, count = [np.array([0, 2], np.int32)], np.array([10, 40])
    true = [of(3 / 4), of(1 / 4), 0]
    released = [of(1 / 5), 0, of(4 / 5)]
    expected = sum((one / sum(released) - other / sum(true)) ** 2 for one, other in zip(released, true, strict=True))
    for area in (0, 1):
        assert squared_share_error(spine, twin, nodes, count, area, 2, weight) == pytest.approx(expected)


def test_more_loss_leaves_less_astray_and_the_same_seed_the_same(spine: tt.Spine, prior: Prior) -> None:
    task = Shares("place.block", "place.area")
    plans = [tt.Plan(spine, PERSON, tt.Loss(epsilon=epsilon), margins="none") for epsilon in (0.5, 5)]
    much, little = (share_errors(plan, prior, task, runs=4, threads=1) for plan in plans)
    assert much.shape == (4,) and 0 < little.max() < much.min()
    np.testing.assert_array_equal(share_errors(plans[1], prior, task, runs=4, threads=2), little)


def test_what_does_not_lie_inside_is_refused(spine: tt.Spine, prior: Prior) -> None:
    plan = tt.Plan(spine, PERSON, tt.Loss(epsilon=1), margins="none")
    with pytest.raises(PlanError, match="is not refined after"):
        share_errors(plan, prior, Shares("place.area", "place.block"), runs=1)
    with pytest.raises(PlanError, match="give one of log, linear, quadratic"):
        Shares("place.block", weight="cubic")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="give `shares` as well"):
        tt.split_for(plan, prior, refine=True, shares_weight="log")


def test_a_split_is_refined_for_shares(spine: tt.Spine, prior: Prior) -> None:
    split = {"total": 1, "place.area": 1, "place.block": 1}
    plan = tt.Plan(spine, PERSON, tt.Loss(epsilon=2), split=split, repair="euclidean", margins="none")
    task = Shares("place.block", "place.area")
    found = refine_split(plan, prior, shares=task, threads=1)
    assert found["better"] and found["found_error"] < 0.8 * found["start_error"]
    assert found["split"]["total"] < found["split"]["place.block"]  # nothing is dealt out by the total
    assert "squared error of shares of place.block in place.area" in str(found)
    log = refine_split(plan, prior, shares=replace(task, weight="log"), tries=2, fresh_runs=2, threads=1)
    assert log["start_error"] != found["start_error"] and "place.area (log weights)" in str(log)
