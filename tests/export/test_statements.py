"""What is public is true: every statement on exactness, protection and what is counted, where it could be false."""

from __future__ import annotations

import html
import json
import re
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop import exporting
from treetop.card import in_words
from treetop.card.sentences import sentence
from treetop.cli import main
from treetop.errors import QueryError

EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = Path(exporting.__file__).parent / "words"
KEY = bytes(range(32))
LOSS = tt.Loss(epsilon=1, delta=1e-8)
TOWNS = [f"t{number}" for number in range(6)]
PLACE = tt.Hierarchy.from_table(
    pa.table({"region": ["N", "N", "N", "S", "S", "S"], "town": TOWNS}), levels=["region", "town"]
)
SEX = tt.Hierarchy.flat(["f", "m"])
RECORDS = pa.table(
    {
        "place": [TOWNS[at % 6] for at in range(900)],
        "sex": ["f" if at % 3 else "m" for at in range(900)],
        "who": [str(at % 90) for at in range(900)],
    }
)
EXACT = "no noise was added to the total"
LIMIT = {
    "en": "At most 3 records of each customer are counted; the true total may be higher.",
    "de": "Gezählt sind höchstens 3 Datensätze je customer; die wahre Summe kann höher sein.",
    "it": "Sono contati al massimo 3 record per ogni customer; il totale vero può essere più alto.",
}


def plan(unit: tt.Unit, **options: Any) -> tt.Plan:
    spine = tt.Spine(["place.region", "place.town", "sex"], {"place": PLACE, "sex": SEX})
    return tt.Plan(spine, unit, options.pop("loss", LOSS), **options)


def one(neighbours: Any = "replace", **more: Any) -> tt.Unit:
    return tt.Unit("customer", neighbours=neighbours, **more)


def as_private(release: tt.Release) -> tt.Release:
    """Speak of a release as of a private one: its noise is that of a test, so that it can be asserted on."""
    release.card.update(private=True, warning=None, guarantee=sentence("guarantee", loss={"rho": "1"}))
    return release


def released(unit: tt.Unit, **options: Any) -> tt.Release:
    return as_private(tt.make_release(plan(unit, **options), RECORDS, tt.RunOptions(testing_key=KEY)))


def words(*files: Path) -> str:
    """Return what people read of pages."""
    text = " ".join(file.read_text(encoding="utf-8").partition("</style>")[2] for file in files)
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", "", text.replace("</p>", " ").replace("</span>", " "))))


def site(release: tt.Release | Path, out: Path, **options: Any) -> str:
    tt.export(release, "site", out, **options)
    return words(out / "index.html", out / "guarantee.html")


def workbook(file: Path) -> str:
    with zipfile.ZipFile(file) as book:
        sheets = [name for name in book.namelist() if "sheet" in name]
        return html.unescape("".join(book.read(name).decode() for name in sheets))


def said(capsys: pytest.CaptureFixture[str], *command: object) -> tuple[str, str]:
    main([str(part) for part in command])
    done = capsys.readouterr()
    return done.out, done.err


@pytest.mark.parametrize(
    ("unit", "options", "exact"),
    [
        (one(), {}, True),
        (one(), {"margins": "each"}, True),
        (one("add-remove"), {}, False),
        (one("replace", contributions=2), {"margins": "each"}, False),
        (one(may_be_missing=True), {}, False),
        (one(contributions=2), {"facts": {"place.region": tt.Fact(invariant=True)}}, True),
    ],
)
def test_a_total_is_called_exact_only_if_it_is(
    unit: tt.Unit, options: dict[str, Any], exact: bool, tmp_path: Path
) -> None:
    release = released(unit, **options)
    text = site(release, tmp_path / "site")
    assert (EXACT in text) is exact
    assert (release.interval() == (900, 900)) is exact
    assert exact or "Hidden is what one record says. Not hidden is how many records there are." not in text


@pytest.fixture(scope="module")
def theta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("theta") / "release"
    tt.publish(EXAMPLES / "graph" / "theta.toml", out=out)
    return out


