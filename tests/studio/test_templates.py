"""Templates: every one becomes a plan that can be completed by clicks and released."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import treetop as tt
from tests.studio.test_columns import answer, lists, save
from tests.studio.visitor import Visitor, visiting
from treetop.addons.studio import templates

RNG = random.Random(5)
TABLES: dict[str, tuple[str, Callable[[], str], dict[str, str]]] = {
    "1-commuting": ("home,work", lambda: f"{RNG.choice('abc')},{RNG.choice('abc')}", {"origin": "a\nb\nc"}),
    "2-patients": ("Region,ICD code", lambda: f"{RNG.choice('NS')},{RNG.choice(('A1', 'B2'))}",
                   {"region": "N\nS", "diagnosis": "A1\nB2"}),
    "3-deaths": ("Date of death,Age", lambda: f"2021-{RNG.randint(1, 12):02}-03,{RNG.randint(0, 99)}", {}),
    "4-crime": ("beat,offense", lambda: f"{RNG.choice('12')},{RNG.choice(('theft', 'fraud'))}",
                {"district": "1\n2", "offence": "theft\nfraud"}),
    "5-school": ("school,grade,gender", lambda: f"{RNG.choice('xy')},{RNG.randint(1, 12)},{RNG.choice('fm')}",
                 {"place": "x\ny", "sex": "f = girls\nm = boys"}),
    "6-households": ("town,members", lambda: f"{RNG.choice('xy')},{RNG.randint(1, 9)}", {"place": "x\ny"}),
}  # fmt: skip


def plan_of(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "plan.toml").read_text())


def test_there_is_a_table_for_every_template() -> None:
    assert [*TABLES, "7-friendships"] == list(templates())


@pytest.mark.parametrize("name", TABLES)
def test_a_template_finds_its_columns_and_is_completed_by_clicks(name: str, tmp_path: Path) -> None:
    header, row, values = TABLES[name]
    (tmp_path / "table.csv").write_text("\n".join([header, *(row() for _ in range(600)), ""]))
    with visiting(tmp_path) as visitor:
        page = visitor.send("table", do="choose", table="table.csv", template=name)
        assert "600 rows were read" in page.plain
        page = visitor.see("columns")
        assert page.status == 200 and "choose its column" not in page.plain
        lists(visitor, **values)
        assert "needs its values" not in visitor.see("columns").plain
        answer(visitor)
        release(visitor)
    file = tt.read_plan(tmp_path / "plan.toml")
    assert set(file.columns.values()) == set(header.split(",")) and "template" not in plan_of(tmp_path)


def release(visitor: Visitor) -> None:
    visitor.send("release", do="release", out="release", charge="no")
    assert "Released" in visitor.wait().plain


def test_a_column_that_a_template_does_not_find_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("wohnt,arbeitet\n" + "a,b\nb,a\n" * 40)
    with visiting(tmp_path) as visitor:
        visitor.send("table", do="choose", table="table.csv", template="1-commuting")
        assert visitor.see("columns").plain.count("choose its column") == 2
        form = {"do": "attribute", "attribute": "origin", "how": "values", "values": "a\nb"}
        page = visitor.send("columns", column="origin", **form)
        assert page.status == 422 and "“Column of the table” is" in page.plain
        save(visitor, "origin", "values", values="a\nb", column="wohnt")
        save(visitor, "destination", "same_as", same_as="origin", column="arbeitet")
        assert "choose its column" not in visitor.see("columns").plain
        answer(visitor)
        release(visitor)


def test_a_friendship_network_is_released(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id\n" + "".join(f"p{number}\n" for number in range(200)))
    pairs = sorted({(RNG.randrange(200), RNG.randrange(200)) for _ in range(900)})
    edges = {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"p{one},p{two}\n" for one, two in sorted(edges)))
    with visiting(tmp_path) as visitor:
        page = visitor.send("table", do="choose", table="edges.csv", template="7-friendships")
        assert page.status == 422 and "“The people of a network”" in page.plain
        visitor.send("table", do="choose", table="edges.csv", template="7-friendships", people="people.csv")
        for step in ("table", "columns", "protected", "accuracy", "review"):
            assert visitor.see(step).status == 200, step
        release(visitor)
