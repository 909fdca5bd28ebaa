"""The study of the joint fit on a small made-up table: what is measured, and how verdicts turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.joint_fit import page
from experiments.joint_fit.__main__ import command
from experiments.joint_fit.measure import AT, EPSILONS, All, Errors, Held, Study, study
from experiments.joint_fit.tables import READERS, Records, made_up, taxi
from experiments.kit.cases import DATA


@pytest.fixture(scope="module")
def found() -> Study:
    return study(made_up(), 2, EPSILONS)


def test_every_stage_is_nearer_to_the_truth(found: Study) -> None:
    for epsilon in EPSILONS:
        measured, combined, fitted, whole = (
            found.mean(epsilon, stage, "two") for stage in ("measured", "combined", "fitted", "whole")
        )
        assert combined < measured and fitted < 1.05 * combined and whole < 1.1 * fitted + 0.3
    assert np.isnan(found.mean(1.0, "measured", "three")) and np.isnan(found.mean(1.0, "mbi", "two"))


def test_intervals_are_counted_by_class_and_are_as_narrow_as_they_can_be(found: Study) -> None:
    measured = [one for one in found.held if (one.what, one.by) == ("measured", "true")]
    assert sum(one.number for one in measured) == 2 * (5 + 4 + 4 + 3 + 20 + 20 + 15 + 16 + 12 + 12)
    assert sum(one.truth for one in measured) > 0.9 * sum(one.number for one in measured)
    assert len(found.widths) == 10 and all(0.9 < one < 1.1 for one in found.widths)


TURNED = {
    *("joint_fit.targets", "joint_fit.patients", "joint_fit.beside", "joint_fit.rounding", "joint_fit.coverage"),
    *("joint_fit.outside", "joint_fit.width", "joint_fit.speed"),
}
"""The verdicts that runs of this module turn."""
YES, PART, NO, NOT = "Holds", "In part", "Does not hold", "Not run"


def run(name: str, whole: float, **others: float) -> Study:
    """Make up the study of a table whose errors are all the same at a stage."""
    errors = [
        Errors(epsilon, stage, *([value] * 8))  # type: ignore[arg-type]
        for epsilon in EPSILONS
        for stage, value in {"whole": whole, **others}.items()
    ]
    return Study(name, name, 1000, 100, 50, 3, True, 1, tuple(errors))


def held(truth: int, released: int) -> tuple[Held, ...]:
    return (Held("measured", "true", 0, 1000, truth, released),)


@pytest.mark.parametrize(
    ("judge", "turns"),
    [
        (page.targets, [(run("taxi", 0.1), YES), (run("taxi", 10), PART), (run("taxi", 100), NO), (run("x", 1), NOT)]),
        (page.patients, [(run("patients", 20), YES), (run("patients", 30), NO), (run("x", 1), NOT)]),
        (page.beside, [(run("x", 1.1, mbi=1), YES), (run("x", 1.3, mbi=1), NO), (run("x", 1), NOT)]),
        (page.rounding, [(run("x", 1, fitted=1), YES), (run("x", 1.1, fitted=1), NO), (run("x", 1), NOT)]),
        (page.width, [(replace(run("x", 1), widths=own), word)
                      for own, word in [((1.0, 1.1), YES), ((1.0, 1.2), PART), ((1.2,), NO), ((), NOT)]]),
        (page.coverage, [(replace(run("x", 1), held=held(own, 0)), word) for own, word in [(950, YES), (900, NO)]]),
        (page.outside, [(replace(run("x", 1), held=held(0, own)), word) for own, word in [(995, YES), (980, NO)]]),
    ],
)  # fmt: skip
def test_a_made_up_run_turns_each_verdict(judge: Callable[[All], str], turns: list[tuple[Study, str]]) -> None:
    assert [judge(All((one,))) for one, _ in turns] == [word for _, word in turns]


def test_a_made_up_run_turns_the_verdict_on_speed() -> None:
    taxi = replace(run("taxi", 1), seconds=(0.2, 0.2))
    found = [All((taxi,), 30.0), All((taxi,), 90.0), All((replace(taxi, seconds=(1.0,)),), 90.0), All((taxi,))]
    assert [page.speed(one) for one in found] == [YES, PART, NO, NOT]


def test_the_quick_command_writes_the_page(tmp_path: Path) -> None:
    said = CliRunner().invoke(command, ["--quick", "--runs", "1", "--docs", str(tmp_path)])
    assert said.exit_code == 0, said.output
    assert "## Do whole numbers cost little?" in (tmp_path / "results" / "joint-fit.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not (DATA / "od_nyc_taxi").is_dir(), reason="the taxi trips are not there")
def test_tables_of_taxi_trips_reach_their_errors() -> None:
    records = taxi(DATA)
    assert (records.truth.sum(), (records.truth > 0).sum()) == (360_000, 6_904)
    found = study(records, 1, [AT])
    assert found.mean(AT, "whole", "two") < 24 and found.mean(AT, "whole", "worst_two") < 36
    assert found.mean(AT, "whole", "lost") < 0.22 and found.mean(AT, "whole", "invented") < 0.29


@pytest.mark.skipif(not (DATA / "raw").is_dir(), reason="the real tables are not there")
def test_every_real_table_has_only_known_codes() -> None:
    def number(records: Records) -> int:
        return int(records.truth.sum())

    found = {read(DATA).name: number(read(DATA)) for read in READERS}
    assert found == {
        "taxi": 360_000, "taxi8": 360_000, "patients": 100_000, "deaths": 37_351, "hospital": 13_781,
        "census": 1_455_271,
    }  # fmt: skip
