"""Attributes: the order of levels stays in step with them, and a comparison takes nothing away that was chosen."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path
from typing import Any

import pytest

import treetop as tt
from tests.studio.visitor import Visitor, visiting

STATES = ("Johor", "Kedah", "Perak", "Sabah")


@pytest.fixture
def deaths(tmp_path: Path) -> Path:
    """A table with single years of age, of which a draft makes an attribute of two levels."""
    rng = random.Random(1)
    rows = (f"{rng.choice(STATES)},{rng.randint(0, 99)},{rng.randint(0, 1)}\n" for _ in range(6000))
    (tmp_path / "deaths.csv").write_text(f"state,age,male\n{''.join(rows)}")
    return tmp_path


def plan_of(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "plan.toml").read_text())


def answer(visitor: Visitor) -> None:
    """Answer the questions that every plan asks."""
    visitor.send("protected", entity="person", contributions="1", neighbours="replace", id="", population="")
    visitor.send("accuracy", epsilon="1", delta="1e-8", by="epsilon", resolve="full")


def test_ages_in_bands_are_listed_by_clicks(deaths: Path) -> None:
    with visiting(deaths) as visitor:
        visitor.send("table", do="choose", table="deaths.csv")
        assert plan_of(deaths)["spine"]["order"] == ["state", "age.group", "male", "age.age"]
        columns = ["state", "age", "male"]
        visitor.send("table", do="prepare", header="auto", bands="age = 0 18 40 60 80", column=columns)
        bands = "0-17\n18-39\n40-59\n60-79\n80+"
        listed = {"values.state": "\n".join(STATES), "values.age": bands, "values.male": "0\n1"}
        page = visitor.send("hierarchy", do="values", **listed)
        assert page.status == 200 and plan_of(deaths)["spine"]["order"] == ["state", "age", "male"]
        answer(visitor)
    file = tt.read_plan(deaths / "plan.toml")
    assert file.plan.spine.leaves == 4 * 5 * 2


def test_an_attribute_with_a_file_can_be_removed_or_take_another_list(deaths: Path) -> None:
    (deaths / "places.csv").write_text("coast,state\nwest,Johor\nwest,Kedah\nwest,Perak\neast,Sabah\n")
    with visiting(deaths) as visitor:
        visitor.send("table", do="choose", table="deaths.csv")
        visitor.send("hierarchy", do="files", file="places.csv")
        assert plan_of(deaths)["attributes"]["state"]["levels"] == ["coast", "state"]
        ages = "\n".join(map(str, range(100)))
        visitor.send("hierarchy", do="values", **{"values.age": ages, "values.male": "0\n1"})
        answer(visitor)
        before = tt.read_plan(deaths / "plan.toml").plan.spine
        assert before.leaves == 4 * 100 * 2 and before.splits == (
            "state.coast",
            "age.value",
            "male.value",
            "state.state",
        )
        page = visitor.see("hierarchy")
        assert "Codes from places.csv : coast › state" in page.plain
        visitor.send("hierarchy", do="values", forget="state")
        assert set(plan_of(deaths)["attributes"]["state"]) == {"column"}
        visitor.send("hierarchy", do="values", **{"values.state": "\n".join(STATES)})
        assert tt.read_plan(deaths / "plan.toml").plan.spine.splits == ("state.value", "age.value", "male.value")
        visitor.send("hierarchy", do="values", without=["state", "male"])
        assert list(tt.read_plan(deaths / "plan.toml").plan.spine.attributes) == ["age"]
        page = visitor.send("hierarchy", do="values", without="age")
        assert page.status == 422 and "keep one at least" in page.plain


def test_who_shares_a_hierarchy_keeps_it_when_its_owner_goes(own: Visitor) -> None:
    own.send("hierarchy", do="values", without="origin")
    plan = plan_of(own.folder)
    assert plan["attributes"] == {
        "destination": {"column": "work", "hierarchy": "places.csv", "levels": ["region", "town"]}
    }
    assert tt.read_plan(own.folder / "plan.toml").plan.spine.leaves == 5


def test_lists_of_margins_and_leaves_for_unknown_codes_stay_in_step(deaths: Path) -> None:
    with visiting(deaths) as visitor:
        visitor.send("table", do="choose", table="deaths.csv")
        listed = {"values.state": "\n".join(STATES), "values.age": "0\n1\n2", "values.male": "0\n1"}
        visitor.send("hierarchy", do="values", **listed)
        answer(visitor)
        path = deaths / "plan.toml"
        text = path.read_text().replace('margins = "each"', 'margins = ["state * male", "age", "state"]')
        path.write_text(text.replace("[data]", '[data]\nunknown = { state = "Johor", age = "0", male = "0" }'))
        assert len(tt.read_plan(path).plan.spine.attributes) == 3
        visitor.send("hierarchy", do="values", without="male")
    assert plan_of(deaths)["spine"]["margins"] == ["age", "state"]
    assert plan_of(deaths)["data"]["unknown"] == {"state": "Johor", "age": "0"}
    assert tt.read_plan(path).plan.spine.leaves == 4 * 3


def test_an_order_that_does_not_fit_is_mended_by_a_control(own: Visitor) -> None:
    path = own.folder / "plan.toml"
    path.write_text(
        path.read_text().replace('"destination-first"', '["origin.region", "origin.street", "destination.town"]')
    )
    page = own.see("hierarchy")
    assert page.status == 200 and "Order the levels anew" in page.plain
    refused = own.send("protected", entity="bus", contributions="1", neighbours="replace", id="", population="")
    assert refused.status == 422 and "by “Order the levels anew”" in refused.plain
    assert "Order the levels anew" not in own.send("hierarchy", do="order").plain
    splits = ("origin.region", "destination.region", "origin.town", "destination.town")
    assert tt.read_plan(path).plan.spine.splits == splits


@pytest.fixture
def beds(tmp_path: Path) -> Path:
    """Hospital beds by region 1 to 19, province 1 to 52 and ward, and a public file of the provinces."""
    rng = random.Random(2)
    rows = (f"{rng.randint(1, 19)},{rng.randint(1, 52)},{rng.choice('abc')}\n" for _ in range(4000))
    (tmp_path / "beds.csv").write_text(f"COD_CCAA,Cod_Provincia,Unidad\n{''.join(rows)}")
    places = "".join(f"{'NS'[number % 2]},{number}\n" for number in range(1, 53))
    (tmp_path / "provinces.csv").write_text(f"zone,Cod_Provincia\n{places}")
    return tmp_path


def test_small_numbers_in_common_are_no_match(beds: Path) -> None:
    (beds / "hospitals.csv").write_text(
        "town,number\n" + "".join(f"t{number},{number % 400 + 1}\n" for number in range(900)) + "t900,S/N\n"
    )
    found = tt.inspect_table(beds / "beds.csv", [beds / "provinces.csv", beds / "hospitals.csv"])
    assert [match["column"] for match in found.to_dict()["matches"]] == ["Cod_Provincia"]


def test_a_comparison_keeps_what_was_chosen(beds: Path) -> None:
    regions = "\n".join(map(str, range(1, 20)))
    with visiting(beds) as visitor:
        visitor.send("table", do="choose", table="beds.csv")
        visitor.send("hierarchy", do="values", **{"values.COD_CCAA": regions, "values.Unidad": "a\nb\nc"})
        before = plan_of(beds)["attributes"]
        page = visitor.send("hierarchy", do="files", file="provinces.csv")
        after = plan_of(beds)["attributes"]
        assert page.status == 200 and set(after) == {"COD_CCAA", "Cod_Provincia", "Unidad"}
        assert after["Unidad"] == before["Unidad"] and after["COD_CCAA"] == before["COD_CCAA"]
        assert after["Cod_Provincia"]["hierarchy"] == "provinces.csv"
        answer(visitor)
        assert tt.read_plan(beds / "plan.toml").plan.spine.leaves == 19 * 52 * 3
        again = visitor.send("hierarchy", do="files", file="provinces.csv")
        assert "Cod_Provincia keeps the list of codes that the plan has" in again.plain
        assert plan_of(beds)["attributes"] == after


def test_a_comparison_keeps_the_order_that_was_chosen(own: Visitor) -> None:
    path = own.folder / "plan.toml"
    path.write_text(path.read_text().replace("destination-first", "origin-first"))
    assert own.send("hierarchy", do="files", file="places.csv").status == 200
    assert plan_of(own.folder)["spine"] == {"order": "origin-first"}


def test_a_draft_with_nothing_answered_keeps_its_other_columns_and_reads(beds: Path) -> None:
    with visiting(beds) as visitor:
        visitor.send("table", do="choose", table="beds.csv")
        visitor.send("hierarchy", do="files", file="provinces.csv")
        rest = {name for name, own in plan_of(beds)["attributes"].items() if "hierarchy" not in own}
        assert rest == {"COD_CCAA", "Unidad"}
        listed = {"values.COD_CCAA": "\n".join(map(str, range(1, 20))), "values.Unidad": "a\nb\nc"}
        visitor.send("hierarchy", do="values", **listed)
        answer(visitor)
    assert tt.read_plan(beds / "plan.toml").plan.spine.leaves == 19 * 52 * 3


def test_only_rules_that_were_written_are_called_done(tmp_path: Path) -> None:
    towns = [1000 + 7 * number for number in range(30)]
    (tmp_path / "places.csv").write_text("region,town\n" + "".join(f"N,{town:05}\n" for town in towns))
    rows = "".join(f"{towns[n % 30]},{towns[n // 7 % 30]},{'ab'[n % 2]}\n" for n in range(600))
    (tmp_path / "trips.csv").write_text(f"home,work,kind\n{rows}")
    with visiting(tmp_path) as visitor:
        visitor.send("table", do="choose", table="trips.csv")
        visitor.send("hierarchy", do="files", file="places.csv")
        attributes = plan_of(tmp_path)["attributes"]
        assert {own.get("column", name) for name, own in attributes.items()} == {"home", "work"}
        visitor.send("table", do="prepare", header="auto", column=["home", "work", "kind"], **{"pad.home": "5"})
        page = visitor.send("hierarchy", do="files", file="places.csv")
    assert plan_of(tmp_path)["data"]["pad"] == {"home": 5}
    assert "done, see step 1" not in page.plain
    assert "of work match after padding to 5 digits, with their leading zeros: set it in step 1" in page.plain
