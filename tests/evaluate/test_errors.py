"""Errors of a release against the truth, compared with a plain count of both."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from treetop.data.encode import read_counts
from treetop.evaluate.errors import LevelErrors, measure_errors, plot_errors

WIDE = [f"{i:05d}" for i in range(3000)]


def spine_of(attributes: int) -> tt.Spine:
    """With six attributes of 3,000 codes the path of a leaf takes two words."""
    tree = tt.Hierarchy.from_prefixes(WIDE, widths=[2], levels=["group", "code"])
    names = [f"a{i}" for i in range(attributes)]
    splits = [f"{name}.{level}" for level in ("group", "code") for name in names]
    return tt.Spine(splits, dict.fromkeys(names, tree))


def table_of(spine: tt.Spine, rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    codes = np.array(WIDE)
    return pa.table({name: codes[rng.zipf(1.5, rows) % 60] for name in spine.attributes})


def by_hand(release: tt.Release, truth: pa.Table) -> list[tuple[int, float, float, float]]:
    spine, rows = release.spine, []
    for index in range(1, len(spine.levels) + 1):
        depths = spine.depths(index)

        def node(row: tuple[str, ...], depths: tuple[int, ...] = depths) -> tuple[str, ...]:
            return tuple(
                "" if depth == 0 else code[:2] if depth == 1 else code for code, depth in zip(row, depths, strict=True)
            )

        def count(table: pa.Table, weights: list[int]) -> Counter[tuple[str, ...]]:
            counts: Counter[tuple[str, ...]] = Counter()
            columns = [table[name].to_pylist() for name in spine.attributes]
            for row, weight in zip(zip(*columns, strict=True), weights, strict=True):
                counts[node(row)] += weight
            return counts

        released = count(release.table(), release.count.tolist())
        true = count(truth, [1] * truth.num_rows)
        errors = [abs(released[key] - true[key]) for key in {*released, *true}]
        discoveries = sum(key not in true for key in released) / len(released)
        negatives = sum(key not in released for key in true) / len(true)
        rows.append((max(errors), sum(errors) / len(errors), discoveries, negatives))
    return rows


@pytest.mark.parametrize("attributes", [1, 2, 6])
def test_errors_are_those_of_a_plain_count(attributes: int) -> None:
    spine = spine_of(attributes)
    truth = table_of(spine, 500, 1)
    plan = tt.Plan(spine, tt.Unit("row", neighbours="replace"), tt.Loss(rho=5))
    release = plan.release(truth)
    rows = measure_errors(release, read_counts(truth, spine))
    assert (rows[0].name, rows[0].largest) == ("total", 0)
    for row, expected in zip(rows[1:], by_hand(release, truth), strict=True):
        found = (row.largest, row.mean, row.false_discoveries, row.false_negatives)
        assert found == pytest.approx(expected)


def _sizes(row: LevelErrors) -> list[int]:
    return [bias.nodes for bias in row.biases]


def test_biases_of_all_sizes_add_up_to_the_difference_of_the_totals() -> None:
    spine = spine_of(2)
    truth = table_of(spine, 2000, 2)
    plan = tt.Plan(spine, tt.Unit("row", neighbours="add-remove"), tt.Loss(rho=0.5))
    release = plan.release(truth)
    for row in measure_errors(release, read_counts(truth, spine)):
        assert sum(_sizes(row)) == row.nodes
        off = sum((bias.bias or 0) * bias.nodes for bias in row.biases)
        assert off == pytest.approx(release.total - 2000)


def test_the_truth_itself_has_no_error_and_nothing_against_nothing_neither() -> None:
    spine = spine_of(1)
    plan = tt.Plan(spine, tt.Unit("row", neighbours="replace"), tt.Loss(rho=1))
    release = plan.release(table_of(spine, 300, 3))
    for row in measure_errors(release, read_counts(release.records(), spine)):
        assert (row.largest, row.mean, row.false_discoveries, row.false_negatives) == (0, 0, 0, 0)
    empty = plan.release(table_of(spine, 0, 3))
    for row in measure_errors(empty, read_counts(table_of(spine, 0, 3), spine)):
        assert (row.largest, row.mean) == (0, 0)


def test_a_plot_is_drawn_to_the_file_that_is_named(tmp_path: Path) -> None:
    spine = spine_of(2)
    truth = table_of(spine, 300, 4)
    release = tt.Plan(spine, tt.Unit("row", neighbours="replace"), tt.Loss(rho=1)).release(truth)
    plot_errors(measure_errors(release, read_counts(truth, spine)), tmp_path / "errors.png", "Rows")
    assert (tmp_path / "errors.png").read_bytes().startswith(b"\x89PNG")
