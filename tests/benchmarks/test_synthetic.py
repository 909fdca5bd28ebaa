"""The made-up tables have the sizes and the shape that they claim."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest

from benchmarks.synthetic import CAPS, SIZES, OriginDestination, _apportion, italy_like, two_level_square

TRIPS = 200_000
Detail = Literal["municipality", "section"]


@cache
def italy(detail: Detail) -> OriginDestination:
    return italy_like(detail=detail, trips=TRIPS)


@cache
def square() -> OriginDestination:
    return two_level_square(trips=50_000)


def same(one: OriginDestination, other: OriginDestination) -> bool:
    arrays = [(*table.parents, table.origin, table.destination, table.count) for table in (one, other)]
    return one.levels == other.levels and all(map(np.array_equal, *arrays))


def share_within(table: OriginDestination, level: str) -> float:
    place = table.ancestors(level)
    return float(table.count[place[table.origin] == place[table.destination]].sum() / table.trips)


each_table = pytest.mark.parametrize("name", ["municipality", "section", "square"])


def made(name: str) -> OriginDestination:
    if name == "square":
        return square()
    return italy("municipality" if name == "municipality" else "section")


@pytest.mark.parametrize(("detail", "depth"), [("municipality", 3), ("section", 5)])
def test_the_italian_tree_has_the_real_number_of_places_at_each_level(detail: Detail, depth: int) -> None:
    assert italy(detail).sizes == SIZES[:depth]


def test_the_square_has_two_levels_of_the_sizes_asked_for() -> None:
    assert square().sizes == (20, 300)
    assert two_level_square(zones=40, regions=7, trips=100).sizes == (7, 40)


@each_table
def test_children_are_contiguous_and_every_node_has_one(name: str) -> None:
    table = made(name)
    for size, parent in zip((1, *table.sizes), table.parents, strict=False):
        assert set(np.diff(parent)) <= {0, 1}
        assert (parent[0], parent[-1]) == (0, size - 1)


@each_table
def test_pairs_are_distinct_in_order_and_between_leaves(name: str) -> None:
    table = made(name)
    assert table.origin.dtype == table.destination.dtype == np.int32
    assert table.count.dtype == np.int64
    leaves = table.sizes[-1]
    key = table.origin.astype(np.int64) * leaves + table.destination
    assert (np.diff(key) > 0).all()
    assert min(table.origin.min(), table.destination.min()) >= 0
    assert max(table.origin.max(), table.destination.max()) < leaves
    assert table.count.min() >= 1


@pytest.mark.parametrize("trips", [0, 1, 12_345])
def test_the_trips_sum_exactly_to_what_was_asked_for(trips: int) -> None:
    assert two_level_square(trips=trips).trips == trips
    assert italy("municipality").trips == italy("section").trips == TRIPS


def test_both_details_are_the_same_trips() -> None:
    assert same(italy("section").at("municipality"), italy("municipality"))


def test_a_seed_gives_one_table_and_another_seed_another() -> None:
    assert same(italy_like(detail="section", trips=TRIPS), italy("section"))
    assert not same(two_level_square(seed=1, trips=50_000), square())


def test_two_sections_fit_a_64_bit_key() -> None:
    table = italy("section")
    assert all(most <= cap for most, cap in zip(table.fanouts, CAPS, strict=True))
    assert table.key_bits <= 32


def test_sizes_are_skewed() -> None:
    areas = np.bincount(italy("section").parents[3])
    assert np.mean(areas == 1) > 0.5
    assert areas.max() == CAPS[3]


def test_trips_stay_near() -> None:
    table = italy("municipality")
    assert 0.55 < share_within(table, "municipality") < 0.65
    assert 0.92 < share_within(table, "province") < 0.95
    assert 0.98 < share_within(table, "region") < 0.995


@each_table
def test_codes_sort_as_indices_and_start_with_the_parents_code(name: str) -> None:
    table = made(name)
    codes = [table.codes(level) for level in table.levels]
    for code in codes:
        assert (code[1:] > code[:-1]).all()
    for (above, below), parent in zip(pairwise(codes), table.parents[1:], strict=True):
        assert np.strings.startswith(below, above[parent]).all()


def test_the_place_table_has_a_row_a_leaf_and_a_column_a_level() -> None:
    table = italy("section")
    places = table.place_table()
    assert tuple(places.column_names) == table.levels
    assert places.num_rows == table.sizes[-1]
    assert places["section"].to_pylist() == table.codes("section").tolist()
    assert len(places["area"].unique()) == table.sizes[-2]
    assert places["region"][-1].as_py() == "20"


@pytest.mark.parametrize("seed", [None, 0])
def test_records_count_back_to_the_table(seed: int | None) -> None:
    table = square()
    origin, destination = table.records(seed)
    assert origin.dtype == destination.dtype == np.int32
    assert (np.diff(origin) >= 0).all() == (seed is None)
    counts = np.zeros((300, 300), dtype=np.int64)
    np.add.at(counts, (origin, destination), 1)
    assert (counts[table.origin, table.destination] == table.count).all()
    assert counts.sum() == table.trips


def test_apportioned_children_respect_the_cap_and_weigh_in() -> None:
    assert _apportion(10, np.array([1.0, 0.0, 100.0, 1.0]), most=5).tolist() == [2, 1, 5, 2]
    assert _apportion(8, np.zeros(4), most=2).tolist() == [2, 2, 2, 2]
    with pytest.raises(ValueError, match="1 to 2 each"):
        _apportion(9, np.ones(4), most=2)
