"""A release in the background: one at a time, cancelled or closed in the middle it leaves nothing, or is whole."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import treetop as tt
from tests import everyday
from tests.studio.visitor import Visitor, visiting
from treetop.ledger import Ledger

Held = tuple[threading.Event, threading.Event]


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Held]:
    """Stop releases at a point, and return what tells that one has come there, and what lets it go on."""

    def at(point: str) -> Held:
        come, go = threading.Event(), threading.Event()

        def publish(*arguments: Any, **options: Any) -> tt.Published:
            *others, run = arguments
            inner = options[point] if point in options else getattr(run, point)

            def waiting(*told: Any) -> None:
                come.set()
                assert go.wait(30)
                inner(*told)

            if point in options:
                return tt.publish(*arguments, **options | {point: waiting})
            given = options | {"options": replace(run, **{point: waiting})}
            return tt.publish(*others, **given)

        monkeypatch.setattr("treetop.addons.studio.job.publish", publish)
        return come, go

    return at


def left(folder: Path) -> list[str]:
    known = {"places.csv", "plan.toml", "trips.csv", "budget.ledger"}
    return sorted(one.name for one in folder.iterdir() if one.name not in known)


def start(visitor: Visitor, charge: str = "no") -> None:
    visitor.send("release", do="release", out="release", charge=charge)


def test_only_one_runs_and_it_goes_on_without_anybody_looking(own: Visitor, hold: Callable[[str], Held]) -> None:
    come, go = hold("progress")
    start(own)
    assert come.wait(30)
    page = own.see("release")
    assert "Cancel" in page.plain and "the work goes on" in page.plain and '"running"' in own.see("progress").text
    page = own.send("release", do="release", out="second", charge="no", seen=own.see("table").field("seen"))
    assert page.status == 422 and "A release is running" in page.plain
    assert "A release is running" in own.see("table").plain
    go.set()
    assert "Released: release" in own.wait().plain and left(own.folder) == ["release"]


def test_cancelled_before_the_charge_it_has_spent_nothing(own: Visitor, hold: Callable[[str], Held]) -> None:
    come, go = hold("before_measuring")
    own.send("release", do="ledger", name="budget", epsilon="1", delta="1e-8", dataset="trips")
    own.send("release", do="release", out="release", charge="yes", dataset="trips")
    assert come.wait(30)
    own.send("release", do="cancel")
    go.set()
    assert "Cancelled There is no release folder. Nothing was spent." in own.wait().plain
    assert left(own.folder) == [] and Ledger.open(own.folder / "budget.ledger").entries() == ()


def test_a_plan_with_other_conditions_is_not_charged_to_the_same_data_set(own: Visitor) -> None:
    own.send("release", do="ledger", name="budget", epsilon="9", delta="1e-8", dataset="trips")
    own.send("release", do="release", out="release", charge="yes", dataset="trips")
    own.wait()
    (entry,) = Ledger.open(own.folder / "budget.ledger").entries()
    assert f"Protects: {entry.unit}" in own.see("review").plain
    plan = own.folder / "plan.toml"
    facts = '\n[facts]\n"destination.region" = { invariant = true }\n'
    plan.write_text(plan.read_text(encoding="utf-8") + facts, encoding="utf-8")
    own.send("release", do="release", out="second", charge="yes", dataset="trips")
    assert "under different conditions, do not add" in own.wait().plain
    assert len(Ledger.open(own.folder / "budget.ledger").entries()) == 1 and left(own.folder) == ["release"]


def test_cancelled_after_the_charge_it_says_that_the_loss_stays_spent(
    own: Visitor, hold: Callable[[str], Held]
) -> None:
    come, go = hold("before_placing")
    own.send("release", do="ledger", name="budget", epsilon="1", delta="1e-8", dataset="trips")
    own.send("release", do="release", out="release", charge="yes", dataset="trips")
    assert come.wait(30)
    own.send("release", do="cancel")
    go.set()
    page = own.wait()
    assert "stays spent" in page.plain and left(own.folder) == []
    (entry,) = Ledger.open(own.folder / "budget.ledger").entries()
    assert entry.state == "reserved, outcome unknown"


def close_in_the_middle(
    folder: Path, come: threading.Event, go: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begin a release, and close the studio where it is held; it goes on once the studio has cancelled it."""
    job = import_module("treetop.addons.studio.job").Job
    cancel = job.cancel

    def cancelled(one: Any) -> None:
        cancel(one)
        go.set()

    monkeypatch.setattr(job, "cancel", cancelled)
    everyday.write(folder, everyday.plan_file(data='source = "trips.csv"\n'))
    with visiting(folder) as visitor:
        start(visitor)
        assert come.wait(30)


