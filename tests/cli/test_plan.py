"""`treetop plan`: accuracy and cost before private data is read."""

from __future__ import annotations

import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from tests.commands import Command
from tests.everyday import plan_file
from treetop import Loss, cli
from treetop.privacy import epsilon_from_rho

run = Command.of("plan")


@pytest.fixture
def plan(trips: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(cli.COMMANDS, "plan", "Accuracy per level, noise and cost; reads no private data.")
    (trips / "trips.csv").unlink()  # there is no private table to read
    (trips / "plan.toml").write_text(plan_file(data='source = "there-is-no-such-table.parquet"\n'))
    return trips / "plan.toml"


def change(plan: Path, old: str, new: str) -> None:
    assert old in plan.read_text()
    plan.write_text(plan.read_text().replace(old, new))


def test_there_is_one_row_a_level_in_spine_order(plan: Path) -> None:
    names = ["total", "destination.region", "origin.region", "destination.town", "origin.town"]
    lines = run(plan).splitlines()
    rows = [re.split("  +", line.strip()) for line in lines if line[:5].strip().isdigit()]
    assert [row[1] for row in rows[:5]] == names
    beside = ["margin origin.region", "margin origin.town", "margin destination.town"]
    assert sorted(row[1] for row in rows[5:]) == sorted(beside)
    assert [level["name"] for level in run.json(plan)["levels"]] == names


def test_the_table_and_the_json_have_the_same_numbers(plan: Path) -> None:
    lines = [line for line in run(plan).splitlines() if line[:5].strip().isdigit()]
    rows = {row[1]: row for row in (re.split("  +", line.strip()) for line in lines)}
    told = run.json(plan)
    for level in (*told["levels"][1:], *told["margins"]):
        row = rows[level["name"]]
        assert row[2] == level["title"]
        assert int(row[3]) == level["nodes"]
        assert row[4] == f"{level['share']:.1%}"
        assert row[5] == f"{level['noise']:.4g}"
        assert [int(cell) for cell in row[6:]] == [level["margin"]] and level["bound"] is None


def test_the_total_cost_is_given_as_rho_and_as_epsilon_at_delta(plan: Path) -> None:
    loss = run.json(plan)["loss"]
    assert (loss["epsilon"], loss["delta"], loss["delta_is_stated"]) == (1, 1e-8, True)
    assert loss["accounting"] == "exact" and loss["epsilon_by_rho"] == epsilon_from_rho(Fraction(loss["spent"]), 1e-8)
    told = run(plan)
    assert "Alone, this release costs epsilon 1 at delta 1e-08 (exact accounting, Gaussian noise)." in told
    said = re.search(r"count it as epsilon \S+ \(rho (\S+), zero-concentrated\)", told)
    assert said is not None and 0 <= Fraction(said[1]) / Fraction(loss["spent"]) - 1 < 1e-5  # six digits, rounded up
    change(plan, "delta = 1e-8", 'delta = 1e-8\naccounting = "zcdp"')
    loss = run.json(plan)["loss"]
    assert loss["rho"] == float(Loss(epsilon=1, delta=1e-8).budget) and "accounting" not in loss
    assert "Rho 0.0172054 (zero-concentrated), which is epsilon 1 at delta 1e-08" in run(plan)


@pytest.mark.parametrize("epsilon", ["1e10", "1e23", "1e60"])
@pytest.mark.parametrize("command", ["plan", "release"])
def test_an_epsilon_that_leaves_no_noise_is_refused_before_anything_is_spent(
    command: str, epsilon: str, plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(plan, "epsilon = 1.0", f"epsilon = {epsilon}")
    with pytest.raises(SystemExit) as leaving:
        cli.main([command, str(plan), *(["--out", "out"] if command == "release" else [])])
    assert leaving.value.code == 2
    assert "and at most 1e+09 is accepted" in capsys.readouterr().err


def test_a_large_epsilon_is_kept_through_rho(plan: Path) -> None:
    change(plan, "epsilon = 1.0", "epsilon = 100000.0")
    assert "accounting" not in run.json(plan)["loss"]


def test_an_epsilon_that_is_no_binary_fraction_is_shown_as_it_was_written(plan: Path) -> None:
    change(plan, "epsilon = 1.0", 'accounting = "zcdp"\nepsilon = 0.1')
    told = run(plan)
    assert "which is epsilon 0.1 at delta 1e-08" in told
    assert "one trip (1 record)                                      0.1 " in told


def test_the_loss_is_told_for_a_person_with_many_trips(plan: Path) -> None:
    told = run.json(plan)
    spent, (alone, *others) = Fraction(told["loss"]["spent"]), told["meaning"]
    assert [row["records"] for row in told["meaning"]] == [1, 1, 5, 10, 50]
    assert alone["epsilon"] == 1
    for row in others:
        assert row["epsilon"] == epsilon_from_rho(row["units"] ** 2 * spent, 1e-8)
    assert re.search(r"a person with 10 such trips \(a week there and back\) +13\.1 ", run(plan))


def test_a_rho_without_delta_is_compared_at_one_and_says_so(plan: Path) -> None:
    change(plan, "epsilon = 1.0\ndelta = 1e-8", "rho = 0.5")
    assert run.json(plan)["loss"]["delta_is_stated"] is False
    assert "the plan states no delta" in run(plan)


def test_a_pure_loss_adds_up_over_records(plan: Path) -> None:
    change(plan, "delta = 1e-8", "")
    told = run.json(plan)
    assert (told["loss"]["rho"], told["loss"]["delta"], told["loss"]["epsilon"]) == (None, None, 1)
    assert [row["epsilon"] for row in told["meaning"]] == [1, 5, 10, 50]
    assert "pure differential privacy; Laplace noise" in run(plan)


def test_a_unit_with_several_records_also_tells_about_one_record(plan: Path) -> None:
    change(plan, 'entity = "trip"\ncontributions = 1', 'entity = "person"\ncontributions = 4')
    told = run.json(plan)
    one, whole, *groups = told["meaning"]
    # Without a cap per node four records move the counts four times as far as one.
    assert one["rho"] == pytest.approx(whole["rho"] / 16)
    assert one["epsilon"] < whole["epsilon"] == 1
    assert (one["who"], whole["who"]) == ("one record", "one person (up to 4 records)")
    assert [group["who"] for group in groups] == ["5 persons together", "10 persons together", "50 persons together"]


def test_an_exact_total_is_told_and_a_measured_one_is_not(plan: Path) -> None:
    assert any("the total" in thing for thing in run.json(plan)["exact"])
    assert "- the total number of records" in run(plan)
    change(plan, '"replace"', '"add-remove"')
    assert not any("the total" in thing for thing in run.json(plan)["exact"])


def test_more_confidence_gives_wider_margins(plan: Path) -> None:
    usual, sure = run.json(plan), run.json(plan, "--confidence", "0.999")
    assert sure["levels"][1]["margin"] > usual["levels"][1]["margin"]
    assert "99.9%" in run(plan, "--confidence", "0.999")


def test_an_impossible_confidence_is_a_mistake_in_the_call(plan: Path) -> None:
    assert "between 0 and 1" in run.fails(plan, "--confidence", "95")


def test_an_incomplete_plan_is_refused_with_exit_code_3(plan: Path) -> None:
    change(plan, 'entity = "trip"', '# entity = "trip"')
    assert "unit.entity" in run.fails(plan, code=3)


@pytest.mark.parametrize(
    ("old", "new", "message"), [("[loss]", "[los]", "did you mean 'loss'?"), ("1.0", "= 1", "line 17, column 11")]
)
def test_a_broken_plan_is_a_mistake_with_exit_code_2(plan: Path, old: str, new: str, message: str) -> None:
    change(plan, old, new)
    assert message in run.fails(plan)


def test_a_missing_plan_is_a_mistake_with_exit_code_2(plan: Path) -> None:
    assert "no such file" in run.fails(plan.parent / "other.toml")


@pytest.mark.parametrize("module", ["plan", "inspect"])
def test_the_help_of_a_command_loads_no_heavy_library(module: str) -> None:
    heavy = "{'numpy', 'pyarrow', 'duckdb', 'rich', 'numba', 'flint'}"
    program = f"import sys, treetop.cli.{module}; print(*({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_a_margin_that_will_not_be_kept_is_told_with_the_error_to_expect(plan: Path) -> None:
    more = "".join(f'[attributes.{name}]\nvalues = ["{name}1", "{name}2", "{name}3"]\n' for name in "xyz")
    change(plan, "[spine]\n", f'{more}[spine]\nmargins = ["x * z", "y * z"]\n')
    change(plan, '"destination-first"', '["destination.region", "origin.region", "x", "y", "z"]')
    (told,) = run.json(plan)["not_kept"]
    assert told["name"] == "margin y * z" and 0 < told["least"] < told["most"]
    (sentence,) = [one for one in run.json(plan)["warnings"] if "margin y * z will not be kept" in one]
    assert f"± {told['margin']:,} of its own measurement does not apply" in sentence
    assert f"Warning: {sentence}" in run(plan)
    change(plan, '["x * z", "y * z"]', '["x * z"]')
    assert run.json(plan)["not_kept"] == [] and "will not be kept" not in run(plan)
