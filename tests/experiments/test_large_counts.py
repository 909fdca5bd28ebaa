"""The study of the largest counts: a small run writes its page, and made-up runs turn its verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.kit.verdicts import WORDS
from experiments.large_counts import page
from experiments.large_counts.__main__ import command
from experiments.large_counts.measure import VARIANTS, Run, Study, made_up, study

TURNED = {"large_counts.errors", "large_counts.biases", "large_counts.outside"}
"""The verdicts that runs of this module turn."""


def runs(bias: float, error: float, outside: float) -> Study:
    every = [
        Run(epsilon, variant, 1.0, 10.0, 0.0, 5.0, 0.1, 0.1)
        if variant != "default" or epsilon == 1.0
        else Run(epsilon, variant, bias, error, outside, 5.0, 0.1, 0.1)
        for epsilon in (0.1, 1.0)
        for variant in VARIANTS
        for _ in range(2)
    ]
    return Study(made_up(2, 3), tuple(every))


def test_a_made_up_run_turns_the_verdicts() -> None:
    judges = (page.biases, page.errors, page.outside)
    good, bad = runs(-0.5, 10.4, 0.01), runs(1.1, 10.6, 0.02)
    assert [WORDS[judge([good])] for judge in judges] == ["Holds"] * 3
    assert [WORDS[judge([bad])] for judge in judges] == ["In part"] * 3
    alone = replace(bad, runs=tuple(run for run in bad.runs if run.epsilon < 1))
    assert [WORDS[judge([alone])] for judge in judges] == ["Does not hold"] * 3


@pytest.mark.long
def test_the_quick_command_writes_the_page(tmp_path: Path) -> None:
    said = CliRunner().invoke(command, ["--quick", "--docs", str(tmp_path)])
    assert said.exit_code == 0, said.output
    assert "equal weights" in (tmp_path / "results" / "large-counts.md").read_text(encoding="utf-8")


def test_margins_cost_the_largest_counts_of_a_sparse_table_hardly_any_accuracy() -> None:
    found = study(made_up(), 3, (1.0,), ("no margins", "default"))
    assert page.errors([found]) is True and page.biases([found]) is True
