"""Columns become codes by public rules: bands of a number, dates, blanks and labels, in plan files and in Python."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop.domain.coding import Bands, Coding, Dates
from treetop.errors import DataError, HierarchyError, ManyDropped, PlanFileError

PLAN = """
[attributes.age]
bands = [0, 18, 40, 60, 80]
[attributes.died]
column = "date"
dates = { first = "2020-03-01", last = "2021-12-31", format = "dd/mm/yyyy" }
levels = ["year", "month"]
[attributes.male]
labels = { "0" = "female", "1" = "male" }
[attributes.brand]
values = ["AZ", "Pfizer"]
blank = "not vaccinated"
labels = { "AZ" = "AstraZeneca", "not vaccinated" = "none" }
[spine]
order = ["died.year", "male", "died.month", "age", "brand"]
[unit]
entity = "person"
contributions = 1
neighbours = "add-remove"
[loss]
epsilon = 1.0
delta = 1e-6
[data]
source = "deaths.csv"
"""

ROWS = """date,age,male,brand
17/03/2020,17,0,AZ
2021-12-31 23:59:59,"79,9",1,
1/4/2020,80,1,Pfizer
01/04/2020,101.0,0,
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deaths.csv").write_text(ROWS)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def _truth(file: tt.PlanFile, **rows: list[str]) -> tuple[Any, Any]:
    counts = tt.read_true_counts(file.plan, file.table(str(file.source)), file.columns)
    return counts.digest, tt.read_true_counts(file.plan, pa.table(rows)).digest


def test_ages_dates_codes_and_blanks_are_counted_as_the_plan_says(folder: Path) -> None:
    own, expected = _truth(
        tt.read_plan(folder / "plan.toml"),
        age=["0-17", "60-79", "80+", "80+"],
        died=["2020-03", "2021-12", "2020-04", "2020-04"],
        male=["0", "1", "1", "0"],
        brand=["AZ", "not vaccinated", "Pfizer", "not vaccinated"],
    )
    assert own == expected


def test_python_has_the_same_rules(folder: Path) -> None:
    file = tt.read_plan(folder / "plan.toml")
    attributes = {
        "age": tt.Hierarchy.from_bands([0, 18, 40, 60, 80]),
        "died": tt.Hierarchy.from_dates("2020-03", "2021", ["year", "month"], "dd/mm/yyyy"),
        "male": tt.Hierarchy.flat({"0": "female", "1": "male"}),
        "brand": tt.Hierarchy.flat(["AZ", "Pfizer"]).with_blank("not vaccinated"),
    }
    spine = tt.Spine(["died.year", "male", "died.month", "age", "brand"], attributes)
    plan = tt.Plan(spine, tt.Unit("person", neighbours="add-remove"), tt.Loss(epsilon=1.0, delta=1e-6))
    assert plan.spine.digest == file.plan.spine.digest
    assert plan.spine.coded == file.prepared
    table = pa.table(
        {
            "age": pa.array([17.0, 79.9, 80.0, float("nan"), 5.0], pa.float64()),
            "died": pa.array([date(2020, 3, 17), date(2021, 12, 31), *[date(2020, 4, 1)] * 3]),
            "male": pa.array([0, 1, 1, 0, 1]),
            "brand": pa.array(["AZ", None, "Pfizer", "", " "]).dictionary_encode(),
        }
    )
    with pytest.raises(DataError, match="'age', row 4: the code is missing"):
        tt.read_true_counts(plan, table)
    release = tt.make_release(
        plan, table.filter(pa.array([True, True, True, False, True])), tt.RunOptions(testing_key=bytes(32))
    )
    assert release.card["data"]["prepared"] == list(file.prepared)


def test_the_card_says_the_rules_and_the_folder_is_verified(folder: Path) -> None:
    tt.publish(folder / "plan.toml", options=tt.RunOptions(testing_key=bytes(32)), out=folder / "out")
    assert tt.Release.load(folder / "out").card["data"]["prepared"] == [
        "age is counted in bands: 0-17, 18-39, 40-59, 60-79, 80+",
        "dates of died are counted by month, from 2020-03-01 to 2021-12-31",
        "a record without brand is counted as 'not vaccinated'",
    ]
    assert all(verdict.verified for verdict in tt.check(folder / "out"))
    assert tt.read_plan(folder / "out" / "plan.toml").plan.digest == tt.read_plan(folder / "plan.toml").plan.digest
    text = (folder / "out" / "plan.toml").read_text()
    (folder / "out" / "plan.toml").write_text(text.replace("[0, 18, 40, 60, 80]", "[0, 18, 40, 60, 90]"))
    assert any("of the attributes" in finding for verdict in tt.check(folder / "out") for finding in verdict.findings)


