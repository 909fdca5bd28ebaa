"""A forger edits one field of a card and puts all hashes right: whatever it was, the card does not pass."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.forging import card_of
from treetop import Ledger
from treetop.card import RunInfo, describe_release
from treetop.card.html import bind
from treetop.card.meaning import reserved_composition
from treetop.card.rebuild import rebuild_plan
from treetop.checking.check import check_folder
from treetop.cli import main
from treetop.ledger import unit_text
from treetop.release.folder import file_sha256

from . import folders
from .conftest import PLANS, parts, people

EXAMPLES = Path(__file__).parents[2] / "examples"
KEY = "00" * 32
Path_ = tuple[Any, ...]

PLAN = """
title = "Visits"
description = "Who went where."
[attributes.place]
column = "town"
hierarchy = "places.csv"
levels = ["region", "town"]
[attributes.sex]
values = ["f", "m"]
[spine]
order = ["place.region", "sex", "place.town"]
[unit]
entity = "person"
contributions = 3
neighbours = "add-remove"
id = "who"
population = 50
[loss]
epsilon = 6
[release]
resolve = { sigmas = 2 }
[data]
count = "visits"
period = "2011"
keep = { year = ["2011"] }
unknown = "drop"
trim = true
missing = ["NA", "?"]
"""


def run(*arguments: object) -> None:
    main([str(one) for one in arguments])


def visits(path: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    columns = {
        "who": rng.integers(0, 60, 200),
        "town": np.array(["n1", "n2", "s1", "s2"])[rng.integers(0, 4, 200)],
        "sex": np.array(["f", "m"])[rng.integers(0, 2, 200)],
        "visits": rng.integers(1, 4, 200),
        "year": np.array(["2010", "2011"])[rng.integers(0, 2, 200)],
    }
    csv.write_csv(pa.table(columns), path)
    return path


def of_ids_with_a_twin(folder: Path) -> None:
    (folder / "places.csv").write_text("region,town\nN,n1\nN,n2\nS,s1\nS,s2\n")
    (folder / "plan.toml").write_text(PLAN)
    table, twin = visits(folder / "visits.csv", 1), visits(folder / "twin.csv", 2)
    twin_too = ("--twin", twin, "--nodes", "--testing-key", KEY)
    run("release", folder / "plan.toml", table, "--out", folder / "out", *twin_too)


def charged(folder: Path) -> None:
    """A release in Python, after another one of the same data."""
    plan = PLANS["exact total"]
    ledger = Ledger.create(folder / "ledger", loss=tt.Loss(rho=1))
    text = unit_text(plan.unit)
    ledger.reserve("people", plan.spent / 3, "zcdp", text, "An earlier one", plan.digest).complete("c" * 64)
    reservation = ledger.reserve("people", plan.spent, "zcdp", text, plan.title, plan.digest)
    facts = RunInfo(
        description="Who lives where.",
        period="2011",
        columns={"place": "town", "sex": "sex"},
        count="how many",
        keep={"year": ["2011", "2012"]},
        composition=reserved_composition(ledger, reservation),
    )
    release = tt.make_release(plan, people(), tt.RunOptions(testing_key=bytes(32)))
    replace(release, card=describe_release(plan, facts)).save(folder / "out", nodes=True)


def accounted_exactly(folder: Path) -> None:
    tt.make_release(PLANS["exact accounting"], people(), tt.RunOptions(testing_key=bytes(32))).save(folder / "out")


def of_groups(folder: Path) -> None:
    run("release", EXAMPLES / "households" / "plan.toml", "--out", folder / "out", "--testing-key", KEY)


def of_a_graph(folder: Path) -> None:
    run("release", EXAMPLES / "graph" / "friendships.toml", "--out", folder / "out", "--testing-key", KEY)


def with_facts(folder: Path) -> None:
    """A release with facts of every kind."""
    folders.make("facts", folder / "out")


KINDS: dict[str, Callable[[Path], None]] = {
    one.__name__.replace("_", " "): one
    for one in (of_ids_with_a_twin, charged, accounted_exactly, of_groups, of_a_graph, with_facts)
}


@pytest.fixture(scope="module", params=list(KINDS))
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release folder of each kind."""
    folder = tmp_path_factory.mktemp("made")
    KINDS[request.param](folder)
    return folder / "out"


