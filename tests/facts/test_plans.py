"""Facts in plans: stated in the file or in Python, written down, part of the digest, and never ignored by a release."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import jsonschema
import pyarrow as pa
import pytest

import treetop as tt
from treetop.card import render
from treetop.errors import FactError, PlanError, PlanFileError
from treetop.plan.file import describe_plan, plan_schema

PLAN = """
[attributes.place]
hierarchy = "places.csv"
levels = ["state", "county"]
[attributes.sex]
values = ["f", "m"]
[spine]
order = ["place.state", "place.county", "sex"]
[unit]
entity = "person"
contributions = 1
neighbours = "replace"
[loss]
epsilon = 1.0
delta = 1e-6
"""
FACTS = """
[facts]
"place.state" = "population.csv"
"place.county" = { at_most = "dwellings.csv", unchecked = true }
"place.county * sex" = { impossible = "rules.csv" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "places.csv").write_text("state,county\nA,A1\nA,A2\nB,B1\n")
    (tmp_path / "population.csv").write_text("state,count\nA,4\nB,3\n")
    (tmp_path / "dwellings.csv").write_text("county,count\nA1,3\n")
    (tmp_path / "rules.csv").write_text("place,sex\nA2,m\n")
    (tmp_path / "people.csv").write_text("place,sex\nA1,f\nA1,m\nA1,f\nA2,f\nB1,f\nB1,m\nB1,m\n")
    return tmp_path


def read(folder: Path, facts: str = FACTS, plan: str = PLAN) -> tt.PlanFile:
    path = folder / "plan.toml"
    path.write_text(plan + facts)
    return tt.read_plan(path)


def test_a_plan_file_states_facts_by_their_files(folder: Path) -> None:
    plan = read(folder).plan
    assert [(fact.name, fact.kinds, fact.unchecked) for fact in plan.public_facts] == [
        ("place.state", ("exact",), False),
        ("place.county", ("at_most",), True),
        ("place.county * sex", ("impossible",), False),
    ]
    told = plan.describe()["facts"]
    assert all(len(fact["sha256"]) == 64 for fact in told)
    assert plan.digest != read(folder, "").plan.digest
    assert "facts" not in read(folder, "").plan.describe()


def test_a_plan_in_python_is_the_same_plan(folder: Path) -> None:
    file = read(folder).plan
    facts = {
        "place.state": {"A": 4, "B": 3},
        "place.county": tt.Fact(at_most={"A1": 3}, unchecked=True),
        "place.county * sex": tt.Fact(impossible=[("A2", "m")]),
    }
    assert tt.Plan(file.spine, file.unit, file.loss, facts=facts).digest == file.digest


def test_the_plan_as_it_was_run_is_a_plan_file_again_and_refuses_other_facts(folder: Path) -> None:
    written = describe_plan(read(folder))
    stated = tomllib.loads(written)["facts"]
    assert stated["place.county"]["at_most"] == "dwellings.csv" and stated["place.county"]["unchecked"] is True
    path = folder / "again.toml"
    path.write_text(written)
    assert tt.read_plan(path).plan.digest == read(folder).plan.digest
    (folder / "dwellings.csv").write_text("county,count\nA1,2\n")
    with pytest.raises(FactError, match=r"\[facts\] place\.county: .*made for other facts"):
        tt.read_plan(path)


def test_facts_fit_the_schema() -> None:
    schema = plan_schema()
    jsonschema.validate(tomllib.loads(PLAN + FACTS), schema)
    for wrong in ('"sex" = 5', '"sex" = { at_mots = "x.csv" }', '"sex" = { invariant = "yes" }'):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(tomllib.loads(f"{PLAN}[facts]\n{wrong}\n"), schema)


