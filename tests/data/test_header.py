"""A first line that is a row is not taken for names, and a file without names is read with those of the plan."""

from __future__ import annotations

import io
import random
import sys
from pathlib import Path
from typing import Any

import pytest

import treetop as tt
from treetop import Graph, Source, draft_plan, inspect_table, read_plan
from treetop.cli import main
from treetop.counts.graph_reader import GraphTable
from treetop.counts.reading import read_counts
from treetop.errors import DataError, PlanFileError
from treetop.io import header
from treetop.io import table as tables
from treetop.io.source import as_public

AIRPORTS = ["AER", "KZN", "LED", "SVO"]
TOWNS = ["Ala", "Bra", "Como", "Dro", "Este", "Fano"]
ROW = "the first line looks like a row of data"


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def spine(codes: list[str]) -> tt.Spine:
    places = tt.Hierarchy.flat(codes)
    return tt.Spine.destination_first(origin=places, destination=places)


@pytest.mark.parametrize(
    "text",
    [
        "AER,KZN\nLED,KZN\n",  # a value of its own column
        "AER,LED\nKZN,SVO\n",  # the shape of the values
        "01001,Ala\n01003,Bra\n",  # digits among digits
        "p1;x\np2;y\np3;z\n",
        "2008-01-31,a\n2008-02-01,b\n",
        "4,Ala\n4,Bra\n",
        "AER,KZN,5\nAER,LED,7\nKZN,AER,1\n",
        "AER\nKZN\nAER\n",
        "NA,Ala\n1,Bra\n2,Ala\n3,Ala\n",  # a missing value is no name
        "7\n",
        "Ala,x,01\nBra,Ala,01\nCo,x,02\n",  # beside a word above digits there is a code that returns
        "AER,BBB,\\N\nBBB,KZN,12\nKZN,AER,13\n",  # what is missing is no name, and no other name outvotes a sign
        "AER,abroad\nBBB,12\nAER,13\nother,14\n",
        "AER\nBBB\n?\n#N/A\n<NA>\nKZN\n",
    ],
)
def test_a_first_line_that_looks_like_a_row_is_refused_without_being_shown(text: str, tmp_path: Path) -> None:
    file = written(tmp_path / "t.csv", text)
    for read in (inspect_table, lambda file: tables.read(file, ["no such name"])):
        with pytest.raises(DataError, match=ROW) as refused:
            read(file)
        told = str(refused.value).removeprefix(str(file))
        assert "header = false" in told
        assert "`header=False`" in told
        assert not any(value in told for value in text.replace("\n", ",").split(",") if len(value) > 2)
    assert tables.read(Source(file, header=True)).num_rows == text.count("\n") - 1
    assert tables.read(Source(file, header=False)).num_rows == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "home,work\nAER,KZN\nLED,KZN\n",
        "home,work\n",
        "com_name;pop2011\nAla;1200\nBra;29000\n",
        ",origin,n\n0,AER,4\n1,KZN,5\n",  # as some libraries write their row numbers
        "person,place\np1,Ala\np2,Bra\n",
        "sex\nm\nf\n",
    ],
)
def test_names_are_names(text: str, tmp_path: Path) -> None:
    assert inspect_table(written(tmp_path / "t.csv", text)).rows == text.count("\n") - 1


def test_a_name_that_is_a_code_of_the_hierarchy_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    """Nothing else shows it: no name stands among the values below."""
    file = written(tmp_path / "t.csv", "Ala,Como\nBra,Dro\nEste,Fano\n")
    assert tables.read(file).num_rows == 2
    columns, spent = {"origin": "Ala", "destination": "Como"}, []
    plan = tt.Plan(spine(TOWNS), tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1))
    with pytest.raises(DataError, match=f"{ROW}: the name of a column is itself a code of its hierarchy"):
        tt.make_release(plan, file, tt.RunOptions(columns=columns, before_measuring=lambda: spent.append(1)))
    assert not spent
    assert tt.read_true_counts(plan, Source(file, header=True), columns).total == 2
    with pytest.raises(DataError, match=f"{ROW}: the name of a column"):  # one row only, taken for a table without rows
        tt.read_true_counts(plan, written(file, "Ala,Como\n"), columns)


def test_inspect_compares_names_with_all_values_and_with_the_hierarchy(tmp_path: Path) -> None:
    shuffled = random.Random(1).sample([f"Town {'abcdefghij'[i % 10] * (1 + i // 10)}" for i in range(200)], 200)
    text = "Ala,Como\n" + "".join(f"{one},{other}\n" for one in shuffled[:20] for other in shuffled) + "Ala,Bra\n"
    file = written(tmp_path / "t.csv", text)
    with pytest.raises(DataError, match="the name of a column stands among its values"):
        inspect_table(file)
    towns = written(tmp_path / "towns.csv", "region,town\n" + "".join(f"{town[0]},{town}\n" for town in TOWNS))
    with pytest.raises(DataError, match="the name of a column is itself a code of its hierarchy"):
        inspect_table(written(file, "Ala,Como\nBra,Dro\nEste,Fano\n"), towns)


