"""Planning, comparing and exporting group sizes from the command line: each works, or says why not and what to do."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import printed as run
from tests.commands import refused as refusal

Write = Callable[..., Path]

PUBLIC = "place,size,count\na1,0,200\na1,1,500\na1,2,300\na2,2,900\na2,5,40\nb1,1,500\nb1,3,700\nb1,12,2\n"
"""Published numbers of other groups, larger ones among them."""


def told(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "--json"))
    return found


def refused(*arguments: object) -> str:
    """What a command says that refuses: one line."""
    code, message = refusal(*arguments)
    assert code in (2, 3) and message.startswith("treetop: ") and message.count("\n") == 1
    return message


@pytest.fixture
def twin(tmp_path: Path) -> Path:
    path = tmp_path / "published.csv"
    path.write_text(PUBLIC, encoding="utf-8")
    return path


@pytest.fixture
def released(write: Write, tmp_path: Path) -> Path:
    run("release", write(), "--out", tmp_path / "out")
    return tmp_path / "out"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_release_is_exported_as_csv_with_its_intervals(released: Path, tmp_path: Path) -> None:
    run("export", released, "--to", "csv", "--out", tmp_path / "leaves.csv")
    leaves = rows(tmp_path / "leaves.csv")
    assert list(leaves[0]) == ["size", "size_name", "place", "count", "lower", "upper", "outside"]
    assert sum(int(row["count"]) for row in leaves) == 3000
    assert all(int(row["lower"]) <= int(row["upper"]) for row in leaves)
    run("export", released, "--to", "csv", "--out", tmp_path / "states.csv", "--level", "state")
    asked = told("query", released, "--by", "size", "--by", "place.state")["rows"]
    assert [[str(value).lower() for value in row.values()] for row in asked] == [
        [value.lower() for value in row.values()] for row in rows(tmp_path / "states.csv")
    ]


def test_a_format_for_flows_refuses_sizes_and_names_one_that_takes_them(released: Path, tmp_path: Path) -> None:
    message = refused("export", released, "--to", "od", "--out", tmp_path / "flows.csv")
    assert "no origin" in message and "Export it to csv" in message


def test_parts_are_refused_before_anything_is_read(write: Write, tmp_path: Path) -> None:
    message = refused("release", write(), "no such file", "--out", tmp_path / "cut", "--part", 2)
    assert "written as one part" in message and not (tmp_path / "cut").exists()


def test_a_plan_is_tried_on_published_numbers_of_other_groups(write: Write, twin: Path) -> None:
    found = told("plan", write(), "--twin", twin, "--runs", 4)
    levels = found["trials"]["levels"]
    assert [level["name"] for level in levels] == ["total", "size", "place.state", "place.county"]
    assert levels[0]["mean"] == 0 < levels[3]["mean"] < 20
    assert found["trials"]["runs"] == 4 and str(twin) in found["trials"]["twin"]


def test_an_earlier_release_is_a_twin(write: Write, released: Path) -> None:
    assert told("plan", write(), "--twin", released, "--runs", 2)["trials"]["levels"][0]["mean"] == 0
    wider = write(("largest = 3", "largest = 5"), name="wider.toml")
    assert "end at 3, and the plan tells them apart up to 5" in refused("plan", wider, "--twin", released)


def test_the_largest_size_is_advised_from_what_top_coding_loses(write: Write, twin: Path) -> None:
    alone = told("plan", write())["largest"]
    assert [row["largest"] for row in alone["rows"]] == [1, 3, 6, 12] and alone["best"] is None
    assert alone["rows"][1]["counts"] == 6 * 4  # three counties, two states and all together
    margins = [row["people_margin"] for row in alone["rows"]]
    assert margins == sorted(margins) and margins[0] < margins[-1]
    advice = told("plan", write(), "--twin", twin, "--runs", 1)["largest"]
    lost = {row["largest"]: (row["groups_above"], row["people_lost"]) for row in advice["rows"]}
    assert lost[3] == (42, 40 * 2 + 2 * 9) and lost[12] == (0, 0)
    best = next(row for row in advice["rows"] if row["largest"] == advice["best"])
    assert best["people_lost"] <= best["people_margin"]
    text = run("plan", write(), "--twin", twin, "--runs", 1)
    assert "people not counted" in text and f"From {advice['best']} on" in text


def test_protecting_whole_groups_a_larger_size_makes_all_noise_larger(write: Write) -> None:
    changes = (('event = "join-leave"', 'event = "group"'), ('"person"', '"household"'))
    noise = [row["noise"] for row in told("plan", write(*changes))["largest"]["rows"]]
    assert noise == sorted(noise) and noise[-1] > 3 * noise[1]


def test_the_private_table_is_no_twin_whatever_its_form(write: Write, tmp_path: Path) -> None:
    assert "private table itself" in refused("plan", write(), "--twin", tmp_path / "sizes.csv")
    same = tmp_path / "same.csv"  # top-coded, in another order, under the names of a published table
    same.write_text("place,size,count\nb1,3,600\na1,0,300\na1,1,600\na1,3,100\na2,2,1000\nb1,1,400\n", encoding="utf-8")
    assert "same records as the private table" in refused("plan", write(), "--twin", same)
    asked = ("plan", write(), "--prior", same, "--prior-source", "somewhere")
    assert "same records as the private table" in refused(*asked)


def test_a_public_table_of_other_columns_is_refused_with_those_that_it_needs(write: Write, tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text("county,beds\na1,4\n", encoding="utf-8")
    message = refused("plan", write(), "--twin", tmp_path / "odd.csv")
    assert "without 'persons', 'homes'" in message and "'place', 'size' and 'count'" in message


def test_conditions_on_columns_that_a_public_table_lacks_are_left_out_and_told(households: Path) -> None:
    people = (households / "people.csv").read_text(encoding="utf-8").splitlines()
    kept = [f"{line},{'year' if at == 0 else '2020'}" for at, line in enumerate(people)]
    (households / "people.csv").write_text("\n".join(kept), encoding="utf-8")
    plan = households / "plan.toml"
    plan.write_text(plan.read_text(encoding="utf-8") + '\nkeep = { year = ["2020"] }\n', encoding="utf-8")
    (note,) = told("plan", plan, "--twin", households / "earlier.csv", "--runs", 1)["notes"]
    assert "keeps some rows only, by 'year'" in note


def test_the_split_is_chosen_by_trials_on_a_prior(households: Path) -> None:
    shares = (0.06, 0.3, 0.3, 0.14, 0.12, 0.05, 0.02, 0.01)
    places = [row["municipality"] for row in rows(households / "places.csv")]
    lines = [f"{place},{size},{round(250 * share)}" for place in places for size, share in enumerate(shares)]
    prior = households / "published.csv"
    prior.write_text("\n".join(["municipality,size,count", *lines]), encoding="utf-8")
    plan, chosen = households / "plan.toml", households / "chosen.toml"
    asked = ("--prior", prior, "--prior-source", "statistical office", "--runs", 10, "--write", chosen)
    found = told("plan", plan, *asked, "--weight", "municipality=10")["forecast"]
    levels = {row["name"]: row for row in found["levels"]}
    assert levels["place.municipality"]["share"] > 0.4 > 0.25 > levels["size"]["share"]
    assert levels["place.municipality"]["error"] < levels["place.municipality"]["error_before"]
    assert found["squared_error"] < 0.9 * found["squared_error_before"]
    written = told("plan", chosen)["levels"][1:]
    assert [row["share"] for row in written] == pytest.approx([row["share"] for row in levels.values()])


def test_a_split_that_is_not_clearly_better_is_not_chosen(write: Write, twin: Path) -> None:
    asked = ("plan", write(), "--prior", twin, "--prior-source", "statistical office", "--runs", 1)
    assert "the plan keeps its own" in run(*asked)


def test_a_prior_says_where_it_is_from(write: Write, twin: Path) -> None:
    assert "say where" in refused("plan", write(), "--prior", twin)


def test_the_mechanisms_for_groups_are_compared_on_the_stewards_table(write: Write, tmp_path: Path) -> None:
    asked = ("compare", write(), "--out", tmp_path / "compared", "--repeat", 2, "--jobs", 1, "--no-plots")
    settings = {row["mechanism"]: row for row in told(*asked)["settings"]}
    ways = [f"{form}-{repair}" for form in ("direct", "cumulative") for repair in ("rounded", "exact", "joint")]
    assert list(settings) == ways
    assert all(settings[name]["violations"] == 0 for name in ways if "rounded" not in name)
    assert settings["direct-exact"]["levels"][0]["largest"] == 0
    assert [level["name"] for level in settings["cumulative-joint"]["levels"]][1:] == [
        "size", "place.state", "place.county"
    ]  # fmt: skip
    assert "for the steward only" in (tmp_path / "compared" / "summary.md").read_text(encoding="utf-8").lower()


def test_they_are_compared_on_a_public_table_too(write: Write, twin: Path, tmp_path: Path) -> None:
    asked = ("--mechanisms", "cumulative-joint", "--epsilon", "1,1000", "--repeat", 3, "--jobs", 1, "--no-plots")
    first, last = told("compare", write(), twin, "--out", tmp_path / "compared", *asked)["settings"]
    assert last["levels"][3]["largest"] == 0 < first["levels"][3]["largest"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("compare", "plan.toml", "--mechanisms", "inftda", "--out", "more"), "choose among direct-rounded"),
        (("estimate", "out"), "no second estimate by least squares is offered"),
        (("estimate", "out", "--out", "again"), "no second estimate by least squares is offered"),
        (("plan", "plan.toml", "--advise"), "has one table, whose levels are measured together"),
        (("plan", "plan.toml", "--twin", "published.csv", "--total", "9"), "--total is for records"),
    ],
)
def test_what_cannot_be_done_says_why_and_what_can(
    released: Path, twin: Path, arguments: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert released.is_dir() and twin.is_file()
    monkeypatch.chdir(released.parent)
    assert reason in refused(*arguments)
    assert not {"more", "again"} & {path.name for path in released.parent.iterdir()}


def test_counts_of_records_refuse_the_mechanisms_for_groups(households: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("place\nAshford-1\nAshford-2\n", encoding="utf-8")
    plan = tmp_path / "plain.toml"
    plan.write_text(
        f"""[attributes.place]
hierarchy = "{(households / "places.csv").as_posix()}"
levels = ["region", "district", "municipality"]
[unit]
entity = "trip"
contributions = 1
neighbours = "add-remove"
[loss]
epsilon = 1
[data]
source = "rows.csv"
""",
        encoding="utf-8",
    )
    message = refused("compare", plan, "--mechanisms", "direct-exact", "--out", tmp_path / "more")
    assert "direct-exact is for group sizes" in message
