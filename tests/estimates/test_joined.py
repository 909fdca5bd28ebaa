"""Least squares over the tree and the margins together, against a dense solve over all leaves of the domain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop.errors import QueryError
from treetop.release.estimates import estimate_table as joined

Reals = NDArray[np.float64]

PLACE = tt.Hierarchy.from_prefixes(
    ["AXa", "AXb", "AYa", "BXa", "BXb", "BYc"], widths=[1, 2], levels=["state", "county", "town"]
)
KIND = tt.Hierarchy.from_prefixes(["1p", "1q", "2p", "2q"], widths=[1], levels=["group", "kind"])
SEX = tt.Hierarchy.flat(["f", "m"])
TREES = {"place": PLACE, "kind": KIND, "sex": SEX}
ORDERS = [
    ["place.state", "kind.group", "sex", "place.county", "kind.kind", "place.town"],
    ["sex", "place.state", "place.county", "kind.group", "place.town", "kind.kind"],
]
MARGINS: list[Any] = [
    "each",
    ["place.town", "kind.group * sex", "sex"],
    ["place.county * kind.group", "kind.kind * sex"],
]
LEAVES = list(product(*(tree.codes[-1].to_pylist() for tree in TREES.values())))


def release(order: list[str], margins: Any, seed: int, neighbours: Any = "replace") -> tt.Release:
    rng = np.random.default_rng(seed)
    counts = (rng.dirichlet(np.full(len(LEAVES), 0.15)) * 4_000).astype(np.int64)
    table = pa.table(dict(zip(TREES, map(list, zip(*LEAVES, strict=True)), strict=True)) | {"n": counts})
    plan = tt.Plan(tt.Spine(order, TREES), tt.Unit("person", neighbours=neighbours), tt.Loss(rho=0.02), margins=margins)
    return tt.make_release(
        plan, table, tt.RunOptions(count="n", testing_key=bytes([seed] * 32), keep_measurements=True)
    )


@cache
def under(name: str, code: str) -> Reals:
    """Which leaves of the domain are under a node of an attribute."""
    tree, at = TREES[name], list(TREES).index(name)
    (depth, node), *_ = tree.find(code)
    start, stop = tree.below(depth, node)
    own = set(tree.codes[-1].to_pylist()[start:stop])
    return np.array([float(leaf[at] in own) for leaf in LEAVES])


def inside(row: dict[str, Any]) -> Reals:
    """Which leaves a row of codes counts."""
    found = np.ones(len(LEAVES))
    for name in TREES:
        if row.get(name) is not None:
            found = found * under(name, row[name])
    return found


def measurements(found: tt.Release) -> Iterator[tuple[Reals, float, float]]:
    if found.measurements.total is None:
        yield np.ones(len(LEAVES)), found.total, 1e-7
    for row in found.measurements.table().to_pylist():
        yield inside(row), row["value"], row["variance"]
    for table in found.margins:
        for row, value in zip(found.estimates(table.margin.part).to_pylist(), table.measured.tolist(), strict=True):
            yield inside(row), value, table.law.standard_deviation**2


def dense(found: tt.Release) -> tuple[Reals, Reals]:
    """Return estimates of the leaves, of all that tell the measurements alike the shortest, and their covariance."""
    rows, values, variances = (np.array(part) for part in zip(*measurements(found), strict=True))
    inverse = np.linalg.pinv(rows / np.sqrt(variances)[:, None], rcond=1e-9)
    return inverse @ (values / np.sqrt(variances)), inverse @ inverse.T


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("margins", MARGINS, ids=str)
@pytest.mark.parametrize("order", ORDERS, ids=["place first", "sex first"])
def test_all_measurements_are_combined_as_a_dense_solve_combines_them(
    order: list[str], margins: Any, neighbours: str
) -> None:
    pruned = 0
    for seed in range(2):
        found = release(order, margins, seed, neighbours)
        pruned += len(found.measurements.levels[-1] or ()) < found.spine.leaves
        values, covariance = dense(found)
        names = [*(level.name for level in found.spine.levels), *(table.margin.part for table in found.margins)]
        for name in names:
            for row in found.estimates(name).to_pylist():
                leaves = inside(row)
                assert row["estimate"] == pytest.approx(leaves @ values, abs=0.02)
                assert row["sd"] ** 2 == pytest.approx(leaves @ covariance @ leaves, rel=1e-3)
    assert pruned == 2  # so some cells were open


def test_margins_make_estimates_more_certain_and_never_less() -> None:
    found = release(ORDERS[0], "each", 1)
    without = replace(found)
    object.__setattr__(without, "margins", ())
    better = 0
    for level in found.spine.levels:
        own, alone = (one.estimates(level.name)["sd"].to_numpy() for one in (found, without))
        assert (own <= alone + 1e-9).all()
        better += (own < 0.99 * alone).any()
    assert better >= 3
    for table in found.margins:
        assert found.estimates(table.margin.part)["sd"].to_numpy().max() <= table.law.standard_deviation


def test_fewer_equations_than_there_could_be_are_as_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, every = [], []
    monkeypatch.setattr(joined, "MOST_LINKS", 5)
    for seed in range(40):
        rng = np.random.default_rng(0)
        counts = rng.integers(200, 900, len(LEAVES))  # nothing is pruned: what the variances are about holds
        table = pa.table(dict(zip(TREES, map(list, zip(*LEAVES, strict=True)), strict=True)) | {"n": counts})
        plan = tt.Plan(tt.Spine(ORDERS[0], TREES), tt.Unit("person", neighbours="replace"), tt.Loss(rho=0.02))
        found = tt.make_release(
            plan, table, tt.RunOptions(count="n", testing_key=bytes([seed] * 32), keep_measurements=True)
        )
        for row in found.estimates("kind.group").to_pylist() + found.estimates("margin sex").to_pylist():
            every.append((row["estimate"] - inside(row) @ counts) / row["sd"])
            truth.append(row["sd"])
    assert np.sqrt(np.mean(np.square(every))) == pytest.approx(1, abs=0.12)
    assert min(truth) > 0


def test_estimates_of_the_descent_and_of_margins_are_told_together() -> None:
    found = release(ORDERS[0], "each", 2)
    told = tt.level_differences(found)
    assert [row.name for row in told[-2:]] == ["margin kind.kind", "margin sex"]
    assert told[3].counts == "place state × kind group × sex"
    with pytest.raises(QueryError, match="did you mean 'margin sex'"):
        found.estimates("margin sx")
    with pytest.raises(QueryError, match="no margins"):
        release(ORDERS[0], "none", 2).estimates("margin sex")
