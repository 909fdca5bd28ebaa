"""Maps of one entry of another attribute, over time, and the land beneath them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from tests.browser import CHROMIUM, browser
from tests.data.test_export_map import Elements
from treetop import export
from treetop.addons import map as maps

TOWNS = {"Roma": (41.9, 12.5), "Napoli": (40.85, 14.25), "Palermo": (38.1, 13.4), "Bari": (41.1, 16.9)}
MONTHS = ["2021-01", "2021-02", "2021-03"]
SEXES = ["f", "m"]


@pytest.fixture(scope="module")
def release() -> tt.Release:
    town = tt.Hierarchy.from_table(
        pa.table({"part": ["C", "S", "I", "S"], "town": list(TOWNS)}), levels=["part", "town"]
    )
    trees = {
        "town": town,
        "month": tt.Hierarchy.flat(MONTHS, level="month"),
        "sex": tt.Hierarchy.flat(SEXES, level="sex"),
    }
    plan = tt.Plan(
        tt.Spine(["town.part", "town.town", "month", "sex"], trees),
        tt.Unit("person", neighbours="replace"),
        tt.Loss(epsilon=1, delta=1e-8),
        title="Deaths",
    )
    rows = [(a, b, c) for a in TOWNS for b in MONTHS for c in SEXES]
    names = zip(("town", "month", "sex"), zip(*rows, strict=True), strict=True)
    table = pa.table(
        {**{name: list(column) for name, column in names}, "n": [100 * (at + 1) for at in range(len(rows))]}
    )
    return tt.make_release(plan, table, tt.RunOptions(count="n"))


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    file = tmp_path / "towns.csv"
    lines = [f"{name},{latitude},{longitude}" for name, (latitude, longitude) in TOWNS.items()]
    file.write_text("\n".join(["town,latitude,longitude", *lines]) + "\n")
    return file


def content(page: Path) -> Any:
    return json.loads(Elements(page.read_text(encoding="utf-8")).text("script")[0])


def test_a_map_of_one_month_has_the_numbers_of_that_month_with_their_own_intervals(
    release: tt.Release, towns: Path, tmp_path: Path
) -> None:
    data = content(export(release, "map", tmp_path / "map.html", coordinates=towns).files[0])
    assert [(own["of"], own["dates"]) for own in data["filters"]] == [("month", True), ("sex", False)]
    codes = data["levels"][-1]["places"]["code"]
    for entry in data["filters"][0]["entries"]:
        part = release.where(month=entry["code"])
        bounds = part.interval()
        assert entry["whole"] == {"count": part.total, "lower": bounds.lower, "upper": bounds.upper}
        own = {row["town.town"]: row for row in part.table("town.town").to_pylist()}
        level = entry["levels"][-1]
        assert "places" not in level and not level["exact"]
        for at, code in enumerate(codes):
            row = own.get(code, {"count": 0, "lower": None, "upper": None})
            assert level["count"][at] == row["count"]
            assert level["totals"]["town"]["lower"][at] == row["lower"]
            assert level["totals"]["town"]["upper"][at] == row["upper"]


def test_a_large_release_has_no_filter_and_says_so(
    release: tt.Release, towns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "ROWS", 13)
    done = export(release, "map", tmp_path / "map.html", coordinates=towns)
    assert [own["of"] for own in content(done.files[0])["filters"]] == ["month"]
    assert done.notes == ("the map cannot be narrowed by sex: too many numbers for one page",)
    assert content(done.files[0])["unfiltered"] == ["sex"], "which the page says as well"


def test_land_lies_under_places_and_not_under_outlines(release: tt.Release, towns: Path, tmp_path: Path) -> None:
    data = content(export(release, "map", tmp_path / "map.html", coordinates=towns).files[0])
    assert len(data["ground"]) > 5, "Italy, its islands, and what is around"
    rings = [unpacked(text) for text in data["ground"]]
    frame = data["size"]
    reach = 2 * max(frame) + 1
    for ring in rings:
        assert (ring.min(axis=0) >= -reach).all() and (ring.max(axis=0) <= np.array(frame) + reach).all()
    codes, places = data["levels"][-1]["places"]["code"], data["levels"][-1]["places"]
    inside = {
        code: any(within(ring, places["x"][at], places["y"][at]) for ring in rings) for at, code in enumerate(codes)
    }
    assert inside["Roma"]
    square = [[12, 41], [13, 41], [13, 42], [12, 42], [12, 41]]
    shape = {"type": "Feature", "properties": {"c": "Roma"}, "geometry": {"type": "Polygon", "coordinates": [square]}}
    outlines = tmp_path / "outlines.json"
    outlines.write_text(json.dumps({"type": "FeatureCollection", "features": [shape]}))
    done = export(release, "map", tmp_path / "own.html", coordinates=towns, boundaries=outlines)
    assert content(done.files[0])["ground"] == []
    assert (Path(maps.__file__).parent / "world.npz").stat().st_size < 120_000


def unpacked(text: str) -> np.ndarray:
    numbers, value, unit = [], 0, 1
    for letter in text:
        bits = ord(letter) - 63
        value += (bits & 31) * unit
        unit *= 32
        if bits < 32:
            numbers.append(-(value + 1) // 2 if value % 2 else value // 2)
            value, unit = 0, 1
    return np.cumsum(np.array(numbers).reshape(-1, 2), axis=0)


def within(ring: np.ndarray, x: float, y: float) -> bool:
    (x0, y0), (x1, y1) = ring.T, np.roll(ring, -1, axis=0).T
    crosses = (y0 > y) != (y1 > y)
    at = x0[crosses] + (y - y0[crosses]) * (x1 - x0)[crosses] / (y1 - y0)[crosses]
    return bool(np.count_nonzero(at > x) % 2)


def test_group_sizes_open_with_what_was_measured(tmp_path: Path) -> None:
    households = Path(__file__).parents[2] / "examples" / "households"
    out = tmp_path / "release"
    tt.publish(households / "plan.toml", households / "people.csv", out)
    data = json.loads((out / "card.json").read_text(encoding="utf-8"))
    assert data["counted"]["what"] == "groups"
    codes = tt.Release.load(out).spine.trees[1].codes[-1].to_pylist()
    places = tmp_path / "places.csv"
    lines = [f"{code},{40 + at % 5},{10 + at // 5}" for at, code in enumerate(codes)]
    places.write_text("\n".join(["municipality,latitude,longitude", *lines]) + "\n")
    page = export(out, "map", tmp_path / "map.html", coordinates=places).files[0]
    own = content(page)
    assert all(level["exact"] for level in own["levels"]), "how many groups there are is public"
    assert not any(level["exact"] for entry in own["filters"][0]["entries"] for level in entry["levels"])
    if CHROMIUM is None:
        return
    with browser(tmp_path / "browser") as tab:
        tab.open(page)
        assert tab.ask("document.getElementById('filter').value") != ""
        assert "Only size:" in tab.ask("document.getElementById('shown').textContent")
        tab.ask(
            "(box => { box.value = ''; box.dispatchEvent(new Event('change')) })(document.getElementById('filter'))"
        )
        assert "no noise" in tab.ask("document.getElementById('noise').textContent")
        assert tab.complaints == []


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here to open pages with")
def test_a_slider_goes_through_time_and_its_address_is_kept(release: tt.Release, towns: Path, tmp_path: Path) -> None:
    page = export(release, "map", tmp_path / "map.html", coordinates=towns).files[0]
    with browser(tmp_path / "browser") as tab:
        tab.open(page)
        assert tab.ask("document.getElementById('time').getAttribute('aria-valuetext')") == "everything"
        tab.ask("document.getElementById('time').focus()")
        tab.press("ArrowRight")
        tab.press("ArrowRight")
        assert tab.ask("document.getElementById('time-said').textContent") == "2021-02"
        assert tab.ask("document.getElementById('filter').selectedOptions[0].textContent") == "2021-02"
        total = release.where(month="2021-02").total
        assert f"{total:,} (" in tab.ask("document.getElementById('shown').textContent")
        assert "Only month: 2021-02. Summed over sex." in tab.ask("document.getElementById('shown').textContent")
        address = tab.ask("location.hash")
        tab.open(page, fragment=address)
        assert tab.ask("document.getElementById('time-said').textContent") == "2021-02"
        boxes = "['.bar', '#map'].map((name) => document.querySelector(name).getBoundingClientRect())"
        bar, drawn = tab.ask(f"{boxes}.map((box) => [box.top, box.bottom])")
        assert bar[1] <= drawn[0], "buttons cover no place"
        assert tab.complaints == []
