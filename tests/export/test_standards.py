"""Formats of statistical offices and map software: other people's readers find the same numbers in them."""

from __future__ import annotations

import csv
import json
import sqlite3
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop import cli, export
from treetop.errors import ReleaseError

TOWNS = ["N1", "N2", "S1", "S2"]
NAMES = ["Nord, 1", "Nørre", "Sud", '"Süd"']
MONTHS = ["2021-01", "2021-02", "2021-03"]
AGES = ["0-17", "18+"]


def place() -> tt.Hierarchy:
    table = pa.table({"region": ["N", "N", "S", "S"], "town": TOWNS, "name": NAMES})
    return tt.Hierarchy.from_table(table, levels=["region", "town"], names={"town": "name"})


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Counts by town, month and age, in which one age begins as no code of SDMX may end."""
    trees = {
        "town": place(),
        "month": tt.Hierarchy.flat(MONTHS, level="month"),
        "age": tt.Hierarchy.flat(AGES, level="age"),
    }
    spine = tt.Spine(["town.region", "town.town", "month", "age"], trees)
    plan = tt.Plan(spine, tt.Unit("person", neighbours="replace"), tt.Loss(epsilon=1, delta=1e-8), title="Deaths")
    rows = [(town, month, age) for town in TOWNS for month in MONTHS for age in AGES]
    counts = [40 * (1 + at % 5) for at in range(len(rows))]
    table = pa.table({**dict(zip(("town", "month", "age"), zip(*rows, strict=True), strict=True)), "n": counts})
    made = tt.make_release(plan, table, tt.RunOptions(count="n", period="2021-01-01 to 2021-03-31"))
    folder = tmp_path_factory.mktemp("made") / "release"
    made.save(folder)
    return folder


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    file = tmp_path / "towns.csv"
    lines = [f"{town},{50 + at},{10 + at}" for at, town in enumerate(TOWNS)]
    file.write_text("\n".join(["town,latitude,longitude", *lines]) + "\n")
    return file


def counted(folder: Path) -> dict[tuple[str, ...], tuple[int, int, int]]:
    rows = tt.Release.load(folder).table().to_pylist()
    return {(r["town"], r["month"], r["age"]): (r["count"], r["lower"], r["upper"]) for r in rows}


def test_a_cube_of_json_stat_has_all_counts_and_the_zeros(release: Path, tmp_path: Path) -> None:
    file = export(release, "jsonstat", tmp_path / "cube.json").files[0]
    cube = json.loads(file.read_text(encoding="utf-8"))
    assert (cube["version"], cube["class"], cube["role"]) == (
        "2.0",
        "dataset",
        {"metric": ["measure"], "time": ["month"]},
    )
    codes = [cube["dimension"][name]["category"]["index"] for name in cube["id"]]
    found = counted(release)
    for at, value in cube["value"].items():
        rest, key = int(at), []
        for own in reversed(codes):
            rest, place = divmod(rest, len(own))
            key.append(own[place])
        measure, *names = key
        expected = found.get(tuple(reversed(names)), (0, None, None))
        assert value == expected[("count", "lower", "upper").index(measure)]
    assert cube["dimension"]["town"]["category"]["label"]["S2"] == '"Süd"'
    pyjstat = pytest.importorskip("pyjstat.pyjstat")
    with warnings.catch_warnings():  # its own use of its own older functions
        warnings.simplefilter("ignore")
        frame = pyjstat.Dataset.read(file.read_text(encoding="utf-8")).write("dataframe", naming="id")
    read = {(row.town, row.month, row.age, row.measure): row.value for row in frame.itertuples()}
    for town, month, age in product(TOWNS, MONTHS, AGES):  # every cell, zeros included
        expected = found.get((town, month, age), (0, None, None))
        for measure, value in zip(("count", "lower", "upper"), expected, strict=True):
            cell = read.get((town, month, age, measure))
            assert value is None or (cell is not None and int(cell) == value)


def test_sdmx_rows_are_of_the_structure_beside_them(release: Path, tmp_path: Path) -> None:
    rows, structure = export(release, "sdmx", tmp_path / "sdmx").files
    with rows.open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    found = {
        (row["TOWN"], row["TIME_PERIOD"], row["AGE"]): tuple(
            int(row[name]) for name in ("OBS_VALUE", "LOWER_BOUND", "UPPER_BOUND")
        )
        for row in read
    }
    assert found == counted(release)
    content = json.loads(structure.read_text(encoding="utf-8"))["data"]
    assert [own["id"] for own in content["codelists"]] == ["CL_TOWN"], "18+ is no code of SDMX: age has none"
    assert read[0]["STRUCTURE_ID"] == f"TREETOP:{content['dataflows'][0]['id']}(1.0.0)"
    pysdmx = pytest.importorskip("pysdmx.io")
    (dataset,) = pysdmx.get_datasets(rows, structure)
    numbers = ("OBS_VALUE", "LOWER_BOUND", "UPPER_BOUND")
    cells = {
        (row["TOWN"], row["TIME_PERIOD"], row["AGE"]): tuple(int(row[name]) for name in numbers)
        for row in dataset.data.to_dict("records")
    }
    assert cells == counted(release), "every cell"
    (described,) = pysdmx.read_sdmx(structure).get_data_structure_definitions()
    assert [one.id for one in described.components.dimensions] == ["TOWN", "AGE", "TIME_PERIOD"]
    assert [code.name for code in described.components["TOWN"].local_codes] == NAMES


def test_a_geopackage_has_places_at_every_level_and_all_rows(release: Path, towns: Path, tmp_path: Path) -> None:
    file = export(release, "geopackage", tmp_path / "map.gpkg", coordinates=towns).files[0]
    database = sqlite3.connect(file)
    assert [row[0] for row in database.execute("PRAGMA integrity_check")] == ["ok"]
    assert not list(database.execute("PRAGMA foreign_key_check"))
    regions = tt.Release.load(release).table("town.region").to_pylist()
    assert dict(database.execute("SELECT town, count FROM town_region")) == {
        row["town.region"]: row["count"] for row in regions
    }
    rows = database.execute("SELECT town, month, age, count, lower, upper FROM counts").fetchall()
    assert {row[:3]: row[3:] for row in rows} == counted(release), "every cell"
    database.close()
    pyogrio = pytest.importorskip("pyogrio")
    layers = {str(name): kind for name, kind in pyogrio.list_layers(file)}
    assert layers == {"town_region": "Point", "town_town": "Point", "counts": None}
    about, _, shapes, columns = pyogrio.raw.read(file, layer="town_town")
    assert about["crs"] == "EPSG:4326" and len(shapes) == 4
    fields = list(about["fields"])
    assert list(columns[fields.index("town_name")]) == NAMES
    places = {row["town.town"]: row for row in tt.Release.load(release).table("town.town").to_pylist()}
    for code, *numbers in zip(
        *(columns[fields.index(name)] for name in ("town", "count", "lower", "upper")), strict=True
    ):
        assert [places[code][name] for name in ("count", "lower", "upper")] == numbers
    read = pyogrio.raw.read(file, layer="counts")
    fields, columns = list(read[0]["fields"]), read[3]
    asked = ("town", "month", "age", "count", "lower", "upper")
    through = {
        tuple(cells[:3]): tuple(cells[3:])
        for cells in zip(*(columns[fields.index(name)] for name in asked), strict=True)
    }
    assert through == counted(release), "and every cell by GDAL"
    assert pyogrio.read_info(file, layer="town_town")["total_bounds"] == (10, 50, 13, 53)


def test_a_geopackage_has_outlines_where_they_are_given(release: Path, tmp_path: Path) -> None:
    def square(at: int) -> dict[str, Any]:
        ring = [[at, 0], [at + 1, 0], [at + 1, 1], [at, 1], [at, 0]]
        return {"type": "Polygon", "coordinates": [ring]}

    shapes = [
        {"type": "Feature", "properties": {"code": town}, "geometry": square(at)} for at, town in enumerate(TOWNS)
    ]
    boundaries = tmp_path / "towns.geojson"
    boundaries.write_text(json.dumps({"type": "FeatureCollection", "features": shapes}))
    file = export(release, "geopackage", tmp_path / "map.gpkg", boundaries=boundaries).files[0]
    pyogrio = pytest.importorskip("pyogrio")
    info = pyogrio.read_info(file, layer="town_town")
    assert (info["geometry_type"], info["features"], info["total_bounds"]) == ("MultiPolygon", 4, (0, 0, 4, 1))


def test_a_geopackage_needs_places(release: Path, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="coordinates"):
        export(release, "geopackage", tmp_path / "map.gpkg")
    assert not (tmp_path / "map.gpkg").exists()


def test_csv_on_the_web_describes_every_column_by_its_heading(release: Path, tmp_path: Path) -> None:
    table, metadata = export(release, "csvw", tmp_path / "csvw").files
    content = json.loads(metadata.read_text(encoding="utf-8"))
    assert (content["url"], metadata.name) == (table.name, f"{table.name}-metadata.json")
    columns = content["tableSchema"]["columns"]
    with table.open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file)) == [column["titles"] for column in columns]
    kinds = {column["titles"]: column["datatype"] for column in columns}
    assert kinds["count"] == "integer" and kinds["town"] == "string" and kinds["outside"] == "boolean"
    assert content["tableSchema"]["primaryKey"] == ["town", "month", "age"]


def test_a_record_for_catalogues_names_the_files_beside_it(release: Path, tmp_path: Path) -> None:
    done = export(release, "dcat", tmp_path / "dcat")
    record = json.loads(done.files[0].read_text(encoding="utf-8"))
    links = [one["dcat:downloadURL"]["@id"] for one in record["dcat:distribution"]]
    assert links == [file.name for file in done.files[1:]] == ["counts.csv", "counts.csv-metadata.json"]
    assert record["dct:temporal"]["dcat:endDate"]["@value"] == "2021-03-31"
    assert record["dct:title"] in record["dct:bibliographicCitation"]


def test_parquet_has_the_rows_of_csv(release: Path, tmp_path: Path) -> None:
    file = export(release, "parquet", tmp_path / "rows.parquet").files[0]
    rows = pq.read_table(file).to_pylist()
    assert len(rows) == len(counted(release))
    for row in rows:
        own = counted(release)[row["town"], row["month"], row["age"]]
        assert own == (row["count"], row["lower"], row["upper"])


def test_a_test_is_not_cited_as_private(tmp_path: Path) -> None:
    towns = tt.Hierarchy.flat(TOWNS, level="town")
    plan = tt.Plan(tt.Spine(["town"], {"town": towns}), tt.Unit("person", neighbours="replace"), tt.Loss(rho=1))
    made = tt.make_release(plan, pa.table({"town": TOWNS * 9}), tt.RunOptions(testing_key=bytes(32)))
    file = export(made, "dcat", tmp_path / "dcat").files[0]
    record = json.loads(file.read_text(encoding="utf-8"))
    assert "NOT PRIVATE" in record["dct:bibliographicCitation"]
    assert "differential privacy" not in record["dcat:keyword"]


def test_what_is_one_text_in_memory_is_refused_if_it_is_long(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("treetop.exporting.standards.LARGEST_TEXT", 3)
    with pytest.raises(SystemExit):
        cli.main(["export", str(release), "--to", "jsonstat", "--out", str(tmp_path / "a.json")])
    assert "at most 3" in capsys.readouterr().err
