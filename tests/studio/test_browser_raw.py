"""Seven raw tables from file to release by clicks alone, on a screen and on a phone. Pictures: .pictures/raw."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

import treetop as tt
from tests.browser import CHROMIUM
from tests.raw_tables import TABLES
from tests.studio import test_browser
from tests.studio.test_browser import RELEASED, WIDTHS, Hand, look
from tests.studio.visitor import Visitor

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here to open pages with")
hand, desk = test_browser.hand, test_browser.desk

PICTURES = test_browser.ROOT / ".pictures" / "raw"
STATES = "Johor\nNegeri Sembilan\nPerak\nSabah"
Card = Mapping[str, str | Sequence[str]]
"""What is typed on an attribute's card: `how`, and fields by name."""


class Way(NamedTuple):
    """What is published of a table and how, as somebody would click it."""

    publish: Mapping[str, Card]
    records: int
    reading: Mapping[str, str] = {}
    counted: str = ""
    unit: tuple[str, str, str] = ("person", "1", "")
    asked: tuple[str, str, int, int] = ("", "", 0, 0)


WAYS = {
    "deaths.csv": Way(
        {
            "date": {"how": "dates", "first": "2020-03", "last": "2021-12"},
            "age": {},  # in the bands that are proposed
            "state": {"values": STATES},
            "male": {"values": "0 = female\n1 = male"},
            "brand1": {"values": "AZ\nPfizer", "blank": "none"},
        },
        3000, asked=("male", "1", 1500, 100)),
    "orders.xlsx": Way(
        {
            "Order Date": {"first": "2020", "last": "2021"},
            "Segment": {"values": "Consumer\nCorporate"},
            "State": {"values": STATES},
        },
        2500, unit=("customer", "12", "Customer ID"), asked=("Segment", "Consumer", 1250, 250)),
    "beds.csv": Way(
        {
            "Cód. Provincia": {"how": "hierarchy", "file": "provinces.csv", "pad": "2"},
            "Unidad": {"values": "Hospitalización\nCríticas"},
        },
        7500, counted="Ocupadas", asked=("Unidad", "Críticas", 3750, 500)),
    "survey.csv": Way(
        {f"q{k}": {"values": "a\nb" if k % 2 else "a\nb\nc"} for k in range(1, 10)},
        4000, asked=("q1", "a", 2000, 200)),
    "trips.csv": Way(
        {"origin": {"how": "hierarchy", "file": "towns.csv"}, "destination": {"how": "same_as"}},
        4000, asked=("origin", "T00", 333, 120)),
    "police.csv": Way(
        {
            "day": {"first": "2006-01", "last": "2006-12"},
            "district": {"values": "1\n2\n3\n4\n5\n6", "trim": "yes"},
            "offence": {"values": "BURGLARY\nTHEFT\nFRAUD"},
        },
        2000, {"header": "no", "new-names": "day, address, district, offence, lat"},
        asked=("offence", "THEFT", 667, 150)),
    "stays.csv": Way(
        {
            "COD_PROVINCE": {"how": "hierarchy", "file": "places.csv"},
            "car": {"values": "Fiat\nFord\nSeat"},
        },
        4000, asked=("car", "Fiat", 1333, 150)),
}  # fmt: skip


class Desk(NamedTuple):
    """Somebody at a browser of some width."""

    hand: Hand
    name: str
    width: int

    def seen(self, page: str) -> None:
        """Look at the page at both widths, and go on at this one."""
        look(self.hand.tab, f"{self.name}-{page}", PICTURES)
        self.hand.tab.size(self.width)

    def card(self, attribute: str) -> int:
        """The number of the card of an attribute; 0 if it is not published."""
        names = "[...document.querySelectorAll('form.place [name=attribute]')].map(e => e.value)"
        return int(self.hand.tab.ask(f"{names}.indexOf({json.dumps(attribute)})")) + 1

    def fill(self, attribute: str, typed: Card) -> None:
        """Fill in a card, and save it."""
        hand, at = self.hand, self.card(attribute)
        if not hand.tab.ask(f"{hand.one(f'#column-{at} details')}.open"):
            hand.tick(f"#column-{at} summary")
        how = typed.get("how") or ("values" if "values" in typed else None)
        if how is not None:
            hand.tick(f"#column-{at} [name=how][value={how}]")
        for field, text in typed.items():
            if field == "trim":
                hand.tick(f"#column-{at} [name=trim]")
            elif field != "how":
                hand.type(f"#c{at}-{field}", str(text))
        hand.press(f"Save {attribute}")
        assert "That did not work" not in hand.text(), hand.text()


@pytest.mark.parametrize("screen", WIDTHS)
@pytest.mark.parametrize("name", TABLES)
def test_a_raw_table_becomes_a_release_by_clicks(name: str, screen: str, desk: Visitor, hand: Hand) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    TABLES[name](desk.folder)
    before = {one.name: one.read_bytes() for one in desk.folder.iterdir()}
    way, tab, here = WAYS[name], hand.tab, Desk(hand, name, WIDTHS[screen])
    tab.size(here.width)
    tab.visit(desk.link)
    hand.tick(f"[value='{name}']")
    for field, text in way.reading.items():
        hand.tick(f"[name=header][value={text}]") if field == "header" else hand.type(f"#{field}", text)
    hand.press("Read the table")
    here.seen("1-table")
    hand.press("Next")
    here.seen("2-columns")
    for attribute in json.loads(
        tab.ask("JSON.stringify([...document.querySelectorAll('form.place [name=attribute]')].map(e => e.value))")
    ):
        if attribute not in way.publish:
            tab.follow(f"document.querySelector('#column-{here.card(attribute)} [value=remove]').click()")
    for attribute, typed in way.publish.items():
        if not here.card(attribute):
            tab.follow(f"document.querySelector('[name=add][value={json.dumps(attribute)}]').click()")
        here.fill(attribute, typed)
    if way.counted:
        hand.choose("#count", way.counted)
        hand.press("Save", ".line")
    assert "needs its values" not in hand.text()
    here.seen("2-columns-done")
    hand.press("Next")
    entity, most, tells = way.unit
    hand.type("#entity", entity)
    hand.type("#contributions", most)
    hand.choose("#id", tells)
    hand.tick("[value=add-remove]")
    if tells:
        hand.until("document.querySelector('#example').innerText.includes('The finest counts are off by')")
    hand.press("Save")
    here.seen("3-protected")
    hand.press("Next")
    hand.type("#total", str(way.records))
    hand.type("#epsilon", "2")
    hand.until("document.querySelector('#verdict-title') !== null")
    hand.press("Save this epsilon")
    here.seen("4-accuracy")
    hand.press("Next")
    assert "Will it be readable?" in hand.text() and "Nobody has said" not in hand.text()
    here.seen("5-review")
    hand.press("Next")
    hand.press("Run the plan once")
    hand.until(RELEASED)
    here.seen("6-released")
    hand.press("Explore it")
    here.seen("7-explore")
    release = tt.Release.load(desk.folder / "release")
    attribute, code, about, within = way.asked
    assert abs(release.query(**{attribute: code}) - about) < within
    assert {one: (desk.folder / one).read_bytes() for one in before} == before
