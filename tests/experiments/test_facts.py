"""The study of facts on a made-up table: it measures with and without, and writes what its page shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.facts import page
from experiments.facts.__main__ import command
from experiments.facts.measure import Study, measured, plan_of, study
from experiments.facts.tables import made_up, tables
from experiments.kit.cases import DOCS
from experiments.kit.runs import key, release


@pytest.fixture(scope="module")
def found() -> Study:
    return study(made_up(), runs=4, epsilons=(1.0,))


def test_what_is_exact_has_no_error_and_what_is_impossible_is_not_invented(found: Study) -> None:
    assert [found.error(1.0, True, level) for level in (0, 1)] == [0, 0]
    assert found.error(1.0, False, 0) > 0 and found.better(1.0, 0) is None
    assert found.nodes == (4, 4, 24, 144) and found.public == (4, 16, 96, 576)
    assert found.mean(1.0, True, "invented") <= found.mean(1.0, False, "invented")
    better = found.better(1.0, 3)
    assert better is not None and better > 1


def test_measurements_are_counted(found: Study) -> None:
    known = made_up()
    plan = plan_of(known, 1.0, True)
    draws = list(measured(plan, release(plan, known.table, key("draws"))))
    assert draws[:3] == [0, 0, 24] and 0 < draws[3] <= 144
    assert found.mean(1.0, True, "draws") < found.mean(1.0, False, "draws")


def test_the_page_says_what_was_measured(found: Study) -> None:
    told = page.page([found])
    assert "Exact with facts: destination district, destination district × origin district." in told
    assert f"errors of leaves are {found.better(1.0, 3):.2f} times smaller" in told
    worse = {at: found.runs[1.0, not at[1]] for at in found.runs}
    assert "times larger" in page.page([replace(found, runs=worse)])


TURNED = {"facts.leaves"}
"""The verdicts that runs of this module turn."""


def test_a_made_up_run_turns_the_verdict(found: Study) -> None:
    swapped = replace(found, runs={at: found.runs[1.0, not at[1]] for at in found.runs})
    same = replace(found, runs=dict.fromkeys(found.runs, found.runs[1.0, True]))
    words = [page.leaves(one, 1.0).split()[-1] for one in (found, swapped, same)]
    assert words == ["smaller", "larger", "same"]


def test_the_quick_study_needs_no_real_tables(tmp_path: Path) -> None:
    run = CliRunner().invoke(command, ["--quick", "--runs", "1", "--docs", str(tmp_path)])
    assert run.exit_code == 0, run.output
    assert (tmp_path / "results" / "facts.md").is_file() and (tmp_path / "images" / "facts_gain.png").is_file()
    assert [known.name for known in tables(None)] == ["made-up"]
    assert (DOCS / "results" / "facts.md").is_file()
