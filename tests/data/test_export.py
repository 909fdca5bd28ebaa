"""Exports: every format reads back as the release, with its codes and totals, and nothing is left half written."""

from __future__ import annotations

import csv
import itertools
import signal
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.processes import Server
from treetop import export
from treetop.errors import DataError, QueryError, Refusal, ReleaseError, TreetopError
from treetop.exporting import FORMATS, Places, read_places
from treetop.exporting import _flows as records
from treetop.exporting._flows import Size
from treetop.exporting.levels import depths_of

TOWNS = ["01001", "01002", "None", 'say "hi", ok', "two\nlines", "a=b"]
REGIONS = ["01", "01", "N, W", "N, W", "S\n", "S\n"]
PLACE = tt.Hierarchy.from_table(pa.table({"region": REGIONS, "town": TOWNS}), levels=["region", "town"])
CARD: dict[str, Any] = {"title": "Trips", "private": True, "warning": None}
FLOWS = ("flowmap", "skmob", "kepler", "od", "qgis")
FLIGHTS = Path(__file__).parents[2].parent / "shared" / "data" / "shippable" / "od_us_flights_2001"


def handmade(spine: tt.Spine, leaves: Sequence[tuple[str, ...]], counts: list[int]) -> tt.Release:
    """Make a release of leaves, whose codes are in the order of the spine's attributes."""
    columns = zip(*leaves, strict=True)
    nodes = np.array([tree.encode(pa.array(column)) for tree, column in zip(spine.trees, columns, strict=True)])
    parts = [part for level in spine.levels for part in level.parts]
    keys = [spine.trees[part.attribute].ancestors(part.depth)[nodes[part.attribute]] for part in parts]
    order = np.lexsort(keys[::-1])
    return tt.Release(spine, nodes[:, order].astype(np.int32), np.array(counts)[order], CARD)


@pytest.fixture
def release() -> tt.Release:
    leaves = [pair for i, pair in enumerate(itertools.product(TOWNS, TOWNS)) if i % 5]
    spine = tt.Spine.destination_first(origin=PLACE, destination=PLACE)
    return handmade(spine, leaves, list(range(1, len(leaves) + 1)))


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    path = tmp_path / "towns.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["town", "name", "latitude", "longitude"])
        writer.writerows([town, f"The town of {town}", 40 + i, 10.5 - i] for i, town in enumerate(TOWNS))
    return path


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def header(path: Path) -> str:
    return path.read_text(encoding="utf-8").split("\n")[0]


def released(table: pa.Table, *names: str) -> Counter[tuple[str, ...]]:
    return Counter({tuple(row[name] for name in names): row["count"] for row in table.to_pylist()})


def exported(rows: list[dict[str, str]], *names: str) -> Counter[tuple[str, ...]]:
    *codes, count = names
    assert len({tuple(row[name] for name in codes) for row in rows}) == len(rows)
    return Counter({tuple(row[name] for name in codes): int(row[count]) for row in rows})


def test_od_and_skmob_hold_the_flows_of_the_release(release: tt.Release, tmp_path: Path) -> None:
    for to, count in (("od", "count"), ("skmob", "flow")):
        done = export(release, to, tmp_path / f"{to}.csv")
        assert header(tmp_path / f"{to}.csv") == f"origin,destination,{count}"
        rows = read(tmp_path / f"{to}.csv")
        flows = exported(rows, "origin", "destination", count)
        assert flows == released(release.table(), "origin", "destination")
        assert (done.rows, done.total) == (len(rows), release.total) == (len(release.count), flows.total())


def test_flowmap_holds_flows_and_the_locations_that_they_touch(
    release: tt.Release, towns: Path, tmp_path: Path
) -> None:
    done = export(release, "flowmap", tmp_path / "map", coordinates=towns)
    assert done.files == (tmp_path / "map" / "flows.csv", tmp_path / "map" / "locations.csv")
    assert header(done.files[0]) == "origin,dest,count"
    assert header(done.files[1]) == "id,name,lat,lon"
    flows = exported(read(done.files[0]), "origin", "dest", "count")
    assert flows == released(release.table(), "origin", "destination")
    locations = {row["id"]: row for row in read(done.files[1])}
    assert set(locations) == {code for pair in flows for code in pair} == set(TOWNS)
    for i, town in enumerate(TOWNS):
        place = locations[town]
        assert place["name"] == f"The town of {town}"
        assert (float(place["lat"]), float(place["lon"])) == (40 + i, 10.5 - i)


