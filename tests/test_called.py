"""Names of codes: public, found by queries, carried by folders and exports, and never more than a help for people."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import python_calamine

import treetop as tt
from tests.commands import printed
from treetop import check, cli, export
from treetop.card import in_words
from treetop.errors import HierarchyError, PlanFileError, QueryError, ReleaseError

PLACES = """region,region_name,town,town_name
Y,Yorkshire,T9,Leeds
Y,Yorkshire,T1,York
K,Kent,T5,Leeds
K,Kent,T2,
"""
PLAN = """
title = "Trips"
[attributes.origin]
hierarchy = "places.csv"
levels = ["region", "town"]
names = { region = "region_name", town = "town_name" }
[attributes.destination]
same_as = "origin"
[spine]
order = "destination-first"
[unit]
entity = "trip"
contributions = 1
neighbours = "replace"
[loss]
rho = 100
[data]
source = "trips.csv"
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "places.csv").write_text(PLACES)
    rows = [(a, b) for a in ("T9", "T1", "T5", "T2") for b in ("T9", "T5") for _ in range(50)]
    (tmp_path / "trips.csv").write_text("origin,destination\n" + "".join(f"{a},{b}\n" for a, b in rows))
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


@pytest.fixture
def folder(plan: Path) -> Path:
    tt.publish(plan, options=tt.RunOptions(testing_key=bytes(32)), out="release")
    return Path("release")


def run(*words: str) -> str:
    return printed(*words)


def verified(folder: str | Path) -> bool:
    return all(verdict.verified for verdict in check(folder))


def sheets(path: Path) -> dict[str, list[list[Any]]]:
    book = python_calamine.CalamineWorkbook.from_path(path)
    return {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}


def tree(**options: Any) -> tt.Hierarchy:
    columns = list(zip(*csv.reader(PLACES.splitlines()[1:]), strict=True))
    table = pa.table(dict(zip(PLACES.splitlines()[0].split(","), columns, strict=True)))
    return tt.Hierarchy.from_table(table, ["region", "town"], **options)


def test_names_and_the_order_of_the_list_are_no_part_of_a_trees_digest() -> None:
    named = tree(names={"region": "region_name", "town": "town_name"})
    assert named.digest == tree().digest
    assert named.names["region"].to_pylist() == ["Kent", "Yorkshire"]
    assert named.names["town"].to_pylist() == [None, "Leeds", "York", "Leeds"]  # T2, T5, T1, T9
    assert named.to_table()["town"].to_pylist() == ["T9", "T1", "T5", "T2"]
    again = tt.Hierarchy.from_table(named.to_table(), ["region", "town"])
    assert again.digest == named.digest and again.to_table() == named.to_table()


def test_a_part_of_a_tree_keeps_its_names() -> None:
    named = tree(names={"region": "region_name", "town": "town_name"})
    assert named.select(["region"]).names["region"].to_pylist() == ["Kent", "Yorkshire"]
    towns = named.select(["town"])
    assert dict(zip(towns.codes[0].to_pylist(), towns.names["town"].to_pylist(), strict=True)) == {
        "T1": "York", "T2": None, "T5": "Leeds", "T9": "Leeds",
    }  # fmt: skip
    assert towns.to_table()["town"].to_pylist() == ["T9", "T1", "T5", "T2"]


def test_a_code_that_is_carried_down_is_called_as_it_is_above() -> None:
    table = pa.table({"region": ["A", "A", "B"], "name": ["Alpha", "Alpha", "Beta"], "town": ["a1", "a2", ""],
                      "called": ["One", "Two", ""]})  # fmt: skip
    found = tt.Hierarchy.from_table(table, ["region", "town"], "repeat", names={"region": "name", "town": "called"})
    assert dict(zip(found.codes[1].to_pylist(), found.names["town"].to_pylist(), strict=True)) == {
        "a1": "One", "a2": "Two", "B": "Beta",
    }  # fmt: skip


