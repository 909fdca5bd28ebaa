"""The study of the joint fit on a small made-up table: what is measured, and how verdicts turn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.joint_fit import page
from experiments.joint_fit.__main__ import command
from experiments.joint_fit.measure import EPSILONS, Errors, Study, made_up, measured, study, taxi
from experiments.kit.cases import DATA
from treetop.fit import joint_fit


@pytest.fixture(scope="module")
def found() -> Study:
    return study(made_up(), 2, EPSILONS)


def test_every_stage_is_nearer_to_the_truth(found: Study) -> None:
    for epsilon in EPSILONS:
        measured_, combined, fitted, whole = (
            found.mean(epsilon, stage, "two") for stage in ("measured", "combined", "fitted", "whole")
        )
        assert combined < measured_ and fitted < 1.05 * combined and whole < 1.1 * fitted + 0.3
    assert np.isnan(found.mean(1.0, "measured", "three"))


TURNED = {"joint_fit.targets", "joint_fit.rounding"}
"""The verdicts that runs of this module turn."""


def test_a_made_up_run_turns_the_verdicts(found: Study) -> None:
    def with_figures(whole: float, fitted: float) -> Study:
        def changed(one: Errors) -> Errors:
            if one.stage != "whole":
                return replace(one, two=fitted)
            shares = {"invented": whole, "lost": whole}
            return Errors(one.epsilon, one.stage, whole, whole, whole, whole, whole, **shares)

        errors = [changed(one) for one in found.errors]
        return replace(found, errors=tuple(errors))

    words = [page.targets(with_figures(whole, 1.0)) for whole in (0.1, 10.0, 100.0)]
    assert words == ["Holds", "In part", "Does not hold"]
    assert [page.rounding(with_figures(1.0, fitted)) for fitted in (1.0, 0.5)] == ["Holds", "Does not hold"]


def test_the_quick_command_writes_the_page(tmp_path: Path) -> None:
    said = CliRunner().invoke(command, ["--quick", "--runs", "1", "--docs", str(tmp_path)])
    assert said.exit_code == 0, said.output
    assert "## Do whole numbers cost little?" in (tmp_path / "results" / "joint-fit.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not (DATA / "od_nyc_taxi").is_dir(), reason="the taxi trips are not there")
def test_tables_of_taxi_trips_reach_their_errors() -> None:
    records = taxi(DATA)
    assert (records.truth.sum(), (records.truth > 0).sum()) == (360_000, 6_904)
    counts = joint_fit(records.grid, measured(records, 1.0, 0)).counts
    pairs = [depths for depths in np.ndindex((2,) * 6) if sum(depths) == 2]
    errors = [np.abs(records.grid.sum_to(counts - records.truth, (1,) * 6, pair)).mean() for pair in pairs]
    assert np.mean(errors) < 24 and max(errors) < 36
