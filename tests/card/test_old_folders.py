"""Folders of version 0.2.0: they load, answer, check in full, and go on, whatever the version is now."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version as right
from pathlib import Path

import pyarrow as pa
import pytest

import treetop as tt
from treetop import Ledger
from treetop.card import facts
from treetop.card.bond import bind
from treetop.card.composition import reserved_composition
from treetop.card.content import draft_card
from treetop.card.html import render
from treetop.checking.check import check_folder
from treetop.cli import main
from treetop.errors import ReleaseError

OLD = Path(__file__).parents[1] / "fixtures" / "0.2.0"
FOLDERS = sorted(card.parent.name for card in OLD.glob("*/card.json"))


@pytest.fixture(params=["0.2.0", "0.3.0", "9.9"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What version this is."""
    monkeypatch.setattr(facts, "version", lambda name: request.param if name == "treetop" else right(name))
    facts._software.cache_clear()
    yield str(request.param)
    facts._software.cache_clear()


def findings(folder: Path) -> list[str]:
    return [finding for verdict in check_folder(folder) for finding in verdict.findings]


def test_there_is_a_folder_of_each_kind() -> None:
    assert FOLDERS == ["charged", "exact", "graph", "groups", "nodes", "pure", "python", "rho"]


@pytest.mark.parametrize("name", FOLDERS)
def test_an_old_folder_loads_answers_and_checks_in_full(
    name: str, version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert findings(OLD / name) == []
    release = tt.Release.load(OLD / name)
    assert release.card["treetop"] == 1 and release.card["software"]["treetop"] == "0.2.0"
    assert sum(release.table().column("count").to_pylist()) == release.total - release.unresolved_total
    main(["check", str(OLD / name)])
    assert "is the page of card.json" in capsys.readouterr().out
    attribute = next(iter(release.spine.attributes))
    code = release.spine.trees[0].codes[0][0].as_py()
    main(["query", str(OLD / name), f"{attribute}.{release.spine.trees[0].levels[0]}={code}"])


def test_the_words_of_an_old_card_are_its_own_and_not_those_of_today(tmp_path: Path) -> None:
    card = json.loads((OLD / "pure" / "card.json").read_text(encoding="utf-8"))
    assert card["meaning"][0]["epsilon"] == 2.0  # which was wrong: one record can show more
    folder = Path(shutil.copytree(OLD / "pure", tmp_path / "out"))
    text = (folder / "card.json").read_text(encoding="utf-8")
    (folder / "card.json").write_text(text.replace('"epsilon": 2.0', '"epsilon": 3.0'), encoding="utf-8")
    assert any("meaning[0].epsilon is 3.0" in finding for finding in findings(folder))


def warnings(folder: Path) -> list[str]:
    return [verdict.subject for verdict in check_folder(folder) if verdict.warns and verdict.caution]


@pytest.mark.parametrize(
    ("name", "told", "true"),
    [
        ("pure", 2.0, "epsilon 3"),
        ("rho", 0.658, "rho 0.0167"),
        ("charged", 0.658, "rho 0.0167"),
        ("graph", 0.18, "rho 0.00102"),
    ],
)
def test_what_an_old_card_says_of_one_record_is_said_to_be_too_small(
    name: str, told: float, true: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (said,) = [text for text in warnings(OLD / name) if "too small" in text]
    assert 'its row "one record"' in said and f"epsilon {told:g}, but" in said and true in said.split("true bound")[1]
    main(["check", str(OLD / name)])
    assert capsys.readouterr().out.count("what this card says of one record is too small") == 2
    main(["check", str(OLD / name), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["verified"] and said in report["warnings"]


def test_an_old_card_that_leaves_one_record_out_is_said_to_and_others_are_not_warned_of() -> None:
    (said,) = warnings(OLD / "nodes")
    assert "leaves out one record of a person with several" in said
    assert not any(warnings(OLD / name) for name in ("groups", "python", "exact"))


def written(folder: Path, card: dict[str, object], plan_toml: str) -> Path:
    """Write a card and its plan.toml so that every hash is right."""
    (folder / "plan.toml").write_text(plan_toml, encoding="utf-8")
    files = [
        {**file, "sha256": sha256(plan_toml.encode()).hexdigest(), "bytes": len(plan_toml.encode())}
        if file["path"] == "plan.toml"
        else file
        for file in card["files"]  # type: ignore[attr-defined]
    ]
    text = (json.dumps({**card, "files": files}, indent=2, ensure_ascii=False) + "\n").encode()
    (folder / "card.json").write_bytes(text)
    (folder / "card.html").write_text(render({**card, "files": files}, sha256(text).hexdigest()), encoding="utf-8")
    return folder


@pytest.mark.parametrize("change", ["none", "version", "binding", "field"])
def test_a_release_of_today_that_is_rewritten_as_an_old_one_does_not_pass(change: str, tmp_path: Path) -> None:
    unit = tt.Unit("person", contributions=3, neighbours="add-remove", id="who")
    flat = tt.Hierarchy.flat(["f", "m"])
    plan = tt.Plan(tt.Spine(["sex", "child"], {"sex": flat, "child": flat}), unit, tt.Loss(epsilon=6), margins="none")
    table = pa.table({"who": ["a", "b", "b"], "sex": ["f", "m", "m"], "child": ["f", "m", "f"]})
    made = plan.release(table, testing_key=bytes(32))
    made.save(tmp_path / "out")
    card = json.loads((tmp_path / "out" / "card.json").read_text(encoding="utf-8"))
    toml = (tmp_path / "out" / "plan.toml").read_text(encoding="utf-8")
    stated = replace(
        facts.Facts.of_card(card),
        format=1,
        time="2020-01-01T00:00:00Z",
        software={**card["software"], "treetop": "0.3.0" if change == "version" else "0.2.0"},
    )
    toml = toml if change == "binding" else toml.split("# card_statement_sha256")[0]
    toml += "header = true\n" if change == "field" else ""
    old = draft_card(plan, stated) | {name: card[name] for name in ("released", "files")}
    folder = written(tmp_path / "out", old, toml)
    expected = {"version": "made by version 0.3.0", "binding": "binds it to a card", "field": "'header' under [data]"}
    if change == "none":  # as version 0.2.0 would have made it, and so as false in what it says of one record
        assert findings(folder) == [] and any("too small" in text for text in warnings(folder))
    else:
        assert any(expected[change] in finding for finding in findings(folder))


def test_the_relation_of_an_old_graph_is_said_to_be_words_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert any("stated in words only" in text for text in warnings(OLD / "graph"))
    folder = Path(shutil.copytree(OLD / "graph", tmp_path / "out"))
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    toml = (folder / "plan.toml").read_text(encoding="utf-8")
    card["description"] = card["description"].replace("user-out", "node")
    forged = written(folder, card, toml.replace("user-out", "node"))
    assert any("stated in words only" in text for text in warnings(forged))
    with pytest.raises(ReleaseError, match="words only which graphs are neighbours"):
        tt.Release.load(OLD / "graph").reestimated()
    tt.Release.load(OLD / "graph").estimates()
    main(["estimate", str(OLD / "graph")])
    assert "--out" not in capsys.readouterr().out
    tt.Release.load(OLD / "nodes").reestimated().save(tmp_path / "nodes")
    assert findings(tmp_path / "nodes") == [] and warnings(tmp_path / "nodes") == []


def test_a_card_of_today_with_a_relation_in_words_only_is_warned_of(tmp_path: Path) -> None:
    plan = tt.Plan(
        tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f", "m"])}),
        tt.Unit("trip", neighbours="replace"),
        tt.Loss(rho=1),
        margins="none",
    )
    made = plan.release(pa.table({"sex": ["f", "m"]}), testing_key=bytes(32))
    card = draft_card(plan, replace(facts.Facts.of_card(made.card), description='The neighbour relation is "node".'))
    replace(made, card=card).save(tmp_path / "out")
    assert findings(tmp_path / "out") == []
    assert any("stated in words only" in text for text in warnings(tmp_path / "out"))


@pytest.mark.parametrize("version", ["0.3.0", "9.9"], indirect=True)
def test_a_release_of_today_is_of_the_second_format_whatever_the_version(version: str, tmp_path: Path) -> None:
    plan = tt.Plan(
        tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f", "m"])}),
        tt.Unit("trip", neighbours="replace"),
        tt.Loss(rho=1),
        margins="none",
    )
    plan.release(pa.table({"sex": ["f", "m"]}), testing_key=bytes(32)).save(tmp_path / "out")
    card = json.loads((tmp_path / "out" / "card.json").read_text(encoding="utf-8"))
    assert (card["treetop"], card["software"]["treetop"]) == (2, version)
    assert findings(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("name", "stated", "finding"),
    [
        ("treetop", "9.3.0", "later than this one, 0.3.0: check it with that"),
        ("treetop", "0.4.0", "later than this one"),
        ("treetop", "0.2.9", "wrote no card of format 2"),
        ("treetop", "new", "does not match"),
        ("numpy", "Certified by NIST", "does not match"),
        ("extra", "Certified by NIST", "which no card has"),
        ("treetop", "0.3.7", None),
    ],
)
@pytest.mark.parametrize("version", ["0.3.0"], indirect=True)
def test_a_card_of_a_version_or_with_software_that_is_not_known_does_not_pass(
    name: str, stated: str, finding: str | None, version: str, tmp_path: Path
) -> None:
    plan = tt.Plan(
        tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f", "m"])}),
        tt.Unit("trip", neighbours="replace"),
        tt.Loss(rho=1),
        margins="none",
    )
    plan.release(pa.table({"sex": ["f", "m"]}), testing_key=bytes(32)).save(tmp_path / "out")
    card = json.loads((tmp_path / "out" / "card.json").read_text(encoding="utf-8"))
    card["software"][name] = stated
    toml = (tmp_path / "out" / "plan.toml").read_text(encoding="utf-8")
    found = findings(written(tmp_path / "out", card, bind(toml, card)))
    assert found == [] if finding is None else any(finding in one for one in found)


def test_an_old_ledger_goes_on_and_its_times_are_not_published(tmp_path: Path) -> None:
    shutil.copy(OLD / "ledger", tmp_path / "ledger")
    ledger = Ledger.open(tmp_path / "ledger")
    earlier = ledger.entries("visits")
    assert len(earlier) == 2
    reservation = ledger.reserve("visits", earlier[0].cost, "zcdp", earlier[0].unit, "A third one", "a" * 64)
    told = json.dumps(reserved_composition(ledger, reservation))
    assert len(json.loads(told)["earlier"]) == 2
    assert not any(entry.time in told or entry.time[:10] in told for entry in ledger.entries("visits"))


def test_an_old_release_estimated_again_has_a_card_of_today(tmp_path: Path) -> None:
    spine = tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f", "m"])})
    plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1), margins="none")
    kept = plan.release(pa.table({"sex": ["f", "m"]}), testing_key=bytes(32), keep_measurements=True)
    old = facts.Facts.of_card(json.loads((OLD / "charged" / "card.json").read_text(encoding="utf-8")))
    again = old.again()
    assert (again.format, len(again.time)) == (2, 10)
    assert again.composition is not None and "time" not in again.composition["earlier"][0]
    kept.reestimated().save(tmp_path / "out")
    assert findings(tmp_path / "out") == []


@pytest.mark.parametrize("name", ["pure", "groups"])
@pytest.mark.parametrize("bad", [None, True, -1.5, "x", [1], {}])
def test_a_card_of_wrong_types_is_refused_in_one_way(name: str, bad: object, tmp_path: Path) -> None:
    """Every part of the card in turn is something else: it is refused or, where it is not read, does no harm."""
    folder = Path(shutil.copytree(OLD / name, tmp_path / "out"))
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    (folder / "card.html").unlink()  # so that only the card itself can be found wrong
    for path in places(card):
        (folder / "card.json").write_text(json.dumps(put(card, path, bad)), encoding="utf-8")
        try:
            release = tt.Release.load(folder)
            release.table()
            if release.confidence is not None:
                release.interval()
            release.estimates()
        except (ReleaseError, tt.TreetopError):
            continue


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, item in items for place in places(item, (*path, name)))]


