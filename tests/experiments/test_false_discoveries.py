"""The study of false discoveries, on a table that is made up: it measures, draws and writes what its page shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import treetop as tt
from benchmarks.synthetic import two_level_square
from experiments.false_discoveries.__main__ import command, write
from experiments.false_discoveries.measure import METHODS, Study, study
from experiments.false_discoveries.page import least
from experiments.kit.cases import DOCS, Table
from experiments.kit.outcomes import Outcome
from experiments.kit.pages import insert
from experiments.kit.tables import percent
from treetop import Counts
from treetop.counts.counts import pack
from treetop.release.errors import errors_of


def square() -> Table:
    trips = two_level_square(zones=30, regions=4, trips=5_000)
    places = tt.Hierarchy.from_table(trips.place_table(), trips.levels)
    codes = trips.codes("zone")
    rows = {"origin": codes[trips.origin], "destination": codes[trips.destination], "count": trips.count}
    return Table.between("square", "A square", places, pa.table(rows))


@pytest.fixture(scope="module")
def small() -> Study:
    return study(square(), epsilons=(1.0, 10.0), repetitions=2)


def test_every_repair_is_run_with_every_loss_and_with_fresh_noise(small: Study) -> None:
    assert {(one.epsilon, one.way) for one in small.outcomes} == {(e, m) for e in (1.0, 10.0) for m in METHODS}
    for outcome in small.outcomes:
        first, second = outcome.runs
        assert len(first) == len(second) == 5
        assert first != second
        assert first[0].largest == second[0].largest == 0


def test_the_study_can_be_repeated(small: Study) -> None:
    assert study(square(), epsilons=(10.0,), repetitions=2).outcomes == small.outcomes[4:]


def test_more_loss_leaves_fewer_trips_in_the_wrong_pair(small: Study) -> None:
    for method in METHODS:
        weak, strong = (small.outcome(epsilon, method).spread(-1, "misplaced") for epsilon in (10.0, 1.0))
        assert 0 < weak.low <= weak.mean <= weak.high < strong.low <= strong.high < 1


def test_lowering_small_measurements_first_invents_fewer_pairs_under_either_repair(small: Study) -> None:
    for repair in ("chebyshev", "euclidean"):
        methods = [method for method in METHODS if method.repair == repair]
        up, down = (small.outcome(10.0, method).spread(-1, "false_discoveries") for method in methods)
        assert up.high < down.low


TURNED = {"false_discoveries.least"}


def test_who_has_the_least_is_counted_over_the_settings_that_were_run(small: Study) -> None:
    found = least([small])
    first, last = (found[METHODS[at].label] for at in (0, 1))
    assert first["invented pairs"] == "all 2" and last["invented pairs"] == "0 of 2"
    # The same runs, with those of the first two repairs exchanged.
    ways = {METHODS[0]: METHODS[1], METHODS[1]: METHODS[0]}
    outcomes = tuple(replace(one, way=ways.get(one.way, one.way)) for one in small.outcomes)
    turned = least([replace(small, outcomes=outcomes)])
    assert turned[METHODS[0].label] == last and turned[METHODS[1].label] == first


def test_a_misplaced_trip_is_counted_once() -> None:
    spine = tt.Spine(["code"], {"code": tt.Hierarchy.flat(list("abcde"), level="code")})
    truth = Counts.from_leaves(spine, [np.array([0, 1, 2])], np.array([70, 20, 10]))
    errors = errors_of(spine, pack(spine, [np.array([0, 3, 4])]), np.array([60, 15, 25]), truth)
    assert Outcome(1.0, METHODS[0], (errors,), 100).spread(-1, "misplaced").mean == pytest.approx(0.4)


def test_the_page_and_its_plots_are_written(small: Study, tmp_path: Path) -> None:
    page, *pictures = write([small], tmp_path)
    text = page.read_text(encoding="utf-8")
    fact = small.levels[-1]
    assert f"| A square | 5,000 | {fact.true_nodes:,} |" in text
    invented, lost = (small.outcome(1.0, METHODS[0]).spread(-1, m).mean for m in ("false_discoveries", "lost_mass"))
    assert percent(invented) in text and percent(lost) in text
    assert text.count("\n| origin.zone (") == 2 * len(METHODS)
    assert len(pictures) == 3
    assert all(f"](../images/{picture.name})" in text for picture in pictures)
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    write([small], tmp_path)
    again = page.read_text(encoding="utf-8")
    assert again.splitlines()[:-1] == text.splitlines()[:-1]  # the last line tells the load, which changes


def test_a_page_without_marks_is_not_written_over(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no marks"):
        insert(page, {"tables": "tables"})
    assert page.read_text(encoding="utf-8") == "# A page\n"


def test_without_the_real_tables_the_study_says_so_and_writes_nothing(tmp_path: Path) -> None:
    run = CliRunner().invoke(command, ["--data", str(tmp_path / "absent"), "--docs", str(tmp_path)])
    assert (run.exit_code, run.output.startswith("skipped: the real tables are not in")) == (0, True)
    assert list(tmp_path.iterdir()) == []


def test_the_plots_of_the_page_are_small() -> None:
    pictures = list((DOCS / "images").glob("false_discoveries_*.png"))
    assert len(pictures) == 5
    assert all(picture.stat().st_size < 150_000 for picture in pictures)
