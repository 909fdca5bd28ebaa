"""The study of designed plans on a made-up table: it measures, judges and writes what its page shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.kit.cases import DOCS, made_up
from experiments.plan_design import page
from experiments.plan_design.__main__ import command
from experiments.plan_design.measure import WAYS, Study, Worth, plans, study, summed_from, tables


@pytest.fixture(scope="module")
def found() -> Study:
    return study(made_up("random-complete"), runs=12)


def test_expected_errors_are_measured_where_counts_are_not_small(found: Study) -> None:
    claimed = [one for one in found.outcomes if one.is_claimed]
    # Tables of a few cells have means that vary by chance, and not all their cells are independent.
    assert len(claimed) > 20 and sum(not one.is_close for one in claimed) <= 2
    assert all(0.7 < one.ratio < 1.3 for one in claimed)
    leaves = found.by("advised")[-1]
    assert not leaves.is_claimed and leaves.ratio < 0.9


def test_a_sum_is_judged_by_what_it_is_summed_from() -> None:
    table = made_up("random-complete")
    without, with_margins = (plan for _, plan in list(plans(table))[:2])
    assert summed_from(without, (0, 4)) == (4, 4) and summed_from(without, (4, 0)) == (4, 3)
    assert summed_from(with_margins, (0, 4)) == (0, 4) and summed_from(with_margins, (4, 0)) == (4, 0)


def test_advice_makes_leaves_better(found: Study) -> None:
    without, with_margins, advised = (found.by(way)[-1].measured for way in WAYS)
    assert advised < with_margins < 1.1 * without


def test_what_is_missed_is_told(found: Study) -> None:
    wrong = replace(found.outcomes[0], measured=2 * found.outcomes[0].expected, large=1.0)
    told = page.page([replace(found, outcomes=(wrong, *found.outcomes[1:]))])
    assert "Where they were further off:" in told and f"| {wrong.counts} |" in told and "| 2.00 |" in told
    assert not Worth(1.0, "worse than zeros", 10.0, 0.1, 0.9).is_true
    assert not Worth(1.0, "better than zeros if crowded", 10.0, 0.6, 1.1).is_true
    assert Worth(1.0, "better than zeros if crowded", 10.0, 0.4, 1.1).is_true


TURNED = {"plan_design.expected", "plan_design.better_than_zeros"}
"""The verdicts that runs of this module turn."""


def test_a_made_up_run_turns_each_verdict(found: Study) -> None:
    def measured(times: float) -> Study:
        made = tuple(replace(one, measured=times * one.expected, large=1.0) for one in found.outcomes)
        return replace(found, outcomes=made)

    assert [page.expected([measured(times)]) for times in (1.0, 2.0)] == ["Holds", "Does not hold"]
    assert page.expected([replace(found, outcomes=())]) == page.better_than_zeros([]) == "Not run"
    worths = [Worth(1.0, "worse than zeros", 10.0, 0.1, error) for error in (1.1, 0.9)]
    assert [page.better_than_zeros([replace(found, worths=(one,))]) for one in worths] == ["Holds", "Does not hold"]


def test_the_quick_study_needs_no_real_tables(tmp_path: Path) -> None:
    run = CliRunner().invoke(command, ["--quick", "--runs", "1", "--docs", str(tmp_path)])
    assert run.exit_code == 0, run.output
    assert (tmp_path / "results" / "plan-design.md").is_file() and "skipped" not in run.output
    assert [table.name for table in tables(None)] == ["random-complete"]
    assert (DOCS / "results" / "plan-design.md").is_file()
