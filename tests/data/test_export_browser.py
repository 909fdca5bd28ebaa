"""Pages in a real browser: the map groups, links, answers and says why it is empty; axe finds nothing serious."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.browser import CHROMIUM, Tab, browser
from tests.everyday import TRIP
from treetop import export

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here to open pages with")

LOSS = tt.Loss(epsilon=1, delta=1e-8)
REGIONS = {"North": (52.0, 5.0), "South": (44.0, 6.0), "East": (48.0, 14.0)}
TOWNS = {
    f"{region[0].lower()}{number}": (region, 0.35 * (number % 2), 0.5 * (number // 2))
    for region in REGIONS
    for number in range(4)
}
ISLAND = "far"
DESKTOP, PHONE = (1100, 800), (390, 780)


def towns(folder: Path) -> Path:
    rows = [
        {"town": code, "lat": REGIONS[region][0] + north, "lon": REGIONS[region][1] + east}
        for code, (region, north, east) in TOWNS.items()
    ]
    pq.write_table(pa.Table.from_pylist([*rows, {"town": ISLAND, "lat": -30.0, "lon": 60.0}]), folder / "towns.parquet")
    return folder / "towns.parquet"


def trips(scale: int = 1000) -> tt.Release:
    codes = [*TOWNS, ISLAND]
    names = {"town": {code: f"Town {code.upper()}" for code in TOWNS}}
    regions = [*(region for region, _, _ in TOWNS.values()), "Isles"]
    tree = tt.Hierarchy.from_table(pa.table({"region": regions, "town": codes}), levels=["region", "town"]).named(names)
    pairs = [(a, b) for a in TOWNS for b in TOWNS if a != b] + [(ISLAND, "n0")]
    counts = [scale * (1 + at % 5) for at in range(len(pairs) - 1)] + [scale]
    table = pa.table({"origin": [a for a, _ in pairs], "destination": [b for _, b in pairs], "n": counts})
    spine = tt.Spine.destination_first(origin=tree, destination=tree)
    return tt.make_release(
        tt.Plan(spine, TRIP, LOSS, title="Trips"), table, tt.RunOptions(count="n", testing_key=bytes(32))
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a map; and a map of numbers so small that no flow stands out."""
    folder = tmp_path_factory.mktemp("pages")
    export(trips(), "site", folder / "site", coordinates=towns(folder), language="it")
    export(trips(), "map", folder / "map.html", coordinates=towns(folder))
    export(trips(1), "map", folder / "small.html", coordinates=towns(folder), level="town")
    return folder


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened
        assert opened.complaints == [], "nothing was refused, and no script failed"


def text(tab: Tab, name: str) -> str:
    return str(tab.ask(f"document.getElementById('{name}').textContent"))


def labels(tab: Tab) -> list[str]:
    settle(tab)
    return list(tab.ask("[...document.querySelectorAll('#marks .name')].map((name) => name.textContent)"))


def settle(tab: Tab) -> None:
    """Wait until the picture is painted and names are set, and so the address is that of what is seen."""
    tab.ask("new Promise((done) => setTimeout(done, 350))")


def label_at(tab: Tab, words: str) -> tuple[float, float]:
    """Where the dot under a name is, in the window."""
    settle(tab)
    script = f"""(() => {{ const all = [...document.querySelectorAll('#marks .name')];
      const one = all.find((name) => name.textContent === {json.dumps(words)}), box = one.getBoundingClientRect();
      return [box.left + box.width / 2, one.classList.contains('below') ? box.top - 6 : box.bottom + 6] }})()"""
    x, y = tab.ask(script)
    return float(x), float(y)


def listed(tab: Tab) -> list[str]:
    return list(tab.ask("[...document.querySelectorAll('#answer li')].map((line) => line.textContent)"))


