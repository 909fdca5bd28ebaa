"""Group sizes from the command line: plan, release, ledger, check, query and export, and every refusal in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from tests.commands import Said, printed, said
from treetop import read_plan

Write = Callable[..., Path]


def run(*arguments: object) -> Said:
    return said(arguments)


@pytest.fixture
def released(write: Write, tmp_path: Path) -> Path:
    plan, ledger = write(), tmp_path / "budget.ledger"
    printed("ledger", "create", ledger, "--epsilon", "3")
    charged = ("--out", tmp_path / "out", "--ledger", ledger, "--dataset", "homes")
    assert "3,000 in" in printed("release", plan, *charged, "--nodes")
    return tmp_path / "out"


def test_a_plan_says_its_cost_and_conditions_before_data_is_read(write: Write, tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").unlink()
    path = write()
    text = printed("plan", path)
    assert "M_c^r+dp" in text and "Epsilon 2, pure" in text and "place.county" in text and "(declared)" in text
    told = json.loads(printed("plan", path, "--json"))
    assert told["levels"][1]["law"] == {"law": "discrete Laplace", "scale": "3/2"}
    assert told["notes"][0].startswith("M_c^r+dp") and told["loss"]["epsilon"] == 2


def test_a_release_is_charged_and_checked(released: Path, tmp_path: Path) -> None:
    shown = printed("ledger", "show", tmp_path / "budget.ledger")
    assert "person, of group sizes, join-leave" in shown and "epsilon 2" in shown
    assert "as many groups as there are publicly, 3,000" in printed("check", released)


def test_what_the_ledger_does_not_cover_is_refused(released: Path, tmp_path: Path) -> None:
    charged = ("--out", tmp_path / "more", "--ledger", tmp_path / "budget.ledger", "--dataset", "homes")
    assert run("release", tmp_path / "plan.toml", *charged).code == 3 and not (tmp_path / "more").exists()


def test_queries_and_derived_tables(released: Path) -> None:
    assert printed("query", released) == "3000\n"
    told = run("query", released, "--by", "place.state")
    assert told.out.splitlines()[0].split() == ["place.state", "count", "lower", "upper"]
    assert told.err == "A size of 3 stands for that or more.\n"
    means = printed("query", released, "--derived", "mean-size", "--by", "place.county", "--json")
    assert [row["place.county"] for row in json.loads(means)["rows"]] == ["a1", "a2", "b1"]
    people = printed("query", released, "--derived", "people", "--csv").splitlines()
    assert people[0] == "people,lower,upper" and int(people[1].split(",")[0]) > 0
    table = printed("query", released, "--derived", "cumulative", "--by", "place.state").splitlines()
    assert table[0].split() == ["place.state", "size", "groups", "lower", "upper"] and "3 or more" in table[4]
    assert run("query", released, "--derived", "people", "--limit", "3").code == 2


def test_a_size_is_asked_for_with_or_without_the_zeros_of_its_code(write: Write, tmp_path: Path) -> None:
    plan = write()
    text = plan.read_text(encoding="utf-8")
    plan.write_text(re.sub(r"largest = \d+", "largest = 12", text), encoding="utf-8")
    assert run("release", plan, "--out", tmp_path / "out").code == 0
    for level in ("size", "size.size"):
        short, long = (run("query", tmp_path / "out", f"{level}={code}", "place.state=a") for code in ("1", "01"))
        assert short.code == 0 and short.out == long.out and int(short.out) > 0
    assert "no code or name '13'" in run("query", tmp_path / "out", "size=13").err


def test_what_is_derived_of_one_place_has_the_interval_of_its_row(released: Path) -> None:
    for derived in ("people", "mean-size", "share-of-one", "cumulative"):
        for level, code in (("place.state", "a"), ("place.county", "a2")):
            asked = ("query", released, "--derived", derived)
            every = json.loads(printed(*asked, "--by", level, "--json"))["rows"]
            row = [{name: row[name] for name in row if name != level} for row in every if row[level] == code]
            assert json.loads(printed(*asked, f"{level}={code}", "--json"))["rows"] == row
            assert {"lower", "upper"} <= row[0].keys()
            some = json.loads(printed(*asked, f"{level}={code}", "--by", level, "--json"))["rows"]
            assert some == [one for one in every if one[level] == code]


@pytest.mark.parametrize(
    "conditions", [("size=1",), ("place.state=a", "size=1"), ("place.county=a1", "--by", "place.state")]
)
def test_what_is_derived_of_a_part_of_a_place_says_why_it_has_no_interval(
    conditions: tuple[str, ...], released: Path
) -> None:
    told = run("query", released, "--derived", "people", *conditions)
    assert "lower" not in told.out and "There is no interval: the conditions ask for some sizes" in told.err


def test_a_steward_compares_with_the_truth(released: Path, tmp_path: Path) -> None:
    told = run("check", released, "--truth", tmp_path / "sizes.csv", "--plan", tmp_path / "plan.toml", "--json")
    levels = json.loads(told.out)["errors"]["levels"]
    assert [level["name"] for level in levels] == ["total", "size", "place.state", "place.county"]
    assert levels[0]["largest"] == 0


def test_records_of_groups_are_exported(released: Path, tmp_path: Path) -> None:
    done = run("export", released, "--to", "records", "--out", tmp_path / "groups.csv")
    assert done.code == 0
    assert len((tmp_path / "groups.csv").read_text(encoding="utf-8").splitlines()) == 3001


def test_the_example_runs_as_it_is(households: Path) -> None:
    made = run("release", households / "plan.toml", "--out", households / "out", "--json")
    told = json.loads(made.out)
    assert told["total"] == 4000 and told["private"]
    assert run("check", households / "out").code == 0


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("county,persons,homes\na1,-1,3000\n", "row 1: the size '-1' is negative"),
        ("county,persons,homes\nzz,1,3000\n", "row 1: 'zz' is not a county code"),
        ("county,persons,homes\na1,1,29\n", "the table has 29 groups"),
        ("county,homes\na1,29\n", "there is no column 'persons'"),
    ],
)
def test_bad_tables_are_refused_and_nothing_is_spent(write: Write, tmp_path: Path, table: str, message: str) -> None:
    path, ledger = write(), tmp_path / "budget.ledger"
    (tmp_path / "sizes.csv").write_text(table, encoding="utf-8")
    run("ledger", "create", ledger, "--epsilon", "3")
    told = run("release", path, "--out", tmp_path / "out", "--ledger", ledger, "--dataset", "homes")
    assert told.code == 2 and message in told.err
    assert "Nothing was charged yet." in printed("ledger", "show", ledger)


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "plan.toml", "--total", "3000"),
        ("ask", "plan.toml", "--where", "place.state=a", "--ledger", "budget.ledger"),
        ("release", "plan.toml", "--out", "more", "--twin", "sizes.csv"),
    ],
)
def test_what_is_only_for_top_down_counts_refuses_a_plan_for_groups(
    write: Write, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    write()
    said(["ledger", "create", "budget.ledger", "--epsilon", "3"], tmp_path)
    told = said(arguments, tmp_path)
    assert told.code == 2 and "for group sizes" in told.err
    assert "Nothing was charged yet." in printed("ledger", "show", tmp_path / "budget.ledger")


def test_the_smallest_loss_for_a_target_is_found_and_written(write: Write, tmp_path: Path) -> None:
    asked = ("plan", write(), "--target", "place.county=10", "--write", tmp_path / "answer.toml", "--json")
    told = json.loads(printed(*asked))
    chosen = read_plan(tmp_path / "answer.toml").plan
    assert float(chosen.loss.epsilon or 0) == told["answer"]["loss"]["epsilon"] > 0
    assert chosen.workload.measured[-1][1].margin(Fraction(5, 100)) <= 10


@pytest.mark.parametrize("form", ["cumulative", "direct"])
def test_a_target_a_grid_and_the_plan_mean_the_same_by_plus_or_minus_one(
    form: str, write: Write, tmp_path: Path
) -> None:
    plan = write()
    text = plan.read_text(encoding="utf-8")
    plan.write_text(text.replace("[groups]", f'[groups]\nform = "{form}"'), encoding="utf-8")
    answer = tmp_path / "answer.toml"
    told = json.loads(printed("plan", plan, "--target", "place.county=10", "--write", answer, "--json"))["answer"]
    expected = {row["name"]: row["margin"] for row in told["levels"]}
    shown = {row["name"]: row["margin"] for row in json.loads(printed("plan", answer, "--json"))["levels"]}
    assert expected == {name: shown[name] for name in expected} and expected["place.county"] == 10
    epsilon = told["loss"]["epsilon"]
    grid = json.loads(printed("plan", answer, "--epsilon-grid", str(epsilon), "--json"))["grid"]
    assert {row["name"]: row["margin"] for row in grid} == shown
    assert "± one, 95%" in printed("plan", answer)


def test_errors_at_several_epsilons_are_shown(write: Write) -> None:
    rows = json.loads(printed("plan", write(), "--epsilon-grid", "0.5,2", "--json"))["grid"]
    margins = {(row["name"], row["epsilon"]): row["margin"] for row in rows}
    assert margins["place.county", 2.0] < margins["place.county", 0.5]
