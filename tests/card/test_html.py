"""The page of a card: one file for people, with nothing in it that runs or is loaded."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa

import treetop as tt
from tests.forging import card_of
from treetop.card import RunInfo, describe_release, in_words
from treetop.card.html import render


class Page(HTMLParser):
    """The tags, addresses and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.addresses: list[str] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action", "data")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


def page_of(plan: tt.Plan, folder: Path, **facts: Any) -> Page:
    table = pa.table({"place": ["n1", "s1"] * 30, "sex": ["f", "m"] * 30})
    card = describe_release(plan, RunInfo(**facts))
    replace(tt.make_release(plan, table), card=card).save(folder)
    return Page((folder / "card.html").read_text(encoding="utf-8"))


def test_the_page_is_whole_and_needs_nothing_else(plan: tt.Plan, tmp_path: Path) -> None:
    page = page_of(plan, tmp_path / "out")
    assert page.addresses == []
    assert not page.seen & {"script", "link", "img", "iframe", "object"}
    text = (tmp_path / "out" / "card.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|@import|url\(", text)
    assert len(text) < 60_000


def test_the_page_says_what_the_card_says(plan: tt.Plan, tmp_path: Path) -> None:
    page = page_of(plan, tmp_path / "out", description="A <b>bold</b> claim", period="2011 & 2012")
    card = card_of(tmp_path / "out")
    card = in_words(card)
    said = [card["title"], card["protects"], card["guarantee"], card["unit"]["neighbouring_tables"], card["id"]]
    said += [*card["exact"], *card["caveats"], card["composition"]["sentence"], card["plan_sha256"]]
    said += [level["name"] for level in card["levels"]] + [file["sha256"] for file in card["files"]]
    said += [level["cost"]["exact"] for level in card["levels"] if level["measured"]]
    said += [tree["sha256"] for tree in card["hierarchies"]] + ["A <b>bold</b> claim", "2011 & 2012"]
    for part in said:
        assert part in page.text


def test_a_release_with_a_testing_key_says_so_before_anything_else(plan: tt.Plan, tmp_path: Path) -> None:
    page = page_of(plan, tmp_path / "out", private=False)
    assert "NOT PRIVATE" in page.text.split("What is protected")[0]
    assert "no guarantee" in page.text
    assert "NOT PRIVATE" not in page_of(plan, tmp_path / "other").text


def test_the_page_shows_intervals_and_what_a_twin_gave(plan: tt.Plan, tmp_path: Path) -> None:
    tried = {"twin": [{"level": 2, "name": "sex", "covered": 1186, "nodes": 1250}], "runs": 5}
    page = page_of(plan, tmp_path / "out", coverage=tried)
    accuracy = in_words(card_of(tmp_path / "out")["accuracy"])
    assert accuracy["interval"] in page.text and accuracy["coverage"]["sentence"] in page.text
    assert "94.9 %" in page.text and "1,250" in page.text and "5 times" in page.text
    assert "5 times" not in page_of(plan, tmp_path / "other").text


def test_the_page_says_how_much_is_unresolved(plan: tt.Plan, tmp_path: Path) -> None:
    assert "unresolved" not in page_of(plan, tmp_path / "out").text
    card = card_of(tmp_path / "out")
    card["released"] |= {"total": 1500, "unresolved": {"total": 1200, "nodes": 3}}
    page = Page(render(card, "0" * 64))
    assert "1,200 of 1,500 (80.0 %) are unresolved" in page.text and "at 3 coarser nodes" in page.text
    card["released"] |= {"total": 0, "unresolved": {"total": 0, "nodes": 0}}
    assert "0 of 0 are unresolved" in Page(render(card, "0" * 64)).text


def test_a_title_cannot_smuggle_anything_into_the_page(plans: dict[str, tt.Plan], tmp_path: Path) -> None:
    base = plans["pure"]
    plan = tt.Plan(base.spine, base.unit, base.loss, title="<script>alert(1)</script>")
    page = page_of(plan, tmp_path / "out")
    assert "script" not in page.seen
    assert "<script>alert(1)</script>" in page.text
