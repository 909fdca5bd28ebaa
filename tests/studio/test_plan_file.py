"""The plan file is the state: comments stay, an editor beside the studio is seen, and nobody is overwritten."""

from __future__ import annotations

from pathlib import Path

import treetop as tt
from tests import everyday
from tests.studio.visitor import Visitor, visiting

PLAN = """\
# Agreed with the board on Monday.
title = "Trips"   # short

[attributes.origin]
column = "home"  # where they live
hierarchy = "places.csv"
levels = [
    "region",  # two of them
    "town",
]

# Both ends are towns.
[attributes.destination]
column = "work"
same_as = "origin"
[spine]
order = "destination-first"
[unit]
entity = "trip"
# contributions = 1
contributions = 1
neighbours = "replace"
[loss]
# epsilon = 3 was too much
epsilon = 1.0  # see the minutes
delta = 1e-8
[data]
source = "trips.csv"
"""


def comments(text: str) -> list[str]:
    return [line.partition("#")[2].strip() for line in text.splitlines() if "#" in line]


def test_whatever_is_saved_keeps_comments_and_the_layout_of_the_rest(tmp_path: Path) -> None:
    everyday.write(tmp_path, PLAN)
    with visiting(tmp_path) as visitor:
        visitor.send("protected", entity="person", contributions="3", neighbours="add-remove", id="", population="")
        visitor.send("accuracy", epsilon="0.7", delta="1e-9", by="epsilon", resolve="fdr")
        visitor.send("table", do="prepare", title="All trips", header="auto", missing="NA, ?", column=["home", "work"])
        visitor.send("columns", do="unknown", unknown="elsewhere")
        visitor.send("columns", do="attribute", attribute="origin", how="hierarchy", file="places.csv")
    text = (tmp_path / "plan.toml").read_text()
    assert comments(text) == comments(PLAN)
    assert 'title = "All trips"   # short' in text and "epsilon = 0.7  # see the minutes" in text
    file = tt.read_plan(tmp_path / "plan.toml")
    assert file.plan.unit.contributions == 3 and file.missing == ("NA", "?") and file.elsewhere
    assert file.plan.resolve != "full"


def test_what_an_editor_has_written_is_shown_and_never_overwritten(own: Visitor) -> None:
    path = own.folder / "plan.toml"
    page = own.see("protected")
    path.write_text(path.read_text().replace('entity = "trip"', 'entity = "person"  # by hand'))
    stale = own.post("protected", seen=page.field("seen"), entity="bus", contributions="1", neighbours="replace")
    assert stale.status == 409 and "was changed since this page was shown" in stale.plain
    assert "You had typed: entity: bus , contributions: 1" in stale.plain
    assert stale.field("entity") == "person" and 'entity = "person"  # by hand' in path.read_text()
    again = own.post("protected", seen=stale.field("seen"), entity="bus", contributions="1", neighbours="replace")
    assert again.status == 303 and 'entity = "bus"  # by hand' in path.read_text()


def test_a_second_tab_does_not_undo_the_first(own: Visitor) -> None:
    first, second = own.see("accuracy"), own.see("protected")
    form = {"epsilon": "0.3", "delta": "1e-8", "by": "epsilon"}
    assert own.post("accuracy", seen=first.field("seen"), **form).status == 303
    stale = own.post("protected", seen=second.field("seen"), entity="bus", contributions="1", neighbours="replace")
    assert stale.status == 409
    text = (own.folder / "plan.toml").read_text()
    assert "epsilon = 0.3" in text and 'entity = "trip"' in text
    assert own.post("release", do="release", out="r", charge="no", seen=first.field("seen")).status == 422


def test_a_plan_that_cannot_be_read_is_one_message_on_every_page(own: Visitor) -> None:
    path = own.folder / "plan.toml"
    path.write_text(path.read_text().replace("levels =", "levles ="))
    for step in ("table", "columns", "protected", "accuracy", "review", "release"):
        page = own.see(step)
        assert page.status in (200, 422) and "Traceback" not in page.text
    path.write_text("[unit\n")
    for step in ("table", "columns", "protected", "accuracy", "review", "release", "explore", "publish"):
        page = own.see(step)
        assert page.status in (200, 422), step
        assert "not valid TOML" in page.plain or step in ("explore", "publish")


def test_a_layout_that_is_not_understood_is_left_alone(own: Visitor) -> None:
    path = own.folder / "plan.toml"
    text = path.read_text().replace('[unit]\nentity = "trip"\ncontributions = 1\nneighbours = "replace"\n', "")
    path.write_text('unit = { entity = "trip", contributions = 1, neighbours = "replace" }\n' + text)
    page = own.send("protected", entity="bus", contributions="1", neighbours="replace")
    assert page.status == 422 and "change it in an editor" in page.plain
    assert path.read_text().startswith('unit = { entity = "trip"')
