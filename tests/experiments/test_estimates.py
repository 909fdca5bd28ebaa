"""The study of estimates on small tables: what is run, how targets are judged, and the page that is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import treetop as tt
from experiments.estimates import page
from experiments.estimates.__main__ import NOISE, command, write
from experiments.estimates.closest import closest
from experiments.estimates.figures import BY_LEVEL, COLOURS, FIGURES
from experiments.estimates.measure import (
    BASELINE,
    CLOSEST,
    EXACT,
    LOWER,
    SETTINGS,
    Setting,
    Study,
    plan_of,
    study,
    tables,
    with_estimates,
)
from experiments.estimates.node import LARGE, Node, constructed_node
from experiments.estimates.reasons import conclusion, in_reach
from experiments.estimates.targets import difference, goals, judge, ratio
from experiments.kit.cases import DOCS, TRIP, Table, made_up
from experiments.kit.compared import Compared
from experiments.kit.pages import insert
from tests.pictures import colours_in
from treetop import Counts
from treetop.measure.measure import run_key
from treetop.noise import Key
from treetop.release.errors import measure_errors
from treetop.repair import chebyshev


@pytest.fixture(scope="module")
def studies() -> list[Study]:
    return [study(table, runs=4) for table in tables(None, quick=True)]


@pytest.fixture(scope="module")
def node() -> Node:
    return constructed_node(NOISE, draws=150)


@pytest.fixture(scope="module")
def written(studies: list[Study], node: Node, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The page of these and its pictures."""
    return write(studies, node, tmp_path_factory.mktemp("docs"))


def test_every_setting_is_run_as_often_with_noise_of_its_own(studies: list[Study]) -> None:
    for one in studies:
        assert set(one.runs) == set(SETTINGS)
        for setting, runs in one.runs.items():
            assert len({run[-1] for run in runs}) == 4, setting
            assert all(run[0].largest == 0 for run in runs), "the total is public"


def test_the_study_can_be_repeated(studies: list[Study]) -> None:
    again = study(next(iter(tables(None, quick=True))), runs=1)
    assert {setting: runs[0] for setting, runs in again.runs.items()} == {
        setting: runs[0] for setting, runs in studies[0].runs.items()
    }


def test_less_noise_is_the_same_noise_scaled_down_near_the_root(studies: list[Study]) -> None:
    for one in studies:
        wanted = one.noise["exact"] / one.noise["paper"]
        assert wanted == pytest.approx(0.829, abs=0.002)
        for level in (2, 3, 4):
            assert ratio(one, EXACT, level, "mean_of_all").value == pytest.approx(wanted, abs=0.03)


def test_lower_error_is_what_a_release_has() -> None:
    places = tt.Hierarchy.from_prefixes([f"{a}{b}" for a in "xyz" for b in range(9)], widths=[1], levels=["a", "b"])
    spine = tt.Spine.destination_first(origin=places, destination=places)
    rng = np.random.default_rng(5)
    leaves, count = rng.integers(0, 27, (2, 200)), rng.zipf(1.3, 200).clip(max=3000)
    table = Table("tiny", "Tiny", spine, Counts.from_leaves(spine, list(leaves), count.copy()), 1)
    codes = np.array([f"{a}{b}" for a in "xyz" for b in range(9)])
    rows = {name: codes[leaf] for name, leaf in zip(spine.attributes, leaves, strict=True)} | {"count": count}
    plan = plan_of(table, LOWER)
    release = tt.make_release(plan, pa.table(rows), tt.RunOptions(count="count", testing_key=bytes(32)))
    key = run_key(Key(bytes(32)), plan.digest, table.truth)
    _, again, cost, measurements = with_estimates(table, plan, key)
    assert again == measure_errors(release, table.truth)
    assert cost.slots == len(measurements.table())


@pytest.mark.parametrize("setting", [s for s in SETTINGS if s not in (BASELINE, CLOSEST)], ids=lambda s: s.label)
def test_a_setting_is_a_plan_that_anybody_can_make(setting: Setting) -> None:
    case = made_up("random-sparse")
    loss = tt.Loss(epsilon=1, delta=1e-8, accounting=setting.accounting)  # type: ignore[arg-type]
    choice = {"repair": "euclidean"} if setting.way == "euclidean" else {"prefer": setting.way}
    wanted = tt.Plan(case.spine, TRIP, loss, confidence=None, **choice, margins="none")
    table = Table("", "", case.spine, case.truth, 1)
    assert plan_of(table, setting).digest == wanted.digest


