"""Tables and hierarchies as they come, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.commands import said
from treetop import Release, cli, read_plan

LINES = "S 001001 001002  12\nL 001001 001002 1.5\nS 001002 002001   3\nS 002001 001001   7\n"
PLACES = (
    "region;town;town_name;lat;lon\nNörd;001001;Agliè;45.0;7.5\nNörd;001002;Airasca;44.9;7.4\nSüd;002001;Alba;40;16\n"
)
PLAN = """
[attributes.origin]
column = "home"
hierarchy = "places.csv"
encoding = "latin-1"
levels = ["region", "town"]
name = "town_name"
latitude = "lat"
longitude = "lon"
[attributes.destination]
column = "work"
same_as = "origin"
[spine]
order = "destination-first"
[unit]
entity = "trip"
contributions = 1
neighbours = "replace"
[loss]
rho = 1
[data]
source = "flows.txt"
count = "trips"
keep = { record = "S" }
[data.fields]
record = 1
home = [3, 8]
work = [10, 15]
trips = [17, 19]
"""
FIELDS = ("--field", "record=1", "--field", "home=3-8", "--field", "work=10-15", "--field", "trips=17-19")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flows.txt").write_text(LINES)
    (tmp_path / "places.csv").write_bytes(PLACES.encode("latin-1"))
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def run(*words: object, expect: int = 0) -> str:
    done = said(words)
    assert done.code == expect, done.err
    return done.err if expect else done.out


def surely(plan: Path) -> int:
    """How far the total is off at most, but for one run in a million million: rows are kept, so it is measured."""
    return read_plan(plan).plan.accuracy(1 - 1e-12).levels[0].margin


def test_coordinates_and_names_come_from_a_file_in_another_encoding(folder: Path) -> None:
    out = folder / "release"
    told = json.loads(run("release", folder / "plan.toml", "--out", out, "--json"))
    assert abs(told["total"] - (12 + 3 + 7)) <= surely(folder / "plan.toml")
    (places,) = (out / "places").glob("*.parquet")
    assert pq.read_table(places)["name"].to_pylist() == ["Agliè", "Airasca", "Alba"]
    run("check", out)


def test_the_truth_is_read_by_the_plan_or_by_the_card(folder: Path) -> None:
    out, plan = folder / "release", folder / "plan.toml"
    run("release", plan, "--out", out)
    report = json.loads(run("check", out, "--truth", folder / "flows.txt", "--plan", plan, "--json"))
    off = abs(Release.load(out).total - 22)
    assert report["errors"]["levels"][0]["largest"] == off
    (folder / "flows.csv").write_text("record,home,work,trips\nS,001001,001002,22\nL,001001,001002,99\n")
    report = json.loads(run("check", out, "--truth", folder / "flows.csv", "--json"))
    assert report["errors"]["levels"][0]["largest"] == off


def test_plan_says_which_rows_are_the_data_set(folder: Path) -> None:
    assert "The data set is the rows with record 'S'" in run("plan", folder / "plan.toml")
    assert json.loads(run("plan", folder / "plan.toml", "--json"))["keep"] == {"record": ["S"]}
    whole = PLAN.replace('keep = { record = "S" }\n', "")
    (folder / "whole.toml").write_text(whole)
    assert "The data set is" not in run("plan", folder / "whole.toml")
    assert json.loads(run("plan", folder / "whole.toml", "--json"))["keep"] is None


def test_the_draft_of_fixed_width_text_reads_it_again(folder: Path) -> None:
    draft = folder / "draft.toml"
    lookup = ("--hierarchy", folder / "places.csv", "--hierarchy-encoding", "latin-1")
    run("inspect", folder / "flows.txt", *FIELDS, "--keep", "record=S", *lookup, "--out", draft)
    text = draft.read_text()
    for field in ("entity", "contributions", "neighbours", "epsilon", "count"):
        text = text.replace(f"# {field} = ", f"{field} = ")
    draft.write_text(text)
    file, known = read_plan(draft), read_plan(folder / "plan.toml")
    assert (file.fields, file.keep, file.count) == (known.fields, known.keep, "trips")
    assert file.plan.spine.digest == known.plan.spine.digest
    told = json.loads(run("release", draft, "--out", folder / "out", "--json"))
    assert abs(told["total"] - 22) <= surely(draft)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "looks like fixed-width text: no delimiter, and lines of one length (19 characters)"),
        (("--field", "home"), "--field is 'home': write it as in --field home=8-13"),
        (("--field", "home=x"), "'x' is no position: write 8-13, or 5-7,9-11"),
        (("--field", "home=9-3"), "from character 9 to 3: count from 1"),
        (("--keep", "record"), "--keep is 'record': write it as in --keep year=2008"),
        ((*FIELDS, "--keep", "recrd=S"), "no column 'recrd' (did you mean 'record'?)"),
        ((*FIELDS, "--delimiter", ";"), "fixed-width text has no delimiter"),
    ],
)
def test_mistakes_of_inspect_are_told(folder: Path, options: tuple[str, ...], message: str) -> None:
    assert message in run("inspect", folder / "flows.txt", *options, expect=2)


def test_inspect_of_a_table_without_kept_rows_is_a_remark(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["inspect", str(folder / "flows.txt"), *FIELDS, "--keep", "record=s"])
    assert "there are no rows with record 's'" in capsys.readouterr().err


def test_a_hierarchy_that_is_not_utf_8_is_read_and_a_plan_names_the_option(folder: Path) -> None:
    options = (*FIELDS, "--hierarchy", folder / "places.csv")
    assert "are in town" in run("inspect", folder / "flows.txt", *options)  # its encoding is found
    run("inspect", folder / "flows.txt", *options, "--hierarchy-encoding", "latin-1")
    (folder / "plan.toml").write_text(PLAN.replace('encoding = "latin-1"\n', ""))
    said = run("plan", folder / "plan.toml", expect=2)
    assert "[attributes.origin] hierarchy" in said and 'encoding = "latin-1" in the plan file' in said


def test_a_level_that_is_abbreviated_is_answered_with_the_nearest(folder: Path) -> None:
    out = folder / "release"
    run("release", folder / "plan.toml", "--out", out)
    for asked, nearest in {"reg": "region", "REGION": "region", "origin.Town": "origin.town"}.items():
        said = run("export", out, "--to", "od", "--out", folder / "od", "--level", asked, expect=2)
        assert f"did you mean '{nearest}'" in said, asked


def test_geojson_is_no_table_of_coordinates(folder: Path) -> None:
    out, zones = folder / "release", folder / "zones.geojson"
    run("release", folder / "plan.toml", "--out", out)
    zones.write_text('{"type": "FeatureCollection", "features": []}')
    options = ("--to", "flowmap", "--out", folder / "map", "--coordinates", zones)
    assert "is JSON or GeoJSON, not a table" in run("export", out, *options, expect=2)
