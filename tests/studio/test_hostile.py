"""Codes, names, titles and file names that are markup, scripts, formulas or turn text around: they stay text."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import pytest

from tests.studio.visitor import Visitor, visiting

CODES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "=HYPERLINK(1)",
    "\u202egnirts\u2066",
    "'; DROP",
    "{{ 1234*5678 }}",
)
BAD = ("7006652", "<script>", "<img", "<svg onload", "<b>d", "<b>trip", "<i>", "<u>", "\u202e", "\u2066")
TITLE = "</title><script>alert(3)</script>{{ 1234*5678 }}"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """A studio whose folder has nothing but malice."""
    folder = tmp_path_factory.mktemp("hostile")
    with (folder / "places<b>.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["region", "town", "town name"])
        writer.writerows([f"R{number % 2}<i>", code, f"{code}!"] for number, code in enumerate(CODES))
    with (folder / "trips & <u>.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["home<b>", "work"])
        writer.writerows([one, other] for one in CODES for other in CODES for _ in range(20))
        writer.writerow(["<svg onload=alert(4)>", CODES[0]])
    with visiting(folder) as visitor:
        yield visitor


def test_whatever_a_table_holds_is_text_on_every_page(hostile: Visitor) -> None:
    folder = hostile.folder
    hostile.send("table", do="choose", table="trips & <u>.csv")
    form: dict[str, str | list[str]] = {
        "do": "prepare",
        "header": "yes",
        "title": TITLE,
        "column": ["home<b>", "work"],
        "period": "<x>",
    }
    hostile.send("table", **form)
    page = hostile.send("columns", do="attribute", attribute="home<b_", how="hierarchy", file="places<b>.csv")
    assert "6 of 7 codes of home<b> match" in page.plain.replace("  ", " ")
    hostile.send("columns", do="attribute", attribute="work", how="same_as", same_as="home<b_", name="<u>w</u>")
    hostile.send("columns", do="unknown", unknown="elsewhere")
    hostile.send("protected", entity="<b>trip</b>", contributions="1", neighbours="replace")
    hostile.send("accuracy", epsilon="5", delta="1e-8", by="epsilon")
    hostile.send("review", do="ledger", name="budget", epsilon="9", delta="1e-8", dataset="<b>d</b>")
    hostile.send("review", do="review", reviewer="<script>r</script>", note="</li><script>n</script>")
    hostile.send("release", do="release", out="release & 'x'", charge="yes", dataset="<b>d</b>")
    assert "Released" in hostile.wait().plain
    for step in ("table", "columns", "protected", "accuracy", "review", "release", "explore", "publish"):
        assert hostile.see(step).status == 200
    hostile.see("explore?release=release%20%26%20%27x%27&q=%3Cscript%3E&where=" + "origin%3D%3Cscript%3E")
    hostile.see("review?against=%3Cscript%3E")
    hostile.send("publish", release="release & 'x'", out="site & 'x'", language="en")
    for page in hostile.pages:
        if "text/html" in page.headers.get("content-type", ""):
            for bad in BAD:
                assert bad not in page.text, bad
    shelf = hostile.shown(hostile.see("publish"))
    page = hostile.ask("GET", f"{shelf}/site/site%20%26%20%27x%27/index.html")
    assert page.status == 200 and "sandbox" in page.headers["content-security-policy"]
    assert (folder / "site & 'x'/counts.csv").read_text(encoding="utf-8").count("'=HYPERLINK") > 0
