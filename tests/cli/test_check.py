"""`treetop check`, as a person runs it: a line for what was verified, exit code 1 with the finding, errors fenced."""

from __future__ import annotations

import builtins
import csv
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import treetop as tt
from tests.commands import said
from tests.everyday import plan_file
from treetop.cli import main

PLAN = plan_file(("epsilon = 1.0\ndelta = 1e-8", "rho = 2"), data='count = "flow"\n')
KEY = ("--testing-key", "09" * 32)
FENCE = "for the steward only, not for release"
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def out(trips: Path, capsys: Captured) -> Path:
    """A release beside its plan and its private table; we are in their folder."""
    (trips / "plan.toml").write_text(PLAN)
    (trips / "trips.csv").write_text("home,work,flow\nn1,n1,40\nn1,s1,3\ns2,s1,7\ns2,s2,150\n")
    main(["release", "plan.toml", "trips.csv", "--out", "out", "--nodes", "--quiet"])
    capsys.readouterr()
    return trips / "out"


def check(*words: object) -> str:
    done = said(("check", *words))
    assert (done.code, done.err) == (0, "")
    return done.out


def leave(*words: object) -> tuple[int, str, str]:
    done = said(("check", *words))
    assert done.code != 0
    return done.code, done.out, done.err


def test_there_is_a_line_for_everything_verified(out: Path) -> None:
    lines = check("out").splitlines()
    assert all(line.startswith("✓ ") for line in lines[:-1])
    assert len(lines) > 10
    assert lines[-1] == "All checks passed: out matches its card."
    assert FENCE not in "\n".join(lines)


def test_a_change_is_named_and_ends_with_1(out: Path) -> None:
    text = (out / "plan.toml").read_text()
    (out / "plan.toml").write_text(text.replace("rho = 2", "rho = 1"))
    code, output, _ = leave("out")
    assert code == 1
    assert "✗ plan.toml states the same plan" in output
    assert "plan.toml: loss.rho is 1, but the card's plan has 2" in output
    assert output.endswith("out does NOT match its card: do not rely on it.\n")


def test_json_has_every_check_and_its_findings(out: Path) -> None:
    report = json.loads(check("out", "--json"))
    assert report["verified"] is True
    assert all(one["findings"] == [] for one in report["checks"])
    (out / "extra").touch()
    code, output, _ = leave("out", "--json")
    report = json.loads(output)
    assert (code, report["verified"]) == (1, False)
    assert ["extra is in the folder, but not in the card"] in [one["findings"] for one in report["checks"]]


def test_a_release_with_a_testing_key_is_called_not_private(out: Path) -> None:
    main(["release", "plan.toml", "trips.csv", "--out", "other", "--quiet", *KEY])
    assert "NOT PRIVATE" in check("other")


def test_with_the_truth_the_errors_stand_behind_a_fence(out: Path) -> None:
    output = check("out", "--truth", "trips.csv")
    verified, first, second, _ = output.split(f"──── {FENCE} ────")[0], *output.split(f"──── {FENCE} ────")
    assert "error" not in verified.replace("errors", "")
    head = next(line for line in second.splitlines() if "largest error" in line)
    assert head.split()[-6:] == ["invented", "by", "count", "lost", "by", "count"]
    assert max(map(len, second.splitlines())) <= 120
    assert "5–10" in second
    assert first == verified
    report = json.loads(check("out", "--truth", "trips.csv", "--json"))
    assert report["errors"]["fence"] == FENCE
    total, region, *_ = report["errors"]["levels"]
    assert (total["name"], total["largest"]) == ("total", 0)
    assert region["largest"] < 20
    assert {"false_mass", "lost_mass", "root_mean_square", "released_nodes", "true_nodes"} <= region.keys()
    assert (region["negative"], region["fractional"]) == (0, 0)
    assert [bias["size"] for bias in region["biases"]] == ["0", "1–4", "5–10", "11–24", "25–99", "100+"]


def test_with_the_truth_margins_stand_beside_levels_and_both_are_called_by_what_they_count(out: Path) -> None:
    shown = check("out", "--truth", "trips.csv").split(FENCE)[1]
    assert "destination region × origin region" in shown and "\norigin region " in shown
    errors = json.loads(check("out", "--truth", "trips.csv", "--json"))["errors"]
    release = tt.Release.load("out")
    names = [f"margin {table.margin.name}" for table in release.margins]
    assert names and [row["name"] for row in errors["margins"]] == names
    truth: Counter[str] = Counter()
    for row in csv.DictReader(Path("trips.csv").read_text().splitlines()):
        truth[row["home"]] += int(row["flow"])
    off = [abs(row["count"] - truth.pop(row["origin.town"], 0)) for row in release.table("origin.town").to_pylist()]
    assert errors["margins"][names.index("margin origin.town")]["largest"] == max([*off, *truth.values()])


def test_the_columns_of_the_truth_come_from_the_card_the_plan_or_the_call(out: Path) -> None:
    expected = check("out", "--truth", "trips.csv", "--json")
    assert check("out", "--truth", "trips.csv", "--plan", "plan.toml", "--json") == expected
    Path("renamed.csv").write_text(Path("trips.csv").read_text().replace("home", "from").replace("flow", "n"))
    call = ("out", "--truth", "renamed.csv", "--column", "origin=from", "--count", "n", "--json")
    assert check(*call) == expected


