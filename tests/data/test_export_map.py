"""The map: what it shows is the release, outlines fit together, and nothing in it runs or loads but its own script."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from tests.everyday import TRIP
from treetop import export
from treetop.addons.map import layers
from treetop.addons.map.arcs import Mesh, Polygon
from treetop.addons.map.atlas import SIDE, Frame
from treetop.errors import DataError, QueryError, ReleaseError

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
TOWNS = ["01", "02", "03", EVIL]
REGIONS = ["N", "N", "S", "S"]
PLACE = tt.Hierarchy.from_table(pa.table({"region": REGIONS, "town": TOWNS}), levels=["region", "town"])
SQUARES = {"01": (0, 1), "02": (1, 1), "03": (0, 0), EVIL: (1, 0)}
LOSS = tt.Loss(epsilon=1, delta=1e-8)


def flows(title: str = "Trips", spine: tt.Spine | None = None) -> tt.Release:
    spine = spine or tt.Spine.destination_first(origin=PLACE, destination=PLACE)
    rows = [(a, b, 1000 + 100 * i + 10 * j) for i, a in enumerate(TOWNS) for j, b in enumerate(TOWNS)]
    table = pa.table(dict(zip(("origin", "destination", "n"), map(list, zip(*rows, strict=True)), strict=True)))
    return tt.make_release(tt.Plan(spine, TRIP, LOSS, title=title), table, tt.RunOptions(count="n"))


@pytest.fixture(scope="module")
def release() -> tt.Release:
    return flows()


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    rows = [
        {"town": town, "name": f"Town {town}", "latitude": 45 + y, "longitude": 9 + x}
        for town, (x, y) in SQUARES.items()
    ]
    path = tmp_path / "towns.parquet"
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def square(x: float, y: float) -> list[list[float]]:
    return [[9 + x, 45 + y], [10 + x, 45 + y], [10 + x, 46 + y], [9 + x, 46 + y], [9 + x, 45 + y]]


def geojson(path: Path, codes: dict[str, Any] | None = None, **more: Any) -> Path:
    features = [
        {
            "type": "Feature",
            "properties": {"code": code, "name": f"The town of {code}", "number": 7},
            "geometry": {"type": "Polygon", "coordinates": [square(*corner)]},
        }
        for code, corner in (codes or SQUARES).items()
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features, **more}))
    return path


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text of its scripts, styles and title."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style", "title", "h1"):
            self.texts.append((tag, ""))

    def handle_data(self, data: str) -> None:
        if self.texts:
            tag, text = self.texts[-1]
            self.texts[-1] = (tag, text + data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "title", "h1"):
            self.texts.append(("", ""))

    def text(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


def content(page: Path) -> Any:
    return json.loads(Elements(page.read_text(encoding="utf-8")).text("script")[0])


def unpack(text: str) -> list[int]:
    """The other way round from `pack`, written as the page's script has it."""
    numbers, at = [], 0
    while at < len(text):
        value = shift = 0
        while True:
            bits = ord(text[at]) - 63
            at += 1
            value |= (bits & 31) << shift
            shift += 5
            if bits < 32:
                break
        numbers.append(~(value >> 1) if value & 1 else value >> 1)
    return numbers


def held_flows(level: Any) -> list[tuple[int, ...]]:
    """The flows of a level: origin, destination, count, lower, upper; the page has bounds as steps from the count."""
    rows = zip(*map(unpack, level["flows"]), strict=True)
    return [(o, d, n, *(n + step for step in steps)) for o, d, n, *steps in rows]


def by_code(level: Any, column: str) -> dict[str, int]:
    return dict(zip(level["places"]["code"], level[column], strict=True))


