"""Which cards this version reads: those of its format, of no later version, with software and types of the schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

import treetop as tt
from tests.forging import card_of, findings, places, put, restate
from treetop._util.distribution import VERSION
from treetop.card import RunInfo, in_words
from treetop.card import run_info as facts
from treetop.card.content import draft_card
from treetop.checking.check import check_folder
from treetop.cli import main
from treetop.errors import ReleaseError

from .conftest import parts

PLAN = tt.Plan(
    tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f", "m"])}),
    tt.Unit("trip", neighbours="replace"),
    tt.Loss(rho=1),
    margins="none",
)
HOUSEHOLDS = Path(__file__).parents[2] / "examples" / "households" / "plan.toml"


@pytest.fixture(params=["0.4.0", "9.9"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What version this is."""
    monkeypatch.setattr(facts, "VERSION", request.param)
    facts._software.cache_clear()
    yield str(request.param)
    facts._software.cache_clear()


def released(folder: Path) -> Path:
    tt.make_release(PLAN, pa.table({"sex": ["f", "m"]}), tt.RunOptions(testing_key=bytes(32))).save(folder)
    return folder


def warnings(folder: Path) -> list[str]:
    return [verdict.subject for verdict in check_folder(folder) if verdict.warns and verdict.caution]


@pytest.mark.parametrize("stated", [1, 3, 5])
def test_a_card_of_another_format_is_refused_in_one_sentence_that_names_its_version(
    stated: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = released(tmp_path / "out")
    card = card_of(folder)
    del card["software"]["treetop-dp"]
    (folder / "card.json").write_text(
        json.dumps({**card, "treetop": stated, "software": {"treetop": "0.3.0", **card["software"]}}), encoding="utf-8"
    )
    sentence = f"card.treetop is {stated}: another version wrote this card in another format"
    with pytest.raises(ReleaseError, match=f"{sentence}.* folder with treetop '0.3.0'$"):
        tt.Release.load(folder)
    assert [sentence in one for one in findings(folder)].count(True) == 1
    with pytest.raises(SystemExit) as left:
        main(["check", str(folder)])
    assert left.value.code == 1 and sentence in capsys.readouterr().out


def test_the_card_and_its_page_name_the_distribution_whatever_the_version(version: str, tmp_path: Path) -> None:
    folder = released(tmp_path / "out")
    card = card_of(folder)
    assert (card["treetop"], card["software"]["treetop-dp"], "treetop" in card["software"]) == (4, version, False)
    page = (folder / "card.html").read_text(encoding="utf-8")
    assert f'<meta name="generator" content="treetop-dp {version}">' in page
    assert f"<dd>treetop-dp {version}, python " in page
    assert findings(folder) == []


@pytest.mark.parametrize(
    ("name", "stated", "finding"),
    [
        ("treetop-dp", "9.3.0", "later than this one, 0.4.0: check it with that"),
        ("treetop-dp", "0.5.0", "later than this one"),
        ("treetop-dp", "0.3.9", "wrote no card of format 4"),
        ("treetop-dp", "new", "does not match"),
        ("treetop", "0.4.0", "which no card has"),
        ("numpy", "Certified by NIST", "does not match"),
        ("extra", "Certified by NIST", "which no card has"),
        ("treetop-dp", "0.4.7", None),
    ],
)
@pytest.mark.parametrize("version", ["0.4.0"], indirect=True)
def test_a_card_of_a_version_or_with_software_that_is_not_known_does_not_pass(
    name: str, stated: str, finding: str | None, version: str, tmp_path: Path
) -> None:
    folder = released(tmp_path / "out")
    card = card_of(folder)
    card["software"][name] = stated
    found = findings(restate(folder, card))
    assert found == [] if finding is None else any(finding in one for one in found)


@pytest.mark.parametrize("made_by", [VERSION, "0.4.7"])
def test_a_page_in_other_words_is_refused_and_says_if_another_version_wrote_it(made_by: str, tmp_path: Path) -> None:
    folder = released(tmp_path / "out")
    card = card_of(folder)
    card["software"]["treetop-dp"] = made_by
    page = restate(folder, card) / "card.html"
    assert findings(folder) == []
    page.write_text(page.read_text(encoding="utf-8").replace("What is protected", "Protection"), encoding="utf-8")
    (told,) = findings(folder)
    assert "card.html is not the page of card.json: they differ from byte" in told
    assert ("Version 0.4.7 wrote it" in told) == (made_by != VERSION)


def test_a_relation_in_words_only_is_warned_of(tmp_path: Path) -> None:
    made = tt.make_release(PLAN, pa.table({"sex": ["f", "m"]}), tt.RunOptions(testing_key=bytes(32)))
    card = draft_card(PLAN, replace(RunInfo.of_card(made.card), description='The neighbour relation is "node".'))
    replace(made, card=card).save(tmp_path / "out")
    assert findings(tmp_path / "out") == []
    assert any("stated in words only" in text for text in warnings(tmp_path / "out"))


@pytest.mark.parametrize("name", ["flat", "groups"])
def test_a_card_of_wrong_types_is_refused_in_one_way(name: str, tmp_path: Path) -> None:
    """Every part of the card in turn is something else: it is refused or, where it is not read, does no harm."""
    folder = tmp_path / "out"
    if name == "flat":
        released(folder)
    else:
        tt.publish(HOUSEHOLDS, options=tt.RunOptions(testing_key=bytes(32)), out=folder)
    card = card_of(folder)
    (folder / "card.html").unlink()  # so that only the card itself can be found wrong
    wrong: list[object] = [None, True, -1.5, "x", [1], {}]
    for path, bad in product(places(card, parts=parts), wrong):
        (folder / "card.json").write_text(json.dumps(put(card, path, bad)), encoding="utf-8")
        try:
            release = tt.Release.load(folder)
            release.table()
            if release.confidence is not None:
                release.interval()
            release.estimates()
        except (ReleaseError, tt.TreetopError):
            continue


def test_a_commuter_is_a_person(tmp_path: Path) -> None:
    towns = tt.Hierarchy.flat(["a", "b"], level="town")
    unit = tt.Unit("commuter", contributions=1, neighbours="replace")
    plan = tt.Plan(tt.Spine(["town"], {"town": towns}), unit, tt.Loss(epsilon=1))
    tt.make_release(plan, pa.table({"town": ["a", "b", "b"]})).save(tmp_path / "new")
    card = card_of(tmp_path / "new")
    assert [in_words(row["who"]) for row in card["meaning"]][-1] == "50 commuters together"
    assert findings(tmp_path / "new") == []
