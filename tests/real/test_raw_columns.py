"""Raw tables that nobody prepared, from file to release by a plan alone: dates, ages, codes, blanks, decimal commas."""

from __future__ import annotations

from pathlib import Path

import pytest

import treetop as tt

END = """
[unit]
entity = "person"
contributions = 1
neighbours = "add-remove"
[loss]
epsilon = 1.0
delta = 1e-6
"""
DEATHS = """
[attributes.month]
column = "date"
dates = { first = "2020-03", last = "2024-05" }
levels = ["year", "month"]
[attributes.state]
values = ["Johor", "Kedah", "Kelantan", "Melaka", "Negeri Sembilan", "Pahang", "Perak", "Perlis", "Pulau Pinang",
  "Sabah", "Sarawak", "Selangor", "Terengganu", "W.P. Kuala Lumpur", "W.P. Labuan", "W.P. Putrajaya"]
[attributes.age]
bands = [0, 18, 40, 60, 80]
[attributes.sex]
column = "male"
labels = { "0" = "female", "1" = "male" }
[attributes.brand1]
values = ["AstraZeneca", "Pfizer", "Sinovac"]
blank = "not vaccinated"
unknown = "elsewhere"
[spine]
order = ["month.year", "state", "month", "age", "sex", "brand1"]
"""
CRIMES = """
[attributes.day]
dates = { first = "2006-01-01", last = "2006-01-31", format = "mm/dd/yy" }
levels = ["week", "day"]
[attributes.district]
values = ["1", "2", "3", "4", "5", "6"]
[spine]
order = ["district", "day.week", "day"]
[data]
header = false
names = ["day", "address", "district", "beat", "grid", "offence", "code", "latitude", "longitude"]
trim = ["district"]
"""
BEDS = """
[attributes.month]
column = "Fecha"
dates = { first = "2020-08", last = "2021-05", format = "dd/mm/yyyy" }
levels = ["month"]
[attributes.place]
column = "Provincia"
hierarchy = "latlon_prov.csv"
delimiter = ";"
levels = { region = "CA", province = "Place" }
latitude = "Latitude"
longitude = "longitude"
unknown = "elsewhere"
[attributes.unit]
column = "Unidad"
values = ["Hospitalización convencional", "U. Críticas CON respirador", "U. Críticas SIN respirador"]
[spine]
order = ["place.region", "unit", "place.province", "month"]
[data]
count = "OCUPADAS_COVID19"
delimiter = ";"
encoding = "latin-1"
"""


def _released(folder: Path, plan: str, table: Path) -> tt.Release:
    if not table.exists():
        pytest.skip(f"the raw table is not here: {table} does not exist")
    (folder / "plan.toml").write_text(plan + END, encoding="utf-8")
    options = tt.RunOptions(testing_key=bytes(32), allow_dropped=True)
    file = tt.read_plan(folder / "plan.toml")
    errors = tt.read_true_counts(file.plan, file.table(str(table)), file.columns, file.count)
    release = tt.publish(file, str(table), options=options, out=folder / "out").release
    assert all(verdict.verified for verdict in tt.check(folder / "out"))
    assert abs(release.total - errors.total) < 50
    return release


def test_a_line_list_of_deaths_by_month_age_and_labelled_codes(data: Path, tmp_path: Path) -> None:
    release = _released(tmp_path, DEATHS, data / "raw" / "linelist_deaths.csv")
    assert abs(release.query(sex="male") - 21_502) < 60 and abs(release.query(brand1="not vaccinated") - 22_475) < 90
    assert abs(release.query(brand1="elsewhere") - 84) < 60
    assert release.table("month").column_names[0] == "month"


def test_a_file_without_header_whose_dates_have_two_digits_of_the_year(data: Path, tmp_path: Path) -> None:
    release = _released(tmp_path, CRIMES, data / "raw" / "crime.csv")
    assert release.table("district").num_rows == 6 and "2006-W01" in release.table("day.week")["day.week"].to_pylist()


def test_semicolons_latin_letters_and_coordinates_with_decimal_commas(data: Path, tmp_path: Path) -> None:
    places = data / "raw" / "latlon_prov.csv"
    if not places.exists():
        pytest.skip("the raw table is not here")
    (tmp_path / "latlon_prov.csv").write_bytes(places.read_bytes())
    release = _released(tmp_path, BEDS, data / "raw" / "Capacidad_Asistencial_Historico_gobes.csv")
    assert release.query(place="Madrid") > 100_000
    tt.export(tmp_path / "out", "map", tmp_path / "map.html", skip_missing=True)
    assert (tmp_path / "map.html").stat().st_size > 10_000