def put(card: object, path: tuple[object, ...], new: object) -> object:
    if not path:
        return new
    name, *rest = path
    if isinstance(card, dict):
        return {**card, name: put(card[name], tuple(rest), new)}
    assert isinstance(card, list) and isinstance(name, int)
    return [*card[:name], put(card[name], tuple(rest), new), *card[name + 1 :]]


def test_a_commuter_is_a_person_and_a_card_that_said_otherwise_is_held_to_its_own_words(tmp_path: Path) -> None:
    towns = tt.Hierarchy.flat(["a", "b"], level="town")
    unit = tt.Unit("commuter", contributions=1, neighbours="replace")
    plan = tt.Plan(tt.Spine(["town"], {"town": towns}), unit, tt.Loss(epsilon=1))
    plan.release(pa.table({"town": ["a", "b", "b"]})).save(tmp_path / "new")
    card = json.loads((tmp_path / "new" / "card.json").read_text(encoding="utf-8"))
    assert [row["who"] for row in card["meaning"]][-1] == "50 commuters together"
    assert findings(tmp_path / "new") == []
    old = draft_card(plan, replace(facts.Facts.of_card(card), said_before=True))
    assert [row["who"] for row in old["meaning"]][-1] == "a person with 50 such commuters"
    assert draft_card(plan, facts.Facts.of_card({**card, **old})) == old