def ink(tab: Tab) -> int:
    """How many of the points of the picture are painted, flows and dots alone."""
    script = """(() => { const canvas = document.querySelector('#map > div:not(.away) canvas:last-child');
      const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
      let painted = 0; for (let at = 3; at < all.length; at += 4) if (all[at]) painted++; return painted })()"""
    settle(tab)
    return int(tab.ask(script))


def test_seen_from_afar_regions_are_shown_with_their_own_numbers_and_from_near_towns(tab: Tab, pages: Path) -> None:
    tab.open(pages / "map.html", *DESKTOP)
    assert sorted(labels(tab)) == ["East", "North", "South"]
    assert "region: arriving" in text(tab, "legend")
    release = trips()
    rows = release.table(["origin.region", "destination.region"]).to_pylist()
    row = max((one for one in rows if one["origin.region"] != one["destination.region"]), key=lambda one: one["count"])
    first = tab.ask("document.querySelector('#overview li').textContent")
    assert first == (
        f"{row['origin.region']} → {row['destination.region']}{row['count']:,} {row['lower']:,} to {row['upper']:,}"
    )
    x, y = label_at(tab, "North")
    for _ in range(4):
        tab.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
    assert "town: arriving" in text(tab, "legend") and [name for name in labels(tab) if name.startswith("Town ")]


def test_a_place_outside_the_first_view_is_told_and_shown_at_a_touch(tab: Tab, pages: Path) -> None:
    tab.open(pages / "map.html", *DESKTOP)
    settle(tab)
    assert text(tab, "outside") == "Places outside this view: 1. Show all"
    tab.ask("document.getElementById('outside').click()")
    settle(tab)
    assert tab.ask("document.getElementById('outside').hidden") and "Isles" in labels(tab)


def test_dots_that_would_touch_are_one_and_say_that_they_are_sums(tab: Tab, pages: Path) -> None:
    tab.open(pages / "map.html", *DESKTOP, fragment="#level=town")
    merged = [name for name in labels(tab) if "+" in name]
    assert len(merged) >= 3 and "such numbers are sums" in text(tab, "shown")
    tab.click(*label_at(tab, merged[0]))
    assert text(tab, "answer").startswith(f"×{merged[0]}") and "Each has its own number." in text(tab, "answer")
    assert len(listed(tab)) > 1 and all(" to " in line for line in listed(tab)), "each has its number and its interval"
    tab.ask("document.querySelector('#answer button.wide').click()")
    assert not [name for name in labels(tab) if "+" in name]


def test_a_bundle_of_flows_is_a_sum_and_its_parts_have_intervals(tab: Tab, pages: Path) -> None:
    tab.open(pages / "map.html", *DESKTOP, fragment="#level=town")
    ends = [label_at(tab, name) for name in labels(tab) if "+" in name][:2]
    (x0, y0), (x1, y1) = ends
    bend = 0.16 / 2  # of the distance, to the right: where the middle of the ribbon is
    tab.click((x0 + x1) / 2 + (y1 - y0) * bend, (y0 + y1) / 2 - (x1 - x0) * bend)
    assert "A sum has no interval of its own here; each flow has." in text(tab, "answer")
    assert all(" to " in line for line in listed(tab))