def test_a_plot_is_saved_where_the_steward_says_but_never_in_the_folder(out: Path) -> None:
    check("out", "--truth", "trips.csv", "--plot", "errors.svg")
    assert FENCE in Path("errors.svg").read_text()
    for inside in ("out/errors.png", "out/../out/deep/errors.png"):
        code, _, message = leave("out", "--truth", "trips.csv", "--plot", inside)
        assert (code, "never write it into the release folder" in message) == (2, True)
    assert check("out")


def test_without_matplotlib_a_plot_is_refused_with_the_way_to_get_it(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    code, _, message = leave("out", "--truth", "trips.csv", "--plot", "errors.png")
    assert (code, "pip install 'treetop-dp[plot]'" in message) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent"], "not a release folder"),
        (["."], "not a release folder"),
        (["out", "--plot", "x.png"], "give --truth TABLE"),
        (["out", "--column", "a=b"], "--column is about the truth"),
        (["out", "--truth", "absent.csv"], "absent.csv"),
        (["out", "--truth", "trips.csv", "--column", "origin"], "as in --column origin=home"),
        (["out", "--truth", "trips.csv", "--column", "origin=hone"], "did you mean 'home'"),
        (["out", "--truth", "trips.csv", "--plan", "other.toml"], "other levels or hierarchies"),
        (["out", "--truth", "trips.csv", "--plot", "errors.nonsense"], "the plot cannot be written"),
    ],
)
def test_a_mistake_in_the_call_ends_with_2(arguments: list[str], message: str, out: Path) -> None:
    Path("other.toml").write_text(PLAN.replace("destination-first", "origin-first"))
    code, _, text = leave(*arguments)
    assert code == 2
    assert message in text
    assert "Traceback" not in text


def test_what_a_card_says_cannot_drive_the_terminal(out: Path) -> None:
    card = json.loads((out / "card.json").read_text())
    card["\x1b[2J"] = 1
    (out / "card.json").write_text(json.dumps(card))
    code, output, _ = leave("out")
    assert code == 1
    assert "\x1b[2J" not in output


@pytest.mark.parametrize("module", ["release", "check"])
def test_the_command_is_described_without_loading_anything_heavy(module: str) -> None:
    heavy = {"numpy", "numba", "pyarrow", "duckdb", "flint", "jinja2", "rich", "matplotlib"}
    program = f"import sys, treetop.cli.{module}; print(*({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_what_was_dropped_counts_as_error(out: Path, capsys: Captured) -> None:
    Path("plan.toml").write_text(PLAN + 'unknown = "drop"\n')
    Path("trips.csv").write_text("home,work,flow\nn1,n1,400\nn1 ,s1,300\n")
    release = ["release", "plan.toml", "trips.csv", "--out", "dropped", "--quiet", "--allow-dropped", *KEY]
    main(release)
    capsys.readouterr()
    told = json.loads(check("dropped", "--truth", "trips.csv", "--json"))["errors"]
    assert told["unknown"] == {"rows": 1, "records": 300, "dropped": 300}
    total = told["levels"][0]
    assert 250 < total["largest"] < 350
    assert all(level["lost_mass"] >= 300 / 700 for level in told["levels"][1:])
    shown = check("dropped", "--truth", "trips.csv")
    fenced = shown.split(FENCE)[1]
    assert "1 of 2 rows were dropped, which stand for 300 of 700 records (50.0%)." in fenced
    assert "would be known without the blanks around them" in fenced
    assert "What was dropped as unknown belongs to the true total" in fenced


@pytest.mark.parametrize(
    ("data", "table", "encoding"),
    [
        ('blank_lines = "skip"', "home,work,flow\nn1,n1,40\n\ns2,s1,7\n", "utf-8"),
        ('header = false\nnames = ["home", "work", "flow"]', "n1,n1,40\ns2,s1,7\n", "utf-8"),
        ("fields = { home = [1, 2], work = [3, 4], flow = [5, 6] }", "n1n140\ns2s1 7\n", "utf-8"),
        ('encoding = "utf-16"', "home,work,flow\nn1,n1,40\ns2,s1,7\n", "utf-16"),
    ],
)
def test_a_truth_that_takes_the_plan_to_read_says_so(
    data: str, table: str, encoding: str, out: Path, capsys: Captured
) -> None:
    Path("read.toml").write_text(PLAN + data + "\n")
    Path("read.txt").write_text(table, encoding=encoding)
    main(["release", "read.toml", "read.txt", "--out", "read", "--quiet", *KEY])
    capsys.readouterr()
    code, _, message = leave("read", "--truth", "read.txt")
    assert code == 2 and "as --plan" in message
    check("read", "--truth", "read.txt", "--plan", "read.toml")


@pytest.mark.parametrize("name", ["friendships", "users"])
def test_the_truth_of_a_graph_takes_the_plan(name: str, tmp_path: Path, capsys: Captured) -> None:
    graph = Path(__file__).parents[2] / "examples" / "graph"
    plan, made = str(graph / f"{name}.toml"), str(tmp_path / "made")
    main(["release", plan, "--out", made, "--quiet", *KEY])
    capsys.readouterr()
    truth = str(graph / ("edges.csv" if name == "friendships" else "nodes.csv"))
    code, _, message = leave(made, "--truth", truth)
    assert code == 2 and "made from a graph" in message and "as --plan" in message
    check(made, "--truth", truth, "--plan", plan)