def test_labels_are_names(folder: Path) -> None:
    tt.publish(folder / "plan.toml", options=tt.RunOptions(testing_key=bytes(32)), out=folder / "out")
    release = tt.Release.load(folder / "out")
    assert set(release.table("male", names=True)["male_name"].to_pylist()) <= {"female", "male"}
    assert release.query(male="female") == release.query(male="0")
    assert release.query(brand="none") == release.query(brand="not vaccinated")


def test_numbers_outside_of_bands_stay_unknown() -> None:
    given = ["-1", "0", "14.9", "15", "1,5", "+3", "1,234", "1e3", "inf", "old", None, "", " 7 "]
    made = Bands([0, 15]).codes(pa.array(given)).to_pylist()
    assert made == [None, "0-14", "0-14", "15+", "0-14", "0-14", None, None, None, None, None, None, "0-14"]


def test_bands_of_negative_numbers_and_of_fractions_have_clear_names() -> None:
    assert Bands([-10, -5, 0]).names == ("-10 to -6", "-5 to -1", "0+")
    bands = Bands([Decimal("18.5"), 25, 30])
    assert bands.names == ("18.5 to <25", "25 to <30", "30+")
    assert bands.codes(pa.array(["18,5", "24.99", "25"])).to_pylist() == ["18.5 to <25", "18.5 to <25", "25 to <30"]


@pytest.mark.parametrize(
    ("format", "text", "code"),
    [
        ("yyyy-mm-dd", "2020-03-17", "2020-03-17"),
        ("yyyy-mm-dd", "2020-03-17T10:00:00+01:00", "2020-03-17"),
        ("yyyy-mm-dd", " 2020-3-7 ", "2020-03-07"),
        ("dd/mm/yyyy", "07/03/2020 12:00", "2020-03-07"),
        ("mm/dd/yyyy", "03/07/2020", "2020-03-07"),
        ("dd.mm.yyyy", "7.3.2020", "2020-03-07"),
        ("yyyymmdd", "20200307", "2020-03-07"),
        ("mm/dd/yy", "3/7/20 0:00", "2020-03-07"),
        ("mm/dd/yy", "2020-03-07", "2020-03-07"),
        ("mm/dd/yy", "3/7/21", None),
        ("mm/dd/yyyy", "13/07/2020", None),
        ("dd/mm/yyyy", "31/02/2020", None),
        ("dd/mm/yyyy", "07-03-2020", None),
        ("yyyy-mm-dd", "2019-12-31", None),
    ],
)
def test_dates_are_read_in_usual_formats(format: str, text: str, code: str | None) -> None:
    assert Dates(["day"], "2020", "2020", format).codes(pa.array([text])).to_pylist() == [code]


def test_months_and_years_are_read_without_days() -> None:
    assert Dates(["year", "month"], "2020-02-10", "2021", "mm/yyyy").codes(
        pa.array(["3/2020", "02/2020"])
    ).to_pylist() == ["2020-03", "2020-02"]
    assert Dates(["year"], "2020", "2021", "yyyy").codes(pa.array(["2021", "2022"])).to_pylist() == ["2021", None]


def test_times_are_cut_to_days_with_their_own_time_zone() -> None:
    tree = tt.Hierarchy.from_dates("2020", "2020", ["day"])
    times = pa.array([datetime(2020, 3, 17, 23, 30)], pa.timestamp("us"))
    zoned = times.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us", "Europe/Rome"))
    assert tree.read(times, "t").to_pylist() == ["2020-03-17"]
    assert tree.read(zoned, "t").to_pylist() == ["2020-03-18"]


