"""Errors of a resolved release: what is left at a node counts there and above, and nowhere below."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from treetop.counts.counts import pack
from treetop.counts.reading import read_counts
from treetop.release.errors import errors_of, measure_errors

CODES = [f"{i:04d}" for i in range(600)]
Node = tuple[str | None, ...]


def spine_of(attributes: int) -> tt.Spine:
    """With six attributes of 600 codes the path of a leaf takes two words."""
    tree = tt.Hierarchy.from_prefixes(CODES, widths=[2, 3], levels=["group", "part", "code"])
    names = [f"a{i}" for i in range(attributes)]
    splits = [f"{name}.{level}" for level in ("group", "part", "code") for name in names]
    return tt.Spine(splits, dict.fromkeys(names, tree))


def table_of(spine: tt.Spine, rows: int) -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table({name: np.array(CODES)[rng.zipf(1.3, rows) % 300] for name in spine.attributes})


def nodes_at(spine: tt.Spine, index: int, rows: list[dict[str, Any]]) -> dict[Node, int]:
    """Sum rows by their codes at a level; a remainder further up is in no node."""
    found: Counter[Node] = Counter()
    widths = [(None, 2, 3, 4)[depth] for depth in spine.depths(index)]
    for row in rows:
        if row.get("level", len(spine.levels)) >= index:
            codes = (row[name] for name in spine.attributes)
            node = tuple(None if width is None else code[:width] for code, width in zip(codes, widths, strict=True))
            found[node] += row["count"]
    return dict(found)


@pytest.mark.parametrize("attributes", [1, 2, 6])
@pytest.mark.parametrize("resolve", [{"sigmas": 2}, {"fdr": 0.1}], ids=str)
def test_errors_are_those_of_a_plain_count(attributes: int, resolve: Any) -> None:
    spine, truth = spine_of(attributes), table_of(spine_of(attributes), 3000)
    plan = tt.Plan(spine, tt.Unit("row", neighbours="replace"), tt.Loss(rho=0.1 * attributes), resolve=resolve)
    release = tt.make_release(plan, truth, tt.RunOptions(testing_key=bytes(32)))
    assert release.unresolved().num_rows > 5
    ours = [*release.table().to_pylist(), *release.unresolved().to_pylist()]
    theirs = [row | {"count": 1} for row in truth.to_pylist()]
    rows = measure_errors(release, read_counts(truth, spine))
    assert (rows[0].largest, rows[0].resolved) == (0, 1)
    for row in rows:
        released, true = nodes_at(spine, row.level, ours), nodes_at(spine, row.level, theirs)
        errors = {node: abs(released.get(node, 0) - true.get(node, 0)) for node in {*released, *true}}
        named = [errors[node] for node in released]
        invented = set(released) - set(true)
        assert (row.true_nodes, row.released_nodes) == (len(true), len(released))
        assert (row.largest, row.largest_released) == (max(errors.values()), max(named, default=0))
        assert row.mean == pytest.approx(sum(errors.values()) / len(errors))
        assert row.mean_released == pytest.approx(sum(named) / max(len(named), 1))
        assert row.false_discoveries == pytest.approx(len(invented) / max(len(released), 1))
        mass = sum(released[node] for node in invented)
        assert row.false_mass == pytest.approx(mass / max(sum(released.values()), 1))
        assert row.false_negatives == pytest.approx(len(set(true) - set(released)) / len(true))
        assert row.resolved == pytest.approx(sum(released.values()) / 3000)
        assert row.to_dict()["resolved"] == row.resolved


def test_what_is_resolved_never_grows_with_depth_and_is_all_of_a_full_release() -> None:
    spine = spine_of(2)
    truth = table_of(spine, 3000)
    counts = read_counts(truth, spine)
    shares = {}
    for resolve in ("full", {"sigmas": 2}, {"sigmas": 4}):
        plan = tt.Plan(spine, tt.Unit("row", neighbours="add-remove"), tt.Loss(rho=2), resolve=resolve)
        rows = measure_errors(tt.make_release(plan, truth, tt.RunOptions(testing_key=bytes(32))), counts)
        shares[str(resolve)] = [row.resolved for row in rows]
    assert shares["full"] == [1.0] * 7
    for resolved in (shares["{'sigmas': 2}"], shares["{'sigmas': 4}"]):
        assert resolved == sorted(resolved, reverse=True)
        assert resolved[0] == 1 > resolved[-1] > 0


def test_an_estimate_without_remainders_is_resolved_whatever_its_sum() -> None:
    spine = spine_of(1)
    (keys,) = pack(spine, [np.array([1, 2])])
    truth = read_counts(table_of(spine, 10), spine)
    for values in (np.array([5, -5]), np.array([0.5, 0.25]), np.array([-3, -4])):
        assert [row.resolved for row in errors_of(spine, [keys], values, truth)] == [1.0] * 4