def test_kepler_has_the_coordinates_of_both_ends(release: tt.Release, towns: Path, tmp_path: Path) -> None:
    export(release, "kepler", tmp_path / "flows.csv", coordinates=towns)
    assert header(tmp_path / "flows.csv") == "origin,destination,count,lat0,lng0,lat1,lng1"
    rows = read(tmp_path / "flows.csv")
    assert exported(rows, "origin", "destination", "count") == released(release.table(), "origin", "destination")
    for row in rows:
        start, stop = TOWNS.index(row["origin"]), TOWNS.index(row["destination"])
        assert [float(row[name]) for name in ("lat0", "lng0", "lat1", "lng1")] == [
            40 + start, 10.5 - start, 40 + stop, 10.5 - stop
        ]  # fmt: skip


def test_qgis_has_its_types_beside_it_so_that_codes_stay_text(release: tt.Release, tmp_path: Path) -> None:
    done = export(release, "qgis", tmp_path / "trips.csv")
    assert done.files == (tmp_path / "trips.csv", tmp_path / "trips.csvt")
    assert done.files[1].read_text() == '"String","String","Integer"\n'
    rows = read(done.files[0])
    assert exported(rows, "origin", "destination", "count") == released(release.table(), "origin", "destination")


def test_qgis_counts_of_more_than_32_bits_are_wide_integers(tmp_path: Path) -> None:
    spine = tt.Spine.origin_first(origin=PLACE, destination=PLACE)
    done = export(handmade(spine, [("01001", "None")], [1 << 40]), "qgis", tmp_path / "trips")
    assert done.files[1].read_text() == '"String","String","Integer64"\n'
    assert read(done.files[0])[0]["count"] == str(1 << 40)


def test_qgis_draws_lines_where_coordinates_are_given(release: tt.Release, towns: Path, tmp_path: Path) -> None:
    done = export(release, "qgis", tmp_path / "lines", coordinates=towns)
    assert done.files[1].read_text() == '"String","String","Integer","WKT"\n'
    (row,) = (row for row in read(done.files[0]) if (row["origin"], row["destination"]) == ("None", "01001"))
    assert row["WKT"] == "LINESTRING (8.5 42, 10.5 40)"


def test_qgis_takes_a_release_that_has_no_flows(tmp_path: Path) -> None:
    spine = tt.Spine(["place.region", "sex", "place.town"], {"place": PLACE, "sex": tt.Hierarchy.flat(["f", "m"])})
    release = handmade(spine, [("01001", "f"), ("01002", "f"), ("None", "m")], [5, 4, 7])
    done = export(release, "qgis", tmp_path / "table", level="region")
    assert header(done.files[0]) == "place,sex,count"
    assert exported(read(done.files[0]), "place", "sex", "count") == Counter({("01", "f"): 9, ("N, W", "m"): 7})


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_records_are_one_row_a_unit(
    release: tt.Release, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "ROWS", 7)  # pieces that end in the middle of a leaf
    path = tmp_path / f"records{suffix}"
    written: list[int] = []
    done = export(release, "records", path, progress=written.append)
    if suffix == ".csv":
        rows = read(path)
    else:
        table = pq.read_table(path)
        assert set(table.schema.types) == {pa.string()}
        rows = table.to_pylist()
    assert done.rows == done.total == len(rows) == sum(written) == release.total
    found = Counter((row["origin"], row["destination"]) for row in rows)
    assert found == released(release.table(), "origin", "destination")