@pytest.mark.parametrize("point", ["progress", "before_placing"])
def test_closing_the_studio_in_the_middle_leaves_nothing(
    tmp_path: Path, hold: Callable[[str], Held], point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    close_in_the_middle(tmp_path, *hold(point), monkeypatch)
    assert left(tmp_path) == []


def test_closing_it_while_the_folder_is_put_in_place_leaves_a_whole_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    come, go = threading.Event(), threading.Event()

    def publish(*arguments: Any, **options: Any) -> tt.Published:
        inner = options["before_placing"]

        def late() -> None:
            inner()
            come.set()
            assert go.wait(30)

        return tt.publish(*arguments, **options | {"before_placing": late})

    monkeypatch.setattr("treetop.addons.studio.job.publish", publish)
    close_in_the_middle(tmp_path, come, go, monkeypatch)
    assert left(tmp_path) == ["release"]
    assert all(verdict.verified or verdict.caution for verdict in tt.check(tmp_path / "release"))


def test_a_page_that_takes_long_says_how_much_of_the_table_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trips.csv").write_text("home,work\n" + "a,b\n" * 50)
    table = import_module("treetop.io.table")
    batches = table.batches

    def slow(*arguments: Any, **options: Any) -> Iterator[Any]:
        for batch in batches(*arguments, **options):
            yield replace(batch, done=0.4)
            time.sleep(1)

    with visiting(tmp_path) as visitor:
        visitor.send("table", do="choose", table="trips.csv")
        (tmp_path / "trips.csv").write_text("home,work\n" + "a,b\n" * 60)
        monkeypatch.setattr("treetop.addons.studio.app._LONG", 0.2)
        monkeypatch.setattr(table, "batches", slow)
        visitor.see("table")
        shown = [page.plain for page in visitor.pages if "data-working" in page.text]
        assert any("40 % of the table are read" in page for page in shown), shown


@pytest.mark.parametrize(
    ("step", "function", "option", "told", "form"),
    [
        ("publish", "export", "share", (0.4,), {"out": "public", "release": "release"}),
        (
            "accuracy",
            "release_made_up",
            "progress",
            ("descending", 0.4),
            {"by": "epsilon", "epsilon": "1", "delta": "1e-8", "resolve": "full", "total": "500"},
        ),
    ],
)
def test_a_site_and_a_twin_say_how_much_of_them_is_done(
    own: Visitor, monkeypatch: pytest.MonkeyPatch, step: str, function: str, option: str, told: Any, form: Any
) -> None:
    start(own)
    own.wait()
    module = import_module(f"treetop.addons.studio.steps.{step}")
    plain = getattr(module, function)

    def slow(*arguments: Any, **options: Any) -> Any:
        options[option](*told)
        time.sleep(1)
        return plain(*arguments, **options)

    monkeypatch.setattr("treetop.addons.studio.app._LONG", 0.2)
    monkeypatch.setattr(module, function, slow)
    own.send(step, **form)
    if step == "accuracy":
        own.see(step)
    shown = [page.plain for page in own.pages if "data-working" in page.text]
    what = {"publish": "of the files are written", "accuracy": "of the twin are released"}[step]
    assert any(f"40 % {what}" in page for page in shown), shown
