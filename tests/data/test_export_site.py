"""The site: what it shows is the release, in every language; nothing in it runs or loads but its own script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tomllib
from fractions import Fraction
from importlib.util import find_spec
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.browser import CHROMIUM, browser
from tests.data.test_export_map import Elements
from tests.everyday import TRIP
from treetop import cli, export, exporting
from treetop.addons import pages, site
from treetop.addons.site import site_tables as rows
from treetop.card import in_words
from treetop.errors import ReleaseError
from treetop.exporting.levels import counts_at
from treetop.noise.sum_noise import sum_margin
from treetop.release.measurements import surviving

EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = Path(exporting.__file__).parent / "words"
ADDONS = Path(pages.__file__).parents[1]
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
FORMULA, ARABIC = "=1+1", "القاهرة (1)"
TOWNS = ["01", "02", FORMULA, ARABIC, EVIL]
REGIONS = ["N", "N", "S", "S", "S"]
PLACE = tt.Hierarchy.from_table(pa.table({"region": REGIONS, "town": TOWNS}), levels=["region", "town"])
LOSS = tt.Loss(epsilon=1, delta=1e-8)
LANGUAGES = ("en", "it", "de", "fr", "es")


def flows(title: str = "Trips", counts: int = 1000, **options: Any) -> tt.Release:
    spine = tt.Spine.destination_first(origin=PLACE, destination=PLACE)
    pairs = [(a, b) for a, b in product(TOWNS, TOWNS) if (a, b) != ("01", "02")]
    key = {"testing_key": options.pop("testing_key")} if "testing_key" in options else {}
    told = {name: options.pop(name) for name in ("period", "description") if name in options}
    table = pa.table(
        {
            "origin": [a for a, _ in pairs],
            "destination": [b for _, b in pairs],
            "n": [counts * (1 + at % 7) for at in range(len(pairs))],
        }
    )
    return tt.make_release(
        tt.Plan(spine, TRIP, LOSS, title=title, **options), table, tt.RunOptions(count="n", **told, **key)
    )


@pytest.fixture(scope="module")
def release() -> tt.Release:
    return flows()


@pytest.fixture(scope="module")
def sparse() -> tt.Release:
    """A release with many small counts, some of which are noise, and with zeros."""
    towns = [f"t{number:02}" for number in range(40)]
    place = tt.Hierarchy.from_table(
        pa.table({"region": [f"r{number // 8}" for number in range(40)], "town": towns}), levels=["region", "town"]
    )
    rng = np.random.default_rng(3)
    pairs = rng.integers(0, 40, (2, 300))
    table = pa.table(
        {
            "origin": [towns[at] for at in pairs[0]],
            "destination": [towns[at] for at in pairs[1]],
            "n": rng.integers(1, 300, 300),
        }
    )
    spine = tt.Spine.origin_first(origin=place, destination=place)
    return tt.make_release(
        tt.Plan(spine, TRIP, LOSS, title="Few"), table, tt.RunOptions(count="n", testing_key=bytes(32))
    )


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    path = tmp_path / "towns.parquet"
    at = range(len(TOWNS))
    pq.write_table(
        pa.table({"town": TOWNS, "latitude": [45.0 + i for i in at], "longitude": [9.0 + i % 2 for i in at]}), path
    )
    return path


def read(folder: Path, page: str = "index.html") -> str:
    return (folder / page).read_text(encoding="utf-8")


def content(folder: Path) -> Any:
    return json.loads(Elements(read(folder)).text("script")[0])


def shown(folder: Path) -> list[dict[str, Any]]:
    """The rows of the page, as its script sees them."""
    data = content(folder)
    listed = len(data["count"])
    found = []
    for row in range(len(data["columns"][0]["at"])):
        own = {column["head"]: column["code"][column["at"][row]] for column in data["columns"]}
        is_zero = row >= listed
        own["count"] = 0 if is_zero else data["count"][row]
        if data["lower"] is not None:
            own["lower"] = 0 if is_zero else data["lower"][row]
            own["upper"] = data["absent"][row - listed] if is_zero else data["upper"][row]
        own["noise"] = None if is_zero or data["noise"] is None else bool(data["noise"][row])
        found.append(own)
    return found


def plain(text: str) -> str:
    """What people read: no scripts, no styles, no markup."""
    text = re.sub(r"<(script|style).*?</\1>", " ", text, flags=re.DOTALL)
    return re.sub(r"[ \n]+", " ", re.sub(r"<[^>]+>", "", text)).replace("&#39;", "'").replace("&amp;", "&")


def test_the_rows_of_the_page_are_the_release_the_largest_first(release: tt.Release, tmp_path: Path) -> None:
    done = export(release, "site", tmp_path / "site")
    listed = [row for row in shown(tmp_path / "site") if row["count"]]
    expected = {(row["origin"], row["destination"]): row for row in release.table().to_pylist()}
    assert [row["count"] for row in listed] == sorted((row["count"] for row in listed), reverse=True)
    assert len(listed) == len(expected) == done.rows
    for row in listed:
        own = expected[row["Origin (town)"], row["Destination (town)"]]
        assert (row["count"], row["lower"], row["upper"]) == (own["count"], own["lower"], own["upper"])
    assert done.total == release.total


def test_the_downloads_are_those_of_the_other_formats(release: tt.Release, tmp_path: Path) -> None:
    done = export(release, "site", tmp_path / "site", level="region")
    tables = ["totals.csv", "counts.csv", "counts.csv-metadata.json", "counts.parquet", "sdmx.csv"]
    tables += ["sdmx-structure.json", "counts.xlsx", "counts.json", "dcat.jsonld"]
    names = ["index.html", "guarantee.html", "card.html", *tables]
    assert [file.name for file in done.files] == names
    assert sorted(file.name for file in (tmp_path / "site").iterdir()) == sorted(names)
    export(release, "csv", tmp_path / "counts.csv", level="region")
    export(release, "excel", tmp_path / "counts.xlsx", level="region")
    for form, name in (
        ("csvw", "counts.csv-metadata.json"),
        ("jsonstat", "counts.json"),
        ("sdmx", "sdmx-structure.json"),
    ):
        export(release, form, tmp_path / form, level="region")
        assert (tmp_path / "site" / name).read_bytes() == (tmp_path / form / name).read_bytes()
    record = json.loads(read(tmp_path / "site", "dcat.jsonld"))
    assert [one["dcat:downloadURL"]["@id"] for one in record["dcat:distribution"]] == tables[:-1]
    for name in ("counts.csv", "counts.xlsx"):
        assert (tmp_path / "site" / name).read_bytes() == (tmp_path / name).read_bytes()
    table = pq.read_table(tmp_path / "site" / "counts.parquet")
    assert table.column_names == ["origin", "destination", "count", "lower", "upper", "outside"]
    links = {attributes.get("href") for tag, attributes in Elements(read(tmp_path / "site")).tags if tag == "a"}
    assert links == {"#totals", "#table", "#downloads", "#sure", *names}


def test_the_card_is_the_one_of_the_folder_and_is_made_where_there_is_none(release: tt.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "release")
    export(tmp_path / "release", "site", tmp_path / "saved")
    export(release, "site", tmp_path / "unsaved")
    kept = read(tmp_path / "release", "card.html")
    assert read(tmp_path / "saved", "card.html") == kept == read(tmp_path / "unsaved", "card.html")


def test_places_give_a_map_with_a_way_back(release: tt.Release, towns: Path, tmp_path: Path) -> None:
    done = export(release, "site", tmp_path / "site", coordinates=towns, language="de", credit="Orte: <niemand>")
    assert [file.name for file in done.files][1] == "map.html"
    there, back = (Elements(read(tmp_path / "site", page)).tags for page in ("index.html", "map.html"))
    assert ("a", {"class": "button", "href": "map.html"}) in there
    assert ("a", {"href": "index.html"}) in back
    assert "Größte Ströme" in read(tmp_path / "site", "map.html")
    assert "Orte: &lt;niemand&gt;" in read(tmp_path / "site", "map.html")
    alone = export(release, "map", tmp_path / "map.html", coordinates=towns)
    assert not [attributes for tag, attributes in Elements(alone.files[0].read_text("utf-8")).tags if tag == "a"]
    without = export(release, "site", tmp_path / "without")
    assert "map.html" not in read(tmp_path / "without") and "no map" in without.notes[0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_comes_from_the_release_is_text_and_only_our_script_runs(
    language: str, towns: Path, tmp_path: Path
) -> None:
    hostile = flows(title=EVIL, description=f"{EVIL} {{name}}", period=EVIL)
    export(hostile, "site", tmp_path / "site", coordinates=towns, language=language, credit=EVIL)
    for page in ("index.html", "map.html"):
        text = read(tmp_path / "site", page)
        elements = Elements(text)
        assert [tag for tag, _ in elements.tags].count("script") == 2
        assert not [tag for tag, _ in elements.tags if tag in ("img", "iframe", "object", "embed", "base", "link")]
        assert not [name for _, attributes in elements.tags for name in attributes if name.startswith("on")]
        assert not [tag for tag, attributes in elements.tags if "style" in attributes], "a policy would refuse it"
        (policy,) = (own["content"] for tag, own in elements.tags if own.get("http-equiv"))
        hashes = {
            kind: "sha256-" + base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
            for kind, own in (("style", elements.text("style")[0]), ("script", elements.text("script")[1]))
        }
        assert policy is not None and policy.startswith("default-src 'none'; ")
        assert f"style-src '{hashes['style']}'; script-src '{hashes['script']}'" in policy
        assert EVIL in elements.text("h1")[0] and EVIL in elements.text("title")[0]


def test_codes_are_what_they_were_and_only_the_csv_guards_formulas(release: tt.Release, tmp_path: Path) -> None:
    done = export(release, "site", tmp_path / "site")
    assert done.guarded == 1
    assert {code for column in content(tmp_path / "site")["columns"] for code in column["code"]} == set(TOWNS)
    assert set(pq.read_table(tmp_path / "site" / "counts.parquet")["origin"].to_pylist()) == set(TOWNS)
    assert '"\'=1+1"' in read(tmp_path / "site", "counts.csv")
    assert "an apostrophe before it" in read(tmp_path / "site")
    export(release, "site", tmp_path / "as-is", as_is=True)
    assert '"=1+1"' in read(tmp_path / "as-is", "counts.csv")
    assert "an apostrophe before it" not in read(tmp_path / "as-is")


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_page_loads_anything_from_elsewhere(language: str, release: tt.Release, towns: Path, tmp_path: Path) -> None:
    export(release, "site", tmp_path / "site", coordinates=towns, language=language)
    for page in ("index.html", "map.html", "guarantee.html", "card.html"):
        text = read(tmp_path / "site", page)
        for tag, attributes in Elements(text).tags:
            for name in ("src", "href", "action", "data", "poster", "srcset"):
                target = attributes.get(name) or ""
                assert not re.match(r"\w+:|//", target), f"{page}: <{tag} {name}={target}>"
        assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket|import\(", text)
        known = {"http://www.w3.org/2000/svg"}  # the name of a vocabulary, which nobody loads
        assert set(re.findall(r"https?://[^\s\"'<)]+", text)) <= known


def words_of(code: str) -> dict[str, Any]:
    text = (WORDS / f"{code}.toml").read_text(encoding="utf-8")
    return {f"{part}.{key}": said for part, own in tomllib.loads(text).items() for key, said in own.items()}


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_has_the_same_words_with_the_same_placeholders(code: str) -> None:
    english, own = words_of("en"), words_of(code)
    assert list(own) == list(english)
    for key, said in own.items():
        assert type(said) is type(english[key]) and said
        told = (re.findall(r"\{(\w*)\}", str(one)) for one in (said, english[key]))
        assert len(set(map(frozenset, told))) == 1, key
        assert not re.search(r"[<>]", str(said)), "words are no markup"
    assert len(own["language.months"]) == 12
    assert own["page.not_private"].endswith("NOT PRIVATE")


def test_no_word_is_without_use() -> None:
    sources = [
        path
        for folder in (ADDONS, WORDS.parent)
        for path in folder.rglob("*")
        if path.suffix in (".py", ".js", ".html")
    ]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    for key in words_of("en"):
        part, _, name = key.partition(".")
        if part == "map_script":  # `say` puts some together
            name = re.sub("^(named|margin)_(flows|counts)$", r"\1_", name)
        elif part in ("sure", "headline", "guarantee"):
            name = re.sub("_(title|huge)$", "", name)
        spoken = [f'"{part}.{name}"', f"'{part}.{name}'", f'"{name}"', f'["{part}"]["{name}"]', f"words.{name}"]
        assert any(one in text for one in spoken), key


@pytest.mark.parametrize(
    ("language", "group", "sure", "day"),
    [
        ("en", ",", "95\u00a0%", r"\d+ [A-Z]\w+ \d{4}"),
        ("it", ".", "95%", r"\d+ [a-z]+ \d{4}"),
        ("de", ".", "95\u00a0%", r"\d+\. [A-Z]\w+ \d{4}"),
        ("fr", "\u202f", "95\u00a0%", r"\d+ [a-zéû]+ \d{4}"),
        ("es", ".", "95\u00a0%", r"\d+ de [a-z]+ de \d{4}"),
    ],
)
def test_numbers_and_days_are_written_as_the_language_does(
    language: str, group: str, sure: str, day: str, release: tt.Release, tmp_path: Path
) -> None:
    export(release, "site", tmp_path / "site", language=language)
    text = read(tmp_path / "site")
    assert f'<html lang="{language}">' in text
    assert release.total > 1000
    assert f"<b>{release.total:,}</b>".replace(",", group) in text
    assert sure in plain(text)
    assert re.search(rf"<bdi>{day}</bdi>", text)
    assert content(tmp_path / "site")["group"] == group


def test_a_language_that_there_is_not_or_that_a_format_has_no_use_for_is_refused(
    release: tt.Release, tmp_path: Path
) -> None:
    with pytest.raises(ReleaseError, match="no language 'pt'.*en, de, es, fr, it"):
        export(release, "site", tmp_path / "site", language="pt")
    with pytest.raises(ReleaseError, match="a language is for a site or a map"):
        export(release, "od", tmp_path / "od.csv", language="it")
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_release_that_is_not_private_says_so_loudly_and_claims_nothing(
    language: str, towns: Path, tmp_path: Path
) -> None:
    fixed = flows(testing_key=bytes(32))
    done = export(fixed, "site", tmp_path / "site", coordinates=towns, language=language)
    assert done.warning
    for page in ("index.html", "map.html", "guarantee.html"):
        text = read(tmp_path / "site", page)
        assert "NOT PRIVATE" in Elements(text).text("title")[0]
        assert re.search(r'role="alert"><strong>[^<]*NOT PRIVATE', text)
    said, own = plain(read(tmp_path / "site") + read(tmp_path / "site", "guarantee.html")), words_of(language)
    for claim in ("headline.guarantee", "headline.noise", "sure.why", "sure.protected"):
        assert own[claim].partition("{")[0][:25] not in said, claim
    assert in_words(fixed.card["guarantee"]) not in said and own["headline.no_guarantee"] in said


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_on_the_guarantee_has_the_figures_of_the_card_in_the_readers_language(
    language: str, release: tt.Release, tmp_path: Path
) -> None:
    hostile = flows(title=EVIL)
    export(hostile, "site", tmp_path / "site", language=language)
    text = read(tmp_path / "site", "guarantee.html")
    elements, own = Elements(text), words_of(language)
    assert [tag for tag, _ in elements.tags if tag in ("script", "img")] == []
    (policy,) = (one["content"] for _, one in elements.tags if one.get("http-equiv"))
    digest = base64.b64encode(hashlib.sha256(elements.text("style")[0].encode()).digest()).decode()
    assert policy is not None and policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
    said, card = plain(text), hostile.card
    for table in ("levels", "margins"):
        for level in card[table]:
            shown = f"± {level['margin']}" if level["measured"] else own["guarantee.exact"]
            assert re.search(rf"{level['nodes']}\s*{re.escape(shown)}", said), level["name"]
    assert own["guarantee.replace"] in said and own["guarantee.declared"] in said
    assert (in_words(card["guarantee"]) in said) == (in_words(card["protects"]) in said) == (language == "en"), (
        "the exact words, which are English, stand beside ours on an English page"
    )
    assert read(tmp_path / "site", "card.html").startswith("<!DOCTYPE html>") and 'hreflang="en"' in text


def test_what_plain_sentences_cannot_say_is_said_in_the_words_of_the_card(tmp_path: Path) -> None:
    from treetop.addons.site.guarantee import GuaranteePage
    from treetop.exporting.language import language

    card = {**flows().card}
    card["unit"] = {**card["unit"], "conditions": ["Degrees above 30 are counted with 30."]}
    for code in ("en", "it"):
        said = plain(GuaranteePage(card, language(code)).render("index.html", "card.html"))
        assert (in_words(card["unit"]["neighbouring_tables"]) in said) == (code == "en")
        assert words_of(code)["guarantee.replace"] not in said and words_of(code)["headline.in_short"] in said


def test_the_guarantee_is_said_in_plain_words_and_in_those_of_the_card(release: tt.Release, tmp_path: Path) -> None:
    export(release, "site", tmp_path / "site")
    said = plain(read(tmp_path / "site"))
    assert "about one trip before, these numbers change their odds by a factor of at most 2.72 (epsilon 1)" in said
    assert in_words(release.card["guarantee"]) in said and in_words(release.card["protects"]) in said
    assert "a tolerance (delta) of 10⁻⁸" in said
    weak = tt.Plan(release.spine, TRIP, tt.Loss(epsilon=40, delta=1e-8), title="Weak")
    table = pa.table({"origin": ["01"], "destination": ["02"], "n": [50]})
    export(tt.make_release(weak, table, tt.RunOptions(count="n")), "site", tmp_path / "weak")
    assert "The guarantee is weak" in plain(read(tmp_path / "weak"))


def test_the_total_is_exact_or_has_its_range(tmp_path: Path) -> None:
    person = tt.Unit("person", neighbours="add-remove")
    spine = tt.Spine(["place.region", "place.town"], {"place": PLACE})
    table = pa.table({"place": TOWNS, "n": [500] * len(TOWNS)})
    made = tt.make_release(tt.Plan(spine, person, LOSS, title="People"), table, tt.RunOptions(count="n"))
    export(made, "site", tmp_path / "site")
    bounds, said = made.interval(), plain(read(tmp_path / "site"))
    assert f"between {bounds.lower:,} and {bounds.upper:,}, 95\u00a0% sure" in said
    assert "one place (town)" in said and "exact:" not in said
    off = tt.make_release(
        tt.Plan(spine, person, LOSS, title="People", confidence=None), table, tt.RunOptions(count="n")
    )
    export(off, "site", tmp_path / "off")
    assert "no range is stated" in plain(read(tmp_path / "off")) and content(tmp_path / "off")["lower"] is None
    exact = tt.make_release(tt.Plan(spine, TRIP, LOSS, title="Trips"), table, tt.RunOptions(count="n"))
    export(exact, "site", tmp_path / "exact")
    assert "exact: no noise was added" in plain(read(tmp_path / "exact"))


def test_rows_that_may_be_noise_are_those_that_do_not_survive_the_test(sparse: tt.Release, tmp_path: Path) -> None:
    export(sparse, "site", tmp_path / "site")
    table, real = sparse.table(), surviving(sparse.measured, len(sparse.spine.levels))
    expected = {
        (row["origin"], row["destination"]): not own for row, own in zip(table.to_pylist(), real.tolist(), strict=True)
    }
    listed = [row for row in shown(tmp_path / "site") if row["count"]]
    assert {(row["Origin (town)"], row["Destination (town)"]): row["noise"] for row in listed} == expected
    assert {True, False} == set(expected.values())
    said = f"Of {len(listed):,} numbers above zero, {int(real.sum()):,} stand out from the noise"
    assert said in plain(read(tmp_path / "site"))
    export(sparse, "site", tmp_path / "sums", level="origin.region")
    assert content(tmp_path / "sums")["noise"] is None
    assert "is not tested here" in plain(read(tmp_path / "sums"))


def test_zeros_are_listed_with_the_most_that_each_may_hide(sparse: tt.Release, tmp_path: Path) -> None:
    export(sparse, "site", tmp_path / "site")
    every = shown(tmp_path / "site")
    zeros = [row for row in every if row["count"] == 0]
    assert len(every) == 40 * 40 and len(zeros) == 1600 - len(sparse.count) > 0
    rng = np.random.default_rng(1)
    for row in rng.choice(np.array(zeros), 60, replace=False).tolist():
        codes = {"origin": row["Origin (town)"], "destination": row["Destination (town)"]}
        assert sparse.query(**codes) == 0 and sparse.interval(**codes).upper == row["upper"]
    said = re.search(r"hides at most ([\d,]+), with", plain(read(tmp_path / "site")))
    assert said is not None and int(said[1].replace(",", "")) >= max(row["upper"] for row in zeros)


def test_only_the_largest_rows_are_on_the_page_and_all_are_in_the_downloads(
    sparse: tt.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST", 50)
    export(sparse, "site", tmp_path / "site")
    counts = sorted(sparse.count.tolist(), reverse=True)
    assert [row["count"] for row in shown(tmp_path / "site")] == counts[:50]
    assert f"the 50 largest of {len(counts):,} rows" in plain(read(tmp_path / "site"))
    assert pq.read_table(tmp_path / "site" / "counts.parquet").num_rows == len(counts)
    assert content(tmp_path / "site")["absent"] is None
    assert "largest rows only" in content(tmp_path / "site")["none"], "what is not here may be in the rest"
    monkeypatch.setattr(rows, "MOST", 1000)
    export(sparse, "site", tmp_path / "listed")
    assert "was released as zero" in content(tmp_path / "listed")["none"]
    assert "hides at most" in plain(read(tmp_path / "site"))


def test_what_is_not_named_is_not_called_a_zero(tmp_path: Path) -> None:
    made = flows(counts=8, resolve={"sigmas": 3})
    export(made, "site", tmp_path / "site")
    said = plain(read(tmp_path / "site"))
    assert made.unresolved_total > 0 and f"{made.unresolved_total:,} that could not be told apart" in said
    export(made, "site", tmp_path / "regions", level="region")
    listed = sum(row["count"] for row in shown(tmp_path / "regions"))
    assert made.total - made.unresolved_total < listed, "more is resolved at regions"
    assert f"Of the total, {made.total - listed:,} could not be told apart" in plain(read(tmp_path / "regions"))
    assert "What is not in the downloads is not zero" in said and "was released as zero" not in said
    assert content(tmp_path / "site")["named"] is True


def test_what_facts_rule_out_is_no_zero(tmp_path: Path) -> None:
    sexes, ages = tt.Hierarchy.flat(["f", "m"], level="sex"), tt.Hierarchy.flat(["0", "1", "2"], level="age")
    spine = tt.Spine(["sex", "age"], {"sex": sexes, "age": ages})
    never = pa.table({"sex": ["f"], "age": ["2"]})
    table = pa.table({"sex": ["f", "m"], "age": ["0", "1"], "n": [900, 900]})
    plan = tt.Plan(spine, TRIP, LOSS, title="Few", facts={"sex * age": tt.Fact(impossible=never)})
    made = tt.make_release(plan, table, tt.RunOptions(count="n"))
    export(made, "site", tmp_path / "site")
    found = {(row["sex"], row["age"]) for row in shown(tmp_path / "site")}
    assert found == set(product(["f", "m"], ["0", "1", "2"])) - {("f", "2")}


def test_a_part_of_a_release_says_what_it_is_a_part_of(sparse: tt.Release, tmp_path: Path) -> None:
    part = sparse.where(origin="r1")
    export(part, "site", tmp_path / "site")
    found = shown(tmp_path / "site")
    assert {row["Origin (town)"] for row in found} == {f"t{number:02}" for number in range(8, 16)}
    assert len(found) == 8 * 40
    assert "Only what matches: origin=r1" in plain(read(tmp_path / "site"))
    for row in found[-3:]:
        codes = {"origin": row["Origin (town)"], "destination": row["Destination (town)"]}
        assert sparse.interval(**codes).upper == row["upper"]


@pytest.mark.parametrize(("example", "plan"), [("households", "plan.toml"), ("graph", "degrees.toml")])
def test_group_sizes_and_degrees_have_a_site_too(
    example: str, plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES / example)
    cli.main(["release", plan, "--out", str(tmp_path / "release"), "--quiet"])
    cli.main(["export", str(tmp_path / "release"), "--to", "site", "--out", str(tmp_path / "site"), "--language", "it"])
    assert "open it in a browser" in capsys.readouterr().out
    made = tt.Release.load(tmp_path / "release")
    found = shown(tmp_path / "site")
    assert sum(row["count"] for row in found) == made.total
    assert content(tmp_path / "site")["noise"] is None
    for row in [one for one in found if one["count"] == 0][:5]:
        place = f"place.{made.spine.trees[1].levels[-1]}"
        codes = dict(zip((next(iter(made.spine.attributes)), place), list(row.values())[:2], strict=True))
        assert made.interval(**codes).upper == row["upper"]


def test_an_empty_release_has_a_site(tmp_path: Path) -> None:
    spine = tt.Spine(["place.region", "place.town"], {"place": PLACE})
    made = tt.make_release(tt.Plan(spine, TRIP, LOSS, title="Nobody"), pa.table({"place": pa.array([], pa.string())}))
    done = export(made, "site", tmp_path / "site")
    assert (done.rows, done.total) == (0, 0)


def test_a_release_without_a_whole_card_is_refused(tmp_path: Path) -> None:
    spine = tt.Spine(["place.region", "place.town"], {"place": PLACE})
    handmade = tt.Release(spine, np.zeros((1, 1), np.int32), np.ones(1, np.int64), {"private": True})
    with pytest.raises(ReleaseError, match="no whole card: it lacks loss, unit, levels, software"):
        export(handmade, "site", tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_site_is_a_folder_that_only_force_replaces(release: tt.Release, tmp_path: Path, towns: Path) -> None:
    with pytest.raises(ReleaseError, match="name a folder"):
        export(release, "site", tmp_path / "index.html")
    export(release, "site", tmp_path / "site", coordinates=towns)
    with pytest.raises(ReleaseError, match="exists already"):
        export(release, "site", tmp_path / "site")
    export(release, "site", tmp_path / "site", force=True)
    assert not (tmp_path / "site" / "map.html").exists(), "what is no longer part of it goes"
    (tmp_path / "site" / "notes.txt").write_text("mine")
    with pytest.raises(ReleaseError, match="holds more than an export"):
        export(release, "site", tmp_path / "site", force=True)
    release.save(tmp_path / "release")
    with pytest.raises(ReleaseError, match="inside the release"):
        export(tmp_path / "release", "site", tmp_path / "release" / "site")


def test_without_the_extra_there_is_no_workbook_and_the_reason_is_told(
    release: tt.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "find_spec", lambda name: None if name == "xlsxwriter" else find_spec(name))
    done = export(release, "site", tmp_path / "site")
    assert not (tmp_path / "site" / "counts.xlsx").exists()
    assert any("treetop-dp[excel]" in note for note in done.notes)
    assert "counts.xlsx" not in read(tmp_path / "site")


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_has_contrast_by_day_and_in_the_dark() -> None:
    style = (ADDONS / "site" / "page.css").read_text(encoding="utf-8")
    themes = [dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", style, re.S)]
    assert len(themes) >= 3
    day, dark, paper = themes[0], themes[0] | themes[1], themes[0] | themes[2]
    text = [("ink", "paper"), ("soft", "paper"), ("soft", "tint"), ("leaf", "paper"), ("leaf", "tint"), ("ink", "tint"),
            ("on-leaf", "leaf"), ("on-alarm", "alarm")]  # fmt: skip
    lines = [("edge", "paper"), ("tick", "band"), ("focus", "paper")]
    for theme in (day, dark, paper):
        for pairs, least in ((text, 4.5), (lines, 3.0)):
            for one, other in pairs:
                high, low = sorted((luminance(theme[one]), luminance(theme[other])), reverse=True)
                assert (high + 0.05) / (low + 0.05) >= least, (one, other)


def test_a_page_is_told_in_parts_that_a_screen_reader_finds(release: tt.Release, towns: Path, tmp_path: Path) -> None:
    export(release, "site", tmp_path / "site", coordinates=towns)
    elements = Elements(read(tmp_path / "site")).tags
    ids = [own["id"] for _, own in elements if own.get("id")]
    assert len(ids) == len(set(ids))
    tags = [tag for tag, _ in elements]
    assert [tags.count(tag) for tag in ("h1", "main", "header", "footer", "nav", "caption")] == [1] * 6
    heads = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert heads[0] == 1 and all(after - before <= 1 for before, after in pairwise(heads))
    labelled = {own["for"] for tag, own in elements if tag == "label" and own.get("for")}
    for tag, own in elements:
        if tag in ("select", "input") and own.get("type") != "checkbox":
            assert own["id"] in labelled
        for name in ("aria-labelledby", "aria-describedby"):
            assert (own.get(name) or ids[0]) in ids
        if own.get("role") == "region":
            assert own.get("aria-label") and own.get("tabindex") == "0"


def tabled(table: Any) -> dict[tuple[str, ...], tuple[int, int, int]]:
    """The rows above zero of a table of the page, by their codes: count, lower and upper."""
    codes = [[column["code"][at] for at in column["at"]] for column in table["columns"]]
    numbers = zip(table["count"], table["lower"], table["upper"], strict=True)
    return dict(zip(zip(*codes, strict=True), numbers))  # noqa: B905  (zeros follow, which have no numbers)


def test_the_totals_are_those_of_the_release_with_their_own_intervals(sparse: tt.Release, tmp_path: Path) -> None:
    export(sparse, "site", tmp_path / "site")
    page = content(tmp_path / "site")
    tables = {tuple(f"{one['of']}.{one['level']}" for one in table["columns"]): table for table in page["tables"]}
    listed = pa.csv.read_csv(tmp_path / "site" / "totals.csv")
    one = [("origin.region",), ("origin.town",), ("destination.region",), ("destination.town",)]
    two = [(a, b) for a in ("origin.region", "origin.town") for b in ("destination.region", "destination.town")]
    assert set(tables) == {*one, *two[:-1]}, "each attribute at each level, and all pairs but the one that is the table"
    for levels, table in tables.items():
        expected = {
            tuple(row[level] for level in levels): (row["count"], row["lower"], row["upper"])
            for row in sparse.table(levels).to_pylist()
        }
        assert tabled(table) == expected and table["number"] == len(expected)
        assert not table["exact"] and sum(table["count"]) == sparse.total
        named = pc.equal(listed["table"], " * ".join(levels))
        assert listed.filter(named)["count"].to_pylist() == [row["count"] for row in sparse.table(levels).to_pylist()]
        for at, upper in enumerate(table["absent"][:20], start=len(expected)):
            codes = {level: one["code"][one["at"][at]] for level, one in zip(levels, table["columns"], strict=True)}
            assert sparse.query(**codes) == 0 and sparse.interval(**codes).upper == upper


def test_nothing_is_called_exact_that_was_not_published_exactly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = {}
    for example in ("households", "pupils"):
        monkeypatch.chdir(EXAMPLES / example)
        cli.main(["release", "plan.toml", "--out", str(tmp_path / example), "--quiet"])
        export(tmp_path / example, "site", tmp_path / f"{example}-site")
        found = [table for table in content(tmp_path / f"{example}-site")["tables"] if table["exact"]]
        exact[example] = {tuple(f"{one['of']}.{one['level']}" for one in table["columns"]) for table in found}
        assert all(table["lower"] == table["count"] == table["upper"] for table in found)
    assert exact["households"] == {("place.region",), ("place.district",), ("place.municipality",)}
    assert exact["pupils"] == {("place.region",)}, "that the ministry publishes; of towns there are bounds alone"


def test_the_headline_says_how_many_records_of_one_are_protected(tmp_path: Path) -> None:
    spine = tt.Spine(["place.region", "place.town"], {"place": PLACE})
    table = pa.table({"place": TOWNS * 9, "who": [f"p{at}" for at in range(9 * len(TOWNS))]})
    for most, said in ((1, "It covers one record of each person."), (3, "It covers up to 3 records of one person")):
        plan = tt.Plan(spine, tt.Unit("person", most, "add-remove", id="who"), LOSS, title="People")
        export(tt.make_release(plan, table), "site", tmp_path / str(most))
        text = plain(re.sub("<bdi>|</bdi>", "", read(tmp_path / str(most))))
        assert said in text and words_of("en")["guarantee.enforced"] in text


def sum_of_ten(sparse: tt.Release) -> tuple[int, int, int]:
    """The sum of the origins t00 to t09 by region of destination: released, of the measurements, and their margin."""
    index = sparse.spine.index_at((2, 1))
    assert index is not None
    law, seen = sparse.measurements.laws[index], sparse.measurements.levels[index - 1]
    assert law is not None and seen is not None
    chosen = seen.nodes[0] < 10
    count = sum(sparse.query(origin=f"t0{at}") for at in range(10))
    return count, int(seen.value[chosen].sum()), sum_margin(law, int(chosen.sum()), Fraction(1, 40))


@pytest.mark.parametrize("margins", ["none", "each"])
def test_ranges_of_chosen_sums_hold_as_often_as_is_said(margins: Any) -> None:
    """Three rows that were chosen beforehand, of measured rows and of rows that are sums, in 300 releases each."""
    towns = [f"t{at}" for at in range(8)]
    place = tt.Hierarchy.from_table(pa.table({"region": list("aaaabbbb"), "town": towns}), levels=["region", "town"])
    sex = tt.Hierarchy.flat(["f", "m"])
    spine = tt.Spine(["place.region", "place.town", "sex"], {"place": place, "sex": sex})
    plan = tt.Plan(spine, TRIP, LOSS, margins=margins)
    number = {(town, one): 40 * at + 7 * (one == "f") for at, town in enumerate(towns) for one in ("f", "m")}
    table = pa.table({"place": [a for a, _ in number], "sex": [b for _, b in number], "n": list(number.values())})
    held = {"sums": 0, "wide": 0}
    widths: dict[str, list[int]] = {"sums": [], "wide": []}
    towns_chosen, cells_chosen = {("t1",), ("t4",), ("t6",)}, {("a", "m"), ("b", "f")}
    truth = {1: sum(number[town, one] for (town,) in towns_chosen for one in ("f", "m")), 2: 0}
    truth[2] = sum(count for (town, one), count in number.items() if ("a" if town < "t4" else "b", one) in cells_chosen)
    for at in range(300):
        run = tt.RunOptions(count="n", testing_key=at.to_bytes(32, "big"))
        release = tt.make_release(plan, table, run).where()
        for depths, wanted in (({"place": 1}, towns_chosen), ({"place": 0, "sex": 0}, cells_chosen)):
            listed = counts_at(release, {"place": 1, "sex": 0} | depths, list(depths), more=True)
            content = rows.rows_of(release, depths, listed).content
            columns = [[column["code"][at] for at in column["at"]] for column in content["columns"]]
            chosen = [row for row, own in enumerate(zip(*columns, strict=True)) if own in wanted]
            assert len(chosen) == len(wanted)
            kind = "sums" if content["sums"] else "wide"
            if sums := content["sums"]:
                middle = sum(sums["value"][row] for row in chosen)
                margin = sums["margin"][sums["number"].index(len(chosen))]
                lower, upper = middle - margin, middle + margin
            else:
                lower, upper = (sum(content["wide"][end][row] for row in chosen) for end in ("lower", "upper"))
            held[kind] += lower <= truth[len(depths)] <= upper
            widths[kind].append(upper - lower)
    for kind, made_up in widths.items():
        assert made_up, f"both kinds occur: {kind}"
        assert held[kind] >= 0.95 * len(made_up) - 4 * (0.05 * 0.95 * len(made_up)) ** 0.5, kind


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here to open pages with")
def test_a_browser_shows_totals_parts_of_them_and_any_pair(sparse: tt.Release, tmp_path: Path) -> None:
    export(sparse, "site", tmp_path / "site")
    ranges = {
        level: sparse.table(level).to_pylist() for level in ("origin.region", "origin.town", "destination.region")
    }
    with browser(tmp_path / "browser") as tab:
        tab.open(tmp_path / "site" / "index.html")
        rows = (
            "[...document.querySelectorAll('#charts .chart')].map((chart) => [...chart.querySelectorAll('tbody tr')])"
        )
        first = max(ranges["origin.region"], key=lambda row: row["count"])
        said = f"{first['origin.region']}{first['count']:,}{first['lower']:,} to {first['upper']:,}"
        assert tab.ask(f"{rows}[0][0].textContent") == said
        tab.ask("document.querySelector('#charts tbody a').focus()")
        tab.ask("document.activeElement.click()")
        region = first["origin.region"]
        shown = {
            name: tab.ask(f"document.getElementById('only-{name}').textContent") for name in ("name", "count", "rank")
        }
        assert shown == {"name": region, "count": f"{first['count']:,}", "rank": "Number 1 of 5, the largest first."}
        assert tab.ask("location.hash") == f"#only=origin/region/{region}"
        inner = sparse.where(origin=region).table("origin.town").to_pylist()
        towns = tab.ask(f"{rows}[0].map((row) => row.textContent)")
        assert len(towns) == len(inner) == 8 and all(one["origin.town"] in "".join(towns) for one in inner)
        part = sparse.where(origin=region).table("destination.region").to_pylist()
        largest = max(part, key=lambda row: row["count"])
        said = f"{largest['destination.region']}{largest['count']:,}{largest['lower']:,} to {largest['upper']:,}"
        assert said in tab.ask(f"{rows}[1].map((row) => row.textContent)")
        stays = "document.activeElement.closest('.chart') === document.querySelector('.chart')"
        assert tab.ask(stays) and not tab.ask("document.activeElement.hasAttribute('aria-current')")
        tab.ask("document.activeElement.click()")
        assert tab.ask("document.querySelectorAll('#charts [aria-current]').length") == 1
        tab.ask("history.back()")
        tab.until(f"document.getElementById('only-name').textContent === '{region}'")
        tab.ask("document.getElementById('only-none').click()")
        assert tab.ask("document.getElementById('only').hidden")
        tab.open(tmp_path / "site" / "index.html", fragment=f"#chart=destination&only=origin/region/{region}")
        assert tab.ask("document.getElementById('only-name').textContent") == region
        parts = "[...document.querySelectorAll('h1, nav, .chart, #table')].filter((one) => one.checkVisibility())"
        assert tab.ask(f"{parts}.length") == 1, "one chart alone, to be shown on another page"
        tab.open(tmp_path / "site" / "index.html")
        for name, level in (("first", "origin\\ntown"), ("second", "destination\\nregion")):
            box = f"document.getElementById('{name}')"
            tab.ask(f"{box}.value = '{level}', {box}.dispatchEvent(new Event('change'))")
        tab.ask("document.getElementById('search').value = 't07'")
        tab.ask("document.getElementById('controls').requestSubmit()")
        town = next(row for row in ranges["origin.town"] if row["origin.town"] == "t07")
        said = f"Origin (town) t07: {town['count']:,} in all ({town['lower']:,} to {town['upper']:,})"
        assert tab.ask("document.getElementById('sum').textContent") == said
        tab.ask("document.getElementById('search').value = 't0'")
        tab.ask("document.getElementById('controls').requestSubmit()")
        count, middle, margin = sum_of_ten(sparse)
        said = tab.ask("document.getElementById('sum').textContent").replace(",", "")
        told, lower, upper = (int(one) for one in re.findall(r"\d+", said))
        assert told == count and lower + upper == 2 * middle and margin <= (upper - lower) / 2 <= 1.1 * margin
        assert tab.complaints == []


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here to open pages with")
def test_a_browser_searches_sorts_and_turns_pages(sparse: tt.Release, tmp_path: Path) -> None:
    export(sparse, "site", tmp_path / "site", language="de")
    export(flows(title=EVIL), "site", tmp_path / "evil")
    page = tmp_path / "site" / "index.html"
    table = "[...document.querySelectorAll('#rows tbody tr')]"
    with browser(tmp_path / "browser") as tab:
        tab.open(page)
        counts = sorted(sparse.count.tolist(), reverse=True)
        shown = f"{table}.map((row) => +row.querySelector('.number').lastChild.textContent.replaceAll('.', ''))"
        assert tab.ask(shown) == counts[:25]
        assert tab.ask("document.getElementById('status').textContent") == "Zeilen 1 bis 25 von 1.600"
        tab.ask("document.getElementById('next').click()")
        assert tab.ask(shown) == counts[25:50]
        tab.ask("document.querySelector('#rows thead .number button').click()")
        assert tab.ask(shown) == [0] * 25 and tab.ask(f"{table}[0].textContent").count("höchstens") == 1
        assert tab.ask("document.querySelector('#rows thead .number').getAttribute('aria-sort')") == "ascending"
        tab.ask("document.getElementById('stands').click()")
        real = int(surviving(sparse.measured, len(sparse.spine.levels)).sum())
        assert tab.ask("document.getElementById('status').textContent") == f"Zeilen 1 bis 25 von {real}"
        tab.ask("document.getElementById('stands').click()")
        tab.ask("document.getElementById('search').value = 'T07'")
        tab.ask("document.getElementById('controls').requestSubmit()")
        assert tab.ask("document.getElementById('status').textContent") == "Zeilen 1 bis 25 von 79"
        tab.ask("document.getElementById('search').value = 'nowhere'")
        tab.ask("document.getElementById('controls').requestSubmit()")
        assert tab.ask("document.getElementById('rows').hidden") and not tab.ask(f"{table}.length")
        for width, dark in ((390, False), (390, True)):
            tab.open(page, width, dark=dark)
            assert tab.ask("document.documentElement.scrollWidth") == width
            assert tab.ask("document.querySelectorAll('#rows thead th').length") == 3
            assert tab.ask("document.querySelector('.scroll').scrollWidth") <= width
            ink = tab.ask("getComputedStyle(document.body).color")
            assert (ink == "rgb(231, 239, 234)") == dark
        tab.open(tmp_path / "evil" / "index.html")
        assert tab.ask("document.querySelectorAll('img, script').length") == 2
        assert EVIL in tab.ask("document.querySelector('#rows tbody').textContent")
        assert tab.complaints == []
