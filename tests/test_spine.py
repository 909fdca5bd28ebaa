"""Spines: any order in which coarse levels come first; everything else is refused with a reason."""

from __future__ import annotations

import math

import numpy as np
import pytest

from treetop import Hierarchy, Spine
from treetop.errors import SpineError

PLACE = Hierarchy.from_prefixes(["AX1", "AX2", "AY1", "BX1"], widths=[1, 2], levels=["state", "county", "tract"])
SEX = Hierarchy.flat(["f", "m"], level="sex")
ATTRIBUTES = {"place": PLACE, "sex": SEX}


def test_levels_know_their_attribute_depth_and_public_nodes() -> None:
    spine = Spine(["place.state", "sex", "place.county", "place.tract"], ATTRIBUTES)
    told = [
        (level.name, *[(part.attribute, part.depth) for part in level.parts], level.nodes) for level in spine.levels
    ]
    assert told == [
        ("place.state", (0, 0), 2),
        ("sex", (1, 0), 4),
        ("place.county", (0, 1), 6),
        ("place.tract", (0, 2), 8),
    ]
    assert spine.leaves == 8
    assert spine.depths(3) == (2, 1)


def test_destination_first_alternates_and_exhausts_the_shallower_end_first() -> None:
    flat = Hierarchy.flat(["x", "y"], level="zone")
    assert Spine.destination_first(origin=flat, destination=PLACE).splits == (
        "destination.state", "origin.zone", "destination.county", "destination.tract",
    )  # fmt: skip
    assert Spine.origin_first(origin=PLACE, destination=PLACE).splits[:3] == (
        "origin.state", "destination.state", "origin.county",
    )  # fmt: skip


def test_a_merged_step_is_one_level_with_the_product_of_the_children() -> None:
    spine = Spine(["place.state*sex", "place.tract"], ATTRIBUTES)
    assert spine.splits == ("place.state * sex.sex", "place.tract")
    assert [(level.name, level.nodes, level.widest) for level in spine.levels] == [
        ("place.state * sex", 4, 4), ("place.tract", 8, 3),
    ]  # fmt: skip
    assert spine.depths(1) == (1, 1) and spine.level("sex * place.state") is spine.levels[0]
    assert [part.attribute for part in spine.refinements("sex")] == [1]
    assert spine.digest != Spine(["place.state", "sex", "place.tract"], ATTRIBUTES).digest
    assert Spine(spine.splits, ATTRIBUTES).digest == spine.digest


def test_children_of_a_merged_step_are_in_lexicographic_order() -> None:
    spine = Spine(["place.state", "place.county * sex", "place.tract"], ATTRIBUTES)
    level, state = spine.levels[1], np.zeros((2, 4), np.int64)
    assert level.fanout(np.array([[0, 1], [0, 0]])).tolist() == [4, 2]
    level.go_down(state, np.arange(4))
    assert state.tolist() == [[0, 0, 1, 1], [0, 1, 0, 1]]
    assert level.ranks(state).tolist() == [0, 1, 2, 3]
    level.go_up(state)
    assert (state[0] == 0).all()


def test_both_ends_at_once_and_the_deeper_one_goes_on_alone() -> None:
    flat = Hierarchy.flat(["x", "y"], level="zone")
    assert Spine.merged(origin=flat, destination=PLACE).splits == (
        "destination.state * origin.zone", "destination.county", "destination.tract",
    )  # fmt: skip


def test_names_with_an_asterisk_stay_names() -> None:
    spine = Spine(["a * b", "sex"], {"a * b": Hierarchy.flat(["1", "2"]), "sex": SEX})
    assert [level.name for level in spine.levels] == ["a * b", "sex"]


def test_a_step_with_too_many_children_is_refused() -> None:
    wide = Hierarchy.flat([f"{i:05d}" for i in range(50_000)])
    with pytest.raises(SpineError, match="one after the other"):
        Spine(["a * b"], {"a": wide, "b": wide})


def test_levels_may_be_skipped_or_left_out_at_the_bottom() -> None:
    spine = Spine(["place.state", "place.tract"], {"place": PLACE})
    assert spine.trees[0].levels == ("state", "tract")
    assert Spine(["place.county"], {"place": PLACE}).leaves == 3


def test_a_level_that_divides_nothing_says_so() -> None:
    spine = Spine(["only", "sex"], {"only": Hierarchy.flat(["x"]), "sex": SEX})
    assert [level.divides for level in spine.levels] == [False, True]


def test_domains_beyond_64_bits_are_counted_exactly() -> None:
    wide = Hierarchy.flat([f"{i:04d}" for i in range(2_000)])
    spine = Spine([f"a{i}" for i in range(10)], {f"a{i}": wide for i in range(10)})
    assert spine.leaves == math.prod([2_000] * 10) > 2**64
    assert spine.levels[-1].nodes == spine.leaves


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        (["place.county", "place.state", "sex"], "place.state comes after place.county, which is finer"),
        (["place.state", "place.state", "sex"], "stands twice"),
        (["place", "sex"], "name one of place.state, place.county, place.tract"),
        (["plaice.state", "sex"], "did you mean 'place'"),
        (["place.sate", "sex"], "did you mean 'state'"),
        (["place.state"], "'sex' is never refined"),
        ([], "never refined"),
        (["place.state * place.county", "sex"], "refines 'place' twice at once"),
        (["place.state * sax"], "did you mean 'sex'"),
        (["place.state * sex", "place.state"], "stands twice"),
    ],
)
def test_a_spine_that_cannot_be_descended_is_refused(splits: list[str], message: str) -> None:
    with pytest.raises(SpineError, match=message):
        Spine(splits, ATTRIBUTES)


def test_the_name_of_the_root_is_taken() -> None:
    with pytest.raises(SpineError, match="cannot be called 'total'"):
        Spine(["total"], {"total": SEX})


def test_an_unknown_level_is_answered_with_the_nearest() -> None:
    with pytest.raises(SpineError, match="did you mean 'place.state'"):
        Spine(["place.state", "sex", "place.county"], ATTRIBUTES).level("place.stat")
