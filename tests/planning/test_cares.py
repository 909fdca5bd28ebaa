"""What a steward cares about: tables by their names, with weights."""

from __future__ import annotations

import pytest

import treetop as tt
from treetop.advice._designs import read_objectives
from treetop.errors import PlanError

PLACES = tt.Hierarchy.from_prefixes(["AX", "AY", "BX"], widths=[1], levels=["state", "county"])
SEXES = tt.Hierarchy.flat(["f", "m"])
ENDS = tt.Spine.origin_first(PLACES, PLACES)
THREE = tt.Spine(
    ["origin.state", "sex", "destination.state", "origin.county", "destination.county"],
    {"origin": PLACES, "sex": SEXES, "destination": PLACES},
)


@pytest.mark.parametrize(
    ("spine", "asked", "tables"),
    [
        (ENDS, ["origin totals"], [(1, 0), (2, 0)]),
        (ENDS, ["origin.county totals"], [(2, 0)]),
        (ENDS, ["state totals"], [(1, 0), (0, 1)]),
        (ENDS, ["totals"], [(1, 0), (2, 0), (0, 1), (0, 2)]),
        (ENDS, ["pairs"], [(1, 1), (2, 2)]),
        (ENDS, ["county pairs"], [(2, 2)]),
        (ENDS, ["leaves"], [(2, 2)]),
        (ENDS, ["origin.state * destination.county"], [(1, 2)]),
        (THREE, ["state pairs"], [(1, 0, 1)]),
        (THREE, ["pairs"], [(1, 1, 1), (2, 1, 2)]),
        (THREE, ["sex"], [(0, 1, 0)]),
        (THREE, ["origin.state * sex"], [(1, 1, 0)]),
    ],
)
def test_a_name_stands_for_its_tables(spine: tt.Spine, asked: list[str], tables: list[tuple[int, ...]]) -> None:
    assert list(read_objectives(spine, asked)) == tables


def test_weights_are_as_they_are_written_and_add_up() -> None:
    found = read_objectives(ENDS, ["leaves=3", "pairs = 0.5", "totals"])
    assert found == {(2, 2): 3.5, (1, 1): 0.5, (1, 0): 1, (2, 0): 1, (0, 1): 1, (0, 2): 1}


def test_without_a_word_all_totals_weigh_a_fourth_and_finer_pairs_twice_as_much() -> None:
    found = read_objectives(ENDS)
    assert set(found) == {(1, 0), (2, 0), (0, 1), (0, 2), (1, 1), (2, 2)}
    assert sum(found[one] for one in ((1, 0), (2, 0), (0, 1), (0, 2))) == pytest.approx(sum(found.values()) / 4)
    assert found[2, 2] == 2 * found[1, 1]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("orgin totals", "did you mean 'origin'"),
        ("origin.town totals", "there is no attribute or level 'origin.town'"),
        ("town pairs", "'town' is not a level of two attributes"),
        ("sex pairs", "'sex' is not a level of two attributes"),
        ("leaves=0", "write a positive number"),
        ("leaves=many", "write a positive number"),
        ("everything", "there is no attribute 'everything'"),
        ("origin", "has several levels"),
        ("", "write 'totals'"),
    ],
)
def test_what_cannot_be_read_is_told(asked: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_objectives(THREE, [asked])
