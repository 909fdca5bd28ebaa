"""Where a map lies: no place is lost, the world is cut where the data is not, and what counts is in sight or told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.data.test_export_map import content, held_flows, unpack
from tests.everyday import TRIP
from treetop import export
from treetop.addons.map.atlas import Frame, Traffic, cut, opening, parts

REAL = Path(__file__).parents[2].parent.parent / "shared" / "data"
LOSS = tt.Loss(epsilon=1, delta=1e-8)
CITIES = {
    "FRA": ("Frankfurt", 50.0, 8.6),
    "IAD": ("Washington", 38.9, -77.5),
    "DEL": ("Delhi", 28.6, 77.1),
    "NRT": ("Tokyo", 35.8, 140.4),
    "AKL": ("Auckland", -37.0, 174.8),
    "HNL": ("Honolulu", 21.3, -157.9),
}


def box(west: float, south: float, east: float, north: float) -> list[list[float]]:
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def outlines(path: Path, shapes: dict[str, list[list[list[float]]]], **names: str) -> Path:
    features = [
        {
            "type": "Feature",
            "properties": {"code": code, **({"name": names[code]} if code in names else {})},
            "geometry": {"type": "MultiPolygon", "coordinates": [[ring] for ring in rings]},
        }
        for code, rings in shapes.items()
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def counted(tree: tt.Hierarchy, counts: dict[str, int]) -> tt.Release:
    table = pa.table({"place": list(counts), "n": list(counts.values())})
    return tt.make_release(
        tt.Plan(tt.Spine([f"place.{level}" for level in tree.levels], {"place": tree}), TRIP, LOSS),
        table,
        tt.RunOptions(count="n"),
    )


def flown(pairs: dict[tuple[str, str], int]) -> tt.Release:
    tree = tt.Hierarchy.flat(list(CITIES), level="city")
    table = pa.table({"origin": [a for a, _ in pairs], "destination": [b for _, b in pairs], "n": list(pairs.values())})
    return tt.make_release(
        tt.Plan(tt.Spine.origin_first(origin=tree, destination=tree), TRIP, LOSS), table, tt.RunOptions(count="n")
    )


@pytest.fixture
def cities(tmp_path: Path) -> Path:
    rows = [{"city": code, "name": name, "lat": lat, "lon": lon} for code, (name, lat, lon) in CITIES.items()]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "cities.parquet")
    return tmp_path / "cities.parquet"


def test_a_district_of_one_narrow_county_is_not_lost_among_large_states(tmp_path: Path) -> None:
    """Its outline is a few steps of the grid wide, as narrow as the slivers between badly drawn neighbours."""
    rows = {"state": ["east", "east", "west", "west", "DC"], "county": ["e1", "e2", "w1", "w2", "d1"]}
    tree = tt.Hierarchy.from_table(pa.table(rows), levels=["state", "county"])
    shapes = {
        "e1": [box(-50, 30, -20, 40)],
        "e2": [box(-50, 40, -20, 50)],
        "w1": [box(-110, 30, -50, 40)],
        "w2": [box(-110, 40, -50, 50)],
        "d1": [box(-50.06, 39.94, -49.94, 40.06)],
    }
    release = counted(tree, {"e1": 900, "e2": 800, "w1": 700, "w2": 600, "d1": 500})
    done = export(release, "map", tmp_path / "map.html", boundaries=outlines(tmp_path / "us.geojson", shapes))
    levels = content(done.files[0])["levels"]
    assert [sorted(level["places"]["code"]) for level in levels] == [["DC", "east", "west"], sorted(rows["county"])]
    assert levels[0]["places"]["rings"][levels[0]["places"]["code"].index("DC")], "and it has its outline"
    assert [level["unplaced"] for level in levels] == [0, 0]


def test_islands_of_several_tiny_parts_and_places_below_the_grid_are_not_lost(tmp_path: Path) -> None:
    rows = {"state": ["land", "isle", "isle", "dot", "dot"], "town": ["l", "i1", "i2", "d1", "d2"]}
    tree = tt.Hierarchy.from_table(pa.table(rows), levels=["state", "town"])
    shapes = {
        "l": [box(0, 0, 100, 50)],
        "i1": [box(110, 10, 110.05, 10.1)],
        "i2": [box(110.05, 10, 110.1, 10.1)],
        "d1": [box(120, 20, 120.001, 20.001)],
        "d2": [box(120, 20.001, 120.001, 20.002)],
    }
    release = counted(tree, dict.fromkeys(shapes, 500))
    done = export(release, "map", tmp_path / "map.html", boundaries=outlines(tmp_path / "a.geojson", shapes))
    state = content(done.files[0])["levels"][0]
    assert sorted(state["places"]["code"]) == ["dot", "isle", "land"] and state["unplaced"] == 0
    at = dict(zip(state["places"]["code"], state["places"]["x"], strict=True))
    assert at["land"] < at["isle"] < at["dot"]


@pytest.mark.skipif(not (REAL / "shippable").is_dir(), reason="the outlines of US counties are not here")
def test_the_district_of_columbia_is_on_a_map_of_states_made_of_counties(tmp_path: Path) -> None:
    topology = json.loads((REAL / "shippable/lookup_us/counties-10m.json").read_text())
    (east, north), (left, bottom) = topology["transform"]["scale"], topology["transform"]["translate"]
    arcs = [np.cumsum(arc, axis=0) * (east, north) + (left, bottom) for arc in topology["arcs"]]

    def ring(numbers: list[int]) -> list[list[float]]:
        points = np.concatenate([arcs[arc] if arc >= 0 else arcs[~arc][::-1] for arc in numbers])
        return points.tolist()  # type: ignore[no-any-return]

    # The far states make the grid coarse, the near ones are its neighbours.
    every = pq.read_table(REAL / "shippable/lookup_us/counties.parquet").to_pylist()
    counties = [row for row in every if row["abbr"] in ("DC", "MD", "DE", "AK", "HI", "ME")]
    known = {row["county"] for row in counties}
    shapes: dict[str, list[list[list[float]]]] = {}
    for one in topology["objects"]["counties"]["geometries"]:
        polygons = [one["arcs"]] if one["type"] == "Polygon" else one["arcs"]
        if one["id"] in known:
            shapes[one["id"]] = [ring(polygon[0]) for polygon in polygons]
    rows = [row for row in counties if row["county"] in shapes]
    table = pa.table({name: [row[name] for row in rows] for name in ("region", "abbr", "county")})
    tree = tt.Hierarchy.from_table(table, levels=["region", "abbr", "county"])
    release = counted(tree, {row["county"]: 400 for row in rows})
    done = export(release, "map", tmp_path / "map.html", boundaries=outlines(tmp_path / "us.geojson", shapes))
    assert done.skipped == () and done.total == release.total
    states = content(done.files[0])["levels"][1]["places"]
    assert sorted(states["code"]) == sorted({row["abbr"] for row in rows})
    assert all(states["rings"]), "every state has an outline, the smallest too"


def test_a_flight_from_frankfurt_to_washington_crosses_the_atlantic(cities: Path, tmp_path: Path) -> None:
    """The Atlantic is the widest gap between these cities, and most who fly cross it."""
    around = [*CITIES, "FRA"]
    pairs = {("FRA", "IAD"): 5000, ("IAD", "FRA"): 5000} | {(around[i], around[i + 1]): 900 for i in range(1, 4)}
    pairs[("IAD", "HNL")] = 700
    page = content(export(flown(pairs), "map", tmp_path / "map.html", coordinates=cities).files[0])
    level = page["levels"][-1]
    x = dict(zip(level["places"]["code"], level["places"]["x"], strict=True))
    assert x["HNL"] < x["IAD"] < x["FRA"] < x["DEL"] < x["NRT"] < x["AKL"]
    turn = 2 * np.pi * page["frame"]["scale"]
    for o, d, n, *_ in held_flows(level):
        if n > 3000:
            assert abs(level["places"]["x"][o] - level["places"]["x"][d]) < turn / 2


def test_data_around_the_pacific_is_centred_there(cities: Path, tmp_path: Path) -> None:
    pairs = {("HNL", "NRT"): 3000, ("NRT", "AKL"): 3000, ("AKL", "HNL"): 3000}
    page = content(export(flown(pairs), "map", tmp_path / "map.html", coordinates=cities, level="city").files[0])
    places = page["levels"][-1]["places"]
    x = dict(zip(places["code"], places["x"], strict=True))
    assert x["NRT"] < x["AKL"] < x["HNL"]
    left, _, width, _ = page["view"]
    assert left <= x["NRT"] and x["HNL"] <= left + width


def test_the_cut_is_where_hardly_anybody_passes_and_no_outline_is() -> None:
    start, end = np.array([8.6, -77.5, 140.4, 140.4]), np.array([-77.5, 8.6, 77.1, -157.9])
    traffic = Traffic(start, end, np.array([100.0, 100.0, 20.0, 1.0]))
    assert cut(traffic) == pytest.approx((-157.9 - 77.5) / 2, abs=1e-9)
    assert -150 < cut(traffic, [np.array(box(-125, 30, -80, 40))]) < -125
    everywhere = [np.array(box(-180, -10, 180, 10))]
    assert cut(traffic, everywhere) == pytest.approx((-157.9 - 77.5) / 2), "an outline all around is cut"


def test_an_outline_that_crosses_the_cut_is_two_pieces_and_one_that_its_file_cut_is_whole() -> None:
    pieces = parts([np.array(box(80, 0, 120, 10))], 100.0)
    spans = sorted((float(piece[0][:, 0].min()), float(piece[0][:, 0].max())) for piece in pieces)
    assert spans == [(100.0, 120.0), (440.0, 460.0)]
    jumps = [[170.0, 0.0], [-170.0, 0.0], [-170.0, 10.0], [170.0, 10.0], [170.0, 0.0]]
    (piece,) = parts([np.array(jumps)], 0.0)
    assert (piece[0][:, 0].min(), piece[0][:, 0].max()) == (170.0, 190.0)


def test_an_outline_across_the_dateline_is_not_smeared_over_the_world(tmp_path: Path) -> None:
    tree = tt.Hierarchy.flat(["far-east", "alaska"], level="land")
    shapes = {"far-east": [box(150, 60, 180, 70), box(-180, 60, -170, 70)], "alaska": [box(-168, 55, -130, 70)]}
    release = counted(tree, {"far-east": 900, "alaska": 800})
    done = export(release, "map", tmp_path / "map.html", boundaries=outlines(tmp_path / "b.geojson", shapes))
    page = content(done.files[0])
    places, scale = page["levels"][0]["places"], np.degrees(1 / page["frame"]["scale"])
    assert page["size"][0] * scale == pytest.approx(80, abs=0.2), "from 150° E to 130° W"
    (ring,) = (text for code, text in zip(places["code"], places["rings"], strict=True) if code == "far-east")
    assert unpack(ring)[0] == len(unpack(ring)) - 1, "the two halves of its file are one ring"


@pytest.mark.parametrize(("far", "weight", "kept"), [(1, 1.0, False), (1, 60.0, True), (12, 0.1, True)])
def test_the_map_opens_at_the_data_and_leaves_out_only_few_far_places(far: int, weight: float, kept: bool) -> None:
    near = [(float(x), float(y)) for x in range(0, 1000, 200) for y in range(0, 1000, 200)]
    away = [(3900.0 + at % 3, 3900.0 + at) for at in range(far)]
    points = np.array(near + away)
    frame = Frame(0.0, 1.0, 1.0, 4000, 4000)
    left, top, width, height = opening(
        frame, np.hstack([points, points]), np.array([10.0] * len(near) + [weight] * far)
    )
    inside = all(left <= x <= left + width and top <= y <= top + height for x, y in away)
    assert inside == kept
    assert left <= 0 and top <= 0 and left + width >= 800 and top + height >= 800, "all near places are in sight"


def test_places_that_count_nothing_do_not_widen_the_view() -> None:
    points = np.array([[100.0, 100.0], [300.0, 200.0], [3900.0, 3900.0]])
    view = opening(Frame(0.0, 1.0, 1.0, 4000, 4000), np.hstack([points, points]), np.array([5.0, 5.0, 0.0]))
    assert view == [100, 100, 200, 100]


def test_the_plans_names_come_before_those_of_coordinates_and_outlines(tmp_path: Path) -> None:
    codes = ["a", "b", "c", "d"]
    tree = tt.Hierarchy.flat(codes, level="town").named({"town": {"a": "Plan A"}})
    pq.write_table(
        pa.table(
            {"town": codes[:3], "name": ["File A", "File B", "c"], "lat": [1.0, 2.0, 3.0], "lon": [1.0, 2.0, 3.0]}
        ),
        tmp_path / "towns.parquet",
    )
    shapes = {code: [box(at, at, at + 1, at + 1)] for at, code in enumerate(codes)}
    names = {"a": "Outline A", "b": "Outline B", "c": "Outline C"}
    file = outlines(tmp_path / "towns.geojson", shapes, **names)
    release = counted(tree, dict.fromkeys(codes, 500))
    done = export(release, "map", tmp_path / "map.html", boundaries=file, coordinates=tmp_path / "towns.parquet")
    places = content(done.files[0])["levels"][0]["places"]
    assert dict(zip(places["code"], places["name"], strict=True)) == {
        "a": "Plan A",
        "b": "File B",
        "c": "Outline C",
        "d": None,
    }


def test_a_region_stands_where_most_of_it_is_counted(tmp_path: Path) -> None:
    """The middle of the Pacific states is in the ocean; nearly all who fly there fly to California."""
    rows = {"region": ["P", "P", "E"], "state": ["CA", "AK", "NY"]}
    tree = tt.Hierarchy.from_table(pa.table(rows), levels=["region", "state"])
    shapes = {"CA": [box(-124, 33, -115, 42)], "AK": [box(-168, 55, -130, 71)], "NY": [box(-79, 41, -72, 45)]}
    release = counted(tree, {"CA": 90_000, "AK": 900, "NY": 50_000})
    done = export(release, "map", tmp_path / "map.html", boundaries=outlines(tmp_path / "s.geojson", shapes))
    region, state = (level["places"] for level in content(done.files[0])["levels"])
    at = {
        code: (x, y)
        for level in (region, state)
        for code, x, y in zip(*map(level.get, ["code", "x", "y"]), strict=True)
    }
    gap = np.subtract(at["P"], at["CA"])
    assert np.hypot(*gap) < 0.05 * np.hypot(*np.subtract(at["AK"], at["CA"]))


def test_every_number_has_its_interval_that_of_sums_too(tmp_path: Path) -> None:
    """Flows at a level that no measurement made are sums; a sum that the release can bound has its bounds."""
    tree = tt.Hierarchy.from_table(
        pa.table({"region": ["N", "N", "S", "S"], "town": ["a", "b", "c", "d"]}), levels=["region", "town"]
    )
    order = ["origin.region", "origin.town", "destination.region", "destination.town"]
    spine = tt.Spine(order, {"origin": tree, "destination": tree})
    pairs = [(a, b) for a in "abcd" for b in "abcd"]
    table = pa.table(
        {"origin": [a for a, _ in pairs], "destination": [b for _, b in pairs], "n": [400 + 10 * i for i in range(16)]}
    )
    release = tt.make_release(tt.Plan(spine, TRIP, LOSS), table, tt.RunOptions(count="n"))
    shapes = {code: [box(at, 0, at + 1, 1)] for at, code in enumerate("abcd")}
    page: Any = content(
        export(release, "map", tmp_path / "m.html", boundaries=outlines(tmp_path / "t.geojson", shapes)).files[0]
    )
    whole = release.interval()
    assert page["whole"] == {"count": release.total, "lower": whole.lower, "upper": whole.upper}
    for level in page["levels"]:
        name, code = level["name"], level["places"]["code"]
        for o, d, n, lower, upper in held_flows(level):
            pair = {f"origin.{name}": code[o], f"destination.{name}": code[d]}
            found = release.interval(**pair)
            assert n == release.query(**pair) and (lower, upper) == (found.lower, found.upper)
        for i, here in enumerate(code):
            found = release.interval(**{f"origin.{name}": here, f"destination.{name}": here})
            assert [bound[i] for bound in level["stays"]] == [found.lower, found.upper]
            for end in ("origin", "destination"):
                found = release.interval(**{f"{end}.{name}": here})
                assert [level["totals"][end][bound][i] for bound in ("lower", "upper")] == [found.lower, found.upper]


def test_a_part_of_a_release_is_tested_where_its_flows_are_whole_and_has_its_own_intervals(tmp_path: Path) -> None:
    tree = tt.Hierarchy.from_table(
        pa.table({"region": ["N", "N", "S", "S"], "town": ["a", "b", "c", "d"]}), levels=["region", "town"]
    )
    order = ["origin.region", "destination.region", "origin.town", "destination.town", "sex"]
    sexes = tt.Hierarchy.flat(["f", "m"], level="sex")
    spine = tt.Spine(order, {"origin": tree, "destination": tree, "sex": sexes})
    rows = [(a, b, s) for a in "abcd" for b in "abcd" for s in "fm"]
    columns = dict(zip(("origin", "destination", "sex"), map(list, zip(*rows, strict=True)), strict=True))
    release = tt.make_release(
        tt.Plan(spine, TRIP, LOSS), pa.table({**columns, "n": [700] * len(rows)}), tt.RunOptions(count="n")
    )
    shapes = {code: [box(at, 0, at + 1, 1)] for at, code in enumerate("abcd")}
    file = outlines(tmp_path / "t.geojson", shapes)
    for name, part, is_tested in (("whole", {"origin": "N"}, True), ("cut", {"sex": "f"}, False)):
        selected = release.where(**part)
        level = content(export(selected, "map", tmp_path / f"{name}.html", boundaries=file).files[0])["levels"][-1]
        assert (level["real"] is not None) == is_tested
        codes = level["places"]["code"]
        for o, d, n, lower, upper in held_flows(level):
            pair = {"origin.town": codes[o], "destination.town": codes[d]}
            found = selected.interval(**pair)
            assert n == selected.query(**pair) and (lower, upper) == (found.lower, found.upper)
