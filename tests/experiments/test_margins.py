"""The study of margins on a made-up table: what is run, how targets are judged, and the page that is written."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import treetop as tt
from experiments.kit.cases import DOCS, Table
from experiments.kit.runs import Kept
from experiments.margins import page
from experiments.margins.__main__ import command, write
from experiments.margins.measure import (
    ADVISED,
    BEFORE,
    EACH,
    LOWER,
    NONE,
    PAPER,
    VARIANTS,
    Depths,
    Study,
    Variant,
    study,
)
from experiments.margins.targets import EPSILON, TARGETS
from treetop.counts.counts import Counts

RUNS = 3


def tiny() -> Table:
    """A hundred and twenty places in three parts, and trips between one pair in eight."""
    codes = [f"{part}{place:02}" for part in "abc" for place in range(40)]
    places = tt.Hierarchy.from_prefixes(codes, widths=[1], levels=["part", "place"])
    spine = tt.Spine.destination_first(origin=places, destination=places)
    rng = np.random.default_rng(3)
    leaves, count = rng.integers(0, len(codes), (2, 2_000)), rng.zipf(1.5, 2_000).clip(max=5_000)
    return Table("new-york", "Tiny", spine, Counts.from_leaves(spine, list(leaves), count))


@pytest.fixture(scope="module")
def found() -> Study:
    return study(tiny(), RUNS, epsilons=(EPSILON,))


def changed(study: Study, variant: Variant, depths: Depths, factor: float) -> Study:
    """A made-up study: what a variant measured of one table is a factor of what 0.2.0 did, in every run."""
    at, base = study.depths.index(depths), study.found[EPSILON, BEFORE]
    runs = tuple(
        tuple(
            replace(row, mean=factor * base[number][at].mean) if place == at else row for place, row in enumerate(run)
        )
        for number, run in enumerate(study.found[EPSILON, variant])
    )
    return replace(study, found={**study.found, (EPSILON, variant): runs})


def test_every_variant_is_a_plan_that_anybody_can_make() -> None:
    table = tiny()
    plans = {variant: variant.plan(table, 1.0) for variant in VARIANTS}
    before, default = plans[BEFORE], plans[EACH]
    assert before.margins == "none" and before.loss == tt.Loss(epsilon=1.0, delta=1e-8, accounting="zcdp")
    assert default.digest == tt.Plan(table.spine, default.unit, tt.Loss(epsilon=1.0, delta=1e-8)).digest
    noises = [plans[one].levels[-1].law.standard_deviation for one in (PAPER, BEFORE, NONE)]
    assert noises == sorted(noises, reverse=True), "each accounting needs less noise than the one before"
    assert plans[LOWER].repair == plans[ADVISED].repair == "least-squares"
    assert plans[ADVISED].workload != plans[LOWER].workload


def test_margins_and_levels_are_measured_in_every_variant(found: Study) -> None:
    assert [found.name(depths) for depths in found.depths] == [
        "destination part", "destination place", "origin part", "origin place", "destination part × origin part",
        "destination place × origin part", "destination place × origin place",
    ]  # fmt: skip
    for variant in VARIANTS:
        for depths in found.depths:
            own = found.coverage(EPSILON, variant, depths)
            if own.nodes:  # the advised plan may refine in another order
                assert own.nodes <= RUNS * found.codes(depths) and own.share is not None and own.share > 0.8
            assert 0 < found.mean(EPSILON, variant, depths) <= found.mean(EPSILON, variant, depths, "largest")
    origins = found.margins(found.second)[-1]
    assert found.coverage(EPSILON, EACH, origins).nodes == RUNS * 120
    widths = [found.coverage(EPSILON, variant, origins).width or 0 for variant in (BEFORE, EACH)]
    assert widths[0] > 3 * widths[1], "a total that is measured has an interval of its own"


def test_a_run_can_be_repeated(found: Study) -> None:
    again = study(tiny(), 1, epsilons=(EPSILON,), variants=(EACH,))
    assert again.found[EPSILON, EACH][0] == found.found[EPSILON, EACH][0]


Which = Callable[[Study], Depths]
FLIPS: tuple[tuple[int, Variant, Which, float], ...] = (
    (0, EACH, lambda one: one.margins(one.second)[-1], 1 / 4),
    (1, EACH, lambda one: one.margins(one.second)[-1], 1 / 10),
    (2, EACH, lambda one: one.margins(one.first)[-1], 1.0),
    (3, EACH, lambda one: one.margins(one.first)[0], 2.0),
    (4, EACH, lambda one: one.leaves, 1.0),
    (5, ADVISED, lambda one: one.leaves, 1 / 1.4),
)


TURNED = {"margins.reached"}
"""The verdicts that runs of this module turn."""


@pytest.mark.parametrize(("number", "variant", "which", "goal"), FLIPS)
def test_a_verdict_follows_from_the_runs(
    found: Study, number: int, variant: Variant, which: Which, goal: float
) -> None:
    target = TARGETS[number]
    for factor, verdict in ((0.99 * goal, "met"), (1.01 * goal, "missed")):
        made_up = changed(found, variant, which(found), factor)
        (judged,) = (one for one in target.judged([made_up]) if one.depths == which(found))
        assert judged.verdict == page.reached([judged]) == verdict
        line = next(line for line in page.page([made_up]).splitlines() if line.startswith(f"| {target.title} | **"))
        assert f"**{verdict}**" in line and ("Tiny" in line) == (verdict == "missed")


def test_every_target_has_a_run_that_turns_it() -> None:
    assert [number for number, *_ in FLIPS] == list(range(len(TARGETS)))
    assert page.reached([]) == "not tried"


def test_what_chance_could_explain_is_not_resolved(found: Study) -> None:
    at, runs = found.depths.index(found.leaves), found.found[EPSILON, BEFORE]
    noisy = tuple(
        (*run[:at], replace(run[at], mean=factor * run[at].mean))
        for run, factor in zip(runs, (0.9, 1.05, 1.1), strict=True)
    )
    (judged,) = TARGETS[4].judged([replace(found, found={**found.found, (EPSILON, EACH): noisy})])
    assert judged.verdict == "not resolved"


def test_targets_are_for_the_tables_that_they_name(found: Study) -> None:
    other = replace(found, table=replace(found.table, name="other"))
    assert not TARGETS[1].judged([other]) and TARGETS[0].judged([other])
    rows = found.table.truth
    sparse = Counts(tuple(key[:100] for key in rows.keys), rows.before[:101])
    assert TARGETS[5].judged([found]) and not TARGETS[5].judged(
        [replace(found, table=replace(found.table, truth=sparse))]
    )


def test_runs_are_kept_and_those_of_another_plan_are_not_taken_for_them(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    first = study(tiny(), 1, Kept(file), (EPSILON,), (EACH, LOWER))
    again = study(tiny(), 1, Kept(file), (EPSILON,), (EACH, LOWER))
    assert again.found == first.found and len(file.read_text().splitlines()) == 2
    alone = study(tiny(), 0, Kept(file), (EPSILON,), (EACH, NONE))
    assert alone.found == {(EPSILON, EACH): first.found[EPSILON, EACH], (EPSILON, NONE): ()}
    other = replace(EACH, margins="none")
    assert study(tiny(), 1, Kept(file), (EPSILON,), (other,)).found[EPSILON, other] != first.found[EPSILON, EACH]


def test_the_page_says_how_many_runs_there_were(found: Study) -> None:
    fewer = replace(found, found={**found.found, (EPSILON, LOWER): found.found[EPSILON, LOWER][:1]})
    assert page.runs([found]) == "3 runs each"
    assert page.runs([fewer]) == "3 runs each; 1 of Tiny, each, lower-error, at ε = 1"


def test_every_number_is_written_for_programs(found: Study, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    assert len(write([found], tmp_path)) == 4
    with (tmp_path / "results" / page.ALL).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(VARIANTS) * len(found.depths)
    own = next(row for row in rows if (row["variant"], row["counts"]) == ("each", "origin place"))
    assert float(own["mean_error"]) == pytest.approx(found.mean(EPSILON, EACH, (0, 2)), rel=1e-3)


def test_the_quick_study_needs_no_real_tables(tmp_path: Path) -> None:
    run = CliRunner().invoke(command, ["--quick", "--runs", "1", "--docs", str(tmp_path)])
    assert run.exit_code == 0, run.output
    text = (tmp_path / "results" / "margins.md").read_text()
    assert "made up: random, sparse" in text and "skipped" not in run.output
    assert (DOCS / "results" / "margins.md").is_file()