def test_a_link_opens_what_it_was_copied_from_and_back_goes_back(tab: Tab, pages: Path) -> None:
    tab.open(pages / "map.html", *DESKTOP)
    settle(tab)
    tab.click(*label_at(tab, "North"))
    settle(tab)
    link = tab.ask("location.hash")
    assert "place=North" in link and "near=region" in link and link.startswith("#at=")
    answer = text(tab, "answer")
    assert answer.startswith("×North") and "all that arrive or stay" in answer
    tab.ask("document.getElementById('shade').value = 'out'")
    tab.ask("document.getElementById('shade').dispatchEvent(new Event('change'))")
    assert "region: leaving" in text(tab, "legend")
    tab.ask("history.back()")
    tab.until("document.getElementById('legend').textContent.includes('region: arriving')")
    tab.ask("history.back()")
    tab.until("document.getElementById('answer').hidden")
    tab.open(pages / "map.html", *PHONE, fragment=link)
    assert text(tab, "answer") == answer
    tab.open(pages / "map.html", *DESKTOP, fragment="#level=town&place=e1&shade=out&flows=25&noise=also&at=48,14,7.5")
    settle(tab)
    assert text(tab, "answer").startswith("×Town E1 e1") and "town: leaving" in text(tab, "legend")
    assert tab.ask("[document.getElementById('most').value, document.getElementById('unsure').checked]") == ["25", True]
    at = [float(one) for one in tab.ask("new URLSearchParams(location.hash.slice(1)).get('at')").split(",")]
    assert at == pytest.approx([48, 14, 7.5], abs=0.01)
    tab.open(pages / "map.html", *DESKTOP, fragment="#level=nowhere&place=x&at=1,b&flows=-3&shade=%3Cb%3E")
    assert sorted(labels(tab)) == ["East", "North", "South"], "what makes no sense is passed over"


def test_a_map_with_nothing_to_show_says_why(tab: Tab, pages: Path) -> None:
    tab.open(pages / "small.html", *DESKTOP, fragment="#level=town")
    assert "No single flow at this level stands out from the noise" in text(tab, "empty")
    assert not tab.ask("document.getElementById('empty').hidden")
    assert "None at this level stands out" in text(tab, "overview")
    tab.open(pages / "map.html", *DESKTOP)
    assert tab.ask("document.getElementById('empty').hidden")
    before = ink(tab)
    tab.ask("document.getElementById('most').value = '0'")
    tab.ask("document.getElementById('most').dispatchEvent(new Event('change'))")
    assert "Flows are switched off." in text(tab, "shown") and ink(tab) < before
    tab.ask("document.getElementById('find').value = 'Atlantis'")
    tab.ask("document.getElementById('controls').requestSubmit()")
    assert text(tab, "found") == "No place is called “Atlantis”."
    tab.ask("document.getElementById('find').value = 'town s2'")
    tab.ask("document.getElementById('controls').requestSubmit()")
    assert text(tab, "answer").startswith("×Town S2"), "a town is found from a map that shows regions"


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
@pytest.mark.parametrize("fragment", ["", "#level=town"])
def test_nothing_covers_a_place(tab: Tab, pages: Path, size: tuple[int, int], fragment: str) -> None:
    """What a click on a dot meets is the map, before anything is chosen; and every dot of the view is inside of it."""
    tab.open(pages / "map.html", *size, fragment=fragment)
    settle(tab)
    tab.ask("document.getElementById('map').scrollIntoView()")
    script = """(() => { const box = document.getElementById('map').getBoundingClientRect();
      return [...document.querySelectorAll('#marks .name')].map((name) => { const own = name.getBoundingClientRect();
        const x = own.left + own.width / 2, y = name.classList.contains('below') ? own.top - 6 : own.bottom + 6;
        const hit = document.elementFromPoint(x, y);
        const inside = own.left >= box.left - 1 && own.right <= box.right + 1;
        return [name.textContent, Boolean(hit && hit.closest('#map')), inside] }) })()"""
    found = tab.ask(script)
    assert len(found) >= 3 and all(free and inside for _, free, inside in found), found


def test_a_place_of_the_map_links_to_its_page_on_the_site(tab: Tab, pages: Path) -> None:
    tab.open(pages / "site" / "map.html", *DESKTOP, fragment="#place=North&near=region")
    settle(tab)
    links = tab.ask(
        "[...document.querySelectorAll('#answer a')].map((link) => [link.textContent, link.getAttribute('href')])"
    )
    assert links == [
        [f"Tutti i numeri di North ({end})", f"index.html#only={of}/region/North"]
        for of, end in (("origin", "origine"), ("destination", "destinazione"))
    ]
    tab.follow("document.querySelector('#answer a').click()")
    assert text(tab, "only-name") == "North" and text(tab, "only-count")
    tab.open(pages / "map.html", *DESKTOP, fragment="#place=North&near=region")
    assert not tab.ask("document.querySelectorAll('#answer a').length"), "a map by itself has no site"


