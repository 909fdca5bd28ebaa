"""The six made-up tables have the trees, the pairs and the users of the paper's Table 1."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.kit.paper_tables import (
    LARGEST,
    RANDOM_CHILDREN,
    SEED,
    SHAPE,
    TABLES,
    PaperTable,
    binary_tree,
    paper_table,
    pareto_flows,
    random_tree,
    with_spine,
)
from treetop.release.errors import errors_of

each_table = pytest.mark.parametrize("wanted", TABLES, ids=lambda table: table.name)


@each_table
def test_a_table_has_the_papers_pairs_and_users(wanted: PaperTable) -> None:
    table = paper_table(wanted.tree, wanted.density)
    assert len(table.count) == wanted.pairs
    assert table.trips == wanted.users
    assert (table.count.min(), table.count.max()) == (1, LARGEST)
    key = table.origin.astype(np.int64) * table.sizes[-1] + table.destination
    assert (np.diff(key) > 0).all()


@each_table
def test_the_share_of_leaves_with_a_flow_is_the_papers(wanted: PaperTable) -> None:
    share = {"complete": 1.0, "dense": 0.5, "sparse": 0.01}[wanted.density]
    leaves = paper_table(wanted.tree, wanted.density).sizes[-1] ** 2
    assert wanted.pairs == int(share * leaves)


def test_the_binary_tree_has_two_children_everywhere() -> None:
    assert [len(parent) for parent in binary_tree()] == [2, 4, 8, 16, 32, 64, 128, 256]
    assert all((np.bincount(parent) == 2).all() for parent in binary_tree())


def test_the_random_tree_has_four_levels_and_the_papers_number_of_leaves() -> None:
    parents = random_tree()
    low, high = RANDOM_CHILDREN
    assert len(parents) == 4
    assert len(parents[-1]) == 435
    assert all(low <= np.bincount(parent).min() <= np.bincount(parent).max() <= high for parent in parents)


def test_flows_have_the_tail_of_the_law() -> None:
    flows = pareto_flows(100_000)
    # The least flow that a share of a thousandth exceeds is that of the law, scaled as the largest is.
    scale = (LARGEST - 1) / np.random.RandomState(SEED).pareto(SHAPE, 100_000).max()
    assert np.quantile(flows, 0.999) == pytest.approx(scale * (1_000 ** (1 / SHAPE) - 1), rel=0.1)


def test_a_seed_gives_one_table_and_another_seed_another() -> None:
    one, same, other = (paper_table("binary", "sparse", seed) for seed in (1, 1, 2))
    assert np.array_equal(one.origin, same.origin)
    assert not np.array_equal(one.origin, other.origin)


@pytest.mark.parametrize(("tree", "depth"), [("binary", 16), ("random", 8)])
def test_the_destination_tree_has_the_papers_depth(tree: str, depth: int) -> None:
    spine, counts = with_spine(paper_table(tree, "sparse"))  # type: ignore[arg-type]
    assert len(spine.levels) == depth
    assert spine.levels[0].name == "destination.level1"
    assert errors_of(spine, counts.keys, np.diff(counts.before), counts)[-1].largest == 0


def test_the_counts_are_those_of_the_table() -> None:
    table = paper_table("random", "sparse")
    spine, counts = with_spine(table)
    assert (counts.total, len(counts)) == (table.trips, len(table.count))
    # The leaf that comes first in destination-first order is that of the least destination's region, and so on; the
    # flows into the first top-level area are a range at the front.
    top = table.ancestors("level1")
    into_first = int(table.count[top[table.destination] == 0].sum())
    front = counts.keys[0] >> np.uint64(64 - (spine.levels[0].widest - 1).bit_length()) == 0
    assert int(np.diff(counts.before)[front].sum()) == into_first