def test_what_is_unresolved_has_no_record_and_is_told(tmp_path: Path) -> None:
    table = pa.table({"origin": TOWNS * 40, "destination": TOWNS[::-1] * 40})
    spine = tt.Spine.destination_first(origin=PLACE, destination=PLACE)
    plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=Fraction(1, 10)), resolve={"sigmas": 6})
    release = tt.make_release(plan, table, tt.RunOptions(testing_key=bytes(32)))
    assert release.unresolved_total > 0
    done = export(release, "records", tmp_path / "records.parquet")
    assert done.rows == len(pq.read_table(tmp_path / "records.parquet")) == release.count.sum()
    assert done.unresolved == release.unresolved_total


def test_records_at_a_coarser_level_hold_its_codes(release: tt.Release, tmp_path: Path) -> None:
    export(release, "records", tmp_path / "records.parquet", level="region")
    rows = pq.read_table(tmp_path / "records.parquet").to_pylist()
    found = Counter((row["origin"], row["destination"]) for row in rows)
    assert found == released(
        release.table(["origin.region", "destination.region"]), "origin.region", "destination.region"
    )


def test_a_selection_is_exported_as_such(release: tt.Release, tmp_path: Path) -> None:
    chosen = release.where(origin="01")
    done = export(chosen, "od", tmp_path / "some.csv")
    assert 0 < done.total == release.query(origin="01") < release.total
    assert {row["origin"] for row in read(tmp_path / "some.csv")} == {"01001", "01002"}


def test_attributes_that_are_not_ends_are_summed_over(tmp_path: Path) -> None:
    day = tt.Hierarchy.flat(["mo", "tu"])
    spine = tt.Spine(
        ["day", "origin.region", "destination.region", "origin.town", "destination.town"],
        {"day": day, "origin": PLACE, "destination": PLACE},
    )
    release = handmade(spine, [("mo", "01001", "None"), ("tu", "01001", "None"), ("tu", "01002", "None")], [3, 4, 5])
    export(release, "od", tmp_path / "flows.csv")
    flows = exported(read(tmp_path / "flows.csv"), "origin", "destination", "count")
    assert flows == Counter({("01001", "None"): 7, ("01002", "None"): 5})


@pytest.mark.parametrize("to", FLOWS)
def test_a_coarser_level_has_the_sums_of_that_level(to: str, release: tt.Release, towns: Path, tmp_path: Path) -> None:
    coordinates = towns if FORMATS[to].coordinates == "needed" else None
    done = export(release, to, tmp_path / "out", level="region", coordinates=coordinates)
    rows = [list(row.values()) for row in read(done.files[0])]
    expected = released(release.table(["origin.region", "destination.region"]), "origin.region", "destination.region")
    assert Counter({(row[0], row[1]): int(row[2]) for row in rows}) == expected
    assert done.total == release.total


def test_the_two_ends_can_stand_at_different_levels(release: tt.Release, tmp_path: Path) -> None:
    export(release, "od", tmp_path / "flows.csv", level="origin.region")
    expected = released(release.table(["origin.region", "destination.town"]), "origin.region", "destination.town")
    assert exported(read(tmp_path / "flows.csv"), "origin", "destination", "count") == expected


def test_coordinates_of_a_coarser_level_are_the_mean_of_its_leaves(
    release: tt.Release, towns: Path, tmp_path: Path
) -> None:
    done = export(release, "flowmap", tmp_path / "map", level="region", coordinates=towns)
    locations = {row["id"]: row for row in read(done.files[1])}
    assert set(locations) == set(REGIONS)
    assert (float(locations["N, W"]["lat"]), float(locations["N, W"]["lon"])) == (42.5, 8.0)
    assert locations["N, W"]["name"] == "N, W"


def places(codes: list[str], latitude: list[float], longitude: list[float]) -> Places:
    return Places(pa.array(codes), pa.array(codes), np.array(latitude), np.array(longitude))


@pytest.mark.parametrize(
    ("longitudes", "mean"), [([179, -179], 180), ([170, -180], 175), ([-10, 20], 5), ([-80, 80], 0), ([150, 170], 160)]
)
def test_the_mean_of_places_on_both_sides_of_the_180th_meridian_lies_between_them(
    longitudes: list[float], mean: float
) -> None:
    tree = tt.Hierarchy.from_table(pa.table({"state": ["A", "A"], "town": ["1", "2"]}), ["state", "town"])
    middle = places(["1", "2"], [10, 20], longitudes).at(tree, 0)
    assert middle.latitude.tolist() == [15]
    assert abs(middle.longitude[0]) == mean if mean == 180 else middle.longitude[0] == mean