def test_a_list_of_parents_names_the_codes_of_all_levels() -> None:
    edges = pa.table({"child": ["n1", "n2", "N"], "parent": ["N", "N", None], "label": ["One", "Two", "North"]})
    found = tt.Hierarchy.from_parents(edges, levels=["region", "town"], name="label")
    assert {level: names.to_pylist() for level, names in found.names.items()} == {
        "region": ["North"], "town": ["One", "Two"],
    }  # fmt: skip


def test_a_code_with_two_names_and_names_of_no_level_are_refused() -> None:
    table = pa.table({"region": ["A", "A"], "name": ["Alpha", "Alfa"], "town": ["a1", "a2"]})
    with pytest.raises(HierarchyError, match="code 'A' of level 'region' has two names, 'Alpha' and 'Alfa'"):
        tt.Hierarchy.from_table(table, ["region", "town"], names={"region": "name"})
    with pytest.raises(HierarchyError, match="there is no level 'country'"):
        tt.Hierarchy.from_table(table, ["region", "town"], names={"country": "name"})
    with pytest.raises(HierarchyError, match="there is no column 'nom'"):
        tt.Hierarchy.from_table(table, ["region", "town"], names={"region": "nom"})


def test_names_in_a_plan_file_that_do_not_fit_are_refused(plan: Path) -> None:
    for old, new, why in (
        ('region = "region_name"', 'country = "region_name"', "names: there is no level 'country'"),
        ('town = "town_name" }', 'town = "town_name" }\nname = "region_name"', "name and names say different columns"),
        ('region = "region_name"', 'region = "nom"', "there is no column 'nom'"),
        ('names = { region = "region_name", town = "town_name" }', "names = 3", "must be a text in quotes"),
        (
            'levels = ["region", "town"]',
            'child = "town"\nparent = "region"',
            "a list of parents names all codes in one column: say names",
        ),
    ):
        assert old in PLAN
        plan.write_text(PLAN.replace(old, new))
        with pytest.raises((PlanFileError, HierarchyError), match=why):
            tt.read_plan(plan)


def test_one_column_names_the_finest_level_or_all_codes_of_a_list_of_parents(plan: Path) -> None:
    named = 'names = { region = "region_name", town = "town_name" }'
    plan.write_text(PLAN.replace(named, 'names = "town_name"'))
    assert list(tt.read_plan(plan).plan.spine.trees[0].names) == ["town"]
    Path("edges.csv").write_text("code,above,label\nN,,North\nn1,N,One\nn2,N,Two\n")
    text = PLAN.replace("places.csv", "edges.csv").replace('["region", "town"]', '["region", "town"]\nchild = "code"')
    plan.write_text(text.replace(named, 'parent = "above"\nnames = "label"'))
    found = tt.read_plan(plan).plan.spine.trees[0].names
    assert {level: names.to_pylist() for level, names in found.items()} == {"region": ["North"], "town": ["One", "Two"]}


def test_a_plan_of_before_that_only_says_name_has_the_same_folder_as_ever(plan: Path) -> None:
    plan.write_text(PLAN.replace('names = { region = "region_name", town = "town_name" }', 'name = "town_name"'))
    tt.publish(plan, options=tt.RunOptions(testing_key=bytes(32)), out="old")
    assert not Path("old/names").exists()


def test_prefix_codes_are_named_by_columns_of_their_file(plan: Path) -> None:
    Path("codes.csv").write_text("code,state,town\n0101,Alba,Uno\n0102,Alba,Due\n0201,Brio,Tre\n")
    text = PLAN.replace("places.csv", "codes.csv").replace(
        'levels = ["region", "town"]', 'codes = "code"\nwidths = [2]'
    )
    named = '{ digits2 = "state", digits4 = "town" }'
    plan.write_text(text.replace('{ region = "region_name", town = "town_name" }', named))
    found = tt.read_plan(plan).plan.spine.trees[0]
    assert {level: names.to_pylist() for level, names in found.names.items()} == {
        "digits2": ["Alba", "Brio"], "digits4": ["Uno", "Due", "Tre"],
    }  # fmt: skip


