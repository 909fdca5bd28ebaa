"""Columns: added, listed, moved, renamed and removed by clicks; the order of levels stays in step, as does the rest."""

from __future__ import annotations

import random
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import treetop as tt
from tests.studio.visitor import Page, Visitor, visiting

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


def save(visitor: Visitor, attribute: str, how: str, **more: str | list[str]) -> Page:
    """Save the card of an attribute."""
    page = visitor.send("columns", do="attribute", attribute=attribute, how=how, **more)
    assert page.status == 200, page.plain
    return page


def lists(visitor: Visitor, **values: str) -> None:
    """List the values of some attributes."""
    for attribute, listed in values.items():
        save(visitor, attribute, "values", values=listed)


def answer(visitor: Visitor) -> None:
    """Answer the questions that every plan asks."""
    visitor.send("protected", entity="person", contributions="1", neighbours="replace", id="", population="")
    visitor.send("accuracy", epsilon="1", delta="1e-8", by="epsilon", resolve="full")


def test_ages_that_were_drafted_in_two_levels_are_listed_by_clicks(deaths: Path) -> None:
    with visiting(deaths) as visitor:
        visitor.send("table", do="choose", table="deaths.csv")
        assert plan_of(deaths)["spine"]["order"] == "joint"
        lists(visitor, state="\n".join(STATES), age="\n".join(map(str, range(100))), male="0\n1")
        answer(visitor)
    assert tt.read_plan(deaths / "plan.toml").plan.spine.leaves == 4 * 100 * 2


def test_bands_dates_names_and_blanks_by_clicks(tmp_path: Path) -> None:
    rows = "".join(
        f"{n % 28 + 1:02}/{n % 12 + 1:02}/2021,{n % 101},{n % 2},{'' if n % 3 else 'x'}\n" for n in range(900)
    )
    (tmp_path / "deaths.csv").write_text(f"date,age,male,brand\n{rows}")
    with visiting(tmp_path) as visitor:
        visitor.send("table", do="choose", table="deaths.csv")
        for column in ("date", "age", "male", "brand"):
            if column not in plan_of(tmp_path)["attributes"]:
                visitor.send("columns", do="add", add=column)
        for typed in ("0 18 40 60 80", "0, 18, 40, 60, 80", "0;18;40;60;80", "0,18,40,60,80"):
            save(visitor, "age", "bands", bands=typed)
            assert plan_of(tmp_path)["attributes"]["age"]["bands"] == [0, 18, 40, 60, 80]
        assert 'value="0 18 40 60 80"' in visitor.see("columns").text
        page = save(
            visitor, "date", "dates", unit=["year", "month"], first="2021-01", last="2021-12", format="dd/mm/yyyy"
        )
        assert "28 of" not in page.plain and "of date match" in page.plain
        save(visitor, "male", "values", values="0 = female\n1 = male")
        page = save(visitor, "brand", "values", values="x", blank="none")
        assert "2 of 2 codes of brand match" in page.plain
        answer(visitor)
        attributes = plan_of(tmp_path)["attributes"]
        assert attributes["male"] == {"column": "male", "values": ["0", "1"], "labels": {"0": "female", "1": "male"}}
        assert attributes["brand"] == {"column": "brand", "values": ["x"], "blank": "none"}
        assert all(
            one.count("all of them") == 1 for one in visitor.see("columns").plain.split("How many codes match")[1:]
        )
        visitor.send("release", do="release", out="release", charge="no")
        assert "Released" in visitor.wait().plain
    spine = tt.read_plan(tmp_path / "plan.toml").plan.spine
    assert spine.leaves == 12 * 5 * 2 * 2
    assert tt.Release.load(tmp_path / "release").query(age="80+") > 0