def test_weeks_are_cut_where_months_end_and_whole_by_themselves() -> None:
    tree = tt.Hierarchy.from_dates("2020", "2020", ["year", "quarter", "month", "week", "day"])
    assert tree.levels == ("year", "quarter", "month", "week", "day")
    weeks = tree.codes[3].to_pylist()
    assert {"2020-W14 in 2020-03", "2020-W14 in 2020-04", "2020-W11"} <= set(weeks)
    assert "2020-W14" in tt.Hierarchy.from_dates("2020", "2020", ["week", "day"]).codes[0].to_pylist()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bands = [0, 18, 18]", r"\[attributes\.x\] bands begin at"),
        ("bands = []", r"\[attributes\.x\] bands begin at"),
        ('bands = ["a"]', r"\[attributes\.x\] bands must be a list of numbers"),
        ("bands = { a = [0, 20], b = [0, 10, 30] }", "bands of 'a' must begin where bands of 'b' do"),
        ("bands = [0, 9]\nlevels = ['a', 'b']", "bands has one level, but 2 are named"),
        ("bands = [0, 9]\nvalues = ['a', 'b']", "both values and bands say"),
        ("bands = [0, 9]\nencoding = 'latin-1'", "encoding is about a hierarchy file, but bands needs none"),
        ("bands = [0, 9]\nwidths = [1]", "widths cuts codes into levels, but bands makes them"),
        ("dates = { first = '2020' }", "last is missing: give a public day"),
        ("dates = { first = '2020', last = '2019' }", "give the first day before the last"),
        ("dates = { first = '2020-13', last = '2021' }", "first is '2020-13'"),
        ("dates = { first = '2020', last = '2021', format = 'dd/mm' }", "write the year as yyyy"),
        ("dates = { first = '1900', last = '2021', format = 'dd/mm/yy' }", "two digits do not tell the year"),
        ("dates = { first = '2020', last = '2021' }\nlevels = ['mont']", "no level 'mont' .did you mean 'month'"),
        ("dates = { first = '2020', last = '2021' }\nlevels = ['month', 'year']", "go from coarse to fine"),
        (
            "dates = { first = '2020', last = '2021', format = 'mm/yyyy' }\nlevels = ['day']",
            "written as mm/yyyy do not tell the day",
        ),
        ("dates = '2020'", "dates must be a table, such as"),
        ("labels = { a = 1 }", "a must be a text in quotes"),
        ("values = ['f', 'm']\nlabels = { w = 'women' }", "labels: there is no code 'w' at level 'value'"),
        ("values = ['f', 'm']\nlabels = { sex = { f = 'women' } }", "there is no level 'sex'"),
        ("values = ['f', 'm']\nblank = ''", "blank must be a text that is not blank"),
        ("same_as = 'y'\nblank = 'none'", "blank belongs to the hierarchy"),
    ],
)
def test_mistakes_name_the_field_and_the_next_step(tmp_path: Path, line: str, message: str) -> None:
    text = f'[attributes.x]\n{line}\n[unit]\nentity = "a"\ncontributions = 1\nneighbours = "replace"\n[loss]\nrho = 1\n'
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises((PlanFileError, HierarchyError), match=message):
        tt.read_plan(tmp_path / "plan.toml")


def test_a_value_without_a_code_is_named_with_what_to_do(folder: Path) -> None:
    file = tt.read_plan(folder / "plan.toml")
    for wrong, message in [
        ('17/03/2020,"1,234",0,AZ', "row 1: '1,234' is not .* say thousands under .data."),
        ("17/03/2020,-1,0,AZ", "It is no number from 0 on, where the bands begin"),
        ("03/17/2020,1,0,AZ", "It is no date from 2020-03-01 to 2021-12-31, written as dd/mm/yyyy"),
        (",1,0,AZ", "column 'date', row 1: the code is missing"),
    ]:
        (folder / "deaths.csv").write_text(f"date,age,male,brand\n{wrong}\n")
        with pytest.raises(DataError, match=message):
            tt.read_true_counts(file.plan, file.table(str(file.source)), file.columns)


def test_a_blank_may_be_a_code_that_there_is() -> None:
    tree = tt.Hierarchy.flat(["a", "none"]).with_blank("none")
    assert tree.sizes == (2,)
    assert tree.read(pa.array([None, "", "  ", "a", "none"]), "x").to_pylist() == ["none", "none", "none", "a", "none"]
    assert Coding(blank="x").words("brand") == ["a record without brand is counted as 'x'"]


def _unknown(folder: Path, **treated: str) -> tt.PlanFile:
    """Return the plan with a treatment of unknown codes of some attributes."""
    text = PLAN
    for name, code in treated.items():
        text = text.replace(f"[attributes.{name}]", f'[attributes.{name}]\nunknown = "{code}"')
    (folder / "plan.toml").write_text(text)
    return tt.read_plan(folder / "plan.toml")


def test_unknown_codes_are_treated_attribute_by_attribute(folder: Path) -> None:
    (folder / "deaths.csv").write_text(ROWS + "17/03/2020,17,2,AZ\n17/03/2020,-5,0,AZ\nnever,17,0,AZ\n")
    file = _unknown(folder, male="elsewhere", age="drop", died="drop")
    assert file.plan.unknown == {"male": "elsewhere", "age": "drop", "died": "drop"}
    counts = tt.read_true_counts(file.plan, file.table(str(file.source)), file.columns)
    assert counts.total == 5
    with pytest.raises(ManyDropped, match="has unknown codes; nothing was measured") as caught:
        tt.publish(file, options=tt.RunOptions(testing_key=bytes(32)), out=folder / "out")
    assert "under the leaf for unknown codes (male 'elsewhere'), or would be dropped for that of" in str(caught.value)
    options = tt.RunOptions(testing_key=bytes(32), allow_dropped=True)
    tt.publish(file, options=options, out=folder / "out")
    assert all(verdict.verified for verdict in tt.check(folder / "out"))
    again = tt.read_plan(folder / "out" / "plan.toml").plan
    assert again.digest == file.plan.digest and again.unknown == file.plan.unknown
    card = (folder / "out" / "card.html").read_text()
    assert "were left out for these attributes: age, died. How many is private." in card
    assert "Any other code that is not in its hierarchy stops a release" in card
    (folder / "deaths.csv").write_text(ROWS + "17/03/2020,17,0,Moderna\n")
    with pytest.raises(DataError, match="'Moderna' is not a code .* 'brand'. It has AZ, Pfizer, not vaccinated"):
        tt.publish(file, options=options, out=folder / "out2")


