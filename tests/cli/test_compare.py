"""`treetop compare`, as a person runs it: results in a folder, fenced, and nothing released or spent."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.commands import refused, said
from tests.everyday import plan_file
from treetop.cli import main

ROWS = [("n1", "n1")] * 40 + [("n1", "s1")] * 3 + [("s2", "s1")] * 7 + [("s2", "s2")] * 150
FENCE = "for the steward only, not for release"
LIMITED = "The truth is the whole table: records beyond the limit of contributions count as errors."
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(trips: Path) -> Path:
    lines = [f"p{person // 2},{home},{work}" for person, (home, work) in enumerate(ROWS)]
    (trips / "trips.csv").write_text("\n".join(["person,home,work", *lines, ""]))
    return trips


def compare(*words: str) -> str:
    done = said(("compare", "plan.toml", "trips.csv", "--out", "out", "--jobs", "1", "--repeat", "2", *words))
    assert (done.code, done.err) == (0, "")
    return done.out


def leave(*words: str) -> tuple[int, str]:
    return refused("compare", "plan.toml", "trips.csv", "--out", "out", "--jobs", "1", *words)


def test_the_folder_has_results_a_summary_and_plots(folder: Path) -> None:
    said = compare("--mechanisms", "inftda,sh", "--epsilon", "0.1,1", "--accounting", "tight,paper")
    files = sorted(path.name for path in (folder / "out").iterdir())
    assert files == ["error.png", "false_discoveries.png", "results.parquet", "summary.md", "time.png"]
    table = pq.read_table(folder / "out" / "results.parquet")
    assert table.num_rows == 2 * 2 * 2 * 2 * (5 + 3)
    assert set(table["epsilon"].to_pylist()) == {0.1, 1.0}
    assert said.count(FENCE) == 2
    assert "All results are in out." in said
    assert [path for path in folder.iterdir() if path.name.startswith(".")] == []


def test_everything_that_is_written_says_that_it_is_private(folder: Path) -> None:
    compare("--mechanisms", "inftda")
    assert FENCE in (folder / "out" / "summary.md").read_text(encoding="utf-8").lower()
    assert pq.read_schema(folder / "out" / "results.parquet").metadata[b"treetop"].decode() == FENCE


def test_every_mechanism_tells_the_errors_of_margins_and_one_measures_them(folder: Path) -> None:
    report = json.loads(compare("--no-plots", "--json"))
    assert [one["mechanism"] for one in report["settings"]] == ["margins", "inftda", "tda-l2", "gauss", "sh"]
    for setting in report["settings"]:
        assert [level["name"] for level in setting["levels"]][-1] == "margin origin.town"
    table = pq.read_table(folder / "out" / "results.parquet").to_pylist()
    measured = {row["mechanism"] for row in table if row["level_name"] == "margin origin.town" and row["noise"]}
    assert measured == {"margins"}
    assert {row["counts"] for row in table if row["level_name"] == "origin.town"} == {"destination town × origin town"}


def test_a_split_that_names_margins_is_that_of_the_levels_where_there_are_none(folder: Path) -> None:
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text(encoding="utf-8").replace("delta = 1e-8", "delta = 1e-8\nsplit = {margins = 0.4}"))
    report = json.loads(compare("--mechanisms", "margins,inftda", "--no-plots", "--json"))
    assert [one["mechanism"] for one in report["settings"]] == ["margins", "inftda"] and not report["refused"]


def test_the_loss_is_the_plans_when_none_is_given(folder: Path) -> None:
    report = json.loads(compare("--mechanisms", "inftda", "--no-plots", "--json"))
    (setting,) = report["settings"]
    assert (setting["epsilon"], setting["delta"], setting["accounting"], setting["runs"]) == (1.0, 1e-8, "tight", 2)
    assert [level["name"] for level in setting["levels"]][:2] == ["total", "destination.region"]
    assert setting["levels"][0]["largest"] == 0
    assert report["files"] == ["results.parquet", "summary.md"]
    assert report["fence"] == FENCE and "nothing was spent" in report["warning"]


def test_what_cannot_be_served_is_said_and_the_rest_is_run(folder: Path) -> None:
    (folder / "plan.toml").write_text(plan_file(("delta = 1e-8", "")))
    report = json.loads(compare("--mechanisms", "inftda,sh", "--no-plots", "--json"))
    assert [one["mechanism"] for one in report["settings"]] == ["inftda"]
    assert report["settings"][0]["accounting"] == "pure"
    (refused,) = report["refused"]
    assert refused["mechanism"] == "sh" and "delta" in refused["reason"]


def test_with_a_limit_of_contributions_the_whole_table_is_the_truth(folder: Path) -> None:
    (folder / "plan.toml").write_text(plan_file(("[loss]", 'id = "person"\n[loss]')))
    report = json.loads(compare("--mechanisms", "inftda", "--no-plots", "--json"))
    # Each of the 100 people has 2 trips, of which 1 is counted.
    assert report["settings"][0]["levels"][0]["largest"] == 100
    assert report["note"] == LIMITED


def test_a_limit_of_contributions_is_said_wherever_errors_are_shown(folder: Path) -> None:
    for name, expected in (("without", False), ("with", True)):
        if expected:
            (folder / "plan.toml").write_text(plan_file(("[loss]", 'id = "person"\n[loss]')))
        said = compare("--mechanisms", "inftda", "--no-plots")
        written = (folder / "out" / "summary.md").read_text(encoding="utf-8")
        assert (LIMITED in said, LIMITED in written) == (expected, expected)
        (folder / "out").rename(folder / name)


def test_both_accountings_are_compared_by_one_word(folder: Path) -> None:
    report = json.loads(compare("--mechanisms", "inftda", "--accounting", "both", "--no-plots", "--json"))
    assert [one["accounting"] for one in report["settings"]] == ["tight", "paper"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--mechanisms", "inftda,shh"), "there is no mechanism 'shh' (did you mean 'sh'?)"),
        (("--mechanisms", ","), "names none"),
        (("--epsilon", "one"), "give positive numbers with commas"),
        (("--epsilon", "0"), "give positive numbers with commas"),
        (("--accounting", "loose,x"), "--accounting is loose, x: choose tight, paper, or both"),
        (("--accounting", ","), "--accounting is empty: choose tight, paper, or both"),
        (("--delta", "2"), "delta"),
    ],
)
def test_a_mistake_in_the_call_is_one_message(folder: Path, arguments: tuple[str, ...], says: str) -> None:
    code, message = leave(*arguments)
    assert code == 2 and says in message
    assert not (folder / "out").exists()


def test_a_plan_in_rho_asks_for_epsilon_and_delta(folder: Path) -> None:
    (folder / "plan.toml").write_text(plan_file(("epsilon = 1.0\ndelta = 1e-8", "rho = 2")))
    code, message = leave("--epsilon", "1")
    assert code == 2 and "give --epsilon and --delta" in message


def test_a_folder_that_is_there_is_kept(folder: Path) -> None:
    (folder / "out").mkdir()
    code, message = leave()
    assert code == 2 and "out exists already: choose another folder" in message


def test_help_says_that_nothing_is_released(capsys: Captured) -> None:
    main(["compare", "--help"])
    assert "Nothing is released and nothing is spent" in capsys.readouterr().out
