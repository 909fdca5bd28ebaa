"""The experiments on group sizes: tables in the shapes of the paper, what is judged, and the page, on small tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.group_sizes import page
from experiments.group_sizes.coverage import WAYS as COVERED
from experiments.group_sizes.coverage import cover_once
from experiments.group_sizes.figures import draw
from experiments.group_sizes.measure import CLASSES, EPSILONS, WAYS, Run, run_once, run_tables
from experiments.group_sizes.solver import FORMS, Solved, solve_once
from experiments.group_sizes.tables import CENSUS_2000, census_like, household_shares, households, taxi_like
from experiments.kit.runs import Kept


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    table = census_like(groups=20_000, largest=12, states=3, counties=9)
    return [run_once(table, name, epsilon, seed) for name in WAYS for epsilon in EPSILONS for seed in (0, 1)]


def test_the_tail_of_households_falls_by_one_ratio_and_keeps_its_number() -> None:
    shares = household_shares(1_000)
    assert shares.sum() == pytest.approx(1) and shares[0] == 0
    assert shares[8] / shares[7] == pytest.approx(shares[7] / shares[6])
    assert shares[7:].sum() * sum(CENSUS_2000) == pytest.approx(CENSUS_2000[-1], rel=1e-6)


def test_tables_have_the_shapes_that_they_are_made_for() -> None:
    census = census_like(groups=50_000, largest=30, states=4, counties=20)
    assert census.groups == 50_000 and census.sizes.regions.sizes == (4, 20)
    assert census.sizes.number[:, 10:].sum() >= 50  # the outliers
    taxis = taxi_like(largest=60, taxis=40)
    assert taxis.sizes.regions.sizes == (6, 263) and taxis.sizes.number[:, 0].sum() == 0
    home = taxi_like(largest=60, taxis=40, by_zone=False)
    assert home.groups == 40


def test_the_real_table_is_left_out_where_it_is_not(tmp_path: Path) -> None:
    assert households(tmp_path) is None


def test_a_run_repeats_and_its_levels_add_up(runs: list[Run]) -> None:
    table = census_like(groups=20_000, largest=12, states=3, counties=9)
    again = run_once(table, "M_c^dp", 0.5, 1)
    first = next(run for run in runs if (run.mechanism, run.epsilon) == ("M_c^dp", 0.5))
    second = [run for run in runs if (run.mechanism, run.epsilon) == ("M_c^dp", 0.5)][1]
    assert replace(again, seconds=0) == replace(second, seconds=0) != replace(first, seconds=0)
    assert again.error == again.level_1 + again.level_2 + again.level_3


def test_exact_repairs_break_no_sums(runs: list[Run]) -> None:
    broken = {name: max(run.violations for run in runs if run.mechanism == name) for name in WAYS}
    assert broken["M_H^dp"] == broken["M_c^dp"] == broken["M_c^r+dp"] == 0 < broken["M_H^r"]


def test_wins_are_judged_with_their_uncertainty_and_a_walkover_is_none(runs: list[Run]) -> None:
    table, rivals = runs[0].table, ("M_c^dp", "M_H^dp")

    def changed(by: float, spread: float) -> list[Run]:
        own = [replace(run, level_1=run.level_1 + by + spread * (at % 2)) for at, run in enumerate(runs)]
        return [new if run.mechanism == "M_c^dp" else run for new, run in zip(own, runs, strict=True)]

    worse = page.most_accurate(changed(1e9, 0), [table], rivals, "M_c^dp")
    assert worse.settings == 9 and len([one for one in worse.worse if "level 1" in one]) == 3
    assert page.most_accurate(changed(-1e6, 0), [table], rivals, "M_c^dp").clearly >= 3
    unsure = page.most_accurate(changed(-1e6, 1e9), [table], rivals, "M_c^dp")
    assert not [one for one in unsure.worse if "level 1" in one]
    alone = [run for run in runs if run.mechanism != "M_H^dp"]
    assert page.most_accurate(alone, [table], rivals, "M_c^dp").settings == 0


def test_the_page_has_every_setting_and_says_what_was_not_run(runs: list[Run], tmp_path: Path) -> None:
    some = [run for run in runs if run.mechanism != "M_H^r"]
    times = [replace(run, largest=size) for run in some[:3] for size in (5, 10)]
    table = census_like(groups=20_000, largest=12, states=3, counties=9)
    solved = [solve_once(table, name, 1.0, 0) for name in FORMS]
    covered = [cover_once(table, CLASSES, way, 1.0, 0) for way in COVERED]
    files = draw(some, times, solved, tmp_path / "images")
    assert [file.name for file in files] == [
        f"group_sizes_{name}.png" for name in ("errors", "time", "runtimes", "totals", "classes")
    ]
    assert all(0 < file.stat().st_size < 200_000 for file in files)
    text = page.page(page.Found([table], some, times, [], solved, covered))
    assert text.count("| not run |") == len(EPSILONS)
    assert "**Holds.** Exact and joint repairs broke at most 0 sums" in text
    mean = np.mean([run.level_3 for run in some if (run.mechanism, run.epsilon) == ("M_H^dp", 0.1)])
    assert f"| {mean:,.0f} (" in text


def test_runs_are_kept_as_lines_and_not_run_again(runs: list[Run], tmp_path: Path) -> None:
    for number, run in enumerate(runs):
        assert Kept(tmp_path / "runs.jsonl").run(Run, str(number), lambda run=run: run) == run  # type: ignore[misc]
    kept = Kept(tmp_path / "runs.jsonl")
    assert [kept.run(Run, str(number), pytest.fail) for number in range(len(runs))] == runs


def test_the_solver_proves_the_exact_repair_of_sizes_optimal() -> None:
    table = census_like(groups=5_000, largest=8, states=2, counties=6)
    for seed in range(3):
        direct, rising = (solve_once(table, name, 0.5, seed) for name in FORMS)
        assert direct.solved and direct.cost == direct.others[0].cost <= direct.others[1].cost
        assert rising.solved and all(rising.cost <= one.cost for one in rising.others)


def test_intervals_are_counted_by_class_level_and_derived_table() -> None:
    table = census_like(groups=20_000, largest=12, states=3, counties=9)
    releases = [cover_once(table, CLASSES, "M_c^r+dp, regions", 1.0, run) for run in range(8)]
    counties = [held for one in releases for held in one.found if held.level == 3]
    cells = [held for held in counties if held.what in CLASSES]
    assert sum(held.intervals for held in cells) == 8 * 9 * 13
    assert sum(held.held for held in cells) / sum(held.intervals for held in cells) > 0.93
    assert [held.intervals for held in counties if held.what == "people"] == [9] * 8


def test_every_setting_is_run_once_before_any_is_run_twice(tmp_path: Path) -> None:
    tables = [census_like(groups=2_000, largest=5, states=2, counties=4, name=name) for name in ("one", "two")]
    order: list[str] = []

    class Noted(Kept):
        def run(self, kind: Any, name: str, make: Callable[[], Any]) -> Any:
            order.append(name.rpartition(" ")[2])
            return super().run(kind, name, make)

    runs, refused = run_tables(tables, 2, lambda _: None, lambda name: Noted(tmp_path / f"{name}.jsonl"))
    assert order == sorted(order) and len(runs) == 2 * len(WAYS) * len(EPSILONS) * 2 and not refused
    again, _ = run_tables(tables, 2, lambda _: None, lambda name: Kept(tmp_path / f"{name}.jsonl"))
    assert again == runs


def test_where_errors_sit_is_told_with_its_uncertainty(runs: list[Run]) -> None:
    def small(share: float) -> list[Run]:
        parts = (share, 0.0, 0.0, 1 - share, 0.0)
        return [
            replace(run, error=1.0, classes=parts if run.mechanism == "M_c^dp" else (0.5, 0, 0, 0.5, 0)) for run in runs
        ]

    table = [census_like(groups=20_000, largest=12, states=3, counties=9)]
    more = page.shares(table, small(0.9), "M_c^dp", "M_H^dp")
    assert (more.more, more.less, more.settings, more.most, more.below) == (3, (), 3, 3, 3)
    less = page.shares(table, small(0.1), "M_c^dp", "M_H^dp")
    assert (less.more, len(less.less), less.most) == (0, 3, 0)
    same = page.shares(table, small(0.5), "M_c^dp", "M_H^dp")
    assert (same.more, same.less) == (0, ())


def _made(runs: list[Run], **changes: dict[str, float]) -> list[Run]:
    """Made-up runs: of each mechanism, by its name in plain letters, what is stated of every run."""
    names = {name: name.replace("^", "_").replace("+", "_").replace(", ", "_") for name in WAYS}
    return [replace(run, **changes.get(names[run.mechanism], {})) for run in runs]  # type: ignore[arg-type]


def _rising(runs: list[Run], sign: float) -> list[Run]:
    return [replace(run, error=10 - sign * run.epsilon) for run in runs]


def _cost(cost: float) -> list[Solved]:
    one = solve_once(census_like(groups=500, largest=4, states=2, counties=4), "M_H", 1.0, 0)
    return [replace(one, others=(replace(one.others[0], cost=cost * one.cost), *one.others[1:]))]


HALF = (0.5, 0.0, 0.0, 0.5, 0.0)
TURNED: dict[str, Callable[[list[Run]], list[str]]] = {
    "group_sizes.most_accurate": lambda runs: [
        page.most_accurate(_made(runs, M_c_dp=level), [runs[0].table], ("M_c^dp", "M_H^dp"), "M_c^dp").word
        for level in (dict.fromkeys(page.LEVELS, -1e9), dict.fromkeys(page.LEVELS, 1e9))
    ],
    "group_sizes.small_sizes": lambda runs: [
        page.shares(
            [census_like(groups=20_000, largest=12, states=3, counties=9)],
            [
                replace(run, error=1.0, classes=own if run.mechanism == "M_c^dp" else (0.5, 0, 0, 0.5, 0))
                for run in runs
            ],
            "M_c^dp",
            "M_H^dp",
        ).word
        for own in ((0.9, 0, 0, 0.1, 0), (0.1, 0, 0, 0.9, 0))
    ],
    "group_sizes.whole_numbers": lambda runs: [
        page.whole_numbers(_made(runs, M_H_dp={"level_1": own}, M_H_r={"level_1": 1.0}), [runs[0].table]).word
        for own in (0.4, 1.0)
    ],
    "group_sizes.sums": lambda runs: [
        page.broken_sums([replace(run, violations=broken) for run in runs]).word for broken in (0, 3)
    ],
    "group_sizes.falls": lambda runs: [page.falls(_rising(runs, sign), [runs[0].table]).word for sign in (1, -1)],
    "group_sizes.solver": lambda _: [page.as_solved(_cost(cost)).word for cost in (1.0, 1.1)],
}


@pytest.mark.parametrize("name", TURNED)
def test_a_made_up_run_turns_the_verdict(name: str, runs: list[Run]) -> None:
    assert TURNED[name](runs) == ["Holds", "Does not hold"]


def test_of_no_runs_there_is_no_verdict() -> None:
    assert page.falls([], []).word == page.whole_numbers([], []).word == page.broken_sums([]).word == "Not run"
    assert page.most_accurate([], [], ("M_c^dp", "M_H^dp"), "M_c^dp").word == page.as_solved([]).word == "Not run"