def test_a_folder_carries_names_and_its_plan_makes_the_same_release_again(folder: Path) -> None:
    loaded = tt.Release.load(folder)
    assert loaded.spine.trees[0].names["region"].to_pylist() == ["Kent", "Yorkshire"]
    (names,) = (folder / "names").iterdir()
    listed = [file["path"] for file in loaded.card["files"]]
    assert f"names/{names.name}" in listed
    assert pq.read_table(names).num_rows == 2 + 3
    assert verified(folder)
    Path("again").mkdir()
    for file in ("places.csv", "trips.csv"):
        shutil.copy(file, "again")
    shutil.copy(folder / "plan.toml", "again/plan.toml")
    tt.publish("again/plan.toml", "again/trips.csv", options=tt.RunOptions(testing_key=bytes(32)), out="again/release")
    assert pq.read_table("again/release/counts.parquet") == pq.read_table(folder / "counts.parquet")


def test_names_change_no_count_and_no_digest_of_a_plan(plan: Path, folder: Path) -> None:
    plan.write_text("".join(line for line in PLAN.splitlines(keepends=True) if not line.startswith("names")))
    tt.publish(plan, options=tt.RunOptions(testing_key=bytes(32)), out="bare")
    assert not Path("bare/names").exists()
    named, bare = (tt.Release.load(one) for one in (folder, "bare"))
    assert named.card["plan_sha256"] == bare.card["plan_sha256"]
    for file in ("counts.parquet", "margins.parquet", "evidence.parquet", "measurements.parquet"):
        assert (folder / file).read_bytes() == Path("bare", file).read_bytes()


def test_names_that_were_changed_are_found(folder: Path) -> None:
    (names,) = (folder / "names").iterdir()
    table = pq.read_table(names)
    pq.write_table(table.set_column(2, "name", pa.array(["Essex"] * table.num_rows)), names)
    with pytest.raises(ReleaseError, match="is not the one that card.json names, by its SHA-256"):
        tt.Release.load(folder)
    assert not verified(folder)
    names.unlink()
    with pytest.raises(ReleaseError, match="names/"):
        tt.Release.load(folder)


def test_names_of_codes_that_there_are_not_are_refused(folder: Path) -> None:
    (names,) = (folder / "names").iterdir()
    pq.write_table(pa.table({"level": ["town"], "code": ["T77"], "name": ["Nowhere"]}), names)
    found = [finding for verdict in check(folder) for finding in verdict.findings]
    assert any("names a code that is not in its hierarchy" in one for one in found)


def test_queries_find_names_as_well_as_codes(folder: Path) -> None:
    release = tt.Release.load(folder)
    assert release.query(origin="Yorkshire") == release.query(origin="Y") > 0
    assert release.query(origin="yorkshire ") == release.query(origin="Y")
    assert release.query(origin="York") == release.query(origin="T1")
    assert release.interval(origin="York") == release.interval(origin="T1")


def test_a_name_that_may_be_several_is_an_error_with_the_choices(folder: Path) -> None:
    release = tt.Release.load(folder)
    with pytest.raises(QueryError) as told:
        release.query(origin="Leeds")
    assert str(told.value) == (
        "origin=Leeds may be 2 different ones: say origin.town=T5 (Leeds, in Kent) or origin.town=T9 (Leeds, in "
        "Yorkshire)"
    )
    with pytest.raises(QueryError, match=r"there is no code or name 'Yorkshir' .*did you mean 'Yorkshire'"):
        release.query(origin="Yorkshir")


