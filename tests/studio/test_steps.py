"""Every step by plain forms, without scripts: from a table to a site, and back to the plan file at any time."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import treetop as tt
from tests import everyday
from tests.studio.visitor import Visitor, visiting
from treetop import cli
from treetop.ledger import Ledger

COLUMNS = ["home", "work"]


def test_from_a_table_to_a_site_and_the_plan_is_one_that_the_command_line_takes(
    visitor: Visitor, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = visitor.folder
    assert visitor.see("columns").headers["location"].endswith("/table")
    page = visitor.send("table", do="choose", table="trips.csv", plan="plan")
    assert "600 rows" in page.plain
    page = visitor.send("table", do="prepare", title="Trips", period="2024", column=COLUMNS, header="auto")
    assert "Saved to plan.toml" in page.plain
    page = visitor.see("columns")
    assert page.plain.count("needs its values") == 2 and "open" not in page.plain
    names = list(tomllib.loads((folder / "plan.toml").read_text())["attributes"])
    page = visitor.send("columns", do="attribute", attribute=names[0], how="hierarchy", file="places.csv", levels="")
    assert "5 of 5 codes of home match, in 600 of 600 rows" in page.plain
    page = visitor.send("columns", do="attribute", attribute=names[1], how="same_as", same_as=names[0])
    assert "5 of 5 codes of work match, in 600 of 600 rows" in page.plain
    page = visitor.send("protected", entity="trip", contributions="1", neighbours="replace", id="", population="")
    assert "all ten records of one trip are counted" in page.plain
    page = visitor.see("accuracy")
    assert "Nothing is decided yet" in page.plain and "How accurate, and how private?" in visitor.see("review").plain
    page = visitor.send("accuracy", epsilon="2", delta="1e-8", by="epsilon", resolve="full")
    assert page.field("epsilon") == "2"
    page = visitor.send("review", do="ledger", name="budget", epsilon="3", delta="1e-8", dataset="trips")
    assert "Made the ledger budget.ledger" in page.plain
    page = visitor.send("review", do="review", reviewer="Ada Lovelace", note="As agreed.")
    assert "Ada Lovelace , 20" in page.plain and "As agreed." in page.plain
    visitor.send("release", do="release", out="release", charge="yes", dataset="trips")
    page = visitor.wait()
    assert "Released: release" in page.plain and "charged to trips" in page.plain
    page = visitor.send("publish", release="release", out="site", language="de", credit="Office")
    assert "site is written" in page.plain and (folder / "site/index.html").is_file()

    plan = tt.read_plan(folder / "plan.toml")
    (review,) = Ledger.open(folder / "budget.ledger").reviews(plan.plan.digest)
    assert (review.reviewer, review.note, review.title) == ("Ada Lovelace", "As agreed.", "Trips")
    cli.main(["plan", str(folder / "plan.toml"), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["plan_sha256"] == plan.plan.digest and told["loss"]["epsilon"] == 2
    assert all(verdict.verified or verdict.caution for verdict in tt.check(folder / "release"))


def test_a_release_is_asked_searched_sorted_and_downloaded(own: Visitor) -> None:
    own.send("release", do="release", out="release", charge="no")
    own.wait()
    release = tt.Release.load(own.folder / "release")
    page = own.see("explore?where=origin%3DN&by=destination.town&q=s&sort=count:up")
    table = release.where(origin="N").table("destination.town")
    rows = sorted(row["count"] for row in table.to_pylist() if row["destination.town"].startswith("s"))
    assert f"{release.query(origin='N'):,}" in page.plain and f"{len(rows)} rows of {len(table)}" in page.plain
    shown = page.plain.index("count ↑")
    places = [page.plain.index(f" {count:,} ", shown) for count in rows]
    assert places == sorted(places)
    page = own.see("explore?where=origin%3DNowhere")
    assert page.status == 200 and "Nowhere" in page.plain and "Traceback" not in page.text
    assert "the quotes do not match" in own.see("explore?where=origin%3D%22N").plain
    page = own.see("download?release=release&to=csv")
    assert page.headers["content-disposition"] == 'attachment; filename="counts.csv"'
    assert page.text.startswith("origin,destination,count,lower,upper,outside\n")
    assert own.see("download?release=release&to=records").status == 422
    assert own.see("explore?release=elsewhere").status == 422


def test_a_raw_table_without_names_and_leading_zeros_is_prepared_by_clicks(tmp_path: Path) -> None:
    everyday.write(tmp_path)
    (tmp_path / "plan.toml").unlink()
    (tmp_path / "trips.csv").unlink()
    towns = [f"{'NS'[number % 2]},{1000 + 7 * number:05}\n" for number in range(30)]
    (tmp_path / "places.csv").write_text(f"region,town\n{''.join(towns)}")
    raw = "".join(f"{1000 + 7 * (n % 30)} ,{1000 + 7 * (n // 7 % 30)}\n" for n in range(600))
    with visiting(tmp_path) as visitor:
        assert "trips.csv is in the folder now" in visitor.upload("trips.csv", raw).plain
        assert "stays" in visitor.upload("trips.csv", "x").plain and (tmp_path / "trips.csv").read_text() == raw
        page = visitor.send("table", do="choose", table="trips.csv", header="auto")
        assert page.status == 422 and "header" in page.plain  # the first line would be taken for names
        visitor.send("table", do="choose", table="trips.csv", header="no")
        page = visitor.send("table", do="prepare", column=["column1", "column2"], header="no", names="home, work")
        assert "Saved" in page.plain
        page = visitor.send("columns", do="attribute", attribute="origin", how="hierarchy", file="places.csv")
        assert "“Zeros in front, up to”: 5 for home" in page.plain and "“Trim blanks”: home" in page.plain
        visitor.send("columns", do="attribute", attribute="destination", how="same_as", same_as="origin", pad="5")
        missed = visitor.post(
            "matched", do="attribute", attribute="origin", how="hierarchy", file="places.csv", pad="5"
        )
        assert "0 of 30 codes of home match, in 0 of 600 rows" in missed.plain
        form = {"do": "attribute", "attribute": "origin", "how": "hierarchy", "file": "places.csv", "pad": "5"}
        page = visitor.send("columns", trim="yes", **form)
        assert page.plain.count("30 of 30 codes") == 2
        visitor.send("protected", entity="trip", contributions="1", neighbours="add-remove")
        visitor.send("accuracy", epsilon="1", delta="", by="epsilon")
        file = tt.read_plan(tmp_path / "plan.toml")
        assert file.names == ("home", "work") and file.pad == {"home": 5, "work": 5} and file.trim == ("home",)
        assert set(file.columns.values()) == {"home", "work"}
        assert file.plan.loss.definition == "pure"


def test_epsilon_and_the_error_that_is_accepted_move_each_other(own: Visitor) -> None:
    kind, origin = "application/x-www-form-urlencoded", f"http://{own.host}"

    def look(form: str) -> dict[str, float]:
        page = own.ask("POST", "look", form, Content_Type=kind, Origin=origin)
        start = page.text.partition("data-epsilon=")[2].partition(">")[0].replace('"', "").split()
        return {"epsilon": float(start[0]), "error": float(start[2].partition("=")[2])}

    level = "&level=origin.town&delta="
    wide, narrow = look(f"by=epsilon&epsilon=0.5{level}"), look(f"by=epsilon&epsilon=4{level}")
    assert wide["error"] > 4 * narrow["error"]
    found = look(f"by=error&error={int(wide['error'])}{level}")
    assert found["error"] <= wide["error"] and found["epsilon"] <= 0.5
    assert look(f"by=slider&slider=1{level}")["epsilon"] == 0.01
    page = own.ask("POST", "look", f"by=error&error=x{level}", Content_Type=kind, Origin=origin)
    assert page.status == 422 and "give a whole number" in page.plain
    own.send("accuracy", by="split", level="origin.town", error="30", delta="", epsilon="1")
    text = (own.folder / "plan.toml").read_text()
    assert "[loss.split]" in text
    plan = tt.read_plan(own.folder / "plan.toml").plan
    assert {row.name: row.margin for row in plan.accuracy().levels}["origin.town"] <= 30


def test_the_twin_has_the_declared_size_and_the_verdict_is_told(own: Visitor) -> None:
    page = own.see("accuracy")
    assert "Say above about how many records there are" in page.plain and "Will it be readable?" not in page.plain
    page = own.send("accuracy", by="epsilon", epsilon="1", delta="1e-8", resolve="full", total="700")
    assert "700 invented records" in page.plain and "Will it be readable?" in page.plain
    assert tt.read_plan(own.folder / "plan.toml").records == 700 and own.see("accuracy").field("total") == "700"
    page = own.send("accuracy", by="epsilon", epsilon="1", delta="1e-8", resolve="full", total="some")
    assert page.status == 422 and "About how many records there are" in page.plain


def test_a_plan_is_compared_with_an_earlier_one(own: Visitor) -> None:
    text = (own.folder / "plan.toml").read_text()
    (own.folder / "old.toml").write_text(text.replace("epsilon = 1.0", "epsilon = 0.5  # less"))
    page = own.see("review?against=old.toml")
    assert "loss.epsilon 0.5 1" in page.plain
    assert own.see("review?against=../x.toml").status == 422


@pytest.mark.parametrize(
    ("step", "form", "said"),
    [
        ("protected", {"entity": "", "contributions": "1", "neighbours": "replace"}, "Who or what is protected?"),
        ("protected", {"entity": "trip", "contributions": "some", "neighbours": "replace"}, "give a whole number"),
        ("protected", {"entity": "trip", "contributions": "3", "neighbours": ""}, "What must stay hidden?"),
        ("accuracy", {"epsilon": "-1", "delta": "1e-8", "by": "epsilon"}, "give a positive number"),
        ("accuracy", {"by": "error", "level": "x", "error": "3", "delta": "1e-8"}, "no table 'x'"),
        (
            "columns",
            {"do": "attribute", "attribute": "origin", "how": "other", "pad": "many"},
            "how long the codes are",
        ),
        ("table", {"do": "prepare", "header": "auto", "keep": "year 2008"}, "is not understood"),
        ("columns", {"do": "attribute", "attribute": "origin", "how": "other", "pad": "900"}, "1 to 64"),
        ("table", {"do": "choose", "table": "trips.csv", "plan": "plan.toml", "names": "a, b"}, "exists already, and"),
        ("columns", {"do": "attribute", "attribute": "origin", "how": "hierarchy"}, "choose the file"),
        (
            "columns",
            {"do": "attribute", "attribute": "origin", "how": "hierarchy", "file": "other.csv"},
            "kind, colour",
        ),
        ("columns", {"do": "attribute", "attribute": "origin", "how": "values", "values": ""}, "is empty"),
        (
            "columns",
            {"do": "attribute", "attribute": "origin", "how": "bands", "bands": "young old"},
            "each band begins",
        ),
        ("columns", {"do": "attribute", "attribute": "origin", "how": "other", "name": "total"}, "Name in the release"),
        ("columns", {"do": "attribute", "attribute": "gone", "how": "values"}, "not published any more"),
        ("columns", {"do": "add", "add": "gone"}, "There is no column"),
        ("columns", {"do": "count", "count": "gone"}, "gone"),
        ("columns", {"do": "unknown", "unknown": "guess"}, "Choose one of the three"),
        ("review", {"do": "review", "reviewer": "Ada"}, "There is no ledger yet"),
        ("review", {"do": "ledger", "name": "x/y", "epsilon": "1"}, "cannot be a name"),
        ("release", {"do": "release", "out": "r", "charge": "yes"}, "There is no ledger yet"),
        ("release", {"do": "release", "out": "trips.csv", "charge": "no"}, "exists already"),
        ("publish", {"release": "", "out": "site"}, "no release yet"),
        ("publish", {"release": "trips.csv", "out": "site"}, "is not a release"),
    ],
)
def test_what_cannot_be_meant_is_one_message_with_the_next_step_and_nothing_typed_is_lost(
    step: str, form: dict[str, str], said: str, mistaken: Visitor
) -> None:
    before = (mistaken.folder / "plan.toml").read_text()
    page = mistaken.send(step, **form)
    if step == "release" and said == "exists already":
        page = mistaken.wait()
    assert said in page.plain and "Traceback" not in page.text
    if page.status == 422:  # in the words of the page
        refusal = page.plain.partition("That did not work. ")[2].partition(" Which columns")[0]
        assert not re.search(r"`|--\w|\[(data|attributes|unit|loss|spine)\b", refusal[:400]), refusal
    assert page.status == (200 if said == "exists already" else 422)
    for name in ("entity", "contributions", "epsilon", "delta", "error", "pad"):
        if form.get(name) and step in ("protected", "accuracy", "columns"):
            assert page.field(name) == form[name]
    assert (mistaken.folder / "plan.toml").read_text() == before


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """A studio in which nothing succeeds."""
    folder = everyday.write(tmp_path_factory.mktemp("mistaken"), everyday.plan_file(data='source = "trips.csv"\n'))
    (folder / "other.csv").write_text("kind,colour\na,red\nb,blue\n")
    with visiting(folder) as one:
        yield one


@pytest.mark.parametrize(("example", "plan"), [("graph", "friendships.toml"), ("households", "plan.toml")])
def test_plans_of_other_kinds_are_shown_and_what_is_not_for_them_says_so(
    example: str, plan: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(Path(__file__).parents[2] / "examples" / example, tmp_path / example)
    with visiting(folder, plan) as visitor:
        pages = {step: visitor.see(step) for step in ("table", "columns", "protected", "accuracy", "review", "release")}
    assert {page.status for page in pages.values()} == {200}
    assert "Digest of the plan" in pages["review"].plain and "Run the plan once" in pages["release"].plain
    assert "From review on, all steps work here" in pages["columns"].plain


def test_a_table_that_needs_to_be_told_how_it_is_read_says_so_and_then_is_read(own: Visitor) -> None:
    (own.folder / "other.csv").write_bytes("home;work\ncittà;n1\n".encode("latin-1") + b"n1;n2\n" * 30)
    page = own.send("table", do="choose", table="other.csv", plan="other.toml", delimiter=";")
    assert "31 rows" in page.plain and "città" in page.plain and "it is read as latin-1" in page.plain
    text = (own.folder / "other.toml").read_text()
    assert 'encoding = "latin-1"' in text and 'delimiter = ";"' in text
    (own.folder / "other.toml").write_text(text.replace('encoding = "latin-1"\n', ""))
    assert "The table cannot be read as the plan says" in own.see("table").plain
    page = own.send("table", do="again", header="yes", names="", encoding="latin-1", delimiter=";", sheet="")
    assert "31 rows" in page.plain
