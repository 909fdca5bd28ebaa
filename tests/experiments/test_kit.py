"""What studies share: runs that are kept and taken up again, tables, pages and the command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import treetop as tt
from experiments.coverage.measure import Run as CoverageRun
from experiments.coverage.measure import _run as coverage_run
from experiments.estimates.measure import Found, _run
from experiments.inftda.measure import Batch, case_of, run_table
from experiments.kit import outcomes, pages, tables
from experiments.kit.cases import TRIP, Table, made_up
from experiments.kit.command import Call, as_command
from experiments.kit.runs import Kept, as_json, key, release
from experiments.kit.stamp import noticed, stamped
from treetop import Loss, Plan
from treetop.addons.lab.comparison import Comparison
from treetop.release.errors import measure_errors


@pytest.fixture(scope="module")
def table() -> Table:
    return made_up("binary-sparse")


def taken_up(kind: Any, make: Callable[[], Any], file: Path) -> None:
    """Check that a result that is kept comes back as it was, in every field, and is not made again."""
    made = Kept(file).run(kind, "once", make)
    again: Any = Kept(file).run(kind, "once", lambda: 1 / 0)
    assert type(again) is type(made)
    assert as_json(again) == as_json(made)


def test_the_runs_of_every_kind_of_study_are_taken_up_again(table: Table, tmp_path: Path) -> None:
    plan = Plan(table.spine, TRIP, Loss(epsilon=1, delta=1e-8), confidence=0.95, margins="none")
    taken_up(
        outcomes.Run, lambda: measure_errors(release(plan, table, key("a")), table.truth), tmp_path / "errors.jsonl"
    )
    taken_up(CoverageRun, lambda: coverage_run(plan, table.truth, "a"), tmp_path / "coverage.jsonl")
    taken_up(Found, lambda: _run(table, "a"), tmp_path / "estimates.jsonl")
    batch = Batch(("inftda", "gauss"), (1.0,), "paper", 1)
    taken_up(Comparison, lambda: run_table("a", case_of(table), [batch], jobs=1), tmp_path / "comparison.jsonl")


def test_what_comes_back_can_be_reckoned_with(table: Table, tmp_path: Path) -> None:
    for _ in range(2):
        found = Kept(tmp_path / "runs.jsonl").run(Found, "a", lambda: _run(table, "a"))
        assert isinstance(found.selection[0].measured, np.ndarray)
        assert found.errors[0][-1].largest > 0
        batch = Batch(("inftda",), (1.0,), "paper", 1)
        kept = Kept(tmp_path / "comparisons.jsonl")
        (trial,) = run_table("a", case_of(table), [batch], jobs=1, kept=kept).trials
        assert trial.setting == batch.settings()[0]
        assert hash(trial.setting) == hash(batch.settings()[0])


def test_a_run_without_a_file_is_made_each_time() -> None:
    made = iter([1.5, 2.5])
    assert [Kept().run(float, "once", lambda: next(made)) for _ in range(2)] == [1.5, 2.5]


def test_a_release_of_counts_is_the_release_of_their_table() -> None:
    places = tt.Hierarchy.from_prefixes([f"{a}{b}" for a in "xy" for b in "1234"], [1], ["region", "town"])
    ends = [("x1", "y2"), ("x1", "x3"), ("y4", "x2"), ("y1", "y1")]
    rows = pa.table({"origin": [o for o, _ in ends], "destination": [d for _, d in ends], "count": [90, 8, 300, 2]})
    table = Table.between("few", "Few", places, rows)
    plan = Plan(table.spine, TRIP, Loss(epsilon=1, delta=1e-8), margins="none")
    whole = tt.make_release(plan, rows, tt.RunOptions(count="count", testing_key=key("few")))
    found = release(plan, table, key("few"))
    assert np.array_equal(found.nodes, whole.nodes)
    assert found.count.tolist() == whole.count.tolist()


def test_the_sides_of_columns() -> None:
    rows = [("a", "1", "2")]
    assert tables.lines(("x", "y", "z"), rows) == ["| x | y | z |", "|---|---:|---:|", "| a | 1 | 2 |"]
    assert tables.table(("x", "y", "z"), rows).splitlines()[1] == "|---|---|---|"
    assert tables.table(("x", "y", "z"), rows, "lrl").splitlines()[1] == "|---|---:|---|"


def test_a_page_says_what_wrote_it(tmp_path: Path) -> None:
    text = pages.write(tmp_path / "results" / "page.md", "# A page\n\n\n").read_text(encoding="utf-8")
    first, above, last = text.rstrip("\n").split("\n\n")
    assert first == "# A page" and above.startswith("> Measured with Treetop 0.")
    assert last.startswith("Measured with Treetop 0.") and ", written on 20" in last and "; load of the machine" in last
    assert stamped(text) == tt.__version__ and noticed(text) is None


def test_a_study_has_only_the_options_that_it_knows(tmp_path: Path) -> None:
    calls = []

    @as_command("--out", least_runs=2)
    def study(call: Call) -> Iterator[Path]:
        """Try."""
        calls.append(call)
        yield tmp_path / "file"

    given = ["--quick", "--repeat", "3", "--out", str(tmp_path), "--docs", str(tmp_path)]
    done = CliRunner().invoke(study, given)
    assert (done.exit_code, done.output) == (0, f"wrote {tmp_path / 'file'}\n")
    assert (calls[0].runs, calls[0].quick, calls[0].out, calls[0].jobs) == (3, True, tmp_path, 1)
    assert calls[0].kept("a").file == tmp_path / "quick-a.jsonl"
    assert CliRunner().invoke(study, ["--runs", "1"]).exit_code == 2
    assert CliRunner().invoke(study, ["--jobs", "2"]).exit_code == 2