@pytest.mark.parametrize("scrolled", [0, 200])
def test_a_tap_on_a_phone_shows_its_answer_in_view(tab: Tab, pages: Path, scrolled: int) -> None:
    tab.open(pages / "map.html", *PHONE)
    tab.ask(f"scrollTo(0, {scrolled})")
    tab.tap(*label_at(tab, "South"))
    settle(tab)
    box = tab.ask("(({top, bottom}) => [top, bottom])(document.getElementById('answer').getBoundingClientRect())")
    assert text(tab, "answer").startswith("×South")
    assert 100 < box[0] < box[1] <= PHONE[1] + 1
    ring = tab.ask("(({top, bottom}) => [top, bottom])(document.querySelector('#marks .ring').getBoundingClientRect())")
    assert ring[0] >= 0 and ring[1] <= box[0], "and the place that it is about is not under it"
    assert tab.ask("document.documentElement.scrollWidth") == PHONE[0], "nothing sticks out at the side"
    tab.ask("document.querySelector('#answer .close').click()")
    assert tab.ask("document.getElementById('answer').hidden")


def test_a_flow_across_the_cut_leaves_on_one_side_and_comes_in_on_the_other(tab: Tab, tmp_path: Path) -> None:
    """Four cities around the world, each with flights to the next: wherever it is cut, somebody crosses."""
    around = {"a": -150.0, "b": -60.0, "c": 30.0, "d": 120.0}
    pairs = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    tree = tt.Hierarchy.flat(list(around), level="city")
    counts = pa.table({"origin": [a for a, _ in pairs], "destination": [b for _, b in pairs], "n": [9000] * 4})
    release = tt.make_release(
        tt.Plan(tt.Spine.origin_first(origin=tree, destination=tree), TRIP, LOSS), counts, tt.RunOptions(count="n")
    )
    rows = pa.table({"city": list(around), "lat": [0.0] * 4, "lon": list(around.values())})
    pq.write_table(rows, tmp_path / "cities.parquet")
    export(release, "map", tmp_path / "map.html", coordinates=tmp_path / "cities.parquet")
    tab.open(tmp_path / "map.html", *DESKTOP)
    settle(tab)
    script = """(() => { const canvas = document.querySelector('#map > div:not(.away) canvas:last-child');
      const margin = canvas.width / 6, wide = canvas.width - 2 * margin, context = canvas.getContext('2d');
      return [margin + 2, margin + wide - 3].map((x) => {
        const { data } = context.getImageData(x, 0, 1, canvas.height);
        let painted = 0; for (let at = 3; at < data.length; at += 4) if (data[at]) painted++; return painted }) })()"""
    left, right = tab.ask(script)
    assert left > 0 and right > 0


def test_a_finger_moves_the_map_and_a_drag_chooses_nothing(tab: Tab, pages: Path) -> None:
    tab.open(pages / "map.html", *DESKTOP)
    x, y = label_at(tab, "East")
    tab.mouse("mouseMoved", x, y)
    tab.mouse("mousePressed", x, y, button="left", clickCount=1)
    for step in range(1, 6):
        tab.mouse("mouseMoved", x + 12 * step, y + 10 * step, button="left", buttons=1)
    tab.mouse("mouseReleased", x + 60, y + 50, button="left", clickCount=1)
    moved = label_at(tab, "East")
    assert (moved[0] - x, moved[1] - y) == pytest.approx((60, 50), abs=6)
    assert tab.ask("document.getElementById('answer').hidden")


