"""Bad facts: each is refused with its file, its row and what to do, before a ledger is charged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import treetop as tt
from treetop.errors import FactError, PlanError, TreetopError

PLAN = """
[attributes.place]
hierarchy = "places.csv"
levels = ["state", "county", "tract"]
[attributes.sex]
values = ["f", "m"]
[spine]
order = ["place.state", "sex", "place.tract"]
margins = "none"
[unit]
entity = "person"
contributions = 1
neighbours = "replace"
[loss]
epsilon = 1.0
delta = 1e-6
[data]
source = "people.csv"
"""
STATES = '"place.state" = "population.csv"'

BAD: dict[str, tuple[str, str, str]] = {
    "a duplicate": (
        "state,count\nA,4\nB,3\nA,4\n",
        STATES,
        r"population\.csv, row 3: place\.state 'A' stands there twice, first in .*row 1: keep one of the rows",
    ),
    "an unknown code": (
        "state,count\nA,4\nBB,3\n",
        STATES,
        r"population\.csv, column 'state', row 2: 'BB' is not a code of place\.state.*correct the row, or delete it",
    ),
    "a negative number": ("state,count\nA,-4\nB,3\n", STATES, r"population\.csv.*row 1: the count '-4' is negative"),
    "a fraction": ("state,count\nA,4\nB,3.5\n", STATES, r"population\.csv.*row 2: .*'3\.5' is not a whole number"),
    "a number beyond all counts": (
        "state,count\nA,4\nB,99999999999999999999\n",
        STATES,
        r"population\.csv.*row 2: the count",
    ),
    "a level that the spine lacks": (
        "county,count\nA1,4\n",
        '"place.county" = { at_most = "population.csv" }',
        r"place\.county is no level of the spine, which leaves it out.*put it into the spine, or state .*state, tract",
    ),
    "a level that no hierarchy has": (
        "state,count\nA,4\nB,3\n",
        '"place.sate" = "population.csv"',
        r"did you mean 'state'",
    ),
    "a table that is no level": (
        "place.tract,sex,count\nA1x,f,1\n",
        '"place.tract" = { at_most = "population.csv" }',
        r"place\.tract .*bounds a table beside the spine.*add margins",
    ),
    "two files for one level": (
        "place,sex,count\nA,f,3\n",
        '"place.state * sex" = { at_most = "population.csv" }\n"sex * place.state" = { at_least = "population.csv" }',
        r"are the same table: state all about it at one place",
    ),
    "a level that stands twice": ("state,count\nA,4\nB,3\n", f"{STATES}\n{STATES}", r"place\.state|plan\.toml"),
    "cells that are left out": (
        "state,count\nA,4\n",
        STATES,
        r"place\.state .*leaves out 1 of its cells, such as place\.state 'B': list all .*with 0",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "places.csv").write_text("state,county,tract\nA,A1,A1x\nA,A2,A2x\nB,B1,B1x\nB,B1,B1y\n")
    (tmp_path / "people.csv").write_text("place,sex\nA1x,f\nA1x,m\nA2x,f\nA2x,f\nB1x,f\nB1y,m\nB1y,m\n")
    return tmp_path


def publish(folder: Path, facts: str, plan: str = PLAN) -> None:
    """Publish with a ledger that would record a charge; nothing may be in it, or in the folder, after a refusal."""
    (folder / "plan.toml").write_text(f"{plan}[facts]\n{facts}\n")
    ledger = tt.Ledger.create(folder / "ledger.db", loss=tt.Loss(epsilon=5, delta=1e-5), datasets=("people",))
    try:
        tt.publish(
            folder / "plan.toml", folder / "people.csv", folder / "out", tt.RunOptions(ledger=ledger, dataset="people")
        )
    finally:
        made = (folder / "out").exists()
        assert len(ledger.entries("people")) == made


@pytest.mark.parametrize("what", BAD)
def test_bad_facts_are_refused_with_their_place_and_a_remedy_and_nothing_is_charged(what: str, folder: Path) -> None:
    file, facts, message = BAD[what]
    (folder / "population.csv").write_text(file)
    with pytest.raises(TreetopError, match=message):
        publish(folder, facts)
    assert not (folder / "out").exists()


def test_the_same_facts_put_right_are_published_and_charged(folder: Path) -> None:
    (folder / "population.csv").write_text("state,count\nA,4\nB,3\n")
    publish(folder, STATES)
    assert (folder / "out").exists()


CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "sums": (
        {
            "place.state": {"A": 4, "B": 3},
            "sex": tt.Fact(at_least={"f": 8}),
            "place.tract": tt.Fact(impossible=["A1x"]),
        },
        r"these cannot all be true: place\.state \(exact\); sex \(at_least\)\. By them, .* at least 8 and at most 7",
    ),
    "bounds that cross in one file": (
        {"sex": tt.Fact(at_least={"f": 3}, at_most={"f": 2}), "place.state": {"A": 4, "B": 3}},
        r"sex \(at_least, at_most\) contradicts itself: sex 'f' would have at least 3 and at most 2\. Correct it",
    ),
    "zeros that leave a positive fact without a child": (
        {
            "place.state": {"A": 4, "B": 3},
            "place.tract": tt.Fact(impossible=["B1x", "B1y"]),
            "sex": tt.Fact(at_most={"f": 9}),
        },
        r"place\.state \(exact\); place\.tract \(impossible\)\. By them, place\.state 'B' .*3, and is impossible",
    ),
    "zeros of two kinds that leave nothing": (
        {
            "place.state": tt.Fact(at_least={"B": 1}),
            "sex": tt.Fact(impossible=["m"]),
            "place.state * sex": tt.Fact(impossible=[("B", "f")]),
        },
        r"place\.state \(at_least\); sex \(impossible\); place\.state \* sex \(impossible\)",
    ),
    "a child above its parent": (
        {"place.state": tt.Fact(at_most={"A": 2}), "place.tract": tt.Fact(at_least={"A1x": 2, "A2x": 1})},
        r"place\.state 'A' would have at least 3 and at most 2",
    ),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_the_fewest_facts_that_contradict_each_other_are_named(what: str) -> None:
    facts, message = CONTRADICTIONS[what]
    place = tt.Hierarchy.from_prefixes(["A1x", "A2x", "B1x", "B1y"], [1, 2], ["state", "county", "tract"])
    spine = tt.Spine(["place.state", "sex", "place.tract"], {"place": place, "sex": tt.Hierarchy.flat(["f", "m"])})
    with pytest.raises(FactError, match=message):
        tt.Plan(spine, tt.Unit("person", neighbours="replace"), tt.Loss(rho=1), facts=facts)


def test_an_invariant_is_refused_where_records_may_be_dropped(folder: Path) -> None:
    with pytest.raises(PlanError, match="tells of one whether it was"):
        publish(folder, '"place.state" = { invariant = true }', PLAN + 'unknown = "drop"\n')
    assert not (folder / "out").exists()


def test_zeros_of_a_merged_step_are_refused_with_another_order(folder: Path) -> None:
    (folder / "population.csv").write_text("state,sex\nA,f\n")
    merged = PLAN.replace('"place.state", "sex", "place.tract"', '"place.state * sex", "place.tract"')
    with pytest.raises(FactError, match=r"merged step .*refine its attributes one after the other"):
        publish(folder, '"place.state * sex" = { impossible = "population.csv" }', merged)


def test_a_margin_that_refines_a_known_table_of_several_attributes_is_refused(folder: Path) -> None:
    (folder / "population.csv").write_text("place,sex,count\nA,f,3\nA,m,1\nB,f,1\nB,m,2\n")
    margins = PLAN.replace('margins = "none"', 'margins = ["place.tract * sex"]').replace(
        '"place.state", "sex", "place.tract"', '"place.state", "sex", "age", "place.tract"'
    )
    margins = margins.replace("[spine]", '[attributes.age]\nvalues = ["young", "old"]\n[spine]')
    with pytest.raises(FactError, match=r"the margin sex \* place\.tract|the margin place\.tract \* sex"):
        publish(folder, '"place.state * sex" = "population.csv"', margins)