def test_the_closest_repair_changes_no_entry_by_more_than_the_least_largest_change() -> None:
    rng = np.random.default_rng(8)
    better = 0
    for _ in range(300):
        x, count = rng.integers(-30, 60, rng.integers(2, 9)), int(rng.integers(1, 100))
        y = closest(x, np.array([0, len(x)]), np.array([count]), Key(bytes(32)))
        published = chebyshev(x, count, "ascending", seed=1)
        assert y.sum() == count
        assert y.min() >= 0
        assert np.abs(y - x).max() == np.abs(published - x).max()
        better += np.square(y - x).sum() < np.square(published - x).sum()
        assert np.square(y - x).sum() <= np.square(published - x).sum()
    assert better > 100


def test_the_closest_repair_is_the_best_of_all_that_change_so_little() -> None:
    rng = np.random.default_rng(9)
    for _ in range(40):
        x, count = rng.integers(-6, 9, 3), int(rng.integers(1, 12))
        y = closest(x, np.array([0, 3]), np.array([count]), Key(bytes(32)))
        t = np.abs(chebyshev(x, count, "ascending", seed=1) - x).max()
        every = [(a, b, count - a - b) for a in range(count + 1) for b in range(count + 1 - a)]
        near = [np.square(np.array(z) - x).sum() for z in every if np.abs(np.array(z) - x).max() <= t]
        assert np.square(y - x).sum() == min(near)


def test_one_very_negative_measurement_moves_the_large_siblings_in_some_repairs_only(node: Node) -> None:
    shown = {name: np.array(pushed.shown[:LARGE]) for name, pushed in node.by_repair.items()}
    assert shown["fewer-invented"].tolist() == [405, 305, 205]
    assert shown["euclidean"].tolist() == shown["closest"].tolist() == [400, 300, 200]
    for pushed in node.by_repair.values():
        assert sum(pushed.shown) == 970


def test_a_ratio_of_paired_runs_has_the_error_of_their_differences(studies: list[Study]) -> None:
    one = studies[1]
    assert ratio(one, BASELINE, -1, "mean_of_all") == Compared(1.0, 0.0, 4)
    ours, theirs = (one.values(setting, -1, "mean_of_all") for setting in (LOWER, BASELINE))
    found = ratio(one, LOWER, -1, "mean_of_all")
    assert found.value == pytest.approx(ours.mean() / theirs.mean())
    left_out = [np.delete(ours, i).mean() / np.delete(theirs, i).mean() for i in range(4)]
    jackknife = np.sqrt(3 / 4 * np.square(left_out - np.mean(left_out)).sum())
    assert found.error == pytest.approx(jackknife, rel=0.05)
    assert difference(one, EXACT, -1, "false_discoveries").value < 0


def test_a_target_is_met_or_missed_only_where_the_runs_can_tell() -> None:
    found = Compared(0.80, 0.01, 8)  # ± 0.024 at 95 %
    assert [found.against(goal) for goal in (0.90, 0.83, 0.82, 0.80, 0.78, 0.77)] == [
        "met", "met", "not resolved", "not resolved", "not resolved", "missed",
    ]  # fmt: skip
    assert Compared(0.5, float("inf"), 1).against(0.9) == "not resolved"


def test_small_fan_out_has_targets_of_its_own(studies: list[Study]) -> None:
    binary, random = studies
    assert (binary.widest, goals(binary)) == (2, (0.75, 0.85))
    assert (random.widest, goals(random)) == (10, (0.85, 0.88))
    assert made_up("binary-sparse").widest == 2


def test_every_level_is_judged_and_invented_leaves_with_fewer_invented_only(studies: list[Study]) -> None:
    for one in studies:
        levels = len(one.levels) - 1
        for setting in (EXACT, LOWER):
            whats = [judged.what for judged in judge(one, setting)]
            assert (whats.count("mean"), whats.count("leaf"), whats.count("largest")) == (levels - 1, 1, levels)
            assert whats.count("invented") == (setting == EXACT)


def test_retained_nodes_measured_too_high_and_their_children_did_not(studies: list[Study]) -> None:
    level = studies[1].selection[-2]
    assert level.runs == 4
    own, children, least = (
        part[0] / level.retained[0] for part in (level.own_off, level.children_off, level.estimate_off)
    )
    assert own > 20
    assert least > 15
    assert abs(children) < 5
    assert abs(level.measured_off[0] / level.measured[0]) < 1
    unmeasured = [one.unmeasured for one in studies[1].selection]
    assert unmeasured[0] == 0
    assert unmeasured == sorted(unmeasured)


