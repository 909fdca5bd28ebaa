"""The joint fit of a release: whole counts from its margins and its complete levels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from treetop.errors import QueryError, ReleaseError

UNIT = tt.Unit("trip", contributions=1, neighbours="replace")
PAIRS = ["a", "b", "c", "a * b", "a * c", "b * c"]


def records(seed: int = 0) -> pa.Table:
    """Make records whose three attributes depend on each other."""
    rng = np.random.default_rng(seed)
    cells = rng.choice(6 * 5 * 4, 4000, p=rng.dirichlet(np.full(120, 0.3)))
    codes = np.unravel_index(cells, (6, 5, 4))
    return pa.table({name: [f"{name}{code}" for code in own] for name, own in zip("abc", codes, strict=True)})


def release(keep: bool = True) -> tt.Release:
    sizes = {"a": 6, "b": 5, "c": 4}
    trees = {name: tt.Hierarchy.flat([f"{name}{code}" for code in range(size)]) for name, size in sizes.items()}
    plan = tt.Plan(tt.Spine(list(trees), trees), UNIT, tt.Loss(epsilon=1, delta=1e-8), margins=PAIRS)
    plan = plan if keep else replace(plan, confidence=None)
    return tt.make_release(plan, records(), tt.RunOptions(testing_key=bytes(32), keep_measurements=keep))


def true_pairs(one: str, other: str) -> dict[tuple[str, str], int]:
    counted = records().group_by([one, other]).aggregate([([], "count_all")]).to_pylist()
    return {(row[one], row[other]): row["count_all"] for row in counted}


def test_the_joint_fit_adds_up_and_is_near_the_truth() -> None:
    found = tt.joint_fit(release())
    every = {name: found.table(name) for name in [*PAIRS, "a * b * c"]}
    assert {sum(table["count"].to_pylist()) for table in every.values()} == {4000}
    assert every["a * b"].column_names == ["a", "b", "count", "estimate"]
    by_a = every["a * b"].group_by("a").aggregate([("count", "sum")]).to_pylist()
    assert {row["a"]: row["count_sum"] for row in by_a} == dict(
        zip(every["a"]["a"].to_pylist(), every["a"]["count"].to_pylist(), strict=True)
    )
    true = true_pairs("b", "c")
    rows = every["b * c"].to_pylist()
    errors = [row["estimate"] - true.get((row["b"], row["c"]), 0) for row in rows]
    deviation = found.standard_deviation("b * c", 3)
    assert np.abs(errors).mean() < 1.5 * deviation
    assert np.mean([abs(row["count"] - true.get((row["b"], row["c"]), 0)) for row in rows]) < 1.5 * deviation


def test_the_same_release_gives_the_same_fit() -> None:
    assert tt.joint_fit(release()).table("a * b * c") == tt.joint_fit(release()).table("a * b * c")


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(ReleaseError, match="has not kept"):
        tt.joint_fit(release(keep=False))
    with pytest.raises(QueryError):
        tt.joint_fit(release()).table("d")
