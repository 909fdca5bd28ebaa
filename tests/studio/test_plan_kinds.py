"""Plans of every kind: pages change only what the plan's kind has, and one that is saved as it is changes nothing."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest

import treetop as tt
from tests import everyday
from tests.studio.visitor import Page, Visitor, visiting

EXAMPLES = Path(__file__).parents[2] / "examples"
PREPARED = ("table", "columns", "protected", "accuracy")
KINDS = {
    "records": ("pupils", "plan.toml"),
    "groups": ("households", "plan.toml"),
    "edges": ("graph", "friendships.toml"),
    "nodes": ("graph", "users.toml"),
    "regional degrees": ("graph", "degrees.toml"),
    "degrees": ("graph", "theta.toml"),
}
FOREIGN: dict[str, dict[str, str | list[str]]] = {
    "table": {"do": "prepare", "header": "yes", "title": "Other", "missing": "NA", "column": ["x"]},
    "columns": {"do": "unknown", "unknown": "elsewhere"},
    "protected": {"entity": "person", "contributions": "3", "neighbours": "replace", "id": "", "population": ""},
}


def saved(folder: Path, plan: str) -> tuple[int, dict[str, object], dict[str, object]]:
    """Open and save every page as it is; return how many forms there were, and the plan before and after."""
    path, sent = folder / plan, 0
    before = tomllib.loads(path.read_text())
    with visiting(folder, plan) as visitor:
        for step in PREPARED:
            page = visitor.see(step)
            assert page.status == 200, (step, page.plain)
            for number, (_, form) in enumerate(forms(page, step)):
                if form["do"][:1] in (["place"], ["add"]):  # their buttons change what is published
                    continue
                fresh = forms(visitor.see(step), step)[number][1]
                answer = visitor.post(step, **fresh)
                assert answer.status == 303, (step, form.get("do"), answer.plain)
                sent += 1
    return sent, before, tomllib.loads(path.read_text())


def forms(page: Page, step: str) -> list[tuple[str, dict[str, list[str]]]]:
    """The forms of a page that change the plan."""
    found = [(action, {"do": [""], **form}) for action, form in page.forms()]
    return [(action, form) for action, form in found if action == step and "seen" in form]


@pytest.mark.parametrize("kind", KINDS)
def test_saving_every_page_as_it_is_leaves_a_plan_of_any_kind_as_it_is(kind: str, tmp_path: Path) -> None:
    example, plan = KINDS[kind]
    folder = shutil.copytree(EXAMPLES / example, tmp_path / example)
    sent, before, after = saved(folder, plan)
    assert before == after
    # Of graphs the accuracy alone is set here.
    assert sent == {"records": 8, "edges": 1, "nodes": 1}.get(kind, 0)
    tt.read_plan(folder / plan)


def test_the_same_for_rules_that_a_form_cannot_show_as_they_are_written(tmp_path: Path) -> None:
    data = """\
source = "trips.csv"
keep = { status = "ok" }
drop = { work = ["x, y"] }
missing = ["NA", " , "]
trim = ["work", "gone", "home"]
pad = { gone = 4, home = 2 }
unknown = { origin = "n1", destination = "s1" }
"""
    text = everyday.plan_file(("[loss]", '[release]\nresolve = { sigmas = 3 }\n[loss]\naccounting = "zcdp"'), data=data)
    everyday.write(tmp_path, text)
    rows = (tmp_path / "trips.csv").read_text().splitlines()
    (tmp_path / "trips.csv").write_text("\n".join([f"{rows[0]},status", *(f"{row},ok" for row in rows[1:])]))
    sent, before, after = saved(tmp_path, "plan.toml")
    assert before == after and sent == 7


@pytest.mark.parametrize("kind", ["groups", "edges", "nodes", "regional degrees", "degrees"])
@pytest.mark.parametrize("step", FOREIGN)
def test_forms_for_tables_of_records_are_refused_for_other_plans(kind: str, step: str, tmp_path: Path) -> None:
    example, plan = KINDS[kind]
    folder = shutil.copytree(EXAMPLES / example, tmp_path / example)
    before = (folder / plan).read_text()
    with visiting(folder, plan) as visitor:
        page = visitor.see(step)
        assert page.status == 200 and "in an editor" in page.plain and "Next:" in page.plain
        assert not [form for action, form in page.forms() if action == step and "seen" in form]
        answer = visitor.send(step, seen=_seen(visitor), **FOREIGN[step])
    assert answer.status == 422 and "Change" in answer.plain and "in an editor" in answer.plain
    assert (folder / plan).read_text() == before


def _seen(visitor: Visitor) -> str:
    return visitor.see("release").field("seen")


def test_a_plan_that_would_not_read_is_not_saved_and_the_control_is_named(own: Visitor) -> None:
    path = own.folder / "plan.toml"
    path.write_text(path.read_text() + 'names = ["home", "work"]\nheader = false\n')
    before = path.read_text()
    page = own.send("protected", entity="trip", contributions="1", neighbours="replace", id="person")
    assert page.status == 422 and "Nothing was saved" in page.plain and "there is no column 'person'" in page.plain
    assert "step 1 (Table)" in page.plain and page.field("entity") == "trip"
    assert path.read_text() == before


def test_a_plan_that_did_not_read_before_can_be_mended_one_fault_after_the_other(own: Visitor) -> None:
    path = own.folder / "plan.toml"
    text = path.read_text().replace("contributions = 1", 'contributions = "one"')
    path.write_text(text.replace("epsilon = 1.0", "epsilon = -1.0"))
    page = own.send("accuracy", by="epsilon", epsilon="1", delta="1e-8", resolve="full", seen=_version(own))
    assert page.status == 422 and "“At most” in step 3" in page.plain
    page = own.send("protected", entity="trip", contributions="1", neighbours="replace", id="", population="")
    assert page.status == 200 and "contributions = 1\n" in path.read_text()


def _version(own: Visitor) -> str:
    return own.see("protected").field("seen")
