"""Counts: only what is present, sorted in spine order, for paths of any length."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from treetop import Counts, Hierarchy, Spine
from treetop.counts.counts import layout, packed_paths
from treetop.errors import DataError

PLACE = Hierarchy.from_prefixes(["AX", "AY", "AZ", "BX"], widths=[1], levels=["state", "county"])
SPINE = Spine.destination_first(origin=PLACE, destination=PLACE)


def wide_spine(attributes: int) -> Spine:
    tree = Hierarchy.from_prefixes([f"{i:04d}" for i in range(3_000)], widths=[2], levels=["big", "small"])
    names = [f"a{i}" for i in range(attributes)]
    order = [f"{name}.big" for name in names] + [f"{name}.small" for name in names]
    return Spine(order, dict.fromkeys(names, tree))


def unpacked(spine: Spine, counts: Counts) -> list[tuple[int, ...]]:
    """The ranks of every leaf, read back from the keys."""
    return [
        tuple(int(counts.keys[d.word][row] >> np.uint64(d.shift)) & (2**d.bits - 1) for d in layout(spine))
        for row in range(len(counts))
    ]


def test_equal_leaves_are_one_and_in_spine_order() -> None:
    destination, origin = np.array([3, 0, 0, 2, 0]), np.array([0, 1, 3, 2, 1])
    counts = Counts.from_leaves(SPINE, [destination, origin])
    # destination.state, origin.state, destination.county, origin.county
    assert unpacked(SPINE, counts) == [(0, 0, 0, 1), (0, 0, 2, 2), (0, 1, 0, 0), (1, 0, 0, 0)]
    assert np.diff(counts.before).tolist() == [2, 1, 1, 1]
    assert counts.total == 5


def test_rows_with_counts_and_records_agree() -> None:
    rng = np.random.default_rng(1)
    leaves = [rng.integers(0, 4, 200), rng.integers(0, 4, 200)]
    weight = rng.integers(0, 4, 200)
    weighted = Counts.from_leaves(SPINE, leaves, weight)
    records = Counts.from_leaves(SPINE, [np.repeat(leaf, weight) for leaf in leaves])
    assert weighted.digest == records.digest
    assert weighted.total == int(weight.sum())


def test_the_arrays_of_the_caller_are_left_alone() -> None:
    rng = np.random.default_rng(2)
    leaves, weight = [rng.integers(0, 4, 50), rng.integers(0, 4, 50)], rng.integers(1, 9, 50)
    before = [leaf.copy() for leaf in (*leaves, weight)]
    Counts.from_leaves(SPINE, leaves, weight)
    assert all(np.array_equal(one, other) for one, other in zip((*leaves, weight), before, strict=True))


@pytest.mark.parametrize("attributes", [2, 4, 10])
def test_paths_longer_than_a_word_sort_like_short_ones(attributes: int) -> None:
    spine = wide_spine(attributes)
    rng = np.random.default_rng(attributes)
    leaves = [rng.integers(0, 3_000, 500) for _ in range(attributes)]
    counts = Counts.from_leaves(spine, leaves)
    assert (len(counts.keys) > 1) == (attributes > 4)
    expected = sorted({tuple(row) for row in np.array(_ranks(spine, leaves)).T.tolist()})
    assert unpacked(spine, counts) == expected


def _ranks(spine: Spine, leaves: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    ranks = []
    for level in spine.levels:
        (part,) = level.parts
        node = spine.trees[part.attribute].ancestors(part.depth)[leaves[part.attribute]]
        parent = np.searchsorted(part.first, node, side="right") - 1
        ranks.append(node - part.first[parent])
    return ranks


def test_a_level_with_one_child_each_takes_no_bits() -> None:
    spine = Spine(["one", "place.state"], {"one": Hierarchy.flat(["x"]), "place": PLACE})
    assert [digit.bits for digit in layout(spine)] == [0, 1]
    assert packed_paths(spine)[0][0] is None


def test_an_empty_table_has_a_total_of_zero() -> None:
    nothing = np.empty(0, np.int64)
    assert Counts.from_leaves(SPINE, [nothing, nothing]).total == 0
    assert len(Counts.from_leaves(SPINE, [nothing, nothing], nothing)) == 0


def test_zeros_are_not_held() -> None:
    leaf = np.array([0, 1])
    assert len(Counts.from_leaves(SPINE, [leaf, leaf], np.array([0, 5]))) == 1


@pytest.mark.parametrize(("count", "message"), [(-1, "row 2 has the count -1"), (2**53 + 1, "2\\^53")])
def test_impossible_counts_are_refused(count: int, message: str) -> None:
    leaf = np.array([0, 1])
    with pytest.raises(DataError, match=message):
        Counts.from_leaves(SPINE, [leaf, leaf], np.array([1, count]))


def test_counts_that_overflow_together_are_refused() -> None:
    leaf = np.zeros(4096, np.int64)
    with pytest.raises(DataError, match="2\\^53"):
        Counts.from_leaves(SPINE, [leaf, leaf], np.full(4096, 2**53))


def test_the_repr_tells_nothing_private() -> None:
    leaf = np.array([0, 1])
    assert repr(Counts.from_leaves(SPINE, [leaf, leaf])) == "Counts(private)"