def test_a_total_that_follows_from_noisy_degrees_is_not_called_exact(theta: Path, tmp_path: Path) -> None:
    text = site(theta, tmp_path / "site")
    assert EXACT not in text and "95 % sure" in text
    assert "people, by their degree (number of edges)" in text
    assert "Edges were left out until nobody had more than" in text


def test_the_table_of_the_loss_has_all_of_it(theta: Path, tmp_path: Path) -> None:
    site(theta, tmp_path / "site")
    page = (tmp_path / "site" / "guarantee.html").read_text(encoding="utf-8")
    shares = [float(one) for one in re.findall(r'<td class="number">([0-9.]+)\s%</td></tr>', page)]
    assert sum(shares) == pytest.approx(100)
    assert "choice of the largest degree among" in words(tmp_path / "site" / "guarantee.html")
    card = (theta / "card.html").read_text(encoding="utf-8")
    assert card.count("(choice)") == 5


def test_true_counts_that_are_published_are_not_called_protected(tmp_path: Path) -> None:
    release = released(one(), facts={"place.region": tt.Fact(invariant=True)})
    text = site(release, tmp_path / "site")
    exception = "An exception: the true counts by place region are published as they are. They are not protected"
    assert text.count(exception) == 4, "in the lead, in the answers, and twice on the page of the guarantee"
    assert "even whether it is in the table at all" not in text
    assert "Only tables with the same counts by place region are neighbours." in in_words(
        in_words(release.card["unit"]["neighbouring_tables"])
    )
    assert "apart from what is told without noise" in workbook(tmp_path / "site" / "counts.xlsx")
    assert "Without noise are the counts by place region." in text
    card = words(tmp_path / "site" / "card.html")
    assert "apart from true counts that are told without noise: place.region" in card


def test_a_page_of_exact_numbers_says_that_they_carry_no_noise(tmp_path: Path) -> None:
    release = released(one(), facts={"place.region": tt.Fact(invariant=True)})
    regions = release.table("place.region")
    assert regions["lower"].to_pylist() == regions["count"].to_pylist() == [450, 450]
    spine = tt.Spine(["place.region", "place.town"], {"place": PLACE})
    alone = tt.Plan(spine, one(), LOSS, facts={"place.region": tt.Fact(invariant=True)})
    made = as_private(tt.make_release(alone, RECORDS, tt.RunOptions(testing_key=KEY)))
    assert "They carry no noise" in site(made, tmp_path / "regions", level="region")
    assert "They carry no noise" not in site(made, tmp_path / "towns", level="town")


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_compared_facts_are_said_to_limit_the_guarantee(neighbours: Any, tmp_path: Path) -> None:
    release = released(one(neighbours), facts={"place.region": tt.Fact(at_most={("N",): 600, ("S",): 600})})
    agreeing = "Only tables that agree with what is public of place region are neighbours."
    assert agreeing in in_words(release.card["unit"]["neighbouring_tables"])
    text = site(release, tmp_path / "checked")
    assert "The factor is about tables that agree with what is public of place region." in text
    ordinary = site(released(one()), tmp_path / "ordinary")
    assert "agree with what is public" not in ordinary and "An exception" not in ordinary