REMOVED = object()
"""Stands for what is no longer there."""


def changes(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Yield every field of a card with what may stand there instead, or `REMOVED`; lists with a repeat, or reversed."""
    for name, item in parts(value):
        here = (*path, name)
        yield here, REMOVED
        if isinstance(item, dict | list):
            yield from ((here, other) for other in _other_lists(item))
            yield from changes(item, here)
        else:
            yield from ((here, other) for other in others(item))


def _other_lists(item: Any) -> list[Any]:
    if not isinstance(item, list) or not item:
        return []
    return [[*item, item[-1]], *([item[::-1]] if item != item[::-1] else [])]


def others(value: Any) -> Iterator[Any]:
    """Values of the same kind as another, as little different as they come, and some of another kind."""
    if value is None:
        yield from ("x", 1)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value * 1.0000001 if value else 1e-9)
    elif len(value) == 64 and set(value) <= set("0123456789abcdef"):
        yield sha256(value.encode()).hexdigest()
    elif value[:1].isdigit() and value.replace("/", "").isdigit():
        yield from (f"1{value}", "1/1000003")
    elif len(value) == 36 and value.count("-") == 4:
        yield "0" + value[1:] if value[0] != "0" else "1" + value[1:]
    elif len(value) in (10, 20) and value[4:5] == "-":
        yield value.replace(value[:4], "1999", 1)
    else:
        yield from (value + "x", value[:-1] if len(value) > 1 else "y")


def forge(folder: Path, path: Path_, new: Any, pristine: bytes, *, also_the_statement: bool) -> None:
    """Change one leaf, and put right all hashes that follow from the card."""
    card = json.loads(pristine)
    target = card
    for name in path[:-1]:
        target = target[name]
    if new is REMOVED:
        del target[path[-1]]
    else:
        target[path[-1]] = new
    if path[0] == "plan" and "plan" in card:
        card["plan_sha256"] = sha256(json.dumps(card["plan"], sort_keys=True).encode()).hexdigest()
    if also_the_statement:
        text = (folder / "plan.toml").read_text(encoding="utf-8")
        (folder / "plan.toml").write_text(bind(text, card), encoding="utf-8")
        for file in card["files"] if path[0] != "files" else ():
            if file["path"] == "plan.toml":
                file["bytes"], file["sha256"] = (folder / "plan.toml").stat().st_size, file_sha256(folder / "plan.toml")
    (folder / "card.json").write_text(json.dumps(card, ensure_ascii=False), encoding="utf-8")
    (folder / "card.html").write_text(file_sha256(folder / "card.json"), encoding="utf-8")


@pytest.fixture
def plans_are_rebuilt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rebuild the same plan on the same spine with the same facts once: most fields of a card are not the plan's."""
    kept: dict[tuple[str, int, int], Any] = {}

    def rebuild_once(card: Any, spine: tt.Spine, facts: Any = None) -> Any:
        asked = json.dumps(card["plan"]), id(spine), id(facts)
        if asked not in kept:
            kept[asked] = rebuild_plan(card, spine, facts)
        return kept[asked]

    monkeypatch.setattr("treetop.checking.check.rebuild_plan", rebuild_once)


def unfound(folder: Path) -> tuple[set[str], set[str]]:
    """Return the fields that can be changed without a finding, with positions in lists left out.

    By a forger who puts all hashes right; and among those, by one who forgets that plan.toml is bound to the card.
    """
    before = {name: (folder / name).read_bytes() for name in ("card.json", "card.html", "plan.toml")}
    card = json.loads(before["card.json"])
    passed: tuple[set[str], set[str]] = (set(), set())
    for path, new in changes(card):
        for also_the_statement, names in zip((True, False), passed, strict=True):
            try:
                forge(folder, path, new, before["card.json"], also_the_statement=also_the_statement)
                if any(verdict.findings for verdict in check_folder(folder)):
                    break
                names.add(".".join("[]" if isinstance(name, int) else name for name in path))
            finally:
                for name, content in before.items():
                    (folder / name).write_bytes(content)
    return passed


UNKNOWABLE = {
    "id": "a random name",
    "time": "nothing in the folder is dated",
    "software.python": "the counts are the same whatever made them",
    "software.numpy": "so they are here",
    "software.numba": "so they are here",
    "software.pyarrow": "so they are here",
    "software.python-flint": "so they are here",
    "software.cryptography": "so they are here",
    "software.treetop-dp": "so they are here; the words are those of the format",
    "composition.reservation.number": "the ledger has it, and is not in the folder",
    "composition.reservation.sha256": "the ledger has it",
    "composition.earlier.[].number": "the ledger has it",
    "composition.earlier.[].title": "the ledger has it",
    "composition.earlier.[].plan_sha256": "the ledger has it",
    "composition.earlier.[].card_sha256": "the ledger has it",
}
"""What a card states and no folder can prove, with the reason; `treetop check` says so in so many words."""


def test_an_untouched_folder_passes_and_check_says_what_no_folder_proves(made: Path) -> None:
    verdicts = list(check_folder(made))
    assert [finding for verdict in verdicts for finding in verdict.findings] == []
    (said,) = [verdict.subject for verdict in verdicts if "no folder can prove" in verdict.subject]
    card = card_of(made)
    for part in ("its id", "its day", "the software", file_sha256(made / "card.json")):
        assert part in said
    assert ("what the ledger held before" in said) == card["composition"]["ledger"]
    cautions = [verdict.subject for verdict in verdicts if verdict.caution and not verdict.warns]
    assert cautions == []


@pytest.mark.usefixtures("hierarchies_are_read_once", "plans_are_rebuilt_once")
@pytest.mark.usefixtures("pages_are_hashes", "who_found_something_looks_first")
def test_no_field_that_a_folder_can_prove_can_be_changed_by_who_puts_all_hashes_right(made: Path) -> None:
    passed, unbound = unfound(made)
    assert passed - UNKNOWABLE.keys() == set()
    assert {"id", "time", "software.python"} <= passed  # those that are named here do pass: the list is no longer
    assert unbound == set()


@pytest.mark.usefixtures("pages_are_hashes")
def test_no_row_of_the_facts_can_be_changed_by_who_puts_all_hashes_right(tmp_path: Path) -> None:
    with_facts(tmp_path)
    folder = tmp_path / "out"
    pristine = (folder / "card.json").read_bytes()
    card = json.loads(pristine)
    rows = pq.read_table(folder / "facts.parquet").to_pylist()
    schema = pq.read_schema(folder / "facts.parquet")
    (at,) = (at for at, file in enumerate(card["files"]) if file["path"] == "facts.parquet")
    assert {row["states"] for row in rows} == {"invariant", "at_least", "at_most", "impossible"}

    def findings(changed: list[dict[str, Any]]) -> list[str]:
        pq.write_table(pa.Table.from_pylist(changed, schema), folder / "facts.parquet")
        about: dict[str, Any] = {"bytes": (folder / "facts.parquet").stat().st_size, "rows": len(changed)}
        about["sha256"] = file_sha256(folder / "facts.parquet")
        forge(folder, ("files", at), card["files"][at] | about, pristine, also_the_statement=True)
        forged = card_of(folder)
        for file in forged["files"]:
            if file["path"] == "plan.toml":  # which `forge` leaves alone where it forges files
                file["bytes"], file["sha256"] = (folder / "plan.toml").stat().st_size, file_sha256(folder / "plan.toml")
        (folder / "card.json").write_text(json.dumps(forged, ensure_ascii=False), encoding="utf-8")
        (folder / "card.html").write_text(file_sha256(folder / "card.json"), encoding="utf-8")
        return [finding for verdict in check_folder(folder) for finding in verdict.findings]

    assert findings(rows) == []
    for number, row in enumerate(rows):
        changes: list[dict[str, Any]] = [{"level": "sex"}, {"states": "at_most"}, {"place": "S", "sex": "f"}]
        if row["count"] is not None:
            changes += [{"count": row["count"] + 1}, {"count": None}, {"count": -1}]
        for change in changes:
            if row | change != row:
                assert findings([*rows[:number], row | change, *rows[number + 1 :]]), (row, change)
        assert findings(rows[:number] + rows[number + 1 :]), row
        assert findings([*rows[: number + 1], row, *rows[number + 1 :]]), row


def test_a_card_of_a_later_format_does_not_pass(made: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "out"))
    card = card_of(folder)
    (folder / "card.json").write_text(json.dumps({**card, "treetop": 4}), encoding="utf-8")
    assert any(verdict.findings for verdict in check_folder(folder))