def test_one_treatment_of_all_attributes_is_the_same_plan(folder: Path) -> None:
    (folder / "plan.toml").write_text(PLAN + 'unknown = "drop"\n')
    dropped = tt.read_plan(folder / "plan.toml").plan
    assert _unknown(folder, age="drop", died="drop", male="drop", brand="drop").plan.digest == dropped.digest
    assert _unknown(folder, age="error").plan.unknown == "error"
    (folder / "plan.toml").write_text(PLAN + 'unknown = { age = "drop", male = "elsewhere" }\n')
    listed = tt.read_plan(folder / "plan.toml").plan
    assert listed.digest == _unknown(folder, age="drop", male="elsewhere").plan.digest
    assert not listed.unit.total_is_exact(True)


def test_records_that_are_dropped_for_one_attribute_make_the_total_measured(folder: Path) -> None:
    text = PLAN.replace("add-remove", "replace")
    (folder / "plan.toml").write_text(text)
    assert tt.read_plan(folder / "plan.toml").plan.reads_total
    (folder / "plan.toml").write_text(text.replace("[attributes.age]", '[attributes.age]\nunknown = "drop"'))
    assert not tt.read_plan(folder / "plan.toml").plan.reads_total
    (folder / "plan.toml").write_text(text.replace("[attributes.age]", '[attributes.age]\nunknown = "elsewhere"'))
    assert tt.read_plan(folder / "plan.toml").plan.reads_total


def test_a_leaf_that_there_is_not_is_refused_with_its_attribute(folder: Path) -> None:
    with pytest.raises(PlanFileError, match=r"\[attributes.brand\] unknown: the leaf 'other' is not in the hierarchy"):
        _unknown(folder, brand="other")
    (folder / "plan.toml").write_text(PLAN + 'unknown = { brandy = "drop" }\n')
    with pytest.raises(PlanFileError, match="'brandy' is not an attribute .did you mean 'brand'"):
        tt.read_plan(folder / "plan.toml")


def test_a_code_that_is_unknown_is_shown_beside_those_that_are_known() -> None:
    unit, loss = tt.Unit("person", neighbours="replace"), tt.Loss(rho=1)
    brands = tt.Hierarchy.flat(["AZ", "Pfizer", "Sinovac"])
    plan = tt.Plan(tt.Spine(["brand"], {"brand": brands}), unit, loss)
    for given, message in [
        (["AZ", "Moderna"], "row 2: 'Moderna' is not a code in the hierarchy of 'brand'. It has AZ, Pfizer, Sinovac"),
        (["Pfiser"], "did you mean 'Pfizer'"),
        (["x", "y"], "nor is 1 more code after it"),
        (["x", "y", "z"], "nor are 2 more codes after it"),
    ]:
        with pytest.raises(DataError, match=message):
            tt.read_true_counts(plan, pa.table({"brand": given}))


def test_coordinates_of_a_hierarchy_file_may_have_decimal_commas(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text("town;lat;lon;;\nAlmería;36,847087;-2,463554;;\nCádiz;36,54;-6,286;;\n")
    (tmp_path / "people.csv").write_text("town\n" + "Almería\nCádiz\n" * 50)
    (tmp_path / "plan.toml").write_text(
        '[attributes.town]\nhierarchy = "places.csv"\ndelimiter = ";"\nlevels = ["town"]\nlatitude = "lat"\n'
        'longitude = "lon"\n[unit]\nentity = "person"\ncontributions = 1\nneighbours = "replace"\n[loss]\nrho = 1\n'
        '[data]\nsource = "people.csv"\n'
    )
    tt.publish(tmp_path / "plan.toml", options=tt.RunOptions(testing_key=bytes(32)), out=tmp_path / "out")
    (places,) = (tmp_path / "out" / "places").iterdir()
    assert pq.read_table(places)["latitude"].to_pylist() == [36.847087, 36.54]