def test_every_level_of_the_map_is_the_release(release: tt.Release, towns: Path, tmp_path: Path) -> None:
    done = export(release, "map", tmp_path / "map.html", coordinates=towns)
    shown = content(done.files[0])
    assert (done.rows, done.total, shown["kind"]) == (len(release.count), release.total, "flows")
    assert [level["name"] for level in shown["levels"]] == ["region", "town"]
    for level in shown["levels"]:
        pairs = release.table([f"origin.{level['name']}", f"destination.{level['name']}"]).to_pylist()
        truth = {tuple(row.values())[:2]: row["count"] for row in pairs}
        codes = level["places"]["code"]
        rows = held_flows(level)
        held = {(codes[o], codes[d]): n for o, d, n, *_ in rows}
        assert held == {pair: n for pair, n in truth.items() if pair[0] != pair[1]}
        intervals = {tuple(row.values())[:2]: (row["lower"], row["upper"]) for row in pairs}
        assert all((low, high) == intervals[codes[o], codes[d]] for o, d, _, low, high in rows)
        assert 0 <= level["real"] <= len(rows)
        for part in (rows[: level["real"]], rows[level["real"] :]):  # what stands out from the noise comes first
            assert [n for _, _, n, *_ in part] == sorted((n for _, _, n, *_ in part), reverse=True)
        assert (level["pairs"], level["moving"]) == (len(held), sum(held.values()))
        assert by_code(level, "stay") == {code: truth.get((code, code), 0) for code in codes}
        assert by_code(level, "in") == {code: sum(n for (_, d), n in held.items() if d == code) for code in codes}
        assert by_code(level, "out") == {code: sum(n for (o, _), n in held.items() if o == code) for code in codes}


def test_names_codes_and_titles_are_text_and_never_run(towns: Path, tmp_path: Path) -> None:
    done = export(flows(EVIL), "map", tmp_path / "map.html", coordinates=towns, credit=EVIL)
    page = Elements(done.files[0].read_text(encoding="utf-8"))
    assert [attributes.get("type") for tag, attributes in page.tags if tag == "script"] == ["application/json", None]
    assert not any(tag == "img" or any(name.startswith("on") for name in attributes) for tag, attributes in page.tags)
    assert page.text("h1") == [EVIL]
    places = content(done.files[0])["levels"][-1]["places"]
    assert sorted(places["code"]) == sorted(TOWNS)
    assert sorted(places["name"]) == sorted(f"Town {town}" for town in TOWNS)


