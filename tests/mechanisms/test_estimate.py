"""Estimates: what they hold, their levels, and how often a level does not add up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from treetop.addons.lab.mechanisms.compared import Estimate, LevelEstimate

from . import tables


def estimate_of(spine_name: str = "pairs", rows: int = 30) -> Estimate:
    spine = tables.two_words() if spine_name == "two words" else tables.SPINES[spine_name]()
    counts = tables.table(spine, rows)
    return Estimate(spine, counts.keys, np.diff(counts.before))


def test_an_empty_estimate_has_a_total_of_zero() -> None:
    estimate = estimate_of(rows=0)
    assert estimate.total == 0 and len(estimate) == 0 and estimate.violations() == 0
    assert "0 in 0 leaves" in repr(estimate)


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("name", ["pairs", "two words"])
def test_violations_are_the_nodes_that_differ_from_their_children(name: str, kind: Any) -> None:
    whole = estimate_of(name)
    levels = [tables.at(whole, index) for index in range(len(whole.spine.levels) + 1)]
    levels = [LevelEstimate(level.keys, level.value.astype(kind)) for level in levels]
    leaf: Any = whole.value.astype(kind)
    assert Estimate(whole.spine, whole.keys, leaf, tuple(levels)).violations() == 0
    # A node that changes is at odds with its parent, and with its own children: two nodes; the root has no parent.
    for index, wrong in ((0, 1), (2, 2), (len(levels) - 1, 1)):
        value = levels[index].value.copy()
        value[0] += 1
        changed = [*levels[:index], LevelEstimate(levels[index].keys, value), *levels[index + 1 :]]
        assert Estimate(whole.spine, whole.keys, leaf, tuple(changed)).violations() == wrong
    # A node that is missing counts as zero.
    short = LevelEstimate(tuple(word[1:] for word in levels[2].keys), levels[2].value[1:])
    assert Estimate(whole.spine, whole.keys, leaf, (*levels[:2], short, *levels[3:])).violations() == 2


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        ([3, 2], [1, 1], "spine order"),
        ([2, 2], [1, 1], "each once"),
        ([2, 3], [1, 0], "left out"),
        ([2, 3], [1], "a value"),
    ],
)
def test_an_estimate_that_is_not_one_is_refused(keys: list[int], value: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Estimate(tables.flat(7), (np.array(keys, np.uint64),), np.array(value))


def test_values_are_whole_or_real() -> None:
    with pytest.raises(ValueError, match="int32"):
        Estimate(tables.flat(7), (np.zeros(1, np.uint64),), np.ones(1, np.int32))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="every level"):
        Estimate(tables.flat(7), (np.zeros(1, np.uint64),), np.ones(1, np.int64), levels=())