WRONG = {
    '"sex" = 5': r"\[facts\] sex must be a file of counts",
    '"sex" = { at_mots = "x.csv" }': r"names with dots stand in quotes|did you mean 'at_most'",
    '"sex" = { at_most = "x.csv", at_laest = "y.csv" }': r"did you mean 'at_least'",
    'place.state = "population.csv"': r'names with dots stand in quotes, as in "place\.state"',
    '"sex" = { unchecked = true }': r"says nothing",
    '"sex" = "?"': r"says nothing",
    '"sex" = "nowhere.csv"': r"plan\.toml: \[facts\] sex: .*nowhere\.csv: no such file",
    '"place.state" = "people.csv"': r"is the private table itself",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_mistake_under_facts_is_named_with_its_place(line: str, folder: Path) -> None:
    with pytest.raises((PlanFileError, FactError), match=WRONG[line]):
        read(folder, f'\n[data]\nsource = "people.csv"\n[facts]\n{line}\n')


def test_an_invariant_needs_neighbours_that_keep_it(folder: Path) -> None:
    facts = '[facts]\n"place.state" = { invariant = true }\n'
    assert read(folder, facts).plan.public_facts.invariants == ((1, 0),)
    with pytest.raises(PlanError, match="nobody would be protected"):
        read(folder, facts, PLAN.replace('"replace"', '"add-remove"'))


def test_facts_beside_the_spine_that_zeros_may_contradict_are_refused_with_another_order(folder: Path) -> None:
    other = PLAN.replace('"place.state", "place.county", "sex"', '"place.state", "sex", "place.county"')
    with pytest.raises(FactError, match=r"place\.county .*Put place\.county first in the order"):
        read(folder, plan=other)


def ledger_of(folder: Path) -> tt.Ledger:
    return tt.Ledger.create(folder / "ledger.db", loss=tt.Loss(epsilon=5, delta=1e-5), datasets=("people",))


def test_a_table_that_contradicts_a_fact_is_refused_before_anything_is_charged(folder: Path) -> None:
    ledger, private = ledger_of(folder), folder / "people.csv"
    private.write_text(private.read_text() + "A2,f\n")
    with pytest.raises(FactError, match=r"'A' has 5 records where the fact says 4\. Nothing was measured or charged"):
        tt.make_release(read(folder).plan, private, tt.RunOptions(ledger=ledger, dataset="people"))
    private.write_text(private.read_text().replace("A2,f\nB1", "A2,m\nB1").removesuffix("A2,f\n"))
    with pytest.raises(FactError, match=r"1 records are in cells that are impossible, such as .*'A2', sex 'm'"):
        tt.make_release(read(folder).plan, private, tt.RunOptions(ledger=ledger, dataset="people"))
    assert not ledger.entries("people")


def test_a_plan_can_keep_a_fact_whatever_the_table_says(folder: Path) -> None:
    unchecked = FACTS.replace('"population.csv"', '{ exact = "population.csv", unchecked = true }').replace(
        '{ impossible = "rules.csv" }', '{ impossible = "rules.csv", unchecked = true }'
    )
    private = folder / "people.csv"
    private.write_text(private.read_text() + "A2,m\nA2,m\nA2,m\nB1,f\n")
    ledger, plan = ledger_of(folder), read(folder, unchecked).plan
    release = tt.make_release(plan, private, tt.RunOptions(ledger=ledger, dataset="people"))
    assert release.table("place.state", intervals=False).to_pylist() == [
        {"place.state": "A", "count": 4},
        {"place.state": "B", "count": 3},
    ]
    assert release.query(**{"place.county": "A2", "sex": "m"}) == 0
    assert len(ledger.entries("people")) == 1


def test_contradicting_facts_are_refused_when_the_plan_is_read_and_no_ledger_is_touched(folder: Path) -> None:
    (folder / "population.csv").write_text("state,count\nA,4\nB,3\n")
    (folder / "dwellings.csv").write_text("county,count\nB1,2\n")
    ledger = ledger_of(folder)
    with pytest.raises(FactError, match=r"these cannot all be true: place\.state .*; place\.county"):
        tt.publish(
            folder_plan(folder), folder / "people.csv", folder / "out", tt.RunOptions(ledger=ledger, dataset="people")
        )
    assert not ledger.entries("people") and not (folder / "out").exists()


def folder_plan(folder: Path) -> Path:
    path = folder / "plan.toml"
    path.write_text(PLAN + FACTS)
    return path


def test_a_release_with_facts_goes_the_whole_way(folder: Path) -> None:
    published = tt.publish(
        folder_plan(folder), folder / "people.csv", folder / "out", tt.RunOptions(testing_key=bytes(32))
    )
    assert all(verdict.verified for verdict in tt.check(folder / "out"))
    card = published.release.card
    assert [fact["table"] for fact in card["facts"]] == ["place.state", "place.county", "place.county * sex"]
    assert [level.get("exact", False) for level in card["levels"]] == [False, True, False, False]
    assert card["levels"][0]["cost"]["exact"] == card["levels"][1]["cost"]["exact"] == "0"
    again = tt.Release.load(folder / "out")
    assert again.interval(**{"place.state": "A"}) == (4, 4)
    assert again.interval(**{"place.county": "A2", "sex": "m"}) == (0, 0)
    assert again.interval(**{"place.county": "A1"}).upper <= 3


def test_check_finds_a_count_that_contradicts_a_fact(folder: Path) -> None:
    tt.publish(folder_plan(folder), folder / "people.csv", folder / "out", tt.RunOptions(testing_key=bytes(32)))
    release = tt.Release.load(folder / "out")
    moved = release.count.copy()
    moved[0] += 1
    replace(release, count=moved).save(folder / "forged")
    found = [finding for verdict in tt.check(folder / "forged") for finding in verdict.findings]
    assert any("place.state" in finding and "the fact says 4" in finding for finding in found)


def test_exact_counts_are_not_compared_with_tables_whose_neighbours_all_have_others(folder: Path) -> None:
    adding = PLAN.replace('"replace"', '"add-remove"')
    facts = '[facts]\n"place.state" = { exact = "population.csv" }\n'
    with pytest.raises(FactError, match=r"place\.state .*nobody would be protected: write unchecked = true"):
        read(folder, facts, adding)
    plan = read(folder, facts.replace(" }", ", unchecked = true }"), adding).plan
    assert plan.levels[1].is_exact
    assert "neighbours" not in render(
        tt.make_release(plan, folder / "people.csv", tt.RunOptions(testing_key=bytes(32))).card["protects"]
    )


def test_a_card_says_that_neighbours_agree_with_what_was_compared(folder: Path) -> None:
    card = tt.make_release(read(folder).plan, folder / "people.csv", tt.RunOptions(testing_key=bytes(32))).card
    assert render(card["protects"]).endswith(
        "Only tables that agree with what is public of place state, place county × sex are neighbours."
    )


def test_a_plan_without_facts_has_as_many_leaves_as_it_likes() -> None:
    trees = {f"a{at}": tt.Hierarchy.from_prefixes([f"{code:04}" for code in range(3000)], [1]) for at in range(6)}
    spine = tt.Spine([f"{name}.{level}" for level in trees["a0"].levels for name in trees], trees)
    plan = tt.Plan(spine, tt.Unit("person", 1, "replace"), tt.Loss(epsilon=50, delta=1e-6))
    table = pa.table({name: ["0001"] * 5 for name in trees})
    assert spine.leaves > 2**64 and tt.make_release(plan, table, tt.RunOptions(testing_key=bytes(32))).total == 5


FIXED = {
    "bounds of one table": {"place.state": tt.Fact(at_least={"A": 4, "B": 3}, at_most={"A": 4, "B": 3})},
    "bounds of one cell": {"place.state": tt.Fact(at_least={"A": 4}, at_most={"A": 4, "B": 9})},
    "bounds of two tables": {
        "place.state": tt.Fact(at_least={"A": 4}),
        "place.county": tt.Fact(at_most={"A1": 3, "A2": 1}),
    },
    "bounds beside an impossible cell": {
        "place.state": tt.Fact(at_least={"A": 4}),
        "place.county": tt.Fact(at_most={"A1": 4}, impossible=["A2"]),
    },
}


@pytest.mark.parametrize("what", FIXED)
def test_compared_bounds_that_meet_are_refused_where_units_come_and_go(what: str, folder: Path) -> None:
    plan, facts = read(folder, "").plan, FIXED[what]
    unit = replace(plan.unit, neighbours="add-remove")
    with pytest.raises(FactError, match="fixes the count of .*'A'.*unchecked = true"):
        tt.Plan(plan.spine, unit, plan.loss, facts=facts)
    unchecked = {name: replace(fact, unchecked=True) for name, fact in facts.items()}
    tt.Plan(plan.spine, unit, plan.loss, facts=unchecked)
    tt.Plan(plan.spine, plan.unit, plan.loss, facts=facts)


def test_compared_bounds_from_files_that_meet_are_refused_where_units_come_and_go(folder: Path) -> None:
    bounds = '[facts]\n"place.state" = { at_least = "population.csv", at_most = "population.csv" }\n'
    with pytest.raises(FactError, match=r"plan\.toml: \[facts\] place\.state .*fixes the count"):
        read(folder, bounds, PLAN.replace('"replace"', '"add-remove"'))


def test_bounds_that_leave_room_or_an_empty_cell_are_compared_where_units_come_and_go(folder: Path) -> None:
    plan = read(folder, "").plan
    facts = {"place.state": tt.Fact(at_least={"A": 1}, at_most={"A": 9}), "place.county": tt.Fact(at_most={"A2": 0})}
    tt.Plan(plan.spine, replace(plan.unit, neighbours="add-remove"), plan.loss, facts=facts)