def test_a_map_loads_nothing_and_runs_only_its_own_script(release: tt.Release, towns: Path, tmp_path: Path) -> None:
    text = export(release, "map", tmp_path / "map.html", coordinates=towns).files[0].read_text(encoding="utf-8")
    page = Elements(text)
    assert not any({"src", "href", "action", "data"} & set(attributes) for _, attributes in page.tags)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket|innerHTML|eval\(", text)
    (policy,) = (a["content"] for tag, a in page.tags if tag == "meta" and a.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none';")
    for kind, run in (("script", page.text("script")[1]), ("style", page.text("style")[0])):
        digest = base64.b64encode(hashlib.sha256(run.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_a_map_states_the_guarantee_and_the_margin_of_every_level(
    release: tt.Release, towns: Path, tmp_path: Path
) -> None:
    page = export(release, "map", tmp_path / "map.html", coordinates=towns).files[0]
    text = page.read_text(encoding="utf-8")
    assert "odds by a factor of at most <bdi>2.72</bdi> (epsilon <bdi>1</bdi>)" in text and "NOT PRIVATE" not in text
    margins = {level["name"]: level["margin"] for level in release.card["levels"]}
    levels = content(page)["levels"]
    assert [level["margin"] for level in levels] == [margins["origin.region"], margins["origin.town"]]


def test_a_map_of_named_flows_has_the_margin_of_their_intervals(towns: Path, tmp_path: Path) -> None:
    spine = tt.Spine.destination_first(origin=PLACE, destination=PLACE)
    rows = pa.table({"origin": TOWNS[:3], "destination": TOWNS[:3], "n": [900, 700, 800]})
    release = tt.make_release(
        tt.Plan(spine, TRIP, LOSS, resolve={"sigmas": 4}), rows, tt.RunOptions(count="n", testing_key=bytes(32))
    )
    levels = content(export(release, "map", tmp_path / "map.html", coordinates=towns).files[0])["levels"]
    assert [level["named"] for level in levels] == [95.0, 95.0]
    margins = {level["name"]: level["margin"] for level in release.card["levels"]}
    for level, index, name in zip(levels, (2, 4), ("origin.region", "origin.town"), strict=True):
        seen, found = release.measured.evidence.levels[index - 1].measured, release.intervals[index]
        assert len(found) < spine.levels[index - 1].nodes
        assert (found.upper - seen == level["margin"]).all() and level["margin"] > margins[name]
    whole = content(export(flows(), "map", tmp_path / "all.html", coordinates=towns).files[0])["levels"]
    assert [level["named"] for level in whole] == [None, None]


def test_the_total_of_a_place_has_its_own_count_and_interval(release: tt.Release, towns: Path, tmp_path: Path) -> None:
    shown = content(export(release, "map", tmp_path / "map.html", coordinates=towns).files[0])
    assert shown["confidence"] == 95.0
    within = {table.margin.name: table.law.margin(Fraction(5, 100)) for table in release.margins}
    for level in shown["levels"]:
        for end in ("origin", "destination"):
            name = f"{end}.{level['name']}"
            rows = {row[name]: row for row in release.table(name).to_pylist()}
            for column in ("count", "lower", "upper"):
                found = dict(zip(level["places"]["code"], level["totals"][end][column], strict=True))
                assert found == {code: row[column] for code, row in rows.items()}
            if name in within:
                assert {row["upper"] - row["lower"] for row in rows.values()} == {2 * within[name]}


def test_places_that_are_counted_beside_other_attributes_have_the_noise_of_their_margin(
    towns: Path, tmp_path: Path
) -> None:
    spine = tt.Spine(["sex", "place.region", "place.town"], {"place": PLACE, "sex": tt.Hierarchy.flat(["f", "m"])})
    table = pa.table({"place": TOWNS * 2, "sex": ["f"] * 4 + ["m"] * 4, "n": [500, 600, 700, 800] * 2})
    counted = tt.make_release(tt.Plan(spine, TRIP, LOSS), table, tt.RunOptions(count="n"))
    levels = content(export(counted, "map", tmp_path / "map.html", coordinates=towns).files[0])["levels"]
    assert [level["margin"] for level in levels] == [one["margin"] for one in counted.card["margins"]]


def test_a_level_that_no_measurement_made_has_no_margin(towns: Path, tmp_path: Path) -> None:
    order = ["origin.region", "origin.town", "destination.region", "destination.town"]
    apart = flows(spine=tt.Spine(order, {"origin": PLACE, "destination": PLACE}))
    levels = content(export(apart, "map", tmp_path / "map.html", coordinates=towns).files[0])["levels"]
    assert levels[0]["margin"] is None and levels[1]["margin"] > 0


def test_a_release_that_is_not_private_says_so_on_its_map(towns: Path, tmp_path: Path) -> None:
    spine = tt.Spine.origin_first(origin=PLACE, destination=PLACE)
    table = pa.table({"origin": TOWNS, "destination": TOWNS, "n": [9] * 4})
    fixed = tt.make_release(tt.Plan(spine, TRIP, LOSS), table, tt.RunOptions(count="n", testing_key=bytes(32)))
    done = export(fixed, "map", tmp_path / "map.html", coordinates=towns)
    assert "NOT PRIVATE" in done.files[0].read_text(encoding="utf-8") and done.warning


def test_only_the_largest_flows_are_kept_and_all_are_counted(
    release: tt.Release, towns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "FLOWS", 3)
    level = content(export(release, "map", tmp_path / "map.html", coordinates=towns).files[0])["levels"][-1]
    moving = release.table().to_pylist()
    counts = sorted((row["count"] for row in moving if row["origin"] != row["destination"]), reverse=True)
    assert [n for _, _, n, *_ in held_flows(level)] == counts[:3]
    assert (level["pairs"], level["moving"]) == (len(counts), sum(counts))
    assert sum(level["in"]) == sum(counts)


def test_level_is_how_fine_a_map_goes(release: tt.Release, towns: Path, tmp_path: Path) -> None:
    shown = content(export(release, "map", tmp_path / "map.html", coordinates=towns, level="region").files[0])
    assert [level["name"] for level in shown["levels"]] == ["region"]
    with pytest.raises(QueryError, match="there is no level 'country'"):
        export(release, "map", tmp_path / "other.html", coordinates=towns, level="country")


def test_ends_with_hierarchies_of_their_own_are_stepped_through_together(towns: Path, tmp_path: Path) -> None:
    flat = tt.Hierarchy.flat(TOWNS, level="town")
    uneven = flows(spine=tt.Spine.origin_first(origin=PLACE, destination=flat))
    levels = content(export(uneven, "map", tmp_path / "map.html", coordinates=towns).files[0])["levels"]
    assert [level["name"] for level in levels] == ["region → town", "town"]
    assert sorted(levels[0]["places"]["code"]) == sorted(["N", "S", *TOWNS])
    assert sum(levels[0]["out"]) == sum(levels[0]["in"]) == uneven.total


def test_boundaries_give_outlines_names_and_positions(release: tt.Release, tmp_path: Path) -> None:
    shown = content(
        export(release, "map", tmp_path / "map.html", boundaries=geojson(tmp_path / "towns.geojson")).files[0]
    )
    arcs = [np.cumsum(np.array(unpack(text)).reshape(-1, 2), axis=0) for text in shown["arcs"]]
    region, town = (level["places"] for level in shown["levels"])
    assert sorted(town["name"]) == sorted(f"The town of {code}" for code in TOWNS)
    at = {code: (x, y) for code, x, y in zip(town["code"], town["x"], town["y"], strict=True)}
    assert at["01"][0] == at["03"][0] < at["02"][0] and at["01"][1] == at["02"][1] < at["03"][1]
    # Two towns of a region share an arc, which the region, made from both, has not.
    rings = {code: unpack(text) for code, text in zip(town["code"], town["rings"], strict=True)}
    used = {code: {abs_arc(arc) for arc in np.cumsum(ring[1:])} for code, ring in rings.items()}
    (north,) = (unpack(text) for code, text in zip(region["code"], region["rings"], strict=True) if code == "N")
    assert {abs_arc(arc) for arc in np.cumsum(north[1:])} == used["01"] ^ used["02"]
    assert len(used["01"] & used["02"]) == 1
    assert max(int(arc.max()) for arc in arcs) == SIDE and min(int(arc.min()) for arc in arcs) == 0


def abs_arc(arc: int) -> int:
    return int(arc if arc >= 0 else ~arc)


def test_boundaries_may_be_compressed_and_their_code_named(release: tt.Release, tmp_path: Path) -> None:
    plain = geojson(tmp_path / "towns.geojson").read_bytes()
    (tmp_path / "towns.geojson.gz").write_bytes(gzip.compress(plain))
    for code in (None, "code"):
        out = tmp_path / f"map-{code}.html"
        export(release, "map", out, boundaries=tmp_path / "towns.geojson.gz", boundaries_code=code)
        assert all(content(out)["levels"][-1]["places"]["rings"])


def test_boundaries_of_a_coarser_level_stop_the_map_there_or_carry_the_dots(
    release: tt.Release, towns: Path, tmp_path: Path
) -> None:
    regions = geojson(tmp_path / "regions.geojson", {"N": (0, 1), "S": (0, 0)})
    alone = content(export(release, "map", tmp_path / "a.html", boundaries=regions).files[0])
    assert [level["name"] for level in alone["levels"]] == ["region"]
    both = content(export(release, "map", tmp_path / "b.html", boundaries=regions, coordinates=towns).files[0])
    assert [any(level["places"]["rings"]) for level in both["levels"]] == [True, False]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("not json", "is not GeoJSON"),
        ("[1, 2]", "not a GeoJSON FeatureCollection"),
        (json.dumps({"features": [], "crs": {"properties": {"name": "EPSG:32632"}}}), "not in degrees"),
        (json.dumps({"features": [{"properties": {"code": "elsewhere"}}]}), "none of the properties code holds codes"),
        (
            json.dumps({"features": [{"properties": {"a": "01", "b": "02"}, "geometry": None}]}),
            "a and b hold equally many codes",
        ),
        (
            json.dumps(
                {"features": [{"properties": {"a": "01"}, "geometry": {"type": "Point", "coordinates": [1, 2]}}]}
            ),
            "feature 1: has a Point",
        ),
        (
            json.dumps(
                {
                    "features": [
                        {"properties": {"a": "01"}, "geometry": {"type": "Polygon", "coordinates": [[[5e5, 4e6]]]}}
                    ]
                }
            ),
            "feature 1: its coordinates are not degrees",
        ),
    ],
)
def test_boundaries_that_do_not_fit_are_refused_with_the_reason(
    change: str, expected: str, release: tt.Release, tmp_path: Path
) -> None:
    (tmp_path / "bad.geojson").write_text(change)
    with pytest.raises(DataError, match=expected):
        export(release, "map", tmp_path / "map.html", boundaries=tmp_path / "bad.geojson")
    assert not (tmp_path / "map.html").exists()


def test_a_property_that_is_not_there_is_named_with_those_that_are(release: tt.Release, tmp_path: Path) -> None:
    file = geojson(tmp_path / "towns.geojson")
    with pytest.raises(DataError, match="under 'kode'.*did you mean 'code'"):
        export(release, "map", tmp_path / "map.html", boundaries=file, boundaries_code="kode")


def test_without_coordinates_and_boundaries_there_is_no_map(release: tt.Release, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="a map needs to know where the places are"):
        export(release, "map", tmp_path / "map.html")
    with pytest.raises(ReleaseError, match="boundaries and a credit are for a map"):
        export(release, "od", tmp_path / "flows.csv", credit="mine")


def test_coordinates_of_other_places_are_no_help(release: tt.Release, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("town,lat,lon\n1,45,9\n2,46,9\n")
    with pytest.raises(DataError, match="knows none of the places of the release"):
        export(release, "map", tmp_path / "map.html", coordinates=tmp_path / "other.csv")


def test_places_that_are_nowhere_are_refused_or_left_out_and_said(release: tt.Release, tmp_path: Path) -> None:
    file = geojson(tmp_path / "towns.geojson", {code: SQUARES[code] for code in TOWNS[:3]})
    with pytest.raises(ReleaseError, match="1 code with counts lack coordinates and boundaries"):
        export(release, "map", tmp_path / "map.html", boundaries=file)
    done = export(release, "map", tmp_path / "map.html", boundaries=file, skip_missing=True)
    assert done.skipped == (EVIL,)
    lost = sum(row["count"] for row in release.table().to_pylist() if EVIL in (row["origin"], row["destination"]))
    level = content(done.files[0])["levels"][-1]
    assert (level["unplaced"], done.total) == (lost, release.total - lost)


def test_counts_of_places_are_mapped_and_other_attributes_summed_over(towns: Path, tmp_path: Path) -> None:
    sexes = tt.Hierarchy.flat(["f", "m"], level="sex")
    spine = tt.Spine(["place.region", "sex", "place.town"], {"place": PLACE, "sex": sexes})
    table = pa.table({"place": TOWNS * 2, "sex": ["f"] * 4 + ["m"] * 4, "n": [500, 600, 700, 800] * 2})
    counted = tt.make_release(tt.Plan(spine, TRIP, LOSS), table, tt.RunOptions(count="n"))
    for given in ({"coordinates": towns}, {"boundaries": geojson(tmp_path / "towns.geojson")}):
        done = export(counted, "map", tmp_path / "map.html", force=True, **given)  # type: ignore[arg-type]
        shown = content(done.files[0])
        assert (shown["kind"], shown["summed"], done.total) == ("counts", ["sex"], counted.total)
        for level in shown["levels"]:
            rows = counted.table(f"place.{level['name']}").to_pylist()
            assert by_code(level, "count") == {row[f"place.{level['name']}"]: row["count"] for row in rows}


def test_coordinates_that_came_with_the_release_are_enough(tmp_path: Path) -> None:
    from treetop.cli.demo import shipped
    from treetop.exporting import read_places
    from treetop.release.folder import drafted

    example = shipped("flights")
    place = tt.Hierarchy.from_table(example / "airports.csv", levels=["region", "division", "state", "airport"])
    plan = tt.Plan(tt.Spine.destination_first(origin=place, destination=place), TRIP, LOSS)
    made = tt.make_release(plan, example / "flights.csv", tt.RunOptions(count="flights"))
    places = {place.digest: read_places(example / "airports.csv", "airport").to_table()}
    with drafted(made, tmp_path / "release", places=places) as draft:
        draft.place()
    done = export(tmp_path / "release", "map", tmp_path / "map.html")
    shown = content(done.files[0])
    assert [len(level["places"]["code"]) for level in shown["levels"]] == [5, 10, 51, 229]
    assert done.files[0].stat().st_size < 300_000
    x = dict(zip(shown["levels"][-1]["places"]["code"], shown["levels"][-1]["places"]["x"], strict=True))
    assert x["HNL"] < x["LAX"] < x["JFK"] < x["SJU"]
    # Far islands are on the sheet, and not what it opens at.
    assert shown["view"][1] > 0 and shown["view"][3] < 0.8 * shown["size"][1]


def polygon(points: list[tuple[float, float]]) -> Polygon:
    return [np.array(points, np.float64)]


def test_simplified_neighbours_keep_one_border_between_them() -> None:
    rng = np.random.default_rng(5)
    wiggle = [(1000 + float(rng.normal(0, 30)), float(y)) for y in range(10, 1990, 10)]
    left = polygon([(0, 0), (1000, 0), *wiggle, (1000, 2000), (0, 2000)])
    right = polygon([(1000, 0), (2000, 0), (2000, 2000), (1000, 2000), *wiggle[::-1]])
    mesh = Mesh.of([[left], [right]], points=20)
    (one,), (other,) = mesh.shapes
    shared = {abs_arc(arc) for arc in one} & {abs_arc(arc) for arc in other}
    assert len(shared) == 1
    (arc,) = (mesh.arcs[number] for number in shared)
    assert 10 < len(arc) < 25
    (merged,) = mesh.merge([0, 1])
    assert {abs_arc(number) for number in merged}.isdisjoint(shared)
    assert mesh.centre([merged]) == pytest.approx((1000, 1000))


def test_slivers_between_neighbours_that_were_drawn_apart_are_not_borders() -> None:
    left = polygon([(0, 0), (1000, 0), (1001, 700), (1000, 1000), (0, 1000)])
    right = polygon([(1000, 0), (2000, 0), (2000, 1000), (1000, 1000), (1003, 400)])
    assert len(Mesh.of([[left], [right]]).merge([0, 1])) == 1


def test_what_is_as_narrow_as_a_sliver_and_is_a_place_stays() -> None:
    land, district = polygon([(0, 0), (2000, 0), (2000, 1000), (0, 1000)]), polygon([(0, 1200), (3, 1200), (3, 1206)])
    twins = [polygon([(x, 1400), (x + 3, 1400), (x + 3, 1403), (x, 1403)]) for x in (100, 103)]
    mesh = Mesh.of([[land], [district], [twins[0]], [twins[1]]])
    assert len(mesh.merge([1])) == 1
    assert len(mesh.merge([2, 3])) == 1, "the two are one narrow ring that neither has alone"
    assert len(mesh.merge([0, 1, 2, 3])) == 3


def test_holes_stay_holes_and_islands_stay_islands() -> None:
    outer, hole = square(0, 0), [[9.4, 45.4], [9.6, 45.4], [9.6, 45.6], [9.4, 45.6]]
    scaled = [1000 * (np.array(ring) - (9, 45)) for ring in (outer, hole)]
    island = 1000 * (np.array(square(3, 0)) - (9, 45))
    mesh = Mesh.of([[scaled, [island]], [[scaled[1]]]])
    assert [len(rings) for rings in mesh.shapes] == [3, 1]
    assert len(mesh.merge([0, 1])) == 2  # what fills a hole closes it


def test_a_place_smaller_than_the_grid_is_still_somewhere() -> None:
    mesh = Mesh.of([[polygon([(10, 10), (10.2, 10), (10.2, 10.3)])]])
    assert mesh.shapes == ((),) and mesh.middles[0] == pytest.approx((10.13, 10.1), abs=0.01)


def test_the_frame_is_cut_where_no_place_lies() -> None:
    fiji = Frame.around(np.array([-16.0, -18.0]), np.array([179.0, -179.0]))
    east = fiji.place(np.array([-17.0, -17.0]), np.array([179.0, -179.0]))[:, 0]
    assert east.tolist() == pytest.approx([0, fiji.width], abs=1)
    assert next(name for _, name in fiji.graticule()["x"]) == "179° E"