def test_what_the_mouse_rests_on_is_said_with_its_interval(tab: Tab, pages: Path) -> None:
    tab.open(pages / "map.html", *DESKTOP)
    tab.mouse("mouseMoved", *label_at(tab, "East"))
    tab.until("!document.getElementById('tip').hidden")
    assert text(tab, "tip").startswith("East") and " to " in text(tab, "tip")
    tab.mouse("mouseMoved", 20, 20)
    tab.until("document.getElementById('tip').hidden")


def test_the_keyboard_goes_from_place_to_place_and_says_their_numbers(tab: Tab, pages: Path) -> None:
    tab.open(pages / "map.html", *DESKTOP)
    tab.ask("document.getElementById('map').focus()")
    tab.press("ArrowRight")
    spoken = text(tab, "spoken")
    assert "all that arrive or stay: " in spoken and " to " in spoken
    tab.press("ArrowDown")
    tab.press("Enter")
    assert not tab.ask("document.getElementById('answer').hidden")
    tab.press("Escape")
    assert tab.ask("document.getElementById('answer').hidden")


def test_paper_has_one_picture_in_the_colours_of_the_day(tab: Tab, pages: Path) -> None:
    tab.open(pages / "map.html", *DESKTOP, dark=True)
    settle(tab)
    tab.ask("dispatchEvent(new Event('beforeprint'))")
    script = """(() => { const { data } = still.getContext('2d').getImageData(0, 0, still.width, still.height);
      let dots = 0; for (let at = 0; at < data.length; at += 4) if (data[at] === 47 && data[at + 1] === 111) dots++;
      return dots })()"""
    assert tab.ask(f"(() => {{ const still = document.getElementById('still'); return {script} }})()") > 500
    tab.ask("dispatchEvent(new Event('afterprint'))")
    assert not tab.ask("document.documentElement.classList.contains('paper')")


def axe() -> str | None:
    """The script of axe-core, from a package that ships it."""
    for package in ("axe_playwright_python", "axe_core_python"):
        if find_spec(package) is not None:
            return files(package).joinpath("axe.min.js").read_text(encoding="utf-8")
    return None


def serious(tab: Tab) -> list[Any]:
    script = """axe.run(document, {resultTypes: ['violations']}).then(({violations}) => violations
      .filter(({impact}) => impact === 'serious' || impact === 'critical')
      .map(({id, nodes}) => [id, nodes.map(({html}) => html.slice(0, 120))]))"""
    return list(tab.ask(script))


