"""`treetop export`: the command in front of the exports."""

from __future__ import annotations

import csv
import errno
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import python_calamine

import treetop as tt
from tests.commands import Command
from treetop import cli
from treetop.cli import export as command
from treetop.exporting import FORMATS, Exported

TOWNS = {"01001": (45.0, 9.0), "01002": (47.0, 11.0), "None": (40.0, 15.0)}
PLACES = "region,town,name,lat,lon\n01,01001,Uno,45,9\n01,01002,Due,47,11\nS,None,Nessuno,40,15\n"

export_command = Command.of("export")


@pytest.fixture(scope="module")
def release() -> tt.Release:
    towns = list(TOWNS)
    place = tt.Hierarchy.from_table(pa.table({"region": ["01", "01", "S"], "town": towns}), ["region", "town"])
    rows = {"origin": [a for a in towns for _ in towns], "destination": towns * 3, "n": [1000] * 9}
    spine = tt.Spine.destination_first(origin=place, destination=place)
    plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(epsilon=1, delta=1e-6), title="Trips")
    return tt.make_release(plan, pa.table(rows), tt.RunOptions(count="n", testing_key=bytes(32)))


@pytest.fixture
def folder(release: tt.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    release.save(tmp_path / "release")
    (tmp_path / "places.csv").write_text(PLACES)
    return tmp_path / "release"


def read(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def workbook(path: str) -> dict[str, list[list[Any]]]:
    book = python_calamine.CalamineWorkbook.from_path(path)
    return {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}


def test_the_command_knows_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["export", "--help"])
    told = capsys.readouterr().out
    assert all(f"\n  {name}" in told for name in FORMATS)


@pytest.mark.parametrize("to", FORMATS)
def test_every_format_is_written_and_told(
    to: str, folder: Path, release: tt.Release, capsys: pytest.CaptureFixture[str]
) -> None:
    coordinates = ["--coordinates", "places.csv"] if to in ("flowmap", "geopackage", "kepler", "map", "site") else []
    cli.main(["export", str(folder), "--to", to, "--out", "out", "--json", *coordinates])
    told: Any = json.loads(capsys.readouterr().out)
    assert (told["to"], told["total"], told["skipped"]) == (to, 9000, [])
    assert {str(path) for path in Path("out").iterdir()} == set(told["files"])
    if to == "records":
        assert pq.read_table(told["files"][0]).num_rows == told["rows"] == 9000
    elif to == "excel":
        assert len(workbook(told["files"][0])["counts"]) - 1 == told["rows"] == len(release.count)
    elif to == "map":
        assert Path(told["files"][0]).read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        assert told["rows"] == len(release.count)
    elif to == "site":
        assert {Path(file).name for file in told["files"]} == set(FORMATS["site"].files)
        assert told["rows"] == len(release.count)
    elif to == "parquet":
        assert pq.read_table(told["files"][0]).num_rows == told["rows"] == len(release.count)
    elif told["files"][0].endswith(".csv"):
        assert len(read(told["files"][0])) == told["rows"] == len(release.count)
    else:  # read by other tools in tests/data/test_standards.py
        assert told["rows"] == len(release.count)


def test_the_share_of_the_written_files_is_reported(folder: Path, release: tt.Release) -> None:
    shares: list[float] = []
    tt.export(folder, "flowmap", "out", coordinates="places.csv", share=shares.append)
    assert shares == [0.5, 1.0]


def test_people_are_told_what_was_written_and_warned(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["export", str(folder), "--to", "od", "--out", "flows.csv", "--level", "region"])
    shown = capsys.readouterr()
    assert shown.out == "flows.csv: 4 rows, 9,000 in all\n"
    assert "Not private" in shown.err


def test_a_map_is_one_file_that_people_are_told_to_open(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    squares = [
        {"properties": {"id": town, "istat": town}, "geometry": {"type": "Polygon", "coordinates": [[*_square(x, y)]]}}
        for town, (y, x) in TOWNS.items()
    ]
    Path("towns.geojson").write_text(json.dumps({"features": squares}))
    options = ["--boundaries", "towns.geojson", "--boundaries-code", "istat", "--credit", "Outlines: nobody & sons"]
    cli.main(["export", str(folder), "--to", "map", "--out", "map.html", *options])
    assert "map.html: " in (told := capsys.readouterr().out) and "open it in a browser" in told
    assert "Outlines: nobody &amp; sons" in Path("map.html").read_text(encoding="utf-8")
    assert "needs to know where the places are" in export_command.fails(folder, "--to", "map", "--out", "other.html")


def _square(x: float, y: float) -> list[tuple[float, float]]:
    return [(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1), (x, y)]


def test_columns_and_levels_can_be_named(folder: Path) -> None:
    Path("other.csv").write_text(PLACES.replace("region,town,name,lat,lon", "r,key,label,north,east"))
    names = ["--code", "key", "--latitude", "north", "--longitude", "east", "--name", "label"]
    cli.main(["export", str(folder), "--to", "flowmap", "--out", "a", "--coordinates", "other.csv", *names])
    assert {row["id"]: row["name"] for row in read("a/locations.csv")} == {
        "01001": "Uno",
        "01002": "Due",
        "None": "Nessuno",
    }
    cli.main(
        ["export", str(folder), "--to", "flowmap", "--out", "b", "--coordinates", "places.csv", "--level", "region"]
    )
    assert {row["id"]: (float(row["lat"]), float(row["lon"])) for row in read("b/locations.csv")} == {
        "01": (46.0, 10.0),
        "S": (40.0, 15.0),
    }  # fmt: skip


def test_places_without_coordinates_are_left_out_when_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("places.csv").write_text(PLACES.replace("40,15", ","))
    arguments = [str(folder), "--to", "kepler", "--out", "flows.csv", "--coordinates", "places.csv"]
    assert "1 code with flows lack coordinates: 'None'" in export_command.fails(*arguments)
    assert not Path("flows.csv").exists()
    cli.main(["export", *arguments, "--skip-missing"])
    assert "The flows of 1 code without coordinates were left out: None" in capsys.readouterr().out
    assert not any("None" in (row["origin"], row["destination"]) for row in read("flows.csv"))


def test_refusals_are_one_line_and_leave_nothing(folder: Path) -> None:
    before = sorted(path.name for path in Path().iterdir())
    inside = export_command.fails(folder, "--to", "od", "--out", folder / "flows.csv", "--force")
    for message, expected in [
        (inside, "inside the release"),
        (export_command.fails(folder, "--to", "kepler", "--out", "out"), "kepler needs coordinates"),
        (export_command.fails("nowhere", "--to", "od", "--out", "out"), "not a release folder"),
        (export_command.fails(folder, "--to", "od", "--out", "places.csv"), "places.csv exists already"),
    ]:
        assert expected in message
        assert message.startswith("treetop: ")
        assert message.count("\n") == 1
    assert "flowmop" in export_command.fails(folder, "--to", "flowmop", "--out", "out")
    assert sorted(path.name for path in Path().iterdir()) == before


@pytest.mark.parametrize("form", ["excel", "site"])
def test_a_disk_that_is_full_is_told_in_one_line(form: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(zipfile.ZipFile, "write", full)
    out = "table.xlsx" if form == "excel" else "site"
    message = export_command.fails(folder, "--to", form, "--out", out)
    assert message == f"treetop: {out}: cannot be written: No space left on device\n"
    assert sorted(path.name for path in Path().iterdir()) == ["places.csv", "release"]


def test_an_export_is_replaced_by_force(folder: Path) -> None:
    for force in ([], ["--force"]):
        cli.main(["export", str(folder), "--to", "qgis", "--out", "table.csv", *force])
    assert Path("table.csvt").read_text() == '"String","String","Integer","Integer","Integer"\n'


def test_csv_is_any_table_with_its_intervals_and_od_the_bare_flows(folder: Path) -> None:
    for to in ("od", "csv", "table"):
        cli.main(["export", str(folder), "--to", to, "--out", f"{to}.csv"])
    assert Path("csv.csv").read_bytes() == Path("table.csv").read_bytes()
    bare, whole = read("od.csv"), read("csv.csv")
    assert list(whole[0]) == [*bare[0], "lower", "upper", "outside"]
    flows = sorted((row["origin"], row["destination"], row["count"]) for row in bare)
    assert sorted((row["origin"], row["destination"], row["count"]) for row in whole) == flows


def test_a_map_tells_how_many_counts_it_shows(
    folder: Path, release: tt.Release, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("places.csv").write_text(PLACES.replace("40,15", ","))
    arguments = ["--to", "map", "--out", "map.html", "--coordinates", "places.csv", "--skip-missing"]
    cli.main(["export", str(folder), *arguments])
    flows = release.table(["origin.town", "destination.town"]).to_pylist()
    shown = [row["count"] for row in flows if "None" not in (row["origin.town"], row["destination.town"])]
    told = capsys.readouterr().out
    assert told.startswith(f"map.html: {len(shown)} counts at its finest level, {sum(shown):,} in all")


def test_of_many_codes_that_are_left_out_the_rest_is_counted() -> None:
    done = Exported((Path("flows.csv"),), 1, 5, tuple(f"c{number:02}" for number in range(50)), None)
    assert command.render(FORMATS["kepler"], done).endswith(
        "of 50 codes without coordinates were left out: c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 40 more"
    )
    few = replace(done, skipped=done.skipped[:10])
    assert command.render(FORMATS["kepler"], few).endswith("c08, c09")


def test_files_with_places_may_be_in_another_encoding(folder: Path) -> None:
    Path("places.csv").write_text(PLACES.replace("Due", "Forlì"), encoding="latin-1")
    arguments = [str(folder), "--to", "flowmap", "--out", "out", "--coordinates", "places.csv"]
    assert "--encoding" in export_command.fails(*arguments)
    cli.main(["export", *arguments, "--encoding", "latin-1"])
    assert "Forlì" in [row["name"] for row in read("out/locations.csv")]
    arguments = [str(folder), "--to", "od", "--out", "od.csv", "--encoding", "latin-1"]
    assert "name the file too" in export_command.fails(*arguments)


def test_boundaries_may_be_in_another_encoding(folder: Path) -> None:
    squares = [
        {"properties": {"id": town, "name": "Forlì"}, "geometry": {"type": "Polygon", "coordinates": [_square(x, y)]}}
        for town, (y, x) in TOWNS.items()
    ]
    text = json.dumps({"features": squares}, ensure_ascii=False)
    path = Path("towns.geojson")
    path.write_text(text, encoding="latin-1")
    arguments = [str(folder), "--to", "map", "--boundaries", str(path), "--force", "--out", "map.html"]
    message = export_command.fails(*arguments)
    assert "is not UTF-8, which GeoJSON is: name its encoding, such as --encoding latin-1" in message
    assert "is not ascii text: name its true encoding" in export_command.fails(*arguments, "--encoding", "ascii")
    assert "is not nonsense text" in export_command.fails(*arguments, "--encoding", "nonsense")
    for written in ("latin-1", "utf-8", "utf-8-sig"):  # what is UTF-8 stays so, whatever the other file is
        path.write_text(text, encoding=written)
        cli.main(["export", *arguments, "--encoding", "latin-1"])
        assert "Forlì" in Path("map.html").read_text(encoding="utf-8")
    path.write_text("<kml>")
    assert "is not GeoJSON: line 1, column 1 is not JSON" in export_command.fails(*arguments)
    path.write_bytes(b"\x1f\x8bnothing")
    assert "is a damaged gzip file" in export_command.fails(*arguments)
