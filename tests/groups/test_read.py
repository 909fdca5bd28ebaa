"""Reading group sizes: people, groups and histograms from any source give the same counts; bad rows are named."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop import GroupList, GroupSizes, GroupUnit, Hierarchy, Loss, Source
from treetop.counts.group_reader import GroupColumns, GroupTableReader, Rows
from treetop.errors import DataError

PLACES = Hierarchy.from_prefixes(["a1", "a2", "b1"], [1], ["state", "county"])
HOMES = {"h1": "a1", "h2": "a1", "h3": "b1", "h4": "a2", "h5": "b1"}
PEOPLE = ["h1", "h1", "h1", "h3", "h5", "h1", "h5"]
EXPECTED = [[1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 1, 0]]
"""Sizes 4, 0, 1, 0, 2 with 3 as the largest, by a1, a2 and b1."""

LIST = pa.table({"group": list(HOMES), "region": list(HOMES.values())})
PEOPLE_TABLE = pa.table({"person": [f"p{i}" for i in range(7)], "group": PEOPLE, "place": [HOMES[h] for h in PEOPLE]})
GROUPS_TABLE = pa.table({"group": list(HOMES), "place": list(HOMES.values()), "size": [4, 0, 1, 0, 2]})
HISTOGRAM = pa.table({"place": ["a1", "a1", "a2", "b1", "b1"], "size": [0, 4, 0, 1, 2], "number": [1, 1, 1, 1, 1]})


def listed() -> GroupList:
    return GroupList.read(LIST, PLACES)


def reader(rows: Rows, with_list: bool = False, groups: int = 5, most: int = 1, **columns: str) -> GroupTableReader:
    return GroupTableReader(PLACES, 3, rows, GroupColumns(**columns), groups, listed() if with_list else None, most)


def read(table: Any, rows: Rows, with_list: bool = False, **columns: Any) -> list[list[int]]:
    number: list[list[int]] = reader(rows, with_list, **columns).read(table).number.tolist()
    return number


def test_people_groups_and_histograms_give_the_same_sizes() -> None:
    assert read(PEOPLE_TABLE, "people", True, group="group", region="place", person="person") == EXPECTED
    assert read(PEOPLE_TABLE, "people", True, group="group") == EXPECTED
    assert read(GROUPS_TABLE, "groups", region="place", size="size", group="group") == EXPECTED
    assert read(GROUPS_TABLE, "groups", region="place", size="size") == EXPECTED
    assert read(HISTOGRAM, "histogram", region="place", size="size", number="number") == EXPECTED


def test_groups_that_only_the_list_has_are_empty() -> None:
    occupied = GROUPS_TABLE.take([0, 2, 4])
    assert read(occupied, "groups", True, region="place", size="size", group="group") == EXPECTED
    assert read(occupied, "groups", True, region="place", size="size") == EXPECTED
    some = HISTOGRAM.take([1, 3, 4])
    assert read(some, "histogram", True, region="place", size="size", number="number") == EXPECTED
    nobody = PEOPLE_TABLE.slice(0, 0)
    assert np.sum(read(nobody, "people", True, group="group"), axis=0).tolist() == [5, 0, 0, 0]


def test_quantities_are_summed() -> None:
    works = PEOPLE_TABLE.append_column("works", pa.array([1, 0, 1, 1, 0, 0, 0]))
    sizes = read(works, "people", True, group="group", quantity="works")
    assert sizes == [[1, 0, 1, 0], [1, 0, 0, 0], [1, 1, 0, 0]]
    hours = PEOPLE_TABLE.append_column("hours", pa.array([2, 0, 1, 2, 0, 0, 0]))
    assert read(hours, "people", True, most=2, group="group", quantity="hours")[0] == [1, 0, 0, 1]


@pytest.mark.parametrize("kind", ["csv", "parquet", "sqlite"])
def test_files_and_databases_are_read_as_other_tables_are(kind: str, tmp_path: Path) -> None:
    file = tmp_path / f"homes.{kind}"
    rows = GROUPS_TABLE.to_pylist()
    if kind == "csv":
        lines = ["group,place,size", *(",".join(map(str, row.values())) for row in rows)]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif kind == "parquet":
        pq.write_table(GROUPS_TABLE, file)
    else:
        with sqlite3.connect(file) as base:
            base.execute("create table homes (grp text, place text, size integer)")
            base.executemany("insert into homes values (?, ?, ?)", [tuple(row.values()) for row in rows])
    source = Source(file, query='select grp as "group", place, size from homes') if kind == "sqlite" else Source(file)
    assert read(source, "groups", region="place", size="size", group="group") == EXPECTED


def test_a_region_tree_of_any_depth_will_do() -> None:
    deep = Hierarchy.from_prefixes(["aa1x", "aa1y", "ab2x"], [1, 2, 3])
    own = GroupTableReader(deep, 2, "groups", GroupColumns(region="place", size="size"), 2)
    sizes = own.read(pa.table({"place": ["ab2x", "aa1y"], "size": [7, 0]}))
    assert sizes.number.tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 1]]


BAD_GROUPS: list[tuple[dict[str, list[Any]], str]] = [
    ({"size": [4, -1, 1, 0, 2]}, r"column 'size', row 2: the size -1 is negative"),
    ({"size": [4, 0, 1.5, 0, 2]}, r"column 'size', row 3: the size 1.5 is not a whole number"),
    ({"size": ["4", "0", "1", "few", "2"]}, r"column 'size', row 4: the size 'few' is not a whole number"),
    ({"size": [4, None, 1, 0, 2]}, r"column 'size', row 2: the size is missing"),
    ({"place": ["a1", "zz", "b1", "a2", "b1"]}, r"column 'place', row 2: 'zz' is not a county code"),
    ({"place": ["a1", "a1", "b1", "a2", None]}, r"column 'place', row 5: the region is missing"),
    ({"group": ["h1", "h2", "h1", "h4", "h5"]}, r"row 3: the group 'h1' is in two regions, 'a1' in row 1 and 'b1'"),
    ({"group": ["h1", "h1", "h3", "h4", "h5"]}, r"row 2: the group 'h1' stands twice, first in row 1"),
    ({"group": ["h1", "", "h3", "h4", "h5"]}, r"column 'group', row 2: the id is missing"),
]


@pytest.mark.parametrize(("change", "message"), BAD_GROUPS)
def test_bad_rows_of_groups_are_named(change: dict[str, list[Any]], message: str) -> None:
    table = pa.table({**GROUPS_TABLE.to_pydict(), **change})
    with pytest.raises(DataError, match=message):
        read(table, "groups", region="place", size="size", group="group")


BAD_PEOPLE: list[tuple[dict[str, list[Any]], str]] = [
    ({"group": [*PEOPLE[:6], "h9"]}, r"column 'group', row 7: the group 'h9' is not on the public list"),
    ({"place": ["a2", "a1", "a1", "b1", "b1", "a1", "b1"]}, r"row 1: the group 'h1' is in two regions, 'a2' here"),
    ({"person": ["p0", "p1", "p0", "p3", "p4", "p5", "p6"]}, r"column 'person', row 3: the person 'p0' stands twice"),
    ({"works": [1, 0, 2, 0, 1, 1, 1]}, r"column 'works', row 3: the value is 2, above the 1"),
    ({"works": [1, 0, -1, 0, 1, 1, 1]}, r"column 'works', row 3: the value -1 is negative"),
]


@pytest.mark.parametrize(("change", "message"), BAD_PEOPLE)
def test_bad_rows_of_people_are_named(change: dict[str, list[Any]], message: str) -> None:
    table = pa.table({**PEOPLE_TABLE.to_pydict(), "works": [1] * 7, **change})
    with pytest.raises(DataError, match=message):
        read(table, "people", True, group="group", region="place", person="person", quantity="works")


def test_a_list_that_does_not_cover_the_data_is_refused() -> None:
    many = pa.table({"place": ["a2"], "size": [1], "number": [3]})
    with pytest.raises(DataError, match=r"the region 'a2' has 3 groups in the table, but only 1 on the public list"):
        read(many, "histogram", True, region="place", size="size", number="number")


def test_a_table_with_another_number_of_groups_than_is_public_is_refused() -> None:
    own = GroupTableReader(PLACES, 3, "histogram", GroupColumns(region="place", size="size", number="number"), 6)
    with pytest.raises(DataError, match=r"the table has 5 groups, but the plan says that there are 6"):
        own.read(HISTOGRAM)


def test_sizes_that_are_given_as_they_are_must_fit_the_public_list_in_every_region() -> None:
    unit = GroupUnit("person", "join-leave")
    plan = tt.group_plan(PLACES, 3, unit, Loss(epsilon=1), rows="groups", listed=listed(), public="regions")
    asked: list[str] = []
    elsewhere = GroupSizes(PLACES, np.array([[2, 0, 0, 1], [0, 0, 0, 0], [0, 1, 1, 0]]))
    with pytest.raises(DataError, match="not as many as on the public list"):
        tt.make_release(
            plan, elsewhere, tt.RunOptions(before_measuring=lambda: asked.append("spent"), testing_key=bytes(32))
        )
    assert not asked
    assert (
        tt.make_release(plan, GroupSizes(PLACES, np.array(EXPECTED)), tt.RunOptions(testing_key=bytes(32))).total == 5
    )


def test_people_without_a_list_are_refused() -> None:
    with pytest.raises(DataError, match="which groups are empty"):
        reader("people", group="group")


def test_a_list_names_each_group_once() -> None:
    twice = pa.table({"group": ["h1", "h2", "h1"], "region": ["a1", "a1", "b1"]})
    with pytest.raises(DataError, match="row 3: the group 'h1' is in two regions"):
        GroupList.read(twice, PLACES)
    with pytest.raises(DataError, match="'zz' is not a county code"):
        GroupList.read(pa.table({"group": ["h1"], "region": ["zz"]}), PLACES)


def test_the_hash_of_a_list_does_not_depend_on_the_order_of_its_rows() -> None:
    other = GroupList.read(LIST.take([4, 2, 0, 1, 3]), PLACES)
    assert other.digest == listed().digest
    moved = pa.table({"group": list(HOMES), "region": ["a2", *list(HOMES.values())[1:]]})
    assert GroupList.read(moved, PLACES).digest != other.digest