@pytest.mark.parametrize("directed", [True, False])
def test_a_mutual_friendship_has_a_factor_of_its_own(directed: bool, tmp_path: Path) -> None:
    people = pa.table({"id": [str(at) for at in range(20)]})
    ends = [(at, (at + step) % 20) for at in range(20) for step in (1, 2)]
    edges = pa.table({"source": [str(a) for a, _ in ends], "target": [str(b) for _, b in ends]})
    made = tt.degree_plan("edge", "add-remove", tt.Loss(epsilon=1), 4, directed=directed)
    graph = tt.Graph(people, edges, relation="edge", directed=directed)
    text = site(as_private(tt.make_release(made, graph, tt.RunOptions(testing_key=KEY))), tmp_path / "site")
    assert "factor of at most 2.72" in text
    assert ("the odds about both change by a factor of at most 7.39" in text) is directed
    assert "neither is a person with several edges as a whole" in text


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of at most three of the ten records of each customer."""
    out = tmp_path_factory.mktemp("limited") / "release"
    tt.make_release(
        plan(one("add-remove", id="who", contributions=3), title="Orders"), RECORDS, tt.RunOptions(testing_key=KEY)
    ).save(out)
    return out


@pytest.mark.parametrize("language", LIMIT)
def test_a_limit_of_records_is_said_beside_the_total(limited: Path, language: str, tmp_path: Path) -> None:
    text = site(limited, tmp_path / "site", language=language)
    headline = words(tmp_path / "site" / "index.html").partition("OnPage")[0]
    assert LIMIT[language] in text and LIMIT[language] in headline
    places = tmp_path / "places.csv"
    places.write_text("town,lat,lon\n" + "".join(f"t{at},4{at},1{at}\n" for at in range(6)), encoding="utf-8")
    place = {"coordinates": places, "code": "town", "latitude": "lat", "longitude": "lon"}
    tt.export(limited, "map", tmp_path / "map.html", language=language, **place)  # type: ignore[arg-type]
    assert LIMIT[language] in words(tmp_path / "map.html")


def test_a_limit_of_records_is_said_on_the_card_in_the_workbook_and_by_query(
    limited: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert LIMIT["en"] in words(limited / "card.html").partition("What is protected")[0]
    tt.export(limited, "excel", tmp_path / "counts.xlsx")
    assert LIMIT["en"] in workbook(tmp_path / "counts.xlsx")
    assert LIMIT["en"] in said(capsys, "query", limited)[1]
    assert LIMIT["en"] in said(capsys, "query", limited, "--by", "sex")[1]
    counted = json.loads(said(capsys, "query", limited, "--json")[0])["counted"]
    assert counted == {"what": "records", "limit": 3, "sentences": [LIMIT["en"]]}
    assert tt.Release.load(limited)._repr_html_().count(LIMIT["en"]) == 1


def test_a_limit_that_is_only_declared_is_not_said_to_leave_records_out(tmp_path: Path) -> None:
    release = released(one("add-remove", contributions=3))
    assert release.card["counted"] == {"what": "records", "sentences": []}
    assert "the true total may be higher" not in site(release, tmp_path / "site")


def test_records_of_one_leaf_and_unknown_codes_are_said_not_to_count() -> None:
    unit = one("add-remove", id="who", contributions=3, distinct=True)
    told = in_words(released(unit, unknown="drop").card["counted"])
    assert told["limit"] == 3 and told["distinct"] and told["dropped"]
    assert told["sentences"] == [
        "Records of one customer in the same leaf count as one, and at most 3 records of each customer are counted; "
        "the true number of records may be higher.",
        "Records with an unknown code are not counted.",
    ]


@pytest.fixture(scope="module")
def households(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sizes with an open class, of which the true number of people is far above what is counted."""
    folder = tmp_path_factory.mktemp("households")
    (folder / "places.csv").write_text("state,county\na,a1\na,a2\n", encoding="utf-8")
    (folder / "sizes.csv").write_text("county,persons,homes\na1,1,600\na1,25,400\na2,2,1000\n", encoding="utf-8")
    (folder / "plan.toml").write_text(
        """
        [attributes.place]
        column = "county"
        hierarchy = "places.csv"
        levels = ["state", "county"]
        [groups]
        rows = "histogram"
        size = "persons"
        largest = 10
        number = 2000
        event = "join-leave"
        [unit]
        entity = "person"
        [loss]
        epsilon = 2
        [data]
        source = "sizes.csv"
        count = "homes"
        """,
        encoding="utf-8",
    )
    tt.publish(folder / "plan.toml", out=folder / "release")
    return folder / "release"


TRUE_PEOPLE = 600 + 25 * 400 + 2 * 1000


