"""Pages in German, French, Italian and Spanish have no English sentence of ours, whatever was released."""

from __future__ import annotations

import html
import json
import re
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import treetop as tt
from tests.data.test_export_map import Elements
from treetop import export
from treetop.card import in_words

EXAMPLES = Path(__file__).parents[2] / "examples"
KINDS = ("records", "limited", "invariant", "public", "sizes", "edges", "people")
OTHERS = ("de", "fr", "it", "es")
FEW = 3
"""Words from which on a text is a sentence; shorter ones may be the same in two languages."""


def small(**options: Any) -> tt.Release:
    place = tt.Hierarchy.from_table(pa.table({"r": ["N", "N", "S"], "t": ["N1", "N2", "S1"]}), levels=["r", "t"])
    unit = tt.Unit("trip", **{"neighbours": "replace", "contributions": 1, **options.pop("unit", {})})
    spine = tt.Spine(["place.r", "place.t"], {"place": place})
    plan = tt.Plan(spine, unit, tt.Loss(epsilon=1, delta=1e-8), title="XX", **options)
    table = pa.table({"place": ["N1", "N2", "S1"] * 90, "who": [str(at // 9) for at in range(270)]})
    return tt.make_release(plan, table)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One release of each kind."""
    folder = tmp_path_factory.mktemp("kinds")
    small().save(folder / "records")
    small(unit={"contributions": 3, "id": "who", "neighbours": "add-remove"}).save(folder / "limited")
    small(facts={"place.r": tt.Fact(invariant=True)}).save(folder / "invariant")
    for name, example, plan in (
        ("public", "pupils", "plan.toml"),
        ("sizes", "households", "plan.toml"),
        ("edges", "graph", "degrees.toml"),
        ("people", "graph", "theta.toml"),
    ):
        tt.publish(EXAMPLES / example / plan, None, folder / name)
    return {name: folder / name for name in KINDS}


def words(code: str) -> dict[str, str]:
    text = files("treetop.exporting").joinpath(f"words/{code}.toml").read_text(encoding="utf-8")
    parts = tomllib.loads(text).items()
    return {
        f"{part}.{key}": re.sub(r"\s+", " ", said)
        for part, own in parts
        for key, said in own.items()
        if isinstance(said, str)
    }


def spoken(text: str) -> int:
    return len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{\w+\}", "", text)))


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for own in value.values():
            yield from texts(own)
    elif isinstance(value, list):
        for own in value:
            yield from texts(own)


def read(page: Path) -> tuple[str, str]:
    """What people read of a page, and what its script may write."""
    whole = page.read_text(encoding="utf-8")
    data = [json.loads(text) for text in Elements(whole).text("script")[:1] if text.startswith("{")]
    said = re.sub(r"<(script|style).*?</\1>", " ", whole, flags=re.DOTALL)
    labels = re.findall(r'(?:aria-label|title|placeholder)="([^"]*)"', said)
    plain = re.sub(r"\s+", " ", " ".join([re.sub(r"<[^>]+>", "", said), *labels]))
    return plain, "\n".join(text for own in data for text in texts(own.get("words", {})))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("language", OTHERS)
def test_no_sentence_stays_english(kind: str, language: str, releases: dict[str, Path], tmp_path: Path) -> None:
    release = tt.Release.load(releases[kind])
    name = "place" if "place" in release.spine.attributes else next(iter(release.spine.attributes))
    tree = dict(zip(release.spine.attributes, release.spine.trees, strict=True))[name]
    places = tmp_path / "places.csv"
    rows = [f'"{code}",{40 + at % 9},{10 + at // 9}' for at, code in enumerate(tree.codes[-1].to_pylist())]
    places.write_text("\n".join([f"{tree.levels[-1]},latitude,longitude", *rows]) + "\n")
    export(releases[kind], "site", tmp_path / "site", language=language, coordinates=places)
    english, own = words("en"), words(language)
    card = {key: value for key, value in release.card.items() if key not in ("title", "description", "plan", "data")}
    sentences = {text for text in texts(in_words(card)) if spoken(text) > FEW and " " in text and "×" not in text}
    for page in ("index.html", "guarantee.html", "map.html"):
        shown, scripted = read(tmp_path / "site" / page)
        assert 'lang="en"' not in (tmp_path / "site" / page).read_text(encoding="utf-8").replace('hreflang="en"', "")
        for key, said in english.items():
            if said == own[key] or spoken(said) < FEW:
                continue
            pattern = re.sub(r"\\\{\w+\\\}", ".{1,80}?", re.escape(said))
            assert not re.search(pattern, shown), f"{page}: {key}"
            assert said not in scripted, f"{page}: {key}"
        for sentence in sentences:
            assert sentence not in shown and sentence not in scripted, page


def filed(folder: Path) -> str:
    """What the files beside the pages say to people: notes, labels and descriptions."""
    with zipfile.ZipFile(folder / "counts.xlsx") as book:
        sheets = " ".join(
            book.read(name).decode() for name in book.namelist() if "sheet" in name or name == "xl/workbook.xml"
        )
    said = [re.sub(r"<[^>]+>", " ", sheets), " ".join(re.findall(r'name="([^"]*)"', sheets))]
    for name in ("counts.json", "counts.csv-metadata.json", "sdmx-structure.json", "dcat.jsonld"):
        read = json.loads((folder / name).read_text(encoding="utf-8"))
        if name == "counts.json":
            read.pop("value")
        said += texts(read)
    return html.unescape(re.sub(r"\s+", " ", " | ".join(said)))


@pytest.mark.parametrize("kind", ["limited", "invariant", "sizes", "people"])
@pytest.mark.parametrize("language", OTHERS)
def test_no_file_beside_the_pages_stays_english(
    kind: str, language: str, releases: dict[str, Path], tmp_path: Path
) -> None:
    export(releases[kind], "site", tmp_path / "site", language=language)
    found, english, own = filed(tmp_path / "site"), words("en"), words(language)
    for key, said in english.items():
        if said != own[key] and spoken(said) >= FEW:
            assert not re.search(re.sub(r"\\\{\w+\\\}", ".{1,80}?", re.escape(said)), found), key
    card = tt.Release.load(releases[kind]).card
    told = {key: value for key, value in card.items() if key not in ("title", "description", "plan", "data")}
    for sentence in texts(in_words(told)):
        assert spoken(sentence) <= FEW or " " not in sentence or "×" in sentence or sentence not in found
    for key in ("files.counted", "files.privacy", "files.read", "files.upper", "files.measure", "files.sheet"):
        assert html.unescape(own[key]) in found, key
    assert "( " not in found, "nothing stands in brackets with a space before it"


def test_every_kind_is_said_in_full_in_every_language(releases: dict[str, Path], tmp_path: Path) -> None:
    expected = {
        "records": "headline.limit_one",
        "limited": "headline.limit",
        "invariant": "guarantee.invariant",
        "public": "guarantee.agreeing",
        "sizes": "headline.event_join_leave",
        "edges": "guarantee.edge",
        "people": "guarantee.node",
    }
    for kind, key in expected.items():
        for language in ("en", *OTHERS):
            out = tmp_path / f"{kind}-{language}"
            export(releases[kind], "site", out, language=language)
            pattern = re.sub(r"\\\{\w+\\\}", ".{1,80}?", re.escape(words(language)[key]))
            for page in ("index.html", "guarantee.html"):
                assert re.search(pattern, read(out / page)[0]), f"{kind} in {language}: {page}"


CARDS = {
    "records": "Protected is one trip, with at most 1 record (declared, not enforced). The total carries no noise.",
    "limited": "Protected is one trip, with at most 3 records (enforced). At most 3 records of each trip are counted;",
    "invariant": "That is not so for true counts that are published as they are: place.r.",
    "public": "The factor is about tables that agree with what is public of place.region, place.town, grade * track.",
    "sizes": "Protected is one person, and whether it is in its group. A size of 8 stands for that or more.",
    "edges": "Where two people list each other there are two edges, and the factor for both is 8.01.",
    "people": "Protected is one person, with all edges, of which at most",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_card_begins_with_one_plain_paragraph(kind: str, releases: dict[str, Path]) -> None:
    text, _ = read(releases[kind] / "card.html")
    first, _, rest = text.partition("What is protected")
    assert CARDS[kind] in first and "Noise was added to these counts on purpose" in first and rest
    assert ("The total carries no noise" in first) == (kind not in ("limited", "people"))
    covered = CARDS[kind].partition("Protected is one ")[2].partition(".")[0].partition(", ")[2]
    assert f"is what the guarantee is about, {covered}" in first