def test_columns_are_added_removed_moved_and_renamed(deaths: Path) -> None:
    with visiting(deaths) as visitor:
        visitor.send("table", do="choose", table="deaths.csv")
        lists(visitor, state="\n".join(STATES), age="0\n1", male="0\n1")
        answer(visitor)
        visitor.send("columns", do="place", attribute="male", way="up")
        assert list(plan_of(deaths)["attributes"]) == ["age", "male", "state"]
        assert plan_of(deaths)["spine"]["order"] == "joint"
        save(visitor, "male", "values", values="0\n1", name="sex")
        assert plan_of(deaths)["attributes"]["sex"] == {"column": "male", "values": ["0", "1"]}
        assert plan_of(deaths)["spine"]["order"] == "joint"
        for attribute in ("state", "age"):
            visitor.send("columns", do="place", attribute=attribute, way="remove")
        assert list(tt.read_plan(deaths / "plan.toml").plan.spine.attributes) == ["sex"]
        page = visitor.send("columns", do="place", attribute="sex", way="remove")
        assert page.status == 422 and "add another column first" in page.plain
        page = visitor.send("columns", do="add", add="age")
        assert "age is published. Which values can it have?" in page.plain
        assert list(plan_of(deaths)["attributes"]) == ["sex", "age"]


def test_a_column_with_an_awkward_name_is_published(tmp_path: Path) -> None:
    (tmp_path / "beds.csv").write_text("Cód. CCAA,count,level\n" + "1,2,a\n2,3,b\n" * 40)
    with visiting(tmp_path) as visitor:
        visitor.send("table", do="choose", table="beds.csv")
        for column in ("Cód. CCAA", "count", "level"):
            if column not in {own.get("column") for own in plan_of(tmp_path)["attributes"].values()}:
                assert visitor.send("columns", do="add", add=column).status == 200, column
        assert {own["column"] for own in plan_of(tmp_path)["attributes"].values()} == {"Cód. CCAA", "count", "level"}