def test_numbers_derived_of_an_open_class_have_an_open_end(
    households: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = tt.GroupTables(tt.Release.load(households))
    (people,) = tables.people().to_pylist()
    assert people["lower"] <= people["people"] < TRUE_PEOPLE
    assert people["upper"] is None
    assert tables.mean_size()["upper"].to_pylist() == [None]
    assert tables.share_of_one()["upper"].to_pylist() != [None]
    out, err = said(capsys, "query", households, "--derived", "people")
    assert out.split()[-1] == "open" and "at least this: its upper end is open" in err
    told = json.loads(said(capsys, "query", households, "--derived", "people", "--json")[0])
    assert told["rows"][0]["upper"] is None and "at least" in told["note"]


def test_the_open_class_reads_or_more_everywhere(
    households: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = said(capsys, "query", households, "--by", "size")
    assert "10 or more" in out and "A size of 10 stands for that or more." in err
    assert "10 or more" in said(capsys, "query", households, "--derived", "cumulative")[0]
    assert int(said(capsys, "query", households, "size=10 or more")[0]) > 300
    assert int(said(capsys, "query", households, "size=1")[0]) > 500, "and a code needs no zeros before it"
    tt.export(households, "csv", tmp_path / "counts.csv")
    names = arrow_csv.read_csv(tmp_path / "counts.csv")["size_name"].to_pylist()
    assert "10 or more" in names and "01" not in names
    tt.export(households, "excel", tmp_path / "counts.xlsx")
    assert "10 or more" in workbook(tmp_path / "counts.xlsx")
    for language, more in {"en": "10 or more", "de": "10 oder mehr", "it": "10 o più"}.items():
        text = site(households, tmp_path / language, language=language)
        assert more in text
    assert "groups, by their size" in site(households, tmp_path / "again")
    assert tt.Release.load(households).table()["size"].to_pylist()[-1] == "10"
    assert not [finding for verdict in tt.check(households) for finding in verdict.findings]


def test_a_share_of_one_is_refused_if_one_stands_for_more() -> None:
    sizes = tt.GroupSizes.from_rows(SEX, np.zeros(10, np.int64), np.arange(10) % 3, largest=1)
    made = tt.group_plan(
        SEX, 1, tt.GroupUnit("person", event="join-leave"), tt.Loss(epsilon=1), rows="groups", number=10
    )
    with pytest.raises(QueryError, match="sizes of 1 and more are counted together"):
        tt.GroupTables(tt.make_release(made, sizes, tt.RunOptions(testing_key=KEY))).share_of_one()


def test_degrees_after_a_projection_leave_open_what_they_cannot_bound(
    theta: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = said(capsys, "query", theta, "--derived", "mean-degree")
    assert out.split()[-1] == "open" and "true mean is at least this" in err
    rows = json.loads(said(capsys, "query", theta, "--derived", "quantiles", "--json")[0])["rows"]
    assert {row["upper"] for row in rows} == {None}
    rows = json.loads(said(capsys, "query", theta, "--derived", "cumulative", "--json")[0])["rows"]
    assert {row["lower"] for row in rows[:-1]} == {0} and rows[-1]["lower"] > 0
    assert rows[-1]["degree"].endswith(" or more")
    rows = json.loads(said(capsys, "query", theta, "--derived", "share-above", "--above", "1", "--json")[0])["rows"]
    assert rows[0]["upper"] == 1


def test_the_steward_is_told_how_many_edges_a_projection_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = "id\n" + "".join(f"{at}\n" for at in range(30))
    star = "source,target\n" + "".join(f"0,{at}\n" for at in range(1, 30))
    (tmp_path / "nodes.csv").write_text(people, encoding="utf-8")
    (tmp_path / "edges.csv").write_text(star, encoding="utf-8")
    for form in ("cumulative", "histogram"):
        (tmp_path / "plan.toml").write_text(
            f"""
            [graph]
            counts = "degrees"
            nodes = "nodes.csv"
            edges = "edges.csv"
            relation = "node"
            largest = 4
            form = "{form}"
            [unit]
            neighbours = "add-remove"
            [loss]
            epsilon = 1
            """,
            encoding="utf-8",
        )
        err = said(capsys, "release", tmp_path / "plan.toml", "--out", tmp_path / form)[1]
        assert "25 of 29 edges were beyond the largest degree 4 (86 %): left out." in err
        text = b"".join(file.read_bytes() for file in (tmp_path / form).rglob("*") if file.is_file())
        assert b"25 of 29" not in text


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release in which some counts lie outside their intervals."""
    out = tmp_path_factory.mktemp("outside") / "release"
    codes = [f"c{number:03}" for number in range(300)]
    spine = tt.Spine(["code"], {"code": tt.Hierarchy.flat(codes)})
    rows = pa.table({"code": codes, "n": [1] * 290 + [400] * 10})
    made = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(epsilon=0.05))
    release = tt.make_release(made, rows, tt.RunOptions(count="n", testing_key=KEY))
    table = release.table("code")
    count, lower, upper = (np.asarray(table[name]) for name in ("count", "lower", "upper"))
    assert ((count < lower) | (count > upper)).any(), "or there is nothing to be marked"
    release.save(out)
    return out


def test_a_count_outside_its_interval_is_marked_wherever_it_is_shown(
    outside: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = said(capsys, "query", outside, "--by", "code")
    marked = [line.split()[0] for line in out.splitlines() if line.endswith("outside")]
    assert marked and "outside the interval" in err and "Believe the interval" in err
    rows = json.loads(said(capsys, "query", outside, "--by", "code", "--json")[0])["rows"]
    assert [row["code"] for row in rows if row["outside"]] == marked
    for row in rows:
        assert row["outside"] is not (row["lower"] <= row["count"] <= row["upper"])
    tt.export(outside, "csv", tmp_path / "counts.csv")
    table = arrow_csv.read_csv(tmp_path / "counts.csv")
    assert table.filter(table["outside"])["code"].to_pylist() == marked
    tt.export(outside, "excel", tmp_path / "counts.xlsx")
    assert "outside its range" in workbook(tmp_path / "counts.xlsx")
    text = site(outside, tmp_path / "site")
    assert f"Outside their own range: {len(marked)} of these numbers." in text
    assert pq.read_table(tmp_path / "site" / "counts.parquet")["outside"].to_pylist().count(True) == len(marked)
    one = json.loads(said(capsys, "query", outside, f"code={marked[0]}", "--json")[0])
    assert one["interval"]["outside"] is True
    assert "It lies outside the interval" in said(capsys, "query", outside, f"code={marked[0]}")[1]


def content(folder: Path) -> Any:
    """Return the data of the page's script."""
    found = re.search(r'id="data">(.*?)</script>', (folder / "index.html").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def spoken(language: str) -> dict[str, dict[str, str]]:
    """Return the words of a language as pages show them."""
    told = tomllib.loads((WORDS / f"{language}.toml").read_text(encoding="utf-8"))
    return {part: {key: re.sub(r"\s+", " ", str(said)) for key, said in own.items()} for part, own in told.items()}


def people_and_lists(contributions: int) -> tuple[tt.Plan, tt.Graph]:
    """Lists of up to five names each, of which some are counted."""
    people = pa.table({"id": [str(at) for at in range(20)]})
    ends = [(at, (at + step) % 20) for at in range(20) for step in range(1, 6)]
    edges = pa.table({"source": [str(a) for a, _ in ends], "target": [str(b) for _, b in ends]})
    return (
        tt.degree_plan("user-out", "add-remove", tt.Loss(epsilon=1), 8, contributions=contributions, degree="in"),
        tt.Graph(people, edges, relation="user-out"),
    )


@pytest.mark.parametrize("language", ["en", "de", "it", "fr", "es"])
def test_lists_are_said_to_be_ones_own_and_how_much_of_them_counts(language: str, tmp_path: Path) -> None:
    made, graph = people_and_lists(3)
    release = as_private(tt.make_release(made, graph, tt.RunOptions(testing_key=KEY)))
    text = site(release, tmp_path / "site", language=language)
    told = spoken(language)
    assert told["guarantee"]["lists"] in text
    assert told["counted"]["limit_people"].format(number=3) in text, "a list is cut, so that degrees may be higher"
    assert told["headline"]["limit_one"].partition("{")[0] not in text, "nothing is said of records"
    if language == "en":
        assert "even whether it is in the table at all" not in text
        notes = workbook(tmp_path / "site" / "counts.xlsx")
        assert told["guarantee"]["lists"] in notes and told["counted"]["limit_people"].format(number=3) in notes


@pytest.fixture(scope="module")
def joint() -> tt.Release:
    """A joint fit: tables of one and two of three attributes are measured, and no cell of all three."""
    trees = {"place": PLACE, "sex": SEX, "age": tt.Hierarchy.flat(["0-17", "18+"])}
    rng = np.random.default_rng(1)
    rows = pa.table({name: rng.choice(tree.codes[-1].to_pylist(), 5000) for name, tree in trees.items()})
    made = tt.joint_plan(trees, one(), LOSS)
    return as_private(tt.make_release(made, rows, tt.RunOptions(testing_key=KEY)))


def test_a_joint_fit_says_which_numbers_were_measured_and_which_follow(joint: tt.Release, tmp_path: Path) -> None:
    text = site(joint, tmp_path / "site")
    assert joint.interval() == (5000, 5000) and EXACT in text
    assert "are sums of measured ones, or were measured in another way" in text, "no cell is tested"
    assert "stand out from the noise; of these" not in text
    guarantee = words(tmp_path / "site" / "guarantee.html")
    margins = [row for row in joint.card["margins"] if row["measured"]]
    assert len(margins) >= 6
    for row in margins:
        assert f"± {row['margin']:,}" in guarantee
    assert guarantee.count("measured on its own") == len(margins)
    shares = re.findall(
        r'<td class="number">([0-9.]+)\s%</td></tr>', (tmp_path / "site" / "guarantee.html").read_text()
    )
    assert sum(map(float, shares)) == pytest.approx(100, abs=1)
    for table in content(tmp_path / "site")["tables"]:
        levels = [f"{column['of']}.{column['level']}" for column in table["columns"]]
        assert not table["exact"]
        truth = joint.table(levels).to_pylist()
        assert sorted(table["lower"]) == sorted(row["lower"] for row in truth)
        assert (table["sums"] is None) == (table["wide"] is not None), "every table of it has ranges of sums"
    assert any(table["sums"] for table in content(tmp_path / "site")["tables"])


@pytest.mark.parametrize("language", ["en", "de", "it", "fr", "es"])
def test_a_release_that_names_only_what_stands_out_calls_nothing_else_a_zero(language: str, tmp_path: Path) -> None:
    codes = [f"c{number:03}" for number in range(300)]
    spine = tt.Spine(["code"], {"code": tt.Hierarchy.flat(codes)})
    rows = pa.table({"code": codes, "n": [1] * 290 + [400] * 10})
    made = tt.Plan(spine, one(), tt.Loss(epsilon=1), resolve={"fdr": 0.05})
    release = as_private(tt.make_release(made, rows, tt.RunOptions(count="n", testing_key=KEY)))
    left = release.total - int(release.count.sum())
    assert left > 0
    text = site(release, tmp_path / "site", language=language)
    told = spoken(language)
    assert told["sure"]["unnamed"] in text and told["sure"]["zero"] not in text
    assert told["sure"]["small_named"].partition("{")[0] in text
    assert told["sure"]["means_named"].partition("{")[0] in text and told["sure"]["means"].partition("{")[0] not in text
    assert str(left) in text
    notes = workbook(tmp_path / "site" / "counts.xlsx")
    assert told["files"]["unnamed"].partition("{")[0] in notes and told["files"]["zero"] not in notes
    page = content(tmp_path / "site")
    assert page["sums"] is None and page["wide"] is None and page["named"]