def test_the_page_and_its_pictures_are_written(studies: list[Study], written: list[Path]) -> None:
    text, *pictures = written
    told = text.read_text(encoding="utf-8")
    assert [picture.name for picture in pictures] == list(FIGURES)
    for picture in pictures:
        assert f"](../images/{picture.name})" in told
        assert picture.stat().st_size < 150_000
    for one in studies:
        found = ratio(one, LOWER, -1, "mean_of_all")
        assert f"| {found.value:.3f} ± {found.error:.3f}: {found.against(goals(one)[1])} (≤ {goals(one)[1]}) |" in told
        assert f"### {one.title}" in told
    assert "is not in the product" in told
    assert told.count("| origin.level8 (") == 2


def test_a_variant_that_were_better_everywhere_would_be_said_to_help(studies: list[Study]) -> None:
    assert "does not help" in conclusion(studies)
    better = []
    for one in studies:
        runs = dict(one.runs)
        runs[CLOSEST] = tuple(
            (*run[:-1], replace(run[-1], mean_of_all=0.5 * run[-1].mean_of_all)) for run in runs[EXACT]
        )
        better.append(replace(one, runs=runs))
    assert "**It helps.**" in conclusion(better)


TURNED = {"estimates.conclusion", "estimates.in_reach", "estimates.targets"}
"""The verdicts that runs of this module turn."""


def test_a_made_up_run_turns_every_target(studies: list[Study]) -> None:
    def verdicts(factor: float) -> set[str]:
        one = studies[0]
        runs = dict(one.runs)
        metrics = ("mean_of_all", "largest", "false_discoveries", "false_mass")
        runs[EXACT] = tuple(
            tuple(replace(row, **{metric: factor * getattr(row, metric) for metric in metrics}) for row in run)
            for run in runs[BASELINE]
        )
        return {judged.verdict for judged in judge(replace(one, runs=runs), EXACT)}

    assert [verdicts(factor) for factor in (0.7, 1.2)] == [{"met"}, {"missed"}]


def test_what_is_in_reach_of_less_noise_is_computed() -> None:
    assert in_reach([0.70, 0.74]) == {0.85: "in reach", 0.75: "in reach"}
    assert in_reach([0.83, 0.86]) == {0.85: "in reach of some levels", 0.75: "out of reach"}
    assert set(in_reach([]).values()) == {"not tried"}


def test_every_line_keeps_its_colour_in_the_file(written: list[Path]) -> None:
    pictures = {file.name: file for file in written}
    for name, settings in (("levels", BY_LEVEL), ("choice", tuple(COLOURS))):
        pixels = colours_in(pictures[f"estimates_{name}.png"])
        for setting in settings:
            wanted = np.frombuffer(bytes.fromhex(COLOURS[setting][1:]), np.uint8).astype(np.int64)
            assert np.abs(pixels - wanted).max(axis=1).min() <= 25, setting.label


def test_the_quick_study_needs_no_real_tables(tmp_path: Path) -> None:
    run = CliRunner().invoke(command, ["--quick", "--runs", "2", "--docs", str(tmp_path)])
    assert run.exit_code == 0, run.output
    assert "skipped" not in run.output
    assert (tmp_path / "results" / "estimates.md").is_file()


def test_the_short_table_has_the_three_preferences_beside_the_baseline(studies: list[Study], tmp_path: Path) -> None:
    about = tmp_path / "estimates.md"
    about.write_text("before\n<!-- tables -->\n<!-- end of tables -->\nafter\n", encoding="utf-8")
    insert(about, page.short_table(studies))
    assert "|" not in about.read_text(encoding="utf-8"), "made-up tables are not shown there"
    insert(about, page.short_table([replace(one, title="A town") for one in studies]))
    written = about.read_text(encoding="utf-8")
    rows = [line.split("|")[2].strip() for line in written.splitlines() if "A town" in line]
    assert rows == 2 * ["InfTDA as published", "fewer-invented", "fewer-lost", "lower-error"]


def test_the_pictures_of_the_documentation_are_those_of_the_page() -> None:
    written = (DOCS / "results" / "estimates.md").read_text(encoding="utf-8")
    for name in FIGURES:
        assert f"](../images/{name})" in written
        assert (DOCS / "images" / name).stat().st_size < 150_000
