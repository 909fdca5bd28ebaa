"""Hierarchies: read from every form, numbered depth first, refused when they are not trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from treetop import Hierarchy
from treetop.errors import HierarchyError

PLACES = pa.table(
    {"region": ["S", "N", "N", "N"], "province": ["S1", "N2", "N1", "N1"], "town": ["s1a", "n2a", "n1b", "n1a"]}
)
LEVELS = ["region", "province", "town"]


@pytest.fixture
def places() -> Hierarchy:
    return Hierarchy.from_table(PLACES, LEVELS)


def test_nodes_are_numbered_depth_first_and_by_code(places: Hierarchy) -> None:
    assert [codes.to_pylist() for codes in places.codes] == [
        ["N", "S"],
        ["N1", "N2", "S1"],
        ["n1a", "n1b", "n2a", "s1a"],
    ]
    assert [first.tolist() for first in places.first] == [[0, 2], [0, 2, 3], [0, 2, 3, 4]]


def test_the_order_and_repetition_of_rows_do_not_matter(places: Hierarchy) -> None:
    shuffled = PLACES.take([3, 1, 0, 2, 2, 0])
    assert Hierarchy.from_table(shuffled, LEVELS).digest == places.digest


def test_a_different_tree_has_a_different_digest(places: Hierarchy) -> None:
    moved = PLACES.set_column(1, "province", pa.array(["S1", "N2", "N1", "N2"]))
    assert Hierarchy.from_table(moved, LEVELS).digest != places.digest
    assert places.select(["region", "town"]).digest != places.digest


def test_a_table_reads_back_what_it_wrote(places: Hierarchy) -> None:
    assert Hierarchy.from_table(places.to_table(), LEVELS).digest == places.digest


def test_ranges_and_ancestors_agree(places: Hierarchy) -> None:
    for depth, size in enumerate(places.sizes):
        ancestors = places.ancestors(depth)
        for node in range(size):
            start, stop = places.below(depth, node)
            assert np.flatnonzero(ancestors == node).tolist() == list(range(start, stop))
    assert places.below(0, 0, finer=1) == (0, 2)


def test_selecting_levels_skips_what_lies_between(places: Hierarchy) -> None:
    short = places.select(["region", "town"])
    assert short.first[1].tolist() == [0, 3, 4]
    assert places.select(["province"]).first[0].tolist() == [0, 3]
    assert places.select(LEVELS) is places
    with pytest.raises(HierarchyError, match="coarse to fine"):
        places.select(["town", "region"])


def test_a_code_is_found_at_every_level_that_has_it() -> None:
    tree = Hierarchy.from_table(pa.table({"province": ["Milano"], "town": ["Milano"]}), ["province", "town"])
    assert tree.find("Milano") == [(0, 0), (1, 0)]
    assert tree.find("Roma") == []


def test_codes_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "places.csv"
    path.write_text("state,county\n01,01001\n01,01003\n02,None\n", encoding="utf-8")
    tree = Hierarchy.from_table(path, ["state", "county"])
    assert tree.codes[1].to_pylist() == ["01001", "01003", "None"]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_are_recognised(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "places.csv"
    path.write_text(f"state{delimiter}county\r\n01{delimiter}01001\r\n", encoding="utf-8-sig")
    assert Hierarchy.from_table(path, ["state", "county"]).codes[1].to_pylist() == ["01001"]


def test_parents_and_table_give_the_same_tree(places: Hierarchy) -> None:
    edges = {"n1a": "N1", "n1b": "N1", "n2a": "N2", "s1a": "S1", "N1": "N", "N2": "N", "S1": "S", "N": None, "S": ""}
    table = pa.table({"code": list(edges), "up": list(edges.values())})
    assert Hierarchy.from_parents(table, "code", "up", levels=LEVELS).digest == places.digest


def test_a_top_code_needs_no_row_of_its_own() -> None:
    tree = Hierarchy.from_parents(pa.table({"child": ["a", "b"], "parent": ["top", "top"]}))
    assert [codes.to_pylist() for codes in tree.codes] == [["top"], ["a", "b"]]


def test_prefixes_make_levels() -> None:
    tree = Hierarchy.from_prefixes(["02013", "01003", "01001"], widths=[2])
    assert tree.levels == ("digits2", "digits5")
    assert [codes.to_pylist() for codes in tree.codes] == [["01", "02"], ["01001", "01003", "02013"]]
    assert Hierarchy.from_prefixes(["02013"], widths=[2, 5]).sizes == (1, 1)


def test_ragged_branches_are_an_error_with_a_suggestion() -> None:
    ragged = pa.table({"region": ["A", "B"], "town": ["a1", None]})
    with pytest.raises(HierarchyError, match="row 2 has no code at level 'town' under 'B'.*ragged = \"repeat\""):
        Hierarchy.from_table(ragged, ["region", "town"])


def test_ragged_branches_can_repeat_their_code_down() -> None:
    ragged = pa.table({"region": ["A", "A", "B"], "town": ["a1", "a2", ""], "street": ["s", None, None]})
    tree = Hierarchy.from_table(ragged, ["region", "town", "street"], ragged="repeat")
    assert tree.codes[2].to_pylist() == ["s", "a2", "B"]
    uneven = pa.table({"child": ["a", "b"], "parent": ["top", None]})
    assert Hierarchy.from_parents(uneven, ragged="repeat").codes[1].to_pylist() == ["b", "a"]


@pytest.mark.parametrize(
    ("columns", "levels", "message"),
    [
        ({"r": ["A", "B"], "t": ["x", "x"]}, ["r", "t"], "'x' of level 't' has two parents, 'A' and 'B'"),
        ({"r": ["A"], "t": ["x"]}, ["r", "r"], "'r' is given twice"),
        ({"r": ["A"]}, [], "names of the levels"),
        ({"r": ["A"]}, [""], "level 1 has no name"),
        ({"r": ["A"]}, ["region"], "no column 'region'"),
        ({"r": pa.array([], pa.string())}, ["r"], "empty"),
        ({"r": [None, "A"]}, ["r"], "row 1 has no code at the coarsest level"),
        ({"r": [1.5]}, ["r"], "holds double, not codes"),
    ],
)
def test_a_table_that_is_no_tree_is_refused(columns: dict[str, Any], levels: list[str], message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        Hierarchy.from_table(pa.table(columns), levels)


@pytest.mark.parametrize(
    ("child", "parent", "message"),
    [
        (["a", "b", "c"], ["b", "c", "a"], "circle: a → b → c → a"),
        (["a"], ["a"], "circle: a → a"),
        (["x", "a", "b"], [None, "b", "a"], "circle"),
        (["a", "a"], ["b", "c"], "'a' has two parents"),
        (["a", "a"], ["b", None], "'a' has two parents, none and 'b'|'a' has two parents, 'b' and none"),
        ([None], ["a"], "row 1 has no child code"),
        (["a", "b"], [None, "a"], None),
    ],
)
def test_parents_that_are_no_tree_are_refused(
    child: list[str | None], parent: list[str | None], message: str | None
) -> None:
    table = pa.table({"child": pa.array(child, pa.string()), "parent": pa.array(parent, pa.string())})
    if message is None:
        assert Hierarchy.from_parents(table).sizes == (1, 1)
        return
    with pytest.raises(HierarchyError, match=message):
        Hierarchy.from_parents(table)


def test_codes_of_mixed_length_are_refused_with_a_padding_suggestion() -> None:
    with pytest.raises(HierarchyError, match="write all codes with 5 digits: '01001' for '1001'"):
        Hierarchy.from_prefixes(["1001", "12001"], widths=[2])


@pytest.mark.parametrize("widths", [[3, 2], [0], [9], [2, 2]])
def test_widths_that_do_not_increase_within_the_code_are_refused(widths: list[int]) -> None:
    with pytest.raises(HierarchyError, match="must increase"):
        Hierarchy.from_prefixes(["01001"], widths=widths)


def test_an_empty_hierarchy_is_refused() -> None:
    with pytest.raises(HierarchyError, match="empty"):
        Hierarchy.flat([])
    with pytest.raises(HierarchyError, match="empty"):
        Hierarchy.from_prefixes([], widths=[])


def test_codes_that_are_not_text_are_refused() -> None:
    with pytest.raises(HierarchyError, match="leading zeros count"):
        Hierarchy.flat([1001])  # type: ignore[list-item]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match="nowhere.csv: no such file"):
        Hierarchy.from_table(tmp_path / "nowhere.csv", ["a"])


def test_a_million_codes_load() -> None:
    codes = np.strings.zfill(np.arange(1_000_000).astype("U7"), 7)
    tree = Hierarchy.from_table(
        pa.table({"a": pa.array([code[:3] for code in codes.tolist()]), "b": pa.array(codes)}), ["a", "b"]
    )
    assert tree.sizes == (100, 1_000_000)
    assert tree.encode(pa.array(["0765432", "x"])).tolist() == [765_432, -1]


def test_a_level_that_is_left_out_leaves_no_trace_in_the_order() -> None:
    table = pa.table({"a": ["A", "A"], "b": ["b1", "b2"], "c": ["z", "y"]})
    short = Hierarchy.from_table(table, ["a", "b", "c"]).select(["a", "c"])
    assert short.codes[1].to_pylist() == ["y", "z"]
    assert short.digest == Hierarchy.from_table(table, ["a", "c"]).digest