@pytest.mark.skipif(axe() is None, reason="axe-core is not installed (pip install axe-core-python)")
@pytest.mark.parametrize(
    ("page", "size", "dark"),
    [
        ("index.html", DESKTOP, False),
        ("index.html", PHONE, True),
        ("index.html#only=origin/region/North", DESKTOP, False),
        ("index.html#only=origin/region/North", PHONE, True),
        ("index.html#chart=origin", PHONE, False),
        ("map.html", DESKTOP, False),
        ("map.html#place=North&near=region", PHONE, True),
        ("guarantee.html", PHONE, True),
        ("card.html", DESKTOP, False),
        ("card.html", PHONE, True),
    ],
)
def test_axe_finds_nothing_serious_on_any_page(
    tab: Tab, pages: Path, page: str, size: tuple[int, int], dark: bool
) -> None:
    name, hash_, fragment = page.partition("#")
    script = axe()
    assert script is not None
    tab.open(pages / "site" / name, *size, dark=dark, fragment=hash_ + fragment)
    tab.ask("document.querySelectorAll('details').forEach((part) => { part.open = true })")
    tab.ask(script + "; 1")
    assert serious(tab) == []


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tt.Release]:
    """A site of a hundred thousand rows."""
    codes = [f"{at:03}" for at in range(320)]
    tree = tt.Hierarchy.from_table(
        pa.table({"area": [code[:1] for code in codes], "place": codes}), levels=["area", "place"]
    )
    pairs = {"origin": [a for a in codes for _ in codes], "destination": codes * len(codes)}
    table = pa.table({**pairs, "n": [200 + at % 97 for at in range(len(codes) ** 2)]})
    spine = tt.Spine.destination_first(origin=tree, destination=tree)
    release = tt.make_release(tt.Plan(spine, TRIP, LOSS, title="Many"), table, tt.RunOptions(count="n"))
    folder = tmp_path_factory.mktemp("many") / "site"
    done = export(release, "site", folder)
    assert done.rows > 95_000 and done.files[0].stat().st_size < 4_000_000
    return folder / "index.html", release


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_a_page_of_a_hundred_thousand_rows_is_searched_and_sorted(
    tab: Tab, many: tuple[Path, tt.Release], size: tuple[int, int], record_property: Callable[[str, object], None]
) -> None:
    page, release = many
    tab.open(page, *size)
    record_property("load_ms", tab.ask("performance.getEntriesByType('navigation')[0].loadEventEnd"))
    assert tab.ask("document.querySelectorAll('*').length") < 2500, "a page shows few of its rows at a time"
    assert tab.ask("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    largest = int(release.count.max())
    first = "[...document.querySelectorAll('#rows tbody tr')].map((row) => row.querySelector('.number').lastChild.data)"
    assert tab.ask(first)[0] == f"{largest:,}"
    assert "20,000 largest of" in text(tab, "held"), "and says which it has not"
    tab.ask("document.querySelector('#rows thead .number button').click()")
    assert int(tab.ask(first)[0].replace(",", "")) <= int(tab.ask(first)[-1].replace(",", ""))
    for name, level in (("first", "origin\\narea"), ("second", "destination\\nplace")):
        box = f"document.getElementById('{name}')"
        tab.ask(f"{box}.value = '{level}', {box}.dispatchEvent(new Event('change'))")
    tab.ask("document.getElementById('search').value = '317'")
    tab.ask("document.getElementById('controls').requestSubmit()")
    assert len(tab.ask(first)) == 4 and f"{release.query(destination='317'):,}" in text(tab, "sum")
    tab.ask("document.querySelector('#charts tbody a').click()")
    assert len(tab.ask("[...document.querySelectorAll('#charts tbody tr')]")) > 10 and not tab.ask("only.hidden")


def test_a_pair_of_many_rows_is_held_in_part_and_the_file_has_all(tab: Tab, many: tuple[Path, tt.Release]) -> None:
    page, release = many
    tab.open(page, *DESKTOP)
    for name, level in (("first", "origin\\nplace"), ("second", "destination\\narea")):
        box = f"document.getElementById('{name}')"
        tab.ask(f"{box}.value = '{level}', {box}.dispatchEvent(new Event('change'))")
    assert tab.ask("document.getElementById('status').textContent").startswith("Rows 1 to 25 of")
    rows = release.table(["origin.place", "destination.area"])
    assert f" of {len(rows):,}" in text(tab, "status")


def reached(tab: Tab, wanted: str, most: int = 60) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(most):
        tab.press("Tab")
        if tab.ask(f"document.activeElement.matches({json.dumps(wanted)})"):
            return
    raise AssertionError(f"{wanted} is not reached by the keyboard")


def test_the_keyboard_alone_opens_a_place_goes_back_and_selects_rows(tab: Tab, pages: Path) -> None:
    tab.open(pages / "site" / "index.html", *DESKTOP)
    reached(tab, ".skip")
    reached(tab, "#charts tbody a")
    name = tab.ask("document.activeElement.firstChild.textContent")
    tab.press("Enter")
    assert text(tab, "only-name") == name and tab.ask("document.activeElement.matches('#charts tbody a')")
    tab.ask("history.back()")
    tab.until("document.getElementById('only').hidden")
    reached(tab, "#rows tbody .pick", 120)
    tab.press("Space")
    assert text(tab, "sum").startswith("Righe selezionate: 1.")
    reached(tab, "#rows tbody .pick")
    tab.press("Space")
    assert text(tab, "sum").startswith("Righe selezionate: 2.") and " a " in text(tab, "sum")
    tab.press("Tab", shift=True)
    reached(tab, "#rows tbody a")
    tab.press("Enter")
    tab.until("document.activeElement.id === 'only-name'")
    assert tab.ask("location.hash").startswith("#only=")
    reached(tab, "#only-none")
    tab.press("Enter")
    assert tab.ask("document.getElementById('only').hidden")


def test_the_card_is_dark_in_the_dark_and_white_on_paper(tab: Tab, pages: Path) -> None:
    for dark, paper, colour in (
        (False, False, "255, 255, 255"),
        (True, False, "17, 26, 22"),
        (True, True, "255, 255, 255"),
    ):
        tab.open(pages / "site" / "card.html", *PHONE, dark=dark)
        if paper:
            tab.paper()
        assert tab.ask("getComputedStyle(document.body).backgroundColor") == f"rgb({colour})"
        assert tab.ask("document.documentElement.scrollWidth") <= PHONE[0] or paper


def test_paper_has_totals_charts_and_answers_and_no_controls(tab: Tab, pages: Path) -> None:
    tab.open(pages / "site" / "index.html", *DESKTOP, dark=True)
    tab.paper()
    shown = "[...document.querySelectorAll('{}')].some((one) => one.checkVisibility())"
    for part in ("h1", ".key b", "#charts tbody tr", "#rows tbody tr", ".answers h3", "cite, #downloads"):
        assert tab.ask(shown.format(part)), part
    for part in ("nav", "form", ".pick", ".tools", ".embed", "#pager button", ".skip:focus"):
        assert not tab.ask(shown.format(part)), part
    assert tab.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_what_is_embedded_is_one_chart_or_one_table(tab: Tab, pages: Path, tmp_path: Path) -> None:
    tab.open(pages / "site" / "index.html", *DESKTOP)
    for name, level in (("first", "origin\\nregion"), ("second", "destination\\nregion")):
        box = f"document.getElementById('{name}')"
        tab.ask(f"{box}.value = '{level}', {box}.dispatchEvent(new Event('change'))")
    tab.ask("document.getElementById('search').value = 'north'")
    tab.ask("document.getElementById('controls').requestSubmit()")
    tab.ask("document.querySelectorAll('.embed').forEach((one) => { one.open = true })")
    tab.until("[...document.querySelectorAll('.embed code')].every((one) => one.textContent)")
    snippets = tab.ask("[...document.querySelectorAll('.embed code')].map((one) => one.textContent)")
    assert len(snippets) == 3, "two charts and the table"
    rows = tab.ask("[...document.querySelectorAll('#rows tbody tr')].map((row) => row.textContent)")
    for snippet, parts in zip(snippets, (".chart", ".chart", "#table"), strict=True):
        host = tmp_path / "host.html"
        host.write_text(f"<!DOCTYPE html><title>News</title><p>Story</p>{snippet}", encoding="utf-8")
        tab.open(host, *DESKTOP)
        frame = tab.ask("(({src, title, offsetWidth}) => [src, title, offsetWidth])(document.querySelector('iframe'))")
        assert frame[1] and frame[2] > 500
        tab.visit("about:blank")
        tab.visit(frame[0])
        seen = "[...document.querySelectorAll('h1, nav, .chart, #table, #downloads, #sure')]"
        found = tab.ask(f"{seen}.filter((one) => one.checkVisibility()).map((one) => one.matches('{parts}'))")
        assert found == [True], snippet
        assert tab.ask("document.querySelector('.source a').checkVisibility()"), "and a way to the whole"
    assert tab.ask("[...document.querySelectorAll('#rows tbody tr')].map((row) => row.textContent)") == rows
