"""The whole way in a real browser, by clicks: from a table to a site. Pictures are kept in .pictures/studio."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import treetop as tt
from tests.browser import CHROMIUM, Tab, browser
from tests.studio.visitor import Visitor, visiting
from treetop.addons.studio import RedirectFile

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / ".pictures" / "studio"
WIDTHS = {"desktop": 1280, "phone": 390}
AXE = find_spec("axe_core_python")
SERIOUS = ("serious", "critical")
RELEASED = "document.readyState == 'complete' && document.querySelector('main').innerText.includes('Released: release')"
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"  # a phone zooms out

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here to open pages with")


@dataclass
class Hand:
    """A hand on the mouse and the keyboard."""

    tab: Tab

    def type(self, field: str, text: str) -> None:
        """Type into a field."""
        changed = "e.dispatchEvent(new Event('input', {bubbles: true}))"
        self.tab.ask(f"(e => {{ e.value = {json.dumps(text)}; {changed} }})({self.one(field)}), 1")

    def tick(self, what: str) -> None:
        """Click on something that leads nowhere else."""
        self.tab.ask(f"{self.one(what)}.click(), 1")

    def choose(self, field: str, value: str) -> None:
        """Choose from a list."""
        self.type(field, value)

    def press(self, button: str, within: str = "main") -> None:
        """Press a button, or follow a link, by its words."""
        found = f"[...document.querySelectorAll({json.dumps(f'{within} button, {within} a')})]"
        self.tab.follow(
            f"{found}.find(e => e.textContent.replace(/^[\\s✓0-9]+/, '').startsWith({json.dumps(button)})).click()"
        )
        self.until("document.readyState == 'complete' && !document.querySelector('[data-working]')")

    def until(self, condition: str) -> Any:
        """Wait for something to be so."""
        for _ in range(600):
            if told := self.tab.ask(condition):
                return told
            time.sleep(0.05)
        raise AssertionError(f"this is still not so: {condition}")

    def text(self) -> str:
        """What the page says."""
        return str(self.tab.ask("document.querySelector('main').innerText"))

    @staticmethod
    def one(selector: str) -> str:
        """The first element of a kind, in the language of the page."""
        return f"document.querySelector({json.dumps(selector)})"


def tab_text(hand: Hand) -> str:
    """All that a page says, also what is folded."""
    return str(hand.tab.ask("document.querySelector('main').textContent"))


def look(tab: Tab, name: str, folder: Path = PICTURES) -> None:
    """Keep pictures of a page, and see that it fits every screen and that everybody can use it."""
    for screen, width in WIDTHS.items():
        tab.size(width)
        tab.picture(folder / f"{name}-{screen}.png")
        assert tab.ask(WIDER) is False, f"{name} is wider than a {screen}"
    tab.size(WIDTHS["desktop"])
    if AXE is not None and AXE.origin is not None:
        script = (Path(AXE.origin).parent / "axe.min.js").read_text(encoding="utf-8")
        only = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}"
        kept = "r.violations.map(v => [v.impact, v.id, v.nodes.map(n => n.html).slice(0, 3)])"
        found = json.loads(tab.ask(f"{script}; axe.run({only}).then(r => JSON.stringify({kept}))"))
        assert [one for one in found if one[0] in SERIOUS] == [], name


@pytest.fixture
def hand(tmp_path: Path) -> Iterator[Hand]:
    """A hand in a browser of its own."""
    with browser(tmp_path / "browser") as tab:
        tab.size()
        yield Hand(tab)
        assert tab.complaints == []


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Visitor]:
    """A studio of an empty folder, which nobody has opened."""
    (tmp_path / "desk").mkdir()
    with visiting(tmp_path / "desk", enters=False) as visitor:
        yield visitor


def test_from_flights_to_a_site_by_clicks(desk: Visitor, hand: Hand) -> None:
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    for name in ("flights.csv", "airports.csv"):
        shutil.copy(ROOT / "examples" / "flights" / name, desk.folder)
    start, tab = time.monotonic(), hand.tab
    tab.visit(desk.link)
    look(tab, "0-start")
    hand.tick("[value='flights.csv']")
    hand.press("Read the table")
    hand.type("#title-of", "Flights between US airports")
    hand.type("#period", "January to June 2001")
    hand.press("Save")
    look(tab, "1-table")
    hand.press("Next")
    hand.choose("#count", "flights")
    hand.press("Save", ".line")
    hand.tick("#column-1 [value=hierarchy]")
    look(tab, "2-columns-open")
    hand.choose("#c1-file", "airports.csv")
    hand.press("Save origin")
    assert "229 of 229 codes" in tab.ask("document.querySelector('#c1-matched').textContent")
    hand.tick("#column-2 [value=same_as]")
    hand.press("Save destination")
    hand.tick("#column-1 summary")
    hand.type("#c1-pad", "5")
    hand.until("document.querySelector('#c1-matched').textContent.includes('0 of 229 codes of origin')")
    hand.type("#c1-pad", "")
    hand.until("document.querySelector('#c1-matched').textContent.includes('229 of 229 codes of origin')")
    look(tab, "2-columns")
    hand.press("Undo", "header")
    hand.press("Redo", "header")
    assert "needs its values" not in hand.text()
    hand.press("Who", "nav")
    hand.type("#entity", "flight")
    hand.type("#contributions", "4")
    hand.until("document.querySelector('#example').innerText.includes('limit of 4')")
    hand.type("#contributions", "1")
    hand.tick("[value=replace]")
    hand.press("Save")
    look(tab, "3-protected")
    hand.press("Next")
    assert "Say above about how many records there are" in hand.text()
    hand.type("#total", "100000")
    hand.until("document.querySelector('#verdict-title') !== null")
    hand.type("#slider", "30")
    hand.until("document.querySelector('#epsilon').value == '0.28'")
    assert "were never there" in hand.text()  # what the noise makes of a made-up twin at so small an epsilon
    off = int(tab.ask("document.querySelector('#error').value"))
    hand.type("#error", str(off // 4))
    hand.until("Number(document.querySelector('#epsilon').value) > 1")
    assert int(tab.ask("document.querySelector('#slider').value")) > 40
    hand.press("Save the epsilon that it takes")
    look(tab, "4-accuracy")
    hand.press("Next")
    hand.type("#ledger-dataset", "flights 2001")
    hand.press("Make it")
    hand.type("#reviewer", "Ada Lovelace")
    hand.press("Record it")
    look(tab, "5-review")
    hand.press("Next")
    look(tab, "6-release")
    hand.press("Run the plan once")
    hand.until(RELEASED)
    look(tab, "6-released")
    hand.press("Explore it")
    hand.type("#where", "origin=CA destination=TX")
    hand.press("Show", "form.stack")
    assert "with 95 % confidence" in hand.text()
    look(tab, "7-explore")
    hand.press("Next")
    hand.press("Make the site")
    look(tab, "8-publish")
    assert time.monotonic() - start < 110
    tab.visit(str(tab.ask("document.querySelector('.files a').href")))
    assert tab.ask("document.querySelectorAll('#rows tbody tr').length") > 0  # its own script runs in the sandbox
    tab.follow("document.querySelector('a[href=\"map.html\"]').click()")
    assert "Flights" in tab.ask("document.title")
    tab.ask("fetch('/').then(() => 0, () => 1)")
    assert tab.complaints and all("connect" in one or "Fetch" in one for one in tab.complaints)
    tab.complaints.clear()
    file = tt.read_plan(desk.folder / "plan.toml")
    assert file.plan.unit.entity == "flight" and file.records == 100_000


def test_from_a_raw_table_that_is_dropped_to_a_site(desk: Visitor, hand: Hand) -> None:
    towns = [f"{'NS'[number % 2]},{1000 + 7 * number:05}\n" for number in range(30)]
    (desk.folder / "towns.csv").write_text(f"region,town\n{''.join(towns)}")
    raw = "".join(f"{1000 + 7 * (n % 30)} ,{1000 + 7 * (n // 7 % 30)}\n" for n in range(900))
    hand.tab.visit(desk.link)
    drop = f"d.items.add(new File([{json.dumps(raw)}], 'raw.csv'))"
    fall = "new DragEvent('drop', {dataTransfer: d, cancelable: true})"
    hand.tab.follow(
        f"(d => {{ {drop}; document.querySelector('[data-drop]').dispatchEvent({fall}) }})(new DataTransfer())"
    )
    hand.tick("[value='raw.csv']")
    hand.tick("[name=header][value=no]")
    hand.type("#new-names", "home, work")
    hand.press("Read the table")
    hand.press("Next")
    hand.choose("#c1-file", "towns.csv")
    hand.press("Save origin")
    assert "“Zeros in front, up to”: 5 for home" in tab_text(hand)
    hand.tick("#column-1 summary")
    hand.type("#c1-pad", "5")
    hand.tick("#column-1 [name=trim]")
    hand.press("Save origin")
    hand.tick("#column-2 [value=same_as]")
    hand.type("#c2-pad", "5")
    hand.press("Save destination")
    assert tab_text(hand).count("30 of 30 codes") == 2
    hand.press("Next")
    hand.type("#entity", "trip")
    hand.type("#contributions", "1")
    hand.tick("[value=add-remove]")
    hand.press("Save")
    hand.press("Next")
    hand.press("Save this epsilon")
    hand.press("Release", "nav")
    hand.press("Run the plan once")
    hand.until(RELEASED)
    hand.press("Publish", "nav")
    hand.press("Make the site")
    assert (desk.folder / "site/index.html").is_file()


def test_a_page_of_another_origin_cannot_send_a_form(desk: Visitor, hand: Hand) -> None:
    (desk.folder / "trips.csv").write_text("home,work\na,b\n")
    hand.tab.visit(desk.link)
    room = str(hand.tab.ask("location.pathname")).rpartition("/")[0]
    form = f"<form method=post action=http://{desk.host}{room}/table><input name=do value=choose>"
    evil = desk.folder.parent / "evil.html"
    evil.write_text(f"{form}<input name=table value=trips.csv></form>")
    hand.tab.visit(evil.as_uri())
    hand.tab.follow("document.forms[0].submit()")
    assert "its own pages only" in hand.tab.ask("document.body.innerText")
    assert not (desk.folder / "plan.toml").exists()
    assert any("403" in one for one in hand.tab.complaints)
    hand.tab.complaints.clear()


def test_a_browser_is_led_into_the_studio_by_a_file_and_keeps_its_cookie(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with visiting(tmp_path / "folder", enters=False) as visitor, browser(tmp_path / "home") as tab:
        file = RedirectFile(visitor.link)
        try:
            tab.visit(file.path.as_uri())
            heading = "document.querySelector('main h1')?.textContent"
            for _ in range(200):
                with suppress(AssertionError):  # while one page gives way to the next
                    if tab.ask(heading) is not None:
                        break
                time.sleep(0.05)
        finally:
            file.remove()
        assert tab.ask(heading) == "The table"
