"""The study of coverage: what is counted, what is judged, and the page that is written, on small tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import treetop as tt
from experiments.coverage import page
from experiments.coverage.__main__ import command, write
from experiments.coverage.figures import FIGURES
from experiments.coverage.measure import EPSILONS, Cell, Study, by_size, invented, lost, measured, study, too_low
from experiments.kit.cases import Table, tables
from treetop import Counts
from treetop.advice.coverage import Coverage


def tiny() -> Table:
    """Trips between eight towns; most pairs have none."""
    places = tt.Hierarchy.from_prefixes(
        [f"{a}{b}" for a in "xy" for b in "1234"], widths=[1], levels=["region", "town"]
    )
    spine = tt.Spine.destination_first(origin=places, destination=places)
    rng = np.random.default_rng(3)
    truth = Counts.from_leaves(spine, list(rng.integers(0, 8, (2, 30))), rng.zipf(1.4, 30).clip(max=2000))
    return Table("tiny", "Tiny", spine, truth, 4)


@pytest.fixture(scope="module")
def found() -> Study:
    return study(tiny())


def test_every_loss_is_tried_and_every_run_is_counted(found: Study) -> None:
    assert tuple(found.found) == EPSILONS
    assert (found.leaves, found.total, found.runs) == (64, tiny().truth.total, 4)
    for rows in found.found.values():
        assert [row.all_sizes.every.nodes for row in rows] == [4 * n for n in (1, 2, 4, 16, 64)]


def test_the_same_study_gives_the_same_numbers(found: Study) -> None:
    assert study(tiny()).found == found.found


def test_what_is_invented_and_what_is_lost_are_parts_of_what_is_released_and_what_is_not(found: Study) -> None:
    for rows in found.found.values():
        both = rows[-1].all_sizes
        assert 0 <= invented(rows[-1]).nodes <= both.positives.nodes
        assert lost(rows[-1]).nodes == both.zeros.nodes - rows[-1].sizes[0].zeros.nodes
    assert sum(invented(rows[-1]).nodes + lost(rows[-1]).nodes for rows in found.found.values()) > 0


def test_a_coverage_is_too_low_when_chance_does_not_explain_it(found: Study) -> None:
    def cell(covered: int, nodes: int) -> Cell:
        return Cell(found, 1.0, found.found[1.0][-1], Coverage(nodes, covered, 0.0))

    assert not too_low(cell(940, 1000))
    assert too_low(cell(900, 1000))
    assert not too_low(cell(3, 4))


TURNED = {"coverage.promise"}
"""The verdicts that runs of this module turn."""


def test_a_made_up_run_turns_the_verdict(found: Study) -> None:
    def word(*covered: int) -> object:
        level = found.found[1.0][-1]
        return page.promise([Cell(found, 1.0, level, Coverage(1000, one, 0.0)) for one in covered])["word"]

    assert [word(960, 970), word(960, 500), word(400, 500), word()] == ["Holds", "In part", "Does not hold", "Not run"]


def test_no_set_of_nodes_is_covered_too_seldom(found: Study) -> None:
    cells = [*by_size([found]), *measured([found])]
    assert len(cells) > 60
    assert not [cell for cell in cells if too_low(cell)]


def test_the_page_and_the_figures_are_written(found: Study, tmp_path: Path) -> None:
    files = write([found], tmp_path)
    assert [file.name for file in files] == ["coverage.md", *FIGURES]
    assert all(file.stat().st_size < 150_000 for file in files)
    text = (tmp_path / "results" / "coverage.md").read_text(encoding="utf-8")
    assert all(f"](../images/{name})" in text for name in FIGURES)
    assert "winner's curse" in text and "### Tiny" in text
    short = page.short_table([found])
    assert short in text
    for line in short.splitlines():
        assert line.count("|") == 11


def test_a_share_is_never_rounded_up_to_all() -> None:
    assert page.share(Coverage(100_000, 99_999, 0.0)) == "> 99.9 %"
    assert page.share(Coverage(10, 10, 0.0)) == "100.0 %"
    assert page.share(Coverage(0, 0, 0.0)) == "–"


def test_the_quick_version_of_the_command_runs_on_the_sparse_tables(tmp_path: Path) -> None:
    assert [table.name for table in tables(None, quick=True)] == ["binary-sparse", "random-sparse"]
    said = CliRunner().invoke(command, ["--quick", "--runs", "1", "--docs", str(tmp_path)])
    assert said.exit_code == 0, said.output
    assert (tmp_path / "results" / "coverage.md").is_file()


def test_the_figures_of_the_documentation_are_small() -> None:
    images = Path(__file__).parents[2] / "docs" / "images"
    files = list(images.glob("coverage_*.png"))
    assert len(files) == len(FIGURES)
    assert all(file.stat().st_size < 150_000 for file in files)