def test_a_code_goes_before_a_name_where_its_level_is_said() -> None:
    named = tt.Hierarchy.flat(["A", "B"], level="kind").named({"kind": {"B": "A"}})
    plan = tt.Plan(tt.Spine(["kind"], {"kind": named}), tt.Unit("x", neighbours="replace"), tt.Loss(rho=100))
    release = tt.make_release(plan, pa.table({"kind": ["A"] * 50 + ["B"] * 9}), tt.RunOptions(testing_key=bytes(32)))
    with pytest.raises(QueryError, match=r"kind=A may be 2 different ones: say kind.kind=A or kind.kind=B \(A\)"):
        release.query(kind="A")
    counts = dict(zip(*release.table("kind").select(["kind", "count"]).to_pydict().values(), strict=True))
    assert release.query(**{"kind.kind": "A"}) == counts["A"] != counts["B"]


def test_short_names_stand_for_every_attribute_and_rows_follow_the_list(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads(run("query", str(folder), "--by", "region", "--json"))
    assert told["by"] == ["origin.region", "destination.region"]
    assert [(row["origin.region_name"], row["destination.region_name"]) for row in told["rows"]] == [
        ("Yorkshire", "Yorkshire"), ("Yorkshire", "Kent"), ("Kent", "Yorkshire"), ("Kent", "Kent"),
    ]  # fmt: skip
    towns = json.loads(run("query", str(folder), "--by", "origin.town", "--json"))["rows"]
    assert [row["origin.town"] for row in towns] == ["T9", "T1", "T5", "T2"]
    with pytest.raises(SystemExit):
        cli.main(["query", str(folder), "--by", "regions"])
    assert "there is no level 'regions'" in capsys.readouterr().err


def test_a_table_shows_names_beside_codes_and_a_code_where_there_is_none(folder: Path) -> None:
    lines = run("query", str(folder), "--by", "origin.town").splitlines()
    assert lines[0].split() == ["origin.town", "origin.town_name", "count", "lower", "upper"]
    assert [line.split()[:2] for line in lines[1:]] == [["T9", "Leeds"], ["T1", "York"], ["T5", "Leeds"], ["T2", "T2"]]


def test_csv_and_excel_of_any_release_have_codes_names_count_and_bounds(folder: Path) -> None:
    release = tt.Release.load(folder)
    export(folder, "csv", "counts.csv")
    with Path("counts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = ["origin", "origin_name", "destination", "destination_name", "count", "lower", "upper", "outside"]
    assert list(rows[0]) == columns
    assert [row["origin"] for row in rows] == sorted(
        (row["origin"] for row in rows), key=["T9", "T1", "T5", "T2"].index
    )
    expected = {(one["origin"], one["destination"]): one for one in release.table().to_pylist()}
    assert len(rows) == len(expected)
    for row in rows:
        one = expected[row["origin"], row["destination"]]
        assert [int(row[name]) for name in ("count", "lower", "upper")] == [one["count"], one["lower"], one["upper"]]
    export(folder, "excel", "counts.xlsx")
    head, *cells = sheets(Path("counts.xlsx"))["counts"]
    assert head == columns
    marked = [{**row, "outside": "outside its range" if row["outside"] == "true" else ""} for row in rows]
    assert [[str(cell).removesuffix(".0") for cell in row] for row in cells] == [list(row.values()) for row in marked]


def test_exports_at_a_coarser_level_have_its_names_and_bounds(folder: Path) -> None:
    export(folder, "csv", "counts.csv", level="region")
    with Path("counts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    release = tt.Release.load(folder)
    assert (rows[0]["origin_name"], rows[0]["destination_name"]) == ("Yorkshire", "Yorkshire")
    told = release.interval(**{"origin.region": "Y", "destination.region": "Y"})
    assert (int(rows[0]["lower"]), int(rows[0]["upper"])) == tuple(told)


def test_a_release_of_one_attribute_is_exported_too(tmp_path: Path) -> None:
    plan = tt.Plan(
        tt.Spine(["age"], {"age": tt.Hierarchy.flat(["9", "10", "=1+1", "@x"], level="age")}),
        tt.Unit("person", neighbours="add-remove"), tt.Loss(rho=100), title="Ages", confidence=None,
    )  # fmt: skip
    release = tt.make_release(
        plan, pa.table({"age": ["9", "10", "=1+1", "@x"] * 50}), tt.RunOptions(testing_key=bytes(32))
    )
    export(release, "csv", tmp_path / "ages.csv")
    assert (tmp_path / "ages.csv").read_text().splitlines()[0] == "age,count"
    export(release, "excel", tmp_path / "ages.xlsx")
    cells = sheets(tmp_path / "ages.xlsx")
    assert [row[0] for row in cells["counts"]] == ["age", "9", "10", "=1+1", "@x"]  # as listed, texts, not computed
    assert isinstance(cells["counts"][1][1], float)


def test_no_cell_of_a_workbook_is_a_formula_or_a_link(tmp_path: Path) -> None:
    import zipfile

    codes = ["=1+1", "+1", "-1", "@SUM(A1)", "http://example.org", "=cmd|' /C calc'!A0", "\t=1"]
    hostile = tt.Hierarchy.flat(codes, level="kind").named({"kind": dict.fromkeys(codes, '=HYPERLINK("x")')})
    plan = tt.Plan(tt.Spine(["kind"], {"kind": hostile}), tt.Unit("x", neighbours="replace"), tt.Loss(rho=100),
                   title="=1+1")  # fmt: skip
    release = tt.make_release(plan, pa.table({"kind": codes * 50}), tt.RunOptions(testing_key=bytes(32)))
    export(release, "excel", tmp_path / "out.xlsx")
    with zipfile.ZipFile(tmp_path / "out.xlsx") as packed:
        for name in packed.namelist():
            if name.startswith("xl/worksheets/"):
                content = packed.read(name)
                assert b"<f>" not in content and b"<f " not in content and b"<hyperlink" not in content.lower()
    assert {row[0] for row in sheets(tmp_path / "out.xlsx")["counts"][1:]} == set(codes)


def test_the_readme_of_a_workbook_states_guarantee_margins_and_zeros(folder: Path) -> None:
    export(folder, "excel", "counts.xlsx")
    card = tt.Release.load(folder).card
    told = "\n".join(str(cell) for row in sheets(Path("counts.xlsx"))["read me"] for cell in row)
    assert all(in_words(card[name]) in told for name in ("guarantee", "protects", "warning"))
    assert "is a released zero" in told and "95 % of such ranges hold the true number" in told
    for level in card["levels"]:
        if level["margin"] is not None:
            assert f"± {level['margin']:,}" in told


def test_the_readme_of_a_resolved_release_says_that_nothing_is_a_zero(plan: Path) -> None:
    plan.write_text(f"{PLAN}\n[release]\nresolve = {{ sigmas = 3 }}\n")
    tt.publish(plan, options=tt.RunOptions(testing_key=bytes(32)), out="resolved")
    export("resolved", "excel", "counts.xlsx")
    told = "\n".join(str(cell) for row in sheets(Path("counts.xlsx"))["read me"] for cell in row)
    assert "is not a zero" in told and "released zero" not in told


def test_a_workbook_is_the_same_file_each_time(folder: Path) -> None:
    for name in ("a.xlsx", "b.xlsx"):
        export(folder, "excel", name)
    assert sheets(Path("a.xlsx")) == sheets(Path("b.xlsx"))


def test_without_its_library_a_workbook_is_refused_by_the_name_of_the_extra(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "xlsxwriter", None)
    with pytest.raises(ReleaseError, match=r"pip install 'treetop-dp\[excel\]'"):
        export(folder, "excel", "counts.xlsx")
    assert not Path("counts.xlsx").exists()


def test_more_rows_than_a_sheet_has_are_refused_with_a_way_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treetop.exporting.any_table.LARGEST", 3)
    with pytest.raises(ReleaseError, match=r"at most 3: export a coarser `level`, or `to=csv`"):
        export(folder, "excel", "counts.xlsx")


def test_large_exports_announce_their_size_and_small_ones_do_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    export(folder, "csv", "a.csv", announce=told.append)
    assert told == []
    monkeypatch.setattr("treetop.exporting.MANY_ROWS", 3)
    done = export(folder, "csv", "b.csv", announce=told.append)
    size = Path("b.csv").stat().st_size
    assert len(told) == 1 and told[0].startswith(f"writing {done.rows:,} rows, about ")
    about = int(told[0].split("about ")[1].split()[0])
    assert 0.7 * size < about < 1.3 * size
    monkeypatch.setattr("treetop.exporting.MANY_OF_A_BOOK", 3)
    export(folder, "excel", "b.xlsx", announce=told.append)
    assert told[1] == f"writing {done.rows:,} rows: a workbook takes its time, and csv is faster"


def test_an_export_that_the_disk_does_not_hold_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treetop.exporting.disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(ReleaseError, match="its disk has 1 bytes left"):
        export(folder, "csv", "counts.csv")


def test_where_bounds_are_left_out_it_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treetop.release.selection.MOST_ROWS", 1)
    done = export(folder, "csv", "counts.csv", level=["origin.region", "destination.town"])
    assert "lower" not in Path("counts.csv").read_text().splitlines()[0]
    assert any("lower and upper are left out" in note for note in done.notes)


def test_leaf_names_beside_coordinates_need_no_file_of_their_own(plan: Path) -> None:
    Path("places.csv").write_text(
        "region,town,label,lat,lon\nY,T9,Leeds,53,-1\nY,T1,York,54,-1\nK,T5,Deal,51,1\nK,T2,Rye,50,1\n"
    )
    columns = 'name = "label"\nlatitude = "lat"\nlongitude = "lon"'
    plan.write_text(PLAN.replace('names = { region = "region_name", town = "town_name" }', columns))
    tt.publish(plan, options=tt.RunOptions(testing_key=bytes(32)), out="placed")
    assert not Path("placed/names").exists()
    release = tt.Release.load("placed")
    assert release.query(origin="Leeds") == release.query(origin="T9") > 0
    assert verified("placed")
    release.save("copy")  # without coordinates: its names are kept
    assert tt.Release.load("copy").query(origin="Leeds") == release.query(origin="T9")


def test_a_table_for_flowmap_has_the_names_of_coarser_levels(plan: Path) -> None:
    Path("places.csv").write_text(
        "region,called,town,label,lat,lon\nY,Yorkshire,T9,Leeds,53,-1\nY,Yorkshire,T1,York,54,-1\n"
        "K,Kent,T5,Deal,51,1\nK,Kent,T2,Rye,50,1\n"
    )
    columns = 'names = { region = "called" }\nname = "label"\nlatitude = "lat"\nlongitude = "lon"'
    plan.write_text(PLAN.replace('names = { region = "region_name", town = "town_name" }', columns))
    tt.publish(plan, options=tt.RunOptions(testing_key=bytes(32)), out="placed")
    export("placed", "flowmap", "out", level="region")
    with Path("out/locations.csv").open(newline="") as file:
        assert {row["id"]: row["name"] for row in csv.DictReader(file)} == {"Y": "Yorkshire", "K": "Kent"}


def test_a_name_that_drives_a_terminal_is_shown_harmless(plan: Path) -> None:
    Path("places.csv").write_text(PLACES.replace("York\n", "\x1b[31mYork\n"))
    tt.publish(plan, options=tt.RunOptions(testing_key=bytes(32)), out="release")
    assert "\x1b" not in run("query", "release", "--by", "origin.town")


def test_a_question_to_the_private_table_takes_names_too(plan: Path) -> None:
    tt.Ledger.create("ledger.db", loss=tt.Loss(rho=200), datasets=("trips",))
    first, again = (
        tt.ask(plan, questions=[{"origin": place}], ledger="ledger.db", dataset="trips").answers[0]
        for place in ("York", "T1")
    )
    assert not first.free and again.free and again.count == first.count  # the same question, and told once
