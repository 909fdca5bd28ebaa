"""Derived tables: what follows from released sizes, at any level."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from treetop import GroupSizes, GroupTables, GroupUnit
from treetop.errors import QueryError

PLACES = tt.Hierarchy.from_prefixes(["a1", "a2", "b1"], [1], ["state", "county"])
NUMBER = np.array([[5, 4, 0, 1], [0, 0, 2, 0], [7, 0, 0, 0]])


@pytest.fixture(scope="module")
def release() -> tt.Release:
    """A release that is almost surely the truth."""
    unit = GroupUnit("person", event="join-leave")
    plan = tt.group_plan(PLACES, 3, unit, tt.Loss(epsilon=1000), rows="histogram", number=19, confidence=None)
    return tt.make_release(plan, GroupSizes(PLACES, NUMBER))


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def test_sizes_are_in_the_order_of_their_numbers() -> None:
    plan = tt.group_plan(PLACES, 11, GroupUnit("person", event="move"), tt.Loss(epsilon=1000), rows="groups", number=12)
    table = pa.table({"place": ["a1"] * 12, "size": list(range(11, -1, -1))})
    assert tt.make_release(plan, table).table("size", intervals=False).to_pydict() == {
        "size": [f"{size:02}" for size in range(12)], "count": [1] * 12
    }  # fmt: skip


def test_a_release_of_group_sizes_answers_as_any_other(release: tt.Release) -> None:
    assert release.total == 19 and release.query(place="a", size="1") == 4
    assert rows(release.table("place.state")) == [("a", 12), ("b", 7)]
    assert rows(release.level("place.state")) == [
        ("0", "a", 5), ("0", "b", 7), ("1", "a", 4), ("2", "a", 2), ("3", "a", 1)
    ]  # fmt: skip


def test_cumulative_sizes_end_at_the_number_of_groups(release: tt.Release) -> None:
    table = GroupTables(release).cumulative("place.state")
    assert rows(table)[:4] == [("a", "0", 5), ("a", "1", 9), ("a", "2", 11), ("a", "3 or more", 12)]
    assert table["groups"].to_pylist()[4:] == [7, 7, 7, 7]
    assert rows(GroupTables(release).cumulative()) == [("0", 12), ("1", 16), ("2", 18), ("3 or more", 19)]


def test_people_means_and_shares_are_of_groups_with_somebody_in_them(release: tt.Release) -> None:
    tables = GroupTables(release)
    assert rows(tables.people("place.county")) == [("a1", 7), ("a2", 4), ("b1", 0)]
    assert rows(tables.people()) == [(11,)]
    assert rows(tables.mean_size("place.state")) == [("a", 11 / 7), ("b", None)]
    assert rows(tables.share_of_one("place.county")) == [("a1", 0.8), ("a2", 0.0), ("b1", None)]
    assert rows(GroupTables(release.where(place="a2")).mean_size()) == [(2.0,)]


def test_what_cannot_be_derived_is_refused(release: tt.Release) -> None:
    with pytest.raises(QueryError, match="did you mean 'people'"):
        GroupTables(release).table("peple")
    with pytest.raises(QueryError, match="the size itself"):
        GroupTables(release).people("size")
    plain = tt.Plan(tt.Spine(["place.state"], {"place": PLACES}), tt.Unit("person", neighbours="replace"),
                    tt.Loss(epsilon=1))  # fmt: skip
    other = tt.make_release(plain, pa.table({"place": ["a1", "b1"]}))
    with pytest.raises(QueryError, match="not of group sizes"):
        GroupTables(other)