def test_levels_are_renamed_and_names_may_have_dots(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text("Cód. CCAA,Cód. Prov\nN,n1\nN,n2\nS,s1\n")
    (tmp_path / "beds.csv").write_text("Cód. Prov,ward\n" + "n1,a\ns1,b\nn2,a\n" * 40)
    with visiting(tmp_path) as visitor:
        visitor.send("table", do="choose", table="beds.csv")
        if "Cód. Prov" not in plan_of(tmp_path)["attributes"]:
            visitor.send("columns", do="add", add="Cód. Prov")
        if "ward" not in plan_of(tmp_path)["attributes"]:
            visitor.send("columns", do="add", add="ward")
        save(visitor, "Cód. Prov", "hierarchy", file="places.csv")
        assert plan_of(tmp_path)["attributes"]["Cód. Prov"]["levels"] == ["Cód. CCAA", "Cód. Prov"]
        save(visitor, "ward", "values", values="a\nb", unknown="drop")
        answer(visitor)
        spine = tt.read_plan(tmp_path / "plan.toml").plan.spine
        assert spine.leaves == 3 * 2 and "Cód. Prov.Cód. CCAA" in spine.splits
        levels = "region = Cód. CCAA, Cód. Prov"
        save(visitor, "Cód. Prov", "hierarchy", file="places.csv", levels=levels, name="place")
        assert plan_of(tmp_path)["attributes"]["place"]["levels"] == {"region": "Cód. CCAA", "Cód. Prov": "Cód. Prov"}
        assert visitor.see("columns").field("levels") == levels
        assert plan_of(tmp_path)["attributes"]["ward"]["unknown"] == "drop"
        assert tt.read_plan(tmp_path / "plan.toml").plan.spine.leaves == 3 * 2
        save(visitor, "ward", "values", values="a\nb", unknown="b")
        unknown: Any = tt.read_plan(tmp_path / "plan.toml").plan.unknown
        assert unknown["ward"] == "b"


def test_any_column_can_be_the_count(deaths: Path) -> None:
    with visiting(deaths) as visitor:
        visitor.send("table", do="choose", table="deaths.csv")
        page = visitor.send("columns", do="count", count="age", thousands=",")
        assert "as many records as age says" in page.plain
        assert plan_of(deaths)["data"]["count"] == "age" and plan_of(deaths)["data"]["thousands"] == {"age": ","}
        visitor.send("columns", do="count", count="", thousands="")
        assert not {"count", "thousands"} & plan_of(deaths)["data"].keys()


def test_a_column_with_a_file_can_take_another_list_or_be_removed(deaths: Path) -> None:
    (deaths / "places.csv").write_text("coast,state\nwest,Johor\nwest,Kedah\nwest,Perak\neast,Sabah\n")
    with visiting(deaths) as visitor:
        visitor.send("table", do="choose", table="deaths.csv")
        page = save(visitor, "state", "hierarchy", file="places.csv", levels="")
        assert plan_of(deaths)["attributes"]["state"]["levels"] == ["coast", "state"]
        assert "4 of 4 codes of state match" in page.plain
        lists(visitor, age="\n".join(map(str, range(100))), male="0\n1")
        answer(visitor)
        before = tt.read_plan(deaths / "plan.toml").plan.spine
        assert before.leaves == 4 * 100 * 2 and before.attributes["state"].levels == ("coast", "state")
        save(visitor, "state", "hierarchy", file="places.csv", levels="state")
        assert plan_of(deaths)["attributes"]["state"]["levels"] == ["state"]
        lists(visitor, state="\n".join(STATES))
        assert set(plan_of(deaths)["attributes"]["state"]) == {"column", "values"}
        visitor.send("columns", do="place", attribute="state", way="remove")
        visitor.send("columns", do="place", attribute="male", way="remove")
        assert list(tt.read_plan(deaths / "plan.toml").plan.spine.attributes) == ["age"]


def test_who_shares_a_list_keeps_it_when_its_owner_goes(own: Visitor) -> None:
    own.send("columns", do="place", attribute="origin", way="remove")
    plan = plan_of(own.folder)
    assert plan["attributes"] == {
        "destination": {"column": "work", "hierarchy": "places.csv", "levels": ["region", "town"]}
    }
    assert tt.read_plan(own.folder / "plan.toml").plan.spine.leaves == 5


def test_lists_of_margins_and_leaves_for_unknown_codes_stay_in_step(deaths: Path) -> None:
    with visiting(deaths) as visitor:
        visitor.send("table", do="choose", table="deaths.csv")
        lists(visitor, state="\n".join(STATES), age="0\n1\n2", male="0\n1")
        answer(visitor)
        path = deaths / "plan.toml"
        listed = 'margins = ["state * male", "age", "state"]'
        text = re.sub('margins = "[a-z]+"', listed, path.read_text())
        path.write_text(text.replace("[data]", '[data]\nunknown = { state = "Johor", age = "0", male = "0" }'))
        assert len(tt.read_plan(path).plan.spine.attributes) == 3
        save(visitor, "state", "values", values="\n".join(STATES), name="place")
        assert plan_of(deaths)["spine"]["margins"] == ["place * male", "age", "place"]
        visitor.send("columns", do="place", attribute="male", way="remove")
    assert plan_of(deaths)["spine"]["margins"] == ["age", "place"]
    assert plan_of(deaths)["data"]["unknown"] == {"place": "Johor", "age": "0"}
    assert tt.read_plan(path).plan.spine.leaves == 4 * 3


def test_an_order_that_does_not_fit_is_mended_by_a_control(own: Visitor) -> None:
    path = own.folder / "plan.toml"
    path.write_text(
        path.read_text().replace('"destination-first"', '["origin.region", "origin.street", "destination.town"]')
    )
    page = own.see("columns")
    assert page.status == 200 and "Order the levels anew" in page.plain
    refused = own.send("protected", entity="bus", contributions="1", neighbours="replace", id="", population="")
    assert refused.status == 422 and "by “Order the levels anew”" in refused.plain
    assert "Order the levels anew" not in own.send("columns", do="order").plain
    splits = ("origin.region", "destination.region", "origin.town", "destination.town")
    assert tt.read_plan(path).plan.spine.splits == splits


def test_what_is_saved_can_be_undone_and_done_again(own: Visitor) -> None:
    path, first = own.folder / "plan.toml", (own.folder / "plan.toml").read_text()
    assert "Undo" not in own.see("columns").plain
    own.send("columns", do="place", attribute="origin", way="remove")
    second = path.read_text()
    page = own.send("protected", entity="bus", contributions="2", neighbours="replace", id="", population="")
    third = path.read_text()
    assert "Undo what was saved in: Who is protected" in page.plain and "Redo" not in page.plain
    page = own.send("again", way="undo", step="columns", seen=seen(own))
    assert path.read_text() == second and "Redo what was saved in: Who is protected" in page.plain
    own.send("again", way="undo", step="columns", seen=seen(own))
    assert path.read_text() == first and "Undo what" not in own.see("columns").plain
    for text in (second, third):
        own.send("again", way="redo", step="columns", seen=seen(own))
        assert path.read_text() == text
    path.write_text(third.replace("bus", "tram"))
    page = own.send("again", way="undo", step="columns", seen=seen(own))
    assert "nothing to undo" in page.plain and "tram" in path.read_text()


def seen(visitor: Visitor) -> str:
    return visitor.see("protected").field("seen")


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


def test_a_file_changes_no_other_column(beds: Path) -> None:
    regions = "\n".join(map(str, range(1, 20)))
    with visiting(beds) as visitor:
        visitor.send("table", do="choose", table="beds.csv")
        lists(visitor, COD_CCAA=regions, Unidad="a\nb\nc")
        before = plan_of(beds)["attributes"]
        save(visitor, "Cod_Provincia", "hierarchy", file="provinces.csv", levels="")
        after = plan_of(beds)["attributes"]
        assert after == before | {"Cod_Provincia": after["Cod_Provincia"]} and list(after) == list(before)
        assert after["Cod_Provincia"]["hierarchy"] == "provinces.csv"
        answer(visitor)
        assert tt.read_plan(beds / "plan.toml").plan.spine.leaves == 19 * 52 * 3
        page = visitor.send("columns", do="attribute", attribute="COD_CCAA", how="hierarchy", file="provinces.csv")
        assert page.status == 422 and "the columns are zone, Cod_Provincia" in page.plain
        assert plan_of(beds)["attributes"] == after


def test_a_file_says_which_rules_would_make_more_codes_match(tmp_path: Path) -> None:
    towns = [1000 + 7 * number for number in range(30)]
    (tmp_path / "places.csv").write_text("region,town\n" + "".join(f"N,{town:05}\n" for town in towns))
    rows = "".join(f"{towns[n % 30]},{towns[n // 7 % 30]},{'ab'[n % 2]}\n" for n in range(600))
    (tmp_path / "trips.csv").write_text(f"home,work,kind\n{rows}")
    with visiting(tmp_path) as visitor:
        visitor.send("table", do="choose", table="trips.csv")
        page = save(visitor, "origin", "hierarchy", file="places.csv", levels="")
        assert "“Zeros in front, up to”: 5 for home" in page.plain and "0 of 30 codes of home" in page.plain
        page = save(visitor, "origin", "hierarchy", file="places.csv", levels="region, town", pad="5")
        assert plan_of(tmp_path)["data"]["pad"] == {"home": 5} and "30 of 30 codes of home" in page.plain
        page = save(visitor, "destination", "same_as", same_as="origin")
        assert "“Zeros in front, up to”: 5 for work" in page.plain


def test_a_list_in_another_encoding_is_read_by_a_field(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_bytes("region;town\nN;Jaén\nS;Cádiz\n".encode("latin-1"))
    (tmp_path / "trips.csv").write_text("town,kind\n" + "Jaén,a\nCádiz,b\n" * 60)
    with visiting(tmp_path) as visitor:
        visitor.send("table", do="choose", table="trips.csv")
        visitor.send("columns", do="add", add="town")
        save(visitor, "town", "hierarchy", file="places.csv")
        assert plan_of(tmp_path)["attributes"]["town"]["encoding"] == "latin-1"
        save(visitor, "town", "hierarchy", file="places.csv", encoding="cp1252", delimiter=";")
        assert plan_of(tmp_path)["attributes"]["town"]["encoding"] == "cp1252"
        save(visitor, "town", "hierarchy", file="places.csv", encoding="latin-1", delimiter=";")
        assert plan_of(tmp_path)["attributes"]["town"]["encoding"] == "latin-1"
        assert "2 of 2 codes of town" in visitor.see("columns").plain


def test_standard_lists_and_bands_of_several_levels_by_clicks(tmp_path: Path) -> None:
    rows = "".join(
        f"{n % 103},{('DE', 'FR', 'KE', 'CL')[n % 4]},{('A04.72', 'J12.82', 'C50')[n % 3]}\n" for n in range(900)
    )
    (tmp_path / "stays.csv").write_text(f"age,country,cause\n{rows}")
    with visiting(tmp_path) as visitor:
        visitor.send("table", do="choose", table="stays.csv")
        attributes = plan_of(tmp_path)["attributes"]
        assert attributes["country"] == {"column": "country", "standard": "countries"}
        assert attributes["cause"] == {"column": "cause", "standard": "icd-10-cm"} and "bands" not in attributes["age"]
        assert 'value="0 18 40 60 80"' in visitor.see("columns").text  # a proposal, which is not saved
        save(visitor, "age", "bands", bands="adult = 0 18; age = 0 10 18 65")
        assert plan_of(tmp_path)["attributes"]["age"]["bands"] == {"adult": [0, 18], "age": [0, 10, 18, 65]}
        assert 'value="adult = 0 18; age = 0 10 18 65"' in visitor.see("columns").text
        page = save(visitor, "cause", "standard", standard="icd-10-cm", of="chapter")
        assert "3 of 3 codes of cause match" in page.plain
        answer(visitor)
        spine = tt.read_plan(tmp_path / "plan.toml").plan.spine
        assert spine.attributes["cause"].levels == ("chapter",) and spine.attributes["age"].levels == ("adult", "age")
        page = visitor.send(
            "columns", do="attribute", attribute="age", how="bands", bands="adult = 0 18; age = 0 10 65"
        )
        assert page.status == 422 and "age" in page.plain


def test_limits_of_records_are_compared_where_units_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text("person,mode\n" + "".join(f"p{n % 90},{'ab'[n % 2]}\n" for n in range(600)))
    public = "".join(f"p{n % 50},a\n" for n in range(100))
    (tmp_path / "earlier.csv").write_text(f"person,mode\n{public}")
    with visiting(tmp_path) as visitor:
        visitor.send("table", do="choose", table="trips.csv")
        form = {"entity": "person", "contributions": "3", "neighbours": "add-remove", "id": "person"}
        assert "once the columns have their values" in visitor.post("example", **form).plain
        lists(visitor, mode="a\nb")
        shown = visitor.post("example", **form).plain
        assert "3 (chosen)" in shown and "The finest counts are off by" in shown and "Records kept" not in shown
        kept = visitor.post("example", **form, prior="earlier.csv").plain
        assert "Records kept" in kept and "50.0 %" in kept and "100.0 %" in kept
        visitor.send("protected", **form, population="")
        visitor.send("accuracy", epsilon="1", delta="1e-8", by="epsilon", resolve="full")
        assert "Nobody has said about how many records there are" in visitor.see("review").plain
        visitor.send("accuracy", epsilon="1", delta="1e-8", by="epsilon", resolve="full", total="600")
        assert "Nobody has said" not in visitor.see("review").plain