def test_standard_input_is_judged_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"AER,KZN\nAER,LED\n")))
    with pytest.raises(DataError, match=f"standard input: {ROW}"):
        inspect_table("-")


def test_public_files_are_read_as_they_are(tmp_path: Path) -> None:
    file = written(tmp_path / "places.csv", "AER\nKZN\nLED\n")
    assert tt.Hierarchy.from_table(file, ["AER"]).sizes == (2,)
    assert as_public(Source(file, fields={"a": 1})).header is None


def test_a_file_without_names_is_read_with_those_that_are_given(tmp_path: Path) -> None:
    file = written(tmp_path / "t.csv", "AER;KZN\nAER;LED\n;\n")
    source = Source(file, header=False, names=["origin", "destination"])
    assert tables.read(source).to_pylist()[2] == {"origin": None, "destination": None}
    assert read_counts(source, spine(AIRPORTS), unknown="drop").total == 2
    assert tables.read(Source(file, header=False)).column_names == ["column1", "column2"]
    with pytest.raises(DataError, match="the first row has 2 fields, but 3 names are given"):
        tables.read(Source(file, header=False, names=["a", "b", "c"]))
    assert tables.read(Source(written(file, "Rome, Italy\n"), header=False, names=["place"])).num_rows == 1
    assert tables.read(Source(written(file, ""), header=False, names=["a", "b"])).num_rows == 0
    with pytest.raises(DataError, match="no row that shows how many columns there are"):
        tables.read(Source(file, header=False))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["a"]}, "say header = false as well"),
        ({"header": True, "names": ["a"]}, "say header = false as well"),
        ({"header": False, "names": []}, "list the names of all columns"),
        ({"header": False, "names": "ab"}, "list the names of all columns"),
        ({"header": False, "names": ["a", " "]}, "list the names of all columns"),
        ({"header": False, "names": ["a", "a"]}, "two columns have the same name"),
        ({"header": False, "fields": {"a": 1}}, "fixed-width text has no header line"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Source("t.csv", **options)


PLAN = """
title = "Flights"
[attributes.origin]
hierarchy = "airports.csv"
levels = ["airport"]
[attributes.destination]
same_as = "origin"
[spine]
order = "destination-first"
[unit]
entity = "flight"
contributions = 1
neighbours = "replace"
[loss]
rho = 1
[data]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a plan, its hierarchy, and a private table without a header; we are in it."""
    written(tmp_path / "airports.csv", "airport\n" + "".join(f"{code}\n" for code in AIRPORTS))
    written(tmp_path / "flights.csv", "AER,KZN\nAER,LED\nSVO,LED\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> int:
    try:
        main(list(arguments))
    except SystemExit as leaving:
        return int(leaving.code or 0)
    return 0


def test_a_plan_gives_the_names_from_inspect_to_check(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = 'header = false\nnames = ["origin", "destination"]\n'
    written(folder / "plan.toml", PLAN + names)
    assert run("release", "plan.toml", "flights.csv", "--out", "out", "--testing-key", "00" * 32) == 0
    assert run("check", "out", "--truth", "flights.csv", "--plan", "plan.toml") == 0
    assert tt.Release.load("out").total == 3
    assert names in (folder / "out" / "plan.toml").read_text()
    assert "AER" not in (folder / "out" / "plan.toml").read_text() + (folder / "out" / "card.json").read_text()
    assert run("inspect", "flights.csv", "--no-header", "--hierarchy", "airports.csv", "--out", "draft.toml") == 0
    assert 'names = ["column1", "column2"]' in (folder / "draft.toml").read_text()
    assert "AER" not in (folder / "draft.toml").read_text()
    capsys.readouterr()


def test_a_release_of_a_file_without_names_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(folder / "plan.toml", PLAN.replace("[attributes.origin]", '[attributes.origin]\ncolumn = "AER"').replace(
        "[attributes.destination]", '[attributes.destination]\ncolumn = "KZN"'))  # fmt: skip
    assert run("release", "plan.toml", "flights.csv", "--out", "out") == 2
    assert ROW in capsys.readouterr().err
    assert not (folder / "out").exists()
    assert run("inspect", "flights.csv", "--out", "draft.toml") == 2
    assert ROW in capsys.readouterr().err
    assert not (folder / "draft.toml").exists()


def test_the_draft_holds_the_names_that_are_given(folder: Path) -> None:
    source = Source("flights.csv", header=False, names=["home", "work"])
    draft = draft_plan(inspect_table(source, "airports.csv"))
    assert 'header = false\nnames = ["home", "work"]\n' in draft
    assert 'column = "home"' in draft


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ('header = false\nnames = ["origin", "target"]', "there is no column 'destination'"),
        ('names = ["origin", "destination"]', "say header = false as well"),
        ('header = "no"', "must be true or false"),
        ('blank_lines = "ignore"', 'must be "record" or "skip"'),
    ],
)
def test_a_plan_that_does_not_fit_is_refused_with_its_place(folder: Path, data: str, message: str) -> None:
    written(folder / "plan.toml", PLAN + data)
    with pytest.raises((PlanFileError, DataError, tt.TreetopError), match=rf"plan.toml: \[data\].*{message}"):
        read_plan("plan.toml")


def test_the_total_is_measured_where_lines_are_skipped(folder: Path) -> None:
    plan = read_plan(written(folder / "exact.toml", PLAN)).plan
    skipping = read_plan(written(folder / "skips.toml", PLAN + 'blank_lines = "skip"')).plan
    assert (plan.levels[0].is_exact, plan.unit.may_be_missing) == (True, False)
    assert skipping.levels[0].is_measured and skipping.unit.may_be_missing


def test_a_plan_of_which_lines_are_skipped_says_so(folder: Path) -> None:
    text = (PLAN + 'unknown = "drop"\nblank_lines = "skip"\n').replace("title", 'description = "x"\ntitle')
    written(folder / "plan.toml", text + 'header = false\nnames = ["origin", "destination"]\n')
    written(folder / "flights.csv", "AER,KZN\n\nAER,LED\n\n")
    assert run("release", "plan.toml", "flights.csv", "--out", "out", "--testing-key", "00" * 32) == 0
    assert 'blank_lines = "skip"' in (folder / "out" / "plan.toml").read_text()
    assert run("check", "out") == 0


def test_the_mark_of_names_is_what_the_reader_says(tmp_path: Path) -> None:
    file = written(tmp_path / "t.csv", "place,n\nAla,1\nBra,2\n")
    marks = [header.is_unvouched(tables.read(Source(file, header=said)).schema) for said in (None, True, False)]
    assert marks == [True, False, False]


def test_a_code_as_a_name_is_refused_whatever_stands_beside_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A column that surely has a name does not vouch for the others, neither in drafts nor in releases."""
    one = PLAN.replace('[attributes.destination]\nsame_as = "origin"\n[spine]\norder = "destination-first"\n', "")
    written(folder / "plan.toml", one.replace("[attributes.origin]", '[attributes.origin]\ncolumn = "AER"'))
    written(folder / "t.csv", "AER,abroad\nKZN,12\nLED,13\nSVO,14\n")
    assert run("release", "plan.toml", "t.csv", "--out", "out") == 2
    assert f"{ROW}: the name of a column is itself a code" in capsys.readouterr().err
    written(folder / "t.csv", "AER,abroad\nKZN,12\nLED,13\nother,14\n")
    assert run("inspect", "t.csv", "--out", "draft.toml") == 0  # nothing shows it: the draft vouches for nothing
    assert "header" not in (folder / "draft.toml").read_text()
    assert run("inspect", "t.csv", "--hierarchy", "airports.csv", "--out", "other.toml") == 2
    capsys.readouterr()


@pytest.mark.parametrize("counts", ["nodes", "edges"])
def test_a_code_as_a_name_is_refused_in_the_nodes_of_a_graph(counts: str, tmp_path: Path) -> None:
    people = written(tmp_path / "nodes.csv", "id,AER\np1,KZN\np2,LED\n")
    edges = written(tmp_path / "edges.csv", "source,target\n")
    graph = Graph(people, edges, "edge")
    tree, loss = tt.Hierarchy.flat(AIRPORTS), tt.Loss(rho=1)
    made: GraphTable
    if counts == "nodes":
        plan = tt.Plan(tt.Spine(["a.value"], {"a": tree}), tt.Unit("person", neighbours="add-remove", id="id"), loss)
        made = graph.node_table()
        columns = {"a": "AER"}
    else:
        plan = tt.Plan(tt.Spine(["a.value", "b.value"], {"a": tree, "b": tree}), graph.unit("add-remove"), loss)
        made, columns = graph.table(), {"a": "source.AER", "b": "target.AER"}
    with pytest.raises(DataError, match=f"{ROW}: the name of a column is itself a code"):
        tt.read_true_counts(plan, made, columns)


def test_no_record_decides_whether_names_are_names(tmp_path: Path) -> None:
    """Whether there is a release is decided by the names that the plan asks for, and by no row."""
    plan = tt.Plan(
        tt.Spine(["place.value"], {"place": tt.Hierarchy.flat(AIRPORTS)}),
        tt.Unit("trip", neighbours="add-remove"),
        tt.Loss(rho=1),
        unknown="drop",
    )
    for last in ("", "place\n", "AER\n"):
        file = written(tmp_path / "t.csv", "place\n" + "AER\n" * 300 + last)
        assert tt.read_true_counts(plan, file, {"place": "place"}).total == 300 + (last == "AER\n")
    for name in ("12", "2008-01-31", "\\N", "NA", "-1.5"):
        file = written(tmp_path / "t.csv", f"{name}\nAER\n")
        with pytest.raises(DataError, match=f"{ROW}: the name of a column (is|says)"):
            tt.read_true_counts(plan, file, {"place": name})
        assert tt.read_true_counts(plan, Source(file, header=True), {"place": name}).total == 1


def test_a_draft_vouches_for_names_that_were_judged(folder: Path) -> None:
    written(folder / "named.csv", "home,work\nAER,KZN\nLED,SVO\n")
    draft = draft_plan(inspect_table("named.csv", "airports.csv"))
    assert "\nheader = true\n" in draft
