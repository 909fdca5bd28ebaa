"""Names of attributes and levels: with dots, blanks and accents, renamed, and an attribute by its own name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import treetop as tt
from tests.commands import said
from treetop.errors import HierarchyError, PlanFileError, SpineError

PLAN = """
[attributes.month]
column = "fecha"
dates = {{ first = "2020", last = "2021", format = "dd/mm/yyyy" }}
levels = ["year", "month"]
[attributes."Prov. España"]
column = "Prov."
hierarchy = "prov.csv"
delimiter = ";"
encoding = "latin-1"
levels = {levels}
names = {{ "Cód. Provincia" = "Nombre" }}
[attributes.state]
labels = {{ "0" = "alive", "1" = "dead" }}
[spine]
order = ["month.year", "state", "Prov. España.Cód. CCAA", "month", "Prov. España.Cód. Provincia"]
margins = ["state * month", "Prov. España.Cód. CCAA", "month"]
[unit]
entity = "person"
contributions = 1
neighbours = "replace"
[loss]
rho = 1
split = {{ "month.year" = 1, state = 1, "Prov. España.Cód. CCAA" = 2, "month.month" = 1, "Prov. España.Cód. Provincia" = 1, margins = 1 }}
[data]
source = "people.csv"
"""  # noqa: E501
AS_THEY_ARE = '["Cód. CCAA", "Cód. Provincia"]'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{day:02d}/{1 + day % 12:02d}/2020;0{1 + day % 4};{day % 2}" for day in range(1, 29)] * 30
    (tmp_path / "people.csv").write_text("\n".join(["fecha;Prov.;state", *rows, ""]))
    text = "Cód. CCAA;Cód. Provincia;Nombre\n1;01;Álava\n1;02;Coruña\n2;03;Jaén\n2;04;León\n"
    (tmp_path / "prov.csv").write_text(text, encoding="latin-1")
    (tmp_path / "plan.toml").write_text(PLAN.format(levels=AS_THEY_ARE))
    return tmp_path


@pytest.fixture
def out(folder: Path) -> Path:
    tt.publish(folder / "plan.toml", options=tt.RunOptions(testing_key=bytes(32)), out=folder / "out")
    return folder / "out"


def test_names_with_dots_blanks_and_accents_work_from_plan_to_folder(out: Path) -> None:
    assert all(verdict.verified for verdict in tt.check(out))
    release = tt.Release.load(out)
    assert release.query(**{"Prov. España.Cód. Provincia": "Jaén"}) == release.query(**{"Prov. España": "03"})
    assert release.table("Cód. CCAA").column_names[0] == "Prov. España.Cód. CCAA"
    assert release.table(["Prov. España.Cód. Provincia", "state"]).num_rows > 4
    assert tt.read_plan(out.parent / "plan.toml").plan.digest == release.card["plan_sha256"]


def test_the_command_line_takes_them_as_they_are(out: Path) -> None:
    ran = said(["query", str(out), "--by", "Prov. España.Cód. CCAA", "Prov. España.Cód. Provincia=León"])
    assert ran.code == 0 and ran.out.splitlines()[0].startswith("Prov. España.Cód. CCAA")
    for level in ("Cód. CCAA", "Prov. España.Cód. CCAA"):
        file = out.parent / f"{len(level)}.csv"
        assert said(["export", str(out), "--to", "csv", "--level", level, "--out", str(file)]).code == 0
        assert {row.split(",")[1] for row in file.read_text().splitlines()[1:]} == {'"1"', '"2"'}


def test_an_attribute_is_called_by_its_name_wherever_a_level_is_asked_for(out: Path) -> None:
    release = tt.Release.load(out)
    assert release.table("state").column_names[0] == "state"
    assert release.table("month").column_names[0] == "month" and release.table("month").num_rows >= 12
    assert release.table("month").num_rows > 12
    for name in ("state", "month"):
        assert said(["query", str(out), "--by", name]).code == 0
        assert said(["export", str(out), "--to", "csv", "--level", name, "--out", str(out.parent / name)]).code == 0
    titles = [level["counts"] for level in release.card["levels"]]
    assert "month × Prov. España Cód. CCAA × state" in titles and not any("month month" in one for one in titles)


def test_a_level_that_is_not_there_is_named_with_those_that_are(out: Path) -> None:
    ran = said(["export", str(out), "--to", "csv", "--level", "stat", "--out", str(out.parent / "x.csv")])
    assert "there is no level 'stat'" in ran.err and "Prov. España.Cód. CCAA" in ran.err


def test_levels_are_renamed_in_plan_files_and_in_python(folder: Path) -> None:
    text = PLAN.format(levels='{ region = "Cód. CCAA", province = "Cód. Provincia" }')
    for old, new in (("España.Cód. CCAA", "España.region"), ("España.Cód. Provincia", "España.province")):
        text = text.replace(old, new)
    (folder / "plan.toml").write_text(text.replace('{ "Cód. Provincia" = "Nombre" }', '{ province = "Nombre" }'))
    tree = tt.read_plan(folder / "plan.toml").plan.spine.attributes["Prov. España"]
    source = tt.Source(folder / "prov.csv", delimiter=";", encoding="latin-1")
    own = tt.Hierarchy.from_table(source, {"region": "Cód. CCAA", "province": "Cód. Provincia"})
    assert tree.levels == ("region", "province") and own.digest == tree.digest
    assert tree.names["province"].to_pylist() == ["Álava", "Coruña", "Jaén", "León"]
    dates = tt.Hierarchy.from_dates("2020", "2020", {"Jahr": "year", "Monat": "month"})
    assert dates.levels == ("Jahr", "Monat")
    spine = tt.Spine(["date.Jahr", "date.Monat"], {"date": dates})
    plan = tt.Plan(spine, tt.Unit("person", neighbours="replace"), tt.Loss(rho=1))
    tt.make_release(plan, pa.table({"date": ["2020-01-01"] * 9}), tt.RunOptions(testing_key=bytes(32))).save(
        folder / "python"
    )
    assert all(verdict.verified for verdict in tt.check(folder / "python"))
    assert 'levels = { Jahr = "year", Monat = "month" }' in (folder / "python" / "plan.toml").read_text()


def test_a_list_has_no_columns_to_rename(folder: Path) -> None:
    text = PLAN.format(levels=AS_THEY_ARE).replace("labels = {", 'levels = { s = "x" }\nlabels = {')
    (folder / "plan.toml").write_text(text)
    with pytest.raises(PlanFileError, match=r"\[attributes.state\] levels renames the columns of a hierarchy file"):
        tt.read_plan(folder / "plan.toml")


def test_names_that_dots_make_alike_are_refused() -> None:
    one, two = tt.Hierarchy.flat(["x"], "b.c"), tt.Hierarchy.flat(["x"], "c")
    with pytest.raises(SpineError, match=r"'a.b.c' may be level 'c' of 'a.b' or a level of 'a'"):
        tt.Spine(["a", "a.b"], {"a": one, "a.b": two})
    with pytest.raises(SpineError, match="rename one of them"):
        tt.Spine(["a", "a.b"], {"a": tt.Hierarchy.flat(["x"], "b"), "a.b": two})
    with pytest.raises(HierarchyError, match="level 2 has no name"):
        tt.Hierarchy.from_prefixes(["ab"], [1, 2], ["a", ""])


def test_a_hierarchy_file_has_its_own_encoding_delimiter_and_sheet(folder: Path) -> None:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    book = xlsxwriter.Workbook(folder / "prov.xlsx")
    book.add_worksheet("notes").write(0, 0, "nothing")
    sheet = book.add_worksheet("codes")
    for row, line in enumerate((folder / "prov.csv").read_text(encoding="latin-1").splitlines()):
        sheet.write_row(row, 0, line.split(";"))
    book.close()
    digest = tt.read_plan(folder / "plan.toml").plan.digest
    text = PLAN.format(levels=AS_THEY_ARE).replace('prov.csv"\ndelimiter = ";"\nencoding = "latin-1"', 'prov.xlsx"')
    (folder / "plan.toml").write_text(text.replace('prov.xlsx"', 'prov.xlsx"\nsheet = "codes"'))
    assert tt.read_plan(folder / "plan.toml").plan.digest == digest
    (folder / "plan.toml").write_text(PLAN.format(levels=AS_THEY_ARE).replace('encoding = "latin-1"\n', ""))
    with pytest.raises(HierarchyError, match=r"\[attributes.Prov. España\] hierarchy: .*encoding"):
        tt.read_plan(folder / "plan.toml")
