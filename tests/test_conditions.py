"""Conditions as they are typed: one grammar, whoever is asked."""

from __future__ import annotations

import pytest

import treetop as tt
from treetop.domain.conditions import parse_conditions
from treetop.errors import QueryError
from treetop.measure import questions

PLACES = tt.Hierarchy.from_prefixes(["n1", "n2", "s1"], widths=[1], levels=["region", "town"])
SPINE = tt.Spine.origin_first(origin=PLACES, destination=PLACES)
ONE = tt.Spine(
    ["place.region", "sex", "sex=now"],
    {"place": PLACES, "sex": tt.Hierarchy.flat(["f", "m"]), "sex=now": tt.Hierarchy.flat(["=m", "f"])},
)


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        (["place=n"], {"place": "n"}),
        (["region=n"], {"place.region": "n"}),
        ([" place.region =n"], {"place.region": "n"}),
        (["sex=now==m", "sex=f"], {"sex=now": "=m", "sex": "f"}),
        ([], {}),
    ],
)
def test_releases_and_private_tables_understand_the_same_conditions(typed: list[str], asked: dict[str, str]) -> None:
    assert parse_conditions(typed, ONE) == asked
    assert questions.from_conditions(typed, ONE).where == asked


@pytest.mark.parametrize(
    ("typed", "about"),
    [
        (["region=n"], "region is a level of several attributes: say origin.region or destination.region"),
        (["n"], "'n' is not a condition: write ATTRIBUTE=CODE, such as origin=n"),
        (["origin"], "'origin' is not a condition: write ATTRIBUTE=CODE, such as origin=CODE"),
        (["origin=n", "origin=s"], "origin is asked for twice, as 'n' and in 'origin=s'"),
    ],
)
def test_what_is_no_condition_is_refused_alike(typed: list[str], about: str) -> None:
    for ask in (parse_conditions, questions.from_conditions):
        with pytest.raises(QueryError, match=about):
            ask(typed, SPINE)


def test_the_same_level_is_not_asked_for_twice_by_two_names() -> None:
    with pytest.raises(QueryError, match=r"place\.region is asked for twice"):
        parse_conditions(["region=n", "place.region=s"], ONE)