def test_columns_are_found_by_their_usual_names_or_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,LAT,Lng\n007,1.5,-2\n")
    found = read_places(tmp_path / "a.csv", "town")
    assert (found.code.to_pylist(), found.name.to_pylist()) == (["007"], ["007"])
    assert (found.latitude.tolist(), found.longitude.tolist()) == ([1.5], [-2.0])
    (tmp_path / "b.csv").write_text("k,label,north,east\n007,Bond,1.5,-2\n008,,3,4\n009,none,,\n")
    found = read_places(tmp_path / "b.csv", code="k", latitude="north", longitude="east", name="label")
    assert dict(zip(found.code.to_pylist(), found.name.to_pylist(), strict=True)) == {"007": "Bond", "008": "008"}


def test_rows_that_share_a_code_are_averaged_and_called_by_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "province,name,lat,lon\nMI,Milano,45,9\nMI,Monza,46,10\nCO,Como,46,9\nCO,Como,48,9\n"
    )
    found = read_places(tmp_path / "a.csv", "province")
    assert found.to_table().to_pylist() == [
        {"code": "MI", "name": "MI", "latitude": 45.5, "longitude": 9.5},
        {"code": "CO", "name": "Como", "latitude": 47.0, "longitude": 9.0},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("town,lat\n01,1\n", "none of the columns town, lat is called longitude"),
        ("place,lat,lon\n01,1,2\n", "which column has the codes of level 'town'"),
        ("town,lat,lon\n01,1,2\n02,north,2\n", r"a\.csv, column 'lat', row 2: 'north' is not a latitude"),
        ("town,lat,lon\n01,1,181\n", r"column 'lon', row 1: 181 is not a longitude in degrees \(-180 to 180\)"),
        ("town,lat,lon\n01,-91,0\n", "-91 is not a latitude"),
        ("town,lat,lon\n01,inf,0\n", "not a latitude"),
    ],
)
def test_a_file_without_usable_coordinates_is_refused_with_the_place(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_places(tmp_path / "a.csv", "town")


def test_a_column_that_is_not_there_gets_the_nearest(towns: Path) -> None:
    with pytest.raises(DataError, match="no column 'latitud' for the latitude .did you mean 'latitude'"):
        read_places(towns, "town", latitude="latitud")


def without(towns: Path, *codes: str) -> Path:
    rows = [row for row in read(towns) if row["town"] not in codes]
    with towns.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return towns


@pytest.mark.parametrize("to", ["flowmap", "kepler", "qgis"])
def test_codes_without_coordinates_are_named_or_left_out(
    to: str, release: tt.Release, towns: Path, tmp_path: Path
) -> None:
    without(towns, "None", "01001")
    with pytest.raises(ReleaseError, match="2 codes with flows lack coordinates: '01001', 'None'.*`skip_missing=True`"):
        export(release, to, tmp_path / "out", coordinates=towns)
    assert not (tmp_path / "out").exists()
    done = export(release, to, tmp_path / "out", coordinates=towns, skip_missing=True)
    assert done.skipped == ("01001", "None")
    kept = {
        pair: count
        for pair, count in released(release.table(), "origin", "destination").items()
        if not {"None", "01001"} & set(pair)
    }
    rows = [list(row.values()) for row in read(done.files[0])]
    assert {(row[0], row[1]): int(row[2]) for row in rows} == kept
    assert (done.rows, done.total) == (len(kept), sum(kept.values()))


def test_a_place_that_no_flow_touches_needs_no_coordinates(towns: Path, tmp_path: Path) -> None:
    spine = tt.Spine.origin_first(origin=PLACE, destination=PLACE)
    release = handmade(spine, [("01001", "None")], [5])
    done = export(release, "flowmap", tmp_path / "map", coordinates=without(towns, "a=b"))
    assert {row["id"] for row in read(done.files[1])} == {"01001", "None"}


def test_coordinates_come_from_the_folder_where_it_carries_them(
    release: tt.Release, towns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "release"
    (folder / "places").mkdir(parents=True)
    pq.write_table(read_places(towns, "town").to_table(), folder / "places" / f"{PLACE.digest}.parquet")
    monkeypatch.setattr(tt.Release, "load", lambda _: release)
    assert export(folder, "flowmap", tmp_path / "a").total == release.total
    export(release, "flowmap", tmp_path / "b", coordinates=towns)
    for name in ("flows.csv", "locations.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert "WKT" in header(export(folder, "qgis", tmp_path / "c").files[0])


def test_a_code_that_is_two_places_is_refused_for_flowmap(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("home,school,latitude,longitude\n1,9,10,10\n2,1,20,20\n")
    homes, schools = tt.Hierarchy.flat(["1", "2"], "home"), tt.Hierarchy.flat(["1", "9"], "school")
    release = handmade(tt.Spine.origin_first(origin=homes, destination=schools), [("1", "1")], [3])
    with pytest.raises(ReleaseError, match="'1' is one place as origin and another as destination"):
        export(release, "flowmap", tmp_path / "map", coordinates=tmp_path / "a.csv")
    export(release, "kepler", tmp_path / "flows.csv", coordinates=tmp_path / "a.csv")
    assert list(read(tmp_path / "flows.csv")[0].values()) == ["1", "1", "3", "10", "10", "20", "20"]


@pytest.mark.parametrize("to", ["flowmap", "skmob", "kepler", "od"])
def test_a_release_without_flows_is_refused_with_the_alternatives(to: str, tmp_path: Path) -> None:
    release = handmade(tt.Spine(["place.region", "place.town"], {"place": PLACE}), [("None",)], [3])
    with pytest.raises(ReleaseError, match="no origin and no destination: its attributes are place.*qgis or records"):
        export(release, to, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_what_makes_no_sense_is_refused_before_anything_is_written(release: tt.Release, towns: Path) -> None:
    out = towns.parent / "out"
    refused: list[tuple[type[TreetopError], str, str, dict[str, Any]]] = [
        (ReleaseError, "flowmop", "no format 'flowmop' .did you mean 'flowmap'", {}),
        (ReleaseError, "kepler", "kepler needs coordinates, and the release has none", {}),
        (ReleaseError, "od", "od has no place for them", {"coordinates": towns}),
        (ReleaseError, "od", "latitude is a column of the file with coordinates", {"latitude": "lat"}),
        (QueryError, "od", "no level 'regoin' .did you mean 'region'", {"level": "regoin"}),
        (QueryError, "od", "no level 'origin.street'", {"level": "origin.street"}),
        (DataError, "kepler", "no such file", {"coordinates": towns.parent / "nothing.csv"}),
    ]
    for kind, to, message, options in refused:
        with pytest.raises(kind, match=message):
            export(release, to, out, **options)
    assert list(towns.parent.iterdir()) == [towns]


def test_a_level_of_one_end_only_must_name_the_end(tmp_path: Path) -> None:
    schools = tt.Hierarchy.from_table(pa.table({"kind": ["p", "s"], "school": ["p1", "s1"]}), ["kind", "school"])
    release = handmade(tt.Spine.origin_first(origin=PLACE, destination=schools), [("None", "s1")], [3])
    with pytest.raises(QueryError, match="destination has no level 'region'.*origin.region and destination.kind"):
        export(release, "od", tmp_path / "flows.csv", level="region")
    export(release, "od", tmp_path / "flows.csv", level=["origin.region", "destination.kind"])
    assert read(tmp_path / "flows.csv") == [{"origin": "N, W", "destination": "s", "count": "3"}]


@pytest.mark.parametrize(
    ("to", "out", "message"),
    [
        ("flowmap", "map.csv", "name a folder, whose name has no ending"),
        ("od", "flows.parquet", "ends in .csv, or a folder"),
        ("records", "records.xlsx", "ends in .parquet or .csv, or a folder"),
        ("od", "nowhere/flows.csv", "nowhere is not a folder: create it first"),
    ],
)
def test_a_place_that_does_not_fit_the_format_is_refused(
    to: str, out: str, message: str, release: tt.Release, towns: Path, tmp_path: Path
) -> None:
    with pytest.raises(ReleaseError, match=message):
        export(release, to, tmp_path / out, coordinates=towns if to == "flowmap" else None)


def test_what_exists_is_kept_unless_it_is_to_be_replaced(release: tt.Release, tmp_path: Path) -> None:
    path = tmp_path / "trips.csv"
    beside = tmp_path / "trips.csvt"
    for there in (path, beside):
        there.write_text("mine")
        with pytest.raises(ReleaseError, match=f"{there.name} exists already.*`force=True`"):
            export(release, "qgis", path)
        assert there.read_text() == "mine"
        there.unlink()
    path.write_text("mine")
    beside.write_text("mine")
    export(release, "qgis", path, force=True)
    assert len(read(path)) == len(release.count)
    assert beside.read_text().startswith('"String"')
    assert sorted(tmp_path.iterdir()) == [path, beside]


def test_a_folder_is_replaced_only_if_it_holds_nothing_but_an_export(
    release: tt.Release, towns: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    export(release, "qgis", out)
    with pytest.raises(ReleaseError, match="exists already"):
        export(release, "flowmap", out, coordinates=towns)
    export(release, "flowmap", out, coordinates=towns, force=True)
    assert sorted(path.name for path in out.iterdir()) == ["flows.csv", "locations.csv"]
    (out / "thesis.tex").write_text("years of work")
    with pytest.raises(ReleaseError, match="holds more than an export, 'thesis.tex' for example"):
        export(release, "flowmap", out, coordinates=towns, force=True)
    assert (out / "thesis.tex").exists()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ReleaseError, match="is a file, not a folder"):
        export(release, "od", tmp_path / "file", force=True)


def test_nothing_is_written_inside_a_release(release: tt.Release, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    (folder / "deep").mkdir(parents=True)
    (folder / "card.json").write_text("{}")
    (folder / "counts.parquet").write_text("")
    (tmp_path / "link").symlink_to(folder / "deep")
    for out in (folder, folder / "flows.csv", folder / "deep" / "flows.csv", tmp_path / "link" / "flows.csv"):
        with pytest.raises(ReleaseError, match="inside the release"):
            export(release, "od", out, force=True)


@pytest.mark.parametrize("out", ["folder", "file.csv"])
def test_a_failure_half_way_leaves_what_was_there(
    out: str, release: tt.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / out
    export(release, "records", path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.*") if file.is_file()}

    class Full(OSError):
        pass

    def fail(rows: int) -> None:
        raise Full(28, "No space left on device")

    monkeypatch.setattr(records, "ROWS", 7)
    with pytest.raises(ReleaseError, match="cannot be written: No space left on device"):
        export(release, "records", path, force=True, progress=fail)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.*") if file.is_file()} == before

    def interrupt(rows: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(release, "records", tmp_path / "other", progress=interrupt)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.*") if file.is_file()} == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_release_gives_headers_alone(towns: Path, tmp_path: Path) -> None:
    spine = tt.Spine.origin_first(origin=PLACE, destination=PLACE)
    empty = tt.Release(spine, np.zeros((2, 0), np.int32), np.zeros(0, np.int64), CARD)
    for to in FORMATS.keys() - {"site"}:  # which needs a whole card
        coordinates = towns if FORMATS[to].coordinates == "needed" or to in ("map", "geopackage") else None
        for level in (None, "region"):
            done = export(empty, to, tmp_path / f"{to}-{level}", coordinates=coordinates, level=level)
            assert (done.rows, done.total) == (0, 0)
    assert read(tmp_path / "od-None" / "flows.csv") == []
    assert pq.read_table(tmp_path / "records-None" / "records.parquet").num_rows == 0


@pytest.mark.skipif(not FLIGHTS.is_dir(), reason=f"the shippable flights are not at {FLIGHTS}")
def test_flights_open_as_a_flow_map(tmp_path: Path) -> None:
    lookup = FLIGHTS / "lookup_airport.parquet"
    airports = tt.Hierarchy.from_table(lookup, ["region", "division", "state", "iata"])
    table = pq.read_table(FLIGHTS / "od_total.parquet").sort_by([("origin", "ascending"), ("destination", "ascending")])
    pairs = [(row["origin"], row["destination"]) for row in table.to_pylist()]
    spine = tt.Spine(["origin.iata", "destination.iata"], {"origin": airports, "destination": airports})
    release = handmade(spine, pairs, table["flights"].to_pylist())
    done = export(release, "flowmap", tmp_path / "map", coordinates=lookup)
    assert done.total == 3_000_000
    locations = {row["id"]: row for row in read(done.files[1])}
    where = {row["iata"]: row for row in pq.read_table(lookup).to_pylist()}
    assert len(locations) > 200
    for code, place in locations.items():
        assert place["name"] == where[code]["name"]
        assert (float(place["lat"]), float(place["lon"])) == (where[code]["latitude"], where[code]["longitude"])
    flows = exported(read(done.files[0]), "origin", "dest", "count")
    assert flows == Counter(dict(zip(pairs, table["flights"].to_pylist(), strict=True)))


def test_a_warning_of_the_card_is_handed_on(release: tt.Release, tmp_path: Path) -> None:
    warned = tt.Release(release.spine, release.nodes, release.count, {**CARD, "warning": "Not private."})
    assert export(warned, "od", tmp_path / "a.csv").warning == "Not private."
    assert export(release, "od", tmp_path / "b.csv").warning is None


def test_records_that_are_hardly_meant_are_refused_with_their_number_and_size(tmp_path: Path) -> None:
    spine = tt.Spine(["place.region", "place.town"], attributes={"place": PLACE})
    huge = handmade(spine, [("01001",), ("01002",)], [8 * 10**12, 1])
    with pytest.raises(Refusal, match=r"8,000,000,000,001 records, about 64 TB as CSV.* `large=True`"):
        export(huge, "records", tmp_path / "records.parquet")
    with pytest.raises(ReleaseError, match=r"its disk has .* left: write .parquet instead"):
        export(huge, "records", tmp_path / "records.csv", large=True)
    assert list(tmp_path.iterdir()) == []


def test_many_records_are_told_before_they_are_written(
    release: tt.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    export(release, "records", tmp_path / "few.csv", announce=told.append)
    assert told == []
    monkeypatch.setattr("treetop.exporting._flows.MANY", 10)
    monkeypatch.setattr("treetop.exporting._flows.MOST", 10)
    export(release, "records", tmp_path / "many.csv", announce=told.append, large=True)
    assert told == [f"writing {Size.of(release.where(), depths_of(release.where(), None))}"]
    assert told[0].startswith(f"writing {release.total:,} records, about ")


def test_the_size_of_records_is_that_of_the_file(tmp_path: Path) -> None:
    spine = tt.Spine(["place.region", "place.town"], attributes={"place": PLACE})
    plain = handmade(spine, [("01001",), ("None",)], [70, 5])
    export(plain, "records", tmp_path / "records.csv")
    size = Size.of(plain.where(), depths_of(plain.where(), None))
    assert (size.records, size.bytes) == (75, (tmp_path / "records.csv").stat().st_size - len("place\n"))


KILLED = """
import os, sys
from treetop.exporting import Sheet, export
def dies(sheet, path):
    path.write_bytes(b"half of it")
    os.kill(os.getpid(), 9)
Sheet.write = dies
export(sys.argv[1], "records", sys.argv[2])
"""


def test_what_a_killed_export_left_goes_with_the_next_one(tmp_path: Path, processes: Server) -> None:
    spine = tt.Spine(["place.region", "place.town"], attributes={"place": PLACE})
    plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1))
    made = tt.make_release(plan, pa.table({"place": ["01001", "None"]}), tt.RunOptions(testing_key=bytes(32)))
    made.save(tmp_path / "release")
    done = processes.run(KILLED, tmp_path / "release", tmp_path / "one.parquet", folder=tmp_path)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob(".*"))) == 1
    export(made, "records", tmp_path / "two.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release", "two.parquet"]
